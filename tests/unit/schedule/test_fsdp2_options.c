/* tests/unit/schedule/test_fsdp2_options.c: FSDP2: what users may set beside the defaults. Numbers
   in comments: statements of docs/fsdp2.md. */
#include "schedule_tests.h"

#define FOUR_LAYERS "model.num_hidden_layers=4; "

static int32_t forward_end(const struct program_text *text)
{
    return program_text_find(text, 0, "compute: mark forward_end");
}

/* 27: the list replaces the default: two units before, the embedding too; what is under way is not
   gathered again. Forward 6 gathers, backward 4 blocks and the embedding. */
static void test_backward_list(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS, FOUR_LAYERS "fsdp.backward_prefetch=2")) {
        static const char *const wanted[] = {
            "compute: segment loss.backward",      "host: alloc cast(layers.3)",
            "host: alloc cast(layers.2)",          "compute: segment lm_head.backward",
            "compute: wait gathered(layers.3)",    "host: alloc cast(layers.1)",
            "host: alloc backward_temp(layers.3)", "compute: wait gathered(layers.2)",
            "host: alloc cast(layers.0)",          "host: alloc backward_temp(layers.2)",
            "compute: wait gathered(layers.1)",    "host: alloc cast(embed_tokens)",
            "host: alloc backward_temp(layers.1)", NULL};
        program_text_check_order(&text, forward_end(&text), wanted);
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 6 + 5);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
}

/* 9, 28: the embedding's second gather is left out. */
static void test_embedding_not_gathered(void)
{
    struct played played;
    struct program_text text;
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          FOUR_LAYERS "fsdp.unshard_in_backward=false")) {
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 6 + 4);
        CHECK_INT(program_text_count(&text, "compute: wait gathered(embed_tokens)"), 1);
        CHECK_INT(program_text_count(&text, "compute: segment chunk_cat(embed_tokens)"), 1);
        program_check_balance(played.experiment.program);
    }
    played_release(&played);
    /* Tied weights are those of the head, which backward reads. */
    if (program_text_read(&text, &played, TWO_BLOCKS,
                          FOUR_LAYERS "model.tie_word_embeddings=true; "
                                      "fsdp.unshard_in_backward=false; "
                                      "fsdp.reshard_after_forward=true"))
        CHECK_INT(program_text_count(&text, "all-gather: all_gather"), 5 + 4);
    played_release(&played);
}

const struct check_case fsdp2_options_cases[] = {
    {"27: a list in backward", test_backward_list},
    {"28: the embedding stays sharded in backward", test_embedding_not_gathered},
    {0}};
