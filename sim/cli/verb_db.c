/* cli/verb_db.c: fsdpsim db ls | show ID | merge FILE... | export csv: the results database. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/db_export.h"
#include "report/json_writer.h"
#include "report/report.h"
#include "store/store_sweep.h"

static void write_row(struct arena *arena, const struct store_run *run)
{
    char time[32], memory[32], exposed[32], mfu[32] = "-";
    if (!isnan(run->mfu))
        snprintf(mfu, sizeof(mfu), "%.1f %%", 100.0 * run->mfu);
    snprintf(exposed, sizeof(exposed), "%.1f %%", 100.0 * run->exposed_comm_fraction);
    printf("%5lld  %-20s  %-28s %-8s %6lld  %10s  %9s  %8s  %10s%s\n", (long long)run->id,
           text_shown(arena, run->created), text_shown(arena, run->config_name),
           text_shown(arena, run->policy), (long long)run->n_gpus,
           format_seconds(time, sizeof(time), run->step_time_s), mfu, exposed,
           format_gib(memory, sizeof(memory), (double)run->peak_device_bytes),
           run->fits ? "" : "  does not fit");
}

static void write_json(const struct store_run_list *list)
{
    struct json_writer json;
    json_init(&json, stdout);
    json_begin_array(&json);
    for (int32_t k = 0; k < list->count; k++) {
        const struct store_run *run = &list->items[k];
        json_begin_object(&json);
        json_key(&json, "id");
        json_int(&json, run->id);
        json_key(&json, "created");
        json_text(&json, run->created);
        json_key(&json, "config_name");
        json_text(&json, run->config_name);
        json_key(&json, "model");
        json_text(&json, run->model);
        json_key(&json, "cluster");
        json_text(&json, run->cluster);
        json_key(&json, "policy");
        json_text(&json, run->policy);
        json_key(&json, "n_gpus");
        json_int(&json, run->n_gpus);
        json_key(&json, "step_time_s");
        json_double(&json, run->step_time_s);
        json_key(&json, "tokens_per_s_per_gpu");
        json_double(&json, run->tokens_per_s_per_gpu);
        json_key(&json, "mfu");
        json_double(&json, run->mfu);
        json_key(&json, "exposed_comm_fraction");
        json_double(&json, run->exposed_comm_fraction);
        json_key(&json, "peak_device_bytes");
        json_int(&json, run->peak_device_bytes);
        json_key(&json, "fits");
        json_bool(&json, run->fits);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_finish(&json);
}

static enum status list_runs(struct command *command, struct store *store)
{
    struct store_run_list list = {0};
    const enum status status = store_list(store, &command->arena, &list, &command->diag);
    if (status != STATUS_OK)
        return status;
    if (command->options.is_json) {
        write_json(&list);
        return STATUS_OK;
    }
    printf("%5s  %-20s  %-28s %-8s %6s  %10s  %9s  %8s  %10s\n", "id", "created", "config",
           "policy", "GPUs", "step", "MFU", "exposed", "memory");
    for (int32_t k = 0; k < list.count; k++)
        write_row(&command->arena, &list.items[k]);
    return STATUS_OK;
}

static enum status show_run(struct command *command, struct store *store, int64_t id)
{
    struct outcome outcome = {0};
    const struct outcome *list = &outcome;
    const char *created = NULL;
    const enum status status =
        store_load(store, &command->arena, id, &outcome, &created, &command->diag);
    if (status != STATUS_OK)
        return status;
    if (command->options.is_json) {
        report_json(&outcome, stdout);
        return STATUS_OK;
    }
    printf("run %lld of %s\n\n", (long long)id, created);
    report_summary(&list, 1, stdout);
    if (command->options.has_units || command->options.top > 0) {
        printf("\n");
        command_write_tables(&outcome, command->options.top);
    }
    return STATUS_OK;
}

static enum status merge_files(struct command *command, struct store *store, const char *path)
{
    enum status status = STATUS_OK;
    for (int32_t k = 1; k < command->arguments.count && status == STATUS_OK; k++) {
        const char *file = command->arguments.items[k];
        struct stat a;
        struct stat b;
        int64_t added = 0;
        if (stat(file, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
            a.st_ino == b.st_ino)
            return (enum status)command_refuse(
                command, NULL, "'%s' is the database that others are merged into", file);
        status = store_merge(store, file, &added, &command->diag);
        if (status == STATUS_OK && !command->options.is_quiet)
            fprintf(stderr, "%s: %lld run%s added to %s\n", text_shown(&command->arena, file),
                    (long long)added, added == 1 ? "" : "s", text_shown(&command->arena, path));
    }
    return status;
}

enum { DB_LIST = -1, DB_MERGE = 0, DB_EXPORT = -2 }; /* above them: the id to show */

/* What only 'db export' has. */
static enum status refuse_export_options(struct command *command)
{
    const struct options *options = &command->options;
    const struct {
        const char *name;
        bool is_given;
    } given[] = {{"--runs", options->runs != NULL},
                 {"--where", options->where != NULL},
                 {"--table", options->table != NULL},
                 {"--overwrite", options->overwrites},
                 {"--output", options->output != NULL}};
    for (size_t k = 0; k < sizeof(given) / sizeof(given[0]); k++)
        if (given[k].is_given)
            return (enum status)command_refuse(command, NULL, "'%s' goes with 'db export' only",
                                               given[k].name);
    return STATUS_OK;
}

/* Which of them. */
static enum status read_arguments(struct command *command, int64_t *id)
{
    const char *const *words = command->arguments.items;
    const int32_t count = command->arguments.count;
    *id = DB_LIST;
    if (text_equal(words[0], "export")) {
        *id = DB_EXPORT;
        return db_export_check(command);
    }
    if (refuse_export_options(command) != STATUS_OK)
        return STATUS_INPUT;
    if (text_equal(words[0], "ls")) {
        if (count == 1)
            return STATUS_OK;
        return (enum status)command_refuse(command, NULL, "'fsdpsim db ls' wants no '%s'",
                                           words[1]);
    }
    if (text_equal(words[0], "merge")) {
        *id = DB_MERGE;
        if (count >= 2)
            return STATUS_OK;
        return (enum status)command_refuse(command, "the others go into that of --db",
                                           "'fsdpsim db merge' wants databases");
    }
    if (!text_equal(words[0], "show"))
        return (enum status)command_refuse_word(command, words[0]);
    if (count < 2)
        return (enum status)command_refuse(command, "'fsdpsim db ls' lists the runs",
                                           "'fsdpsim db show' wants the ID of a run");
    if (count > 2)
        return (enum status)command_refuse(command, NULL,
                                           "'fsdpsim db show' wants one ID, not '%s'", words[2]);
    if (!text_to_int64(words[1], id) || *id < 1)
        return (enum status)command_refuse(command, "'fsdpsim db ls' lists the runs",
                                           "'%s' is not the ID of a run", words[1]);
    return STATUS_OK;
}

enum exit_code verb_db(struct command *command)
{
    int64_t id = DB_LIST;
    struct store *store = NULL;
    enum status status = read_arguments(command, &id);
    if (status != STATUS_OK)
        goto out;
    const char *path = store_default_path(&command->arena, command->options.db);
    status = store_open(path, id == DB_MERGE ? STORE_WRITE : STORE_READ, &store, &command->diag);
    if (status != STATUS_OK)
        goto out;
    if (id == DB_MERGE)
        status = merge_files(command, store, path);
    else if (id == DB_EXPORT)
        status = db_export(command, store);
    else
        status = id == DB_LIST ? list_runs(command, store) : show_run(command, store, id);
out:
    store_close(store);
    return (enum exit_code)status;
}
