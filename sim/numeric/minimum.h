/*
 * numeric/minimum.h: the least value of a function of one variable on an interval.
 *
 * The function may have kinks and several valleys: it is tried on `grid` even steps, then golden
 * section (GSL `gsl_min_fminimizer_goldensection`: R. Brent, Algorithms for Minimization without
 * Derivatives, 1973) narrows the valley around the best of them to `tolerance`.
 *
 * Example: |x - 2.385| on [0, 10] with 8 steps: x = 2.385 within the tolerance.
 */
#ifndef FSDPSIM_NUMERIC_MINIMUM_H
#define FSDPSIM_NUMERIC_MINIMUM_H

/* A NaN counts as infinite. Returns x; `least`, when not NULL, receives the value there. */
double minimum_on(double (*function)(double x, void *context), void *context, double low,
                  double high, int grid, double tolerance, double *least);

#endif
