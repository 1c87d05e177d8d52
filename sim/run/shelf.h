/*
 * run/shelf.h: models and programs that several configurations have in common, kept by content.
 *
 *   key = hash of every value in force outside `cluster` and `simulate`, the number of hosts and
 *         of GPUs in each, and what of the GPU a program holds (its workspace)
 *
 * So points of a sweep over bandwidths, latencies or clocks share one program, and what follows
 * from it alone: how much memory it holds when (a memory record). It cannot be stale: whatever
 * changes the program changes its key.
 *
 * A shelf hangs on the cache of the configurations (config.h) and goes with it. When the programs
 * are more than SHELF_MAX_BYTES, those not used for longest are dropped, before the next
 * configuration is read.
 *
 * Memory record: without timed frees and limits, a program's requests come in the order of its
 * host thread, so the caching allocator's answers, the peaks and what is held at them depend on the
 * program, the allocator's settings and the number of steps. Only the time of a peak depends on the
 * machine: it is the time at which the host comes to that change (machine.h, change_time).
 */
#ifndef FSDPSIM_RUN_SHELF_H
#define FSDPSIM_RUN_SHELF_H

#include "config/config.h"
#include "machine/machine.h"
#include "model/model.h"
#include "observe/observe.h"
#include "schedule/program.h"

enum { SHELF_MAX_BYTES = 16 << 20 };

struct memory_record {
    struct memory_record *next;
    struct allocator_settings allocator;
    int32_t steps;
    struct memory_facts facts; /* but for the times of its peaks */
};

struct shelved { /* a program and what follows from it */
    struct shelved *next;
    struct hash128 key;
    struct arena arena; /* of all that */
    struct model *model;
    struct program *program;
    bool is_for_one; /* not to be found; goes with the next trimming */
    struct memory_record *memories;
    struct score_shelf scores; /* the program laid out for the machine */
    int32_t held_steps;        /* 0: not known yet */
    int64_t held_bytes;        /* program_peak_allocated_bytes of that many steps */
};

/* NULL: not there. */
struct shelved *shelf_find(struct config_cache *cache, struct hash128 key);
/* An empty one, for the caller to fill. */
struct shelved *shelf_add(struct config_cache *cache, struct hash128 key);
/* Down to SHELF_MAX_BYTES: nothing on the shelf is in use. */
void shelf_trim(struct config_cache *cache);

const struct memory_record *shelved_memory(const struct shelved *shelved, int32_t steps,
                                           const struct allocator_settings *allocator);
void shelved_keep_memory(struct shelved *shelved, int32_t steps,
                         const struct allocator_settings *allocator,
                         const struct memory_facts *facts);

#endif
