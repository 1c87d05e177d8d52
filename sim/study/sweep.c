/* study/sweep.c: see sweep.h. */
#include "study/sweep.h"

#include <string.h>
#include <time.h>

#include "study/outcome_wire.h"
#include "study/sweep_private.h"

enum { BATCH_MAX = 256, ATTEMPTS_MAX = 2, PATIENCE_MS = 60000, PROBES_MAX = 16 };
static const double batch_max_s = 1.0;
static const char other_key[] =
    "it was checked with other data than it was played with: are all files the same on all "
    "machines, and did none change meanwhile?";

struct loop { /* one round of the pool */
    struct sweep *sweep;
    struct diag *diag;
    struct sweep_progress progress;
    double start_s;
    const int64_t *order; /* NULL: every point of the shard */
    int64_t next, count;
    struct {
        int64_t *items;
        int32_t count, capacity;
    } again; /* lost once */
    int64_t sweep_id;
    bool is_probe; /* nothing is kept */
    struct store_point batch[BATCH_MAX];
    int32_t batch_count;
    struct arena batch_arena;
    double batch_start_s;
    enum status status;
};

static double now_s(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return 0;
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool sweep_has(const struct sweep *sweep, int64_t position)
{
    return position % sweep->options.shard_count == sweep->options.shard - 1;
}

/* ---- writing ------------------------------------------------------------------------------ */

static void describe_point(const struct sweep *sweep, int64_t position, struct arena *arena,
                           struct store_point *out)
{
    const struct sweep_point *point = &sweep->points[position];
    *out = (struct store_point){.position = position,
                                .settings = sweep_plan_settings(sweep->plan, position, arena),
                                .has_key = point->has_key,
                                .key = point->key,
                                .state = point->state,
                                .reason = point->reason,
                                .run_id = point->run_id};
}

static void flush(struct loop *loop)
{
    struct sweep *sweep = loop->sweep;
    if (loop->batch_count == 0)
        return;
    if (loop->status == STATUS_OK)
        loop->status = store_sweep_write(sweep->store, loop->sweep_id, loop->batch,
                                         loop->batch_count, loop->diag);
    for (int32_t i = 0; i < loop->batch_count && loop->status == STATUS_OK; i++)
        sweep->points[loop->batch[i].position].run_id = loop->batch[i].run_id;
    loop->batch_count = 0;
    arena_release(&loop->batch_arena);
}

/* A point into the batch; `outcome` may be NULL. */
static void keep(struct loop *loop, int64_t position, const struct outcome *outcome)
{
    if (loop->batch_count == 0)
        loop->batch_start_s = now_s();
    struct store_point *point = &loop->batch[loop->batch_count++];
    describe_point(loop->sweep, position, &loop->batch_arena, point);
    point->outcome = outcome;
    point->is_new_run = loop->sweep->options.is_rerun;
    point->has_detail = loop->sweep->options.has_detail;
    if (loop->batch_count == BATCH_MAX)
        flush(loop);
}

/* ---- the pool's caller -------------------------------------------------------------------- */

static int64_t give_next(void *context)
{
    struct loop *loop = context;
    if (loop->again.count > 0)
        return loop->again.items[--loop->again.count];
    if (loop->order != NULL)
        return loop->next < loop->count ? loop->order[loop->next++] : -1;
    while (loop->next < loop->count && !sweep_has(loop->sweep, loop->next))
        loop->next++;
    return loop->next < loop->count ? loop->next++ : -1;
}

/* What is there is stored at once: whoever asks may not wait for what is in flight. */
static void stop(struct loop *loop)
{
    if (!loop->sweep->is_stopped)
        flush(loop);
    loop->sweep->is_stopped = true;
}

static bool goes_on(void *context)
{
    struct loop *loop = context;
    const struct sweep_options *options = &loop->sweep->options;
    if (loop->batch_count > 0 && now_s() - loop->batch_start_s > batch_max_s)
        flush(loop);
    loop->progress.elapsed_s = now_s() - loop->start_s;
    if (options->goes_on != NULL && !options->goes_on(options->context, &loop->progress))
        stop(loop);
    return loop->status == STATUS_OK && !loop->sweep->is_stopped;
}

static void mark(struct loop *loop, int64_t position, enum point_state state, const char *reason,
                 size_t length)
{
    struct sweep_point *point = &loop->sweep->points[position];
    point->state = state;
    point->reason = arena_strndup(&loop->sweep->arena, reason, length);
}

static void note_best(struct loop *loop, int64_t position, const struct outcome *outcome)
{
    if (!outcome->fits || !(outcome->tokens_per_s_per_gpu > loop->progress.best))
        return;
    loop->progress.best = outcome->tokens_per_s_per_gpu;
    loop->progress.best_position = position;
}

static void fail(struct loop *loop, int64_t position, const char *reason)
{
    mark(loop, position, POINT_FAILED, reason, strlen(reason));
    if (loop->sweep->store != NULL && !loop->is_probe)
        keep(loop, position, NULL);
}

static void take_answer(void *context, int64_t position, const char *bytes, size_t count)
{
    struct loop *loop = context;
    struct sweep_point *point = &loop->sweep->points[position];
    BUG_IF(count == 0);
    loop->progress.done++;
    if (loop->is_probe)
        return;
    if (bytes[0] == ANSWER_KEY) {
        BUG_IF(count != 1 + sizeof(point->key));
        memcpy(&point->key, bytes + 1, sizeof(point->key));
        point->has_key = true;
    } else if (bytes[0] == ANSWER_INVALID) {
        mark(loop, position, POINT_INVALID, bytes + 1, count - 1);
        if (loop->sweep->store != NULL)
            keep(loop, position, NULL);
    } else {
        struct outcome *outcome = ARENA_NEW(&loop->batch_arena, struct outcome);
        outcome_unpack(bytes + 1, count - 1, &loop->batch_arena, outcome);
        if (!hash128_equal(outcome->config_hash, point->key)) {
            fail(loop, position, other_key);
            return;
        }
        point->state = POINT_DONE;
        loop->sweep->counts.played++;
        note_best(loop, position, outcome);
        keep(loop, position, outcome);
    }
}

static void take_lost(void *context, int64_t position, const char *reason)
{
    struct loop *loop = context;
    struct sweep_point *point = &loop->sweep->points[position];
    if (++point->attempts < ATTEMPTS_MAX) {
        *ARENA_PUSH(&loop->sweep->arena, &loop->again) = position;
        return;
    }
    loop->progress.done++;
    fail(loop, position, reason);
}

static enum status run_loop(struct loop *loop, struct pool *pool, enum sweep_task kind)
{
    const struct pool_caller caller = {.context = loop,
                                       .next = give_next,
                                       .answered = take_answer,
                                       .lost = take_lost,
                                       .goes_on = goes_on};
    loop->start_s = now_s();
    loop->progress.is_playing = kind == TASK_PLAY;
    enum status status = pool_run(pool, (uint32_t)kind, &caller, loop->diag);
    flush(loop);
    arena_release(&loop->batch_arena);
    (void)goes_on(loop);
    return status == STATUS_OK ? loop->status : status;
}

/* ---- before and after --------------------------------------------------------------------- */

/* Numbers of the points by key: an open table of twice as many slots. */
static void find_owners(struct sweep *sweep)
{
    const int64_t count = sweep->plan->point_count;
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)count)
        slots *= 2;
    struct arena scratch = {0};
    int64_t *table = ARENA_ARRAY(&scratch, int64_t, slots); /* position + 1; 0: empty */
    for (int64_t i = 0; i < count; i++) {
        struct sweep_point *point = &sweep->points[i];
        point->owner = i;
        if (!point->has_key)
            continue;
        uint64_t slot = point->key.low & (slots - 1);
        for (; table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
            const struct sweep_point *other = &sweep->points[table[slot] - 1];
            if (!hash128_equal(other->key, point->key))
                continue;
            point->owner = table[slot] - 1;
            sweep->counts.equal++;
            break;
        }
        if (table[slot] == 0)
            table[slot] = i + 1;
    }
    arena_release(&scratch);
}

/* What the database knows of a point. */
static enum status recall(struct sweep *sweep, struct sweep_point *point, struct diag *diag)
{
    if (!point->has_key || point->state == POINT_INVALID || sweep->store == NULL)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (!sweep->options.is_rerun)
        status = store_find_run(sweep->store, point->key, &point->run_id, diag);
    if (status != STATUS_OK)
        return status;
    if (point->run_id > 0) {
        point->state = POINT_DONE;
        sweep->counts.stored_before++;
        return STATUS_OK;
    }
    if (sweep->options.retries_failed || sweep->options.is_rerun)
        return STATUS_OK;
    status = store_find_failure(sweep->store, &sweep->arena, point->key, &point->reason, diag);
    if (status == STATUS_OK && point->reason != NULL)
        point->state = POINT_FAILED;
    return status;
}

static enum status recall_all(struct sweep *sweep, struct diag *diag)
{
    enum status status = STATUS_OK;
    store_read_begin(sweep->store);
    for (int64_t i = 0; i < sweep->plan->point_count && status == STATUS_OK; i++)
        if (sweep_has(sweep, i))
            status = recall(sweep, &sweep->points[i], diag);
    store_read_end(sweep->store);
    return status;
}

/* Every point of the shard as it stands, in batches. */
static enum status store_all(struct loop *loop, bool only_equal)
{
    const struct sweep *sweep = loop->sweep;
    for (int64_t i = 0; i < sweep->plan->point_count && loop->status == STATUS_OK; i++)
        if (sweep_has(sweep, i) && (!only_equal || sweep->points[i].owner != i))
            keep(loop, i, NULL);
    flush(loop);
    return loop->status;
}

/* What became of a point became of all with its key. */
static void follow_owners(struct sweep *sweep)
{
    for (int64_t i = 0; i < sweep->plan->point_count; i++) {
        struct sweep_point *point = &sweep->points[i];
        const struct sweep_point *owner = &sweep->points[point->owner];
        if (!sweep_has(sweep, i) || owner == point)
            continue;
        point->state = owner->state;
        point->reason = owner->reason;
        point->run_id = owner->run_id;
    }
}

static void count_states(struct sweep *sweep)
{
    struct sweep_counts *counts = &sweep->counts;
    counts->points = counts->done = counts->invalid = counts->failed = counts->pending = 0;
    for (int64_t i = 0; i < sweep->plan->point_count; i++) {
        if (!sweep_has(sweep, i))
            continue;
        counts->points++;
        switch (sweep->points[i].state) {
        case POINT_PENDING:
            counts->pending += sweep->points[i].owner == i;
            break;
        case POINT_DONE:
            counts->done++;
            break;
        case POINT_INVALID:
            counts->invalid++;
            break;
        case POINT_FAILED:
            counts->failed++;
            break;
        }
    }
}

/* Points to play: of each key the first. */
static void list_pending(struct loop *loop)
{
    const struct sweep *sweep = loop->sweep;
    int64_t *order = ARENA_ARRAY(&loop->sweep->arena, int64_t, sweep->plan->point_count);
    for (int64_t i = 0; i < sweep->plan->point_count; i++)
        if (sweep_has(sweep, i) && sweep->points[i].state == POINT_PENDING &&
            sweep->points[i].owner == i) {
            sweep->points[i].attempts = 0;
            order[loop->count++] = i;
        }
    loop->order = order;
    loop->progress.total = loop->count;
}

static struct loop *loop_new(struct sweep *sweep, int64_t sweep_id, struct diag *diag)
{
    struct loop *loop = ARENA_NEW(&sweep->arena, struct loop);
    loop->sweep = sweep;
    loop->sweep_id = sweep_id;
    loop->diag = diag;
    return loop;
}

/* Workers first: what they inherit is what stands now, and no database. */
static enum status resolve(struct sweep *sweep, struct pool **pool, struct diag *diag)
{
    const int64_t count = sweep->plan->point_count;
    sweep->points = ARENA_ARRAY(&sweep->arena, struct sweep_point, count);
    enum status status = sweep_pool_new(sweep, pool, diag);
    if (status != STATUS_OK)
        return status;
    struct loop *loop = loop_new(sweep, 0, diag);
    loop->count = count;
    loop->progress.total =
        (count - sweep->options.shard + sweep->options.shard_count) / sweep->options.shard_count;
    status = run_loop(loop, *pool, TASK_RESOLVE);
    if (status == STATUS_OK)
        find_owners(sweep);
    return status;
}

static enum status play(struct sweep *sweep, struct pool *pool, struct diag *diag)
{
    struct arena scratch = {0};
    int64_t sweep_id = 0;
    const struct store_sweep row = {.name = sweep->plan->name,
                                    .definition = sweep->plan->definition,
                                    .keys = sweep_plan_keys(sweep->plan, &scratch),
                                    .point_count = sweep->plan->point_count};
    enum status status = store_sweep_begin(sweep->store, &row, &sweep_id, diag);
    if (status == STATUS_OK)
        status = recall_all(sweep, diag);
    if (status == STATUS_OK)
        status = store_all(loop_new(sweep, sweep_id, diag), false);
    if (status == STATUS_OK) {
        struct loop *loop = loop_new(sweep, sweep_id, diag);
        list_pending(loop);
        status = run_loop(loop, pool, TASK_PLAY);
    }
    follow_owners(sweep);
    if (status == STATUS_OK && sweep->counts.equal > 0)
        status = store_all(loop_new(sweep, sweep_id, diag), true);
    arena_release(&scratch);
    return status;
}

static void begin(struct sweep *sweep, const struct sweep_plan *plan,
                  const struct sweep_options *options)
{
    *sweep = (struct sweep){.plan = plan, .options = *options};
}

enum status sweep_run(struct sweep *sweep, const struct sweep_plan *plan,
                      const struct sweep_options *options, struct diag *diag)
{
    struct pool *pool = NULL;
    begin(sweep, plan, options);
    /* Before the work of checking all points: where they go. */
    enum status status = store_check(options->db, STORE_WRITE, diag);
    if (status == STATUS_OK)
        status = resolve(sweep, &pool, diag);
    if (status != STATUS_OK || sweep->is_stopped)
        goto out;
    status = store_open(options->db, STORE_WRITE, &sweep->store, diag);
    if (status != STATUS_OK)
        goto out;
    store_set_patience(sweep->store, PATIENCE_MS);
    status = play(sweep, pool, diag);
    /* What is shown of the points is read as of now. */
    if (status == STATUS_OK)
        store_read_begin(sweep->store);
out:
    pool_free(pool);
    if (sweep->points != NULL)
        count_states(sweep);
    return status;
}

/* Twice: the first time fills what workers keep between points. */
static enum status probe(struct sweep *sweep, struct pool *pool, struct diag *diag)
{
    struct loop *all = loop_new(sweep, 0, diag);
    list_pending(all);
    const int64_t probes = all->count < PROBES_MAX ? all->count : PROBES_MAX;
    int64_t order[PROBES_MAX];
    for (int64_t i = 0; i < probes; i++)
        order[i] = all->order[i * all->count / probes];
    enum status status = STATUS_OK;
    for (int time = 0; time < 2 && probes > 0 && status == STATUS_OK && !sweep->is_stopped;
         time++) {
        struct loop *loop = loop_new(sweep, 0, diag);
        loop->order = order;
        loop->count = loop->progress.total = probes;
        loop->is_probe = true;
        status = run_loop(loop, pool, TASK_PLAY);
        sweep->estimate_s = (now_s() - loop->start_s) * (double)all->count / (double)probes;
    }
    return status;
}

enum status sweep_dry_run(struct sweep *sweep, const struct sweep_plan *plan,
                          const struct sweep_options *options, struct diag *diag)
{
    struct pool *pool = NULL;
    struct diag unheard;
    begin(sweep, plan, options);
    diag_init(&unheard, &sweep->arena);
    enum status status = resolve(sweep, &pool, diag);
    /* No database, or none that can be read: nothing is stored yet. */
    if (status == STATUS_OK && !sweep->is_stopped &&
        store_open(options->db, STORE_READ, &sweep->store, &unheard) == STATUS_OK)
        status = recall_all(sweep, diag);
    if (status == STATUS_OK && !sweep->is_stopped)
        status = probe(sweep, pool, diag);
    pool_free(pool);
    if (sweep->points != NULL)
        count_states(sweep);
    return status;
}

void sweep_release(struct sweep *sweep)
{
    store_close(sweep->store);
    struct arena arena = sweep->arena;
    arena_release(&arena);
    *sweep = (struct sweep){0};
}

enum status sweep_load(struct sweep *sweep, int64_t position, struct arena *arena,
                       struct outcome *outcome, struct diag *diag)
{
    return store_load_row(sweep->store, arena, sweep->points[position].run_id, outcome, diag);
}
