/*
 * store/store_validation.h: validations in the results database.
 *
 *   validation       one row a `validate`: when, by which version, of which table of runs, with
 * what overrides validation_row   one row a measured run: measured, predicted, error, interval,
 * regime, whether it is in scope, and why not
 *
 * Figures that a run does not have are NULL. `db merge` leaves validations where they are.
 */
#ifndef FSDPSIM_STORE_STORE_VALIDATION_H
#define FSDPSIM_STORE_STORE_VALIDATION_H

#include "store/store.h"

struct store_validation {
    const char *csv;       /* the table of runs */
    const char *overrides; /* "-s", joined by spaces; "": none */
    int64_t rows, in_scope;
};

struct store_validation_row { /* NaN: none; NULL texts are stored as "" */
    int64_t line, n_gpus;
    const char *label, *source, *model, *gpu, *trust, *regime, *reason, *memory_kind,
        *mfu_convention;
    bool in_scope, is_scored, is_assumed;
    double measured_step_time_s, predicted_step_time_s, step_time_error;
    double step_time_p5_s, step_time_p95_s;
    double measured_memory_bytes, predicted_memory_bytes, memory_error;
    double measured_mfu, predicted_mfu, mfu_error;
};

/* In one transaction; `id`: of the validation. */
MUST_CHECK enum status store_add_validation(struct store *store,
                                            const struct store_validation *validation,
                                            const struct store_validation_row *rows, int32_t count,
                                            int64_t *id, struct diag *diag);

#endif
