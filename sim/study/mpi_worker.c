/* study/mpi_worker.c: a rank that plays, by one process of its own; see mpi_team.h. */
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "study/mpi_private.h"

/* The shared memory of Open MPI 4 takes up to 4 KiB, its header included, without a handshake
   (btl_vader_eager_limit); a handshake of processes that share a processor is slow. A frame may be
   cut anywhere. */
enum { PIECE_BYTES = 3 << 10, PIECE_COUNT = 32 };
static const double late_s = 0.02; /* of an answer that waits for others */
static const double leader_patience = 10;

struct relay {
    struct mpi_team *team;
    struct task queue[AHEAD_MAX];
    int32_t first, count;
    struct strbuf frames; /* to be sent */
    double frames_s;      /* since when */
    struct strbuf sent;   /* what the requests send */
    MPI_Request requests[PIECE_COUNT];
    int request_count;
    double heard_s, said_s;
    bool leaves;
};

/* ---- to and from rank 0 ------------------------------------------------------------------- */

/* Takes what waits, as far as it fits into the pieces; without frames it is a sign of life. */
static void send_frames(struct relay *relay)
{
    struct strbuf *sent = &relay->sent;
    const size_t limit = (size_t)PIECE_BYTES * PIECE_COUNT;
    const size_t count = relay->frames.length < limit ? relay->frames.length : limit;
    sent->length = 0;
    strbuf_add_bytes(sent, relay->frames.text, count);
    memmove(relay->frames.text, relay->frames.text + count, relay->frames.length - count);
    relay->frames.length -= count;
    for (size_t at = 0; at == 0 || at < count; at += PIECE_BYTES) {
        const size_t left = count - at;
        (void)MPI_Isend(sent->text + at, left < PIECE_BYTES ? (int)left : PIECE_BYTES, MPI_BYTE, 0,
                        TAG_FRAMES, MPI_COMM_WORLD, &relay->requests[relay->request_count++]);
    }
    relay->said_s = pool_now_s();
}

static bool is_sending(struct relay *relay)
{
    int is_done = 0;
    if (relay->request_count > 0 && (MPI_Testall(relay->request_count, relay->requests, &is_done,
                                                 MPI_STATUSES_IGNORE) != MPI_SUCCESS ||
                                     is_done != 0))
        relay->request_count = 0;
    return relay->request_count > 0;
}

static void send_due(struct relay *relay, double wait_s)
{
    const double now_s = pool_now_s();
    const bool is_due = relay->frames.length > 0 && now_s - relay->frames_s >= wait_s;
    if (!is_sending(relay) && (is_due || now_s - relay->said_s > mpi_sign_s))
        send_frames(relay);
}

static void add_frame(struct relay *relay, enum frame_kind kind, int64_t position,
                      const char *bytes, size_t count)
{
    const struct frame frame = {(uint32_t)kind, position, count};
    if (relay->frames.length == 0)
        relay->frames_s = pool_now_s();
    strbuf_add_bytes(&relay->frames, (const char *)&frame, sizeof(frame));
    strbuf_add_bytes(&relay->frames, bytes, count);
}

static void take_tasks(struct relay *relay)
{
    struct task tasks[AHEAD_MAX];
    MPI_Status about;
    int is_there = 0;
    int bytes = 0;
    while (MPI_Iprobe(0, TAG_TASKS, MPI_COMM_WORLD, &is_there, &about) == MPI_SUCCESS &&
           is_there != 0) {
        if (MPI_Recv(tasks, (int)sizeof(tasks), MPI_BYTE, 0, TAG_TASKS, MPI_COMM_WORLD, &about) !=
            MPI_SUCCESS)
            return;
        (void)MPI_Get_count(&about, MPI_BYTE, &bytes);
        relay->heard_s = pool_now_s();
        for (int i = 0; i < bytes / (int)sizeof(tasks[0]); i++) {
            if (tasks[i].kind == TASK_LEAVE || tasks[i].kind == TASK_LEAVE_AT_ONCE) {
                relay->leaves = true;
                relay->team->leaves_at_once = tasks[i].kind == TASK_LEAVE_AT_ONCE;
                continue;
            }
            BUG_IF(relay->count == AHEAD_MAX);
            relay->queue[(relay->first + relay->count++) % AHEAD_MAX] = tasks[i];
        }
    }
}

/* ---- its own pool ------------------------------------------------------------------------- */

static int64_t give_next(void *context)
{
    struct relay *relay = context;
    take_tasks(relay);
    if (relay->count == 0)
        return -1;
    const int64_t position = relay->queue[relay->first].position;
    relay->first = (relay->first + 1) % AHEAD_MAX;
    relay->count--;
    return position;
}

static void pass_answer(void *context, int64_t position, const char *bytes, size_t count)
{
    add_frame(context, FRAME_ANSWER, position, bytes, count);
}

static void pass_lost(void *context, int64_t position, const char *reason)
{
    add_frame(context, FRAME_LOST, position, reason, strlen(reason));
}

static bool goes_on(void *context)
{
    struct relay *relay = context;
    send_due(relay, late_s);
    return !relay->leaves;
}

/* What rank 0 wants, until it wants nothing more or is not heard any more. */
static enum status relay_tasks(struct relay *relay, struct pool *pool, struct diag *diag)
{
    const struct pool_caller caller = {.context = relay,
                                       .next = give_next,
                                       .answered = pass_answer,
                                       .lost = pass_lost,
                                       .goes_on = goes_on};
    enum status status = STATUS_OK;
    for (int tries = 0; !relay->leaves && status == STATUS_OK; tries++) {
        take_tasks(relay);
        if (relay->count > 0) {
            status = pool_run(pool, relay->queue[relay->first].kind, &caller, diag);
            tries = 0;
        }
        send_due(relay, 0);
        mpi_rest(tries);
        if (pool_now_s() - relay->heard_s > leader_patience * relay->team->timeout_s) {
            diag_world(diag, "rank 0 gave no sign of life");
            status = STATUS_WORLD;
        }
    }
    return status;
}

void mpi_serve(void *context, struct hash128 identity, const char *trouble, pool_work *work,
               void *work_context)
{
    struct arena arena = {0};
    struct diag diag;
    struct hello hello;
    struct pool *pool = NULL;
    struct relay relay = {
        .team = context, .heard_s = pool_now_s(), .said_s = pool_now_s(), .leaves = false};
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    diag_init(&diag, &arena);
    /* They are for rank 0, which then lets all leave. */
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    enum status status = STATUS_OK;
    if (trouble == NULL)
        status = pool_new(&arena, 1, work, work_context, &pool, &diag);
    if (status != STATUS_OK)
        trouble = arena_strdup(&arena, diag.items[0].text);
    mpi_hello(&hello, identity, trouble);
    (void)MPI_Send(&hello, (int)sizeof(hello), MPI_BYTE, 0, TAG_HELLO, MPI_COMM_WORLD);
    status = relay_tasks(&relay, pool, &diag);
    pool_free(pool);
    if (status != STATUS_OK) {
        /* Alone: rank 0 cannot be told. */
        diag_write(&diag, stderr, false);
        _exit(1);
    }
    relay.team->has_served = true;
    strbuf_release(&relay.frames);
    strbuf_release(&relay.sent);
    arena_release(&arena);
}
