/*
 * machine/maxmin.h: max-min fair sharing of resources among activities, solved incrementally.
 *
 * Resources i have a capacity C_i > 0; activities j have a weight w_j > 0, a rate cap b_j > 0 and
 * demands a_ij > 0 on some resources. Rates x_j solve:
 *
 *     for all i:  Σ_j a_ij · x_j <= C_i            no resource over its capacity
 *     for all j:  x_j <= b_j
 *     for all j:  x_j = b_j, or some resource i with a_ij > 0 is saturated and on it no other
 *                 activity k that is not at its cap below has x_k / w_k > x_j / w_j
 *
 * (the max-min definition; progressive filling finds it: all rates grow as w_j · t until a resource
 * or a cap stops them). Example: C = 10, two flows with a = 1, w = 1, one capped at 3: rates 3
 * and 7.
 *
 * Incremental: adding, removing or changing an activity marks what it touches; maxmin_solve solves
 * again only the connected component(s) of what is marked and reports the activities whose rate
 * changed. A resource that its activities could not fill even if each ran at its cap connects
 * nothing: a kernel that leaves memory bandwidth over does not touch the collective beside it. The
 * result equals a full solve bit for bit (a test says so): a component is filled in the order of
 * ids, and its sums are compensated, so that they do not depend on what came and went before.
 *
 * Cost: a component of n activities with D demands in all takes O(D + saturations · log D).
 *
 * Left out: rates are instantaneous (no slow start), and capacities do not depend on who shares.
 */
#ifndef FSDPSIM_MACHINE_MAXMIN_H
#define FSDPSIM_MACHINE_MAXMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct demand {
    int32_t resource;
    double per_work; /* a_ij, > 0 */
};

struct maxmin;

struct maxmin *maxmin_new(struct arena *arena);
/* Resource ids count from 0. */
int32_t maxmin_add_resource(struct maxmin *system, double capacity);

/*
 * Activity ids are reused after removal, smallest free id first. `demands` is borrowed until
 * removal; demands on the same resource add up. The cap may be HUGE_VAL when there are demands.
 */
int32_t maxmin_add(struct maxmin *system, double weight, double cap, const struct demand *demands,
                   int32_t demand_count);
void maxmin_remove(struct maxmin *system, int32_t activity);
void maxmin_set_cap(struct maxmin *system, int32_t activity, double cap);

/*
 * Solves what is marked. Activities whose rate changed (new ones included) are in
 * `changed[0…count)`, ascending, valid until the next call.
 */
void maxmin_solve(struct maxmin *system, const int32_t **changed, int32_t *count);
/* Solves everything from scratch (for tests). */
void maxmin_solve_full(struct maxmin *system);

double maxmin_rate(const struct maxmin *system, int32_t activity);
double maxmin_usage(const struct maxmin *system, int32_t resource); /* Σ a·x */
int64_t
maxmin_visited(const struct maxmin *system); /* activities visited by all solves: work done */

#endif
