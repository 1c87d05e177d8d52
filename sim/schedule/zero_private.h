/*
 * schedule/zero_private.h: the state of the host thread while a ZeRO program is written.
 *
 * The builder is the Python of DeepSpeed's engine and its optimizers for stages 1, 2 and 3, with a
 * complete trace (third step and later). Numbers in comments are statements of docs/zero.md.
 *
 *   zero_gradients.c  buckets of gradients and their reduction, all stages
 *   zero12.c          stages 1 and 2: whole parameters
 *   zero3.c           stage 3: the step; zero3_leaves.c: submodules and their order
 *   zero3_fetch.c     gathering and releasing parameters; zero3_blocking.c: before DeepSpeed 0.6
 */
#ifndef FSDPSIM_SCHEDULE_ZERO_PRIVATE_H
#define FSDPSIM_SCHEDULE_ZERO_PRIVATE_H

#include "schedule/fsdp_private.h"

enum { ZERO_COMPUTE, ZERO_REDUCE, ZERO_FETCH, ZERO_GATHER };

/* Gradients reduced together. */
struct zero_bucket {
    int64_t numel;
    int64_t sent; /* elements the collective takes; more than numel where buffers go whole */
    int32_t tensors;
    int32_t gradient_end;       /* its gradients are those before this one */
    int32_t flattened;          /* tensor, -1: none */
    int32_t prepare, keep, add; /* segments, -1: none; own part: kept, or added to what is there */
    int32_t collective;
    int32_t extra_calls;    /* of the host, when one reduction stands for several */
    int32_t ready, reduced; /* events */
    /* with the optimizer on the host: tensor, segments, event; -1: none */
    int32_t fp32_part, to_fp32, sum, offloaded;
};

/* Of a kind of module, by gradient. */
struct zero_kind {
    int32_t *slices; /* segments of backward, with the copy into the bucket or the sum */
    int32_t *sums;   /* the same for a later microbatch (stage 1) */
    int32_t *copies; /* the copy into the bucket alone (stage 1) */
};

/* A submodule of its own parameters, which stage 3 fetches at once; blocking: one parameter. */
struct zero_leaf {
    const char *name;
    bool begins_submodule;
    int64_t numel, shard; /* of the parameters that are not persistent; 0: none is */
    int32_t tensors;
    int32_t params; /* tensor, -1: none */
    int32_t unit;
    int32_t fill,
        norm; /* blocking: passes over it before and behind a gather; segments, -1: none */
    /* hpZ: elements of a GPU's secondary part; tensor; the copy into it; -1: none */
    int64_t secondary_shard;
    int32_t secondary, keep_secondary;
    /* state */
    bool has_secondary;
    int32_t chunk; /* under way in this gather, -1: none */
    bool is_available;
    bool is_chosen; /* for the gather that is being put together */
};

/* Leaves gathered in one collective. */
struct zero_chunk {
    int32_t *leaves;
    int32_t leaf_count, tensors;
    int64_t numel, shard, padded; /* elements, on one GPU, gathered */
    bool is_secondary;            /* gathered from secondary parts */
    int32_t buffer;               /* tensor; -1: the only parameter itself */
    int32_t copy_out;
    int32_t gathered, arrived; /* events */
};

/* One module in forward or backward; its leaves in order of use. */
struct zero_visit {
    int32_t module;
    bool is_backward;
    const int32_t *leaves;
    int32_t leaf_count;
    int32_t entry; /* of its first leaf in the trace */
};

struct zero_builder {
    struct fsdp_builder fsdp;
    int stage;
    bool overlaps;
    int reduce_stream, fetch_stream;
    struct {
        struct zero_bucket *items;
        int32_t count, capacity;
    } buckets;
    struct zero_kind *kinds;
    int32_t *kept_grads;       /* tensors by module: stage 1 */
    int32_t buffers[2];        /* tensors gradients are copied into, -1: none */
    int32_t partition;         /* tensor: this GPU's part of the gradients */
    int32_t persistent_gather; /* collective, -1: none */
    struct {
        int32_t *items; /* collectives: updated parameters, piece by piece */
        int32_t count, capacity;
    } updates;
    /* stage 3 */
    bool is_blocking;                /* zero.coordinator */
    int32_t idle_event, begun_event; /* blocking: compute has nothing left; is at a gradient */
    int32_t secondary_communicator;  /* hpZ; -1: none */
    struct zero_leaf *leaves;
    int32_t leaf_count;
    struct zero_visit *visits;
    int32_t visit_count;
    int32_t *trace; /* leaves as visits use them */
    int32_t trace_count;
    struct {
        struct zero_chunk *items;
        int32_t count, capacity;
    } chunks;
    /* state */
    bool has_partition; /* a microbatch of this step left gradients */
    bool is_last_microbatch;
    int32_t reduced_count; /* buckets launched in this backward */
    int32_t trace_at;      /* first entry that is not fetched yet */
    bool is_backward;      /* of the visit at hand */
    int64_t available;     /* elements gathered or under way */
    int32_t waiting[3];    /* events of the latest fetches, oldest first */
    int32_t waiting_count;
    int32_t copied_event;  /* compute has made a module's gradients */
    int32_t drained_event; /* the reduction stream at the end of backward */
};

/* zero.c */
int64_t zero_param_bytes(const struct zero_builder *builder);
int64_t zero_reduce_bytes(const struct zero_builder *builder);
int64_t zero_ranks(const struct zero_builder *builder);
/* GPUs of a secondary partition; 1: there is none. */
int64_t zero_secondary_ranks(const struct zero_builder *builder);
/* Stage 1 over groups: gradients are reduced over all, states and updates shared in a group. */
bool zero_has_replicas(const struct zero_builder *builder);

/* zero_gradients.c */
void zero_add_buckets(struct zero_builder *builder);
void zero_add_slices(struct zero_builder *builder);
/* Reduces every bucket whose gradients are among the first `made`, and has been overtaken by a
   gradient that no longer fits, or is the last one when `is_end`. */
void zero_reduce_ready(struct zero_builder *builder, int32_t made, bool is_end, int32_t unit);

/* zero_offload.c: nothing where nothing is offloaded */
void zero_add_offload(struct zero_builder *builder, struct zero_bucket *bucket, const char *name);
/* The own part of a bucket that was reduced. */
void zero_offload_bucket(struct zero_builder *builder, const struct zero_bucket *bucket,
                         int32_t unit);
/* The shards of a gather. */
void zero_fetch_from_host(struct zero_builder *builder, const struct zero_chunk *chunk,
                          int32_t unit);
/* Parameters updated on the GPU that are kept on the host. */
void zero_return_updates(struct zero_builder *builder);

/* zero12.c */
void zero12_setup(struct zero_builder *builder);
void zero12_microbatch(struct zero_builder *builder, bool is_first, bool is_last);
void zero12_gather_updates(struct zero_builder *builder);

/* zero3.c */
void zero3_setup(struct zero_builder *builder);
void zero3_microbatch(struct zero_builder *builder);
void zero3_gather_updates(struct zero_builder *builder);

/* zero3_leaves.c */
void zero3_add_trace(struct zero_builder *builder);

/* zero3_fetch.c */
void zero3_begin_trace(struct zero_builder *builder);
void zero3_fetch(struct zero_builder *builder, int32_t visit);
void zero3_release(struct zero_builder *builder, int32_t visit);
/* After the update: what hpZ kept is void. */
void zero3_drop_secondary(struct zero_builder *builder);
/* Neither there nor under way. */
bool zero3_is_missing(const struct zero_leaf *leaf);
/* One collective for some leaves; compute waits for it; a leaf's parameters go. */
void zero3_gather(struct zero_builder *builder, const int32_t *leaves, int32_t count);
void zero3_await(struct zero_builder *builder, int32_t chunk);
void zero3_free_leaf(struct zero_builder *builder, struct zero_leaf *leaf);

/* zero3_blocking.c: the same before DeepSpeed 0.6 */
void zero3_fill_reductions(struct zero_builder *builder);
void zero3_blocking_setup(struct zero_builder *builder);
void zero3_blocking_fetch(struct zero_builder *builder, int32_t visit);
void zero3_blocking_backward(struct zero_builder *builder, int32_t module, int32_t *made);

#endif
