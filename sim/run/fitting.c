/* run/fitting.c: see fitting.h. */
#include "run/fitting.h"

#include <inttypes.h>

#include "base/strbuf.h"
#include "run/experiment_private.h"

enum { LOSS_CHUNKS = 8 };

/* Settings as they are being tried, and how to say them. */
struct search {
    struct experiment *experiment;
    struct fitting *fitting;
    const char *sharding; /* said once; the levers behind it are added */
    const char *levers;
    enum status status;
};

static const char *join(struct arena *arena, const char *a, const char *b)
{
    return a[0] == '\0' || b[0] == '\0' ? arena_printf(arena, "%s%s", a, b)
                                        : arena_printf(arena, "%s %s", a, b);
}

/* The host's memory, where it is known, must hold what all its GPUs keep there. */
static double host_over_bytes(const struct experiment *experiment, const struct estimate_row *row)
{
    const double there = experiment->cluster.compute.memory_bytes;
    const double needed = row->host_bytes * (double)experiment->gpus_per_node;
    return there > 0 && needed > there ? needed - there : 0;
}

/* True while nothing has fitted. */
static bool try_it(struct search *search, const char *what, enum estimate_stage stage)
{
    struct fitting *fitting = search->fitting;
    struct arena *arena = &search->experiment->arena;
    struct estimate estimate;
    if (fitting->has_found || search->status != STATUS_OK || fitting->count == FITTING_TRIES_MAX)
        return false;
    search->status = estimate_memory(search->experiment, fitting->budget_bytes, false, &estimate);
    if (search->status != STATUS_OK)
        return false;
    struct fitting_try *one = &fitting->tries[fitting->count++];
    *one = (struct fitting_try){.what = what,
                                .settings = join(arena, search->sharding, search->levers),
                                .row = estimate.rows[stage],
                                .outside_bytes = estimate.outside_bytes};
    one->host_over_bytes = host_over_bytes(search->experiment, &one->row);
    one->fits = one->row.fits && !(one->host_over_bytes > 0);
    fitting->budget_bytes = estimate.budget_bytes;
    fitting->has_found = one->fits;
    return !one->fits;
}

static bool is_fsdp1(const struct experiment *experiment)
{
    return experiment->fsdp.api == API_FSDP1;
}

static const char *name_api(struct search *search, int api, const char *word)
{
    return search->experiment->fsdp.api == api
               ? ""
               : arena_printf(&search->experiment->arena, "fsdp.api=%s", word);
}

/* FSDP's two ways: whole from forward to backward, or gathered again. */
static void shard_fully(struct search *search, bool reshards)
{
    struct experiment *experiment = search->experiment;
    struct fsdp_config *fsdp = &experiment->fsdp;
    if (is_fsdp1(experiment)) {
        const int strategy = reshards ? SHARDING_FULL : SHARDING_GRAD_OP;
        search->sharding = fsdp->sharding_strategy == strategy
                               ? ""
                               : arena_printf(&experiment->arena, "fsdp.sharding_strategy=%s",
                                              reshards ? "full_shard" : "shard_grad_op");
        fsdp->sharding_strategy = strategy;
        return;
    }
    const char *api = name_api(search, API_FSDP2, "fsdp2");
    const bool is_set = api[0] == '\0' && (fsdp->reshard_after_forward > 0) == reshards;
    search->sharding =
        join(&experiment->arena, api,
             is_set ? ""
                    : arena_printf(&experiment->arena, "fsdp.reshard_after_forward=%s",
                                   reshards ? "true" : "false"));
    fsdp->api = API_FSDP2;
    fsdp->reshard_after_forward = reshards ? 1 : 0;
}

static void try_stages(struct search *search)
{
    static const struct {
        int api;
        const char *word;
        enum estimate_stage stage;
    } stages[] = {{API_DDP, "ddp", STAGE_DDP},
                  {API_ZERO1, "zero1", STAGE_ZERO1},
                  {API_ZERO2, "zero2", STAGE_ZERO2}};
    const struct fsdp_config configured = search->experiment->fsdp;
    const int count = search->experiment->mesh.dp_shard > 1 ? 3 : 1;
    for (int i = 0; i < count; i++) {
        search->sharding = name_api(search, stages[i].api, stages[i].word);
        if (!try_it(search, stages[i].word, stages[i].stage))
            return;
    }
    if (search->experiment->mesh.dp_shard == 1)
        return;
    const char *name = is_fsdp1(search->experiment) ? "fsdp1" : "fsdp2";
    struct arena *arena = &search->experiment->arena;
    shard_fully(search, false);
    if (!try_it(search, arena_printf(arena, "zero3 (%s), kept gathered", name), STAGE_ZERO3))
        return;
    search->experiment->fsdp = configured;
    shard_fully(search, true);
    (void)try_it(search, arena_printf(arena, "zero3 (%s)", name), STAGE_ZERO3);
}

static bool pull(struct search *search, const char *what, const char *setting)
{
    const enum estimate_stage stage =
        search->experiment->mesh.dp_shard > 1 ? STAGE_ZERO3 : STAGE_DDP;
    search->levers = join(&search->experiment->arena, search->levers, setting);
    return try_it(search, what, stage);
}

static void try_loss(struct search *search)
{
    struct loss_config *loss = &search->experiment->train.loss;
    if (search->experiment->model_config.family == FAMILY_ABSTRACT || loss->chunks > 1 ||
        loss->impl == LOSS_LINEAR || loss->shifted || loss->keeps_logits != OUTPUT_DROPPED ||
        loss->metrics > 0)
        return;
    loss->chunks = LOSS_CHUNKS;
    (void)pull(search, "+ loss in 8 chunks", "train.loss.chunks=8");
}

static void try_checkpointing(struct search *search)
{
    struct checkpointing_config *checkpointing = &search->experiment->train.checkpointing;
    const char *before = search->levers;
    if (search->experiment->model_config.family == FAMILY_ABSTRACT)
        return;
    if (checkpointing->policy == CHECKPOINT_NONE) {
        checkpointing->policy = CHECKPOINT_SELECTIVE_OP;
        if (!pull(search, "+ activation_checkpointing: selective",
                  "train.activation_checkpointing=selective"))
            return;
    }
    if (checkpointing->policy == CHECKPOINT_FULL && checkpointing->every == 1)
        return;
    search->levers = before;
    checkpointing->policy = CHECKPOINT_FULL;
    checkpointing->every = 1;
    (void)pull(search, "+ activation_checkpointing: full", "train.activation_checkpointing=full");
}

static int64_t smallest_divisor(int64_t number)
{
    int64_t divisor = 2;
    while (number % divisor != 0)
        divisor++;
    return divisor;
}

/* The batch of a step stays: fewer sequences at once, more often. */
static void try_micro_batch(struct search *search)
{
    struct train_config *train = &search->experiment->train;
    struct arena *arena = &search->experiment->arena;
    const char *before = search->levers;
    while (train->micro_batch > 1) {
        const int64_t divisor = smallest_divisor(train->micro_batch);
        train->micro_batch /= divisor;
        train->grad_accum *= divisor;
        search->levers = before;
        if (!pull(search, arena_printf(arena, "+ micro_batch: %" PRId64, train->micro_batch),
                  arena_printf(arena, "train.micro_batch=%" PRId64 " train.grad_accum=%" PRId64,
                               train->micro_batch, train->grad_accum)))
            return;
    }
}

static void try_offload(struct search *search)
{
    struct experiment *experiment = search->experiment;
    if (experiment->fsdp.cpu_offload.params || experiment->mesh.dp_shard == 1)
        return;
    experiment->fsdp.cpu_offload.params = true;
    (void)pull(search, "+ cpu_offload", "fsdp.cpu_offload.params=true");
}

enum status fitting_find(struct experiment *experiment, double budget_bytes,
                         struct fitting *fitting)
{
    const struct train_config train = experiment->train;
    const struct fsdp_config fsdp = experiment->fsdp;
    struct search search = {
        .experiment = experiment, .fitting = fitting, .sharding = "", .levers = ""};
    *fitting = (struct fitting){.budget_bytes = budget_bytes};
    try_stages(&search);
    try_loss(&search);
    try_checkpointing(&search);
    try_micro_batch(&search);
    try_offload(&search);
    experiment->train = train;
    experiment->fsdp = fsdp;
    return search.status == STATUS_OK ? experiment_build_model(experiment) : search.status;
}
