/* model/model_tree.c: sums over kinds, parts and parameters. */
#include "model/model_tree.h"

#include <string.h>

#include "model/network.h"

struct builder {
    struct arena *arena;
    const struct model *model;
    struct model_tree *tree;
    int32_t depth;
    double flop_per_token; /* of the model, forward */
};

static struct model_tree_row *add_row(struct builder *builder, struct model_tree_row row)
{
    const struct model *model = builder->model;
    struct model_tree_row *added = ARENA_PUSH(builder->arena, builder->tree);
    *added = row;
    if (model->parameters > 0)
        added->parameter_share = (double)row.parameters / (double)model->parameters;
    if (builder->flop_per_token > 0.0)
        added->flop_share = row.flop_per_token / builder->flop_per_token;
    return added;
}

/* "self_attn" of "self_attn.q_proj.weight". */
static bool belongs(const struct param *param, const char *part)
{
    size_t length = strlen(part);
    return length > 0 && strncmp(param->name, part, length) == 0 && param->name[length] == '.';
}

static void add_param(struct builder *builder, const struct param *param, int32_t depth,
                      int64_t copies)
{
    if (depth > builder->depth)
        return;
    int64_t numel = param->dim0 * param->rest * copies;
    add_row(builder, (struct model_tree_row){.name = param->name,
                                             .depth = depth,
                                             .count = copies,
                                             .parameters = numel,
                                             .active_parameters = numel});
}

static void add_part(struct builder *builder, const struct module_kind *kind,
                     const struct module_part *part, int64_t copies)
{
    double tokens = (double)builder->model->tokens;
    int64_t numel = 0;
    for (int32_t i = 0; i < kind->param_count; i++)
        if (belongs(&kind->params[i], part->name))
            numel += kind->params[i].dim0 * kind->params[i].rest;
    int64_t idle = strcmp(part->name, "mlp") == 0 ? kind->numel - kind->active_numel : 0;
    if (numel == 0 && part->saved_bytes == 0)
        return;
    add_row(builder,
            (struct model_tree_row){.name = part->name[0] != '\0' ? part->name : "residual",
                                    .depth = 2,
                                    .count = copies,
                                    .parameters = numel * copies,
                                    .active_parameters = (numel - idle) * copies,
                                    .flop_per_token = part->model_flop * (double)copies / tokens,
                                    .saved_bytes_per_token =
                                        (double)part->saved_bytes * (double)copies / tokens});
    for (int32_t i = 0; i < kind->param_count; i++)
        if (belongs(&kind->params[i], part->name))
            add_param(builder, &kind->params[i], 3, copies);
}

static void add_kind(struct builder *builder, int32_t kind_idx)
{
    const struct model *model = builder->model;
    const struct module_kind *kind = &model->kinds[kind_idx];
    double tokens = (double)model->tokens;
    int64_t copies = 0;
    for (int32_t i = 0; i < model->module_count; i++)
        copies += model->modules[i].kind_idx == kind_idx;
    if (kind->role == MODULE_LOSS && kind->saved_bytes == 0)
        return;
    add_row(builder,
            (struct model_tree_row){.name = kind->label,
                                    .depth = 1,
                                    .count = copies,
                                    .parameters = kind->numel * copies,
                                    .active_parameters = kind->active_numel * copies,
                                    .flop_per_token = kind->model_flop * (double)copies / tokens,
                                    .saved_bytes_per_token =
                                        (double)kind->saved_bytes * (double)copies / tokens});
    if (builder->depth < 2)
        return;
    for (int32_t i = 0; i < kind->part_count; i++)
        add_part(builder, kind, &kind->parts[i], copies);
    if (kind->part_count == 0 && kind->param_count > 1)
        for (int32_t i = 0; i < kind->param_count; i++)
            add_param(builder, &kind->params[i], 2, copies);
}

void model_tree_build(struct arena *arena, const struct model *model, int32_t depth,
                      struct model_tree *tree)
{
    struct builder builder = {.arena = arena, .model = model, .tree = tree, .depth = depth};
    double tokens = (double)model->tokens, saved = 0.0;
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        builder.flop_per_token += kind->model_flop / tokens;
        saved += (double)kind->saved_bytes / tokens;
    }
    add_row(&builder, (struct model_tree_row){.name = model->name,
                                              .count = 1,
                                              .parameters = model->parameters,
                                              .active_parameters = model->active_parameters,
                                              .flop_per_token = builder.flop_per_token,
                                              .saved_bytes_per_token = saved});
    for (int32_t i = 0; depth > 0 && i < model->kind_count; i++)
        add_kind(&builder, i);
}

int64_t model_show_seq_len(const struct model_config *config)
{
    enum { USUAL_SEQ_LEN = 2048 };
    struct network net;
    if (config->family == FAMILY_ABSTRACT)
        return USUAL_SEQ_LEN;
    network_of(config, &net);
    bool is_bounded = net.positions > 0 && net.positions < USUAL_SEQ_LEN;
    return is_bounded || net.kind == NETWORK_VISION ? net.positions : USUAL_SEQ_LEN;
}
