/* cli/verb_model.c: fsdpsim model show NAME|FILE: the tree of a model. */
#include <stdio.h>

#include "base/strbuf.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "report/report_model.h"

static enum status show(struct command *command, const char *name)
{
    enum { DEPTH = 2 };
    struct catalog_entry entry = {0};
    struct model *model = NULL;
    struct model_tree tree = {0};
    struct arena *arena = &command->arena;
    int64_t depth = command->options.depth > 0 ? command->options.depth : DEPTH;
    if (depth > MODEL_TREE_MAX_DEPTH)
        depth = MODEL_TREE_MAX_DEPTH;
    enum status status = catalog_load(arena, catalog_find("model"), name, &entry, &command->diag);
    if (status == STATUS_OK) {
        const struct train_shape shape = {.seq_len = model_show_seq_len(entry.model),
                                          .micro_batch = 1,
                                          .compute_dtype = DTYPE_BF16,
                                          .loss_upcast = true};
        status = model_build(arena, entry.model, &shape, &model, &command->diag);
    }
    if (status == STATUS_OK) {
        model_tree_build(arena, model, (int32_t)depth, &tree);
        if (command->options.is_json)
            report_model_json(model, &tree, stdout);
        else
            report_model(model, &tree, stdout);
    }
    command_flush(command);
    catalog_release(&entry);
    return status;
}

enum exit_code verb_model(struct command *command)
{
    const char *const *words = command->arguments.items;
    if (!text_equal(words[0], "show"))
        return command_refuse_word(command, words[0]);
    if (command->arguments.count < 2)
        return command_refuse(command, "'fsdpsim list models' lists them",
                              "'fsdpsim model show' wants the name or file of a model");
    return (enum exit_code)show(command, words[1]);
}
