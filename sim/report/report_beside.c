/* report/report_beside.c: see report_beside.h. */
#include "report/report_beside.h"

#include <inttypes.h>
#include <math.h>

#include "base/shown_text.h"
#include "base/units.h"

static const char line[] = "  %-25s %s\n";

static bool has_interval(const struct interval *interval)
{
    return interval->low_s > 0;
}

static void write_closest(const struct beside *beside, FILE *file)
{
    const struct run_traits *closest = beside->closest;
    char measured[32];
    fprintf(file, "  %-25s %s, %s on %" PRId64 " x %s: %s, predicted %+.1f %%\n",
            "closest measured run", closest->label, closest->model, closest->n_gpus, closest->gpu,
            format_seconds(measured, sizeof(measured), closest->measured_s), 100 * beside->error);
    fprintf(file, "  %-25s %s (distance %.1f)\n", "  here", beside->difference, beside->distance);
}

void report_beside(const struct beside *beside, const char *name, FILE *file)
{
    char low[32], high[32], text[128];
    if (!has_interval(&beside->interval) && beside->closest == NULL)
        return;
    fputs("\nBeside measurements", file);
    if (name != NULL) {
        struct arena scratch = {0};
        fprintf(file, ": %s", text_shown(&scratch, name));
        arena_release(&scratch);
    }
    fputc('\n', file);
    if (has_interval(&beside->interval)) {
        snprintf(text, sizeof(text), "%s to %s (spread %.1f %%)",
                 format_seconds(low, sizeof(low), beside->interval.low_s),
                 format_seconds(high, sizeof(high), beside->interval.high_s),
                 100 * beside->interval.spread);
        fprintf(file, line, "expected, p5 to p95", text);
    }
    if (beside->closest != NULL)
        write_closest(beside, file);
}

static void write_number(struct json_writer *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

static void write_interval_json(const struct interval *interval, struct json_writer *json)
{
    json_key(json, "step_time_interval");
    if (!has_interval(interval)) {
        json_text(json, NULL);
        return;
    }
    json_begin_object(json);
    write_number(json, "p5_s", interval->low_s);
    write_number(json, "p95_s", interval->high_s);
    write_number(json, "spread", interval->spread);
    write_number(json, "spread_repeat", interval->parts.repeat);
    write_number(json, "spread_kernels", interval->parts.compute);
    write_number(json, "spread_clock", interval->parts.clock);
    write_number(json, "spread_communication", interval->parts.comm);
    write_number(json, "spread_host", interval->parts.host);
    json_end_object(json);
}

void report_beside_json(const struct beside *beside, struct json_writer *json)
{
    const struct run_traits *closest = beside->closest;
    char machine[256];
    write_interval_json(&beside->interval, json);
    json_key(json, "closest_measured");
    if (closest == NULL) {
        json_text(json, NULL);
        return;
    }
    snprintf(machine, sizeof(machine), "%" PRId64 " x %s", closest->n_gpus, closest->gpu);
    json_begin_object(json);
    json_key(json, "id");
    json_text(json, closest->label);
    json_key(json, "trained");
    json_text(json, closest->model);
    json_key(json, "machine");
    json_text(json, machine);
    write_number(json, "measured_s", closest->measured_s);
    write_number(json, "predicted_s", closest->predicted_s);
    write_number(json, "error", beside->error);
    write_number(json, "distance", beside->distance);
    json_key(json, "difference");
    json_text(json, beside->difference);
    json_end_object(json);
}
