/*
 * study/compare.h: where two outcomes differ: B minus A, by category, phase, unit and setting.
 *
 *   step     compute + exposed + idle        = forward + backward + optimizer
 *            = sum over units (forward + backward + exposed) + what is outside of units
 *   memory   the composition of the device peak adds up to it; the units of the active peak to that
 *
 * So the differences of each list add up to the whole difference, always. "Outside of units" is
 * what is left: the optimizer, copies, idle time, less what runs beside something else.
 *
 * Example: 1.214 s and 1.186 s: -28 ms, of which compute -29 ms, exposed +1 ms, idle 0.
 *
 * Parts are ordered by the size of their difference, the largest first. Units are matched by name
 * and put together where several in a row are alike on both sides; they are compared between equal
 * models only. Collectives are put together by operation and communicator: count, and count times
 * the time alone. Stored runs without units or composition (sweeps without --detail) are compared
 * by what is there.
 */
#ifndef FSDPSIM_STUDY_COMPARE_H
#define FSDPSIM_STUDY_COMPARE_H

#include "base/arena.h"
#include "run/outcome.h"

enum setting_from { /* where a value comes from */
                    FROM_NOWHERE,
                    FROM_FILE,         /* "my.yaml:6:8" */
                    FROM_COMMAND_LINE, /* "<command line>" */
                    FROM_DEFAULT,
                    FROM_OTHERS /* it follows from other values: "micro_batch x grad_accum x GPUs"
                                 */
};
enum setting_from setting_from(const char *origin);

struct compare_setting {
    const char *key;
    const char *a, *b;           /* values; NULL: not there */
    const char *from_a, *from_b; /* "my.yaml:6:8", "default"; NULL: not there */
    bool follows;                /* on both sides from other values */
    int32_t inside;              /* keys below it (`cluster` and all in it) that differ as well */
    bool is_inside;              /* it is one of those */
};

struct compare_part { /* seconds, or bytes */
    const char *name, *last;
    int32_t count; /* from `name` to `last`, alike on both sides; a, b: of all of them */
    double a, b;
    int32_t order; /* as it was found: for parts that differ by as much */
};

struct compare_parts {
    struct compare_part *items;
    int32_t count, capacity;
};

struct compare_unit { /* one, or several in a row that are alike */
    const char *first, *last;
    int32_t count;
    const struct outcome_unit *a, *b; /* of the first; NULL: not there */
    double a_s, b_s;                  /* of all of them: forward + backward + exposed */
    int32_t order;
};

struct compare_collective { /* of one operation on one communicator, per step */
    const char *op, *communicator;
    int64_t count_a, count_b;
    double alone_a_s, alone_b_s; /* of all of them, on an idle machine */
};

struct compare {
    const struct outcome *a, *b;
    struct {
        struct compare_setting *items;
        int32_t count, capacity;
    } settings;
    bool has_settings, has_units, has_composition; /* on both sides, and comparable */
    bool is_same_config, is_same_model;
    struct compare_parts time, phases, memory, memory_units;
    struct {
        struct compare_unit *items;
        int32_t count, capacity;
    } units;
    double outside_a_s, outside_b_s; /* of units */
    struct {
        struct compare_collective *items; /* the largest difference first */
        int32_t count, capacity;
    } collectives;
};

/* All lives in `arena`, or in the outcomes. */
void compare_make(struct compare *compare, struct arena *arena, const struct outcome *a,
                  const struct outcome *b);

/* What a unit adds to the step. */
double compare_unit_s(const struct outcome_unit *unit); /* NULL: 0 */

#endif
