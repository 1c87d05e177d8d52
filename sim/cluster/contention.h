/*
 * cluster/contention.h: how much longer a kernel takes beside a collective.
 *
 * A collective's kernel holds one SM a channel from its start; while its bytes move it shares
 * caches and memory with everything else. With S SMs, of which c are held, a kernel of T blocks of
 * which an SM runs one at a time:
 *
 *     slowdown = (W(T, S − c) + (a − 1) · T / (S − c)) / W(T, S)
 *
 * W is the number of waves: ceil(T / S) for a matrix product, whose blocks are alike, and
 * max(1, T / S) for attention and kernels not known closer, whose blocks fill each other's gaps.
 * a = 1 + kernel_loss_per_hbm_share · (share of the memory bandwidth that transfers use) is for
 * caches and memory: it counts as far as blocks run, not in the idle part of a last wave. A kernel
 * bound by memory has SMs to spare and takes a times as long.
 *
 * The blocks of a product are output tiles, the largest of 256 × 128, 128 × 128, 128 × 64, 64 × 64
 * (either way round) that keeps two fifths of the SMs busy.
 *
 * Examples, S = 132, c = 24, a = 1.13: 8192 × 4096 has 1,024 tiles, 8 waves of 132 or 10 of 108:
 * (10 + 0.13 · 9.48) / 8 = 1.40. Exactly 132 tiles: (2 + 0.13 · 1.22) / 1 = 2.16. 64 tiles: 1.08.
 * Attention of many blocks: 1.13 · 132 / 108 = 1.38.
 *
 * Sources: one channel is one SM (NVIDIA nccl); waves: pytorch issue 143988, NVIDIA forum 337991;
 * what the two make together: pytorch pull request 179937, matmuls 1.3 to 1.4 beside FSDP's
 * collectives on 8 H100.
 *
 * Left out: kernels that run when the collective starts (its blocks wait for free SMs), persistent
 * kernels whose grid is fixed at S whatever their tiles. Kernels that need
 * all SMs at once do not run beside collectives at all (machine_lane.c).
 */
#ifndef FSDPSIM_CLUSTER_CONTENTION_H
#define FSDPSIM_CLUSTER_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/gpu.h"

struct contention {
    int64_t sms_held;      /* by running collectives */
    double cache_slowdown; /* a, at least 1 */
};

/* At least 1. `is_memory_bound` as gpu_kernel_s says. */
double contention_slowdown(const struct contention *contention, int64_t sm_count,
                           const struct kernel *kernel, bool is_memory_bound);

#endif
