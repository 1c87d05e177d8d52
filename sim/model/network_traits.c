/* model/network_traits.c: what each model_type implies beyond the keys of its config.json. */
#include "model/network.h"

#include <string.h>

#include "base/strbuf.h"

#define LLAMA_TRAITS                                                                               \
    .norm = NORM_RMS, .position = POSITION_ROTARY, .norms_per_layer = 2, .is_gated = true
#define GPT_TRAITS_OF(norms)                                                                       \
    .norm = NORM_LAYER, .norms_per_layer = (norms), .has_qkv_bias = true, .has_o_bias = true,      \
    .has_mlp_bias = true, .has_norm_bias = true
#define GPT_TRAITS GPT_TRAITS_OF(2)

struct type_row {
    const char *word;
    enum network_kind kind;
    struct decoder_traits traits;
};

static const struct type_row rows[MODEL_TYPE_COUNT] = {
    [TYPE_DECODER] = {"decoder", NETWORK_DECODER, {.norm = NORM_RMS}},
    [TYPE_LLAMA] = {"llama", NETWORK_DECODER, {LLAMA_TRAITS}},
    [TYPE_MISTRAL] = {"mistral", NETWORK_DECODER, {LLAMA_TRAITS}},
    [TYPE_MIXTRAL] = {"mixtral", NETWORK_DECODER, {LLAMA_TRAITS}},
    [TYPE_QWEN2] = {"qwen2", NETWORK_DECODER, {LLAMA_TRAITS, .has_qkv_bias = true}},
    [TYPE_QWEN2_MOE] = {"qwen2_moe", NETWORK_DECODER, {LLAMA_TRAITS, .has_qkv_bias = true}},
    [TYPE_QWEN3] = {"qwen3", NETWORK_DECODER, {LLAMA_TRAITS, .has_qk_norm = true}},
    [TYPE_QWEN3_MOE] = {"qwen3_moe", NETWORK_DECODER, {LLAMA_TRAITS, .has_qk_norm = true}},
    [TYPE_GEMMA] = {"gemma", NETWORK_DECODER, {LLAMA_TRAITS, .has_embedding_scale = true}},
    [TYPE_GEMMA2] =
        {"gemma2",
         NETWORK_DECODER,
         {.norm = NORM_RMS, .norms_per_layer = 4, .is_gated = true, .has_embedding_scale = true}},
    [TYPE_GEMMA3] = {"gemma3_text",
                     NETWORK_DECODER,
                     {.norm = NORM_RMS,
                      .norms_per_layer = 4,
                      .is_gated = true,
                      .has_qk_norm = true,
                      .has_embedding_scale = true}},
    [TYPE_PHI] = {"phi",
                  NETWORK_DECODER,
                  {GPT_TRAITS_OF(1), .is_parallel = true, .has_head_bias = true}},
    [TYPE_PHI3] = {"phi3",
                   NETWORK_DECODER,
                   {LLAMA_TRAITS, .has_fused_qkv = true, .has_fused_gate_up = true}},
    [TYPE_DEEPSEEK_V2] = {"deepseek_v2", NETWORK_DECODER, {LLAMA_TRAITS}},
    [TYPE_DEEPSEEK_V3] = {"deepseek_v3", NETWORK_DECODER, {LLAMA_TRAITS}},
    [TYPE_GPT_OSS] = {"gpt_oss", NETWORK_DECODER, {LLAMA_TRAITS, .has_fused_gate_up = true}},
    [TYPE_GPT2] = {"gpt2",
                   NETWORK_DECODER,
                   {GPT_TRAITS, .position = POSITION_LEARNED, .has_fused_qkv = true,
                    .is_weight_transposed = true, .has_native_softmax = true}},
    [TYPE_GPT_BIGCODE] = {"gpt_bigcode",
                          NETWORK_DECODER,
                          {GPT_TRAITS, .position = POSITION_LEARNED, .has_fused_qkv = true}},
    [TYPE_GPT_NEOX] = {"gpt_neox",
                       NETWORK_DECODER,
                       {GPT_TRAITS, .position = POSITION_ROTARY, .has_fused_qkv = true}},
    [TYPE_OPT] = {"opt", NETWORK_DECODER, {GPT_TRAITS, .position = POSITION_LEARNED}},
    [TYPE_BLOOM] = {"bloom",
                    NETWORK_DECODER,
                    {GPT_TRAITS, .position = POSITION_ALIBI, .has_fused_qkv = true,
                     .has_embedding_norm = true}},
    [TYPE_FALCON] =
        {"falcon",
         NETWORK_DECODER,
         {.norm = NORM_LAYER, .norms_per_layer = 2, .has_norm_bias = true, .has_fused_qkv = true}},
    [TYPE_MPT] = {"mpt",
                  NETWORK_DECODER,
                  {.norm = NORM_LAYER, .norms_per_layer = 2, .has_fused_qkv = true}},
    [TYPE_T5] = {"t5",
                 NETWORK_ENCODER_DECODER,
                 {.norm = NORM_RMS, .position = POSITION_RELATIVE, .norms_per_layer = 2}},
    [TYPE_BERT] = {"bert",
                   NETWORK_ENCODER,
                   {GPT_TRAITS, .position = POSITION_LEARNED, .has_embedding_norm = true,
                    .has_native_softmax = true}},
    [TYPE_VIT] = {"vit",
                  NETWORK_VISION,
                  {GPT_TRAITS, .position = POSITION_LEARNED, .has_head_bias = true,
                   .has_native_softmax = true}},
};

const char *model_type_word(enum model_type type)
{
    BUG_IF((unsigned)type >= MODEL_TYPE_COUNT);
    return rows[type].word;
}

static int64_t or_else(int64_t value, int64_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static void set_widths(const struct decoder_config *config, struct network *net)
{
    net->h = config->hidden_size;
    net->f = config->intermediate_size;
    if (net->f == 0)
        net->f = config->expansion_ratio > 0.0 ? (int64_t)(config->expansion_ratio * (double)net->h)
                                               : 4 * net->h;
    net->layers = config->num_hidden_layers;
    net->a = config->num_attention_heads;
    net->kv_heads = or_else(config->num_key_value_heads, net->a);
    net->d_qk = config->head_dim;
    if (net->d_qk == 0 && net->a > 0)
        net->d_qk = net->h / net->a;
    net->d_v = net->d_qk;
    net->vocab = config->vocab_size;
    net->kv_lora = config->kv_lora_rank;
    if (net->kv_lora > 0) {
        net->q_lora = config->q_lora_rank;
        net->d_rope = config->qk_rope_head_dim;
        net->d_nope = config->qk_nope_head_dim;
        net->d_qk = net->d_rope + net->d_nope;
        net->d_v = config->v_head_dim;
        net->kv_heads = net->a;
    }
}

static void set_experts(const struct decoder_config *config, struct network *net)
{
    net->experts = config->num_experts;
    if (net->experts == 0)
        return;
    net->top_k = config->num_experts_per_tok;
    net->expert_f = or_else(config->moe_intermediate_size, config->intermediate_size);
    net->shared_f =
        or_else(config->shared_expert_intermediate_size, config->n_shared_experts * net->expert_f);
    net->dense_layers = config->first_k_dense_replace;
    net->has_router_bias = net->type == TYPE_DEEPSEEK_V3 || net->type == TYPE_GPT_OSS;
    net->has_expert_bias = net->type == TYPE_GPT_OSS;
    net->has_shared_gate = net->type == TYPE_QWEN2_MOE;
}

static enum activation_kind activation_of(const char *word)
{
    if (word == NULL)
        return ACTIVATION_SMOOTH;
    if (strcmp(word, "relu") == 0)
        return ACTIVATION_RELU;
    if (strcmp(word, "gelu_new") == 0 || strcmp(word, "gelu_fast") == 0 ||
        strcmp(word, "gated-gelu") == 0)
        return ACTIVATION_GELU_NEW;
    return ACTIVATION_SMOOTH;
}

static void set_opt(const struct decoder_config *config, struct network *net)
{
    net->position_rows = net->positions + 2;
    net->embedding_width = config->word_embed_proj_dim;
    net->has_final_norm = config->do_layer_norm_before && !config->removes_final_norm;
    if (!config->has_bias) {
        net->traits.has_qkv_bias = net->traits.has_o_bias = net->traits.has_mlp_bias = false;
    }
}

static void set_falcon(const struct decoder_config *config, struct network *net)
{
    struct decoder_traits *traits = &net->traits;
    bool is_new = config->new_decoder_architecture;
    if (!is_new)
        net->kv_heads = config->multi_query ? 1 : net->a;
    traits->has_qkv_bias = traits->has_o_bias = traits->has_mlp_bias = config->has_bias;
    traits->is_parallel = config->parallel_attn || is_new;
    traits->norms_per_layer = 2;
    if (is_new ? config->num_ln_in_parallel_attn == 1 : config->parallel_attn)
        traits->norms_per_layer = 1;
    traits->position = config->alibi ? POSITION_ALIBI : POSITION_ROTARY;
}

static void set_mpt(const struct decoder_config *config, struct network *net)
{
    struct decoder_traits *traits = &net->traits;
    bool has_bias = !config->no_bias;
    traits->has_qkv_bias = traits->has_o_bias = traits->has_mlp_bias = has_bias;
    traits->has_norm_bias = has_bias;
    traits->has_qk_norm = config->qk_ln;
    if (config->attn_type == MPT_MULTIQUERY)
        net->kv_heads = 1;
    traits->position = config->alibi             ? POSITION_ALIBI
                       : config->learned_pos_emb ? POSITION_LEARNED
                                                 : POSITION_NONE;
}

static void set_t5(const struct decoder_config *config, struct network *net)
{
    net->decoder_layers = or_else(config->num_decoder_layers, net->layers);
    net->attention_dropout = config->hidden_dropout;
    net->buckets = config->relative_attention_num_buckets;
    net->traits.is_gated =
        config->hidden_act != NULL && strncmp(config->hidden_act, "gated-", 6) == 0;
}

static void set_vit(const struct decoder_config *config, struct network *net)
{
    int64_t side = config->patch_size > 0 ? config->image_size / config->patch_size : 0;
    net->patches = side * side;
    net->patch_features = config->num_channels * config->patch_size * config->patch_size;
    net->labels = config->num_labels;
    net->positions = net->position_rows = net->patches + 1;
    net->traits.has_qkv_bias = config->attention_bias;
}

/* Keys that switch parts of a type's traits. */
static void set_traits(const struct decoder_config *config, struct network *net)
{
    struct decoder_traits *traits = &net->traits;
    switch (net->type) {
    case TYPE_DECODER:
        *traits = config->traits;
        break;
    case TYPE_LLAMA:
    case TYPE_QWEN3:
    case TYPE_QWEN3_MOE:
    case TYPE_GEMMA:
    case TYPE_GEMMA2:
    case TYPE_GEMMA3:
    case TYPE_GPT_OSS:
    case TYPE_DEEPSEEK_V2:
    case TYPE_DEEPSEEK_V3:
        traits->has_qkv_bias = traits->has_o_bias = config->attention_bias;
        traits->has_mlp_bias = config->mlp_bias;
        net->has_sinks = net->type == TYPE_GPT_OSS;
        break;
    case TYPE_GPT_NEOX:
        traits->has_qkv_bias = traits->has_o_bias = config->attention_bias;
        traits->is_parallel = config->use_parallel_residual;
        break;
    case TYPE_PHI:
        traits->has_qk_norm = config->qk_ln;
        break;
    case TYPE_GPT_BIGCODE:
        net->kv_heads = config->multi_query ? 1 : net->a;
        break;
    case TYPE_OPT:
        set_opt(config, net);
        break;
    case TYPE_FALCON:
        set_falcon(config, net);
        break;
    case TYPE_MPT:
        set_mpt(config, net);
        break;
    case TYPE_T5:
        set_t5(config, net);
        break;
    case TYPE_BERT:
        net->token_types = config->type_vocab_size;
        net->bert_head = (enum bert_head)config->head;
        net->has_final_norm = false;
        break;
    case TYPE_VIT:
        set_vit(config, net);
        break;
    case TYPE_MISTRAL:
    case TYPE_MIXTRAL:
    case TYPE_QWEN2:
    case TYPE_QWEN2_MOE:
    case TYPE_PHI3:
    case TYPE_GPT2:
    case TYPE_BLOOM:
    case MODEL_TYPE_COUNT:
        break;
    }
}

static void set_window(const struct decoder_config *config, struct network *net)
{
    net->window = config->sliding_window;
    net->window_pattern = config->sliding_window_pattern;
    net->window_first = 0;
    net->layer_types = &config->layer_types;
    bool is_switched = net->type == TYPE_QWEN2 || net->type == TYPE_QWEN2_MOE ||
                       net->type == TYPE_QWEN3 || net->type == TYPE_QWEN3_MOE;
    if (is_switched) {
        net->window_first = config->max_window_layers;
        if (!config->use_sliding_window)
            net->window = 0;
    }
}

void network_of(const struct model_config *config, struct network *network)
{
    const struct decoder_config *decoder = &config->decoder;
    BUG_IF((unsigned)config->type >= MODEL_TYPE_COUNT);
    *network =
        (struct network){.type = (enum model_type)config->type,
                         .kind = rows[config->type].kind,
                         .traits = rows[config->type].traits,
                         .is_tied = decoder->tie_word_embeddings,
                         .has_final_norm = true,
                         .has_softcap = decoder->final_logit_softcapping > 0.0,
                         .embedding_dropout = decoder->embedding_dropout,
                         .attention_dropout = decoder->attention_dropout,
                         .hidden_dropout = decoder->hidden_dropout,
                         .rotary_frac = decoder->rotary_frac > 0.0 ? decoder->rotary_frac : 1.0,
                         .activation = activation_of(decoder->hidden_act),
                         .positions = decoder->max_position_embeddings,
                         .position_rows = decoder->max_position_embeddings};
    set_widths(decoder, network);
    set_experts(decoder, network);
    set_traits(decoder, network);
    set_window(decoder, network);
    network->norm = (enum norm_kind)network->traits.norm;
    network->position = (enum position_kind)network->traits.position;
    network->has_head_bias = network->traits.has_head_bias;
    network->q = network->a * network->d_qk;
    network->k = network->kv_heads * network->d_qk;
    network->v = network->kv_heads * network->d_v;
    network->context = network->a * network->d_v;
    network->whole_vocab = network->vocab;
    if (network->position != POSITION_LEARNED)
        network->positions = network->position_rows = 0;
    if (network->embedding_width == 0)
        network->embedding_width = network->h;
}

bool network_layer_has_window(const struct network *network, int64_t layer)
{
    if (network->window <= 0)
        return false;
    if (network->layer_types->count > layer) {
        const char *const *types = network->layer_types->items;
        return text_equal(types[layer], "sliding_attention");
    }
    if (layer < network->window_first)
        return false;
    return network->window_pattern == 0 || (layer + 1) % network->window_pattern != 0;
}
