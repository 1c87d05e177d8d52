/* base/units_format.c: writing quantities for people and for YAML, see units.h. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/units.h"

struct scale {
    double size;
    const char *unit;
};

/* Largest first; the last one has size 1 or is the smallest that is printed. */
static const struct scale time_scales[] = {{1, "s"},     {1e-3, "ms"},  {1e-6, "us"},
                                           {1e-9, "ns"}, {1e-12, "ps"}, {0, NULL}};
static const struct scale decimal_bytes[] = {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"},
                                             {1e3, "kB"},  {1, "B"},     {0, NULL}};
static const struct scale binary_bytes[] = {
    {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}, {0, NULL}};
static const struct scale bandwidths[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"},
                                          {1e3, "kB/s"},  {1, "B/s"},    {0, NULL}};
static const struct scale flop_rates[] = {
    {1e15, "PFLOPS"}, {1e12, "TFLOPS"}, {1e9, "GFLOPS"}, {1, "FLOPS"}, {0, NULL}};
static const struct scale frequencies[] = {
    {1e9, "GHz"}, {1e6, "MHz"}, {1e3, "kHz"}, {1, "Hz"}, {0, NULL}};
static const struct scale powers[] = {{1e3, "kW"}, {1, "W"}, {0, NULL}};
static const struct scale token_scales[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"},
                                            {1e3, "k"},  {1, ""},    {0, NULL}};

/* The largest scale that the magnitude reaches once it is rounded to a relative `rounding`. */
static const struct scale *choose_scale(const struct scale *scales, double value, double rounding)
{
    const double magnitude = fabs(value) * (1 + rounding);
    while (scales[1].unit != NULL && magnitude < scales->size)
        scales++;
    return scales;
}

/* A program that embeds us may have set a locale with another decimal point. */
static char *with_point(char *text)
{
    const char *point = localeconv()->decimal_point;
    char *found = strcmp(point, ".") == 0 ? NULL : strstr(text, point);
    if (found != NULL) {
        const size_t length = strlen(point);
        *found = '.';
        memmove(found + 1, found + length, strlen(found + length) + 1);
    }
    return text;
}

char *format_seconds(char *out, size_t size, double seconds)
{
    if (seconds == 0) {
        snprintf(out, size, "0 s");
        return out;
    }
    const struct scale *scale = choose_scale(time_scales, seconds, 0.5e-3);
    const double value = seconds / scale->size;
    int decimals = 3;
    if (scale->size < 1)
        decimals = fabs(value) >= 99.95 ? 0 : fabs(value) >= 9.995 ? 1 : 2;
    snprintf(out, size, "%.*f %s", decimals, value, scale->unit);
    return with_point(out);
}

static char *format_scaled_bytes(char *out, size_t size, double bytes, const struct scale *scales)
{
    const struct scale *scale = choose_scale(scales, bytes, 0.5e-4);
    snprintf(out, size, "%.*f %s", scale->size > 1 ? 1 : 0, bytes / scale->size, scale->unit);
    return with_point(out);
}

char *format_gib(char *out, size_t size, double bytes)
{
    return format_scaled_bytes(out, size, bytes, binary_bytes);
}

char *format_bytes(char *out, size_t size, double bytes)
{
    return format_scaled_bytes(out, size, bytes, decimal_bytes + 1);
}

char *format_bandwidth(char *out, size_t size, double bytes_per_s)
{
    const struct scale *scale = choose_scale(bandwidths, bytes_per_s, 0.5e-4);
    snprintf(out, size, "%.4g %s", bytes_per_s / scale->size, scale->unit);
    return with_point(out);
}

char *format_count(char *out, size_t size, int64_t count)
{
    char digits[24], grouped[32];
    const int length = snprintf(digits, sizeof(digits), "%" PRId64, count);
    const int first = count < 0 ? 1 : 0;
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0)
            grouped[used++] = ',';
        grouped[used++] = digits[i];
    }
    grouped[used] = '\0';
    snprintf(out, size, "%s", grouped);
    return out;
}

static const struct scale *scales_of(enum dimension dimension)
{
    static const struct scale plain[] = {{1, ""}, {0, NULL}};
    switch (dimension) {
    case DIM_NONE:
        return plain;
    case DIM_BYTES:
        return decimal_bytes;
    case DIM_BANDWIDTH:
        return bandwidths;
    case DIM_TIME:
        return time_scales;
    case DIM_FLOP_RATE:
        return flop_rates;
    case DIM_FREQUENCY:
        return frequencies;
    case DIM_POWER:
        return powers;
    case DIM_TOKENS:
        return token_scales;
    }
    BUG("dimension %d", (int)dimension);
}

/* `value` in `scale` with the fewest digits that read back as `value`; false: none do. */
static bool format_exactly(char *out, size_t size, double value, enum dimension dimension,
                           const struct scale *scale)
{
    /* 15 digits always survive text → double → text, 17 tell all doubles apart. */
    for (int digits = 15; digits <= 17; digits++) {
        double again = 0;
        snprintf(out, size, "%.*g%s%s", digits, value / scale->size, *scale->unit ? " " : "",
                 scale->unit);
        with_point(out);
        if (units_parse(out, dimension, &again, NULL) == UNIT_OK && again == value)
            return true;
    }
    return false;
}

char *format_quantity(char *out, size_t size, double value, enum dimension dimension)
{
    const struct scale *scales = scales_of(dimension);
    if (dimension == DIM_BYTES && fabs(value) >= 0x1p10) {
        /* 80 GiB is 85.89934592 GB: binary where it is a whole number. */
        for (const struct scale *binary = binary_bytes; binary->size > 1; binary++) {
            if (fmod(value, binary->size) == 0 && fmod(value, 1e6) != 0 &&
                format_exactly(out, size, value, dimension, binary))
                return out;
        }
    }
    const struct scale *scale = choose_scale(scales, value, 0);
    if (value == 0 || !format_exactly(out, size, value, dimension, scale)) {
        /* Dividing by the scale rounded; the unit of size 1 never does. */
        while (scale->size != 1)
            scale += scale->size > 1 ? 1 : -1;
        if (!format_exactly(out, size, value, dimension, scale))
            BUG("no text for %.17g", value);
    }
    return out;
}
