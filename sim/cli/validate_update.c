/* cli/validate_update.c: see validate_update.h. */
#include "cli/validate_update.h"

#include <stdio.h>

#include "base/strbuf.h"
#include "cli/new_file.h"
#include "cli/validate_store.h"
#include "report/report_causes.h"
#include "report/report_comm_tables.h"
#include "report/report_kernels.h"
#include "report/report_models.h"
#include "report/report_scatter.h"
#include "report/report_series.h"
#include "report/report_validate.h"
#include "study/spread_measure.h"
#include "study/validate_models.h"

enum { ACCURACY_LIMIT = 20 };

struct everything {
    struct kernel_validation kernels;
    struct collective_validation collectives;
    struct model_validation models;
    struct validation runs;
    struct validate_series_list series;
    struct validate_causes causes;
};

typedef void write_part(struct arena *arena, const struct everything *all, FILE *file);

static void write_spread(struct arena *arena, const struct everything *all, FILE *file)
{
    struct spread_rows rows;
    spread_measure(arena, &all->kernels, &all->collectives, &rows);
    spread_write(&rows, file);
}

static void write_index(struct arena *arena, const struct everything *all, FILE *file)
{
    struct run_index index;
    validate_index(arena, &all->runs, &index);
    run_index_write(&index, file);
}

static void write_picture(struct arena *arena, const struct everything *all, FILE *file)
{
    (void)arena;
    report_scatter_svg(&all->runs, file);
}

static void write_page(struct arena *arena, const struct everything *all, FILE *file)
{
    (void)arena;
    report_validation_markdown(&all->runs, ACCURACY_LIMIT, "accuracy.svg", file);
    report_causes(&all->causes, true, file);
    report_series(&all->series, true, file);
    report_kernels_markdown(&all->kernels, file);
    fputc('\n', file);
    report_models_markdown(&all->models, file);
    fputc('\n', file);
    report_comm_tables_markdown(&all->collectives, file);
}

static enum status write_file(struct command *command, const struct everything *all,
                              const char *folder, const char *name, write_part *part)
{
    struct new_file new_file;
    const char *path = arena_printf(&command->arena, "%s/%s", folder, name);
    const enum status status = new_file_open(command, path, &new_file);
    if (status != STATUS_OK)
        return status;
    part(&command->arena, all, new_file.file);
    return new_file_close(command, &new_file, true);
}

static enum status play_components(struct command *command, struct everything *all)
{
    const struct collective_request request = {0};
    enum status status =
        kernel_validation_run(&command->arena, NULL, &all->kernels, &command->diag);
    if (status == STATUS_OK)
        status = model_validation_run(&command->arena, NULL, &all->models, &command->diag);
    if (status == STATUS_OK)
        status =
            collective_validation_run(&command->arena, &request, &all->collectives, &command->diag);
    return status;
}

static enum status play_runs(struct command *command, struct everything *all)
{
    const struct validate_request request = {0};
    enum status status = validate_run(&command->arena, &request, &all->runs, &command->diag);
    if (status == STATUS_OK)
        status = validate_series_load(&command->arena, &all->runs, &all->series, &command->diag);
    if (status == STATUS_OK)
        status = validate_causes_load(&command->arena, &all->runs, &all->causes, &command->diag);
    return status;
}

enum exit_code validate_update(struct command *command, const char *folder)
{
    struct everything *all = ARENA_NEW(&command->arena, struct everything);
    *all = (struct everything){0};
    enum status status = play_components(command, all);
    if (status == STATUS_OK)
        status = write_file(command, all, folder, "measured/spread.csv", write_spread);
    if (status == STATUS_OK)
        status = play_runs(command, all);
    if (status == STATUS_OK)
        status = validate_store(command, &all->runs);
    if (status == STATUS_OK)
        status = write_file(command, all, folder, "measured/index.csv", write_index);
    if (status == STATUS_OK)
        status = write_file(command, all, folder, "accuracy.svg", write_picture);
    if (status == STATUS_OK)
        status = write_file(command, all, folder, "accuracy.md", write_page);
    return (enum exit_code)status;
}
