/*
 * numeric/root.h: where a function of one variable changes its sign.
 *
 * Brent's method (GSL `gsl_root_fsolver_brent`: R. Brent, Algorithms for Minimization without
 * Derivatives, 1973, chapter 4) proposes points, and every one of them narrows a bracket that is
 * kept beside it: the answer is not an estimate but two points, one on either side, no further
 * apart than the tolerance. Where Brent's estimate stands still while the far end of its bracket
 * does not move, a point within the tolerance is tried on that side; what is left after that, and a
 * function that jumps, is halved.
 *
 * Example: x^2 - 2 on [0, 4] within 1e-6: low and high around 1.4142136, (-) and (+).
 *
 * The function may jump; of several changes of sign inside the bracket one is found.
 */
#ifndef FSDPSIM_NUMERIC_ROOT_H
#define FSDPSIM_NUMERIC_ROOT_H

#include <stdbool.h>

struct root_bracket {
    double low, high;             /* low < high */
    double low_value, high_value; /* of opposite signs, neither is 0 or NaN */
};

/*
 * Narrows `bracket` until high - low <= tolerance (> 0). `function` returns neither 0 nor NaN.
 * False: not within 200 calls of it (the bracket is narrower, not narrow).
 */
bool root_narrow(double (*function)(double x, void *context), void *context,
                 struct root_bracket *bracket, double tolerance);

#endif
