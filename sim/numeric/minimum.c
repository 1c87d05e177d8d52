/* numeric/minimum.c: see minimum.h. */
#include "numeric/minimum.h"

#include <float.h>
#include <gsl/gsl_min.h>
#include <math.h>
#include <stdbool.h>

#include "base/status.h"

struct search {
    double (*function)(double x, void *context);
    void *context;
};

/* Finite, as GSL wants it. */
static double value_at(double x, void *given)
{
    const struct search *search = given;
    const double value = search->function(x, search->context);
    return isfinite(value) ? value : DBL_MAX;
}

/* The best of `steps` even steps on [low, high] against `best`. */
static void try_steps(struct search *search, double low, double high, int steps, double *best,
                      double *best_value)
{
    for (int i = 0; i <= steps; i++) {
        const double x = low + (high - low) * i / steps;
        const double value = value_at(x, search);
        if (value < *best_value) {
            *best = x;
            *best_value = value;
        }
    }
}

/* Golden section on a valley around `best`; false: GSL sees none. */
static bool narrow(struct search *search, double low, double high, double tolerance, double *best,
                   double *best_value)
{
    enum { STEPS_MAX = 200 };
    gsl_function wrapped = {value_at, search};
    gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_goldensection);
    if (minimizer == NULL)
        out_of_memory(0);
    const bool is_valley = gsl_min_fminimizer_set(minimizer, &wrapped, *best, low, high) == 0;
    bool is_on = is_valley;
    for (int i = 0; i < STEPS_MAX && is_on; i++) {
        is_on = gsl_min_fminimizer_iterate(minimizer) == 0 &&
                gsl_min_fminimizer_x_upper(minimizer) - gsl_min_fminimizer_x_lower(minimizer) >
                    tolerance;
        if (gsl_min_fminimizer_f_minimum(minimizer) < *best_value) {
            *best_value = gsl_min_fminimizer_f_minimum(minimizer);
            *best = gsl_min_fminimizer_x_minimum(minimizer);
        }
    }
    gsl_min_fminimizer_free(minimizer);
    return is_valley;
}

double minimum_on(double (*function)(double x, void *context), void *context, double low,
                  double high, int grid, double tolerance, double *least)
{
    enum { FINER = 8 };
    struct search search = {function, context};
    double best = low;
    double best_value = DBL_MAX;
    double step = (high - low) / grid;
    try_steps(&search, low, high, grid, &best, &best_value);
    /* Where two steps are equally good there is no valley yet: finer ones, between them. */
    while (step > tolerance && !narrow(&search, fmax(low, best - step), fmin(high, best + step),
                                       tolerance, &best, &best_value)) {
        try_steps(&search, fmax(low, best - step), fmin(high, best + step), FINER, &best,
                  &best_value);
        step /= FINER / 2.0;
    }
    if (least != NULL)
        *least = best_value;
    return best;
}
