/*
 * Every shipped model loads without a word and has the published number of parameters, to the last
 * digit. Counts: hub listings and model cards; llm-foundry, BLOOM, InternLM, litgpt: the counts
 * that their benchmark tables print (results/measured).
 */
#include <stddef.h>

#include "base/arena.h"
#include "check.h"
#include "config/config.h"
#include "model_fixture.h"

extern const struct check_case catalog_cases[];

static const struct {
    const char *name;
    int64_t parameters;
} rows[] = {
    {"bert-base-uncased", 109482240},
    {"bert-large", 335174458},
    {"bloom-1b1", 1065314304},
    {"bloom-560m", 559214592},
    {"deepseek-v2-lite", 15706484224},
    {"deepseek-v3", 671026419200},
    {"falcon-40b", 41303293952},
    {"falcon-7b", 6921720704},
    {"flan-t5-xl", 2849757184},
    {"gemma-2-27b", 27227128320},
    {"gemma-2-2b", 2614341888},
    {"gemma-2-9b", 9241705984},
    {"gemma-2b", 2506172416},
    {"gemma-3-12b-text", 11766034176},
    {"gemma-3-1b", 999885952},
    {"gemma-3-27b-text", 27009346304},
    {"gemma-3-4b-text", 3880263168},
    {"gpt-1t", 1008008038400},
    {"gpt-neox-20b", 20554567680},
    {"gpt-oss-120b", 116829156672},
    {"gpt-oss-20b", 20914757184},
    {"gpt2", 124439808},
    {"gpt2-large", 774030080},
    {"gpt2-medium", 354823168},
    {"gpt2-xl", 1557611200},
    {"gpt3-13b", 12853386240},
    {"gpt3-2.7b", 2651553280},
    {"gpt3-6.7b", 6658404352},
    {"gpt3-xl", 2879554560},
    {"internlm-20b", 20088714240},
    {"internlm-7b", 7321948160},
    {"llama-2-13b", 13015864320},
    {"llama-2-34b", 33743970304},
    {"llama-2-70b", 68976648192},
    {"llama-2-7b", 6738415616},
    {"llama-3-70b", 70553706496},
    {"llama-3-8b", 8030261248},
    {"llama-3.1-405b", 405853388800},
    {"llama-3.1-70b", 70553706496},
    {"llama-3.1-8b", 8030261248},
    {"llama-3.2-1b", 1235814400},
    {"llama-3.2-3b", 3212749824},
    {"mistral-7b-v0.1", 7241732096},
    {"mixtral-8x22b", 140620634112},
    {"mixtral-8x7b", 46702792704},
    {"mpt-125m-llmfoundry", 125311488},
    {"mpt-13b-llmfoundry", 12853954560},
    {"mpt-1b-llmfoundry", 1315950592},
    {"mpt-30b", 29957200896},
    {"mpt-30b-llmfoundry", 29975214080},
    {"mpt-350m-llmfoundry", 355985408},
    {"mpt-3b-llmfoundry", 2651837440},
    {"mpt-70b-llmfoundry", 64862437376},
    {"mpt-760m-llmfoundry", 760470528},
    {"mpt-7b-llmfoundry", 6658859008},
    {"opt-1.3b", 1315758080},
    {"opt-125m", 125239296},
    {"opt-13b", 12853473280},
    {"opt-175b", 174604468224},
    {"opt-2.7b", 2651596800},
    {"opt-30b", 29974540288},
    {"opt-6.7b", 6658473984},
    {"opt-66b", 65719701504},
    {"phi-1.5", 1418270720},
    {"phi-2", 2779683840},
    {"phi-3-mini-4k", 3821079552},
    {"pythia-12b", 11846072320},
    {"pythia-160m", 162322944},
    {"pythia-1b", 1011781632},
    {"pythia-2.8b", 2775208960},
    {"pythia-410m", 405334016},
    {"pythia-6.9b", 6857302016},
    {"pythia-70m", 70426624},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-1.5b", 1543714304},
    {"qwen2.5-14b", 14770033664},
    {"qwen2.5-32b", 32763876352},
    {"qwen2.5-3b", 3085938688},
    {"qwen2.5-72b", 72706203648},
    {"qwen2.5-7b", 7615616512},
    {"qwen3-0.6b", 596049920},
    {"qwen3-1.7b", 1720574976},
    {"qwen3-235b-a22b", 235093634560},
    {"qwen3-30b-a3b", 30532122624},
    {"qwen3-32b", 32762123264},
    {"qwen3-4b", 4022468096},
    {"qwen3-8b", 8190735360},
    {"santacoder-1.1b", 1124886528},
    {"stablelm-alpha-3b", 3637321728},
    {"t5-11b", 11307321344},
    {"t5-3b", 2851598336},
    {"t5-base", 222903552},
    {"t5-small", 60506624},
    {"tinyllama-1.1b", 1100048384},
    {"vit-base-patch16-224", 86567656},
    {"vit-huge-patch14-224", 632045800},
    {"yi-34b", 34388917248},
};

static void test_parameters(void)
{
    static const char *const folders[] = {FSDPSIM_SOURCE_DIR, NULL};
    size_t count = sizeof(rows) / sizeof(rows[0]);
    struct arena arena = {0};
    for (size_t i = 0; i < count; i++) {
        check_context("%s", rows[i].name);
        struct model_config config = {0};
        CHECK_TEXT(fixture_bind(&arena, arena_printf(&arena, "model: %s\n", rows[i].name), &config),
                   "");
        CHECK_INT(model_config_parameters(&config), rows[i].parameters);
        struct train_shape shape = fixture_shape(config.type == TYPE_VIT ? 0 : 512, 1);
        if (config.type == TYPE_VIT) {
            int64_t side = config.decoder.image_size / config.decoder.patch_size;
            shape.seq_len = side * side + 1;
        }
        const struct model *model = fixture_build(&arena, &config, &shape);
        CHECK_INT(model->parameters, rows[i].parameters);
        CHECK_TEXT(model->name, rows[i].name);
        CHECK_INT(model->active_parameters, model_config_active_parameters(&config));
    }
    check_context(NULL);
    /* And none is left out. */
    int shipped = 0;
    for (const char *const *name = data_names(&arena, folders, "models"); *name != NULL; name++)
        shipped++;
    CHECK_INT(shipped, (int)count);
    arena_release(&arena);
}

/* What a token passes: the model cards say 12.9, 39 (of 141), 3.3, 22, 2.4 without the embeddings,
   37, 3.6 and 5.1 without the input embedding. */
static void test_active(void)
{
    static const struct {
        const char *name;
        double active;
        double tolerance;
    } cards[] = {
        {"mixtral-8x7b", 12.88e9, 1e-3},
        {"mixtral-8x22b", 39.15e9, 1e-3},
        {"qwen3-30b-a3b", 3.35e9, 2e-3},
        {"qwen3-235b-a22b", 22.19e9, 1e-3},
        {"deepseek-v3", 37.55e9, 1e-3},
        {"gpt-oss-20b", 3.61e9 + 201088.0 * 2880, 1e-2},
        {"gpt-oss-120b", 5.13e9 + 201088.0 * 2880, 1e-2},
        {"deepseek-v2-lite", 2.4e9 + 0.21e9, 3e-2},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
        check_context("%s", cards[i].name);
        struct model_config config = {0};
        CHECK_TEXT(
            fixture_bind(&arena, arena_printf(&arena, "model: %s\n", cards[i].name), &config), "");
        CHECK_NEAR((double)model_config_active_parameters(&config), cards[i].active,
                   cards[i].tolerance);
    }
    check_context(NULL);
    arena_release(&arena);
}

const struct check_case catalog_cases[] = {
    {"parameters", test_parameters}, {"active", test_active}, {NULL, NULL}};
