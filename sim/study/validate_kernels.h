/*
 * study/validate_kernels.h: predicted kernel times beside measured ones.
 *
 * Each row of a CSV is one kernel as a benchmark measured it, alone on a cool GPU; the prediction
 * is gpu_kernel_burst_s of the GPU file of that name (or alias). What training adds (layout of
 * gradients, sustained clock, the ceiling) is left out on both sides. Without a file: the hold-out
 * in results/measured/kernels (KIND-GPU.csv and KIND.csv for KIND gemm, attention, memory), points
 * that took no part in making the tables that ship.
 *
 * Columns, by name, in any order; those marked * must be there, an empty cell counts as 0:
 *
 *   gpu*       name or alias of a GPU file
 *   kernel*    gemm, attention, norm, elementwise, softmax_loss, embedding, copy_in, copy_out,
 *              chunk_cat, cast, optimizer, reduce
 *   us*        measured microseconds
 *   dtype      fp32 bf16 fp16 fp8 fp64 (of the operands); empty: bf16
 *   impl       attention: fa1 fa2 fa3 triton xformers cudnn eager; memory bound: eager composite
 *              inductor hand; empty: the first kind in model/kernel.h
 *   pass       forward (or empty), backward
 *   causal     1: attention skips the upper half
 *   batch      GEMMs at once; attention: sequences · heads; 0 counts as 1
 *   m, n, k    GEMM; attention: m queries, n keys, k head dimension; norms: k the row
 *   bytes      HBM traffic with every operand moved once; GEMM and attention: 0 computes it
 *   copy_bytes traffic of a copy that was timed with the kernel; predicted as a copy_in
 *   source, licence   not read here, but a table without them does not ship
 *
 * Attention does 4·batch·m·n·k FLOP forward, 2.5 times that backward, half when causal.
 *
 * A row whose GPU or dtype has no file or peak is skipped and counted. Cells are GPU × kernel ×
 * dtype or implementation × pass, GEMMs apart by 1 GFLOP; error = predicted / measured − 1. Goals
 * for cells of at least 30 rows: GEMMs of 1 GFLOP and more: median |error| <= 5 %, 90th percentile
 * <= 15 %; attention and memory-bound kernels: median <= 10 %. A cell with fewer rows counts as
 * assumed. Small GEMMs have no goal. Beside the 90th percentile of a GEMM cell stands that by which
 * the measurements of the table scatter about their own neighbours (cluster/gemm_grid.h).
 */
#ifndef FSDPSIM_STUDY_VALIDATE_KERNELS_H
#define FSDPSIM_STUDY_VALIDATE_KERNELS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "study/validate.h"

enum kernel_verdict {
    KERNEL_REACHED,
    KERNEL_MISSED,
    KERNEL_ASSUMED, /* fewer than 30 rows */
    KERNEL_NO_GOAL
};
const char *kernel_verdict_name(enum kernel_verdict verdict);

struct kernel_cell {
    const char *gpu, *what;       /* "h100-sxm5-80gb", "gemm bf16 from 1 GFLOP" */
    double median_goal, p90_goal; /* NaN: none */
    double scatter; /* 90th percentile, of the measurements themselves (gemm_model_scatter); NaN */
    struct validate_score score;
    enum kernel_verdict verdict;
    struct {
        double *items;
        int32_t count, capacity;
    } errors;
};

struct kernel_validation {
    struct {
        struct kernel_cell *items;
        int32_t count, capacity;
    } cells; /* in order of the files */
    struct validate_exclusion *skipped;
    int32_t skipped_count;
    int64_t rows, rows_used;
    int32_t verdicts[KERNEL_NO_GOAL + 1];
};

/* `csv_path`: NULL for the hold-out. A malformed CSV is STATUS_INPUT. */
MUST_CHECK enum status kernel_validation_run(struct arena *arena, const char *csv_path,
                                             struct kernel_validation *validation,
                                             struct diag *diag);

#endif
