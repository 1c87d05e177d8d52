/*
 * cluster/gpu_attention.h: how fast fused attention runs, by implementation.
 *
 *   rate(s) = share · peak · s / (s + half)
 *
 * with a share of the dense peak for long sequences and the length at which half of it is reached,
 * by implementation, mask, pass and head dimension (linear between the head dimensions given, the
 * nearest outside). Two numbers reproduce each published series (six lengths, 512 to 16,384) within
 * 1 % in the median and mostly 5 % at worst. FLOP is 4·b·h·s²·d forward, 2.5 times that backward,
 * half of it under a causal mask. Fewer tiles of 128 rows than SMs leave SMs idle.
 *
 * Example: FlashAttention-2, H100, causal, d = 128: 0.352 · 989.4 · 8192 / (8192 + 376) = 333
 * TFLOP/s forward.
 *
 * An implementation that a table lacks runs as the one that would be used in its place.
 *
 * Left out: grouped heads (less traffic), windows, dropout, d of values other than of keys.
 */
#ifndef FSDPSIM_CLUSTER_GPU_ATTENTION_H
#define FSDPSIM_CLUSTER_GPU_ATTENTION_H

#include "cluster/gpu_config.h"

extern const struct field_table attention_table;

/* NULL after an error at `path`: no rows. In the arena. */
struct attention_model *attention_model_new(struct arena *arena, struct config *config,
                                            const char *path, const struct attention_config *from);
/* Share of the dense peak that `kernel` reaches on a GPU of `sm_count` SMs. */
double attention_share(const struct attention_model *model, const struct kernel *kernel,
                       int64_t sm_count);
/* What runs for `impl` on this GPU: itself, or what would be used in its place. NULL model: itself.
 */
enum attention_impl attention_played(const struct attention_model *model, enum attention_impl impl);
const char *attention_impl_name(enum attention_impl impl);

#endif
