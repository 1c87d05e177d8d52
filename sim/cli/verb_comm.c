/* cli/verb_comm.c: fsdpsim comm CLUSTER: a simulated collective in the table of nccl-tests. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "base/units.h"
#include "cli/command.h"
#include "collective/nccl_log.h"
#include "report/report_comm.h"
#include "run/comm.h"

/* Of nccl-tests: both ends 32 MiB, in steps of 1 MiB. */
static const char default_begin[] = "64KiB";
static const char default_end[] = "1GiB";
enum { DEFAULT_FACTOR = 2, ROWS_MAX = 100000 };

struct sizes {
    int64_t begin, end;
    int64_t factor, step_bytes; /* one of them */
};

/* "64KiB", or as nccl-tests has it: "64K", "65536". False after a message. */
static bool read_size(struct command *command, const char *option, const char *text, int64_t *bytes)
{
    double value;
    const size_t length = strlen(text);
    const char *read = text;
    if (length > 0 && strchr("KMGT", text[length - 1]) != NULL)
        read = arena_printf(&command->arena, "%siB", text);
    if (text_to_int64(text, bytes) && *bytes > 0)
        return true;
    if (units_parse(read, DIM_BYTES, &value, NULL) == UNIT_OK && value >= 1 && value <= 1e15) {
        *bytes = (int64_t)value;
        return true;
    }
    (void)command_refuse(command, "as 64KiB, 64K, 1.5GB or 65536; at most 1 PB",
                         "'--%s' wants a size, not '%s'", option,
                         text_shown(&command->arena, text));
    return false;
}

static bool read_sizes(struct command *command, struct sizes *sizes)
{
    const struct options *options = &command->options;
    bool is_good = read_size(
        command, "begin", options->begin != NULL ? options->begin : default_begin, &sizes->begin);
    /* Without an end, one size. */
    const char *end = options->end != NULL     ? options->end
                      : options->begin != NULL ? options->begin
                                               : default_end;
    is_good = read_size(command, "end", end, &sizes->end) && is_good;
    if (options->step != NULL)
        is_good = read_size(command, "step", options->step, &sizes->step_bytes) && is_good;
    if (options->step != NULL && options->factor != 0) {
        (void)command_refuse(command, NULL, "'--step' and '--factor' exclude each other");
        is_good = false;
    }
    sizes->factor = options->factor != 0 ? options->factor : DEFAULT_FACTOR;
    if (options->factor == 1) {
        (void)command_refuse(command, NULL, "'--factor' wants at least 2");
        is_good = false;
    }
    if (is_good && sizes->end < sizes->begin) {
        (void)command_refuse(command, NULL, "'--end' is less than '--begin'");
        is_good = false;
    }
    if (is_good && options->step != NULL &&
        (sizes->end - sizes->begin) / sizes->step_bytes >= ROWS_MAX) {
        (void)command_refuse(command, NULL, "more than %d sizes", (int)ROWS_MAX);
        is_good = false;
    }
    return is_good;
}

/* The words of -s, and --algo and --proto as such. */
static const char *const *overrides_of(struct command *command, int32_t *count)
{
    const struct options *options = &command->options;
    const char **list = ARENA_ARRAY(&command->arena, const char *, options->overrides.count + 2);
    *count = 0;
    if (options->algorithm != NULL)
        list[(*count)++] =
            arena_printf(&command->arena, "collectives.algorithm=%s", options->algorithm);
    if (options->protocol != NULL)
        list[(*count)++] =
            arena_printf(&command->arena, "collectives.protocol=%s", options->protocol);
    for (int32_t i = 0; i < options->overrides.count; i++)
        list[(*count)++] = options->overrides.items[i];
    return list;
}

static enum status play_sizes(struct command *command, struct comm_machine *machine,
                              const struct sizes *sizes, struct comm_report *report,
                              enum network_mode network)
{
    struct {
        struct comm_row *items;
        int32_t count, capacity;
    } rows = {0};
    const bool is_factor = sizes->step_bytes == 0;
    const int64_t ranks = machine->layout.ranks;
    for (int64_t bytes = sizes->begin; bytes <= sizes->end;
         bytes = is_factor ? bytes * sizes->factor : bytes + sizes->step_bytes) {
        struct comm_row row;
        row.bytes = comm_size(report->op, ranks, bytes, &row.count);
        if (row.bytes == 0) {
            diag_add(&command->diag, DIAG_NOTE, NO_PLACE, NULL,
                     "%" PRId64 " bytes over %" PRId64 " ranks: less than 16 bytes each, left out",
                     bytes, ranks);
            continue;
        }
        const enum status status =
            comm_play(machine, report->op, (double)row.bytes, network, &row.time_s);
        if (status != STATUS_OK)
            return status;
        *ARENA_PUSH(&command->arena, &rows) = row;
    }
    report->rows = rows.items;
    report->row_count = rows.count;
    return STATUS_OK;
}

static bool read_op(struct command *command, enum collective_op *op)
{
    static const char accepted[] =
        "accepted: all_gather, reduce_scatter, all_reduce, broadcast, all_to_all, send_recv";
    const char *name = command->options.op;
    if (name != NULL && nccl_op_from_name(name, op))
        return true;
    if (name == NULL)
        (void)command_refuse(command, accepted, "'comm' wants a collective: --op");
    else
        (void)command_refuse(command, accepted, "unknown collective '%s'",
                             text_shown(&command->arena, name));
    return false;
}

static bool read_network(struct command *command, enum network_mode *network)
{
    const char *word = command->options.network;
    *network = text_equal(word, "messages") ? NETWORK_MESSAGES : NETWORK_FLOWS;
    if (word == NULL || *network == NETWORK_MESSAGES || text_equal(word, "flows"))
        return true;
    (void)command_refuse(command, "accepted: flows, messages", "unknown network '%s'", word);
    return false;
}

enum exit_code verb_comm(struct command *command)
{
    const struct options *options = &command->options;
    struct comm_machine machine = {0};
    struct comm_report report = {0};
    struct sizes sizes = {0};
    enum network_mode network;
    int32_t override_count;
    const bool is_read = read_op(command, &report.op);
    const bool has_sizes = read_sizes(command, &sizes);
    if (!read_network(command, &network) || !is_read || !has_sizes)
        return EXIT_INPUT;
    const char *const *overrides = overrides_of(command, &override_count);
    enum status status = comm_machine_load(&machine, command->arguments.items[0], overrides,
                                           override_count, &command->diag);
    if (status == STATUS_OK)
        status = comm_machine_shape(&machine, options->nodes, options->gpus_per_node);
    if (status == STATUS_OK && machine.layout.ranks < 2) {
        (void)command_refuse(command, "--nodes N, --gpus-per-node N", "one GPU: nothing is sent");
        status = STATUS_INPUT;
    }
    if (status == STATUS_OK)
        status = play_sizes(command, &machine, &sizes, &report, network);
    if (status == STATUS_OK) {
        report.cluster = machine.cluster.name;
        report.gpu = machine.cluster.gpu.name;
        report.nodes = machine.layout.hosts;
        report.gpus_per_node = machine.layout.gpus_per_host;
        report.begin_bytes = sizes.begin;
        report.end_bytes = sizes.end;
        report.is_factor = sizes.step_bytes == 0;
        report.step = report.is_factor ? sizes.factor : sizes.step_bytes;
        if (options->is_json)
            report_comm_json(&report, stdout);
        else
            report_comm(&report, stdout);
    }
    command_flush(command);
    comm_machine_release(&machine);
    return (enum exit_code)status;
}
