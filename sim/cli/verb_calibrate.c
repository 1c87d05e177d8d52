/* cli/verb_calibrate.c: fsdpsim calibrate nccl LOG...: measured collectives → a calibration file.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "collective/calibrate.h"
#include "report/report_calibrate.h"
#include "run/comm.h"

/* "out/my-cluster.yaml" → "my-cluster". */
static const char *name_of(struct command *command, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    if (strcmp(base, "-") == 0)
        return "calibration";
    return dot != NULL && dot != base ? arena_strndup(&command->arena, base, (size_t)(dot - base))
                                      : base;
}

static enum status write_output(struct command *command, const struct calibrate_set *set)
{
    FILE *file = command_output_open(command);
    if (file == NULL)
        return STATUS_WORLD;
    calibrate_write_yaml(set, name_of(command, command->options.output), file);
    return command_output_close(command, file);
}

static enum status read_logs(struct command *command, struct nccl_log *log)
{
    struct nccl_request request;
    if (!command_log_request(command, &request))
        return STATUS_INPUT;
    enum status status = STATUS_OK;
    for (int32_t i = 1; i < command->arguments.count; i++) {
        const enum status one = nccl_log_load(&command->arena, command->arguments.items[i],
                                              &request, log, &command->diag);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}

/* A fit beside what the model of a cluster says of the same collective: `--cluster`. */
static void compare_fit(struct command *command, struct comm_machine *machine,
                        const struct calibrate_fit *fit)
{
    /* A cable, a NIC or a setting is wrong rather than the model: healthy tables lie within it. */
    const double degraded_share = 0.6;
    const struct calibration_table *table = &fit->table;
    struct diag *diag = &command->diag;
    double *errors = ARENA_ARRAY(&command->arena, double, fit->point_count);
    double best_s = (double)NAN;
    int32_t count = 0;
    if (comm_machine_shape(machine, table->nodes, table->gpus_per_node) != STATUS_OK)
        return;
    for (int32_t i = 0; i < fit->point_count; i++) {
        double time_s;
        if (comm_play(machine, table->op, fit->points[i].bytes, NETWORK_FLOWS, &time_s) !=
            STATUS_OK)
            return;
        errors[count++] = time_s / fit->points[i].time_s - 1;
        if (fit->points[i].bytes == fit->best_at_bytes)
            best_s = time_s / fit->points[i].time_s;
    }
    const double bias = quantile(errors, count, 0.5);
    for (int32_t i = 0; i < count; i++)
        errors[i] = fabs(errors[i]);
    if (!command->options.is_json && !text_equal(command->options.output, "-"))
        printf(
            "\n%s over %lld x %lld GPUs beside cluster '%s': the model is off by %.1f %% (median), "
            "bias %+.1f %%;\nat its best the log reaches %.0f %% of the model's rate\n",
            collective_op_name(table->op), (long long)table->nodes, (long long)table->gpus_per_node,
            machine->cluster.name, quantile(errors, count, 0.5) * 100, bias * 100, best_s * 100);
    if (best_s < degraded_share)
        diag_add(diag, DIAG_WARNING, fit->points[0].place,
                 "a NIC or cable at a lower rate, a missing GPUDirect RDMA, a wrong NCCL setting; "
                 "or the cluster file is not this machine",
                 "%s: the best rate is %.0f %% of what cluster '%s' should reach",
                 collective_op_name(table->op), best_s * 100, machine->cluster.name);
}

static enum status compare(struct command *command, const struct calibrate_set *set)
{
    struct comm_machine machine = {0};
    const char *name = command->options.cluster;
    if (name == NULL)
        return STATUS_OK;
    enum status status = comm_machine_load(&machine, name, command->options.overrides.items,
                                           command->options.overrides.count, &command->diag);
    for (int32_t i = 0; i < set->count && status == STATUS_OK; i++) {
        compare_fit(command, &machine, &set->items[i]);
        status = command->diag.error_count > 0 ? STATUS_INPUT : STATUS_OK;
    }
    command_flush(command);
    comm_machine_release(&machine);
    return status;
}

enum exit_code verb_calibrate(struct command *command)
{
    const struct options *options = &command->options;
    struct nccl_log log = {0};
    struct calibrate_set set = {0};
    if (!text_equal(command->arguments.items[0], "nccl"))
        return command_refuse_word(command, command->arguments.items[0]);
    if (options->cluster == NULL && options->overrides.count > 0)
        return command_refuse(command, NULL, "'-s' goes with '--cluster'");
    if (command->arguments.count < 2)
        return command_refuse(command, "what nccl-tests printed, or its JSON (-J); '-': stdin",
                              "'calibrate nccl' wants a LOG");
    enum status status = read_logs(command, &log);
    if (status != STATUS_OK)
        return (enum exit_code)status;
    if (calibrate_log(&command->arena, &log, &set, &command->diag))
        calibrate_warn(&set, &command->diag);
    else
        status = STATUS_INPUT;
    const bool is_on_stdout = text_equal(options->output, "-");
    if (status == STATUS_OK && options->is_json && !is_on_stdout)
        report_calibrate_json(&set, stdout);
    else if (status == STATUS_OK && !is_on_stdout)
        report_calibrate(&set, stdout);
    if (status == STATUS_OK)
        status = compare(command, &set);
    if (status == STATUS_OK && options->output != NULL)
        status = write_output(command, &set);
    calibrate_set_release(&set);
    return (enum exit_code)status;
}
