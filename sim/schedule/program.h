/*
 * schedule/program.h: what the host thread of a rank does, in order, without any time.
 *
 * A policy (FSDP2, …) is a pure function from (model, mesh, settings) to a program. The machine
 * plays it; it can also be dumped as text, diffed and tested with no engine.
 *
 * Host order is program order. Operations on a stream run in the order issued (FIFO); RECORD and
 * WAIT are CUDA's: a WAIT refers to the latest RECORD issued before it, and to nothing when there
 * was none. Collectives of one communicator run one at a time in issue order, whatever their
 * streams. A transfer's n-th SEND meets its receiver's n-th RECV of the same communicator and hop,
 * whatever else the two do; both ways at once, or a shift round a ring, need a stream each for
 * sending and receiving. ALLOC and FREE move the caching allocator's counters when the host
 * executes them (CPU order).
 *
 * A program is a prologue (played once: persistent tensors) and the body of one optimizer step
 * (played warmup + steps times). Operations with OP_FIRST_STEP run in the first step only
 * (optimizer state appears lazily), with OP_LATER_STEPS in all others.
 */
#ifndef FSDPSIM_SCHEDULE_PROGRAM_H
#define FSDPSIM_SCHEDULE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "cluster/cluster.h"
#include "collective/plan.h"
#include "model/kernel.h"

enum op_kind {
    OP_SEGMENT,       /* issue segment `index` on `stream` */
    OP_COLLECTIVE,    /* on `stream`: collective `index` of the table */
    OP_SEND,          /* on `stream`: transfer `index`, to the member `hop` places on; rendezvous */
    OP_RECV,          /* … the same transfer, from the member `hop` places back */
    OP_COPY,          /* on `stream`: memory copy of `bytes`; index: enum copy_kind; issued in
                         `count` parts (0: one) */
    OP_LOAD,          /* on `stream`: the data loader makes a batch */
    OP_RECORD,        /* on `stream`: event `index` */
    OP_WAIT,          /* on `stream`: event `index` */
    OP_HOST_WAIT,     /* the host blocks until event `index` */
    OP_HOST_WORK,     /* the host spends `count` times cost `index` (enum host_cost) */
    OP_HOST_COMPUTE,  /* the host computes (an offloaded optimizer): `bytes` of operands, in passes
                         of kind `index` (enum host_pass), with `count` threads (0: all it has) */
    OP_ALLOC,         /* tensor `index` */
    OP_FREE,          /* tensor `index`; reusable at once on its own stream */
    OP_RECORD_STREAM, /* tensor `index` is also used on `stream`: a later free waits for it */
    OP_FREE_AFTER,    /* tensor `index` is freed once event `count` has happened on the GPU */
    OP_MARK,          /* on `stream`: phase `index` begins (enum mark) */
    OP_KIND_COUNT
};

/* OP_UNCOSTED: the host spends no time on it. */
enum op_flag { OP_FIRST_STEP = 1, OP_LATER_STEPS = 2, OP_UNCOSTED = 4 };
/* Pageable: host memory that is not pinned, staged by one core. */
enum copy_kind {
    COPY_H2D,
    COPY_D2H,
    COPY_D2D,
    COPY_H2D_PAGEABLE,
    COPY_D2H_PAGEABLE,
    COPY_KIND_COUNT
};
static inline bool copy_is_to_gpu(enum copy_kind kind)
{
    return kind == COPY_H2D || kind == COPY_H2D_PAGEABLE;
}

/* Reached by the stream in GPU order: the phases of a step. */
enum mark {
    MARK_STEP_BEGIN,
    MARK_FORWARD_BEGIN,
    MARK_FORWARD_END,
    MARK_BACKWARD_END,
    MARK_STEP_END,
    MARK_COUNT
};
const char *mark_name(enum mark mark);

struct op {
    uint8_t kind; /* enum op_kind */
    uint8_t stream;
    uint16_t flags;
    int32_t unit; /* index into units, -1: none */
    int32_t index;
    int32_t count; /* SEGMENT of the network: 1 + its microbatch of the step */
    int64_t bytes;
};

/* What a stream's operations are, for the breakdown and the timeline. */
enum stream_role {
    STREAM_COMPUTE,
    STREAM_ALL_GATHER_COPY_IN,
    STREAM_ALL_GATHER,
    STREAM_REDUCE_SCATTER,
    STREAM_ALL_REDUCE,
    STREAM_DATA_LOADER, /* worker processes on the host */
    STREAM_ROLE_COUNT
};

#define DATA_LOADER_STREAM "data loader"

struct stream {
    const char *name;
    enum stream_role role;
    bool is_high_priority;
};

/* A run of kernels on one stream with no synchronisation inside. Equal segments share one entry. */
struct segment {
    const char *name; /* "layers.*.forward" */
    const struct kernel *kernels;
    int32_t kernel_count;
    uint8_t host_cost; /* enum host_cost of each kernel's issue */
    bool is_compiled;  /* pays HOST_COMPILED_REGION once */
    bool is_optimizer; /* ideal: optimizer makes it free */
    /* So many kernels at its beginning are a block's forward: run forward, or again in backward. */
    int32_t forward_kernels;
    bool is_model; /* kernels of the network: what a microbatch's cost is about */
};

struct communicator {
    const char *name;    /* "dp_shard" */
    const char *purpose; /* "fsdp", "reduce-scatter only" */
    struct group group;
    bool is_tensor_parallel; /* carries activations, not parameters or gradients */
};

struct collective {
    enum collective_op op;
    int32_t communicator;
    double bytes;    /* nccl-tests size */
    bool is_average; /* of floats, as gradients are reduced: a sum of multiplied parts */
};

struct transfer {         /* point to point, between neighbours of a dimension */
    int32_t communicator; /* of a group with an order (cluster/group.h) */
    int32_t hop;          /* 1: to the next place, the last one to the first; −1: back */
    double bytes;
};

enum memory_category {
    MEMORY_PARAMETERS,
    MEMORY_GRADIENTS,
    MEMORY_OPTIMIZER,
    MEMORY_UNSHARDED_PARAMETERS,
    MEMORY_UNSHARDED_GRADIENTS,
    MEMORY_REDUCE_BUFFERS,
    MEMORY_ACTIVATIONS,
    MEMORY_LOGITS,
    MEMORY_TEMPORARIES,
    MEMORY_WORKSPACE,
    MEMORY_CONTEXT,
    MEMORY_COMMUNICATORS,
    MEMORY_CACHED, /* reserved by the allocator, not active at the peak */
    MEMORY_CATEGORY_COUNT
};
const char *memory_category_name(enum memory_category category); /* "unsharded_parameters" */

struct tensor_part { /* so many equal allocations */
    int64_t bytes;
    int32_t count;
};

struct tensor {
    const char *name;
    int64_t bytes; /* requested; the allocator rounds to 512 */
    uint8_t category;
    uint8_t stream; /* whose pool */
    int32_t unit;
    int32_t pieces;                  /* this many equal allocations (one a parameter); at least 1 */
    const struct tensor_part *parts; /* these instead, in this order; NULL: pieces */
    int32_t part_count;
};

struct unit { /* one FSDP communication group */
    const char *name;
    int64_t parameters;
    int32_t param_count;
    int64_t all_gather_bytes, reduce_scatter_bytes; /* padded, whole group */
};

/* What a rank keeps in the memory of its host, at most, in bytes. */
struct host_memory {
    int64_t parameters, gradients, optimizer;
};

struct op_list {
    struct op *items;
    int32_t count, capacity;
};

struct program {
    const char *policy; /* "fsdp2" */
    struct {
        struct stream *items;
        int32_t count, capacity;
    } streams;
    struct {
        struct segment *items;
        int32_t count, capacity;
    } segments;
    struct {
        struct communicator *items;
        int32_t count, capacity;
    } communicators;
    struct {
        struct collective *items;
        int32_t count, capacity;
    } collectives;
    struct {
        struct transfer *items;
        int32_t count, capacity;
    } transfers;
    struct {
        struct tensor *items;
        int32_t count, capacity;
    } tensors;
    struct {
        struct unit *items;
        int32_t count, capacity;
    } units;
    struct {
        const char **items;
        int32_t count, capacity;
    } events; /* names */
    struct host_memory host;
    struct op_list prologue, step;
};

/* Says of each segment of the network in which microbatch it runs. Edits the program. */
void program_number_microbatches(struct program *program);

/* The host waits `count` times in the forward of each block, and again where it is recomputed
   (host_syncs.c). Edits the program. */
void program_add_host_syncs(struct arena *arena, struct program *program, int64_t count);

/* The host takes a batch from workers before each forward; so many are asked for `ahead`, 0: there
   are no workers (data_loader.c). Edits the program, behind all others. */
void program_add_data_loader(struct arena *arena, struct program *program, int64_t ahead);

/* Streams share `count` hardware queues (hardware_queues.c): nothing where each has its own. Edits
   the program, last of all. */
void program_limit_queues(struct arena *arena, struct program *program, int64_t count);

/* Whether some of what is freed returns when the GPU has passed it, not in the host's order. */
bool program_has_timed_frees(const struct program *program);

/* What the allocator gives for a tensor: each piece rounded up to 512 bytes. */
int64_t tensor_allocated_bytes(const struct tensor *tensor);

/* Whether an operation is played in step 0, 1, ...; the prologue is step -1. */
bool op_plays_in(const struct op *op, int32_t step);

/* Most that is allocated at once in steady state (steps 1, 2, ...; of a single step, in that), as
   torch.cuda.max_memory_allocated() counts it: freed when the host frees (program_memory.c). */
int64_t program_peak_allocated_bytes(const struct program *program, int32_t steps);

/* What a GPU has for the caching allocator: its memory less context and communicators. */
int64_t program_memory_limit(const struct program *program, const struct gpu *gpu);

/* Those of more than one rank: what NCCL makes. */
int32_t program_communicator_count(const struct program *program);

/* Text, one line an operation, tables first: for reading, diffing, golden tests. */
void program_dump(const struct program *program, FILE *file);

#endif
