/*
 * report/report_comm.h: a simulated collective as nccl-tests prints a measured one, so that both
 * can be laid side by side; and for machines.
 *
 * Header lines, columns, widths, decimals, units and busbw factors are those of the program;
 * `#wrong` is N/A (nothing is computed), and in-place is as fast as out-of-place. `size` is rounded
 * as there: all-gather, reduce-scatter and all-to-all to 16 bytes a rank, `count` is of one rank
 * for these.
 *
 * Source: NVIDIA/nccl-tests src/util.cu, src/all_gather.cu, src/reduce_scatter.cu,
 * src/broadcast.cu, src/alltoall.cu, src/sendrecv.cu.
 */
#ifndef FSDPSIM_REPORT_REPORT_COMM_H
#define FSDPSIM_REPORT_REPORT_COMM_H

#include <stdint.h>
#include <stdio.h>

#include "cluster/collective_op.h"

struct comm_row {
    int64_t bytes, count; /* of floats */
    double time_s;
};

struct comm_report {
    const char *cluster, *gpu;
    enum collective_op op;
    int64_t nodes, gpus_per_node;
    int64_t begin_bytes, end_bytes, step; /* step: a factor, or bytes */
    int is_factor;
    const struct comm_row *rows;
    int32_t row_count;
};

void report_comm(const struct comm_report *report, FILE *file);
void report_comm_json(const struct comm_report *report, FILE *file);

/* The size that nccl-tests makes of `bytes` over n ranks, and the count it prints; 0: too small. */
int64_t comm_size(enum collective_op op, int64_t ranks, int64_t bytes, int64_t *count);

#endif
