/*
 * tests/golden/csv.h: fingerprints.csv: one run a row.
 *
 *   config,overrides,fingerprint,step_time_s,peak_device_bytes
 *   llama3-8b_dgx-h100,"nodes=4; fsdp.wrap=block",0123456789abcdef,1.2345,67890
 *
 * A configuration that cannot be simulated (it is there for `memory` or `check`) has the
 * fingerprint "refused" and no figures. Overrides are quoted, split at ';'.
 */
#ifndef FSDPSIM_TESTS_GOLDEN_CSV_H
#define FSDPSIM_TESTS_GOLDEN_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"

struct golden_row {
    const char *config, *overrides, *fingerprint;
    double step_time_s;
    long long peak_device_bytes;
};

struct golden {
    struct golden_row *items;
    int32_t count, capacity;
};

/* False: no such file. Lines that start with '#' are kept apart in `head`. */
bool golden_read(struct arena *arena, const char *path, struct golden *golden, const char **head);
bool golden_write(const char *path, const struct golden *golden, const char *head);

#endif
