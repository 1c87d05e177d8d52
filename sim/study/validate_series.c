/* study/validate_series.c: see validate_series.h. */
#include "study/validate_series.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/config.h"

const double series_noise = 0.01;

struct series_config {
    const char *name;
    struct config_list rows;
    int figure;
};

struct series_file {
    int64_t version;
    struct config_list series;
};

enum series_figure { SERIES_TIME, SERIES_MEMORY };
static const struct choice figure_choices[] = {
    {"time", SERIES_TIME, "of a token on a GPU"}, {"memory", SERIES_MEMORY, "peak"}, {0}};

static const struct field series_fields[] = {FIELD_NAME(struct series_config),
                                             {.key = "rows",
                                              .kind = FIELD_TEXT_LIST,
                                              .offset = offsetof(struct series_config, rows),
                                              .is_required = true,
                                              .min = 2,
                                              .max = (double)INFINITY,
                                              .help = "ids of the table, in order"},
                                             {.key = "figure",
                                              .kind = FIELD_ENUM,
                                              .offset = offsetof(struct series_config, figure),
                                              .default_text = "time",
                                              .choices = figure_choices,
                                              .help = "what is compared"},
                                             {0}};

static const struct field_table series_table = {.name = "series",
                                                .help = "runs that differ in one thing",
                                                .fields = series_fields,
                                                .struct_bytes = sizeof(struct series_config)};

static const struct field file_fields[] = {FIELD_VERSION(struct series_file),
                                           {.key = "series",
                                            .kind = FIELD_LIST,
                                            .offset = offsetof(struct series_file, series),
                                            .table = &series_table,
                                            .help = "each a shape to keep"},
                                           {0}};

static const struct field_table file_table = {.name = "series of runs",
                                              .help = "series of measured runs",
                                              .fields = file_fields,
                                              .struct_bytes = sizeof(struct series_file)};

static const struct validate_row *row_of(const struct validation *validation, const char *label)
{
    for (int32_t k = 0; k < validation->row_count; k++)
        if (text_equal(validation->rows[k].label, label))
            return &validation->rows[k];
    return NULL;
}

/* NaN: the row has no such figure. */
static void figures_of(const struct validate_row *row, bool is_memory, double *measured,
                       double *predicted)
{
    const struct validate_pair *pair = is_memory ? &row->memory_bytes : &row->step_s;
    const double unit = is_memory ? 1.0 : (double)row->tokens_per_gpu;
    const bool is_there = row->reason == NULL && !isnan(pair->error) && unit > 0.0;
    *measured = is_there ? pair->measured / unit : (double)NAN;
    *predicted = is_there ? pair->predicted / unit : (double)NAN;
}

static enum series_step step_of(const struct series_point *from, const struct series_point *to)
{
    const double measured = to->measured / from->measured - 1.0;
    if (fabs(measured) < series_noise)
        return SERIES_SMALL;
    return (to->predicted > from->predicted) == (measured > 0.0) ? SERIES_RIGHT : SERIES_WRONG;
}

static void take_series(struct arena *arena, const struct validation *validation,
                        const struct series_config *from, struct validate_series_list *list)
{
    struct validate_series series = {.name = from->name,
                                     .is_memory = from->figure == SERIES_MEMORY,
                                     .named = (int32_t)from->rows.count};
    double first_measured = 1.0, first_predicted = 1.0;
    series.points = ARENA_ARRAY(arena, struct series_point, from->rows.count);
    for (int64_t k = 0; k < from->rows.count; k++) {
        const struct validate_row *row =
            row_of(validation, ((const char *const *)from->rows.items)[k]);
        struct series_point point = {.row = row, .step = SERIES_FIRST};
        if (row == NULL)
            continue;
        figures_of(row, series.is_memory, &point.measured, &point.predicted);
        if (isnan(point.measured))
            continue;
        if (series.count == 0) {
            first_measured = point.measured;
            first_predicted = point.predicted;
        }
        point.measured /= first_measured;
        point.predicted /= first_predicted;
        if (series.count > 0)
            point.step = step_of(&series.points[series.count - 1], &point);
        series.points[series.count++] = point;
    }
    if (series.count >= 2)
        *ARENA_PUSH(arena, list) = series;
}

enum status validate_series_load(struct arena *arena, const struct validation *validation,
                                 struct validate_series_list *list, struct diag *diag)
{
    const char *const *folders = data_folders_find(arena);
    const char *path = data_path(arena, folders, "results/measured", "series.yaml");
    struct config *config = ARENA_NEW(arena, struct config);
    struct series_file file = {0};
    *list = (struct validate_series_list){0};
    if (path == NULL)
        return STATUS_OK;
    config_init(config, arena, diag, folders);
    enum status status = config_load(config, path);
    if (status == STATUS_OK)
        status = config_bind(config, &file_table, &file);
    for (int64_t k = 0; k < file.series.count && status == STATUS_OK; k++)
        take_series(arena, validation, (const struct series_config *)file.series.items + k, list);
    return status;
}

void validate_series_count(const struct validate_series_list *list, int32_t *right, int32_t *all)
{
    *right = *all = 0;
    for (int32_t k = 0; k < list->count; k++)
        for (int32_t p = 0; p < list->items[k].count; p++) {
            const enum series_step step = list->items[k].points[p].step;
            *right += step == SERIES_RIGHT;
            *all += step == SERIES_RIGHT || step == SERIES_WRONG;
        }
}
