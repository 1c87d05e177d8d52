/*
 * schedule/fsdp_outputs.c: how long the model's output lives: the logits, and the keys and values
 * of every block where a cache in it holds them.
 *
 * A loop that takes the loss out of it drops it there. A variable holds it while backward runs, and
 * on until the next forward has given another: then there are two in forward. That one is held
 * from the beginning of the program, as if a step had gone before.
 *
 * Example, Llama-2-7B, 16,384 tokens: keys and values 32 · 2 · 4096 · 2 B a token, 8 GiB.
 */
#include "schedule/fsdp_private.h"

void fsdp_add_output(struct fsdp_builder *builder, int32_t index)
{
    const bool overlaps = builder->settings->kept_output == OUTPUT_UNTIL_NEXT_OUTPUT;
    const struct module_kind *kind = fsdp_kind(builder, index);
    const char *name = builder->model->modules[index].name;
    const bool is_loss = kind->role == MODULE_LOSS;
    struct fsdp_module *module = &builder->modules[index];
    struct tensor tensor = {.bytes = kind->kept_bytes,
                            .pieces = is_loss ? 1 : 2,
                            .category = is_loss ? MEMORY_LOGITS : MEMORY_ACTIVATIONS,
                            .unit = module->unit};
    tensor.name =
        ARENA_JOIN(builder->arena, is_loss ? "kept_logits(" : "kept_keys_values(", name, ")");
    module->kept = fsdp_add_tensor(builder, tensor);
    module->kept_before = -1;
    if (module->kept < 0 || !overlaps)
        return;
    tensor.name = ARENA_JOIN(builder->arena, "previous.", tensor.name);
    module->kept_before = fsdp_add_tensor(builder, tensor);
    fsdp_hold(builder, module->kept_before);
}

static void free_all(struct fsdp_builder *builder)
{
    for (int32_t i = 0; i < builder->model->module_count; i++)
        fsdp_free(builder, builder->modules[i].unit, builder->modules[i].kept);
}

/* The variable's next value: the one before is gone. */
static void assign(struct fsdp_builder *builder)
{
    for (int32_t i = 0; i < builder->model->module_count; i++)
        fsdp_free(builder, builder->modules[i].unit, builder->modules[i].kept_before);
    free_all(builder);
    for (int32_t i = 0; i < builder->model->module_count; i++)
        fsdp_alloc(builder, builder->modules[i].unit, builder->modules[i].kept_before);
}

void fsdp_keep_output(struct fsdp_builder *builder, int32_t index)
{
    const enum kept_output kept = builder->settings->kept_output;
    fsdp_alloc(builder, builder->modules[index].unit, builder->modules[index].kept);
    if (fsdp_kind(builder, index)->role != MODULE_LOSS)
        return;
    if (kept == OUTPUT_DROPPED)
        free_all(builder);
    else if (kept == OUTPUT_UNTIL_NEXT_OUTPUT)
        assign(builder);
}

/* The first module that backward reaches is the last one of it. */
void fsdp_drop_output(struct fsdp_builder *builder, int32_t index)
{
    int32_t first = 0;
    while (first < index && fsdp_kind(builder, first)->is_unreached)
        first++;
    if (index == first && builder->settings->kept_output == OUTPUT_UNTIL_BACKWARD)
        free_all(builder);
}
