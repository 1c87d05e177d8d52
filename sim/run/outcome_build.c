/*
 * run/outcome_build.c: facts of a played run → outcome.
 *
 * With several rank classes the headline is the slowest one: the longest step, then the most
 * compute, then the lowest rank. Memory is the largest of any class. Where times are drawn
 * (simulate.jitter), classes that differ in nothing else count as the first of them: the one whose
 * draws are longest is no fair sample.
 *
 * Bottleneck: what an infinitely fast version of each part would save at most: the GPU, the time in
 * which compute runs and nothing else does (step − communication); the network, exposed
 * communication; the host, idle time. The largest names it.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "run/experiment_private.h"

static bool are_equal(double a, double b)
{
    return a >= b && a <= b;
}

/* Of the same GPU and clock, load, and wires. */
static bool are_alike(const struct layout *layout, int32_t a, int32_t b)
{
    struct rank_class *one = &layout->classes[a], *other = &layout->classes[b];
    if (one->gpu != other->gpu || !are_equal(one->clock_frac, other->clock_frac) ||
        one->load != other->load)
        return false;
    for (int32_t i = 0; i < RANK_RESOURCE_COUNT; i++) {
        const int32_t x = *rank_class_resource(one, i), y = *rank_class_resource(other, i);
        if ((x < 0) != (y < 0) ||
            (x >= 0 && !are_equal(layout->resources[x].capacity, layout->resources[y].capacity)))
            return false;
    }
    return true;
}

static bool has_alike_before(const struct layout *layout, int32_t class)
{
    for (int32_t i = 0; i < class; i++)
        if (are_alike(layout, i, class))
            return true;
    return false;
}

static int32_t headline_class(const struct experiment *experiment, const struct facts *facts)
{
    const bool is_drawn = experiment_is_drawn(experiment);
    int32_t best = 0;
    for (int32_t i = 1; i < experiment->layout.class_count; i++) {
        if (is_drawn && has_alike_before(&experiment->layout, i))
            continue;
        const struct breakdown *a = facts_breakdown(facts, i);
        const struct breakdown *b = facts_breakdown(facts, best);
        if (a->step_ps > b->step_ps || (a->step_ps == b->step_ps && a->compute_ps > b->compute_ps))
            best = i;
    }
    return best;
}

static void fill_times(struct outcome *outcome, const struct breakdown *breakdown, double steps)
{
    outcome->step_time_s = s_from_ps(breakdown->step_ps) / steps;
    outcome->compute_s = s_from_ps(breakdown->compute_ps) / steps;
    outcome->comm_s = s_from_ps(breakdown->comm_ps) / steps;
    outcome->comm_wait_s = s_from_ps(breakdown->comm_wait_ps) / steps;
    outcome->copy_s = s_from_ps(breakdown->copy_ps) / steps;
    outcome->exposed_comm_s = s_from_ps(breakdown->exposed_ps) / steps;
    outcome->idle_s = s_from_ps(breakdown->idle_ps) / steps;
    outcome->memcpy_s = s_from_ps(breakdown->memcpy_ps) / steps;
    outcome->data_wait_s = s_from_ps(breakdown->data_wait_ps) / steps;
    outcome->forward_s = s_from_ps(breakdown->forward_ps) / steps;
    outcome->backward_s = s_from_ps(breakdown->backward_ps) / steps;
    outcome->optimizer_s = s_from_ps(breakdown->optimizer_ps) / steps;
    outcome->exposed_comm_fraction =
        breakdown->step_ps > 0 ? (double)breakdown->exposed_ps / (double)breakdown->step_ps : 0;
    outcome->overlap_fraction =
        breakdown->comm_ps > 0 ? 1 - (double)breakdown->exposed_ps / (double)breakdown->comm_ps : 0;
}

/* FLOP that checkpointing computes again, per token. */
static double recompute_flop_per_token(const struct model *model)
{
    double flop = 0;
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        if (kind->is_recomputed)
            flop += kind->recompute_flop;
    }
    return flop * (double)model->tensor_ranks / (double)model->tokens;
}

/* Of a GPU in the compute dtype; where kinds of GPUs are mixed, in the mean over them. */
static double mean_peak(const struct experiment *experiment)
{
    const struct layout *layout = &experiment->layout;
    const int64_t dtype = experiment->train.precision.param_dtype;
    double peak = experiment->cluster.gpu.peak_flop_per_s[dtype];
    if (experiment->cluster.other_gpu_count == 0)
        return peak;
    peak = 0;
    for (int32_t i = 0; i < layout->class_count; i++)
        peak += layout->classes[i].gpu->peak_flop_per_s[dtype] * (double)layout->classes[i].count /
                (double)layout->ranks;
    return peak;
}

static void fill_throughput(const struct experiment *experiment, struct outcome *outcome)
{
    const struct train_config *train = &experiment->train;
    static const char *const conventions[] = {"torchtitan", "palm", "llm-foundry", "megatron"};
    outcome->tokens_per_step = train->global_batch * train->seq_len;
    const bool has_time = outcome->step_time_s > 0;
    outcome->tokens_per_s =
        has_time ? (double)outcome->tokens_per_step / outcome->step_time_s : (double)NAN;
    outcome->tokens_per_s_per_gpu = outcome->tokens_per_s / (double)experiment->n_gpus;
    outcome->mfu_convention = conventions[experiment->mfu_convention];
    const double flop = experiment_flop_per_token(experiment, experiment->mfu_convention);
    const double peak = mean_peak(experiment);
    outcome->tflops_per_gpu = flop * outcome->tokens_per_s_per_gpu / 1e12;
    outcome->mfu = peak > 0 ? flop * outcome->tokens_per_s_per_gpu / peak : (double)NAN;
    outcome->hfu = peak > 0 ? (flop + recompute_flop_per_token(experiment->model)) *
                                  outcome->tokens_per_s_per_gpu / peak
                            : (double)NAN;
}

static int64_t communicator_bytes(const struct experiment *experiment, const struct gpu *gpu)
{
    return program_communicator_count(experiment->program) * gpu->communicator_bytes;
}

/* Whether what all ranks of a host keep there is less than it has. */
static bool fill_host_memory(const struct experiment *experiment, struct outcome *outcome)
{
    const struct host_memory *host = &experiment->program->host;
    outcome->peak_host_bytes =
        experiment->gpus_per_node * (host->parameters + host->gradients + host->optimizer);
    if (experiment->train.saving.interval > 0)
        outcome->peak_host_bytes += (int64_t)saving_of(experiment).staged_bytes;
    outcome->host_memory_bytes = (int64_t)experiment->cluster.compute.memory_bytes;
    return outcome->host_memory_bytes == 0 ||
           outcome->peak_host_bytes <= outcome->host_memory_bytes;
}

static int64_t most_reserved_bytes(const struct memory_facts *memory)
{
    return memory->peak_reserved_bytes > memory->first_peak_reserved_bytes
               ? memory->peak_reserved_bytes
               : memory->first_peak_reserved_bytes;
}

/* What is used less what there is: the class that has the least left is shown. Of classes that hold
   the same only the first was watched: the others have used nothing. */
static int64_t memory_over_bytes(const struct memory_facts *memory, const struct gpu *gpu)
{
    return most_reserved_bytes(memory) + gpu->context_bytes - gpu->memory_bytes;
}

static int32_t fullest_class(const struct layout *layout, const struct facts *facts)
{
    int32_t fullest = 0;
    for (int32_t i = 1; i < layout->class_count; i++) {
        const struct memory_facts *memory = facts_memory(facts, i);
        if (memory->first_peak.active_bytes + memory->peak.active_bytes > 0 &&
            memory_over_bytes(memory, layout->classes[i].gpu) >
                memory_over_bytes(facts_memory(facts, fullest), layout->classes[fullest].gpu))
            fullest = i;
    }
    return fullest;
}

/* The phase of the step in whose operations `op` stands. */
static const char *phase_of(const struct program *program, const struct op *op)
{
    const char *phase = "prologue";
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *at = &program->step.items[i];
        if (at->kind == OP_MARK) {
            static const char *const phases[MARK_COUNT] = {[MARK_STEP_BEGIN] = "begin of step",
                                                           [MARK_FORWARD_BEGIN] = "forward",
                                                           [MARK_FORWARD_END] = "backward",
                                                           [MARK_BACKWARD_END] = "optimizer",
                                                           [MARK_STEP_END] = "end of step"};
            phase = phases[at->index];
        }
        if (at == op)
            return phase;
    }
    return op == NULL ? "begin of step" : "prologue";
}

/* What is issued next behind an allocation of the step: the work it is for. */
static const char *operation_behind(const struct program *program, const struct op *op)
{
    const struct op *end = program->step.items + program->step.count;
    if (op == NULL || op < program->step.items || op >= end)
        return "none";
    for (; op < end; op++) {
        if (op->kind == OP_SEGMENT)
            return program->segments.items[op->index].name;
        if (op->kind == OP_COLLECTIVE)
            return collective_op_name(program->collectives.items[op->index].op);
    }
    return "none";
}

static void fill_peak_place(const struct experiment *experiment, const struct memory_peak *peak,
                            struct outcome *outcome)
{
    const struct program *program = experiment->program;
    const bool has_unit = peak->op != NULL && peak->op->unit >= 0;
    outcome->peak_at = peak->tensor != NULL ? peak->tensor->name : "held since the step before";
    outcome->peak_phase = phase_of(program, peak->op);
    outcome->peak_unit = has_unit ? program->units.items[peak->op->unit].name : "outside units";
    outcome->peak_operation = operation_behind(program, peak->op);
    outcome->peak_time_s = s_from_ps(peak->step_ps);
}

static void fill_memory_units(struct experiment *experiment, const struct memory_peak *peak,
                              struct outcome *outcome)
{
    const struct program *program = experiment->program;
    const int32_t count = program->units.count;
    outcome->memory_units =
        ARENA_ARRAY(experiment_play_arena(experiment), struct outcome_memory_unit, count + 1);
    for (int32_t i = 0; i <= count; i++) {
        const char *name = i < count ? program->units.items[i].name : "outside units";
        if (peak->by_unit[i] != 0)
            outcome->memory_units[outcome->memory_unit_count++] =
                (struct outcome_memory_unit){.name = name, .bytes = peak->by_unit[i]};
    }
}

static void fill_memory(struct experiment *experiment, const struct facts *facts,
                        struct outcome *outcome)
{
    const struct layout *layout = &experiment->layout;
    const int32_t class_idx = fullest_class(layout, facts);
    const struct memory_facts *memory = facts_memory(facts, class_idx);
    const struct gpu *gpu = layout->classes[class_idx].gpu;
    const double steps = (double)experiment->reported_steps;
    const int64_t communicators = communicator_bytes(experiment, gpu);
    outcome->peak_active_bytes = memory->peak.active_bytes;
    outcome->peak_reserved_bytes = memory->peak_reserved_bytes;
    outcome->peak_allocated_bytes = experiment_held_bytes(experiment);
    outcome->first_step_peak_active_bytes = memory->first_peak.active_bytes;
    outcome->first_step_peak_reserved_bytes = memory->first_peak_reserved_bytes;
    outcome->alloc_retries = (double)memory->retry_count / steps;
    outcome->alloc_retry_s = s_from_ps(memory->retry_ps) / steps;
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        outcome->peak_composition[i] = memory->peak.by_category[i];
    outcome->peak_composition[MEMORY_CONTEXT] = gpu->context_bytes;
    outcome->peak_composition[MEMORY_COMMUNICATORS] = communicators;
    outcome->peak_composition[MEMORY_CACHED] =
        memory->peak_reserved_bytes - memory->peak.active_bytes;
    outcome->peak_device_bytes = memory->peak_reserved_bytes + gpu->context_bytes + communicators;
    outcome->memory_capacity_bytes = gpu->memory_bytes;
    const int64_t over_bytes = most_reserved_bytes(memory) + gpu->context_bytes + communicators -
                               outcome->memory_capacity_bytes;
    outcome->memory_over_bytes = over_bytes > 0 ? over_bytes : 0;
    outcome->fits = fill_host_memory(experiment, outcome) && over_bytes <= 0;
    fill_peak_place(experiment, &memory->peak, outcome);
    fill_memory_units(experiment, &memory->peak, outcome);
}

static void fill_units(struct experiment *experiment, const struct facts *facts, int32_t class_idx,
                       double steps, struct outcome *outcome)
{
    const struct program *program = experiment->program;
    outcome->units = ARENA_ARRAY(experiment_play_arena(experiment), struct outcome_unit,
                                 program->units.count + 1);
    for (int32_t i = 0; i < program->units.count; i++) {
        const struct unit_facts *unit = facts_unit(facts, class_idx, i);
        if (program->units.items[i].parameters == 0)
            continue;
        outcome->units[outcome->unit_count++] =
            (struct outcome_unit){.name = program->units.items[i].name,
                                  .parameters = program->units.items[i].parameters,
                                  .forward_s = s_from_ps(unit->forward_ps) / steps,
                                  .backward_s = s_from_ps(unit->backward_ps) / steps,
                                  .all_gather_s = s_from_ps(unit->all_gather_ps) / steps,
                                  .reduce_scatter_s = s_from_ps(unit->reduce_scatter_ps) / steps,
                                  .exposed_s = s_from_ps(unit->exposed_ps) / steps};
    }
}

static struct plan_options plan_options_of(const struct experiment *experiment)
{
    return (struct plan_options){.is_latency_free = experiment->ideal.latency,
                                 .is_contention_free = experiment->ideal.contention};
}

/* The row of `outcome` for a collective, made when it is the first of its kind and size. */
static struct outcome_collective *find_row(struct outcome *outcome, const char *op,
                                           const char *communicator, double bytes)
{
    for (int32_t i = 0; i < outcome->collective_count; i++) {
        struct outcome_collective *row = &outcome->collectives[i];
        if (row->op == op && row->communicator == communicator && row->bytes >= bytes &&
            row->bytes <= bytes)
            return row;
    }
    struct outcome_collective *row = &outcome->collectives[outcome->collective_count++];
    *row = (struct outcome_collective){.op = op, .communicator = communicator, .bytes = bytes};
    return row;
}

/* What bounds communication: the link of the largest collective, or the steps' latency when that is
   more than half of all collectives' time alone. */
struct comm_bound {
    int32_t link; /* -1: none */
    double latency_s, alone_s;
};

static double plan_latency_s(const struct plan *plan)
{
    double seconds = plan->base_s;
    for (int32_t i = 0; i < plan->phase_count; i++)
        seconds += plan->phases[i].latency_s;
    return seconds;
}

/* What a group of each communicator sees: of those that hold the class. */
static const struct layout **find_views(struct experiment *experiment, int32_t class_idx)
{
    const struct program *program = experiment->program;
    const struct layout **views = ARENA_ARRAY(experiment_play_arena(experiment),
                                              const struct layout *, program->communicators.count);
    for (int32_t i = 0; i < program->communicators.count; i++) {
        struct group_split split;
        group_split_build(experiment_play_arena(experiment), &experiment->layout,
                          &program->communicators.items[i].group, &split);
        views[i] = split.items[split.item_of[class_idx]].view;
    }
    return views;
}

/* Plans of the kinds of collective met so far: a step has many collectives of few kinds. */
struct kind_plan {
    const struct collective *collective;
    struct plan plan;
};

struct kind_plans {
    struct kind_plan *items;
    int32_t count, capacity;
};

static bool is_same_kind(const struct collective *a, const struct collective *b)
{
    return a->op == b->op && a->communicator == b->communicator && a->is_average == b->is_average &&
           a->bytes >= b->bytes && a->bytes <= b->bytes;
}

static const struct plan *plan_of(struct experiment *experiment, struct kind_plans *plans,
                                  const struct layout *view, const struct collective *collective)
{
    for (int32_t i = 0; i < plans->count; i++)
        if (is_same_kind(plans->items[i].collective, collective))
            return &plans->items[i].plan;
    struct plan_options options = plan_options_of(experiment);
    const struct group group = group_whole(view);
    struct kind_plan *kind = ARENA_PUSH(experiment_play_arena(experiment), plans);
    kind->collective = collective;
    options.is_average = collective->is_average;
    if (plan_build(experiment_play_arena(experiment), view, &group, collective->op,
                   collective->bytes, &options, &kind->plan, experiment->diag) != STATUS_OK)
        BUG("a plan that was played cannot be built");
    return &kind->plan;
}

/* Closed forms of the collectives the step issues. */
static struct comm_bound fill_collectives(struct experiment *experiment, int32_t class_idx,
                                          struct outcome *outcome)
{
    const struct program *program = experiment->program;
    struct kind_plans plans = {0};
    struct comm_bound bound = {.link = -1};
    double largest_bytes = -1;
    const struct layout **views = find_views(experiment, class_idx);
    outcome->collectives = ARENA_ARRAY(experiment_play_arena(experiment), struct outcome_collective,
                                       program->collectives.count + 1);
    for (int32_t i = 0; i < program->step.count; i++) {
        const struct op *op = &program->step.items[i];
        if (op->kind != OP_COLLECTIVE)
            continue;
        const struct collective *collective = &program->collectives.items[op->index];
        const struct communicator *communicator =
            &program->communicators.items[collective->communicator];
        const struct layout *view = views[collective->communicator];
        const struct plan *plan = plan_of(experiment, &plans, view, collective);
        outcome->comm_bytes_per_gpu += plan->bytes_per_rank;
        struct outcome_collective *row = find_row(outcome, collective_op_name(collective->op),
                                                  communicator->name, collective->bytes);
        row->count++;
        row->alone_s = plan_alone_s(view, plan);
        bound.latency_s += plan_latency_s(plan);
        bound.alone_s += row->alone_s;
        row->busbw_bytes_per_s = row->alone_s > 0 ? plan->bus_bytes / row->alone_s : 0;
        if (collective->bytes > largest_bytes) {
            largest_bytes = collective->bytes;
            bound.link = plan_bottleneck(view, plan);
        }
    }
    return bound;
}

static void fill_links(struct experiment *experiment, const struct facts *facts, double steps,
                       struct outcome *outcome)
{
    const struct layout *layout = &experiment->layout;
    outcome->links =
        ARENA_ARRAY(experiment_play_arena(experiment), struct outcome_link, layout->resource_count);
    for (int32_t i = 0; i < layout->resource_count; i++) {
        const struct resource *resource = &layout->resources[i];
        if (resource->kind == RESOURCE_SM || resource->kind == RESOURCE_COPY_ENGINE)
            continue;
        const struct resource_facts *used = facts_resource(facts, i);
        if (!(used->amount > 0))
            continue;
        const double step_s = outcome->step_time_s;
        outcome->links[outcome->link_count++] = (struct outcome_link){
            .name = resource->name,
            .capacity_bytes_per_s = resource->capacity,
            .instances = resource->instances,
            .bytes = used->amount / steps,
            .busy_frac = step_s > 0 ? s_from_ps(used->busy_ps) / steps / step_s : 0,
            .utilisation = step_s > 0 ? used->amount / steps / (resource->capacity * step_s) : 0};
    }
}

static const char *name_bottleneck(const struct experiment *experiment,
                                   const struct outcome *outcome, const struct comm_bound *bound)
{
    const double compute = outcome->step_time_s - outcome->comm_s - outcome->idle_s;
    if (outcome_is_network_bound(outcome))
        return bound->link >= 0 && bound->latency_s <= bound->alone_s / 2
                   ? experiment->layout.resources[bound->link].name
                   : "network latency";
    if (outcome->idle_s <= compute)
        return "compute";
    if (outcome->checkpoint_s > outcome->idle_s / 2)
        return "checkpoint";
    return outcome->data_wait_s > outcome->idle_s / 2 ? "data loader" : "host";
}

/* Where a constant of a data file comes from: a text to read in that file, not a setting of the
 * run. */
static bool is_source_text(const char *path)
{
    const char *last = strrchr(path, '.');
    return strstr(path, ".sources.") != NULL || (last != NULL && strcmp(last, ".source") == 0);
}

static void fill_identity(struct experiment *experiment, struct outcome *outcome)
{
    outcome->config_name = experiment->name;
    outcome->model = experiment->model_config.name;
    outcome->cluster = experiment->cluster.name;
    outcome->gpu = experiment->cluster.gpu.name;
    outcome->policy = experiment->program->policy;
    outcome->n_gpus = experiment->n_gpus;
    outcome->n_nodes = experiment->nodes;
    outcome->gpus_per_node = experiment->gpus_per_node;
    outcome->parameters = experiment->model->parameters;
    outcome->seq_len = experiment->train.seq_len;
    outcome->micro_batch = experiment->train.micro_batch;
    outcome->grad_accum = experiment->train.grad_accum;
    outcome->config_hash = experiment_key(experiment);
    const struct config *config = &experiment->config;
    if (experiment->is_brief)
        return;
    outcome->origins = ARENA_ARRAY(experiment_play_arena(experiment), struct outcome_origin,
                                   config->origins.count + 1);
    for (int32_t i = 0; i < config->origins.count; i++) {
        const struct config_origin *one = &config->origins.items[i];
        if (!is_source_text(one->path))
            outcome->origins[outcome->origin_count++] = (struct outcome_origin){
                .path = one->path, .value = one->value, .origin = one->origin};
    }
}

void outcome_build(struct experiment *experiment, const struct facts *facts,
                   const struct machine_result *result, struct outcome *outcome)
{
    const double steps = (double)experiment->reported_steps;
    const int32_t class_idx = headline_class(experiment, facts);
    experiment->headline_class = class_idx;
    *outcome = (struct outcome){.fingerprint = result->fingerprint, .events = result->events};
    fill_identity(experiment, outcome);
    fill_times(outcome, facts_breakdown(facts, class_idx), steps);
    saving_fill(experiment, outcome);
    fill_throughput(experiment, outcome);
    training_cost_fill(experiment, outcome);
    fill_memory(experiment, facts, outcome);
    fill_units(experiment, facts, class_idx, steps, outcome);
    const struct comm_bound bound = fill_collectives(experiment, class_idx, outcome);
    fill_links(experiment, facts, steps, outcome);
    outcome->bottleneck = name_bottleneck(experiment, outcome, &bound);
    outcome_warn(experiment, outcome);
}
