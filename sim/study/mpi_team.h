/*
 * study/mpi_team.h: the ranks of an MPI job as workers of a pool.
 *
 *   rank 0        leads: gives out leases of points, takes answers, is the only one that writes
 *   other ranks   each plays by one process of its own, so that a point that crashes is an answer
 *                 ("killed by signal 11"), not the end of the rank; the rank itself only passes on
 *
 *   rank 0 ── {task, task, …} ──> rank k       one message; task LEAVE: the end
 *   rank 0 <── frame bytes frame bytes … ── rank k
 *
 * A lease is what a rank is given ahead (about 0.2 s of work, 4 to 256 points); its answers come
 * together, at most 20 ms late. Both sides give a sign of life every 5 s, also while a point
 * is played. A rank that ended on this machine (it has no process), or that gave no sign for
 * $FSDPSIM_MPI_TIMEOUT seconds (default 60), is given up: the oldest point of its lease counts as
 * lost, the others go to other ranks. A rank that hears nothing from rank 0 for ten times as long
 * leaves.
 *
 * Whether the job outlives a rank is up to who started it: mpirun of Open MPI 4 ends all ranks when
 * one ends with a signal, unless it runs with --enable-recovery.
 *
 * Idle ranks sleep; they do not spin. All machines must have the same processor architecture, the
 * same program and the same files: numbers travel as they are in memory.
 */
#ifndef FSDPSIM_STUDY_MPI_TEAM_H
#define FSDPSIM_STUDY_MPI_TEAM_H

#include "study/pool.h"

struct mpi_team;

/* Joins the job. `team`: NULL when this is the only rank. */
struct mpi_team *mpi_team_begin(int *argc, char ***argv, struct arena *arena,
                                const struct pool_team **team);
/* Ends it: rank 0 lets the others leave; a rank that did not serve waits until it may. Returns
   unless a rank was given up: then it ends the process with `exit_code`. */
void mpi_team_end(struct mpi_team *team, int exit_code);

#endif
