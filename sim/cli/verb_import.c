/*
 * cli/verb_import.c: fsdpsim import KIND FILE: what others write → a file of ours. A kind is one
 * row of import_kinds (and a word in verbs.c).
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/catalog.h"
#include "cli/command.h"
#include "cluster/import.h"
#include "config/config.h"
#include "foreign/foreign.h"

struct refused_option {
    const char *name;
    bool is_given;
};

struct import_kind {
    const char *word;
    size_t max_bytes;
    /* Appends what FILE comes to. */
    enum status (*convert)(struct command *command, const struct import_kind *kind,
                           const struct source *source, struct strbuf *out);
    int format; /* enum import_format of machines, enum foreign_format of configurations */
};

/* An option that means nothing for this kind. */
static enum status refuse_options(struct command *command, const char *word,
                                  const struct refused_option *refused, size_t count)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count; i++) {
        if (!refused[i].is_given)
            continue;
        diag_add(&command->diag, DIAG_ERROR, NO_PLACE, NULL, "'--%s' means nothing for 'import %s'",
                 refused[i].name, word);
        status = STATUS_INPUT;
    }
    return status;
}

static enum status convert_machine(struct command *command, const struct import_kind *kind,
                                   const struct source *source, struct strbuf *out)
{
    const struct options *given = &command->options;
    const struct refused_option refused[] = {{"model", given->model != NULL},
                                             {"cluster", given->cluster != NULL},
                                             {"seq-len", given->seq_len != 0}};
    if (refuse_options(command, kind->word, refused, sizeof(refused) / sizeof(refused[0])) !=
        STATUS_OK)
        return STATUS_INPUT;
    const struct import_options options = {.gpu = command->options.gpu,
                                           .nic_link = command->options.nic_link,
                                           .cpu = command->options.cpu,
                                           .name = command->options.name,
                                           .data_folders = data_folders_find(&command->arena)};
    return import_machine(&command->arena, (enum import_format)kind->format, source, &options, out,
                          &command->diag);
}

/* A name that is no path and does not ship: an error with the nearest one. */
static bool is_there(struct command *command, const char *kind, const char *name)
{
    struct arena *arena = &command->arena;
    const struct catalog_kind *catalog = catalog_find(kind);
    if (text_is_path(name) || access(catalog_path(arena, catalog, name), F_OK) == 0)
        return true;
    const char *nearest =
        nearest_name(name, data_names(arena, data_folders_find(arena), catalog->folder));
    diag_add(&command->diag, DIAG_ERROR, NO_PLACE,
             nearest != NULL
                 ? arena_printf(arena, "did you mean '%s'?", nearest)
                 : arena_printf(arena, "a name of 'fsdpsim list %s', or a path", catalog->plural),
             "unknown name '%s' for '--%s'", text_shown(arena, name), kind);
    return false;
}

/* The worse of two: of a wrong value and a file that cannot be read, the first. */
static enum status either_status(enum status one, enum status other)
{
    return one == STATUS_INPUT || other == STATUS_OK ? one : other;
}

/* The model and the cluster that were named must be there; what of the model readers need. */
static enum status look_up(struct command *command, int64_t *hidden_size)
{
    const struct options *given = &command->options;
    enum status status = STATUS_OK;
    if (given->model != NULL && !is_there(command, "model", given->model)) {
        status = STATUS_INPUT;
    } else if (given->model != NULL) {
        struct catalog_entry entry = {0};
        status = catalog_load(&command->arena, catalog_find("model"), given->model, &entry,
                              &command->diag);
        if (status == STATUS_OK)
            *hidden_size = entry.model->decoder.hidden_size;
        catalog_release(&entry);
    }
    if (given->cluster != NULL && !is_there(command, "cluster", given->cluster)) {
        status = STATUS_INPUT;
    } else if (given->cluster != NULL) {
        struct catalog_entry entry = {0};
        status = either_status(status, catalog_load(&command->arena, catalog_find("cluster"),
                                                    given->cluster, &entry, &command->diag));
        catalog_release(&entry);
    }
    return status;
}

static enum status convert_configuration(struct command *command, const struct import_kind *kind,
                                         const struct source *source, struct strbuf *out)
{
    const struct options *given = &command->options;
    const struct refused_option refused[] = {{"gpu", given->gpu != NULL},
                                             {"nic-link", given->nic_link != NULL},
                                             {"cpu", given->cpu != NULL},
                                             {"name", given->name != NULL}};
    if (refuse_options(command, kind->word, refused, sizeof(refused) / sizeof(refused[0])) !=
        STATUS_OK)
        return STATUS_INPUT;
    int64_t hidden_size = 0;
    const enum status status = look_up(command, &hidden_size);
    if (status != STATUS_OK)
        return status;
    const struct foreign_options options = {.model = given->model,
                                            .cluster = given->cluster,
                                            .seq_len = given->seq_len,
                                            .hidden_size = hidden_size};
    return foreign_import(&command->arena, (enum foreign_format)kind->format, source, &options, out,
                          &command->diag);
}

static const struct import_kind import_kinds[] = {
    {"accelerate", 1 << 20, convert_configuration, FOREIGN_ACCELERATE},
    {"deepspeed", 1 << 20, convert_configuration, FOREIGN_DEEPSPEED},
    {"nccl-topo", 16 << 20, convert_machine, IMPORT_NCCL_TOPO},
    {"topo-m", 1 << 20, convert_machine, IMPORT_TOPO_M},
};

static enum status write_out(struct command *command, const struct strbuf *text)
{
    FILE *file = command_output_open(command);
    if (file == NULL)
        return STATUS_WORLD;
    fputs(text->text, file);
    return command_output_close(command, file);
}

enum exit_code verb_import(struct command *command)
{
    const char *word = command->arguments.items[0];
    const char *path = command->arguments.items[1];
    const struct import_kind *kind = NULL;
    struct source *source;
    struct strbuf out = {0};
    for (size_t k = 0; k < sizeof(import_kinds) / sizeof(import_kinds[0]); k++) {
        if (strcmp(import_kinds[k].word, word) == 0)
            kind = &import_kinds[k];
    }
    if (kind == NULL)
        return command_refuse_word(command, word);
    enum status status =
        source_load(&command->arena, path, kind->max_bytes, &source, &command->diag);
    if (status == STATUS_OK)
        status = kind->convert(command, kind, source, &out);
    if (status == STATUS_OK)
        status = write_out(command, &out);
    command_flush(command);
    strbuf_release(&out);
    return (enum exit_code)status;
}
