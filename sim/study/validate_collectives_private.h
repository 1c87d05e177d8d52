/*
 * study/validate_collectives_private.h: what the files of `validate collectives` share.
 *
 *   validate_collectives.c  tables → machines → predictions    validate_machines.c  the rules
 *   validate_explain.c      one override for a degraded table   validate_bands.c     scores
 */
#ifndef FSDPSIM_STUDY_VALIDATE_COLLECTIVES_PRIVATE_H
#define FSDPSIM_STUDY_VALIDATE_COLLECTIVES_PRIVATE_H

#include "run/comm.h"
#include "study/validate_collectives.h"

struct machine_rules {
    struct machine_rule *items; /* validate_machines.c */
    int32_t count, capacity;
};

/* Adds the rules of a file; every mistake has its place. */
MUST_CHECK enum status machine_rules_load(struct arena *arena, const char *path,
                                          struct machine_rules *rules, struct diag *diag);
/* Fills cluster, settings, fabric, launch, health or reason of a table. */
void machine_rules_apply(struct arena *arena, const struct machine_rules *rules,
                         struct collective_result *result);

/* Plays one size; NaN and a reason in `machine->diag` where it cannot be. */
double collective_played_s(struct comm_machine *machine, const struct collective_result *result,
                           double bytes);
/* The machine of a table with `extra` settings (may be none) on top. */
MUST_CHECK enum status collective_machine_load(struct arena *arena,
                                               const struct collective_result *result,
                                               const struct collective_request *request,
                                               const char *extra, struct comm_machine *machine,
                                               struct diag *diag);

/* Median |error| from 1 MiB (from the smallest size where there is none). */
struct collective_score collective_score_of(struct arena *arena,
                                            const struct collective_point *points, int32_t count,
                                            enum collective_basis basis, double from_bytes,
                                            double below_bytes);
void collective_validation_score(struct arena *arena, struct collective_validation *validation);

/* Searches the override that brings the predictions nearest to a degraded table. */
void collective_explain(struct arena *arena, const struct collective_request *request,
                        struct collective_result *result);

#endif
