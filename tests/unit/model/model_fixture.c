#include "model_fixture.h"

#include <string.h>

#include "check.h"
#include "config/config.h"

struct model_config fixture_llama_8b(void)
{
    return (struct model_config){.type = TYPE_LLAMA,
                                 .name = "llama-3.1-8b",
                                 .decoder = {.hidden_size = 4096,
                                             .intermediate_size = 14336,
                                             .num_hidden_layers = 32,
                                             .num_attention_heads = 32,
                                             .num_key_value_heads = 8,
                                             .vocab_size = 128256}};
}

struct model_config fixture_small(void)
{
    return (struct model_config){.type = TYPE_LLAMA,
                                 .decoder = {.hidden_size = 96,
                                             .intermediate_size = 160,
                                             .num_hidden_layers = 3,
                                             .num_attention_heads = 6,
                                             .num_key_value_heads = 2,
                                             .vocab_size = 1000}};
}

struct train_shape fixture_shape(int64_t seq_len, int64_t micro_batch)
{
    return (struct train_shape){.seq_len = seq_len,
                                .micro_batch = micro_batch,
                                .compute_dtype = DTYPE_BF16,
                                .checkpointing = CHECKPOINT_NONE,
                                .loss_upcast = true};
}

const struct model *fixture_build(struct arena *arena, const struct model_config *config,
                                  const struct train_shape *shape)
{
    struct diag diag;
    struct model *model = NULL;
    diag_init(&diag, arena);
    enum status status = model_build(arena, config, shape, &model, &diag);
    CHECK_TEXT(fixture_messages(arena, &diag), "");
    if (!CHECK_INT(status, STATUS_OK))
        model = ARENA_NEW(arena, struct model);
    return model;
}

const struct module_kind *fixture_kind(const struct model *model, enum module_role role)
{
    static const struct module_kind none;
    for (int32_t i = 0; i < model->kind_count; i++)
        if (model->kinds[i].role == role)
            return &model->kinds[i];
    CHECK_TEXT("no kind of this role", "");
    return &none;
}

const struct kernel *fixture_kernel(const struct kernel_list *list, const char *name)
{
    static const struct kernel none;
    for (int32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    CHECK_TEXT("no such kernel", name);
    return &none;
}

const char *fixture_messages(struct arena *arena, const struct diag *diag)
{
    const char *text = "";
    for (int32_t i = 0; i < diag->count; i++)
        text = arena_printf(arena, "%s%s%s%s\n", text, diag->items[i].text,
                            diag->items[i].hint != NULL ? " | " : "",
                            diag->items[i].hint != NULL ? diag->items[i].hint : "");
    return text;
}

static const struct field root_fields[] = {{.key = "model",
                                            .kind = FIELD_REF,
                                            .is_required = true,
                                            .choose = model_choose_table,
                                            .folder = "models",
                                            .also_json = "config.json",
                                            .help = "a model"},
                                           {0}};
static const struct field_table root_table = {.name = "config",
                                              .help = "a root with a model",
                                              .fields = root_fields,
                                              .struct_bytes = sizeof(struct model_config)};

const char *fixture_bind(struct arena *arena, const char *text, struct model_config *model)
{
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    struct diag *diag = ARENA_NEW(arena, struct diag);
    struct config *config = ARENA_NEW(arena, struct config);
    struct source *source = ARENA_NEW(arena, struct source);
    diag_init(diag, arena);
    config_init(config, arena, diag, folders);
    *source = (struct source){.name = "test.yaml", .text = text, .length = strlen(text)};
    enum status status = node_parse(arena, source, &config->root, diag);
    if (status == STATUS_OK)
        status = config_bind(config, &root_table, model);
    CHECK_INT(status == STATUS_OK, diag->error_count == 0);
    return fixture_messages(arena, diag);
}

int fixture_count(const struct kernel_list *list, const char *part)
{
    int count = 0;
    for (int32_t i = 0; i < list->count; i++)
        count += strstr(list->items[i].name, part) != NULL;
    return count;
}
