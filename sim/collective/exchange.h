/*
 * collective/exchange.h: direct exchanges: all-to-all, and send and receive along the group.
 *
 * All-to-all of S bytes a rank (the size of nccl-tests' alltoall_perf): S/n to each other rank, all
 * at a time.
 *
 *   time = base + a + S·(n − 1)/n / min(port rate·(n − 1)/(g − 1), NIC rate·…)
 *
 * where (g − 1)/(n − 1) of what a rank sends stays in its host and the rest passes the NICs. Send
 * and receive: each rank sends S to the next of the group, so the last of a host sends it out.
 *
 * Rates are `exchange_efficiency` of what rings reach. Example: 8 H100, 256 MiB: 234.9 MB / (0.86 ·
 * 379 GB/s) = 0.72 ms (aiconfigurator measured 0.76).
 */
#ifndef FSDPSIM_COLLECTIVE_EXCHANGE_H
#define FSDPSIM_COLLECTIVE_EXCHANGE_H

#include "collective/scene.h"

struct way exchange_way(const struct scene *scene, enum protocol protocol);

#endif
