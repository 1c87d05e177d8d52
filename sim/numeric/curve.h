/*
 * numeric/curve.h: a measured curve y(x) given by points, interpolated in log x.
 *
 * Steffen's method (GSL `gsl_interp_steffen`: M. Steffen, Astron. Astrophys. 239, 443 (1990)):
 * passes through the points, no overshoot, monotone where they are. Outside the points the end
 * value holds. x must be positive and strictly increasing, at least 1 point (2 points: linear).
 */
#ifndef FSDPSIM_NUMERIC_CURVE_H
#define FSDPSIM_NUMERIC_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct curve;

/* NULL when the points are not positive and increasing. Owned by the arena's user: curve_free. */
struct curve *curve_new(const double *x, const double *y, int32_t count);
void curve_free(struct curve *curve);
double curve_at(const struct curve *curve, double x);

/* Switches GSL's aborting error handler off; called from line one of main. */
void numeric_init(void);

#endif
