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

double minimum_on(double (*function)(double x, void *context), void *context, double low,
                  double high, int grid, double tolerance, double *least)
{
    enum { STEPS_MAX = 200 };
    struct search search = {function, context};
    gsl_function wrapped = {value_at, &search};
    const double step = (high - low) / grid;
    double best = low;
    double best_value = value_at(low, &search);
    for (int i = 1; i <= grid; i++) {
        const double value = value_at(low + i * step, &search);
        if (value < best_value) {
            best = low + i * step;
            best_value = value;
        }
    }
    gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_goldensection);
    if (minimizer == NULL)
        out_of_memory(0);
    /* Refused where the best of the steps is no valley (at an end, or flat): then it stands. */
    bool is_on = gsl_min_fminimizer_set(minimizer, &wrapped, best, fmax(low, best - step),
                                        fmin(high, best + step)) == 0;
    for (int i = 0; i < STEPS_MAX && is_on; i++) {
        is_on = gsl_min_fminimizer_iterate(minimizer) == 0 &&
                gsl_min_fminimizer_x_upper(minimizer) - gsl_min_fminimizer_x_lower(minimizer) >
                    tolerance;
        if (gsl_min_fminimizer_f_minimum(minimizer) < best_value) {
            best_value = gsl_min_fminimizer_f_minimum(minimizer);
            best = gsl_min_fminimizer_x_minimum(minimizer);
        }
    }
    gsl_min_fminimizer_free(minimizer);
    if (least != NULL)
        *least = best_value;
    return best;
}
