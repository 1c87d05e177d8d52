/*
 * run/experiment_tensor.c: tensor parallelism: its keys, what goes with it, the groups of a mesh.
 *
 * Ranks are numbered with tp innermost: neighbours share a model, those tp apart a shard of the
 * data-parallel dimensions. 16 GPUs, tp 2 x dp_shard 4 x dp_replicate 2: tensor groups {2, stride
 * 1}, shard groups {4, stride 2}, replica groups {2, stride 8}.
 */
#include <inttypes.h>

#include "run/experiment_private.h"

static const struct choice style_choices[] = {
    {"dtensor", TENSOR_PARALLEL_DTENSOR,
     "parallelize_module (torchtitan): a part's input is gathered once and kept"},
    {"megatron", TENSOR_PARALLEL_MEGATRON,
     "Megatron-LM, flash-attention, InternEvo: each column-parallel layer reduces the gradient of "
     "its input beside that of its weight"},
    {0}};

static const struct field tensor_parallel_fields[] = {
    {.key = "style",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct tensor_parallel_config, style),
     .default_text = "dtensor",
     .choices = style_choices,
     .help = "whose: which tensors are exchanged when, and which are kept"},
    {.key = "sequence_parallel",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct tensor_parallel_config, sequence_parallel),
     .default_text = "true",
     .help = "norms, dropout and residuals on a part of the sequence: all-gather and "
             "reduce-scatter instead of all-reduce"},
    {.key = "loss_parallel",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct tensor_parallel_config, loss_parallel),
     .default_text = "true",
     .help = "the loss of logits that stay split over the vocabulary"},
    {.key = "async",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct tensor_parallel_config, async),
     .default_text = "false",
     .help = "torchtitan's async TP: exchanges in pieces beside the products that read or write "
             "them"},
    {.key = "gather_heads",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct tensor_parallel_config, gather_heads),
     .default_text = "false",
     .help = "queries and keys are gathered before their norms, and each rank norms, turns and "
             "repeats all of them: torchtitan's Qwen3 until October 2025 (issue 1867)"},
    {0}};

const struct field_table tensor_parallel_table = {.name = "tensor_parallel",
                                                  .help = "how 'mesh.tp' is done",
                                                  .fields = tensor_parallel_fields,
                                                  .struct_bytes =
                                                      sizeof(struct tensor_parallel_config)};

struct tensor_parallel_shape tensor_parallel_shape_of(const struct experiment *experiment)
{
    const struct tensor_parallel_config *config = &experiment->train.tensor_parallel;
    if (experiment->mesh.tp == 1)
        return (struct tensor_parallel_shape){0};
    return (struct tensor_parallel_shape){.ranks = experiment->mesh.tp,
                                          .style = (enum tensor_parallel_style)config->style,
                                          .has_sequence = config->sequence_parallel,
                                          .has_loss = config->loss_parallel,
                                          .is_async = config->async,
                                          .gathers_heads = config->gather_heads};
}

/* Keys that mean nothing without it. */
static void check_unused(struct config *config)
{
    for (const struct field *field = tensor_parallel_fields; field->key != NULL; field++) {
        const char *path = arena_printf(config->arena, "train.tensor_parallel.%s", field->key);
        if (config_is_set(config, path))
            config_error(config, path, "it goes with 'mesh.tp: 2' or more",
                         "'%s' means nothing without tensor parallelism", field->key);
    }
}

void tensor_parallel_check(struct experiment *experiment)
{
    struct config *config = &experiment->config;
    const struct train_config *train = &experiment->train;
    const struct tensor_parallel_config *tensor = &train->tensor_parallel;
    if (experiment->mesh.tp == 1) {
        check_unused(config);
        return;
    }
    const struct {
        bool is_wrong;
        const char *path, *hint, *text;
    } rows[] = {
        {tensor->async && !(tensor->sequence_parallel && tensor->style == TENSOR_PARALLEL_DTENSOR),
         "train.tensor_parallel.async", "it goes with 'style: dtensor' and sequence_parallel",
         "'async' cuts gathers and reduce-scatters into pieces, which there are none of"},
        {tensor->gather_heads && tensor->style != TENSOR_PARALLEL_DTENSOR,
         "train.tensor_parallel.gather_heads", "it goes with 'style: dtensor'",
         "only DTensor gathers what a module wants whole"},
        {train->microbatch_costs.count > 0, "train.microbatch_costs", "'mesh.tp: 1'",
         "'microbatch_costs' of single GPUs have no meaning where several share a microbatch"},
        {train->lora.rank > 0 && train->lora.quantization != QUANTIZE_NONE,
         "train.lora.quantization", "none, or 'mesh.tp: 1'",
         "weights in 4 bits cannot be cut by tensor parallelism"},
        {train->checkpointing.policy == CHECKPOINT_PER_CHILD, "train.activation_checkpointing",
         "full, selective or none", "'per_child' cannot be simulated yet with tensor parallelism"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_wrong)
            config_error(config, rows[i].path, rows[i].hint, "%s", rows[i].text);
}

enum status tensor_parallel_check_cut(struct experiment *experiment,
                                      const struct train_shape *shape)
{
    const char *text = model_cut_refusal(&experiment->arena, &experiment->model_config, shape);
    if (text == NULL)
        return STATUS_OK;
    config_error(&experiment->config, "mesh.tp", "another 'tp', or 1", "%s", text);
    return STATUS_INPUT;
}

static struct layout size_of(const struct experiment *experiment)
{
    return (struct layout){.hosts = experiment->nodes,
                           .gpus_per_host = experiment->gpus_per_node,
                           .ranks = experiment->n_gpus};
}

/* `ranks` of them, `stride` apart, named by a key of the configuration. */
static enum status find_group(struct experiment *experiment, const char *path, int64_t ranks,
                              int64_t stride, struct group *group)
{
    const struct layout size = size_of(experiment);
    if (group_along(&size, ranks, stride, group))
        return STATUS_OK;
    if (stride == 1)
        config_error(&experiment->config, path, "a divisor of the GPUs of a host, or whole hosts",
                     "groups of %" PRId64 " GPUs do not tile hosts of %" PRId64, ranks,
                     experiment->gpus_per_node);
    else
        config_error(&experiment->config, path, "a divisor of the GPUs of a host, or whole hosts",
                     "groups of %" PRId64 " GPUs, each 'tp: %" PRId64
                     "' apart, do not tile hosts of %" PRId64,
                     ranks, experiment->mesh.tp, experiment->gpus_per_node);
    return STATUS_INPUT;
}

enum status mesh_groups_find(struct experiment *experiment, struct mesh_groups *groups)
{
    const struct mesh_config *mesh = &experiment->mesh;
    const struct layout size = size_of(experiment);
    const int64_t between = experiment->fsdp.reshard_after_forward;
    const int64_t secondary =
        experiment->fsdp.api == API_ZERO3 ? experiment->zero.hpz_partition_size : 1;
    *groups = (struct mesh_groups){.post_forward = {.ranks = 1}, .secondary = {.ranks = 1}};
    enum status status = find_group(experiment, "mesh.tp", mesh->tp, 1, &groups->tensor);
    if (status == STATUS_OK)
        status = find_group(experiment, "mesh.dp_shard", mesh->dp_shard, mesh->tp, &groups->shard);
    if (status == STATUS_OK && between > 1)
        status = find_group(experiment, "fsdp.reshard_after_forward", between, mesh->tp,
                            &groups->post_forward);
    if (status == STATUS_OK && secondary > 1)
        status = find_group(experiment, "zero.zero_hpz_partition_size", secondary, mesh->tp,
                            &groups->secondary);
    if (status != STATUS_OK)
        return status;
    /* What neighbours tile, those a stride apart tile. */
    BUG_IF(!group_along(&size, mesh->dp_replicate, mesh->tp * mesh->dp_shard, &groups->replicate));
    if (mesh->tp == 1)
        groups->data = (struct group){.ranks = experiment->n_gpus,
                                      .hosts = experiment->nodes,
                                      .ranks_per_host = experiment->gpus_per_node};
    else
        BUG_IF(!group_along(&size, mesh->dp_replicate * mesh->dp_shard, mesh->tp, &groups->data));
    return STATUS_OK;
}
