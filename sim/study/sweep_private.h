/* study/sweep_private.h: what the files of a sweep share. */
#ifndef FSDPSIM_STUDY_SWEEP_PRIVATE_H
#define FSDPSIM_STUDY_SWEEP_PRIVATE_H

#include "study/pool.h"
#include "study/sweep.h"

enum sweep_task { TASK_RESOLVE, TASK_PLAY };

/* First byte of an answer. */
enum { ANSWER_KEY = 'k', ANSWER_OUTCOME = 'o', ANSWER_INVALID = 'i' };

/* sweep_work.c: in a worker; `context` is the sweep. */
void sweep_work(void *context, uint32_t kind, int64_t position, struct strbuf *answer);
/* sweep_team.c: processes of this one, or the team. */
MUST_CHECK enum status sweep_pool_new(struct sweep *sweep, struct pool **pool, struct diag *diag);

#endif
