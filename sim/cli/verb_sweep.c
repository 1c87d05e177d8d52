/* cli/verb_sweep.c: fsdpsim sweep FILE: many points, played by workers, kept, shown as a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/shard.h"
#include "report/report_sweep.h"
#include "report/report_sweep_view.h"
#include "report/report_tornado.h"
#include "study/pool.h"
#include "study/sweep.h"

/* ---- progress ----------------------------------------------------------------------------- */

struct screen {
    struct command *command;
    const struct sweep_plan *plan;
    bool is_terminal;
    double last_s; /* when something was written */
    bool has_line; /* a line that stands to be overwritten */
};

static const double plain_every_s = 10;
enum { METRICS_MAX = 100 };

static void write_time(struct strbuf *line, double seconds)
{
    const long long whole = (long long)(seconds + 0.5);
    if (whole >= 3600)
        strbuf_printf(line, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        strbuf_printf(line, "%lld:%02lld", whole / 60, whole % 60);
}

static void describe(const struct screen *screen, const struct sweep_progress *progress,
                     struct strbuf *line)
{
    const double rate = progress->elapsed_s > 0 ? (double)progress->done / progress->elapsed_s : 0;
    strbuf_printf(line, "%s %lld of %lld points", progress->is_playing ? "played" : "checked",
                  (long long)progress->done, (long long)progress->total);
    if (rate > 0) {
        strbuf_printf(line, ", %.0f/s, ", rate);
        write_time(line, (double)(progress->total - progress->done) / rate);
        strbuf_add(line, " to go");
    }
    if (progress->best > 0) {
        struct arena scratch = {0};
        strbuf_printf(line, "; best %.0f tokens/s/GPU:", progress->best);
        for (int32_t i = 0; i < screen->plan->axes.count; i++)
            strbuf_printf(
                line, " %s=%s", report_sweep_key(screen->plan, i),
                text_shown(&scratch, sweep_plan_value(screen->plan, progress->best_position, i)));
        arena_release(&scratch);
    }
}

static bool show_progress(void *context, const struct sweep_progress *progress)
{
    struct screen *screen = context;
    const double every_s = screen->is_terminal ? 0.2 : plain_every_s;
    const bool is_over = progress->done == progress->total;
    const bool is_due = progress->elapsed_s >= screen->last_s + every_s;
    if (progress->elapsed_s < screen->last_s)
        screen->last_s = 0; /* a new round */
    if (!screen->command->options.is_quiet && is_due && (screen->is_terminal || !is_over)) {
        struct strbuf line = {0};
        describe(screen, progress, &line);
        if (screen->is_terminal)
            /* One line, whatever its length: no wrapping meanwhile. */
            fprintf(stderr, "\r\033[?7l%s\033[K\033[?7h", line.text);
        else
            fprintf(stderr, "%s\n", line.text);
        screen->has_line = screen->is_terminal;
        screen->last_s = progress->elapsed_s;
        strbuf_release(&line);
    }
    return pool_signals_caught() == 0;
}

static void clear_screen(struct screen *screen)
{
    if (screen->has_line)
        fputs("\r\033[K", stderr);
    screen->has_line = false;
}

/* ---- options ------------------------------------------------------------------------------ */

/* NULL after a message. */
static const struct metric *find_shown_metric(struct command *command)
{
    const char *names[METRICS_MAX + 1];
    int count = 0;
    const char *word = command->options.map != NULL    ? command->options.map
                       : command->options.line != NULL ? command->options.line
                                                       : command->options.tornado;
    for (const struct metric *metric = outcome_metrics; metric->name != NULL; metric++) {
        if (metric->kind == METRIC_TEXT)
            continue;
        if (text_equal(metric->name, word))
            return metric;
        if (count < METRICS_MAX)
            names[count++] = metric->name;
    }
    names[count] = NULL;
    const char *near = nearest_name(word, names);
    (void)command_refuse(command,
                         near != NULL ? arena_printf(&command->arena, "did you mean '%s'?", near)
                                      : "a number of 'run --json', as exposed_comm_fraction",
                         "unknown metric '%s'", word);
    return NULL;
}

static enum status check_options(struct command *command)
{
    const struct options *options = &command->options;
    const int formats = options->is_json + options->is_csv + options->is_markdown +
                        (options->map != NULL) + (options->line != NULL);
    const bool has_metric =
        options->map != NULL || options->line != NULL || options->tornado != NULL;
    enum exit_code code = EXIT_DONE;
    if (formats > 1)
        code = command_refuse(command, NULL,
                              "of --json, --csv, --markdown, --map and --line only one");
    if (options->is_rerun && options->retries_failed)
        code = command_refuse(command, "--rerun plays what failed again too",
                              "'--rerun' does not go with '--retry-failed'");
    if (options->jobs > 4096)
        code = command_refuse(command, "at most 4096", "'--jobs %lld'", (long long)options->jobs);
    if (options->tornado != NULL && (options->map != NULL || options->line != NULL))
        code = command_refuse(command, NULL, "of --map, --line and --tornado only one");
    if (options->sobol > AXIS_MAX_VALUES)
        code = command_refuse(command, arena_printf(&command->arena, "at most %d", AXIS_MAX_VALUES),
                              "'--sobol %lld'", (long long)options->sobol);
    if (has_metric)
        code = find_shown_metric(command) == NULL ? EXIT_INPUT : code;
    return code == EXIT_DONE ? STATUS_OK : STATUS_INPUT;
}

/* A map and a line are cut out of all combinations. */
static enum status check_view(struct command *command, const struct sweep_plan *plan)
{
    const struct options *options = &command->options;
    if (options->map != NULL && plan->axes.count < 2)
        return (enum status)command_refuse(command, "--line shows one key",
                                           "'--map' wants two swept keys");
    const bool is_product = !plan->is_one_by_one && (!plan->is_zip || plan->axes.count == 1);
    if ((options->map != NULL || options->line != NULL) && !is_product)
        return (enum status)command_refuse(command, NULL,
                                           "'--%s' wants every combination: no --zip, no --sobol",
                                           options->map != NULL ? "map" : "line");
    return STATUS_OK;
}

/* ---- results ------------------------------------------------------------------------------ */

static enum status print(struct command *command, struct sweep *sweep)
{
    const struct options *options = &command->options;
    if (options->is_json)
        return report_sweep_json(sweep, stdout, &command->diag);
    if (options->is_csv)
        return report_sweep_csv(sweep, stdout, &command->diag);
    if (options->tornado != NULL && !options->is_markdown)
        return report_tornado(sweep, find_shown_metric(command), stdout, &command->diag);
    if (options->map != NULL)
        return report_sweep_map(sweep, find_shown_metric(command), stdout, &command->diag);
    if (options->line != NULL)
        return report_sweep_line(sweep, find_shown_metric(command), stdout, &command->diag);
    return report_sweep_table(sweep, options->is_markdown, stdout, &command->diag);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void tell(struct command *command, const struct sweep *sweep)
{
    const struct sweep_counts *counts = &sweep->counts;
    const char *path = text_shown(&command->arena, sweep->options.db);
    if (command->options.is_quiet)
        return;
    fprintf(stderr, "%lld point%s: %lld played, %lld stored before", (long long)counts->points,
            plural(counts->points), (long long)counts->played, (long long)counts->stored_before);
    if (counts->equal > 0)
        fprintf(stderr, ", %lld equal to another", (long long)counts->equal);
    if (counts->invalid > 0)
        fprintf(stderr, ", %lld invalid", (long long)counts->invalid);
    if (counts->failed > 0)
        fprintf(stderr, ", %lld failed", (long long)counts->failed);
    fprintf(stderr, "; in %s\n", path);
}

static void tell_dry(const struct sweep *sweep)
{
    const struct sweep_counts *counts = &sweep->counts;
    struct strbuf time = {0};
    char seconds[32];
    strbuf_printf(&time, "%s", format_seconds(seconds, sizeof(seconds), sweep->estimate_s));
    printf("%lld point%s: %lld to play, %lld stored before, %lld equal to another, %lld invalid, "
           "%lld failed before\n",
           (long long)counts->points, plural(counts->points), (long long)counts->pending,
           (long long)counts->stored_before, (long long)counts->equal, (long long)counts->invalid,
           (long long)counts->failed);
    if (counts->pending > 0)
        fprintf(stderr, "about %s with %d worker%s\n", time.text, (int)sweep->options.workers,
                plural(sweep->options.workers));
    strbuf_release(&time);
}

/* When no point is valid: what the first one says. */
static enum status refuse_all(struct command *command, const struct sweep *sweep)
{
    for (int64_t i = 0; i < sweep->plan->point_count; i++) {
        const struct sweep_point *point = &sweep->points[i];
        if (sweep_has(sweep, i) && point->state == POINT_INVALID)
            return (enum status)command_refuse(
                command, arena_printf(&command->arena, "the first: %s", point->reason),
                "all %lld points are invalid", (long long)sweep->counts.points);
    }
    return STATUS_OK;
}

static enum exit_code finish(struct command *command, struct sweep *sweep)
{
    const struct sweep_counts *counts = &sweep->counts;
    enum status status = STATUS_OK;
    if (sweep->is_stopped) {
        if (!command->options.is_quiet)
            fprintf(stderr,
                    "stopped: %lld of %lld points are done; the same command goes on from there\n",
                    (long long)counts->done, (long long)counts->points);
        return EXIT_STOPPED;
    }
    if (counts->points > 0 && counts->invalid == counts->points)
        return (enum exit_code)refuse_all(command, sweep);
    if (command->options.is_dry_run) {
        tell_dry(sweep);
        return EXIT_DONE;
    }
    status = print(command, sweep);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    tell(command, sweep);
    return counts->failed > 0 ? EXIT_SOME_FAILED : EXIT_DONE;
}

static enum exit_code play(struct command *command, const struct sweep_plan *plan,
                           struct sweep_options *options)
{
    const char *term = getenv("TERM");
    struct screen screen = {.command = command, .plan = plan};
    struct sweep sweep = {0};
    screen.is_terminal = isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
    options->context = &screen;
    options->goes_on = show_progress;
    pool_catch_signals(EXIT_STOPPED);
    const enum status status = command->options.is_dry_run
                                   ? sweep_dry_run(&sweep, plan, options, &command->diag)
                                   : sweep_run(&sweep, plan, options, &command->diag);
    clear_screen(&screen);
    const enum exit_code code =
        status == STATUS_OK ? finish(command, &sweep) : (enum exit_code)status;
    sweep_release(&sweep);
    return code;
}

/* The ranks of a job, or processes of this machine. */
static enum status check_team(struct command *command, const char *path)
{
    if (command->team == NULL)
        return STATUS_OK;
    if (command->options.jobs > 0)
        return (enum status)command_refuse(command, "mpirun -n, srun -n",
                                           "'--jobs' does not go with several ranks: each plays");
    if (text_equal(path, "-"))
        return (enum status)command_refuse(command, "name a file that all machines see",
                                           "several ranks cannot read standard input");
    return STATUS_OK;
}

/* In a worker of a team: what is wrong is said by its leader. */
static enum exit_code serve(struct command *command, const struct sweep_plan *plan,
                            const struct sweep_options *options, enum status status)
{
    sweep_serve(plan, options,
                status == STATUS_OK ? NULL : diag_text(&command->diag, &command->arena));
    return EXIT_DONE;
}

enum exit_code verb_sweep(struct command *command)
{
    command_add_overrides(command);
    const struct options *chosen = &command->options;
    struct config_cache cache = {0};
    struct sweep_plan plan = {0};
    struct sweep_options options = {.workers = chosen->jobs > 0 ? (int32_t)chosen->jobs
                                                                : pool_default_workers(),
                                    .team = command->team,
                                    .is_rerun = chosen->is_rerun,
                                    .retries_failed = chosen->retries_failed,
                                    .has_detail = chosen->has_detail};
    struct text_list overrides = {0};
    const char *path = command_split_file(command, command->arguments.items[0], &overrides);
    const struct sweep_request request = {.path = path,
                                          .overrides = overrides.items,
                                          .override_count = overrides.count,
                                          .is_zip = chosen->is_zip,
                                          .is_one_by_one =
                                              chosen->tornado != NULL && chosen->sobol == 0,
                                          .sobol = chosen->sobol,
                                          .scaling = chosen->scaling};
    enum exit_code code = EXIT_INPUT;
    enum status status = check_options(command);
    if (status == STATUS_OK)
        status = check_team(command, path);
    if (status == STATUS_OK)
        status = shard_read(command, chosen->shard, &options.shard, &options.shard_count);
    if (status == STATUS_OK)
        status = sweep_plan_make(&plan, &command->arena, &request, &cache, &command->diag);
    if (status == STATUS_OK)
        status = check_view(command, &plan);
    if (command->team != NULL && command->team->is_worker) {
        code = serve(command, &plan, &options, status);
    } else if (status == STATUS_OK) {
        options.db = store_default_path(&command->arena, chosen->db);
        code = play(command, &plan, &options);
    } else {
        code = (enum exit_code)status;
    }
    command_flush(command);
    config_cache_release(&cache);
    return code;
}
