/*
 * study/advice_settings.c: the settings that are worth a try. A row needs no condition: what means
 * nothing for the policy is refused when it is loaded, what is in force already changes nothing.
 * To add one: a row.
 */
#include <inttypes.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "study/advice_private.h"

static const struct trial table[] = {
    /* any policy */
    {.words = "torch.compile", .texts = {"train.compile=true"}},
    {.words = "no torch.compile", .texts = {"train.compile=false"}},
    {.words = "hand-fused kernels", .texts = {"train.fused_kernels=true"}},
    {.words = "fused optimizer", .texts = {"train.optimizer.impl=fused"}},
    {.words = "keep all activations", .texts = {"train.activation_checkpointing=none"}},
    {.words = "selective checkpointing", .texts = {"train.activation_checkpointing=selective"}},
    {.words = "checkpoint every second block",
     .texts = {"train.activation_checkpointing={every: 2}"}},
    {.words = "checkpoint every block", .texts = {"train.activation_checkpointing=full"}},
    {.words = "FlashAttention-2", .texts = {"train.attention=fa2"}},
    {.words = "FlashAttention-3", .texts = {"train.attention=fa3"}},
    {.words = "cuDNN attention", .texts = {"train.attention=cudnn"}},
    {.words = "fused loss", .texts = {"train.loss.impl=fused"}},
    {.words = "loss fused with the head", .texts = {"train.loss.impl=linear"}},
    {.words = "experts grouped", .texts = {"train.experts=grouped"}},
    {.words = "reduce gradients in bf16 (coarser sums)",
     .texts = {"train.precision.reduce_dtype=bf16"}},
    {.words = "reduce gradients in the last microbatch only",
     .texts = {"fsdp.requires_gradient_sync=last"}},
    /* fsdp2 */
    {.words = "keep parameters gathered from forward to backward",
     .texts = {"fsdp.reshard_after_forward=false"}},
    {.words = "free parameters after forward", .texts = {"fsdp.reshard_after_forward=true"}},
    {.words = "free parameters behind the last backward only",
     .texts = {"fsdp.reshard_after_backward=last"}},
    {.words = "prefetch one unit in forward", .texts = {"fsdp.forward_prefetch=1"}},
    {.words = "prefetch two units in forward", .texts = {"fsdp.forward_prefetch=2"}},
    {.words = "prefetch two units in backward", .texts = {"fsdp.backward_prefetch=2"}},
    {.words = "two reduce-scatter buffers", .texts = {"fsdp.reduce_scatter_buffers=2"}},
    {.words = "reduce-scatter on a communicator of its own",
     .texts = {"fsdp.separate_reduce_scatter_communicator=true"}},
    {.words = "do not gather the embedding in backward",
     .texts = {"fsdp.unshard_in_backward=false"}},
    {.words = "units as torchtitan wraps them", .texts = {"fsdp.wrap=torchtitan"}},
    {.words = "all-reduce in the last microbatch only", .texts = {"fsdp.defer_all_reduce=true"}},
    {.words = "states on the GPU", .texts = {"fsdp.cpu_offload=false"}},
    {.words = "states in the memory of the host", .texts = {"fsdp.cpu_offload=true"}},
    {.words = "segments of memory that grow",
     .texts = {"train.allocator.expandable_segments=true"}},
    {.words = "all cores of the host for the optimizer",
     .texts = {"train.optimizer.omp_num_threads=null"}},
    /* fsdp1 */
    {.words = "shard gradients and states only", .texts = {"fsdp.sharding_strategy=shard_grad_op"}},
    {.words = "shard parameters too", .texts = {"fsdp.sharding_strategy=full_shard"}},
    {.words = "shard inside each host, replicate between hosts",
     .texts = {"fsdp.sharding_strategy=hybrid_shard"}},
    {.words = "backward prefetch before the gradients", .texts = {"fsdp.backward_prefetch=pre"}},
    {.words = "no limit on all-gathers", .texts = {"fsdp.limit_all_gathers=false"}},
    {.words = "flat parameters only", .texts = {"fsdp.use_orig_params=false"}},
    /* ddp */
    {.words = "buckets of 100 MiB", .texts = {"ddp.bucket_cap_mb=100"}},
    {.words = "gradients as views of buckets", .texts = {"ddp.gradient_as_bucket_view=true"}},
    {.words = "no search for unused parameters", .texts = {"ddp.find_unused_parameters=false"}},
    {.words = "a static graph", .texts = {"ddp.static_graph=true"}},
    {.words = "no_sync but for the last microbatch", .texts = {"ddp.no_sync=true"}},
    /* zero */
    {.words = "communication beside backward", .texts = {"zero.overlap_comm=true"}},
    {.words = "optimizer on the GPU", .texts = {"zero.offload_optimizer=none"}},
    {.words = "optimizer on the host", .texts = {"zero.offload_optimizer=cpu"}},
    {.words = "parameters on the GPU", .texts = {"zero.offload_param=none"}},
    {.words = "buckets of 1e8 elements", .texts = {"zero.reduce_bucket_size=100000000"}},
    {.words = "prefetch of 2e8 elements", .texts = {"zero.prefetch_bucket_size=200000000"}},
    {.words = "parameters up to 1e6 elements kept whole",
     .texts = {"zero.param_persistence_threshold=1000000"}},
    {.words = "parameters not released between forward and backward",
     .texts = {"zero.max_live_parameters=1000000000000", "zero.max_reuse_distance=1000000000000"}},
};

static void add(struct arena *arena, struct trial_list *list, const char *words, const char *text,
                bool is_hardware)
{
    *ARENA_PUSH(arena, list) =
        (struct trial){.words = words, .texts = {text}, .is_hardware = is_hardware};
}

static void add_words(struct arena *arena, struct trial_list *list, int64_t count,
                      const char *words, const char *key)
{
    add(arena, list, arena_printf(arena, "%" PRId64 " %s", count, words),
        arena_printf(arena, "%s=%" PRId64, key, count), false);
}

/* The time of an abstract model's units is given, whatever the batch. */
static void add_batches(struct arena *arena, const struct experiment *experiment,
                        struct trial_list *list)
{
    const int64_t micro = experiment->train.micro_batch;
    if (experiment->model_config.family == FAMILY_ABSTRACT)
        return;
    add_words(arena, list, 4 * micro, "sequences at a time (larger batch)", "train.micro_batch");
    add_words(arena, list, 2 * micro, "sequences at a time (larger batch)", "train.micro_batch");
    if (micro % 2 == 0)
        add_words(arena, list, micro / 2, "sequences at a time (smaller batch)",
                  "train.micro_batch");
}

/* The GPUs that no longer share a model take batches of their own. */
static void add_tensor_parallel(struct arena *arena, const struct experiment *experiment,
                                struct trial_list *list)
{
    const int64_t tp = experiment->mesh.tp;
    if (tp % 2 != 0)
        return;
    *ARENA_PUSH(arena, list) = (struct trial){
        .words = tp > 2
                     ? arena_printf(arena, "%" PRId64 " GPUs of tensor parallelism (larger batch)",
                                    tp / 2)
                     : "no tensor parallelism (larger batch)",
        .texts = {arena_printf(arena, "mesh.tp=%" PRId64, tp / 2), "mesh.dp_shard=-1"}};
}

/* A larger batch or fewer collectives by what the run has. */
static void add_sizes(struct arena *arena, const struct experiment *experiment,
                      struct trial_list *list)
{
    add_batches(arena, experiment, list);
    add_tensor_parallel(arena, experiment, list);
    add_words(arena, list, 2 * experiment->train.grad_accum, "microbatches a step (larger batch)",
              "train.grad_accum");
    if (experiment->nodes == 1)
        return;
    add(arena, list, "shard inside each host, replicate between hosts",
        arena_printf(arena, "mesh={dp_replicate: %" PRId64 "}", experiment->nodes), false);
    if (experiment->nodes % 2 == 0 && experiment->nodes > 2)
        add(arena, list, "shard over two hosts, replicate between",
            arena_printf(arena, "mesh={dp_replicate: %" PRId64 "}", experiment->nodes / 2), false);
    add(arena, list, "after forward, keep parameters sharded inside a host",
        arena_printf(arena, "fsdp.reshard_after_forward=%" PRId64, experiment->gpus_per_node),
        false);
}

static const char *doubled(struct arena *arena, const char *key, double bytes_per_s)
{
    char text[48];
    return arena_printf(arena, "%s=%s", key,
                        format_quantity(text, sizeof(text), 2 * bytes_per_s, DIM_BANDWIDTH));
}

/* `ideal: host` beside what is ideal already. */
static const char *ideal_host(struct arena *arena, const struct experiment *experiment)
{
    const char *const *words = experiment->simulate.ideal_words.items;
    const char *text = "host";
    for (int64_t i = 0; i < experiment->simulate.ideal_words.count; i++) {
        if (!text_equal(words[i], "host"))
            text = arena_printf(arena, "%s, %s", text, words[i]);
    }
    return arena_printf(arena, "simulate.ideal=[%s]", text);
}

static void add_hardware(struct arena *arena, const struct experiment *experiment,
                         struct trial_list *list)
{
    const struct cluster *cluster = &experiment->cluster;
    if (experiment->nodes > 1 && cluster->nic_count > 0)
        add(arena, list, "NICs twice as fast",
            doubled(arena, "cluster.host.nics.bandwidth", cluster->nic_link.bytes_per_s), true);
    if (experiment->gpus_per_node > 1 && cluster->scale_up_link.bytes_per_s > 0)
        add(arena, list, "links between the GPUs of a host twice as fast",
            doubled(arena, "cluster.host.scale_up.bandwidth", cluster->scale_up_link.bytes_per_s),
            true);
    add(arena, list, "a host thread that costs nothing", ideal_host(arena, experiment), true);
}

struct trial_list trials_of(struct arena *arena, const struct experiment *experiment)
{
    struct trial_list list = {0};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        *ARENA_PUSH(arena, &list) = table[i];
    add_sizes(arena, experiment, &list);
    add_hardware(arena, experiment, &list);
    return list;
}
