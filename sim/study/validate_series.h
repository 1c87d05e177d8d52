/*
 * study/validate_series.h: whether runs that differ in one thing keep their shape.
 *
 * results/measured/series.yaml names rows in order. Of each row in scope: the time of a token on a
 * GPU (step / tokens a GPU), or the peak memory, over that of the first one; a step from one point
 * to the next is right when the prediction moves as the measurement did. Measured steps of less
 * than `series_noise` say nothing of a sign: repeats of one set-up differ by as much.
 *
 *   measured 1, 0.86, 0.68, predicted 1, 0.81, 0.65: both steps are right
 *
 * Rows that are out of scope are left out, and series with less than two rows.
 */
#ifndef FSDPSIM_STUDY_VALIDATE_SERIES_H
#define FSDPSIM_STUDY_VALIDATE_SERIES_H

#include "study/validate.h"

/* Of a measured step: what repeats of one set-up differ by at least (README.md beside the table).
 */
extern const double series_noise;

enum series_step { SERIES_FIRST, SERIES_RIGHT, SERIES_WRONG, SERIES_SMALL };

struct series_point {
    const struct validate_row *row;
    double measured, predicted; /* over the first point */
    enum series_step step;      /* from the point before */
};

struct validate_series {
    const char *name;
    bool is_memory;
    struct series_point *points;
    int32_t count;
    int32_t named; /* rows in the file */
};

struct validate_series_list {
    struct validate_series *items;
    int32_t count, capacity;
};

/* Of the rows of `validation`, whose order is as it stays. */
MUST_CHECK enum status validate_series_load(struct arena *arena,
                                            const struct validation *validation,
                                            struct validate_series_list *list, struct diag *diag);
/* Steps that are right, and steps that have a sign. */
void validate_series_count(const struct validate_series_list *list, int32_t *right, int32_t *all);

#endif
