/* run/outcome_warnings.c: what a reader of the outcome should know; advice names only what is not
   in force yet. */
#include "cluster/gpu_attention.h"
#include "run/experiment_private.h"

enum { MAX_WARNINGS = 8 };

/* A caching allocator needs slack; reports of retries begin around the last 5 %. */
static const double tight_share = 0.95;

struct warnings {
    struct arena *arena;
    const char *texts[MAX_WARNINGS];
    int32_t count;
};

static void add(struct warnings *list, const char *text)
{
    BUG_IF(list->count == MAX_WARNINGS);
    list->texts[list->count++] = text;
}

/* "a, b, more GPUs": settings that need less memory. */
static const char *less_memory(const struct experiment *experiment, bool is_fragmented,
                               struct arena *arena)
{
    const struct train_config *train = &experiment->train;
    const struct fsdp_config *fsdp = &experiment->fsdp;
    const struct {
        bool is_open;
        const char *text;
    } steps[] = {
        {is_fragmented && !train->allocator.expandable_segments,
         "train.allocator.expandable_segments: true, "},
        {is_fragmented && fsdp->api == API_FSDP1 && !fsdp->limit_all_gathers,
         "fsdp.limit_all_gathers: true, "},
        {train->checkpointing.policy != CHECKPOINT_FULL &&
             experiment->model->family != FAMILY_ABSTRACT,
         "activation_checkpointing: full, "},
        {train->micro_batch > 1, "a smaller micro_batch, "},
    };
    const char *words = "";
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (steps[i].is_open)
            words = arena_printf(arena, "%s%s", words, steps[i].text);
    return arena_printf(arena, "%smore GPUs", words);
}

static void warn_of_memory(const struct experiment *experiment, const struct outcome *outcome,
                           struct warnings *list)
{
    char over[32];
    if (outcome->memory_over_bytes > 0) {
        format_gib(over, sizeof(over), (double)outcome->memory_over_bytes);
        add(list,
            arena_printf(list->arena, "does not fit by %s per GPU; times assume it did: try %s",
                         over, less_memory(experiment, false, list->arena)));
    } else if (outcome->alloc_retries > 0) {
        add(list,
            arena_printf(list->arena,
                         "GPU memory is used up %.3g times a step: the allocator gives cached "
                         "segments back and asks again, %.3g ms; try %s",
                         outcome->alloc_retries, outcome->alloc_retry_s * 1e3,
                         less_memory(experiment, true, list->arena)));
    } else if ((double)outcome->peak_device_bytes >
               tight_share * (double)outcome->memory_capacity_bytes) {
        add(list, experiment->train.allocator.expandable_segments
                      ? "less than 5 % of GPU memory is left: anything else on the GPU may "
                        "cause allocator retries"
                      : "less than 5 % of GPU memory is left: fragmentation may cause allocator "
                        "retries");
    }
}

/* What offload asks of the host. */
static void warn_of_host(const struct experiment *experiment, const struct outcome *outcome,
                         struct warnings *list)
{
    char needed[32], there[32];
    if (outcome->host_memory_bytes > 0 && outcome->peak_host_bytes > outcome->host_memory_bytes) {
        format_gib(needed, sizeof(needed), (double)outcome->peak_host_bytes);
        format_gib(there, sizeof(there), (double)outcome->host_memory_bytes);
        add(list,
            arena_printf(list->arena,
                         "does not fit into the host: its GPUs keep %s of states in a memory of %s",
                         needed, there));
    }
    const bool is_fsdp = experiment->fsdp.api == API_FSDP2 || experiment->fsdp.api == API_FSDP1;
    if (is_fsdp && experiment->fsdp.cpu_offload.params && experiment->gpus_per_node > 1 &&
        experiment->train.optimizer.omp_num_threads == 0)
        add(list,
            "the optimizer on the host has all its cores here; torchrun gives a rank one unless "
            "OMP_NUM_THREADS is set (train.optimizer.omp_num_threads: 1)");
}

/* What was left out or stands in for something else. */
static void warn_of_model(const struct experiment *experiment, const struct outcome *outcome,
                          struct warnings *list)
{
    if (experiment->ideal.contention && outcome->comm_s > 0)
        add(list, "'ideal: contention' is on: overlap is assumed to be free, which is optimistic");
    if (experiment->simulate.warmup_steps == 0 && experiment->simulate.steps == 1)
        add(list, "only the first step was played: the optimizer's state appears at its end, so "
                  "the peak of later steps is higher (warmup_steps: 1 shows it)");
    if (outcome->mfu > 1)
        add(list, "MFU over 100 %: the model's FLOP per token does not go with its compute time");
    const enum attention_impl asked = (enum attention_impl)experiment->train.attention;
    const enum attention_impl played = attention_played(experiment->cluster.gpu.attention, asked);
    if (played != asked && experiment->model->family != FAMILY_ABSTRACT)
        add(list,
            arena_printf(list->arena, "attention '%s' does not run on GPU '%s': '%s' stands in",
                         attention_impl_name(asked), experiment->cluster.gpu.name,
                         attention_impl_name(played)));
}

void outcome_warn(struct experiment *experiment, struct outcome *outcome)
{
    struct warnings list = {.arena = experiment_play_arena(experiment)};
    warn_of_memory(experiment, outcome, &list);
    warn_of_host(experiment, outcome, &list);
    warn_of_model(experiment, outcome, &list);
    const char **texts = ARENA_ARRAY(list.arena, const char *, MAX_WARNINGS);
    for (int32_t i = 0; i < list.count; i++)
        texts[i] = list.texts[i];
    outcome->warnings = texts;
    outcome->warning_count = list.count;
}
