/*
 * collective/choice.h: which algorithm and protocol a collective takes: the fastest of those that
 * can run it, alone, by the closed forms of ring.h, tree.h, nvls.h, pat.h.
 *
 * NCCL chooses by a model of its own (src/graph/tuning.cc), which is optimistic between 64 KiB and
 * 32 MiB and now and then wrong by a factor of two near a switch, most often LL kept for too long.
 * The fastest is what a tuned run does, is continuous in size and never slower for fewer bytes.
 *
 * `algorithm` and `protocol` of the cluster restrict the choice, as NCCL_ALGO and NCCL_PROTO; where
 * nothing is left for a collective it runs on a ring.
 */
#ifndef FSDPSIM_COLLECTIVE_CHOICE_H
#define FSDPSIM_COLLECTIVE_CHOICE_H

#include "collective/scene.h"

struct way choose_way(const struct scene *scene);

#endif
