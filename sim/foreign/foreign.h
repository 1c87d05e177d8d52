/*
 * foreign/foreign.h: configurations of other tools → a configuration of ours.
 *
 *   accelerate   what 'accelerate config' writes: FSDP (versions 1 and 2), DeepSpeed, DDP
 *   deepspeed    ds_config.json, with "auto" values and comments
 *
 * Such a file says how training is sharded, not what is trained on which machine: model, cluster
 * and sequence length come from the options. Each line of the result says where it comes from:
 *
 *   fsdp:
 *     api: fsdp2 # read: fsdp_version: 2
 *     reshard_after_forward: true # assumed: accelerate's default
 *
 * and the comments at its end what had no counterpart. The same goes to `diag`: what changes time
 * or memory and has no counterpart as a warning, unknown keys as notes, wrong values as errors with
 * their place; so are files of the other tool, and files without any key of this one. What fits the
 * grammar and cannot be simulated (nvme, pipelines) is written all the same: `check` says
 * so.
 */
#ifndef FSDPSIM_FOREIGN_FOREIGN_H
#define FSDPSIM_FOREIGN_FOREIGN_H

#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "base/strbuf.h"

enum foreign_format { FOREIGN_ACCELERATE, FOREIGN_DEEPSPEED };

struct foreign_options {
    const char *model, *cluster; /* as written into the result; NULL: not given */
    int64_t seq_len;             /* 0: not given */
    int64_t hidden_size;         /* of the model, for what "auto" stands for; 0: not known */
};

/* Appends the YAML; STATUS_INPUT after errors. */
MUST_CHECK enum status foreign_import(struct arena *arena, enum foreign_format format,
                                      const struct source *source,
                                      const struct foreign_options *options, struct strbuf *out,
                                      struct diag *diag);

#endif
