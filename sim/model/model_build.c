/* model/model_build.c: judges the sizes, then leaves the building to the family. */
#include <inttypes.h>

#include "model/tensor_parallel.h"

/*
 * Saved bytes of all layers and the loss, in double: not less than what any policy keeps, so that
 * no count in bytes overflows.
 */
static double activation_estimate(const struct network *net, const struct train_shape *shape)
{
    int64_t decoder_seq_len =
        shape->decoder_seq_len > shape->seq_len ? shape->decoder_seq_len : shape->seq_len;
    double tokens = (double)decoder_seq_len * (double)shape->micro_batch;
    double element = (double)dtype_bytes(shape->compute_dtype);
    double widths = 24.0 * (double)net->h +
                    4.0 * (double)(2 * net->q + net->k + net->v + net->context) +
                    7.0 * (double)net->f + 7.0 * (double)net->shared_f +
                    (double)net->top_k * (2.0 * (double)net->h + 7.0 * (double)net->expert_f);
    double block = element * widths + 16.0 * (double)net->a + 8.0 * (double)net->experts + 64.0;
    bool is_eager = shape->attention == ATTENTION_EAGER || net->position == POSITION_RELATIVE;
    if (is_eager)
        block += 2.0 * (double)net->a * (double)decoder_seq_len * (2.0 * element + 5.0);
    return tokens *
           ((double)(net->layers + net->decoder_layers) * block + 14.0 * (double)net->vocab);
}

static enum status refuse(struct diag *diag, const char *hint, const char *text)
{
    diag_add(diag, DIAG_ERROR, NO_PLACE, hint, "%s", text);
    return STATUS_INPUT;
}

static enum status check_sizes(const struct model_config *config, const struct network *net,
                               const struct train_shape *shape, struct diag *diag)
{
    double tokens = (double)shape->seq_len * (double)shape->micro_batch;
    bool is_abstract = config->family == FAMILY_ABSTRACT;
    double parameters = is_abstract ? abstract_parameters_estimate(&config->abstract)
                                    : network_parameters_estimate(net);
    double activations =
        is_abstract ? abstract_saved_estimate(&config->abstract) : activation_estimate(net, shape);
    struct arena *arena = diag->arena;
    if (tokens > MODEL_MAX_TOKENS)
        return refuse(diag, "reduce seq_len or micro_batch",
                      arena_printf(arena, "%.3g tokens in one microbatch are too many", tokens));
    if (!(parameters <= MODEL_MAX_PARAMETERS))
        return refuse(diag, NULL,
                      arena_printf(arena, "a model of %.3g parameters is too large", parameters));
    if (!(activations <= MODEL_MAX_ACTIVATION_BYTES))
        return refuse(
            diag, "reduce seq_len or micro_batch",
            arena_printf(arena, "activations of %.3g bytes are too large to count", activations));
    return STATUS_OK;
}

/* A table of learned positions bounds the sequence; a picture is one. */
static enum status check_positions(const struct network *net, const struct train_shape *shape,
                                   struct diag *diag)
{
    struct arena *arena = diag->arena;
    if (net->position != POSITION_LEARNED)
        return STATUS_OK;
    if (net->kind == NETWORK_VISION && shape->seq_len != net->positions)
        return refuse(diag,
                      arena_printf(arena, "seq_len: %" PRId64 " (patches and one class token)",
                                   net->positions),
                      arena_printf(arena,
                                   "a picture of this model is %" PRId64 " tokens, not %" PRId64,
                                   net->positions, shape->seq_len));
    if (shape->seq_len > net->positions)
        return refuse(diag, "shorten seq_len, or give the model a longer table",
                      arena_printf(arena,
                                   "seq_len %" PRId64 " is longer than the model's %" PRId64
                                   " learned positions",
                                   shape->seq_len, net->positions));
    return STATUS_OK;
}

static void make_cooperative(struct kernel_list *list, const struct train_shape *shape)
{
    for (int32_t i = 0; i < list->count; i++) {
        struct kernel *kernel = &list->items[i];
        kernel->needs_all_sms |= kernel->kind == KERNEL_NORM;
        kernel->sm_margin = (int32_t)shape->norm_sm_margin;
    }
}

/* The modules are those of one rank, the totals those of the whole network. */
static void build_cut(struct arena *arena, const struct network *net,
                      const struct train_shape *shape, struct model *model)
{
    const struct network cut = tensor_parallel_cut(net, shape);
    struct train_shape alone = *shape;
    struct model whole = *model;
    alone.tensor_parallel = (struct tensor_parallel_shape){0};
    transformer_build(arena, net, &alone, &whole);
    transformer_build(arena, &cut, shape, model);
    struct model rank = *model;
    *model = whole;
    model->kinds = rank.kinds;
    model->kind_count = rank.kind_count;
    model->modules = rank.modules;
    model->module_count = rank.module_count;
    model->rank_parameters = rank.rank_parameters;
    model->rank_trained_parameters = rank.rank_trained_parameters;
    model->tensor_ranks = tensor_ranks(shape);
}

const char *model_cut_refusal(struct arena *arena, const struct model_config *config,
                              const struct train_shape *shape)
{
    struct network net;
    if (tensor_ranks(shape) == 1)
        return NULL;
    if (config->family == FAMILY_ABSTRACT)
        return "an abstract model has no layers that tensor parallelism could cut";
    network_of(config, &net);
    return tensor_parallel_refusal(arena, &net, shape);
}

enum status model_build(struct arena *arena, const struct model_config *config,
                        const struct train_shape *shape, struct model **model, struct diag *diag)
{
    struct network net = {0};
    enum status status = STATUS_OK;
    BUG_IF(shape->seq_len < 1 || shape->micro_batch < 1);
    BUG_IF(model_cut_refusal(arena, config, shape) != NULL);
    if (shape->compute_dtype == DTYPE_FP8)
        return refuse(diag, "accepted: fp32, bf16, fp16",
                      "'fp8' is not a dtype to keep activations in");
    bool is_abstract = config->family == FAMILY_ABSTRACT;
    if (!is_abstract)
        network_of(config, &net);
    status = check_sizes(config, &net, shape, diag);
    if (status == STATUS_OK && !is_abstract)
        status = check_positions(&net, shape, diag);
    if (status != STATUS_OK)
        return status;

    struct model *built = ARENA_NEW(arena, struct model);
    built->family = config->family;
    built->name = config->name;
    built->seq_len = shape->seq_len;
    built->tokens = shape->seq_len * shape->micro_batch;
    if (is_abstract)
        abstract_build(arena, &config->abstract, shape, built);
    else if (tensor_ranks(shape) > 1)
        build_cut(arena, &net, shape, built);
    else
        transformer_build(arena, &net, shape, built);
    for (int32_t i = 0; i < built->kind_count && shape->has_cooperative_norms; i++) {
        make_cooperative(&built->kinds[i].forward, shape);
        make_cooperative(&built->kinds[i].backward, shape);
        make_cooperative(&built->kinds[i].recompute, shape);
    }
    if (built->name == NULL)
        built->name = is_abstract ? "abstract" : model_type_word(net.type);
    *model = built;
    return STATUS_OK;
}

int64_t model_config_parameters(const struct model_config *config)
{
    struct network net;
    if (config->family == FAMILY_ABSTRACT)
        return abstract_parameters(&config->abstract);
    network_of(config, &net);
    return network_parameters(&net);
}

int64_t model_config_active_parameters(const struct model_config *config)
{
    struct network net;
    if (config->family == FAMILY_ABSTRACT)
        return abstract_parameters(&config->abstract);
    network_of(config, &net);
    return network_active_parameters(&net);
}
