/* unit/report/outcome_fixture.h: a made-up outcome with odd numbers, for report and store tests. */
#ifndef FSDPSIM_TESTS_OUTCOME_FIXTURE_H
#define FSDPSIM_TESTS_OUTCOME_FIXTURE_H

#include "base/arena.h"
#include "run/outcome.h"

/*
 * A step of 2.385 s on 2 hosts of 8 GPUs: compute 1.7125 s, exposed 0.4225 s, idle 0.25 s; a device
 * peak of 71.25 GiB of 79.5 GiB; three units of which two are equal; one warning; HFU undefined.
 */
void outcome_fixture(struct arena *arena, struct outcome *outcome);

#endif
