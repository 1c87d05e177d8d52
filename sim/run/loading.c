/* run/loading.c: see loading.h. */
#include "run/loading.h"

#include <math.h>

#include "run/experiment_private.h"

static const struct field loading_fields[] = {
    {.key = "num_workers",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct loading_config, num_workers),
     .is_required = true,
     .min = 0,
     .max = 4096,
     .help = "worker processes of each GPU; 0: the host thread makes batches itself"},
    {.key = "prefetch_factor",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct loading_config, prefetch_factor),
     .default_text = "2",
     .min = 1,
     .max = 4096,
     .help = "batches that each worker is asked for ahead"},
    {.key = "sample_time",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct loading_config, sample_time_s),
     .min = 0,
     .max = 1e6,
     .help = "of one worker for a sequence: decoding, tokenizing, collating"},
    {.key = "sample_bytes",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_BYTES,
     .offset = offsetof(struct loading_config, sample_bytes),
     .min = 0,
     .max = 1e15,
     .help = "read from storage for a sequence; 'cluster.storage' says how fast"},
    {0}};

const struct field_table loading_table = {.name = "data_loader",
                                          .help = "where batches come from; without it they are "
                                                  "there",
                                          .fields = loading_fields,
                                          .struct_bytes = sizeof(struct loading_config)};

void loading_check(struct experiment *experiment)
{
    const struct storage *storage = &experiment->cluster.storage;
    if (!config_is_set(&experiment->config, "train.data_loader"))
        return;
    const struct loading_config *loading = &experiment->train.loading;
    if (!(loading->sample_time_s > 0) && !(loading->sample_bytes > 0))
        config_error(&experiment->config, "train.data_loader",
                     "'sample_time: 20 ms' of a worker, 'sample_bytes: 64 kB', or both",
                     "how long a sequence takes 'data_loader' does not say");
    if (loading->sample_bytes > 0 && !(storage->read > 0) && !(storage->shared_read > 0))
        config_error(&experiment->config, "train.data_loader.sample_bytes",
                     "'cluster.storage.read: 5 GB/s' of a host, 'cluster.storage.shared_read' of a "
                     "file system that hosts share, or both",
                     "how fast data is read, cluster '%s' does not say", experiment->cluster.name);
    if (loading->num_workers == 0 &&
        config_is_set(&experiment->config, "train.data_loader.prefetch_factor"))
        config_error(&experiment->config, "train.data_loader.prefetch_factor",
                     "leave it out, or 'num_workers: 4'",
                     "'prefetch_factor' means nothing without workers");
}

static double read_s(const struct experiment *experiment)
{
    const struct storage *storage = &experiment->cluster.storage;
    const double bytes = experiment->train.loading.sample_bytes;
    double seconds = 0;
    if (storage->read > 0)
        seconds = bytes * (double)experiment->gpus_per_node / storage->read;
    if (storage->shared_read > 0)
        seconds = fmax(seconds, bytes * (double)experiment->n_gpus / storage->shared_read);
    return seconds;
}

double loading_batch_s(const struct experiment *experiment)
{
    const struct loading_config *loading = &experiment->train.loading;
    const double cores = (double)experiment->cluster.compute.cores;
    const double workers = (double)loading->num_workers;
    const double on_host = workers * (double)experiment->gpus_per_node;
    const double crowding = cores > 0 ? fmax(1, on_host / cores) : 1;
    const double reading_s = read_s(experiment);
    const double sample_s = loading->sample_time_s * crowding + reading_s;
    return (double)experiment->train.micro_batch *
           (workers > 0 ? fmax(sample_s / workers, reading_s) : sample_s);
}

int64_t loading_ahead(const struct experiment *experiment)
{
    return experiment->train.loading.num_workers * experiment->train.loading.prefetch_factor;
}
