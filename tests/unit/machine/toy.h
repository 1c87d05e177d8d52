/*
 * tests/unit/machine/toy.h: small machines and programs made by hand.
 *
 * A toy has round numbers: `ranks` GPUs on one host, 1 GB/s between them, HBM of 4 TB/s, no
 * latency, no launch gap, no host cost, no SMs held by collectives. A gather of 20 MB over 2 GPUs
 * takes 10 ms. Change what a test needs between toy_init and toy_play.
 */
#ifndef FSDPSIM_TESTS_TOY_H
#define FSDPSIM_TESTS_TOY_H

#include "machine/machine.h"

enum { TOY_COMPUTE, TOY_GATHER, TOY_SCATTER, TOY_STREAM_COUNT };
enum { TOY_MAX_CLASSES = 8 };

struct toy {
    struct arena arena;
    struct diag diag;
    struct cluster cluster;
    struct layout layout;
    struct program *programs[TOY_MAX_CLASSES];
    int32_t program_count;
    struct program *program; /* the one that is written now */
    struct op_list *list;    /* its prologue or step */
    int32_t unit;            /* of the operations that are written now, -1: none */
    struct ideal ideal;
    enum network_mode network;
    int32_t steps;
    bool limits_memory; /* to cluster.gpu.memory_bytes */
    struct allocator_settings allocator;
    uint64_t tie_seed;
    const struct jitter *jitter;
    struct observer observers[2];
    int32_t observer_count;
};

/* One class of `ranks` ranks when is_folded, else a class for each. One program, one communicator.
 */
void toy_init(struct toy *toy, int32_t ranks, bool is_folded);
void toy_release(struct toy *toy);
/* Another program, written from now on: one for each class, in order. */
void toy_next_program(struct toy *toy);
int32_t toy_communicator(struct toy *toy, const char *name);
/* Index of a resource of class 0, e.g. toy->layout.classes[0].hbm, holds for all after change. */
void toy_set_capacity(struct toy *toy, enum resource_kind kind, double capacity);

/* Tables; they return an index. */
int32_t toy_event(struct toy *toy, const char *name);
int32_t toy_segment(struct toy *toy, const char *name, enum kernel_pass pass, double ms);
int32_t toy_kernels(struct toy *toy, const struct kernel *kernels, int32_t count);
int32_t toy_collective(struct toy *toy, enum collective_op op, int32_t communicator, double ms);
int32_t toy_tensor(struct toy *toy, const char *name, int64_t bytes, enum memory_category category,
                   int32_t stream);
int32_t toy_unit(struct toy *toy, const char *name);
struct kernel toy_kernel(double ms, double bytes);

/* Operations. */
struct op *toy_op(struct toy *toy, enum op_kind kind, int32_t stream, int32_t index);
void toy_marks_begin(struct toy *toy); /* step and forward */
/* STATUS_OK is checked. */
struct machine_result toy_play(struct toy *toy);
enum status toy_try_play(struct toy *toy, struct machine_result *result);

double ms_from_ps(int64_t ps);

#endif
