/* report/report_comm.c: see report_comm.h. */
#include "report/report_comm.h"

#include <inttypes.h>
#include <stdbool.h>

#include "collective/nccl_log.h"
#include "report/json_writer.h"

enum { FLOAT_BYTES = 4, ALIGN_BYTES = 16 };

int64_t comm_size(enum collective_op op, int64_t ranks, int64_t bytes, int64_t *count)
{
    if (op == COLLECTIVE_ALL_REDUCE || op == COLLECTIVE_BROADCAST || op == COLLECTIVE_SEND_RECV) {
        *count = bytes / FLOAT_BYTES;
        return *count * FLOAT_BYTES;
    }
    const int64_t per_rank = bytes / FLOAT_BYTES / ranks * FLOAT_BYTES / ALIGN_BYTES * ALIGN_BYTES;
    *count = per_rank / FLOAT_BYTES;
    return per_rank * ranks;
}

/* The programs of nccl-tests, less "_perf". */
static const char *program_of(enum collective_op op)
{
    if (op == COLLECTIVE_ALL_TO_ALL)
        return "alltoall";
    return op == COLLECTIVE_SEND_RECV ? "sendrecv" : collective_op_name(op);
}

static bool is_reduction(enum collective_op op)
{
    return op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_REDUCE;
}

/* ---- as nccl-tests prints ------------------------------------------------------------------- */

/* As many decimals as fit into `width`: 2, 1, 0, then an exponent. */
static void print_float(double value, int width, FILE *file)
{
    int digits = 0;
    double limit = 1;
    while (value >= limit) {
        limit *= 10;
        digits++;
    }
    if (digits < width - 2)
        fprintf(file, "%*.2f", width, value);
    else if (digits < width - 1)
        fprintf(file, "%*.1f", width, value);
    else if (digits < width + 1)
        fprintf(file, "%*.0f", width, value);
    else
        fprintf(file, "%*.1e", width, value);
}

static double busbw_of(const struct comm_report *report, const struct comm_row *row)
{
    return (double)row->bytes / row->time_s *
           nccl_bus_factor(report->op, report->nodes * report->gpus_per_node);
}

static void print_group(const struct comm_report *report, const struct comm_row *row, FILE *file)
{
    fputs("  ", file);
    print_float(row->time_s * 1e6, 7, file);
    fputs("  ", file);
    print_float((double)row->bytes / row->time_s / 1e9, 6, file);
    fputs("  ", file);
    print_float(busbw_of(report, row) / 1e9, 6, file);
    fputs("     N/A", file);
}

static void print_head(const struct comm_report *report, FILE *file)
{
    fprintf(file, "# Simulated by fsdpsim on cluster '%s'\n", report->cluster);
    fprintf(file, "# Collective test starting: %s_perf\n", program_of(report->op));
    fprintf(file,
            "# nThread 1 nGpus 1 minBytes %" PRId64 " maxBytes %" PRId64 " step: %" PRId64
            "(%s) warmup iters: 1 iters: 1 agg iters: 1 validation: 0 graph: 0\n#\n# Using "
            "devices\n",
            report->begin_bytes, report->end_bytes, report->step,
            report->is_factor ? "factor" : "bytes");
    for (int64_t rank = 0; rank < report->nodes * report->gpus_per_node; rank++)
        fprintf(file,
                "#  Rank %2" PRId64 " Group  0 Pid      0 on %6s%04" PRId64 " device %2" PRId64
                " [0000:00:00] %s\n",
                rank, "host", rank / report->gpus_per_node, rank % report->gpus_per_node,
                report->gpu);
    fprintf(file,
            "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       "
            "in-place          \n",
            "", "", "", "", "");
    fprintf(file, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size",
            "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
            "busbw", "#wrong");
    fprintf(file, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)",
            "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
            "");
}

void report_comm(const struct comm_report *report, FILE *file)
{
    double sum = 0;
    print_head(report, file);
    for (int32_t i = 0; i < report->row_count; i++) {
        const struct comm_row *row = &report->rows[i];
        fprintf(file, "%12" PRId64 "  %12" PRId64 "  %8s  %6s  %6d", row->bytes, row->count,
                "float", is_reduction(report->op) ? "sum" : "none",
                report->op == COLLECTIVE_BROADCAST ? 0 : -1);
        print_group(report, row, file);
        print_group(report, row, file);
        fputc('\n', file);
        sum += busbw_of(report, row) / 1e9;
    }
    fprintf(file, "# %-20s : %d %s\n", "Out of bounds values", 0, "OK");
    fprintf(file, "# %-20s : %g\n#\n", "Avg bus bandwidth",
            report->row_count > 0 ? sum / report->row_count : 0.0);
    fprintf(file, "# Collective test concluded: %s_perf\n", program_of(report->op));
}

/* ---- JSON --------------------------------------------------------------------------------- */

void report_comm_json(const struct comm_report *report, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "cluster");
    json_text(&json, report->cluster);
    json_key(&json, "gpu");
    json_text(&json, report->gpu);
    json_key(&json, "collective");
    json_text(&json, collective_op_name(report->op));
    json_key(&json, "nodes");
    json_int(&json, report->nodes);
    json_key(&json, "gpus_per_node");
    json_int(&json, report->gpus_per_node);
    json_key(&json, "rows");
    json_begin_array(&json);
    for (int32_t i = 0; i < report->row_count; i++) {
        const struct comm_row *row = &report->rows[i];
        json_begin_object(&json);
        json_key(&json, "size_bytes");
        json_int(&json, row->bytes);
        json_key(&json, "count");
        json_int(&json, row->count);
        json_key(&json, "time_s");
        json_double(&json, row->time_s);
        json_key(&json, "algbw_bytes_per_s");
        json_double(&json, (double)row->bytes / row->time_s);
        json_key(&json, "busbw_bytes_per_s");
        json_double(&json, busbw_of(report, row));
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
