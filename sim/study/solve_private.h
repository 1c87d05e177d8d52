/* study/solve_private.h: what the files of solve share; see solve.h. */
#ifndef FSDPSIM_STUDY_SOLVE_PRIVATE_H
#define FSDPSIM_STUDY_SOLVE_PRIVATE_H

#include "study/solve.h"

/* The point at, or next to, `at`: played, or found among those that were; NULL: the world failed,
   after a message. */
struct solve_point *solve_play(struct solve *solve, double at);
/* Whether there is nothing to be played between two points. */
bool solve_is_next(const struct solve *solve, const struct solve_point *a,
                   const struct solve_point *b);
/* Points are spaced evenly in this, and narrowed in it: the value, or its logarithm. */
double solve_scale(const struct solve *solve, double at);
double solve_unscale(const struct solve *solve, double scaled);
double solve_scaled_tolerance(const struct solve *solve);

/* Narrows what lies between two neighbours of which one meets the conditions. */
MUST_CHECK enum status solve_narrow(struct solve *solve, struct solve_point *a,
                                    struct solve_point *b);

/* Intervals, trends and the answer, from the points. */
void solve_judge(struct solve *solve);

#endif
