/* Models for the tests of this room. */
#ifndef FSDPSIM_TESTS_MODEL_FIXTURE_H
#define FSDPSIM_TESTS_MODEL_FIXTURE_H

#include "model/model.h"

/* Llama-3.1-8B, by hand from the published hyperparameters. */
struct model_config fixture_llama_8b(void);
/* h 96, f 160, 6 heads of 16, 2 key/value heads, 3 layers, vocabulary 1,000: sums by hand. */
struct model_config fixture_small(void);
/* bf16, fp32 loss, eager, nothing checkpointed. */
struct train_shape fixture_shape(int64_t seq_len, int64_t micro_batch);
/* Builds or fails the test (then a model without kinds). */
const struct model *fixture_build(struct arena *arena, const struct model_config *config,
                                  const struct train_shape *shape);
/* The first kind with this role; fails the test when there is none. */
const struct module_kind *fixture_kind(const struct model *model, enum module_role role);
/* The kernel of that name; fails the test when there is none. */
const struct kernel *fixture_kernel(const struct kernel_list *list, const char *name);
/* Kernels with this in their names. */
int fixture_count(const struct kernel_list *list, const char *part);
/* All messages, a line each: "text | hint". */
const char *fixture_messages(struct arena *arena, const struct diag *diag);
/* Binds `text` as a root file; the messages are returned, "" when there are none. */
const char *fixture_bind(struct arena *arena, const char *text, struct model_config *model);

#endif
