/* numeric/root.c: see root.h. */
#include "numeric/root.h"

#include <gsl/gsl_roots.h>
#include <math.h>

#include "base/status.h"

enum { CALLS_MAX = 200, BRENT_STEPS_MAX = 40 };

struct search {
    double (*function)(double x, void *context);
    void *context;
    struct root_bracket *bracket;
    double tolerance;
    int calls;
};

/* The ends are known. */
static double value_at(double x, void *given)
{
    struct search *search = given;
    struct root_bracket *bracket = search->bracket;
    if (x <= bracket->low)
        return bracket->low_value;
    if (x >= bracket->high)
        return bracket->high_value;
    const double value = search->function(x, search->context);
    search->calls++;
    BUG_IF(!(value < 0 || value > 0));
    if (signbit(value) == signbit(bracket->low_value)) {
        bracket->low = x;
        bracket->low_value = value;
    } else {
        bracket->high = x;
        bracket->high_value = value;
    }
    return value;
}

static bool is_narrow(const struct search *search)
{
    return search->bracket->high - search->bracket->low <= search->tolerance;
}

/* The estimate stands at one end of the bracket: the other one is brought near. */
static void close_in(struct search *search, double estimate)
{
    const struct root_bracket *bracket = search->bracket;
    const double middle = 0.5 * (bracket->low + bracket->high);
    const double step = 0.5 * search->tolerance;
    (void)value_at(estimate < middle ? bracket->low + step : bracket->high - step, search);
}

static void play_brent(struct search *search)
{
    gsl_function wrapped = {value_at, search};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    if (solver == NULL)
        out_of_memory(0);
    bool is_on =
        gsl_root_fsolver_set(solver, &wrapped, search->bracket->low, search->bracket->high) == 0;
    double last = HUGE_VAL;
    for (int i = 0; i < BRENT_STEPS_MAX && is_on && !is_narrow(search); i++) {
        is_on = gsl_root_fsolver_iterate(solver) == 0;
        const double estimate = gsl_root_fsolver_root(solver);
        if (fabs(estimate - last) < search->tolerance && !is_narrow(search))
            close_in(search, estimate);
        last = estimate;
    }
    gsl_root_fsolver_free(solver);
}

bool root_narrow(double (*function)(double x, void *context), void *context,
                 struct root_bracket *bracket, double tolerance)
{
    struct search search = {function, context, bracket, tolerance, 0};
    play_brent(&search);
    while (!is_narrow(&search) && search.calls < CALLS_MAX) {
        const double middle = 0.5 * (bracket->low + bracket->high);
        if (!(middle > bracket->low && middle < bracket->high))
            return false;
        (void)value_at(middle, &search);
    }
    return is_narrow(&search);
}
