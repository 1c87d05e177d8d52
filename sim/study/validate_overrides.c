/* study/validate_overrides.c: what the user lays over every row (-s key=value). */
#include "run/experiment.h"
#include "study/validate_private.h"

struct override_list overrides_of_row(struct arena *arena, const struct row_settings *settings,
                                      const struct validate_request *request)
{
    struct override_list list = {0};
    for (int32_t k = 0; k < settings->list.count; k++)
        if (!setting_is_note(settings->list.items[k].key))
            *ARENA_PUSH(arena, &list) = arena_printf(arena, "%s=%s", settings->list.items[k].key,
                                                     settings->list.items[k].value);
    for (int32_t k = 0; k < request->override_count; k++)
        *ARENA_PUSH(arena, &list) = request->overrides[k];
    return list;
}

/* Whether their words and values mean something over these settings. */
static bool can_stand(const char *base, const struct row_settings *settings,
                      const struct validate_request *request)
{
    struct arena arena = {0};
    struct diag diag;
    diag_init(&diag, &arena);
    const struct override_list list = overrides_of_row(&arena, settings, request);
    const enum status status =
        experiment_check_overrides(&arena, base, list.items, list.count, &diag);
    arena_release(&arena);
    return status == STATUS_OK;
}

enum status overrides_check(struct arena *arena, const char *base,
                            const struct validate_request *request, const struct fact_rules *rules,
                            const struct measured_table *table, struct diag *diag)
{
    struct row_settings settings = {0};
    if (request->override_count == 0 || can_stand(base, &settings, request))
        return STATUS_OK;
    for (int32_t k = 0; k < table->rows.count; k++) {
        const struct measured_row *row = &table->rows.items[k];
        if (!row_is_wanted(request, row))
            continue;
        settings_of_row(arena, rules, row, &settings);
        if (settings.exclude == NULL && can_stand(base, &settings, request))
            return STATUS_OK;
    }
    return experiment_check_overrides(arena, base, request->overrides, request->override_count,
                                      diag);
}
