/* run/experiment_frozen.c: what of `train.frozen` has a meaning for this model and this policy. */
#include "model/module_name.h"
#include "run/experiment_private.h"

void frozen_check(struct experiment *experiment)
{
    const struct train_config *train = &experiment->train;
    const int api = experiment->fsdp.api;
    const bool is_encoder_decoder = experiment->model_config.type == TYPE_T5;
    const bool is_abstract = experiment->model_config.family == FAMILY_ABSTRACT;
    const struct {
        bool is_wrong;
        const char *hint, *text;
    } rows[] = {
        {api != API_FSDP2 && api != API_FSDP1, "'api: fsdp2' or 'api: fsdp1' so far",
         "'frozen' cannot be simulated yet with this api"},
        {is_abstract, "it needs a transformer",
         "of an abstract unit's backward it is not known what its weights' gradients cost"},
        {is_encoder_decoder, "a model of one stack",
         "'frozen' cannot be simulated yet for encoder and decoder"},
        {train->lora.rank > 0, "leave it out: adapters freeze all the rest",
         "'frozen' and 'lora' together mean nothing"},
        {train->float8 != FLOAT8_NONE, "'float8: none'",
         "'float8' and 'frozen' together cannot be simulated yet"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (train->frozen.count > 0 && rows[i].is_wrong)
            config_error(&experiment->config, "train.frozen", rows[i].hint, "%s", rows[i].text);
}

static bool matches(const struct model *model, const char *pattern)
{
    for (int32_t i = 0; i < model->module_count; i++)
        if (model->kinds[model->modules[i].kind_idx].role != MODULE_LOSS &&
            module_name_matches(model->modules[i].name, pattern))
            return true;
    return false;
}

/* "embed_tokens, layers.0 to layers.31, norm, lm_head". */
static const char *known_modules(struct experiment *experiment)
{
    const struct model *model = experiment->model;
    struct arena *arena = &experiment->arena;
    const char *known = "modules are";
    for (int32_t i = 0; i < model->module_count; i++) {
        const enum module_role role = model->kinds[model->modules[i].kind_idx].role;
        const bool is_block = role == MODULE_BLOCK;
        const bool is_again =
            is_block && i > 0 && model->kinds[model->modules[i - 1].kind_idx].role == MODULE_BLOCK;
        const bool is_last = is_again && i + 1 < model->module_count &&
                             model->kinds[model->modules[i + 1].kind_idx].role != MODULE_BLOCK;
        if (is_last)
            known = arena_printf(arena, "%s to %s", known, model->modules[i].name);
        else if (!is_again && role != MODULE_LOSS)
            known = arena_printf(arena, "%s%s %s", known, i > 0 ? "," : "", model->modules[i].name);
    }
    return arena_printf(arena, "%s; layers.* and layers.0-3 are accepted too", known);
}

/* Tied weights are one tensor. */
static void check_tied(struct experiment *experiment)
{
    const struct model *model = experiment->model;
    const char *const *patterns = experiment->train.frozen.items;
    bool is_frozen[2] = {false, false};
    for (int32_t i = 0; i < model->module_count; i++) {
        const enum module_role role = model->kinds[model->modules[i].kind_idx].role;
        for (int64_t k = 0; k < experiment->train.frozen.count; k++)
            if ((role == MODULE_EMBEDDING || role == MODULE_HEAD) &&
                module_name_matches(model->modules[i].name, patterns[k]))
                is_frozen[role == MODULE_HEAD] = true;
    }
    if (model->is_tied && is_frozen[0] != is_frozen[1])
        config_error(&experiment->config, "train.frozen", "name both, or neither",
                     "embedding and head share weights, so they are frozen together");
}

enum status frozen_check_modules(struct experiment *experiment)
{
    const struct config_list *frozen = &experiment->train.frozen;
    const char *const *patterns = frozen->items;
    const int32_t errors_before = experiment->diag->error_count;
    for (int64_t i = 0; i < frozen->count; i++)
        if (!matches(experiment->model, patterns[i]))
            config_error(&experiment->config, "train.frozen", known_modules(experiment),
                         "model '%s' has no module '%s'", experiment->model->name, patterns[i]);
    check_tied(experiment);
    if (frozen->count > 0 && experiment->model->frozen_parameters == experiment->model->parameters)
        config_error(&experiment->config, "train.frozen", "leave something to train",
                     "every parameter is frozen");
    return experiment->diag->error_count == errors_before ? STATUS_OK : STATUS_INPUT;
}
