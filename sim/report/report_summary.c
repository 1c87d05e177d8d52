/* report/report_summary.c: the human summary of runs, side by side; see report.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"
#include "report/report.h"
#include "report/report_table_private.h"

enum { PAGE_WIDTH = 100, LABEL_WIDTH = 25, COLUMN_WIDTH_MIN = 20, BAR_WIDTH = 20 };

/* One unit for all times and one for all memory, so that parts can be added up by eye. */
struct summary {
    const struct outcome *const *outcomes;
    int32_t count;
    struct table table;
    int32_t text_width;
    double second_scale, byte_scale;
    const char *second_unit, *byte_unit;
    int second_decimals, byte_decimals;
};

static void choose_scales(struct summary *summary)
{
    double shortest_s = HUGE_VAL, largest_bytes = 0;
    for (int32_t i = 0; i < summary->count; i++) {
        shortest_s = fmin(shortest_s, summary->outcomes[i]->step_time_s);
        largest_bytes = fmax(largest_bytes, (double)summary->outcomes[i]->peak_device_bytes);
    }
    summary->second_scale = shortest_s >= 0.1 ? 1 : shortest_s >= 1e-4 ? 1e3 : 1e6;
    summary->second_unit = shortest_s >= 0.1 ? "s" : shortest_s >= 1e-4 ? "ms" : "us";
    summary->second_decimals = shortest_s >= 0.1 && shortest_s < 10 ? 4 : 3;
    summary->byte_scale = largest_bytes >= 0x1p30 ? 0x1p-30 : 0x1p-20;
    summary->byte_unit = largest_bytes >= 0x1p30 ? "GiB" : "MiB";
    summary->byte_decimals = 2;
}

static void add_seconds(struct summary *summary, double seconds)
{
    table_cell(&summary->table, "%.*f %s", summary->second_decimals,
               seconds * summary->second_scale, summary->second_unit);
}

static void add_gib(struct summary *summary, int64_t bytes)
{
    table_cell(&summary->table, "%.*f %s", summary->byte_decimals,
               (double)bytes * summary->byte_scale, summary->byte_unit);
}

static double percent_of(double part, double whole)
{
    return whole > 0 ? part / whole * 100 : 0;
}

/* Bytes of `text` that fit into `width` characters, cut after a space, '_', '-' or ','. */
static size_t line_length(const char *text, int32_t width)
{
    size_t length = 0, cut = 0;
    for (int32_t used = 0; text[length] != '\0'; used++) {
        if (used == width)
            return cut > 0 ? cut : length;
        if (strchr(" _-,", text[length]) != NULL)
            cut = length + 1;
        do
            length++;
        while (((unsigned char)text[length] & 0xc0) == 0x80);
    }
    return length;
}

/* A row of texts; long ones go on in the rows below. */
static void add_text_row(struct summary *summary, const char *label, const char *const *texts)
{
    struct arena *arena = &summary->table.arena;
    const char **rest = ARENA_ARRAY(arena, const char *, summary->count);
    for (int32_t i = 0; i < summary->count; i++)
        rest[i] = texts[i] != NULL && texts[i][0] != '\0' ? texts[i] : "-";
    for (bool has_more = true; has_more; label = "") {
        has_more = false;
        table_row(&summary->table);
        table_cell(&summary->table, "%s", label);
        for (int32_t i = 0; i < summary->count; i++) {
            const size_t length = line_length(rest[i], summary->text_width);
            size_t shown = length;
            while (shown > 0 && rest[i][shown - 1] == ' ')
                shown--;
            table_cell(&summary->table, "%.*s", (int)shown, rest[i]);
            rest[i] += length;
            has_more = has_more || rest[i][0] != '\0';
        }
    }
}

static void add_metric_text(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    const char **texts = ARENA_ARRAY(&summary->table.arena, const char *, summary->count);
    BUG_IF(metric == NULL);
    for (int32_t i = 0; i < summary->count; i++)
        texts[i] = metric_text(summary->outcomes[i], metric);
    add_text_row(summary, label, texts);
}

/* Seconds, and their share of the step where asked for. */
static void add_time(struct summary *summary, const char *label, const char *name, bool has_share)
{
    const struct metric *metric = outcome_metric(name);
    BUG_IF(metric == NULL);
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++) {
        const struct outcome *outcome = summary->outcomes[i];
        const double seconds = metric_double(outcome, metric);
        if (!has_share) {
            add_seconds(summary, seconds);
            continue;
        }
        table_cell(&summary->table, "%.*f %s %5.1f %%", summary->second_decimals,
                   seconds * summary->second_scale, summary->second_unit,
                   percent_of(seconds, outcome->step_time_s));
    }
}

/* Where some run has it. */
static void add_used_time(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    bool is_used = false;
    BUG_IF(metric == NULL);
    for (int32_t i = 0; i < summary->count; i++)
        is_used = is_used || metric_double(summary->outcomes[i], metric) > 0;
    if (is_used)
        add_time(summary, label, name, true);
}

static void add_fraction(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    BUG_IF(metric == NULL);
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++) {
        double value = 0;
        if (outcome_number(summary->outcomes[i], metric, &value))
            table_cell(&summary->table, "%.1f %%", value * 100);
        else
            table_cell(&summary->table, "not defined");
    }
}

static void add_identity(struct summary *summary)
{
    char count[32];
    add_metric_text(summary, "", "config_name");
    add_metric_text(summary, "model", "model");
    add_metric_text(summary, "cluster", "cluster");
    table_row(&summary->table);
    table_cell(&summary->table, "GPUs");
    for (int32_t i = 0; i < summary->count; i++) {
        const struct outcome *outcome = summary->outcomes[i];
        table_cell(&summary->table, "%s (%" PRId64 " x %" PRId64 ")",
                   format_count(count, sizeof(count), outcome->n_gpus), outcome->n_nodes,
                   outcome->gpus_per_node);
    }
    add_metric_text(summary, "GPU", "gpu");
    add_metric_text(summary, "policy", "policy");
    table_row(&summary->table);
    table_cell(&summary->table, "tokens per step");
    for (int32_t i = 0; i < summary->count; i++)
        table_cell(&summary->table, "%s",
                   format_count(count, sizeof(count), summary->outcomes[i]->tokens_per_step));
}

/* compute '=', exposed communication '+', idle '.' */
static void add_bar(struct summary *summary)
{
    table_row(&summary->table);
    table_cell(&summary->table, "  =compute +exposed .idle");
    for (int32_t i = 0; i < summary->count; i++) {
        const struct outcome *outcome = summary->outcomes[i];
        const double per_percent = BAR_WIDTH / 100.0;
        const double compute = percent_of(outcome->compute_s, outcome->step_time_s);
        const double exposed = percent_of(outcome->exposed_comm_s, outcome->step_time_s);
        char bar[BAR_WIDTH + 1];
        for (int k = 0; k < BAR_WIDTH; k++) {
            const double middle = (k + 0.5) / per_percent;
            bar[k] = '.';
            if (middle < compute)
                bar[k] = '=';
            else if (middle < compute + exposed)
                bar[k] = '+';
        }
        bar[BAR_WIDTH] = '\0';
        table_cell(&summary->table, "%s", bar);
    }
}

static void add_times(struct summary *summary)
{
    table_text(&summary->table, "");
    table_text(&summary->table, "Time");
    add_time(summary, "  step time", "step_time_s", false);
    add_time(summary, "    compute", "compute_s", true);
    add_time(summary, "    exposed communication", "exposed_comm_s", true);
    add_time(summary, "    idle", "idle_s", true);
    add_used_time(summary, "      waiting for data", "data_wait_s");
    add_used_time(summary, "      saving checkpoints", "checkpoint_s");
    add_bar(summary);
    add_time(summary, "  communication", "comm_s", true);
    add_time(summary, "    waiting for others", "comm_wait_s", true);
    add_fraction(summary, "  exposed fraction", "exposed_comm_fraction");
    add_fraction(summary, "  overlap fraction", "overlap_fraction");
    add_time(summary, "  forward", "forward_s", true);
    add_time(summary, "  backward", "backward_s", true);
    add_time(summary, "  optimizer", "optimizer_s", true);
    add_metric_text(summary, "  bound by", "bottleneck");
}

static void add_rate(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    char count[32];
    BUG_IF(metric == NULL);
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++) {
        double value = 0;
        if (!outcome_number(summary->outcomes[i], metric, &value))
            table_cell(&summary->table, "not defined");
        else if (fabs(value) >= 1000)
            table_cell(&summary->table, "%s", format_count(count, sizeof(count), llround(value)));
        else
            table_cell(&summary->table, "%.1f", value);
    }
}

static void add_throughput(struct summary *summary)
{
    const char *convention = summary->outcomes[0]->mfu_convention;
    bool is_common = convention != NULL;
    char label[64];
    for (int32_t i = 1; i < summary->count; i++)
        is_common = is_common && text_equal(summary->outcomes[i]->mfu_convention, convention);
    snprintf(label, sizeof(label), is_common ? "  MFU (%s)" : "  MFU", convention);

    table_text(&summary->table, "");
    table_text(&summary->table, "Throughput");
    add_rate(summary, "  tokens/s", "tokens_per_s");
    add_rate(summary, "  tokens/s/GPU", "tokens_per_s_per_gpu");
    add_rate(summary, "  TFLOP/s/GPU", "tflops_per_gpu");
    add_fraction(summary, label, "mfu");
    if (!is_common)
        add_metric_text(summary, "    counted as", "mfu_convention");
    add_fraction(summary, "  HFU", "hfu");
}

/* "1.2201 to 1.2501 s": 5 to 95 % of the samples. */
static void add_interval_cell(struct summary *summary, const struct outcome_interval *interval)
{
    char low[32], high[32];
    if (interval == NULL)
        table_cell(&summary->table, "-");
    else if (text_equal(interval->unit, "s"))
        table_cell(&summary->table, "%.*f to %.*f %s", summary->second_decimals,
                   interval->p05 * summary->second_scale, summary->second_decimals,
                   interval->p95 * summary->second_scale, summary->second_unit);
    else if (text_equal(interval->unit, "1"))
        table_cell(&summary->table, "%.1f to %.1f %%", 100 * interval->p05, 100 * interval->p95);
    else if (interval->p05 >= 1000)
        table_cell(&summary->table, "%s to %s",
                   format_count(low, sizeof(low), llround(interval->p05)),
                   format_count(high, sizeof(high), llround(interval->p95)));
    else
        table_cell(&summary->table, "%.1f to %.1f", interval->p05, interval->p95);
}

static void add_interval(struct summary *summary, const char *label, const char *metric)
{
    bool has_some = false;
    for (int32_t i = 0; i < summary->count; i++)
        has_some = has_some || outcome_interval(summary->outcomes[i], metric) != NULL;
    if (!has_some)
        return;
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++)
        add_interval_cell(summary, outcome_interval(summary->outcomes[i], metric));
}

/* Where runs were sampled. */
static void add_samples(struct summary *summary)
{
    bool has_some = false;
    for (int32_t i = 0; i < summary->count; i++)
        has_some = has_some || summary->outcomes[i]->n_samples > 0;
    if (!has_some)
        return;
    table_text(&summary->table, "");
    table_text(&summary->table, "Samples (5 to 95 % of them; above, the one in the middle)");
    table_row(&summary->table);
    table_cell(&summary->table, "  how many");
    for (int32_t i = 0; i < summary->count; i++)
        table_cell(&summary->table, "%" PRId64, summary->outcomes[i]->n_samples);
    add_interval(summary, "  step time", "step_time_s");
    add_interval(summary, "  exposed fraction", "exposed_comm_fraction");
    add_interval(summary, "  waiting for others", "comm_wait_s");
    add_interval(summary, "  tokens/s", "tokens_per_s");
    add_interval(summary, "  tokens/s/GPU", "tokens_per_s_per_gpu");
    add_interval(summary, "  MFU", "mfu");
    add_interval(summary, "  days for the budget", "budget_days");
    add_interval(summary, "  cost of the budget", "budget_cost");
}

/* "1,488,095 USD", "99.21 USD" */
static void add_price(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    char count[32];
    BUG_IF(metric == NULL);
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++) {
        const char *currency = summary->outcomes[i]->currency;
        double value = 0;
        if (!outcome_number(summary->outcomes[i], metric, &value))
            table_cell(&summary->table, "no price");
        else if (value >= 1e4 && value < 1e15)
            table_cell(&summary->table, "%s %s", format_count(count, sizeof(count), llround(value)),
                       currency != NULL ? currency : "");
        else
            table_cell(&summary->table, value >= 1 ? "%.2f %s" : "%.3g %s", value,
                       currency != NULL ? currency : "");
    }
}

static void add_budget(struct summary *summary)
{
    char count[48];
    table_row(&summary->table);
    table_cell(&summary->table, "  budget, tokens");
    for (int32_t i = 0; i < summary->count; i++) {
        const double tokens = summary->outcomes[i]->budget_tokens;
        table_cell(&summary->table, "%s",
                   isnan(tokens) ? "not given"
                                 : format_quantity(count, sizeof(count), tokens, DIM_TOKENS));
    }
    add_rate(summary, "    days", "budget_days");
    add_rate(summary, "    GPU-hours", "budget_gpu_hours");
}

/* Where the configuration has a price or a number of tokens. */
static void add_money(struct summary *summary)
{
    bool has_price = false, has_budget = false, has_failures = false;
    for (int32_t i = 0; i < summary->count; i++) {
        has_price = has_price || !isnan(summary->outcomes[i]->cost_per_gpu_hour);
        has_budget = has_budget || !isnan(summary->outcomes[i]->budget_tokens);
        has_failures = has_failures || !isnan(summary->outcomes[i]->goodput);
    }
    if (!has_price && !has_budget && !has_failures)
        return;
    table_text(&summary->table, "");
    table_text(&summary->table, "Training");
    add_rate(summary, "  tokens/day", "tokens_per_day");
    if (has_failures)
        add_fraction(summary, "  goodput", "goodput");
    if (has_price) {
        add_price(summary, "  price of a GPU-hour", "cost_per_gpu_hour");
        add_price(summary, "  cost of 1e9 tokens", "cost_per_billion_tokens");
    }
    if (has_budget)
        add_budget(summary);
    if (has_price && has_budget)
        add_price(summary, "    cost", "budget_cost");
}

static void add_bytes(struct summary *summary, const char *label, const char *name)
{
    const struct metric *metric = outcome_metric(name);
    BUG_IF(metric == NULL);
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++)
        add_gib(summary, metric_int(summary->outcomes[i], metric));
}

static void add_category(struct summary *summary, enum memory_category category)
{
    const char *name = memory_category_name(category);
    char label[LABEL_WIDTH + 1];
    bool is_used = false;
    for (int32_t i = 0; i < summary->count; i++)
        is_used = is_used || summary->outcomes[i]->peak_composition[category] != 0;
    if (!is_used)
        return;
    snprintf(label, sizeof(label), "    %s", name);
    for (char *line = strchr(label, '_'); line != NULL; line = strchr(line, '_'))
        *line = ' ';
    table_row(&summary->table);
    table_cell(&summary->table, "%s", label);
    for (int32_t i = 0; i < summary->count; i++)
        add_gib(summary, summary->outcomes[i]->peak_composition[category]);
}

static void add_fits(struct summary *summary)
{
    table_row(&summary->table);
    table_cell(&summary->table, "  fits");
    for (int32_t i = 0; i < summary->count; i++) {
        const struct outcome *outcome = summary->outcomes[i];
        const int64_t spare_bytes = outcome->memory_capacity_bytes - outcome->peak_device_bytes;
        const int64_t shown = outcome->fits ? spare_bytes : outcome->memory_over_bytes;
        if (!outcome->fits && outcome->memory_over_bytes == 0)
            table_cell(&summary->table, "NO, not into the host");
        else
            table_cell(&summary->table, "%s, %.*f %s %s", outcome->fits ? "yes" : "NO",
                       summary->byte_decimals, (double)shown * summary->byte_scale,
                       summary->byte_unit, outcome->fits ? "free" : "over");
    }
}

/* Where offload keeps something. */
static void add_host_memory(struct summary *summary)
{
    bool is_used = false;
    for (int32_t i = 0; i < summary->count; i++)
        is_used = is_used || summary->outcomes[i]->peak_host_bytes > 0;
    if (!is_used)
        return;
    add_bytes(summary, "  states on one host", "peak_host_bytes");
    add_bytes(summary, "    of its memory", "host_memory_bytes");
}

static void add_retries(struct summary *summary)
{
    bool has_some = false;
    for (int32_t i = 0; i < summary->count; i++)
        has_some = has_some || summary->outcomes[i]->alloc_retries > 0;
    if (!has_some)
        return;
    table_row(&summary->table);
    table_cell(&summary->table, "  retries a step");
    for (int32_t i = 0; i < summary->count; i++)
        table_cell(&summary->table, "%.1f, %.*f %s", summary->outcomes[i]->alloc_retries,
                   summary->second_decimals,
                   summary->outcomes[i]->alloc_retry_s * summary->second_scale,
                   summary->second_unit);
}

static void add_memory(struct summary *summary)
{
    table_text(&summary->table, "");
    table_text(&summary->table, "Memory of one GPU");
    add_bytes(summary, "  peak active", "peak_active_bytes");
    add_bytes(summary, "  peak reserved", "peak_reserved_bytes");
    add_bytes(summary, "  peak device", "peak_device_bytes");
    for (int i = 0; i < MEMORY_CATEGORY_COUNT; i++)
        add_category(summary, (enum memory_category)i);
    add_metric_text(summary, "    peak reached at", "peak_at");
    add_metric_text(summary, "      phase", "peak_phase");
    add_metric_text(summary, "      allocated for", "peak_operation");
    add_bytes(summary, "  first step, active", "first_step_peak_active_bytes");
    add_bytes(summary, "  first step, reserved", "first_step_peak_reserved_bytes");
    add_retries(summary);
    add_bytes(summary, "  capacity", "memory_capacity_bytes");
    add_host_memory(summary);
    add_fits(summary);
}

static bool has_warning(const struct outcome *outcome, const char *text)
{
    for (int32_t i = 0; i < outcome->warning_count; i++) {
        if (text_equal(outcome->warnings[i], text))
            return true;
    }
    return false;
}

/* "warning (runs 1, 3): …", once for all runs from `first` on that have it. */
static void write_warning(const struct summary *summary, int32_t first, const char *text,
                          FILE *file)
{
    int32_t run_count = 0;
    for (int32_t i = first; i < summary->count; i++)
        run_count += has_warning(summary->outcomes[i], text) ? 1 : 0;
    fputs("warning", file);
    if (run_count < summary->count) {
        const char *separator = run_count > 1 ? " (runs " : " (run ";
        for (int32_t i = first; i < summary->count; i++) {
            if (!has_warning(summary->outcomes[i], text))
                continue;
            fprintf(file, "%s%" PRId32, separator, i + 1);
            separator = ", ";
        }
        fputc(')', file);
    }
    fprintf(file, ": %s\n", text);
}

static void write_warnings(const struct summary *summary, FILE *file)
{
    bool is_first = true;
    for (int32_t i = 0; i < summary->count; i++) {
        const struct outcome *outcome = summary->outcomes[i];
        for (int32_t k = 0; k < outcome->warning_count; k++) {
            bool is_said = false;
            for (int32_t before = 0; before < i; before++)
                is_said = is_said || has_warning(summary->outcomes[before], outcome->warnings[k]);
            if (is_said)
                continue;
            fputs(is_first ? "\n" : "", file);
            is_first = false;
            write_warning(summary, i, outcome->warnings[k], file);
        }
    }
}

void report_summary(const struct outcome *const *outcomes, int32_t count, FILE *file)
{
    if (count <= 0)
        return;
    struct summary summary = {.outcomes = outcomes, .count = count};
    summary.text_width = (PAGE_WIDTH - LABEL_WIDTH) / count - 2;
    if (summary.text_width < COLUMN_WIDTH_MIN)
        summary.text_width = COLUMN_WIDTH_MIN;
    table_init(&summary.table, count + 1, 1);
    choose_scales(&summary);
    add_identity(&summary);
    add_times(&summary);
    add_throughput(&summary);
    add_samples(&summary);
    add_money(&summary);
    add_memory(&summary);
    table_write(&summary.table, file);
    write_warnings(&summary, file);
    table_release(&summary.table);
}
