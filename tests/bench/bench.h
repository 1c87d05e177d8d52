/*
 * tests/bench/bench.h: timings as ratios within one run where possible, never a timed test.
 *
 *   fsdpsim-bench                 all parts
 *   fsdpsim-bench queue maxmin    the parts named
 *
 * A part is one file with one function that prints a table; bench.c lists them.
 */
#ifndef FSDPSIM_TESTS_BENCH_H
#define FSDPSIM_TESTS_BENCH_H

#include <stdint.h>

enum { BENCH_ROUNDS = 9 };

double bench_now_s(void);
/* The middle of BENCH_ROUNDS values, which are sorted in place. */
double bench_median(double *values);

void bench_queue(void);
void bench_maxmin(void);
void bench_flows(void);
void bench_collective(void);
void bench_run(void);
void bench_sweep(void);

#endif
