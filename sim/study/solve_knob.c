/* study/solve_knob.c: see solve_knob.h. */
#include "study/solve_knob.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"

/* From a range that spans a factor of ten on, points are spaced by factors. */
static const double logarithmic_ratio = 10;

static enum status refuse(struct diag *diag, struct place place, const char *hint, const char *what,
                          const char *text)
{
    diag_add(diag, DIAG_ERROR, place, hint, "%s '%.80s'", what, text);
    return STATUS_INPUT;
}

static const char accepted[] =
    "accepted: KEY=LOW:HIGH, KEY=LOW:HIGH:STEP, or a list: v1,v2, range(a,b,step), log2(a,b), "
    "geom(a,b,n)";

/* Whether each value is a larger number than the one before, all in one unit. */
static bool values_grow(const struct sweep_axis *axis)
{
    double last = 0;
    const char *unit = NULL;
    for (int32_t i = 0; i < axis->values.count; i++) {
        double value = 0;
        const char *text = axis->values.items[i];
        const size_t length = strspn(text, "+-.0123456789eE");
        char number[40];
        if (length == 0 || length >= sizeof(number) || (i > 0 && strcmp(unit, text + length) != 0))
            return false;
        memcpy(number, text, length);
        number[length] = '\0';
        if (!text_to_double(number, &value) || (i > 0 && !(value > last)))
            return false;
        last = value;
        unit = text + length;
    }
    return true;
}

static enum status parse_list(struct knob *knob, struct arena *arena, const char *text,
                              struct place place, struct diag *diag)
{
    knob->kind = KNOB_LIST;
    knob->axis = (struct sweep_axis){.key = knob->key, .place = place};
    const enum status status = axis_add(arena, &knob->axis, text, place, diag);
    if (status != STATUS_OK)
        return status;
    knob->count = knob->axis.values.count;
    if (knob->count < 2)
        return refuse(diag, place, accepted, "only one value in", text);
    knob->is_ordered = values_grow(&knob->axis);
    return STATUS_OK;
}

static enum status parse_span(struct knob *knob, struct arena *arena, const char *text,
                              struct place place, struct diag *diag)
{
    struct axis_span *span = &knob->span;
    const enum status status = axis_span_read(arena, text, place, span, diag);
    if (status != STATUS_OK)
        return status;
    if (!(span->low < span->high))
        return refuse(diag, place, "the smaller end first, as 1:128", "nothing between the ends of",
                      text);
    if (span->has_step && !(span->step > 0))
        return refuse(diag, place, "a step above 0", "no step in", text);
    knob->is_ordered = true;
    knob->is_logarithmic = span->low > 0 && span->high / span->low >= logarithmic_ratio;
    knob->kind = span->is_whole || span->has_step ? KNOB_STEPS : KNOB_CONTINUOUS;
    if (knob->kind == KNOB_CONTINUOUS)
        return STATUS_OK;
    if (!span->has_step)
        span->step = 1;
    const double steps = axis_span_steps(span);
    if (steps < 1)
        return refuse(diag, place, "a smaller step", "only one value in", text);
    if (steps > (double)INT32_MAX)
        return refuse(diag, place, "a larger step: KEY=LOW:HIGH:STEP", "too many values in", text);
    knob->count = (int64_t)steps + 1;
    return STATUS_OK;
}

enum status knob_parse(struct knob *knob, struct arena *arena, const char *text, struct diag *diag)
{
    struct source *source = ARENA_NEW(arena, struct source);
    *source = (struct source){"<command line>", text, strlen(text)};
    const char *equals = strchr(text, '=');
    *knob = (struct knob){0};
    if (equals == NULL || equals == text) {
        const struct place place = {source, 1, 1, 1};
        return refuse(diag, place, "--vary nodes=1:128", "no key and values in", text);
    }
    const size_t start = (size_t)(equals - text);
    const char *values = equals + 1;
    int32_t length = (int32_t)strlen(values);
    length += length == 0;
    const struct place place = {source, 1, (int32_t)start + 2, length};
    knob->key = arena_strndup(arena, text, start);
    if (axis_is_swept(values))
        return parse_list(knob, arena, values, (struct place){source, 1, (int32_t)start + 2, 1},
                          diag);
    if (strchr(values, ':') == NULL)
        return refuse(diag, place, accepted, "only one value in", values);
    return parse_span(knob, arena, values, place, diag);
}

double knob_low(const struct knob *knob)
{
    return knob->kind == KNOB_CONTINUOUS ? knob->span.low : 0;
}

double knob_high(const struct knob *knob)
{
    return knob->kind == KNOB_CONTINUOUS ? knob->span.high : (double)(knob->count - 1);
}

/* As many significant digits, without zeros at the end and without an exponent. */
static const char *rounded_text(struct arena *arena, double value, int digits)
{
    enum { DECIMALS_MAX = 17 };
    const double size = floor(log10(fabs(value)));
    int decimals = isfinite(size) ? digits - 1 - (int)size : 0;
    decimals = decimals < 0 ? 0 : decimals;
    decimals = decimals > DECIMALS_MAX ? DECIMALS_MAX : decimals;
    char *text = arena_printf(arena, "%.*f", decimals, value);
    size_t length = strlen(text);
    while (decimals > 0 && text[length - 1] == '0')
        text[--length] = '\0';
    if (decimals > 0 && text[length - 1] == '.')
        text[--length] = '\0';
    return text;
}

static const char *continuous_value(const struct knob *knob, struct arena *arena, int digits,
                                    double *at)
{
    const struct axis_span *span = &knob->span;
    if (*at <= span->low) {
        *at = span->low;
        return span->low_text;
    }
    if (*at >= span->high) {
        *at = span->high;
        return span->high_text;
    }
    const char *number = rounded_text(arena, *at, digits);
    double value = *at;
    if (text_to_double(number, &value))
        *at = value;
    return arena_printf(arena, "%s%s", number, span->unit);
}

const char *knob_value(const struct knob *knob, struct arena *arena, int digits, double *at)
{
    if (knob->kind == KNOB_CONTINUOUS)
        return continuous_value(knob, arena, digits, at);
    double index = round(*at);
    index = index < 0 ? 0 : index;
    index = index > knob_high(knob) ? knob_high(knob) : index;
    *at = index;
    if (knob->kind == KNOB_LIST)
        return knob->axis.values.items[(int32_t)index];
    return arena_printf(arena, "%.12g%s", knob->span.low + index * knob->span.step,
                        knob->span.unit);
}

const char *knob_low_text(const struct knob *knob)
{
    return knob->kind == KNOB_LIST ? knob->axis.values.items[0] : knob->span.low_text;
}

const char *knob_high_text(const struct knob *knob)
{
    return knob->kind == KNOB_LIST ? knob->axis.values.items[knob->axis.values.count - 1]
                                   : knob->span.high_text;
}
