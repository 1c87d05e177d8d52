/* collective/plan_calibrate.c: see plan_calibrate.h. */
#include "collective/plan_calibrate.h"

#include <math.h>

#include "base/strbuf.h"
#include "base/units.h"

static bool is_on_rings(const struct calibration_table *table)
{
    return text_equal(table->algorithm, "ring");
}

/* Infinite: the table says nothing of the case. */
static double sibling_cost(const struct calibration_table *table, enum collective_op op,
                           int64_t nodes, int64_t gpus_per_node)
{
    if ((table->nodes == 1) != (nodes == 1))
        return (double)INFINITY;
    const bool is_reduced = op == COLLECTIVE_ALL_REDUCE;
    const bool is_table_reduced = table->op == COLLECTIVE_ALL_REDUCE;
    if (!is_reduced && is_table_reduced && table->nodes == 2 && !is_on_rings(table))
        return (double)INFINITY;
    double cost = fabs(log2((double)nodes / (double)table->nodes)) +
                  2 * fabs(log2((double)gpus_per_node / (double)table->gpus_per_node));
    if (is_reduced != is_table_reduced)
        cost += 1.5;
    else if (op != table->op)
        cost += 0.5;
    return cost;
}

const struct calibration_table *calibration_find(const struct calibration *calibration,
                                                 enum collective_op op, int64_t nodes,
                                                 int64_t gpus_per_node, double *weight)
{
    const struct calibration_table *nearest = NULL;
    double least = (double)INFINITY;
    for (int64_t i = 0; i < calibration->table_count; i++) {
        const struct calibration_table *table = &calibration->tables[i];
        /* Of equals, NCCL's own choice of algorithm goes first. */
        const double cost = sibling_cost(table, op, nodes, gpus_per_node) +
                            (table->algorithm != NULL ? 0.01 : 0) +
                            (table->protocol != NULL ? 0.01 : 0);
        if (cost < least) {
            least = cost;
            nearest = table;
        }
    }
    *weight = nearest != NULL ? 1 / (1 + sibling_cost(nearest, op, nodes, gpus_per_node) / 2) : 0;
    return nearest;
}

/* The model cannot be had at the shape of such a table, so nothing follows from it. */
static bool is_of_this_cluster(const struct cluster *cluster, const struct calibration_table *table)
{
    return table->nodes <= cluster->max_hosts && table->gpus_per_node <= cluster->gpus_per_host &&
           (table->nodes == 1 || cluster->nic_count > 0);
}

static void warn_skipped(const struct cluster *cluster, const struct calibration_table *table,
                         struct diag *diag)
{
    diag_add(diag, DIAG_WARNING, table->place, NULL,
             "measured on %lld nodes x %lld GPUs, but cluster '%s' has at most %lld x %lld%s: not "
             "used",
             (long long)table->nodes, (long long)table->gpus_per_node, cluster->name,
             (long long)cluster->max_hosts, (long long)cluster->gpus_per_host,
             cluster->nic_count > 0 ? "" : ", without NICs");
}

static struct calibration usable_tables(struct arena *arena, const struct cluster *cluster)
{
    const struct calibration *all = &cluster->calibration;
    struct calibration usable = *all;
    struct calibration_table *tables =
        ARENA_ARRAY(arena, struct calibration_table, all->table_count);
    usable.table_count = 0;
    for (int64_t i = 0; i < all->table_count; i++)
        if (is_of_this_cluster(cluster, &all->tables[i]))
            tables[usable.table_count++] = all->tables[i];
    usable.tables = tables;
    return usable;
}

/* The model's time of a collective on the table's own shape, no host or GPU differing. */
static enum status spec_s(struct arena *arena, const struct layout *layout,
                          const struct calibration_table *table, double bytes,
                          const struct plan_options *options, double *time_s, struct diag *diag)
{
    struct cluster *cluster = ARENA_NEW(arena, struct cluster);
    *cluster = *layout->cluster;
    cluster->override_count = 0;
    struct layout shape = {0};
    struct plan plan = {0};
    const struct group group = {.ranks = table->nodes * table->gpus_per_node,
                                .hosts = table->nodes,
                                .ranks_per_host = table->gpus_per_node};
    enum status status =
        layout_build(arena, cluster, table->nodes, table->gpus_per_node, true, &shape, diag);
    if (status == STATUS_OK)
        status = plan_spec_build(arena, &shape, &group, table->op, bytes, options, &plan, diag);
    if (status == STATUS_OK)
        *time_s = plan_alone_s(&shape, &plan);
    return status;
}

static void warn(struct arena *arena, const struct calibration_table *table,
                 const struct group *group, enum collective_op op, double bytes, bool is_same,
                 struct diag *diag)
{
    if (!is_same)
        diag_add(diag, DIAG_WARNING, table->place,
                 arena_printf(arena, "measure it: %s_perf on %lld nodes with %lld GPUs each",
                              collective_op_name(op), (long long)group->hosts,
                              (long long)group->ranks_per_host),
                 "%s over %lld nodes x %lld GPUs is not in the calibration: scaled from %s over "
                 "%lld x %lld by the model",
                 collective_op_name(op), (long long)group->hosts, (long long)group->ranks_per_host,
                 collective_op_name(table->op), (long long)table->nodes,
                 (long long)table->gpus_per_node);
    if (calibration_is_outside(table, bytes)) {
        char first[32], last[32];
        diag_add(diag, DIAG_WARNING, table->place, NULL,
                 "sizes outside the calibration's %s to %s: extrapolated by the model",
                 format_gib(first, sizeof(first), table->points[0].bytes),
                 format_gib(last, sizeof(last), table->points[table->point_count - 1].bytes));
    }
}

/* Multiplies what the plan takes alone by `factor`, as far as the links allow. */
static void plan_scale(const struct layout *layout, struct plan *plan, double factor)
{
    const double wanted_s = factor * plan_alone_s(layout, plan);
    double latency_s = plan->base_s *= factor;
    for (int32_t i = 0; i < plan->phase_count; i++) {
        struct phase *phase = &plan->phases[i];
        phase->latency_s *= factor;
        phase->cap_bytes_per_s /= factor;
        phase->cap_beside_bytes_per_s /= factor;
        latency_s += phase->latency_s;
    }
    /* A cap above the link's capacity gains nothing: then the latency gives what it can. */
    const double excess_s = plan_alone_s(layout, plan) - wanted_s;
    if (excess_s <= 0 || latency_s <= 0)
        return;
    const double kept = fmax(0, 1 - excess_s / latency_s);
    plan->base_s *= kept;
    for (int32_t i = 0; i < plan->phase_count; i++)
        plan->phases[i].latency_s *= kept;
}

enum status plan_calibrate(struct arena *arena, const struct layout *layout,
                           const struct group *group, enum collective_op op, double bytes,
                           const struct plan_options *options, struct plan *plan, struct diag *diag)
{
    const struct calibration *calibration = &layout->cluster->calibration;
    double weight = 0;
    if (calibration->table_count == 0 || plan->phase_count == 0 || options->is_latency_free)
        return STATUS_OK;
    const struct calibration_table *table =
        calibration_find(calibration, op, group->hosts, group->ranks_per_host, &weight);
    if (table != NULL && !is_of_this_cluster(layout->cluster, table)) {
        const struct calibration usable = usable_tables(arena, layout->cluster);
        warn_skipped(layout->cluster, table, diag);
        table = calibration_find(&usable, op, group->hosts, group->ranks_per_host, &weight);
    }
    if (table == NULL) {
        diag_add(diag, DIAG_WARNING, calibration->tables[0].place, "the model's own time is used",
                 "the calibration says nothing of %s over %lld nodes x %lld GPUs",
                 collective_op_name(op), (long long)group->hosts, (long long)group->ranks_per_host);
        return STATUS_OK;
    }
    double model_s = 0;
    const double size = calibration_clamp(table, bytes);
    enum status status = spec_s(arena, layout, table, size, options, &model_s, diag);
    if (status != STATUS_OK)
        return status;
    warn(arena, table, group, op, bytes, weight >= 1, diag);
    plan->table = table->number;
    plan->error_sigma = weight * table->error_sigma;
    /* A tolerance for what the links cannot give: below it rounding and the fit's own error. */
    const double tolerance = 0.01;
    const double factor = pow(calibration_table_s(table, size) / model_s, weight);
    const double wanted_s = factor * plan_alone_s(layout, plan);
    plan_scale(layout, plan, factor);
    if (plan_alone_s(layout, plan) > wanted_s * (1 + tolerance))
        diag_add(diag, DIAG_WARNING, table->place,
                 "is the link's bandwidth in the cluster file the machine's?",
                 "%s was measured faster than the links of cluster '%s' can carry it",
                 collective_op_name(op), layout->cluster->name);
    return STATUS_OK;
}
