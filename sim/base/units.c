/* base/units.c: reading quantities, see units.h. Writing them: units_format.c. */
#include "base/units.h"

#include <math.h>
#include <string.h>

#include "base/number_private.h"
#include "base/status.h"

/* What a unit measures; bits alone are known, to say why '400 Gb' is wrong, but fit nowhere. */
enum { BITS_ALONE = -1 };

/* Sets of prefixes that a unit may have. */
enum { SMALL = 1, LARGE = 2, BINARY = 4 };

struct prefix {
    const char *text;
    int set;
    int exponent10;
    int exponent2;
};

/* Kilo is 'k' alone: 'KB' is written for 1000 and for 1024. µ has two code points. */
static const struct prefix prefixes[] = {
    {"p", SMALL, -12, 0},       {"n", SMALL, -9, 0},        {"u", SMALL, -6, 0},
    {"\xC2\xB5", SMALL, -6, 0}, {"\xCE\xBC", SMALL, -6, 0}, {"m", SMALL, -3, 0},
    {"k", LARGE, 3, 0},         {"M", LARGE, 6, 0},         {"G", LARGE, 9, 0},
    {"T", LARGE, 12, 0},        {"P", LARGE, 15, 0},        {"E", LARGE, 18, 0},
    {"Ki", BINARY, 0, 10},      {"Mi", BINARY, 0, 20},      {"Gi", BINARY, 0, 30},
    {"Ti", BINARY, 0, 40},      {"Pi", BINARY, 0, 50},
};

struct unit {
    const char *text;
    int dimension;
    int prefix_sets;
    int exponent2;
    double factor;
};

static const struct unit units[] = {
    {"B", DIM_BYTES, LARGE | BINARY, 0, 1},
    {"B/s", DIM_BANDWIDTH, LARGE | BINARY, 0, 1},
    {"bps", DIM_BANDWIDTH, LARGE, -3, 1},
    {"b/s", DIM_BANDWIDTH, LARGE, -3, 1},
    {"bit/s", DIM_BANDWIDTH, LARGE, -3, 1},
    {"b", BITS_ALONE, LARGE | BINARY, -3, 1},
    {"bit", BITS_ALONE, LARGE | BINARY, -3, 1},
    {"s", DIM_TIME, SMALL, 0, 1},
    {"min", DIM_TIME, 0, 0, 60},
    {"h", DIM_TIME, 0, 0, 3600},
    {"FLOPS", DIM_FLOP_RATE, LARGE, 0, 1},
    {"FLOP/s", DIM_FLOP_RATE, LARGE, 0, 1},
    {"Hz", DIM_FREQUENCY, LARGE, 0, 1},
    {"W", DIM_POWER, LARGE, 0, 1},
};

enum { PREFIX_COUNT = sizeof(prefixes) / sizeof(prefixes[0]) };
enum { UNIT_COUNT = sizeof(units) / sizeof(units[0]) };

/* The prefix that is the first `length` bytes of `text`, of one of `sets`; NULL: none. */
static const struct prefix *find_prefix(const char *text, size_t length, int sets)
{
    static const struct prefix none = {"", 0, 0, 0};
    if (length == 0)
        return &none;
    for (int i = 0; i < PREFIX_COUNT; i++) {
        const struct prefix *prefix = &prefixes[i];
        if ((prefix->set & sets) != 0 && strlen(prefix->text) == length &&
            memcmp(prefix->text, text, length) == 0)
            return prefix;
    }
    return NULL;
}

static const struct unit *find_unit(const char *text, const struct prefix **prefix)
{
    const size_t length = strlen(text);
    for (int i = 0; i < UNIT_COUNT; i++) {
        const size_t base = strlen(units[i].text);
        if (base > length || strcmp(text + length - base, units[i].text) != 0)
            continue;
        *prefix = find_prefix(text, length - base, units[i].prefix_sets);
        if (*prefix != NULL)
            return &units[i];
    }
    return NULL;
}

/* What follows a number and cannot be a unit: '0x10', '1_000', '1.2.3', '1,5'. */
static bool is_junk(const char *number, size_t number_bytes, const char *rest)
{
    if (number_bytes == 1 && number[0] == '0' && strchr("xXo", rest[0]) != NULL)
        return true;
    for (const char *c = rest; *c != '\0'; c++) {
        if (*c >= '0' && *c <= '9')
            return true;
    }
    const bool is_letter = (rest[0] >= 'a' && rest[0] <= 'z') || (rest[0] >= 'A' && rest[0] <= 'Z');
    return !is_letter && (unsigned char)rest[0] < 0x80;
}

/* What people write behind a number of tokens; a count may also go without. */
static const struct token_scale {
    const char *text;
    int exponent10;
} token_scales[] = {{"", 0}, {"k", 3}, {"M", 6}, {"G", 9}, {"B", 9}, {"T", 12}};

/* "T", "T tokens", " tokens" behind a number; false: none of ours. */
static bool find_token_scale(const char *text, int *exponent10)
{
    for (size_t i = 0; i < sizeof(token_scales) / sizeof(token_scales[0]); i++) {
        const size_t length = strlen(token_scales[i].text);
        if (strncmp(text, token_scales[i].text, length) != 0)
            continue;
        const char *rest = text + length;
        while (*rest == ' ')
            rest++;
        *exponent10 = token_scales[i].exponent10;
        if (strcmp(rest, "tokens") == 0 || text[length] == '\0')
            return true;
    }
    return false;
}

static enum unit_error parse_tokens(const char *text, size_t length, size_t start, double *value)
{
    const struct prefix *prefix = NULL;
    int exponent10 = 0;
    if (text[start] == '\0' && start > length)
        return UNIT_NOT_A_NUMBER;
    if (!find_token_scale(text + start, &exponent10)) {
        if (find_unit(text + start, &prefix) != NULL)
            return UNIT_MISFIT;
        return is_junk(text, length, text + start) ? UNIT_NOT_A_NUMBER : UNIT_UNKNOWN;
    }
    const double scaled = number_scaled(text, length, exponent10);
    if (!isfinite(scaled))
        return UNIT_OVERFLOW;
    *value = scaled;
    return UNIT_OK;
}

enum unit_error units_parse(const char *text, enum dimension dimension, double *value,
                            size_t *unit_start)
{
    const size_t length = number_length(text);
    size_t start = length;
    if (length > 0) {
        while (text[start] == ' ')
            start++;
    }
    if (unit_start != NULL)
        *unit_start = start;
    if (length == 0)
        return UNIT_NOT_A_NUMBER;
    if (dimension == DIM_TOKENS)
        return parse_tokens(text, length, start, value);

    int exponent10 = 0, exponent2 = 0;
    double factor = 1;
    if (text[start] == '\0') {
        if (dimension != DIM_NONE)
            return UNIT_MISSING;
        if (start > length)
            return UNIT_NOT_A_NUMBER;
    } else {
        const struct prefix *prefix = NULL;
        if (is_junk(text, length, text + start))
            return UNIT_NOT_A_NUMBER;
        const struct unit *unit = find_unit(text + start, &prefix);
        if (unit == NULL)
            return UNIT_UNKNOWN;
        if (unit->dimension != (int)dimension)
            return UNIT_MISFIT;
        exponent10 = prefix->exponent10;
        exponent2 = unit->exponent2 + prefix->exponent2;
        factor = unit->factor;
    }
    const double scaled = ldexp(number_scaled(text, length, exponent10) * factor, exponent2);
    if (!isfinite(scaled))
        return UNIT_OVERFLOW;
    *value = scaled;
    return UNIT_OK;
}

const char *units_accepted(enum dimension dimension)
{
    switch (dimension) {
    case DIM_NONE:
        return "a number without unit";
    case DIM_BYTES:
        return "B, kB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB (powers of 1024)";
    case DIM_BANDWIDTH:
        return "Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes";
    case DIM_TIME:
        return "ps, ns, us (\xC2\xB5s), ms, s, min, h";
    case DIM_FLOP_RATE:
        return "GFLOPS, TFLOPS, PFLOPS (GFLOP/s, TFLOP/s, PFLOP/s)";
    case DIM_FREQUENCY:
        return "Hz, kHz, MHz, GHz";
    case DIM_POWER:
        return "W, kW, MW";
    case DIM_TOKENS:
        return "k, M, B (or G), T for powers of 1000; or none";
    }
    BUG("dimension %d", (int)dimension);
}

const char *dimension_name(enum dimension dimension)
{
    switch (dimension) {
    case DIM_NONE:
        return "number";
    case DIM_BYTES:
        return "bytes";
    case DIM_BANDWIDTH:
        return "bandwidth";
    case DIM_TIME:
        return "time";
    case DIM_FLOP_RATE:
        return "FLOP rate";
    case DIM_FREQUENCY:
        return "frequency";
    case DIM_POWER:
        return "power";
    case DIM_TOKENS:
        return "number of tokens";
    }
    BUG("dimension %d", (int)dimension);
}

int64_t ps_from_s(double seconds)
{
    /* 2^-40: far above the rounding of a few operations on doubles (2^-53 each), far below 1 ps in
       any time that matters. */
    const double nearly = 0x1p-40;
    if (!(seconds >= 0))
        BUG("a duration of %g s", seconds);
    const double ps = seconds * 1e12;
    if (ps >= (double)(INT64_MAX / 4))
        return INT64_MAX / 4;
    const double nearest = floor(ps + 0.5);
    return (int64_t)(fabs(ps - nearest) <= ps * nearly ? nearest : ceil(ps));
}

double s_from_ps(int64_t ps)
{
    return (double)ps / 1e12;
}
