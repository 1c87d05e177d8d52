/*
 * model/model_abstract.c: `family: abstract`, numbers given directly.
 *
 * A unit is one block with one parameter of `parameters` rows of one element (so that sharding by
 * rows pads by less than one row a GPU), one kernel a pass whose duration is given, and a number of
 * saved bytes. Checkpointing of any kind keeps the unit's input and runs its forward again (every:
 * of every k-th unit). Model FLOP
 * follow parameters: 2 a parameter and token forward, or a third of `flop_per_token` shared in that
 * proportion.
 */
#include "model/model_private.h"

static const struct abstract_unit *unit_items(const struct abstract_config *abstract)
{
    return abstract->units.items;
}

double abstract_parameters_estimate(const struct abstract_config *abstract)
{
    const struct abstract_unit *units = unit_items(abstract);
    double sum = 0.0;
    for (int64_t i = 0; i < abstract->units.count; i++)
        sum += (double)units[i].repeat * (double)units[i].parameters;
    return sum * (double)abstract->repeat;
}

double abstract_saved_estimate(const struct abstract_config *abstract)
{
    const struct abstract_unit *units = unit_items(abstract);
    double sum = 0.0;
    for (int64_t i = 0; i < abstract->units.count; i++)
        sum += (double)units[i].repeat *
               (units[i].saved_activation_bytes + units[i].input_activation_bytes);
    return sum * (double)abstract->repeat;
}

double abstract_module_estimate(const struct abstract_config *abstract)
{
    const struct abstract_unit *units = unit_items(abstract);
    double sum = 0.0;
    for (int64_t i = 0; i < abstract->units.count; i++)
        sum += (double)units[i].repeat;
    return sum * (double)abstract->repeat;
}

int64_t abstract_parameters(const struct abstract_config *abstract)
{
    const struct abstract_unit *units = unit_items(abstract);
    int64_t sum = 0;
    for (int64_t i = 0; i < abstract->units.count; i++)
        sum += units[i].repeat * units[i].parameters;
    return sum * abstract->repeat;
}

static void add_given(struct arena *arena, struct kernel_list *list, enum kernel_pass pass,
                      enum dtype dtype, double given_s)
{
    struct kernel *kernel = ARENA_PUSH(arena, list);
    kernel->name = pass == PASS_FORWARD ? "forward" : "backward";
    kernel->kind = KERNEL_GIVEN;
    kernel->pass = pass;
    kernel->dtype = dtype;
    kernel->given_s = given_s;
}

static void build_unit(struct arena *arena, const struct abstract_unit *unit,
                       const struct train_shape *shape, bool is_recomputed,
                       struct module_kind *kind)
{
    kind->role = MODULE_BLOCK;
    kind->label = "unit";
    kind->params = ARENA_NEW(arena, struct param);
    kind->params[0] = (struct param){.name = "weight", .dim0 = unit->parameters, .rest = 1};
    kind->param_count = 1;
    kind->numel = unit->parameters;
    kind->active_numel = unit->parameters;
    add_given(arena, &kind->forward, PASS_FORWARD, shape->compute_dtype, unit->forward_s);
    add_given(arena, &kind->backward, PASS_BACKWARD, shape->compute_dtype, unit->backward_s);
    kind->saved_bytes = (int64_t)unit->saved_activation_bytes;
    kind->output_bytes = (int64_t)unit->input_activation_bytes;
    kind->host_op_count = 1;
    if (is_recomputed) {
        kind->is_recomputed = true;
        kind->recompute = kind->forward;
        kind->recompute_saved_bytes = kind->saved_bytes;
        kind->saved_bytes = (int64_t)unit->input_activation_bytes;
    }
}

void abstract_build(struct arena *arena, const struct abstract_config *abstract,
                    const struct train_shape *shape, struct model *model)
{
    const struct abstract_unit *units = unit_items(abstract);
    int32_t unit_count = (int32_t)abstract->units.count;
    double module_count = abstract_module_estimate(abstract);
    BUG_IF(module_count > (double)MODEL_MAX_MODULES);

    model->parameters = abstract_parameters(abstract);
    model->rank_parameters = model->rank_trained_parameters = model->parameters;
    model->tensor_ranks = 1;
    double per_parameter = abstract->flop_per_token > 0.0 && model->parameters > 0
                               ? abstract->flop_per_token / (double)model->parameters
                               : 6.0;
    model->flop_per_token = per_parameter * (double)model->parameters;

    bool is_mixed = shape->checkpointing == CHECKPOINT_EVERY && shape->checkpoint_every > 1;
    int32_t block_kind_count = is_mixed ? 2 * unit_count : unit_count;
    model->kinds = ARENA_ARRAY(arena, struct module_kind, block_kind_count + 1);
    model->kind_count = block_kind_count + 1;
    for (int32_t i = 0; i < block_kind_count; i++) {
        const struct abstract_unit *unit = &units[i % unit_count];
        struct module_kind *kind = &model->kinds[i];
        bool is_recomputed =
            shape->checkpointing != CHECKPOINT_NONE && (!is_mixed || i >= unit_count);
        build_unit(arena, unit, shape, is_recomputed, kind);
        kind->model_flop = per_parameter / 3.0 * (double)unit->parameters * (double)model->tokens;
        kind->recompute_flop = is_recomputed ? kind->model_flop : 0.0;
    }
    model->kinds[block_kind_count].role = MODULE_LOSS;
    model->kinds[block_kind_count].label = "loss";

    model->layers = (int64_t)module_count;
    model->active_parameters = model->parameters;
    model->modules = ARENA_ARRAY(arena, struct module, model->layers + 1);
    for (int64_t round = 0; round < abstract->repeat; round++)
        for (int32_t i = 0; i < unit_count; i++)
            for (int64_t j = 0; j < units[i].repeat; j++) {
                struct module *module = &model->modules[model->module_count];
                bool is_recomputed =
                    is_mixed && (model->module_count + 1) % shape->checkpoint_every == 0;
                module->kind_idx = is_recomputed ? i + unit_count : i;
                module->name = arena_printf(arena, "units.%d", (int)model->module_count);
                model->module_count++;
            }
    model->modules[model->module_count++] =
        (struct module){.kind_idx = block_kind_count, .name = "loss"};
}
