/* study/sweep_axis.c: see sweep_axis.h. */
#include "study/sweep_axis.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"

/* Relative: what decimal steps and ratios of decimals lose in binary. */
static const double rounding_slack = 1e-9;

/* A piece of an axis' text, and where it stands. */
struct piece {
    const char *text;
    struct place place;
};

static const char blanks[] = " \t\r\n";
static const char name_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

static int32_t characters(const char *text, size_t length)
{
    int32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* text[from, to) without blanks around it; the column moves along. */
static struct piece cut(struct arena *arena, const struct piece *whole, size_t from, size_t to)
{
    while (from < to && strchr(blanks, whole->text[from]) != NULL)
        from++;
    while (to > from && strchr(blanks, whole->text[to - 1]) != NULL)
        to--;
    struct piece piece = {.text = arena_strndup(arena, whole->text + from, to - from),
                          .place = whole->place};
    if (piece.place.line > 0) {
        piece.place.column += characters(whole->text, from);
        piece.place.length = characters(piece.text, to - from);
        piece.place.length += piece.place.length == 0;
    }
    return piece;
}

/* Where the item at `from` ends: the next comma outside brackets and quotes, or the end. `is_open`:
   a bracket or a quote is not closed, or closed twice. */
static size_t item_end(const char *text, size_t from, bool *is_open)
{
    int32_t depth = 0;
    char quote = '\0';
    size_t at = from;
    for (; text[at] != '\0'; at++) {
        const char c = text[at];
        if (quote != '\0') {
            if (quote == '"' && c == '\\' && text[at + 1] != '\0')
                at++;
            else if (c == quote)
                quote = '\0';
            continue;
        }
        if (c == ',' && depth == 0)
            break;
        if ((c == '"' || c == '\'') && (at == from || strchr("[{(,: ", text[at - 1]) != NULL))
            quote = c;
        depth += strchr("[{(", c) != NULL;
        depth -= strchr("]})", c) != NULL;
        if (depth < 0)
            break;
    }
    *is_open = depth != 0 || quote != '\0';
    return depth < 0 ? at + strlen(text + at) : at;
}

static enum status wrong(struct diag *diag, struct place place, const char *hint, const char *what,
                         const char *text)
{
    diag_add(diag, DIAG_ERROR, place, hint, "%s '%.80s'", what, text);
    return STATUS_INPUT;
}

/* ---- functions ---------------------------------------------------------------------------- */

struct end { /* 25Gbps */
    double value;
    const char *unit;
    bool is_whole; /* digits alone */
};

struct call {
    struct arena *arena;
    struct sweep_axis *axis;
    struct diag *diag;
    struct piece whole; /* "log2(25Gbps, 800Gbps)" */
    const struct piece *arguments;
    int32_t argument_count;
};

static size_t number_length(const char *text)
{
    static const char digits[] = "0123456789";
    size_t at = strspn(text, "+-") > 0 ? 1 : 0;
    at += strspn(text + at, digits);
    if (text[at] == '.')
        at += 1 + strspn(text + at + 1, digits);
    if (text[at] == 'e' || text[at] == 'E') {
        const size_t sign = text[at + 1] == '+' || text[at + 1] == '-' ? 1 : 0;
        const size_t exponent = strspn(text + at + 1 + sign, digits);
        if (exponent > 0)
            at += 1 + sign + exponent;
    }
    return at;
}

static enum status read_end(const struct call *call, int32_t at, struct end *end)
{
    const struct piece *piece = &call->arguments[at];
    const size_t length = number_length(piece->text);
    const char *number = arena_strndup(call->arena, piece->text, length);
    *end = (struct end){.unit = piece->text + length};
    end->unit += strspn(end->unit, blanks);
    end->is_whole = end->unit[0] == '\0' && strspn(number, "+-0123456789") == length;
    if (text_to_double(number, &end->value))
        return STATUS_OK;
    return wrong(call->diag, piece->place, "a number, with its unit where it has one, as 25Gbps",
                 "not a number:", piece->text);
}

/* The same quantity in the unit of `other`. */
static enum status convert(const struct call *call, int32_t at, const struct end *other,
                           struct end *end)
{
    if (strcmp(end->unit, other->unit) == 0)
        return STATUS_OK;
    const char *one = arena_printf(call->arena, "1%s", other->unit);
    for (int dimension = DIM_BYTES; dimension <= DIM_POWER; dimension++) {
        double unit = 0;
        double value = 0;
        if (units_parse(one, (enum dimension)dimension, &unit, NULL) != UNIT_OK ||
            units_parse(call->arguments[at].text, (enum dimension)dimension, &value, NULL) !=
                UNIT_OK)
            continue;
        end->value = value / unit;
        end->unit = other->unit;
        return STATUS_OK;
    }
    return wrong(call->diag, call->arguments[at].place,
                 arena_printf(call->arena, "all in one unit, as %s", call->arguments[0].text),
                 "units do not go together in", call->whole.text);
}

static void push_text(const struct call *call, const char *text)
{
    *ARENA_PUSH(call->arena, &call->axis->values) = text;
}

/* Twelve digits: 0.1 + 2 x 0.1 is written 0.3. */
static void push(const struct call *call, double value, const char *unit)
{
    push_text(call, arena_printf(call->arena, "%.12g%s", value, unit));
}

static enum status refuse(const struct call *call, const char *hint)
{
    return wrong(call->diag, call->whole.place, hint, "no values in", call->whole.text);
}

static enum status too_many(const struct call *call)
{
    return wrong(call->diag, call->whole.place,
                 arena_printf(call->arena, "at most %d", (int)AXIS_MAX_VALUES),
                 "too many values in", call->whole.text);
}

static enum status play_range(const struct call *call)
{
    struct end ends[3];
    for (int32_t i = 0; i < 3; i++) {
        enum status status = read_end(call, i, &ends[i]);
        if (status == STATUS_OK)
            status = convert(call, i, &ends[0], &ends[i]);
        if (status != STATUS_OK)
            return status;
    }
    const double steps = (ends[1].value - ends[0].value) / ends[2].value;
    if (!(steps > 0) || isinf(steps))
        return refuse(call, "range(a, b, step): from a towards b, which is left out");
    if (steps > AXIS_MAX_VALUES)
        return too_many(call);
    for (int32_t i = 0; (double)i < steps * (1 - rounding_slack); i++)
        push(call, ends[0].value + (double)i * ends[2].value, ends[0].unit);
    return STATUS_OK;
}

static enum status read_ends(const struct call *call, struct end *a, struct end *b)
{
    enum status status = read_end(call, 0, a);
    if (status == STATUS_OK)
        status = read_end(call, 1, b);
    if (status == STATUS_OK)
        status = convert(call, 1, a, b);
    if (status == STATUS_OK && !(a->value > 0 && b->value > 0))
        status = refuse(call, "both ends above 0");
    if (status == STATUS_OK && !(b->value / a->value > 0 && b->value / a->value <= DBL_MAX))
        status = refuse(call, "ends that are not as far apart as the smallest and largest numbers");
    return status;
}

enum status axis_span_read(struct arena *arena, const char *text, struct place place,
                           struct axis_span *span, struct diag *diag)
{
    enum { ENDS_MAX = 3 };
    struct piece pieces[ENDS_MAX] = {{0}};
    struct end ends[ENDS_MAX] = {{0}};
    struct call call = {.arena = arena, .diag = diag, .whole = {text, place}, .arguments = pieces};
    const size_t length = strlen(text);
    for (size_t at = 0; at <= length; call.argument_count++) {
        const size_t end = at + strcspn(text + at, ":");
        if (call.argument_count == ENDS_MAX)
            return wrong(diag, place, "LOW:HIGH or LOW:HIGH:STEP", "too many ':' in", text);
        pieces[call.argument_count] = cut(arena, &call.whole, at, end);
        at = end + 1;
    }
    bool is_whole = true;
    for (int32_t i = 0; i < call.argument_count; i++) {
        enum status status = read_end(&call, i, &ends[i]);
        is_whole = is_whole && ends[i].is_whole;
        if (status == STATUS_OK)
            status = convert(&call, i, &ends[0], &ends[i]);
        if (status != STATUS_OK)
            return status;
    }
    *span = (struct axis_span){.low = ends[0].value,
                               .high = ends[1].value,
                               .step = ends[2].value,
                               .unit = ends[0].unit,
                               .low_text = pieces[0].text,
                               .high_text = pieces[1].text,
                               .has_step = call.argument_count == ENDS_MAX,
                               .is_whole = is_whole};
    return STATUS_OK;
}

double axis_span_steps(const struct axis_span *span)
{
    return floor((span->high - span->low) / span->step * (1 + rounding_slack));
}

static enum status play_log2(const struct call *call)
{
    struct end a;
    struct end b;
    const enum status status = read_ends(call, &a, &b);
    if (status != STATUS_OK)
        return status;
    if (b.value < a.value)
        return refuse(call, "log2(a, b): a, 2a, 4a, … up to b");
    const double doublings = round(log2(b.value / a.value));
    const double last = ldexp(a.value, (int)doublings);
    if (fabs(last - b.value) > rounding_slack * b.value)
        return wrong(call->diag, call->arguments[1].place,
                     arena_printf(call->arena, "for example %.12g%s; geom(a, b, n) has any ends",
                                  last, a.unit),
                     "the end is not the start doubled some times:", call->whole.text);
    for (int i = 0; i <= (int)doublings; i++)
        push(call, ldexp(a.value, i), a.unit);
    return STATUS_OK;
}

static enum status play_geom(const struct call *call)
{
    struct end a;
    struct end b;
    int64_t count = 0;
    const enum status status = read_ends(call, &a, &b);
    if (status != STATUS_OK)
        return status;
    if (!text_to_int64(call->arguments[2].text, &count) || count < 2)
        return wrong(call->diag, call->arguments[2].place, "geom(a, b, n): n values, at least 2",
                     "not a number of values:", call->arguments[2].text);
    if (count > AXIS_MAX_VALUES)
        return too_many(call);
    const bool is_whole = a.is_whole && b.is_whole;
    double previous = (double)NAN;
    for (int64_t i = 0; i < count; i++) {
        double value = a.value * pow(b.value / a.value, (double)i / (double)(count - 1));
        if (i == 0 || i == count - 1)
            value = i == 0 ? a.value : b.value;
        if (is_whole)
            value = round(value);
        if (value < previous || value > previous || i == 0)
            push(call, value, a.unit);
        previous = value;
    }
    return STATUS_OK;
}

static const struct function {
    const char *name;
    int32_t argument_count;
    enum status (*play)(const struct call *call);
    const char *form;
} functions[] = {
    {"range", 3, play_range, "range(a, b, step)"},
    {"log2", 2, play_log2, "log2(a, b)"},
    {"geom", 3, play_geom, "geom(a, b, n)"},
};
enum { FUNCTION_COUNT = sizeof(functions) / sizeof(functions[0]), ARGUMENTS_MAX = 3 };

/* Length of NAME in "NAME(…)", 0: it is no call. */
static size_t name_length(const char *text)
{
    const size_t length = strspn(text, name_characters);
    const size_t whole = strlen(text);
    return text[length] == '(' && text[whole - 1] == ')' ? length : 0;
}

static enum status play_call(struct call *call, size_t length)
{
    struct piece arguments[ARGUMENTS_MAX];
    const char *names[FUNCTION_COUNT + 1] = {NULL};
    const char *name = arena_strndup(call->arena, call->whole.text, length);
    const struct function *function = NULL;
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        names[i] = functions[i].name;
        if (text_equal(functions[i].name, name))
            function = &functions[i];
    }
    if (function == NULL) {
        const char *near = nearest_name(name, names);
        return wrong(call->diag, call->whole.place,
                     near != NULL ? arena_printf(call->arena, "did you mean '%s'?", near)
                                  : "accepted: range(a, b, step), log2(a, b), geom(a, b, n)",
                     "unknown function in", call->whole.text);
    }
    const size_t end = strlen(call->whole.text) - 1;
    for (size_t at = length + 1; at <= end;) {
        bool is_open = false;
        size_t comma = item_end(call->whole.text, at, &is_open);
        comma = comma < end ? comma : end;
        if (call->argument_count < ARGUMENTS_MAX)
            arguments[call->argument_count] = cut(call->arena, &call->whole, at, comma);
        call->argument_count++;
        at = comma + 1;
    }
    if (call->argument_count != function->argument_count)
        return wrong(call->diag, call->whole.place, function->form, "wrong number of arguments in",
                     call->whole.text);
    call->arguments = arguments;
    return function->play(call);
}

/* ---- lists -------------------------------------------------------------------------------- */

static enum status add_piece(struct arena *arena, struct sweep_axis *axis,
                             const struct piece *piece, struct diag *diag)
{
    const size_t length = name_length(piece->text);
    const size_t name = strspn(piece->text, name_characters);
    if (axis->values.count >= AXIS_MAX_VALUES)
        return wrong(diag, piece->place, NULL, "too many values for", axis->key);
    if (length == 0 && name > 0 && piece->text[name] == '(')
        return wrong(diag, piece->place, "in a YAML list a function goes in quotes",
                     "a bracket or quote is not closed in", piece->text);
    if (length > 0) {
        struct call call = {.arena = arena, .axis = axis, .diag = diag, .whole = *piece};
        return play_call(&call, length);
    }
    *ARENA_PUSH(arena, &axis->values) = piece->text;
    return STATUS_OK;
}

bool axis_is_swept(const char *text)
{
    bool is_open = false;
    text += strspn(text, blanks);
    const size_t name = strspn(text, name_characters);
    return text[item_end(text, 0, &is_open)] == ',' || (name > 0 && text[name] == '(');
}

enum status axis_add_item(struct arena *arena, struct sweep_axis *axis, const char *text,
                          struct place place, struct diag *diag)
{
    const struct piece whole = {text, place};
    const struct piece piece = cut(arena, &whole, 0, strlen(text));
    return add_piece(arena, axis, &piece, diag);
}

enum status axis_add(struct arena *arena, struct sweep_axis *axis, const char *text,
                     struct place place, struct diag *diag)
{
    const struct piece whole = {text, place};
    const size_t length = strlen(text);
    enum status status = STATUS_OK;
    for (size_t at = 0; at <= length;) {
        bool is_open = false;
        const size_t end = item_end(text, at, &is_open);
        const struct piece piece = cut(arena, &whole, at, end);
        enum status one = STATUS_OK;
        if (is_open)
            one = wrong(diag, piece.place, "close it; a text that holds one goes in quotes",
                        "a bracket or quote is not closed in", piece.text);
        else if (piece.text[0] == '\0' && length > 0)
            one = wrong(diag, piece.place, "values are separated by one comma: v1,v2",
                        "an empty value for", axis->key);
        else
            one = add_piece(arena, axis, &piece, diag);
        status = one != STATUS_OK ? one : status;
        at = end + 1;
    }
    return status;
}
