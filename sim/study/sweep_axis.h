/*
 * study/sweep_axis.h: the values of a swept key, from the words a user writes.
 *
 *   axis      item , item , …            commas inside [] {} () and quotes belong to the item
 *   item      range(a, b, step)          a, a + step, … before b (b itself is left out)
 *             log2(a, b)                 a, 2a, 4a, … up to b, which is one of them
 *             geom(a, b, n)              n values from a to b, each the same factor apart
 *             anything else              one value, as YAML in flow form
 *
 * Ends carry their unit: log2(25Gbps, 800Gbps) is 25Gbps, 50Gbps, …, 800Gbps; where the units
 * differ, the values are in that of `a`: log2(512MiB, 2GiB) is 512MiB, 1024MiB, 2048MiB. geom with
 * two whole numbers without unit gives whole numbers (geom(1, 100, 4) is 1, 5, 22, 100), one that
 * repeats once; geom(1.0, 100, 4) does not round. `log2(1, 8), 12` is 1, 2, 4, 8, 12.
 *
 * Errors have a place; what a value means is for the field that it is bound to.
 */
#ifndef FSDPSIM_STUDY_SWEEP_AXIS_H
#define FSDPSIM_STUDY_SWEEP_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

enum { AXIS_MAX_VALUES = 100000 };

struct axis_span { /* low:high, low:high:step */
    double low, high, step;
    const char *unit;                 /* of all three: that of `low`, "" */
    const char *low_text, *high_text; /* as they were written */
    bool has_step, is_whole;          /* whole: digits alone */
};

struct sweep_axis {
    const char *key;
    struct place place; /* of the values */
    struct {
        const char **items;
        int32_t count, capacity;
    } values;
    struct axis_span span; /* low:high (sweep_knobs.h) */
    bool has_span;
    double *numbers; /* of Sobol's points, by point: in the unit of the span, or the place in the
                        list */
};

/* Reads "25Gbps:800Gbps" or "1024:8192:1024"; whether there is anything between is not judged. */
MUST_CHECK enum status axis_span_read(struct arena *arena, const char *text, struct place place,
                                      struct axis_span *span, struct diag *diag);

/* Whole steps from low to high: what decimals lose in binary does not count. */
double axis_span_steps(const struct axis_span *span);

/* Whether a text is more than one plain value: a list, or a function. */
bool axis_is_swept(const char *text);

/* Adds the values of `text`, which stands at `place` (of its first character). */
MUST_CHECK enum status axis_add(struct arena *arena, struct sweep_axis *axis, const char *text,
                                struct place place, struct diag *diag);
/* One item, whatever commas it holds. */
MUST_CHECK enum status axis_add_item(struct arena *arena, struct sweep_axis *axis, const char *text,
                                     struct place place, struct diag *diag);

#endif
