/*
 * model/transformer.c: the list of modules of a transformer, and its totals.
 *
 * Blocks that differ (experts or not, windowed or not, checkpointed or not) are kinds of their own;
 * a stack of them is a list of kind numbers.
 */
#include <string.h>

#include "model/block.h"
#include "model/module_name.h"
#include "model/outer.h"

/* Of a module: trained, frozen, or frozen with all before it, so that backward ends behind it. */
enum training { TRAINING, TRAINING_FROZEN, TRAINING_UNREACHED, TRAINING_COUNT };

struct build {
    struct arena *arena;
    const struct network *net;
    const struct train_shape *shape;
    struct model *model;
    struct {
        struct module_kind *items;
        int32_t count, capacity;
    } kinds;
    /* By training, experts, window, checkpointed, first; 0: not made. */
    int32_t block_kinds[TRAINING_COUNT][2][2][2][2];
    struct train_shape frozen_shape; /* that of adapters on nothing: no weight has a gradient */
    struct outer frozen_outer;
    bool is_reached; /* by backward: a module before is trained */
    double unreached_flop_per_token;
};

static struct module_kind *new_kind(struct build *build, int32_t *kind_idx)
{
    *kind_idx = build->kinds.count;
    return ARENA_PUSH(build->arena, &build->kinds);
}

static void add_module(struct build *build, int32_t kind_idx, const char *name)
{
    struct model *model = build->model;
    model->modules[model->module_count++] = (struct module){.kind_idx = kind_idx, .name = name};
}

static enum training training_of(struct build *build, const char *name)
{
    const struct config_list *frozen = &build->shape->frozen;
    const char *const *patterns = frozen->items;
    for (int64_t i = 0; i < frozen->count; i++)
        if (module_name_matches(name, patterns[i]))
            return build->is_reached ? TRAINING_FROZEN : TRAINING_UNREACHED;
    build->is_reached = true;
    return TRAINING;
}

/* Marks what a built kind trains; of one that backward does not reach nothing is kept. */
static void freeze(struct module_kind *kind, enum training training)
{
    for (int32_t i = 0; i < kind->param_count; i++) {
        kind->params[i].is_frozen = true;
        kind->frozen_numel += kind->params[i].dim0 * kind->params[i].rest;
        kind->frozen_count++;
    }
    if (training != TRAINING_UNREACHED)
        return;
    kind->is_unreached = true;
    kind->backward = (struct kernel_list){0};
    kind->recompute = (struct kernel_list){0};
    kind->is_recomputed = false;
    kind->recompute_flop = 0;
    kind->saved_bytes = kind->recompute_saved_bytes = kind->backward_temp_bytes = 0;
}

struct stack {
    const char *prefix; /* "layers" */
    int64_t count;
    int64_t seq_len, cross_seq_len;
    bool is_causal, has_cross;
};

static const char *block_label(const struct stack *stack, bool is_moe, bool has_window)
{
    static const char *const labels[2][2] = {{"block", "block.window"},
                                             {"block.experts", "block.experts.window"}};
    if (stack->has_cross)
        return "decoder.block";
    return stack->is_causal ? labels[is_moe][has_window] : "encoder.block";
}

static bool is_checkpointed(const struct build *build, int64_t layer)
{
    const struct train_shape *shape = build->shape;
    if (shape->checkpointing == CHECKPOINT_NONE)
        return false;
    return shape->checkpointing != CHECKPOINT_EVERY || shape->checkpoint_every <= 1 ||
           (layer + 1) % shape->checkpoint_every == 0;
}

static int32_t block_kind(struct build *build, const struct stack *stack, int64_t layer,
                          enum training training)
{
    const struct network *net = build->net;
    bool is_moe = net->experts > 0 && layer >= net->dense_layers;
    bool has_window =
        stack->is_causal && network_layer_has_window(net, layer) && net->window < stack->seq_len;
    bool is_saved = is_checkpointed(build, layer);
    bool is_first = net->buckets > 0 && layer == 0;
    int32_t *known = &build->block_kinds[training][is_moe][has_window][is_saved][is_first];
    if (*known > 0)
        return *known;
    const struct block_spec spec = {.label = block_label(stack, is_moe, has_window),
                                    .is_moe = is_moe,
                                    .is_causal = stack->is_causal,
                                    .has_cross = stack->has_cross,
                                    .has_window = has_window,
                                    .has_buckets = is_first,
                                    .tokens = stack->seq_len * build->shape->micro_batch,
                                    .seq_len = stack->seq_len,
                                    .cross_tokens =
                                        stack->cross_seq_len * build->shape->micro_batch,
                                    .cross_seq_len = stack->cross_seq_len};
    struct module_kind *kind = new_kind(build, known);
    enum activation_checkpointing checkpointing =
        is_saved ? build->shape->checkpointing : CHECKPOINT_NONE;
    if (training == TRAINING_UNREACHED) /* its temporaries are those of a forward that keeps none */
        checkpointing = CHECKPOINT_FULL;
    block_build(build->arena, net, training == TRAINING ? build->shape : &build->frozen_shape,
                &spec, checkpointing, kind);
    if (training != TRAINING)
        freeze(kind, training);
    return *known;
}

/* Forward's products are counted once where backward does not come. */
static void count_unreached(struct build *build, const struct module_kind *kind)
{
    const struct network *net = build->net;
    build->unreached_flop_per_token +=
        2.0 * (double)kind->active_numel +
        4.0 * (double)net->a * (double)(net->d_qk + net->d_v) * (double)build->shape->seq_len;
}

static void add_stack(struct build *build, const struct stack *stack)
{
    memset(build->block_kinds, 0, sizeof(build->block_kinds));
    for (int64_t i = 0; i < stack->count; i++) {
        const char *name = arena_printf(build->arena, "%s.%d", stack->prefix, (int)i);
        const enum training training = training_of(build, name);
        const int32_t kind_idx = block_kind(build, stack, i, training);
        if (training == TRAINING_UNREACHED)
            count_unreached(build, &build->kinds.items[kind_idx]);
        add_module(build, kind_idx, name);
    }
}

/* How a module outside the blocks is made. */
struct outer_module {
    void (*make)(const struct build *build, const struct outer *outer, bool flag,
                 struct module_kind *kind);
    bool flag;
};

/* Made once to know its name, and again if it is frozen. */
static enum training add_outer(struct build *build, const struct outer *outer,
                               struct outer_module module)
{
    int32_t kind_idx = 0;
    struct module_kind *kind = new_kind(build, &kind_idx);
    module.make(build, outer, module.flag, kind);
    const enum training training = training_of(build, kind->label);
    if (training != TRAINING) {
        *kind = (struct module_kind){0};
        module.make(build, &build->frozen_outer, module.flag, kind);
        freeze(kind, training);
    }
    add_module(build, kind_idx, kind->label);
    return training;
}

static void make_norm(const struct build *build, const struct outer *outer, bool has_readers,
                      struct module_kind *kind)
{
    (void)build;
    outer_norm(outer, has_readers, kind);
}

static void make_embedding(const struct build *build, const struct outer *outer, bool owns_table,
                           struct module_kind *kind)
{
    if (build->net->kind == NETWORK_VISION)
        outer_patch_embedding(outer, kind);
    else
        outer_embedding(outer, owns_table, kind);
}

static bool has_pooled_head(const struct network *net)
{
    return net->kind == NETWORK_VISION ||
           (net->kind == NETWORK_ENCODER && net->bert_head == BERT_HEAD_POOLER);
}

static void make_head(const struct build *build, const struct outer *outer, bool is_pooled,
                      struct module_kind *kind)
{
    (void)build;
    if (is_pooled)
        outer_pooled_head(outer, kind);
    else
        outer_head(outer, kind);
}

static void add_norm(struct build *build, const struct outer *outer, bool has_readers)
{
    if (build->net->has_final_norm)
        (void)add_outer(build, outer, (struct outer_module){make_norm, has_readers});
}

static void add_embedding(struct build *build, const struct outer *outer, bool owns_table)
{
    (void)add_outer(build, outer, (struct outer_module){make_embedding, owns_table});
}

static void add_head(struct build *build, const struct outer *outer)
{
    const struct network *net = build->net;
    int32_t kind_idx = 0;
    const bool is_pooled = has_pooled_head(net);
    const enum training training =
        add_outer(build, outer, (struct outer_module){make_head, is_pooled});
    const struct outer *used = training == TRAINING ? outer : &build->frozen_outer;
    struct module_kind *kind = new_kind(build, &kind_idx);
    if (is_pooled)
        outer_loss(used, build->shape->micro_batch, net->labels, kind);
    else
        outer_loss(used, outer->tokens, outer_loss_classes(used), kind);
    add_module(build, kind_idx, "loss");
}

static void set_totals(struct build *build)
{
    const struct network *net = build->net;
    struct model *model = build->model;
    double flop = 0.0;
    model->kinds = build->kinds.items;
    model->kind_count = build->kinds.count;
    model->packed_scale_bytes = lora_scale_bytes(&build->shape->lora);
    for (int32_t i = 0; i < model->kind_count; i++)
        lora_freeze(build->shape, &model->kinds[i]);
    for (int32_t i = 0; i < model->module_count; i++) {
        struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        if (kind->role != MODULE_BLOCK)
            kind->active_numel = kind->numel;
        model->frozen_parameters += kind->frozen_numel;
        model->parameters += kind->numel;
        model->active_parameters += kind->active_numel;
        flop += kind->model_flop;
    }
    model->rank_parameters = model->parameters;
    model->rank_trained_parameters = model->parameters - model->frozen_parameters;
    model->tensor_ranks = 1;
    model->layers = net->layers + net->decoder_layers;
    model->heads = net->a;
    model->head_dim = (net->d_qk + net->d_v) / 2;
    model->hidden_size = net->h;
    model->vocab_size = net->vocab;
    model->is_tied = net->is_tied && net->kind != NETWORK_VISION;
    if (net->kind != NETWORK_DECODER) {
        model->flop_per_token = 3.0 * flop / (double)model->tokens;
        return;
    }
    model->input_embedding_parameters = net->is_tied ? 0 : net->vocab * net->embedding_width;
    model->flop_per_token =
        6.0 * (double)(model->active_parameters - model->input_embedding_parameters) +
        6.0 * (double)net->layers * (double)net->a * (double)(net->d_qk + net->d_v) *
            (double)build->shape->seq_len;
    /* Of what is frozen only the gradient of the input is computed. */
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        const bool is_counted = kind->role != MODULE_EMBEDDING || net->is_tied;
        if (kind->frozen_numel > 0 && is_counted)
            model->flop_per_token -=
                2.0 * (double)(kind->active_numel - (kind->numel - kind->frozen_numel));
    }
    model->flop_per_token -= build->unreached_flop_per_token;
}

void transformer_build(struct arena *arena, const struct network *net,
                       const struct train_shape *shape, struct model *model)
{
    struct build build = {.arena = arena, .net = net, .shape = shape, .model = model};
    const struct outer outer = outer_of(arena, net, shape, shape->seq_len);
    build.frozen_shape = *shape;
    build.frozen_shape.lora = (struct lora_shape){.rank = 1};
    build.frozen_outer = outer_of(arena, net, &build.frozen_shape, shape->seq_len);
    bool has_decoder = net->kind == NETWORK_ENCODER_DECODER;
    bool is_decoder = net->kind == NETWORK_DECODER;
    const int64_t decoder_seq_len =
        shape->decoder_seq_len > 0 ? shape->decoder_seq_len : shape->seq_len;
    const struct stack first = {.prefix = has_decoder ? "encoder" : "layers",
                                .count = net->layers,
                                .seq_len = shape->seq_len,
                                .is_causal = is_decoder};
    model->modules = ARENA_ARRAY(arena, struct module, net->layers + net->decoder_layers + 8);
    add_embedding(&build, &outer, true);
    add_stack(&build, &first);
    add_norm(&build, &outer, has_decoder);
    if (has_decoder) {
        const struct outer second = outer_of(arena, net, shape, decoder_seq_len);
        const struct stack stack = {.prefix = "decoder",
                                    .count = net->decoder_layers,
                                    .seq_len = decoder_seq_len,
                                    .cross_seq_len = shape->seq_len,
                                    .is_causal = true,
                                    .has_cross = true};
        add_embedding(&build, &second, false);
        add_stack(&build, &stack);
        add_norm(&build, &second, false);
        add_head(&build, &second);
    } else {
        add_head(&build, &outer);
    }
    set_totals(&build);
}
