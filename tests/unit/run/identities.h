/*
 * tests/unit/run/identities.h: what holds of every outcome, whatever was simulated.
 */
#ifndef FSDPSIM_TESTS_IDENTITIES_H
#define FSDPSIM_TESTS_IDENTITIES_H

#include "played.h"

/* Each broken one is a failed CHECK. */
void check_identities(const struct played *played);

#endif
