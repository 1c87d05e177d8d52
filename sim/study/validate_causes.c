/* study/validate_causes.c: see validate_causes.h. */
#include "study/validate_causes.h"

#include <math.h>

#include "base/strbuf.h"
#include "config/config.h"

const double cause_far = 0.15;

struct cause_config {
    struct config_list rows;
    const char *cause, *tried;
};

struct cause_file {
    int64_t version;
    struct config_list causes;
};

static const struct field cause_fields[] = {{.key = "rows",
                                             .kind = FIELD_TEXT_LIST,
                                             .offset = offsetof(struct cause_config, rows),
                                             .is_required = true,
                                             .min = 1,
                                             .max = (double)INFINITY,
                                             .help = "ids of the table"},
                                            {.key = "cause",
                                             .kind = FIELD_TEXT,
                                             .offset = offsetof(struct cause_config, cause),
                                             .help = "the mechanism that is not simulated"},
                                            {.key = "tried",
                                             .kind = FIELD_TEXT,
                                             .offset = offsetof(struct cause_config, tried),
                                             .help = "where no cause is known: what was tried"},
                                            {0}};

static const struct field_table cause_table = {.name = "cause",
                                               .help = "what stands behind the error of some rows",
                                               .fields = cause_fields,
                                               .struct_bytes = sizeof(struct cause_config)};

static const struct field file_fields[] = {FIELD_VERSION(struct cause_file),
                                           {.key = "causes",
                                            .kind = FIELD_LIST,
                                            .offset = offsetof(struct cause_file, causes),
                                            .table = &cause_table,
                                            .help = "one for each mechanism"},
                                           {0}};

static const struct field_table file_table = {.name = "causes of errors",
                                              .help = "what stands behind rows that are far off",
                                              .fields = file_fields,
                                              .struct_bytes = sizeof(struct cause_file)};

static bool is_far(const struct validate_row *row)
{
    return row->reason == NULL && row->is_scored && fabs(row->step_s.error) > cause_far;
}

static bool names(const struct cause_config *from, const struct validate_row *row)
{
    for (int64_t k = 0; k < from->rows.count; k++)
        if (text_equal(((const char *const *)from->rows.items)[k], row->label))
            return true;
    return false;
}

/* The rows that `from` names (NULL: that are not taken yet), with a mark for each that is taken. */
static void take_rows(struct arena *arena, const struct validation *validation,
                      const struct cause_config *from, bool *is_taken,
                      struct validate_causes *causes)
{
    struct validate_cause cause = {
        .rows = ARENA_ARRAY(arena, const struct validate_row *, validation->row_count + 1)};
    if (from != NULL) {
        cause.is_known = from->cause != NULL;
        cause.text = cause.is_known ? from->cause : from->tried;
    }
    for (int32_t k = 0; k < validation->row_count; k++) {
        const struct validate_row *row = &validation->rows[k];
        if (is_taken[k] || !is_far(row) || (from != NULL && !names(from, row)))
            continue;
        is_taken[k] = true;
        cause.rows[cause.count++] = row;
    }
    causes->far += cause.count;
    causes->unknown += cause.is_known ? 0 : cause.count;
    if (cause.count > 0)
        *ARENA_PUSH(arena, causes) = cause;
}

/* Whether the row that stands at place r of entry k stands before it. */
static bool is_named_before(const struct cause_config *items, int64_t k, int64_t r)
{
    const char *const *labels = items[k].rows.items;
    const struct validate_row row = {.label = labels[r]};
    for (int64_t j = 0; j < r; j++)
        if (text_equal(labels[j], labels[r]))
            return true;
    for (int64_t j = 0; j < k; j++)
        if (names(&items[j], &row))
            return true;
    return false;
}

static bool is_said(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* One of 'cause' and 'tried'; no row twice. */
static void check_file(struct config *config, const struct cause_file *file)
{
    const struct cause_config *items = file->causes.items;
    for (int64_t k = 0; k < file->causes.count; k++) {
        char path[64];
        snprintf(path, sizeof(path), "causes[%lld]", (long long)k);
        if (is_said(items[k].cause) == is_said(items[k].tried))
            config_error(config, path, "one of the two",
                         "it has both 'cause' and 'tried', or none");
        for (int64_t r = 0; r < items[k].rows.count; r++) {
            const char *label = ((const char *const *)items[k].rows.items)[r];
            if (is_named_before(items, k, r))
                config_error(config, path, "each row once", "row '%s' is named twice", label);
        }
    }
}

enum status validate_causes_load(struct arena *arena, const struct validation *validation,
                                 struct validate_causes *causes, struct diag *diag)
{
    const char *const *folders = data_folders_find(arena);
    const char *path = data_path(arena, folders, "results/measured", "causes.yaml");
    struct config *config = ARENA_NEW(arena, struct config);
    struct cause_file file = {0};
    bool *is_taken = ARENA_ARRAY(arena, bool, validation->row_count + 1);
    enum status status = STATUS_OK;
    *causes = (struct validate_causes){0};
    config_init(config, arena, diag, folders);
    if (path != NULL)
        status = config_load(config, path);
    if (path != NULL && status == STATUS_OK)
        status = config_bind(config, &file_table, &file);
    if (status == STATUS_OK)
        check_file(config, &file);
    if (status != STATUS_OK || diag->error_count > 0)
        return STATUS_INPUT;
    for (int64_t k = 0; k < file.causes.count; k++)
        take_rows(arena, validation, (const struct cause_config *)file.causes.items + k, is_taken,
                  causes);
    take_rows(arena, validation, NULL, is_taken, causes);
    return STATUS_OK;
}
