/* cli/main_mpi.c: fsdpsim-mpi: sweeps, played by the ranks of an MPI job; the rest is fsdpsim. */
#include "cli/command_line.h"
#include "cli/verb.h"
#include "study/mpi_team.h"

int main(int argc, char **argv)
{
    struct arena arena = {0};
    const struct pool_team *team = NULL;
    /* A request to stop may come before all ranks are there. */
    pool_catch_signals(EXIT_STOPPED);
    struct mpi_team *job = mpi_team_begin(&argc, &argv, &arena, &team);
    const int code = command_line_play("fsdpsim-mpi", argc, argv, team);
    mpi_team_end(job, code);
    arena_release(&arena);
    return code;
}
