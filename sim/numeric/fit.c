/* numeric/fit.c: see fit.h. */
#include "numeric/fit.h"

#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "base/arena.h"

enum { UNKNOWNS_MAX = 3, BREAKS_MAX = 64 }; /* of more points a sample is tried as the break */

/* Which of 1, x and the hinge (x - k)+ are in the model. */
struct model {
    bool has_a, has_b, has_c;
    double k;
};

struct solver {
    gsl_matrix *rows;
    gsl_vector *y, *weights, *unknowns;
    gsl_matrix *covariance;
    gsl_multifit_linear_workspace *work;
};

static void *checked(void *made)
{
    if (made == NULL)
        out_of_memory(0);
    return made;
}

static void solver_init(struct solver *solver, size_t count, size_t unknowns)
{
    solver->rows = checked(gsl_matrix_alloc(count, unknowns));
    solver->y = checked(gsl_vector_alloc(count));
    solver->weights = checked(gsl_vector_alloc(count));
    solver->unknowns = checked(gsl_vector_alloc(unknowns));
    solver->covariance = checked(gsl_matrix_alloc(unknowns, unknowns));
    solver->work = checked(gsl_multifit_linear_alloc(count, unknowns));
}

static void solver_release(struct solver *solver)
{
    gsl_matrix_free(solver->rows);
    gsl_vector_free(solver->y);
    gsl_vector_free(solver->weights);
    gsl_vector_free(solver->unknowns);
    gsl_matrix_free(solver->covariance);
    gsl_multifit_linear_free(solver->work);
}

/* x is scaled by its largest value, so that the columns are of one size. */
static bool solve(const double *x, const double *y, int32_t count, const struct model *model,
                  struct pieces *pieces)
{
    const size_t unknowns = (size_t)model->has_a + (size_t)model->has_b + (size_t)model->has_c;
    const double scale = x[count - 1];
    struct solver solver;
    if (unknowns == 0 || (size_t)count < unknowns)
        return false;
    solver_init(&solver, (size_t)count, unknowns);
    for (size_t i = 0; i < (size_t)count; i++) {
        size_t column = 0;
        if (model->has_a)
            gsl_matrix_set(solver.rows, i, column++, 1);
        if (model->has_b)
            gsl_matrix_set(solver.rows, i, column++, x[i] / scale);
        if (model->has_c)
            gsl_matrix_set(solver.rows, i, column, fmax(0, x[i] - model->k) / scale);
        gsl_vector_set(solver.y, i, y[i]);
        gsl_vector_set(solver.weights, i, 1 / (y[i] * y[i]));
    }
    const bool is_solved =
        gsl_multifit_wlinear(solver.rows, solver.weights, solver.y, solver.unknowns,
                             solver.covariance, &pieces->chi2, solver.work) == 0;
    double found[UNKNOWNS_MAX] = {0};
    double errors[UNKNOWNS_MAX] = {0};
    const double freedom = (double)count - (double)unknowns;
    const double variance = freedom > 0 ? pieces->chi2 / freedom : 0;
    for (size_t i = 0; i < unknowns; i++) {
        found[i] = gsl_vector_get(solver.unknowns, i);
        errors[i] = sqrt(fmax(0, gsl_matrix_get(solver.covariance, i, i)) * variance);
    }
    solver_release(&solver);
    size_t at = 0;
    const double chi2 = pieces->chi2;
    *pieces = (struct pieces){.k = scale, .chi2 = chi2};
    if (model->has_a)
        pieces->a = found[at], pieces->a_error = errors[at], at++;
    if (model->has_b)
        pieces->b = found[at] / scale, pieces->b_error = errors[at] / scale, at++;
    if (model->has_c)
        pieces->c = found[at] / scale, pieces->k = model->k;
    return is_solved && pieces->a >= 0 && pieces->b >= 0 && pieces->b + pieces->c >= 0;
}

static void take_better(bool is_solved, const struct pieces *candidate, struct pieces *best,
                        bool *has_any)
{
    if (is_solved && (!*has_any || candidate->chi2 < best->chi2)) {
        *best = *candidate;
        *has_any = true;
    }
}

bool fit_pieces(const double *x, const double *y, int32_t count, struct pieces *pieces)
{
    static const struct model lines[] = {
        {.has_a = true, .has_b = true}, {.has_b = true}, {.has_a = true}};
    bool has_any = false;
    struct pieces candidate;
    *pieces = (struct pieces){0};
    if (count < 2)
        return false;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        take_better(solve(x, y, count, &lines[i], &candidate), &candidate, pieces, &has_any);
    const int32_t step = 1 + count / BREAKS_MAX;
    for (int32_t i = 2; i + 2 < count; i += step) {
        /* Signs: without the latency, or without the slope of the first piece, where they fail. */
        struct model model = {true, true, true, x[i]};
        bool is_solved = solve(x, y, count, &model, &candidate);
        if (!is_solved) {
            model.has_b = candidate.b >= 0;
            model.has_a = candidate.a >= 0 || !model.has_b;
            is_solved = solve(x, y, count, &model, &candidate);
        }
        take_better(is_solved, &candidate, pieces, &has_any);
    }
    return has_any;
}

double pieces_at(const struct pieces *pieces, double x)
{
    return pieces->a + pieces->b * x + pieces->c * fmax(0, x - pieces->k);
}

void fit_isotonic(double *y, int32_t count)
{
    struct arena scratch = {0};
    double *mean = ARENA_ARRAY(&scratch, double, count);
    int32_t *members = ARENA_ARRAY(&scratch, int32_t, count);
    int32_t blocks = 0;
    for (int32_t i = 0; i < count; i++) {
        mean[blocks] = y[i];
        members[blocks++] = 1;
        while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
            const int32_t both = members[blocks - 2] + members[blocks - 1];
            mean[blocks - 2] =
                (mean[blocks - 2] * members[blocks - 2] + mean[blocks - 1] * members[blocks - 1]) /
                both;
            members[--blocks - 1] = both;
        }
    }
    for (int32_t i = 0, at = 0; i < blocks; i++)
        for (int32_t k = 0; k < members[i]; k++)
            y[at++] = mean[i];
    arena_release(&scratch);
}

double quantile(double *values, int32_t count, double share)
{
    if (count == 0)
        return (double)NAN;
    gsl_sort(values, 1, (size_t)count);
    return gsl_stats_quantile_from_sorted_data(values, 1, (size_t)count, share);
}
