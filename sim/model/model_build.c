/* model/model_build.c: judges the sizes, then leaves the building to the family. */
#include "model/model_private.h"

/* Saved bytes of all layers and the loss at their largest, in double. */
static double activation_estimate(const struct llama_dims *dims, const struct train_shape *shape)
{
    double tokens = (double)shape->seq_len * (double)shape->micro_batch;
    double element = (double)dtype_bytes(shape->compute_dtype);
    double block = element * (4.0 * (double)dims->h + 2.0 * (double)(dims->q + dims->k) +
                              4.0 * (double)dims->f) +
                   4.0 * (double)dims->a + 8.0;
    return tokens * ((double)dims->layers * block + 14.0 * (double)dims->vocab);
}

static enum status check_sizes(const struct model_config *config, const struct train_shape *shape,
                               struct diag *diag)
{
    double parameters = 0.0, activations = 0.0;
    double tokens = (double)shape->seq_len * (double)shape->micro_batch;
    if (config->family == FAMILY_LLAMA) {
        struct llama_dims dims = llama_dims_of(&config->llama);
        parameters = llama_parameters_estimate(&dims);
        activations = activation_estimate(&dims, shape);
    } else {
        parameters = abstract_parameters_estimate(&config->abstract);
        activations = abstract_saved_estimate(&config->abstract);
    }
    if (tokens > MODEL_MAX_TOKENS) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, "reduce seq_len or micro_batch",
                 "%.3g tokens in one microbatch are too many", tokens);
        return STATUS_INPUT;
    }
    if (!(parameters <= MODEL_MAX_PARAMETERS)) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, NULL, "a model of %.3g parameters is too large",
                 parameters);
        return STATUS_INPUT;
    }
    if (!(activations <= MODEL_MAX_ACTIVATION_BYTES)) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, "reduce seq_len or micro_batch",
                 "activations of %.3g bytes are too large to count", activations);
        return STATUS_INPUT;
    }
    return STATUS_OK;
}

enum status model_build(struct arena *arena, const struct model_config *config,
                        const struct train_shape *shape, struct model **model, struct diag *diag)
{
    BUG_IF(shape->seq_len < 1 || shape->micro_batch < 1);
    if (shape->compute_dtype == DTYPE_FP8) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, "accepted: fp32, bf16, fp16",
                 "'fp8' is not a dtype to keep activations in");
        return STATUS_INPUT;
    }
    enum status status = check_sizes(config, shape, diag);
    if (status != STATUS_OK)
        return status;

    struct model *built = ARENA_NEW(arena, struct model);
    built->family = config->family;
    built->name = config->name;
    built->seq_len = shape->seq_len;
    built->tokens = shape->seq_len * shape->micro_batch;
    if (config->family == FAMILY_LLAMA) {
        struct llama_dims dims = llama_dims_of(&config->llama);
        llama_build(arena, &dims, shape, built);
    } else {
        abstract_build(arena, &config->abstract, shape, built);
    }
    if (built->name == NULL)
        built->name = config->family == FAMILY_LLAMA ? "llama" : "abstract";
    *model = built;
    return STATUS_OK;
}

int64_t model_config_parameters(const struct model_config *config)
{
    if (config->family == FAMILY_ABSTRACT)
        return abstract_parameters(&config->abstract);
    struct llama_dims dims = llama_dims_of(&config->llama);
    return llama_parameters(&dims);
}
