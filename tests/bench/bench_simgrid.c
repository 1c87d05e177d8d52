/*
 * tests/bench/bench_simgrid.c: a system of flows in SimGrid, through its C API.
 *
 * Flow i goes from host i / n to host n + i mod n by a route of its links; model CM02 without
 * latency, window or round-trip weights, so that rates are max-min fair and nothing else. SimGrid
 * is one simulation a process, so each play is a child that writes its figures into a pipe. Clocked
 * is simgrid_run alone, platform and actors stand by then. Each host has one actor, which issues
 * all of its sends or receipts and waits for all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>

#include "bench.h"
#include "bench_flows.h"

const bool bench_has_simgrid = true;

/* SimGrid's actors get texts; the system they play is the child's. */
static const struct flow_system *played;
static double *played_ends_s;

static int32_t hosts_a_side(const struct flow_system *system)
{
    int32_t n = 1;
    while (n * n < system->flow_count)
        n++;
    return n;
}

static void write_platform(const struct flow_system *system, FILE *file)
{
    const int32_t n = hosts_a_side(system);
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
          "\"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
          "<zone id=\"zone\" routing=\"Full\">\n",
          file);
    for (int32_t i = 0; i < 2 * n; i++)
        fprintf(file, "<host id=\"h%d\" speed=\"1Gf\"/>\n", (int)i);
    for (int32_t i = 0; i < system->link_count; i++)
        fprintf(file, "<link id=\"l%d\" bandwidth=\"%lldBps\" latency=\"0s\"/>\n", (int)i,
                (long long)system->capacity[i]);
    for (int32_t i = 0; i < system->flow_count; i++) {
        fprintf(file, "<route src=\"h%d\" dst=\"h%d\" symmetrical=\"NO\">", (int)(i / n),
                (int)(n + i % n));
        for (int32_t j = 0; j < system->flows[i].link_count; j++)
            fprintf(file, "<link_ctn id=\"l%d\"/>", (int)system->flows[i].links[j]);
        fputs("</route>\n", file);
    }
    fputs("</zone>\n</platform>\n", file);
}

static sg_mailbox_t mailbox_of(int32_t flow)
{
    char name[24];
    snprintf(name, sizeof(name), "f%d", (int)flow);
    return sg_mailbox_by_name(name);
}

/* "s", host or "r", host: all flows that leave or reach it. */
static void actor_run(int argc, char *argv[])
{
    (void)argc;
    const int32_t n = hosts_a_side(played), host = (int32_t)strtol(argv[1], NULL, 10);
    const bool is_sender = host < n;
    sg_comm_t *comms = calloc((size_t)n, sizeof(sg_comm_t));
    int32_t *flows = malloc(sizeof(*flows) * (size_t)n);
    static void *received;
    int32_t count = 0;
    for (int32_t k = 0; k < n; k++) {
        const int32_t flow = is_sender ? host * n + k : k * n + host - n;
        if (flow >= played->flow_count)
            continue;
        flows[count] = flow;
        comms[count++] = is_sender ? sg_mailbox_put_async(mailbox_of(flow), &played,
                                                          (long)played->flows[flow].bytes)
                                   : sg_mailbox_get_async(mailbox_of(flow), &received);
    }
    while (count > 0) {
        const ssize_t ended = sg_comm_wait_any(comms, (size_t)count);
        played_ends_s[flows[ended]] = simgrid_get_clock();
        comms[ended] = comms[--count];
        flows[ended] = flows[count];
    }
    free(comms);
    free(flows);
}

static void child_play(const struct flow_system *system, int to)
{
    char platform[] = "/tmp/fsdpsim-bench-XXXXXX";
    const char *options[] = {"fsdpsim-bench",
                             "--cfg=network/model:CM02",
                             "--cfg=network/crosstraffic:0",
                             "--cfg=network/weight-S:0",
                             "--cfg=network/TCP-gamma:0",
                             "--cfg=surf/precision:1e-12",
                             "--cfg=maxmin/precision:1e-9",
                             "--log=root.thresh:error"};
    int argc = (int)(sizeof(options) / sizeof(options[0]));
    char *argv[sizeof(options) / sizeof(options[0]) + 1] = {NULL};
    for (int i = 0; i < argc; i++) { /* it may change them */
        argv[i] = malloc(64);
        snprintf(argv[i], 64, "%s", options[i]);
    }
    const int file = mkstemp(platform);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (stream == NULL)
        _exit(1);
    write_platform(system, stream);
    fclose(stream);
    simgrid_init(&argc, argv);
    simgrid_load_platform(platform);
    unlink(platform);
    played = system;
    played_ends_s = calloc((size_t)system->flow_count, sizeof(double));
    for (int32_t i = 0; i < 2 * hosts_a_side(system); i++) {
        char name[24], number[16];
        snprintf(name, sizeof(name), "h%d", (int)i);
        snprintf(number, sizeof(number), "%d", (int)i);
        const char *arguments[] = {name, number, NULL};
        sg_actor_create_(name, sg_host_by_name(name), actor_run, 2, arguments);
    }
    const double start_s = bench_now_s();
    simgrid_run();
    const double took_s = bench_now_s() - start_s;
    FILE *out = fdopen(to, "w");
    const bool is_written = out != NULL && fwrite(&took_s, sizeof(took_s), 1, out) == 1 &&
                            fwrite(played_ends_s, sizeof(double), (size_t)system->flow_count,
                                   out) == (size_t)system->flow_count &&
                            fclose(out) == 0;
    _exit(is_written ? 0 : 1);
}

bool bench_simgrid_play(const struct flow_system *system, double *took_s, double *ends_s)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        return false;
    const pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        close(ends[0]);
        child_play(system, ends[1]);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    const size_t count = (size_t)system->flow_count;
    const bool is_read = in != NULL && fread(took_s, sizeof(*took_s), 1, in) == 1 &&
                         fread(ends_s, sizeof(*ends_s), count, in) == count;
    if (in != NULL)
        fclose(in);
    int status = 0;
    waitpid(child, &status, 0);
    return is_read && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
