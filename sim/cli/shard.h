/*
 * cli/shard.h: which part of a sweep this process has: `--shard 2/8`, or what a scheduler of job
 * arrays says.
 *
 *   auto     index and number of tasks from the environment: Slurm, Grid Engine, LSF
 *   auto/8   the index from there (PBS does not say how many there are), modulo 8
 *
 * Any run of 8 successive indices, from 0 or from 1, is the eight shards.
 */
#ifndef FSDPSIM_CLI_SHARD_H
#define FSDPSIM_CLI_SHARD_H

#include <stdint.h>

#include "cli/command.h"

/* `text` NULL: 1 of 1. */
MUST_CHECK enum status shard_read(struct command *command, const char *text, int64_t *shard,
                                  int64_t *count);

#endif
