/*
 * study/outcome_wire.h: an outcome as bytes, from a worker to the process that stores it.
 *
 * Both ends are the same program on the same machine: numbers are as in memory. Scalars and rows go
 * by the tables of run/outcome.h, so a new metric needs nothing here.
 */
#ifndef FSDPSIM_STUDY_OUTCOME_WIRE_H
#define FSDPSIM_STUDY_OUTCOME_WIRE_H

#include "base/strbuf.h"
#include "run/outcome.h"

/* Without `has_detail` the scalars and the intervals of samples only. */
void outcome_pack(const struct outcome *outcome, bool has_detail, struct strbuf *bytes);
/* Its texts and lists lie in the arena. BUG when `count` bytes are not what outcome_pack wrote. */
void outcome_unpack(const char *bytes, size_t count, struct arena *arena, struct outcome *outcome);

#endif
