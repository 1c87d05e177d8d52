/*
 * numeric/fit.h: fits of times over sizes by relative error, and order statistics.
 *
 * Two straight pieces that meet (`fit_pieces`):
 *
 *   y(x) = a + b·x                    x <= k          a, b, b + c >= 0: never negative, never
 *   y(x) = a + b·x + c·(x - k)        x >  k          falling
 *
 * minimises sum ((y_i - y(x_i)) / y_i)^2, so that the largest sizes do not swamp the others; k is
 * the best of the x_i with two points on each side. A c of no use leaves one piece. Solved by GSL
 * (`gsl_multifit_wlinear`), whose covariance gives the standard errors.
 *
 * Example: points of 20 us + S / (2 GB/s) up to 1 MB and of 24 us per 10 KB above: a = 20 us, b =
 * 0.5 ns/B, k = 1 MB.
 *
 * Isotonic regression (`fit_isotonic`): the nearest sequence that does not fall, by pooling
 * adjacent violators. Source: R. E. Barlow et al., Statistical Inference under Order Restrictions
 * (1972).
 */
#ifndef FSDPSIM_NUMERIC_FIT_H
#define FSDPSIM_NUMERIC_FIT_H

#include <stdbool.h>
#include <stdint.h>

struct pieces {
    double a, b, c, k;       /* c = 0: one piece */
    double a_error, b_error; /* standard errors; 0 where there are no more points than unknowns */
    double chi2;             /* of relative errors */
};

/* x > 0 strictly increasing, y > 0. False: fewer than 2 points, or none that keeps the signs. */
bool fit_pieces(const double *x, const double *y, int32_t count, struct pieces *pieces);
double pieces_at(const struct pieces *pieces, double x);

/* Replaces y by the nearest values that do not fall. */
void fit_isotonic(double *y, int32_t count);

/* Sorts `values`; linear between ranks, as R and numpy do by default. NaN when count is 0. */
double quantile(double *values, int32_t count, double share);

#endif
