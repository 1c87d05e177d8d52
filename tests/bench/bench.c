/* tests/bench/bench.c: see bench.h. */
#include "bench.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench_part {
    const char *name;
    const char *help;
    void (*run)(void);
};

static const struct bench_part parts[] = {
    {"queue", "engine beside a bare 4-ary heap, hold model", bench_queue},
    {"maxmin", "max-min solves, small to large", bench_maxmin},
    {"flows", "random systems of links and flows, beside SimGrid", bench_flows},
    {"collective", "one collective: layout, plan and play", bench_collective},
    {"run", "whole runs of Llama-3.1-8B: load and play", bench_run},
    {"sweep", "2,048 points of Llama-3.1-8B, resolved, played and stored", bench_sweep},
};

enum { PART_COUNT = sizeof(parts) / sizeof(parts[0]) };

double bench_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values)
{
    qsort(values, BENCH_ROUNDS, sizeof(*values), compare_doubles);
    return values[BENCH_ROUNDS / 2];
}

static const struct bench_part *find_part(const char *name)
{
    for (int i = 0; i < PART_COUNT; i++) {
        if (strcmp(parts[i].name, name) == 0)
            return &parts[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    for (int a = 1; a < argc; a++) {
        if (find_part(argv[a]) != NULL)
            continue;
        fprintf(stderr, "error: unknown part '%s'\n", argv[a]);
        for (int i = 0; i < PART_COUNT; i++)
            fprintf(stderr, "  %-10s %s\n", parts[i].name, parts[i].help);
        return 2;
    }
    for (int i = 0; i < PART_COUNT; i++) {
        bool is_wanted = argc == 1;
        for (int a = 1; a < argc; a++)
            is_wanted = is_wanted || strcmp(argv[a], parts[i].name) == 0;
        if (!is_wanted)
            continue;
        printf("%s: %s\n", parts[i].name, parts[i].help);
        parts[i].run();
    }
    return 0;
}
