/* cli/validate_store.c: see validate_store.h. */
#include "cli/validate_store.h"

#include <math.h>
#include <stdio.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "store/store_validation.h"

static const char *joined(struct arena *arena, const struct text_list *list)
{
    struct strbuf text = {0};
    strbuf_add(&text, "");
    for (int32_t k = 0; k < list->count; k++)
        strbuf_printf(&text, "%s%s", k > 0 ? " " : "", list->items[k]);
    const char *result = arena_strdup(arena, text.text);
    strbuf_release(&text);
    return result;
}

static struct store_validation_row row_of(const struct validate_row *row)
{
    const double none = (double)NAN;
    const bool has_interval = row->interval.low_s > 0;
    return (struct store_validation_row){
        .line = row->line,
        .n_gpus = row->n_gpus,
        .label = row->label,
        .source = row->source,
        .model = row->model,
        .gpu = row->gpu,
        .trust = row->trust,
        .regime = row->regime,
        .reason = row->reason,
        .memory_kind = memory_kind_name(row->memory_kind),
        .mfu_convention = row->mfu_convention,
        .in_scope = row->reason == NULL,
        .is_scored = row->is_scored,
        .is_assumed = row->is_assumed,
        .measured_step_time_s = row->step_s.measured,
        .predicted_step_time_s = row->step_s.predicted,
        .step_time_error = row->step_s.error,
        .step_time_p5_s = has_interval ? row->interval.low_s : none,
        .step_time_p95_s = has_interval ? row->interval.high_s : none,
        .measured_memory_bytes = row->memory_bytes.measured,
        .predicted_memory_bytes = row->memory_bytes.predicted,
        .memory_error = row->memory_bytes.error,
        .measured_mfu = row->mfu.measured,
        .predicted_mfu = row->mfu.predicted,
        .mfu_error = row->mfu.error};
}

enum status validate_store(struct command *command, const struct validation *validation)
{
    if (command->options.is_unstored)
        return STATUS_OK;
    struct arena *arena = &command->arena;
    const char *path = store_default_path(arena, command->options.db);
    const struct store_validation head = {.csv = validation->csv_name,
                                          .overrides = joined(arena, &command->options.overrides),
                                          .rows = validation->row_count,
                                          .in_scope = validation->in_scope};
    struct store_validation_row *rows =
        ARENA_ARRAY(arena, struct store_validation_row, validation->row_count + 1);
    for (int32_t k = 0; k < validation->row_count; k++)
        rows[k] = row_of(&validation->rows[k]);
    struct store *store = NULL;
    int64_t id = 0;
    enum status status = store_open(path, STORE_WRITE, &store, &command->diag);
    if (status == STATUS_OK)
        status =
            store_add_validation(store, &head, rows, validation->row_count, &id, &command->diag);
    store_close(store);
    if (status == STATUS_OK && !command->options.is_quiet)
        fprintf(stderr, "stored as validation %lld in %s\n", (long long)id,
                text_shown(arena, path));
    return status;
}
