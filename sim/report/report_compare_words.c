/*
 * report/report_compare_words.c: a comparison in one paragraph; see report_compare.h.
 *
 * Sentences follow from the numbers alone: what was changed; what it did to the step; in which
 * category, phase and unit; which collective, where communication is what changed most; what bounds
 * the step; what a GPU and the whole job get done, where their number or the batch differs; memory,
 * and whether it fits.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "report/report_compare.h"

/* Below it a change is called none: half of the last digit that is shown. */
static const double same_share = 0.0005;
/* Of the whole difference: parts that are less are not named. */
static const double named_share = 0.05;
static const double most_share = 0.6;
/* From here on, "3.2 times" says more than "220 % more". */
static const double times_ratio = 2;

struct teller {
    const struct compare *compare;
    struct arena *arena;
    struct strbuf text;
};

static const char *seconds_text(struct arena *arena, double seconds)
{
    char text[48];
    return arena_strdup(arena, format_seconds(text, sizeof(text), seconds));
}

/* "+21.9 s" */
static const char *signed_seconds(struct arena *arena, double seconds)
{
    return arena_printf(arena, "%s%s", seconds < 0 ? "-" : "+", seconds_text(arena, fabs(seconds)));
}

static const char *bytes_text(struct arena *arena, double bytes)
{
    if (fabs(bytes) >= 0x1p30)
        return arena_printf(arena, "%.2f GiB", bytes * 0x1p-30);
    return arena_printf(arena, "%.1f MiB", bytes * 0x1p-20);
}

static const char *signed_bytes(struct arena *arena, double bytes)
{
    return arena_printf(arena, "%s%s", bytes < 0 ? "-" : "+", bytes_text(arena, fabs(bytes)));
}

static bool is_same(double a, double b)
{
    return fabs(b - a) <= same_share * fmax(fabs(a), fabs(b));
}

/* B against A: "2.3 % less than the", "3.4 times the" */
static const char *against(struct arena *arena, double a, double b)
{
    if (!(a > 0))
        return "against";
    if (b / a >= times_ratio)
        return arena_printf(arena, "%.3g times the", b / a);
    if (b / a > 1 / times_ratio)
        return arena_printf(arena, "%.1f %% %s than the", 100 * fabs(b / a - 1),
                            b > a ? "more" : "less");
    return arena_printf(arena, "%.3g %% of the", 100 * b / a);
}

/* ---- what was changed --------------------------------------------------------------------- */

static int32_t count_settings(const struct compare *compare, bool follows)
{
    int32_t count = 0;
    for (int32_t i = 0; i < compare->settings.count; i++) {
        const struct compare_setting *setting = &compare->settings.items[i];
        count += !setting->is_inside && setting->follows == follows;
    }
    return count;
}

/* "nodes (4 instead of 1), …"; how many were named. */
static int32_t name_settings(struct teller *teller)
{
    enum { NAMED_MAX = 3 };
    const struct compare *compare = teller->compare;
    int32_t named = 0;
    for (int32_t i = 0; i < compare->settings.count && named < NAMED_MAX; i++) {
        const struct compare_setting *setting = &compare->settings.items[i];
        if (setting->is_inside || setting->follows)
            continue;
        strbuf_printf(&teller->text, "%s%s (", named > 0 ? ", " : "",
                      text_shown(teller->arena, setting->key));
        if (setting->a != NULL && setting->b != NULL)
            strbuf_printf(&teller->text, "%s instead of %s)", text_shown(teller->arena, setting->b),
                          text_shown(teller->arena, setting->a));
        else if (setting->b != NULL)
            strbuf_printf(&teller->text, "%s, not set in A)",
                          text_shown(teller->arena, setting->b));
        else
            strbuf_printf(&teller->text, "%s in A, not set in B)",
                          text_shown(teller->arena, setting->a));
        named++;
    }
    return named;
}

static const char *nothing_differs(const struct compare *compare)
{
    if (compare->is_same_config)
        return "A and B are the same configuration.";
    return compare->has_settings ? "No setting differs."
                                 : "Nothing that is stored of the configurations differs.";
}

static void tell_settings(struct teller *teller)
{
    struct strbuf *text = &teller->text;
    const int32_t count = count_settings(teller->compare, false);
    const int32_t following = count_settings(teller->compare, true);
    if (count + following == 0) {
        strbuf_add(text, nothing_differs(teller->compare));
        return;
    }
    strbuf_add(text, "B differs from A in ");
    const int32_t named = name_settings(teller);
    if (count > named)
        strbuf_printf(text, " and %" PRId32 " more setting%s", count - named,
                      count - named == 1 ? "" : "s");
    if (following > 0)
        strbuf_printf(text, "%s%" PRId32 " that follow%s from others", count > 0 ? ", and " : "",
                      following, following == 1 ? "s" : "");
    strbuf_add(text, ".");
}

static void tell_what_is_missing(struct teller *teller)
{
    const struct compare *compare = teller->compare;
    if (!compare->has_settings)
        strbuf_add(&teller->text, " Not all settings are stored with these runs.");
    if (!compare->is_same_model)
        strbuf_add(&teller->text,
                   " The models are not the same, so units are not compared with each other.");
    else if (!compare->has_units)
        strbuf_add(&teller->text, " A stored run without units can be compared by category only "
                                  "(sweep --detail stores them).");
}

/* ---- time --------------------------------------------------------------------------------- */

/* " and " before the last, ", " before others: the caller knows how many there are. */
static const char *separator(int32_t index, int32_t count)
{
    return index == 0 ? "" : index + 1 == count ? " and " : ", ";
}

/* Parts of at least a share of the difference, or of the largest part where the whole is less. */
static int32_t named_parts(const struct compare_parts *parts, double whole)
{
    double least = named_share * fabs(whole);
    int32_t count = 0;
    if (parts->count > 0)
        least = fmax(least, named_share * fabs(parts->items[0].b - parts->items[0].a));
    while (count < parts->count && fabs(parts->items[count].b - parts->items[count].a) > 0 &&
           fabs(parts->items[count].b - parts->items[count].a) >= least)
        count++;
    return count;
}

static void tell_categories(struct teller *teller, double change)
{
    const struct compare_parts *parts = &teller->compare->time;
    const int32_t count = named_parts(parts, change);
    if (count == 0)
        return;
    strbuf_add(&teller->text, ": ");
    for (int32_t i = 0; i < count; i++) {
        const struct compare_part *part = &parts->items[i];
        strbuf_printf(&teller->text, "%s%s %s", separator(i, count), part->name,
                      signed_seconds(teller->arena, part->b - part->a));
    }
}

static void tell_step(struct teller *teller)
{
    const double a = teller->compare->a->step_time_s;
    const double b = teller->compare->b->step_time_s;
    const char *step_a = seconds_text(teller->arena, a);
    const char *step_b = seconds_text(teller->arena, b);
    struct strbuf *text = &teller->text;
    if (!(b > a || b < a)) {
        strbuf_printf(text, " A step takes %s in both", step_a);
    } else if (is_same(a, b)) {
        strbuf_printf(text, " A step takes as good as the same time: %s in A, %s %s in B", step_a,
                      seconds_text(teller->arena, fabs(b - a)), b > a ? "more" : "less");
    } else {
        strbuf_printf(text, " A step of B takes %s, %s %s of A (%s)", step_b,
                      against(teller->arena, a, b), step_a, signed_seconds(teller->arena, b - a));
    }
    tell_categories(teller, b - a);
    strbuf_add(text, ".");
}

/* The phase that makes most of it. */
static void tell_phase(struct teller *teller)
{
    const struct compare_part *most = &teller->compare->phases.items[0];
    const double a = teller->compare->a->step_time_s;
    const double b = teller->compare->b->step_time_s;
    if (is_same(a, b) || !((most->b - most->a) / (b - a) >= most_share))
        return;
    strbuf_printf(&teller->text, " Most of it is in the %s (%s).", most->name,
                  signed_seconds(teller->arena, most->b - most->a));
}

static void tell_unit(struct teller *teller)
{
    const struct compare *compare = teller->compare;
    const struct compare_unit *unit = compare->units.count > 0 ? &compare->units.items[0] : NULL;
    const double change = unit != NULL ? unit->b_s - unit->a_s : 0;
    const double outside = compare->outside_b_s - compare->outside_a_s;
    struct strbuf *text = &teller->text;
    if (unit == NULL || !(fabs(change) > same_share * compare->a->step_time_s))
        return;
    if (unit->count > 1)
        strbuf_printf(text, " Of the units, %s to %s change most, %s each",
                      text_shown(teller->arena, unit->first), text_shown(teller->arena, unit->last),
                      signed_seconds(teller->arena, change / unit->count));
    else
        strbuf_printf(text, " Of the units, %s changes most, %s",
                      text_shown(teller->arena, unit->first),
                      signed_seconds(teller->arena, change));
    if (fabs(outside) > fabs(change))
        strbuf_printf(text, "; outside of them it is %s", signed_seconds(teller->arena, outside));
    strbuf_add(text, ".");
}

/* Where exposed communication is what changed most. */
static void tell_collective(struct teller *teller)
{
    const struct compare *compare = teller->compare;
    if (compare->collectives.count == 0 || compare->time.count == 0 ||
        !text_equal(compare->time.items[0].name, "exposed communication") ||
        is_same(compare->time.items[0].a, compare->time.items[0].b))
        return;
    const struct compare_collective *one = &compare->collectives.items[0];
    if (is_same(one->alone_a_s, one->alone_b_s) && one->count_a == one->count_b)
        return;
    strbuf_printf(&teller->text,
                  " The collective that changes most is the %s over %s: %" PRId64
                  " a step, alone %s in all in A, %" PRId64 " and %s in B.",
                  one->op, text_shown(teller->arena, one->communicator), one->count_a,
                  seconds_text(teller->arena, one->alone_a_s), one->count_b,
                  seconds_text(teller->arena, one->alone_b_s));
}

static void tell_bottleneck(struct teller *teller)
{
    const char *a = teller->compare->a->bottleneck;
    const char *b = teller->compare->b->bottleneck;
    if (a == NULL || b == NULL)
        return;
    if (text_equal(a, b))
        strbuf_printf(&teller->text, " Both are bound by %s.", text_shown(teller->arena, a));
    else
        strbuf_printf(&teller->text, " A is bound by %s, B by %s.", text_shown(teller->arena, a),
                      text_shown(teller->arena, b));
}

/* ---- work --------------------------------------------------------------------------------- */

static const char *count_text(struct arena *arena, int64_t count)
{
    char text[32];
    return arena_strdup(arena, format_count(text, sizeof(text), count));
}

static const char *rate_text(struct arena *arena, double rate)
{
    return fabs(rate) < 1000 ? arena_printf(arena, "%.1f", rate) : count_text(arena, llround(rate));
}

static void tell_rate(struct teller *teller, const char *who, double a, double b)
{
    struct arena *arena = teller->arena;
    if (is_same(a, b))
        strbuf_printf(&teller->text, "%s as many, %s tokens/s", who, rate_text(arena, b));
    else
        strbuf_printf(&teller->text, "%s %s tokens/s, %s %s", who, rate_text(arena, b),
                      against(arena, a, b), rate_text(arena, a));
}

/* Where steps are not of the same work, or not done by as many. */
static void tell_work(struct teller *teller)
{
    const struct outcome *a = teller->compare->a;
    const struct outcome *b = teller->compare->b;
    struct strbuf *text = &teller->text;
    if (a->n_gpus == b->n_gpus && a->tokens_per_step == b->tokens_per_step)
        return;
    strbuf_add(text, " The steps are not alike:");
    if (a->n_gpus != b->n_gpus)
        strbuf_printf(text, " %" PRId64 " GPUs instead of %" PRId64, b->n_gpus, a->n_gpus);
    if (a->tokens_per_step != b->tokens_per_step)
        strbuf_printf(text, "%s %s tokens a step instead of %s", a->n_gpus != b->n_gpus ? "," : "",
                      count_text(teller->arena, b->tokens_per_step),
                      count_text(teller->arena, a->tokens_per_step));
    if (isnan(a->tokens_per_s) || isnan(b->tokens_per_s)) {
        strbuf_add(text, ".");
        return;
    }
    tell_rate(teller, "; a GPU of B does", a->tokens_per_s_per_gpu, b->tokens_per_s_per_gpu);
    tell_rate(teller, ", the whole job", a->tokens_per_s, b->tokens_per_s);
    strbuf_add(text, ".");
}

/* ---- memory ------------------------------------------------------------------------------- */

static const char *category_text(struct arena *arena, const char *name)
{
    char *text = arena_strdup(arena, name);
    for (char *line = strchr(text, '_'); line != NULL; line = strchr(line, '_'))
        *line = ' ';
    return text;
}

static void tell_memory(struct teller *teller)
{
    enum { NAMED_MAX = 4 };
    const struct compare *compare = teller->compare;
    const double a = (double)compare->a->peak_device_bytes;
    const double b = (double)compare->b->peak_device_bytes;
    struct strbuf *text = &teller->text;
    const int32_t all = named_parts(&compare->memory, b - a);
    const int32_t count = all > NAMED_MAX ? NAMED_MAX : all;
    if (!(b > a || b < a))
        strbuf_printf(text, " A GPU needs %s at its peak in both", bytes_text(teller->arena, a));
    else
        strbuf_printf(text, " A GPU of B needs %s at its peak, %s than the %s of A",
                      bytes_text(teller->arena, b),
                      arena_printf(teller->arena, "%s %s", bytes_text(teller->arena, fabs(b - a)),
                                   b > a ? "more" : "less"),
                      bytes_text(teller->arena, a));
    for (int32_t i = 0; i < count; i++) {
        const struct compare_part *part = &compare->memory.items[i];
        strbuf_printf(text, "%s%s %s", i == 0 ? ": " : separator(i, count),
                      category_text(teller->arena, part->name),
                      signed_bytes(teller->arena, part->b - part->a));
    }
    strbuf_add(text, all > count ? ", among others." : ".");
}

static const char *room_text(struct arena *arena, const struct outcome *outcome)
{
    if (outcome->fits)
        return arena_printf(arena, "%s free",
                            bytes_text(arena, (double)(outcome->memory_capacity_bytes -
                                                       outcome->peak_device_bytes)));
    if (outcome->memory_over_bytes > 0)
        return arena_printf(arena, "%s too much",
                            bytes_text(arena, (double)outcome->memory_over_bytes));
    return "too much for the host's memory";
}

static void tell_fits(struct teller *teller)
{
    const struct outcome *a = teller->compare->a;
    const struct outcome *b = teller->compare->b;
    const char *room_a = room_text(teller->arena, a);
    const char *room_b = room_text(teller->arena, b);
    struct strbuf *text = &teller->text;
    if (a->fits && b->fits)
        strbuf_printf(text, " Both fit (%s in A, %s in B).", room_a, room_b);
    else if (a->fits)
        strbuf_printf(text, " B does not fit (%s); A does (%s).", room_b, room_a);
    else if (b->fits)
        strbuf_printf(text, " B fits (%s); A does not (%s).", room_b, room_a);
    else
        strbuf_printf(text, " Neither fits (%s in A, %s in B).", room_a, room_b);
}

const char *report_compare_words(const struct compare *compare, struct arena *arena)
{
    struct teller teller = {.compare = compare, .arena = arena};
    tell_settings(&teller);
    tell_what_is_missing(&teller);
    tell_step(&teller);
    tell_phase(&teller);
    tell_unit(&teller);
    tell_collective(&teller);
    tell_bottleneck(&teller);
    tell_work(&teller);
    tell_memory(&teller);
    tell_fits(&teller);
    const char *text = arena_strdup(arena, teller.text.text);
    strbuf_release(&teller.text);
    return text;
}
