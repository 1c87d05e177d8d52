/* tests/bench/bench_no_simgrid.c: stands for bench_simgrid.c where SimGrid is not installed. */
#include "bench_flows.h"

const bool bench_has_simgrid = false;

bool bench_simgrid_play(const struct flow_system *system, double *took_s, double *ends_s)
{
    (void)system;
    (void)took_s;
    (void)ends_s;
    return false;
}
