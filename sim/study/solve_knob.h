/*
 * study/solve_knob.h: the one key that `solve` varies, and the values it may take.
 *
 *   nodes=1:128                     whole numbers, both ends included
 *   train.seq_len=1024:131072:1024  the same in steps; ends with a unit have steps, too
 *   …bandwidth=25Gbps:800Gbps       any value between
 *   fabric.oversubscription=1.0:4   the same: a decimal point says that it need not be whole
 *   nodes=log2(1, 1024)             a list, as in a sweep (sweep_axis.h); also words:
 *   train.activation_checkpointing=none,selective,full
 *
 * A value is addressed by a number: itself, in the unit of the low end, where any value goes; else
 * its index. Values in between are rounded to `digits` significant digits, so that what is printed
 * is what was played.
 */
#ifndef FSDPSIM_STUDY_SOLVE_KNOB_H
#define FSDPSIM_STUDY_SOLVE_KNOB_H

#include "study/sweep_axis.h"

enum knob_kind { KNOB_CONTINUOUS, KNOB_STEPS, KNOB_LIST };

struct knob {
    const char *key;
    enum knob_kind kind;
    struct axis_span span;  /* not of a list */
    struct sweep_axis axis; /* of a list */
    int64_t count;          /* of the values; 0: continuous */
    bool is_logarithmic;    /* the range begins above 0, and ends at many times that */
    bool is_ordered;        /* the values grow: "smallest"; else "first" */
};

/* `text`: what stands after --vary. */
MUST_CHECK enum status knob_parse(struct knob *knob, struct arena *arena, const char *text,
                                  struct diag *diag);
double knob_low(const struct knob *knob);
double knob_high(const struct knob *knob);
/* Rounds `at` to a value that is tried, and writes it as -s takes it. */
const char *knob_value(const struct knob *knob, struct arena *arena, int digits, double *at);
/* "1", "128": the ends as they were written. */
const char *knob_low_text(const struct knob *knob);
const char *knob_high_text(const struct knob *knob);

#endif
