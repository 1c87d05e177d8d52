/* Model files as users write them: shipped ones, inline ones, and mistakes. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case model_config_cases[];

#define LLAMA_2_7B                                                                                 \
    "model_type: llama, hidden_size: 4096, intermediate_size: 11008, num_hidden_layers: 32, "      \
    "num_attention_heads: 32"

/* Defaults are those of LlamaConfig, which is Llama-2-7B: 6,738,415,616. null is "not set". */
static void test_defaults(void)
{
    static const char *const texts[] = {
        "model: {family: llama}\n",
        ("model: {" LLAMA_2_7B ", vocab_size: 32000, head_dim: null, num_key_value_heads: null,"
         " rope_scaling: null, pad_token_id: null}\n"),
        "model: {" LLAMA_2_7B ", vocab_size: 32000, hidden_act: \"swish\"}\n",
        "{\"model\": {\"family\": \"llama\", \"eos_token_id\": [1, 2],"
        " \"tie_word_embeddings\": false, \"vocab_size\": 32000}}\n",
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        check_context("%s", texts[i]);
        struct model_config config = {0};
        CHECK_TEXT(fixture_bind(&arena, texts[i], &config), "");
        CHECK_INT(config.type, TYPE_LLAMA);
        CHECK_INT(model_config_parameters(&config), 6738415616);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Sizes that a config.json leaves to transformers are named; null sizes are refused, as there. */
static void test_left_out(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"model: {model_type: llama}\n",
         "not said in 'model', so that defaults stand: hidden_size 4096, intermediate_size 11008, "
         "num_hidden_layers 32, num_attention_heads 32, vocab_size 32000"},
        {"model: {" LLAMA_2_7B "}\n",
         "not said in 'model', so that defaults stand: vocab_size 32000"},
        {"model: {" LLAMA_2_7B ", vocab_size: null}\n", "'vocab_size' is null in 'model'"},
        {"model: {model_type: bloom, n_embed: 1024, n_layer: 24, n_head: 16}\n",
         "not said in 'model', so that defaults stand: vocab_size 250880"},
        {"model: {model_type: gemma, num_key_value_heads: null}\n",
         "'num_key_value_heads' is null in 'model'"},
        {"model: {model_type: qwen2_moe, num_key_value_heads: null}\n",
         "'num_key_value_heads' is null in 'model'"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct model_config config = {0};
        check_context("%s", rows[i].text);
        CHECK_CONTAINS(fixture_bind(&arena, rows[i].text, &config), rows[i].message);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* Null key heads are one a query head (`if num_key_value_heads is None`), a null window is none,
   whatever the default: k and v of 32 layers are 4096 wide, not 1024 as Mistral's 8 heads. */
static void test_null(void)
{
    static const char *const sizes =
        "hidden_size: 4096, intermediate_size: 14336, num_hidden_layers: 32, num_attention_heads: "
        "32, vocab_size: 32000";
    static const int64_t mistral_7b = INT64_C(7241732096); /* as published */
    struct arena arena = {0};
    struct model_config given = {0}, null = {0};
    const char *text = arena_printf(&arena, "model: {model_type: mistral, %s}\n", sizes);
    CHECK_TEXT(fixture_bind(&arena, text, &given), "");
    CHECK_INT(model_config_parameters(&given), mistral_7b);
    CHECK_INT(given.decoder.sliding_window, 4096);
    text = arena_printf(
        &arena,
        "model: {model_type: mistral, %s, num_key_value_heads: null, sliding_window: null}\n",
        sizes);
    CHECK_TEXT(fixture_bind(&arena, text, &null), "");
    CHECK_INT(model_config_parameters(&null), mistral_7b + INT64_C(32) * 2 * 4096 * (4096 - 1024));
    CHECK_INT(null.decoder.sliding_window, 0);
    arena_release(&arena);
}

/* head_dim apart from hidden/heads: q 8·48 = 384, k 2·48 = 96. */
static void test_head_dim(void)
{
    struct arena arena = {0};
    struct model_config config = {0};
    CHECK_TEXT(fixture_bind(&arena,
                            "model: {model_type: llama, hidden_size: 250, num_attention_heads: 8,"
                            " num_key_value_heads: 2, head_dim: 48, intermediate_size: 600,"
                            " num_hidden_layers: 2, vocab_size: 1000, attention_bias: true}\n",
                            &config),
               "");
    CHECK_INT(model_config_parameters(&config),
              2 * (2 * 250 * (384 + 96) + 3 * 250 * 600 + 2 * 250 + 384 + 2 * 96 + 250) + 250 +
                  2 * 1000 * 250);
    arena_release(&arena);
}

static void test_abstract(void)
{
    struct arena arena = {0};
    struct model_config config = {0};
    CHECK_TEXT(fixture_bind(&arena,
                            "model:\n"
                            "  family: abstract\n"
                            "  name: thirty-two\n"
                            "  repeat: 4\n"
                            "  units:\n"
                            "    - {repeat: 7, parameters: 202375168, forward: 4.6 ms,"
                            " backward: 9.2 ms, saved_activations: 64 MiB}\n"
                            "    - {parameters: 202375168, forward: 2 ms, backward: 0 s}\n",
                            &config),
               "");
    CHECK_INT(config.family, FAMILY_ABSTRACT);
    CHECK_TEXT(config.name, "thirty-two");
    CHECK_INT(model_config_parameters(&config) * 2, INT64_C(32) * 404750336);
    if (CHECK_INT(config.abstract.units.count, 2)) {
        const struct abstract_unit *units = config.abstract.units.items;
        CHECK_INT(units[0].repeat, 7);
        CHECK_NEAR(units[0].forward_s, 0.0046, 1e-15);
        CHECK_NEAR(units[0].backward_s, 0.0092, 1e-15);
        CHECK_NEAR(units[0].saved_activation_bytes, 67108864.0, 1e-15);
        CHECK_INT(units[1].repeat, 1);
        CHECK_NEAR(units[1].saved_activation_bytes, 0.0, 0.0);
    }
    arena_release(&arena);
}

static void test_mistakes(void)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"model: {family: lama}\n", "family 'lama' is not known | did you mean 'llama'?"},
        {"model: {family: gpt2}\n", "family 'gpt2' is not known | known: decoder, llama, abstract"},
        {"model: {family: [llama]}\n", "'family' is not a word"},
        {"model: {model_type: mixtrl}\n",
         "model_type 'mixtrl' is not known | did you mean 'mixtral'? known: llama, mistral"},
        {"model: {model_type: rwkv}\n", "model_type 'rwkv' is not known | known: llama, mistral"},
        {"model: {hidden_size: 64}\n", "a model needs 'family' or 'model_type'"},
        {"model: {model_type: llama, num_key_value_heads: 7}\n",
         "num_key_value_heads 7 does not divide num_attention_heads 32"},
        {"model: {model_type: llama, hidden_size: 100}\n",
         "num_attention_heads 32 does not divide hidden_size 100"},
        {"model: {model_type: llama, num_attention_heads: 65536, head_dim: 65536,"
         " num_key_value_heads: 1}\n",
         "num_attention_heads 65536 times head_dim 65536 is more than 4194304"},
        {"model: {model_type: llama, hidden_act: gelo}\n",
         "unknown activation 'gelo' | accepted: silu, swish"},
        {"model: {model_type: llama, hidden_size: 0}\n", "hidden_size"},
        {"model: {model_type: llama, num_hidden_layers: 16384, hidden_size: 4194304,"
         " intermediate_size: 4194304}\n",
         "parameters is too large"},
        {"model: {family: llama, hiden_size: 4096}\n", "hiden_size"},
        {"model: {family: abstract}\n", "units"},
        {"model: {family: abstract, units: []}\n", "units"},
        {"model: {family: abstract, units: [{parameters: 5, forward: 3, backward: 1 ms}]}\n",
         "unit"},
        {"model: {family: abstract, repeat: 65536, units: [{repeat: 3, parameters: 5,"
         " forward: 3 ms, backward: 1 ms}]}\n",
         "196608 units in all, at most 65536"},
        {"model: {family: abstract, repeat: 100, units: [{parameters: 1000000000000000,"
         " forward: 3 ms, backward: 1 ms}]}\n",
         "a model of 1e+17 parameters is too large"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("%s", rows[i].text);
        struct model_config config = {0};
        CHECK_CONTAINS(fixture_bind(&arena, rows[i].text, &config), rows[i].message);
    }
    check_context(NULL);
    arena_release(&arena);
}

/* A foreign file may carry keys we do not read: one warning names them, and binding succeeds. */
static void test_unknown_keys_warn(void)
{
    struct arena arena = {0};
    struct model_config config = {0};
    const char *messages = fixture_bind(&arena,
                                        "model: {model_type: llama, pruning_config: {bits: 4},"
                                        " sliding_window: 4096, use_cache: true}\n",
                                        &config);
    CHECK_CONTAINS(messages, "pruning_config");
    CHECK_CONTAINS(messages, "sliding_window");
    CHECK_TRUE(strstr(messages, "use_cache") == NULL);
    CHECK_INT(config.decoder.hidden_size, 4096);
    arena_release(&arena);
}

/* Each table can be printed for `schema model`. */
static void test_schema(void)
{
    int count = 0;
    for (; model_tables[count] != NULL; count++) {
        FILE *file = tmpfile();
        if (!CHECK_TRUE(file != NULL))
            return;
        schema_write(model_tables[count], file);
        CHECK_TRUE(ftell(file) > 500);
        fclose(file);
    }
    CHECK_INT(count, MODEL_TYPE_COUNT - 1 + 3);
}

const struct check_case model_config_cases[] = {{"defaults", test_defaults},
                                                {"left out", test_left_out},
                                                {"null", test_null},
                                                {"head_dim", test_head_dim},
                                                {"abstract", test_abstract},
                                                {"mistakes", test_mistakes},
                                                {"unknown keys warn", test_unknown_keys_warn},
                                                {"schema", test_schema},
                                                {NULL, NULL}};
