/* study/mpi_private.h: what rank 0 and the other ranks have in common. */
#ifndef FSDPSIM_STUDY_MPI_PRIVATE_H
#define FSDPSIM_STUDY_MPI_PRIVATE_H

#include "study/mpi_team.h"
#include "study/pool_private.h"

enum { TAG_HELLO = 1, TAG_TASKS, TAG_FRAMES };
enum { HOST_BYTES = 256, TROUBLE_BYTES = 2048 };

/* The kinds of task that end a rank. */
enum { TASK_LEAVE = 0x7ffffffe, TASK_LEAVE_AT_ONCE = 0x7fffffff };

static const double mpi_sign_s = 5;

struct hello { /* of each rank to rank 0, once */
    struct hash128 identity;
    int64_t pid;
    char host[HOST_BYTES];       /* name of the machine, and of the processes that are seen there */
    char trouble[TROUBLE_BYTES]; /* empty: none */
};

struct mpi_rank { /* as rank 0 knows it */
    struct hello hello;
    bool is_welcome; /* its hello was read */
    bool is_lost;    /* ended, or silent */
    bool is_silent;  /* may still be there */
    struct task next[AHEAD_MAX], sending[AHEAD_MAX];
    int32_t next_count;
    bool is_sending;
    void *request; /* MPI_Request of `sending`, in the arena */
    double heard_s, said_s;
};

struct mpi_team {
    struct pool_team pool_team;
    struct arena *arena;
    int rank, size;
    double timeout_s;
    struct mpi_rank *ranks; /* rank 0: of all; its own is not used */
    bool has_served;        /* other ranks: and was told to leave */
    bool leaves_at_once;
};

/* Who this is. */
void mpi_hello(struct hello *hello, struct hash128 identity, const char *trouble);
/* Less than a scheduler's tick; `tries`: how often nothing was there, so that idle ranks wait
   longer. */
void mpi_rest(int tries);

/* mpi_leader.c */
MUST_CHECK enum status mpi_lead(void *context, struct arena *arena, struct hash128 identity,
                                struct pool **pool, struct diag *diag);
void mpi_dismiss(struct mpi_team *team);
/* mpi_worker.c */
void mpi_serve(void *context, struct hash128 identity, const char *trouble, pool_work *work,
               void *work_context);

#endif
