/*
 * collective/pat.h: all-gather and reduce-scatter over parallel aggregated trees, where every rank
 * is alone on its host: log2(k) levels instead of k − 1 steps, so long rings of short messages win.
 *
 *   time = base + floor(log2 k)·(a_across + pipelined)/overlap + k·rank_latency
 *          + S·(k − 1)/k / (NIC rate·pat_efficiency)
 *
 * Source: NVIDIA nccl src/graph/tuning.cc (since 2.23), whose constants stand in
 * topologies/libraries; protocol Simple only.
 */
#ifndef FSDPSIM_COLLECTIVE_PAT_H
#define FSDPSIM_COLLECTIVE_PAT_H

#include "collective/scene.h"

struct way pat_way(const struct scene *scene, enum protocol protocol);

#endif
