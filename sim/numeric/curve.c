/* numeric/curve.c: see curve.h. */
#include "numeric/curve.h"

#include <gsl/gsl_interp.h>
#include <math.h>

/* A curve is a GSL object, so its own memory comes from an arena that lives as long as it does. */
struct curve {
    struct arena arena;
    double *log_x, *y;
    int32_t count;
    double first_x, last_x;
    gsl_interp *interp; /* NULL: one point */
};

static bool is_increasing(const double *x, const double *y, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (!(x[i] > 0) || !isfinite(x[i]) || !isfinite(y[i]) || (i > 0 && x[i] <= x[i - 1]))
            return false;
    }
    return count > 0;
}

struct curve *curve_new(const double *x, const double *y, int32_t count)
{
    if (!is_increasing(x, y, count))
        return NULL;
    struct arena arena = {0};
    struct curve *curve = ARENA_NEW(&arena, struct curve);
    curve->log_x = ARENA_ARRAY(&arena, double, count);
    curve->y = ARENA_ARRAY(&arena, double, count);
    curve->count = count;
    curve->first_x = x[0];
    curve->last_x = x[count - 1];
    bool is_good = true;
    for (int32_t i = 0; i < count; i++) {
        curve->log_x[i] = log(x[i]);
        curve->y[i] = y[i];
        /* Neighbours can be so near that their logarithms are equal. */
        is_good = is_good && (i == 0 || curve->log_x[i] > curve->log_x[i - 1]);
    }
    if (is_good && count > 1) {
        const gsl_interp_type *type = count > 2 ? gsl_interp_steffen : gsl_interp_linear;
        curve->interp = gsl_interp_alloc(type, (size_t)count);
        if (curve->interp == NULL)
            out_of_memory(0);
        is_good = gsl_interp_init(curve->interp, curve->log_x, curve->y, (size_t)count) == 0;
    }
    curve->arena = arena;
    if (!is_good) {
        curve_free(curve);
        return NULL;
    }
    return curve;
}

void curve_free(struct curve *curve)
{
    if (curve == NULL)
        return;
    gsl_interp_free(curve->interp);
    struct arena arena = curve->arena;
    arena_release(&arena);
}

double curve_at(const struct curve *curve, double x)
{
    /* Written so that a NaN, like anything below, gives the first value. */
    if (!(x > curve->first_x) || curve->interp == NULL)
        return curve->y[0];
    if (x >= curve->last_x)
        return curve->y[curve->count - 1];
    /* No accelerator: a lookup writes nothing, so a curve may be shared. */
    return gsl_interp_eval(curve->interp, curve->log_x, curve->y, log(x), NULL);
}
