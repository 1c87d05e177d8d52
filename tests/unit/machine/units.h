/*
 * tests/unit/machine/units.h: a step of equal or chosen units as FSDP2 issues it, on a toy machine.
 * fsdp_semantics 7, without memory and host cost.
 */
#ifndef FSDPSIM_TESTS_TOY_UNITS_H
#define FSDPSIM_TESTS_TOY_UNITS_H

#include "toy.h"

enum { UNITS_MAX = 64 };

struct units {
    int32_t count;
    double forward_ms, gather_ms;
    double backward_ms[UNITS_MAX], scatter_ms[UNITS_MAX]; /* by unit, in forward order */
    bool is_resharded;                                    /* gathered again in backward */
    bool has_own_communicator;                            /* for reduce-scatter */
    bool is_host_late; /* the host waits for the end of forward */
    int32_t scatter_buffers;
    int64_t forward_ps, backward_ps; /* found: between marks, of the last step */
};

/* `units` with equal backward parts. */
struct units units_equal(int32_t count, double forward_ms, double backward_ms, double gather_ms,
                         double scatter_ms);
void units_write(struct units *units, struct toy *toy);
/* Plays one step on two GPUs at 1 GB/s and fills what was found. */
void units_play(struct units *units);

#endif
