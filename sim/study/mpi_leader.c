/* study/mpi_leader.c: rank 0 and what it knows of the others; see mpi_team.h. */
#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>

#include "study/mpi_private.h"

/* Worker k of the pool is rank k + 1. */
static struct mpi_rank *rank_of(const struct pool *pool, int32_t number)
{
    return &((struct mpi_team *)pool->own)->ranks[number + 1];
}

/* ---- hello -------------------------------------------------------------------------------- */

/* Waits for it; a rank that ended before it could say anything is lost. */
static void read_hello(struct mpi_team *team, int rank)
{
    struct mpi_rank *self = &team->ranks[rank];
    const double end_s = pool_now_s() + team->timeout_s;
    int is_there = 0;
    if (self->is_welcome || self->is_lost)
        return;
    for (int tries = 0; is_there == 0 && pool_now_s() < end_s; tries++) {
        if (MPI_Iprobe(rank, TAG_HELLO, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            break;
        if (is_there == 0)
            mpi_rest(tries);
    }
    if (is_there == 0 || MPI_Recv(&self->hello, (int)sizeof(self->hello), MPI_BYTE, rank, TAG_HELLO,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        self->is_lost = self->is_silent = true;
        return;
    }
    self->is_welcome = true;
    self->hello.host[HOST_BYTES - 1] = self->hello.trouble[TROUBLE_BYTES - 1] = '\0';
    self->heard_s = self->said_s = pool_now_s();
}

static const char *machine_of(struct arena *arena, const struct mpi_rank *rank)
{
    return arena_strndup(arena, rank->hello.host, strcspn(rank->hello.host, " "));
}

/* Ranks on the same machine say the same of the same file. */
static bool is_said(const struct mpi_team *team, int rank)
{
    for (int i = 1; i < rank; i++)
        if (text_equal(team->ranks[i].hello.trouble, team->ranks[rank].hello.trouble))
            return true;
    return false;
}

static enum status judge_hello(struct mpi_team *team, int rank, struct hash128 identity,
                               struct arena *arena, struct diag *diag)
{
    const struct mpi_rank *self = &team->ranks[rank];
    const char *machine = machine_of(arena, self);
    if (self->is_lost) {
        diag_add(diag, DIAG_WARNING, NO_PLACE, "it may have ended: the others play",
                 "rank %d gave no sign of life for %.0f s", rank, team->timeout_s);
        return STATUS_OK;
    }
    if (self->hello.trouble[0] != '\0') {
        if (!is_said(team, rank))
            diag_add(diag, DIAG_ERROR, NO_PLACE, "all files must be on all machines",
                     "rank %d on %s: %s", rank, machine, self->hello.trouble);
        return STATUS_INPUT;
    }
    if (hash128_equal(self->hello.identity, identity))
        return STATUS_OK;
    diag_add(diag, DIAG_ERROR, NO_PLACE,
             "the program, the configuration and the options must be the same on all machines",
             "rank %d on %s would play another sweep", rank, machine);
    return STATUS_INPUT;
}

/* ---- a worker of the pool ----------------------------------------------------------------- */

/* A rank cannot come again. */
static enum status rank_start(struct pool *pool, int32_t number, struct diag *diag)
{
    (void)pool;
    (void)number;
    (void)diag;
    return STATUS_OK;
}

static void rank_give(struct pool *pool, int32_t number, const struct task *task)
{
    struct mpi_rank *rank = rank_of(pool, number);
    rank->next[rank->next_count++] = *task;
}

/* What stands to be sent, or a sign of life; false: it cannot be reached. */
static bool send_tasks(struct mpi_rank *rank, int number)
{
    MPI_Request *request = rank->request;
    int is_done = 0;
    if (rank->is_sending) {
        if (MPI_Test(request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        rank->is_sending = is_done == 0;
    }
    const double now_s = pool_now_s();
    if (rank->is_sending || (rank->next_count == 0 && now_s - rank->said_s < mpi_sign_s))
        return true;
    memcpy(rank->sending, rank->next, sizeof(rank->sending));
    const int bytes = (int)sizeof(struct task) * rank->next_count;
    rank->next_count = 0;
    rank->is_sending = true;
    rank->said_s = now_s;
    return MPI_Isend(rank->sending, bytes, MPI_BYTE, number, TAG_TASKS, MPI_COMM_WORLD, request) ==
           MPI_SUCCESS;
}

static void give_up(struct pool_round *round, struct pool *pool, int32_t number, const char *why)
{
    struct arena scratch = {0};
    struct mpi_rank *rank = rank_of(pool, number);
    rank->is_lost = true;
    rank->next_count = 0;
    pool_bury(round, number,
              arena_printf(&scratch, "rank %d on %s %s", (int)number + 1,
                           machine_of(&scratch, rank), why));
    arena_release(&scratch);
}

/* Whether it is a process of this machine that is not there any more. */
static bool has_ended(const struct mpi_rank *rank)
{
    struct hello own;
    mpi_hello(&own, (struct hash128){0}, NULL);
    return text_equal(own.host, rank->hello.host) && kill((pid_t)rank->hello.pid, 0) != 0 &&
           errno == ESRCH;
}

static void judge(struct pool_round *round, struct pool *pool, int32_t number)
{
    const struct mpi_team *team = pool->own;
    struct mpi_rank *rank = rank_of(pool, number);
    struct arena scratch = {0};
    if (has_ended(rank)) {
        give_up(round, pool, number, "has ended");
    } else if (pool_now_s() - rank->heard_s > team->timeout_s) {
        rank->is_silent = true;
        give_up(round, pool, number,
                arena_printf(&scratch, "gave no sign of life for %.0f s", team->timeout_s));
    }
    arena_release(&scratch);
}

/* One message, if there is one. */
static bool hear_one(struct pool_round *round, struct pool *pool)
{
    struct mpi_team *team = pool->own;
    MPI_Status about;
    int is_there = 0;
    int bytes = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FRAMES, MPI_COMM_WORLD, &is_there, &about) != MPI_SUCCESS ||
        is_there == 0)
        return false;
    (void)MPI_Get_count(&about, MPI_BYTE, &bytes);
    struct arena scratch = {0};
    char *text = arena_alloc(&scratch, (size_t)bytes + 1);
    const int source = about.MPI_SOURCE;
    if (MPI_Recv(text, bytes, MPI_BYTE, source, TAG_FRAMES, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
            MPI_SUCCESS &&
        !team->ranks[source].is_lost) {
        team->ranks[source].heard_s = pool_now_s();
        pool_hear(round, source - 1, text, (size_t)bytes);
    }
    arena_release(&scratch);
    return true;
}

static void send_all(struct pool_round *round, struct pool *pool)
{
    for (int32_t i = 0; i < pool->count; i++)
        if (pool->workers[i].is_up && !send_tasks(rank_of(pool, i), i + 1))
            give_up(round, pool, i, "cannot be reached");
}

static void rank_listen(struct pool_round *round, struct pool *pool, int timeout_ms)
{
    const double end_s = pool_now_s() + 1e-3 * (double)timeout_ms;
    bool has_heard = false;
    for (int tries = 0; !has_heard && pool_now_s() < end_s; tries++) {
        send_all(round, pool);
        while (hear_one(round, pool))
            has_heard = true;
        if (!has_heard)
            mpi_rest(tries);
    }
    if (has_heard)
        return;
    for (int32_t i = 0; i < pool->count; i++)
        if (pool->workers[i].is_up)
            judge(round, pool, i);
}

/* The team is dismissed when the program ends (mpi_team_end). */
static void rank_end(struct pool *pool)
{
    (void)pool;
}

/* A message and its answer may take milliseconds. */
static const struct pool_kind rank_kind = {.ahead_s = 0.2,
                                           .ahead_min = 4,
                                           .ahead_max = AHEAD_MAX,
                                           .start = rank_start,
                                           .give = rank_give,
                                           .listen = rank_listen,
                                           .end = rank_end};

enum status mpi_lead(void *context, struct arena *arena, struct hash128 identity,
                     struct pool **pool, struct diag *diag)
{
    struct mpi_team *team = context;
    enum status status = STATUS_OK;
    for (int i = 1; i < team->size; i++)
        read_hello(team, i);
    for (int i = 1; i < team->size; i++) {
        const enum status one = judge_hello(team, i, identity, arena, diag);
        status = one != STATUS_OK ? one : status;
    }
    *pool = pool_make(arena, &rank_kind, team, team->size - 1);
    for (int32_t i = 0; i < (*pool)->count; i++)
        (*pool)->workers[i].is_up = !team->ranks[i + 1].is_lost;
    return status;
}

/* Waits a moment for what is still being sent. */
static bool is_free_to_send(struct mpi_rank *rank)
{
    int is_done = 0;
    for (int tries = 0; rank->is_sending && tries < 1000; tries++) {
        if (MPI_Test(rank->request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        rank->is_sending = is_done == 0;
        if (rank->is_sending)
            mpi_rest(tries);
    }
    return !rank->is_sending;
}

void mpi_dismiss(struct mpi_team *team)
{
    bool has_lost = false;
    for (int i = 1; i < team->size; i++) {
        read_hello(team, i);
        has_lost |= team->ranks[i].is_lost;
    }
    for (int i = 1; i < team->size; i++) {
        struct mpi_rank *rank = &team->ranks[i];
        if (rank->is_lost || !is_free_to_send(rank))
            continue;
        rank->sending[0] = (struct task){.kind = has_lost ? TASK_LEAVE_AT_ONCE : TASK_LEAVE};
        rank->is_sending = MPI_Isend(rank->sending, (int)sizeof(struct task), MPI_BYTE, i,
                                     TAG_TASKS, MPI_COMM_WORLD, rank->request) == MPI_SUCCESS;
    }
    for (int i = 1; i < team->size; i++)
        if (!team->ranks[i].is_lost)
            (void)is_free_to_send(&team->ranks[i]);
}
