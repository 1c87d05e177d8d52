/* study/mpi_team.c: joining and leaving a job; see mpi_team.h. */
#include "study/mpi_team.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "study/mpi_private.h"

static double read_timeout_s(void)
{
    static const double otherwise_s = 60;
    const char *text = getenv("FSDPSIM_MPI_TIMEOUT");
    double value = 0;
    return text != NULL && text_to_double(text, &value) && value >= 1 && value <= 1e6 ? value
                                                                                      : otherwise_s;
}

struct mpi_team *mpi_team_begin(int *argc, char ***argv, struct arena *arena,
                                const struct pool_team **pool_team)
{
    struct mpi_team *team = ARENA_NEW(arena, struct mpi_team);
    /* A rank's own process plays and makes no calls of MPI. */
    (void)setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
    int level = 0;
    (void)MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &level);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &team->rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &team->size);
    team->arena = arena;
    team->timeout_s = read_timeout_s();
    team->pool_team = (struct pool_team){
        .context = team, .is_worker = team->rank > 0, .lead = mpi_lead, .serve = mpi_serve};
    if (team->rank == 0) {
        team->ranks = ARENA_ARRAY(arena, struct mpi_rank, team->size);
        for (int i = 1; i < team->size; i++)
            team->ranks[i].request = ARENA_NEW(arena, MPI_Request);
    }
    *pool_team = team->size > 1 ? &team->pool_team : NULL;
    return team;
}

void mpi_hello(struct hello *hello, struct hash128 identity, const char *trouble)
{
    *hello = (struct hello){.identity = identity, .pid = (int64_t)getpid()};
    char machine[MPI_MAX_PROCESSOR_NAME] = "";
    char processes[64] = "";
    int length = 0;
    (void)MPI_Get_processor_name(machine, &length);
    /* In containers of one machine equal numbers name other processes. */
    const ssize_t got = readlink("/proc/self/ns/pid", processes, sizeof(processes) - 1);
    processes[got > 0 ? got : 0] = '\0';
    (void)snprintf(hello->host, sizeof(hello->host), "%.150s %s", machine, processes);
    if (trouble != NULL)
        (void)snprintf(hello->trouble, sizeof(hello->trouble), "%s", trouble);
}

void mpi_rest(int tries)
{
    const struct timespec time = {0, tries < 50 ? 50000 : 1000000};
    (void)nanosleep(&time, NULL);
}

void mpi_team_end(struct mpi_team *team, int exit_code)
{
    bool has_lost = false;
    bool has_silent = false;
    if (team->rank == 0) {
        mpi_dismiss(team);
        for (int i = 1; i < team->size; i++) {
            has_lost |= team->ranks[i].is_lost;
            has_silent |= team->ranks[i].is_silent;
        }
    } else {
        if (!team->has_served)
            mpi_serve(team, (struct hash128){0}, "it could not read the command", NULL, NULL);
        has_lost = team->leaves_at_once;
    }
    if (!has_lost) {
        (void)MPI_Finalize();
        return;
    }
    /* To finalize would wait for ranks that are gone; the job of a silent one must be ended. */
    (void)fflush(NULL);
    if (has_silent)
        (void)MPI_Abort(MPI_COMM_WORLD, exit_code);
    _exit(exit_code);
}
