/*
 * run/loading.h: how fast batches come (`train.data_loader`), in closed form.
 *
 * A sample is a sequence. Workers read and prepare samples at the same time; storage is shared by
 * the ranks of a host and by all hosts, cores by the workers of a host:
 *
 *   read_s   = sample_bytes / min(storage.read / ranks of a host, storage.shared_read / ranks)
 *   sample_s = sample_time max(1, workers of a host / cores)
 *   batch_s  = micro_batch max((sample_s + read_s) / num_workers, read_s)
 *
 * without workers micro_batch (sample_s + read_s), by the host thread. schedule/data_loader.c says
 * when a batch is begun; the host waits where one is not there.
 *
 * Example: 8 sequences of 64 kB from 100 MB/s a rank and 20 ms of one worker each, 4 workers:
 * max(20.64 / 4, 0.64) = 5.16 ms a sequence, 41 ms a batch.
 *
 * Left out: variance between samples (a longer prefetch hides it, at most), caches of the file
 * system, hyperthreads, what workers take from the host thread.
 */
#ifndef FSDPSIM_RUN_LOADING_H
#define FSDPSIM_RUN_LOADING_H

#include <stdint.h>

struct loading_config { /* as torch.utils.data.DataLoader */
    int64_t num_workers, prefetch_factor;
    double sample_time_s, sample_bytes; /* both 0: no data loader */
};

struct experiment;

/* Time after which another batch comes out, of all workers of a rank; 0: there is no loader. */
double loading_batch_s(const struct experiment *experiment);
/* Batches asked for ahead; 0: no workers. */
int64_t loading_ahead(const struct experiment *experiment);

#endif
