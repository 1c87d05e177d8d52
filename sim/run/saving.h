/*
 * run/saving.h: what saving checkpoints costs a step (`train.checkpoint`), in closed form.
 *
 * What is saved is the state that training goes on from: parameters as they are stored, the
 * optimizer's moments, a master copy. torch.distributed.checkpoint (DCP) writes each shard once and
 * what is replicated from one of its ranks, evenly, so that every host writes the same share;
 * DeepSpeed's stages 1 and 2 write the whole parameters from rank 0.
 *
 *   write_s = max(bytes of the fullest host / storage.write, bytes / storage.shared_write)
 *   copy_s  = GPU to host, all GPUs of a host at once, over the host's PCIe tree (0 where a
 *             cluster does not say, and async_mode is disabled)
 *
 *   async_mode: disabled                 stands still for max(copy_s, write_s)
 *               async                    for copy_s (pageable memory); writes behind the steps
 *               async_with_pinned_mem    for what of copy_s (pinned) is longer than the next
 *                                        forward and backward; writes behind the steps
 *   and, where writing is not over when the next save begins, until it is.
 *
 *   checkpoint_s = stands still / interval
 *
 * Nothing runs on the GPU then, so that checkpoint_s is a part of idle_s, and step_time_s, the mean
 * period of a step, has it: step = compute + exposed + idle holds.
 *
 * Example: 8.03e9 parameters, 4 + 8 B: 96.4 GB; 4 hosts that write 2 GB/s each: 12.0 s; every 500
 * steps of 1.2 s: 24 ms a step, 2 %. A shared file system of 5 GB/s: 19.3 s.
 *
 * Source: PyTorch documentation, torch.distributed.checkpoint (save, async_save); names as
 * torchtitan's [checkpoint]. Left out: planning and metadata, collectives of the planner, traffic
 * of storage on NICs that training uses, what the writing threads take from the host thread.
 */
#ifndef FSDPSIM_RUN_SAVING_H
#define FSDPSIM_RUN_SAVING_H

#include <stdbool.h>
#include <stdint.h>

enum async_mode { ASYNC_DISABLED, ASYNC_PAGEABLE, ASYNC_PINNED };

struct saving_config {
    int64_t interval; /* steps; 0: nothing is saved */
    int async_mode;
    bool exclude_frozen_parameters;
};

struct saving {
    double bytes, host_bytes; /* of a checkpoint, of what the fullest host writes of it */
    double staged_bytes;      /* kept in the memory of a host while it is written */
    double copy_s, write_s;
};

struct experiment;
struct outcome;

/* After experiment_build. */
struct saving saving_of(const struct experiment *experiment);
/* Adds what saving costs to the times of an outcome that has none of it. */
void saving_fill(const struct experiment *experiment, struct outcome *outcome);

#endif
