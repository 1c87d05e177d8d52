/*
 * tests/bench/bench_flows.h: a random system of links and flows, for us and for SimGrid.
 */
#ifndef FSDPSIM_TESTS_BENCH_FLOWS_H
#define FSDPSIM_TESTS_BENCH_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_LINKS = 4 };

struct system_flow {
    int64_t bytes;
    int32_t links[FLOW_LINKS];
    int32_t link_count;
};

struct flow_system {
    int64_t *capacity; /* bytes/s, by link */
    int32_t link_count;
    struct system_flow *flows;
    int32_t flow_count;
};

extern const bool bench_has_simgrid;
/* Plays the system in SimGrid: seconds of our time, and when each flow ends. False: it is not
   there, or it failed. */
bool bench_simgrid_play(const struct flow_system *system, double *took_s, double *ends_s);

#endif
