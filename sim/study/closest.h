/*
 * study/closest.h: which measured run is nearest to a configuration, and how far off we are on it.
 *
 * The distance is counted in octaves and words. A factor of two in one of these counts 1, and other
 * factors |log2|:
 *
 *   parameters, sequence length, sequences a microbatch, GPUs, the GPU's peak in the compute type,
 *   its memory bandwidth; across hosts on both sides: network bandwidth a GPU
 *
 * and each of these that differs counts 1:
 *
 *   policy, checkpointing, compilation, float8, adapters (LoRA), one host or several
 *
 *   Llama-3-8B, 8,192 tokens, 32 H100 against the same on 8: 2 (GPUs 4x) + 1 (hosts) = 3
 *
 * The runs stand in results/measured/index.csv, written by `validate --index` (scored rows with a
 * step time: trust A and B, no repeats), with what was predicted then; a test holds it current.
 */
#ifndef FSDPSIM_STUDY_CLOSEST_H
#define FSDPSIM_STUDY_CLOSEST_H

#include <stdbool.h>
#include <stdio.h>

#include "run/experiment.h"

struct run_traits {
    const char *label, *model, *gpu, *policy, *checkpointing;
    int64_t parameters, seq_len, micro_batch, n_gpus, n_nodes;
    double peak_flop_per_s, hbm_bytes_per_s;
    double network_bytes_per_s; /* NICs of a host over its GPUs; 0: one host */
    bool is_compiled, is_float8, is_lora;
    double measured_s, predicted_s; /* of the index */
};

struct run_index {
    struct run_traits *items;
    int32_t count, capacity;
};

/* Of a run that was played; texts are borrowed from both. */
struct run_traits run_traits_of(const struct experiment *experiment, const struct outcome *outcome);
double run_distance(const struct run_traits *a, const struct run_traits *b);
/* The nearest, of equals the first; NULL: the index is empty. */
const struct run_traits *run_closest(const struct run_index *index, const struct run_traits *run);
/* "GPUs 32 not 8, tokens a sequence 4,096 not 8,192": of `run`, not of `other`; "nothing". */
const char *run_difference(struct arena *arena, const struct run_traits *run,
                           const struct run_traits *other);

/* The index that ships; empty where there is none. */
MUST_CHECK enum status run_index_load(struct arena *arena, const char *const *data_folders,
                                      struct run_index *index, struct diag *diag);
void run_index_write(const struct run_index *index, FILE *file);

#endif
