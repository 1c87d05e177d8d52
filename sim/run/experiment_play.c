/*
 * run/experiment_play.c: program → machine → observers → outcome.
 *
 * A run is played with unlimited memory. Where the caching allocator reserved more than the GPU
 * has, but the program never held as much, it is played again within the GPU's memory: cached
 * segments are given back when the driver has no more (retries, machine/machine_retry.c), which
 * takes time. When no retry helps the first play stands: it does not fit, and shows by how much.
 * Retries settle over some steps and then may come in turns, two in one step and one in the next:
 * at least RETRY_WARMUP steps come before the reported ones, and those are at least RETRY_STEPS,
 * whole turns of 2, 3 or 4; unless the first step itself is asked for (warmup_steps: 0).
 */
#include "run/experiment_private.h"
#include "run/shelf.h"

enum { RETRY_WARMUP = 4, RETRY_STEPS = 12 };

struct play {
    struct facts *facts;
    struct journal *journal; /* NULL: not asked for */
    struct machine_result result;
};

static struct allocator_settings allocator_settings_of(const struct experiment *experiment)
{
    const struct allocator_config *config = &experiment->train.allocator;
    return (struct allocator_settings){
        .expandable_segments = config->expandable_segments,
        .max_split_size_bytes = config->max_split_size_mb * (INT64_C(1) << 20),
        .roundup_power2_divisions = config->roundup_power2_divisions};
}

bool experiment_is_drawn(const struct experiment *experiment)
{
    const struct jitter_config *config = &experiment->simulate.jitter;
    const bool has_stragglers =
        config->stragglers.probability > 0 && config->stragglers.slowdown > 1;
    return config->kernels > 0 || config->gpus > 0 || config->network > 0 || has_stragglers ||
           experiment->is_sampled;
}

static struct jitter jitter_of(const struct experiment *experiment)
{
    const struct jitter_config *config = &experiment->simulate.jitter;
    return (struct jitter){.kernel_sigma = config->kernels,
                           .rank_sigma = config->gpus,
                           .network_sigma = config->network,
                           .straggler_probability = config->stragglers.probability,
                           .straggler_slowdown = config->stragglers.slowdown,
                           .draws_knowledge = experiment->is_sampled,
                           .seed = (uint64_t)experiment->simulate.seed,
                           .sample = (uint32_t)experiment->sample};
}

int64_t experiment_held_bytes(const struct experiment *experiment)
{
    const int32_t steps = (int32_t)(experiment->simulate.warmup_steps + experiment->simulate.steps);
    struct shelved *shelved = experiment->shelved;
    if (shelved == NULL)
        return program_peak_allocated_bytes(experiment->program, steps);
    if (shelved->held_steps != steps) {
        shelved->held_steps = steps;
        shelved->held_bytes = program_peak_allocated_bytes(experiment->program, steps);
    }
    return shelved->held_bytes;
}

/* ---- memory that is known from the shelf -------------------------------------------------- */

/* Of classes that hold the same the first is told (machine.h). */
static bool is_told(const struct layout *layout, int32_t class_idx)
{
    for (int32_t i = 0; i < class_idx; i++)
        if (layout->classes[i].gpu == layout->classes[class_idx].gpu)
            return false;
    return true;
}

static void ask_time(struct change_time *times, int32_t *count, int32_t class_idx,
                     const struct memory_peak *peak)
{
    if (peak->op != NULL)
        times[(*count)++] = (struct change_time){class_idx, peak->step, peak->change, 0};
}

/* When the peaks are reached: two a class that is told. */
static struct change_time *ask_times(struct experiment *experiment,
                                     const struct memory_record *known, int32_t *count)
{
    const struct layout *layout = &experiment->layout;
    struct change_time *times =
        ARENA_ARRAY(experiment_play_arena(experiment), struct change_time, 2 * layout->class_count);
    *count = 0;
    for (int32_t i = 0; i < layout->class_count; i++) {
        if (!is_told(layout, i))
            continue;
        ask_time(times, count, i, &known->facts.peak);
        ask_time(times, count, i, &known->facts.first_peak);
    }
    return times;
}

static void tell_facts(const struct layout *layout, const struct memory_record *known,
                       const struct change_time *times, struct facts *facts)
{
    for (int32_t i = 0; i < layout->class_count; i++) {
        struct memory_facts memory = known->facts;
        if (!is_told(layout, i))
            continue;
        if (memory.peak.op != NULL)
            memory.peak.step_ps = times++->step_ps;
        if (memory.first_peak.op != NULL)
            memory.first_peak.step_ps = times++->step_ps;
        facts_know_memory(facts, i, &memory);
    }
}

static const struct memory_record *find_memory(const struct experiment *experiment,
                                               const struct machine_setup *setup)
{
    if (experiment->shelved == NULL)
        return NULL;
    return shelved_memory(experiment->shelved, setup->steps, &setup->allocator);
}

static void keep_memory(const struct experiment *experiment, const struct machine_setup *setup,
                        const struct facts *facts)
{
    if (experiment->shelved != NULL && !program_has_timed_frees(experiment->program))
        shelved_keep_memory(experiment->shelved, setup->steps, &setup->allocator,
                            facts_memory(facts, 0));
}

/* ---- playing ------------------------------------------------------------------------------ */

static int64_t at_least(int64_t value, int64_t floor)
{
    return value > floor ? value : floor;
}

static enum status play_once(struct experiment *experiment, bool limits_memory, struct play *play)
{
    const struct program *program = experiment->program;
    const struct simulate_config *simulate = &experiment->simulate;
    const double batch_s = loading_batch_s(experiment);
    const bool settles = limits_memory && simulate->warmup_steps > 0;
    const int32_t warmup = (int32_t)at_least(simulate->warmup_steps, settles ? RETRY_WARMUP : 0);
    const int32_t steps = (int32_t)at_least(simulate->steps, settles ? RETRY_STEPS : 1);
    experiment->reported_steps = steps;
    *play = (struct play){.facts = facts_new(experiment_play_arena(experiment), &experiment->layout,
                                             &program, 1, warmup, steps)};
    struct observer observers[2] = {facts_observer(play->facts)};
    if (experiment->keeps_journal) {
        play->journal = journal_new(experiment_play_arena(experiment), &experiment->layout,
                                    &program, 1, warmup, steps);
        observers[1] = journal_observer(play->journal);
    }
    const struct jitter jitter = jitter_of(experiment);
    struct machine_setup setup = {.layout = &experiment->layout,
                                  .microbatch_costs = experiment->microbatch_costs,
                                  .batch_s = batch_s,
                                  .microbatch_count = (int32_t)experiment->train.grad_accum,
                                  .programs = &program,
                                  .program_count = 1,
                                  .network = (enum network_mode)experiment->simulate.network,
                                  .ideal = experiment->ideal,
                                  .allocator = allocator_settings_of(experiment),
                                  .limits_memory = limits_memory,
                                  .jitter = experiment_is_drawn(experiment) ? &jitter : NULL,
                                  .steps = warmup + steps,
                                  .tie_seed = experiment->tie_seed,
                                  .observers = observers,
                                  .observer_count = experiment->keeps_journal ? 2 : 1};
    if (experiment->shelved != NULL)
        setup.scores = &experiment->shelved->scores;
    const struct memory_record *known =
        limits_memory || experiment->keeps_journal ? NULL : find_memory(experiment, &setup);
    if (known != NULL) {
        observers[0].memory_changed = NULL;
        observers[0].memory_retried = NULL;
        setup.change_times = ask_times(experiment, known, &setup.change_time_count);
    }
    const enum status status =
        machine_play(experiment_play_arena(experiment), &setup, &play->result, experiment->diag);
    if (status != STATUS_OK || play->result.is_out_of_memory)
        return status;
    if (known != NULL)
        tell_facts(&experiment->layout, known, setup.change_times, play->facts);
    facts_close(play->facts);
    if (experiment->keeps_journal)
        journal_close(play->journal);
    if (known == NULL && !limits_memory)
        keep_memory(experiment, &setup, play->facts);
    return status;
}

/* More is reserved than there is, and less is held at once: what is freed and still in use by
   another stream comes back when the host waits for it. */
static bool may_retry(const struct experiment *experiment, const struct facts *facts)
{
    const struct layout *layout = &experiment->layout;
    const int64_t held = experiment_held_bytes(experiment);
    bool is_short = false;
    for (int32_t i = 0; i < layout->class_count; i++) {
        const struct memory_facts *memory = facts_memory(facts, i);
        const int64_t limit = program_memory_limit(experiment->program, layout->classes[i].gpu);
        if (held > limit)
            return false;
        is_short = is_short || memory->peak_reserved_bytes > limit ||
                   memory->first_peak_reserved_bytes > limit;
    }
    return is_short;
}

enum status experiment_play_once(struct experiment *experiment, struct outcome *outcome)
{
    struct play play;
    enum status status = play_once(experiment, false, &play);
    if (status != STATUS_OK)
        return status;
    if (may_retry(experiment, play.facts)) {
        struct play limited;
        status = play_once(experiment, true, &limited);
        if (status != STATUS_OK)
            return status;
        if (!limited.result.is_out_of_memory)
            play = limited;
        else
            experiment->reported_steps = experiment->simulate.steps;
    }
    experiment->journal = play.journal;
    outcome_build(experiment, play.facts, &play.result, outcome);
    if (outcome->step_time_s > 0)
        return STATUS_OK;
    config_error(&experiment->config, "model", "a step needs some compute or communication",
                 "the step does no work: its time is zero");
    return STATUS_INPUT;
}

enum status experiment_play(struct experiment *experiment, struct outcome *outcome)
{
    return experiment->simulate.samples > 0 ? samples_outcome(experiment, outcome)
                                            : experiment_play_once(experiment, outcome);
}
