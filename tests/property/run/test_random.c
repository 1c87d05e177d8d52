/* tests/property/run/test_random.c: random settings all play to their end and add up. */
#include "base/philox.h"
#include "property_tests.h"

enum { SEED = 90210, RUNS = 250 };

static const char *pick(struct philox *random, const char *const *words, uint32_t count)
{
    return words[philox_below(random, count)];
}

static void write_settings(struct philox *random, char *text, size_t size)
{
    static const char *const booleans[] = {"true", "false"};
    static const char *const wraps[] = {"block", "torchtitan"};
    static const char *const checkpointing[] = {"none", "full"};
    static const char *const param_dtypes[] = {"bf16", "fp32"};
    static const char *const clusters[] = {"ideal-2x1gbs",      "ideal-8x450",
                                           "dgx-h100; nodes=3", "dgx-h100-25gbe; nodes=5",
                                           "ideal-2x2gbs-half", "ideal-64-two-level; nodes=2",
                                           "dgx-h100"};
    static const char *const ideals[] = {"[]", "[host]", "[copies, latency]", "[contention]",
                                         "[host, copies, contention, optimizer, latency]"};
    static const char *const networks[] = {"flows", "flows", "messages"};
    snprintf(text, size,
             "cluster=%s; fsdp.reshard_after_forward=%s; fsdp.wrap=%s; "
             "fsdp.separate_reduce_scatter_communicator=%s; fsdp.reduce_scatter_buffers=%d; "
             "train.grad_accum=%d; train.micro_batch=%d; train.activation_checkpointing=%s; "
             "train.compile=%s; train.precision={param_dtype: %s, reduce_dtype: %s}; "
             "train.max_grad_norm=%d; model.tie_word_embeddings=%s; model.num_hidden_layers=%d; "
             "simulate.ideal=%s; simulate.network=%s; simulate.warmup_steps=%d; simulate.steps=%d; "
             "gpus_per_node=%d",
             pick(random, clusters, 7), pick(random, booleans, 2), pick(random, wraps, 2),
             pick(random, booleans, 2), 1 + (int)philox_below(random, 3),
             1 + (int)philox_below(random, 3), 1 + (int)philox_below(random, 3),
             pick(random, checkpointing, 2), pick(random, booleans, 2),
             pick(random, param_dtypes, 2), pick(random, param_dtypes, 2),
             (int)philox_below(random, 2), pick(random, booleans, 2),
             1 + (int)philox_below(random, 5), pick(random, ideals, 5), pick(random, networks, 3),
             (int)philox_below(random, 3), 1 + (int)philox_below(random, 3),
             1 + (int)philox_below(random, 2));
}

static void test_settings(void)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        struct philox random;
        philox_init(&random, SEED, run, 0, 0);
        char overrides[1024];
        write_settings(&random, overrides, sizeof(overrides));
        struct played played;
        if (played_play(&played, TWO_BLOCKS, overrides)) {
            check_context("run %u", (unsigned)run);
            check_identities(&played);
            check_context(NULL);
        }
        played_release(&played);
    }
}

const struct check_case random_cases[] = {{"settings", test_settings}, {0}};
