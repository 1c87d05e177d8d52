/*
 * model/model_decoder_fields.c: `family: decoder`, a decoder with every switch in its file, for
 * networks that have no model_type here; and the frame of multimodal files.
 */
#include "model/model_fields.h"

#define TRAIT_BOOL(word, member, text) ROW_BOOL(word, traits.member, "false", text)

static const struct choice norm_choices[] = {
    {.word = "rms", .value = NORM_RMS}, {.word = "layer", .value = NORM_LAYER}, {0}};
static const struct choice position_choices[] = {{.word = "rotary", .value = POSITION_ROTARY},
                                                 {.word = "learned", .value = POSITION_LEARNED},
                                                 {.word = "alibi", .value = POSITION_ALIBI},
                                                 {.word = "none", .value = POSITION_NONE},
                                                 {0}};

static const struct field decoder_rows[] = {
    ROW_FAMILY("decoder", TYPE_DECODER, "any decoder, switch by switch"),
    ROW_NAME,
    ROW_COUNT("hidden_size", hidden_size, "4096", MAX_WIDTH, "width of the residual stream"),
    ROW_COUNT("intermediate_size", intermediate_size, NULL, MAX_WIDTH,
              "width of the MLP; default: 4 hidden_size"),
    ROW_COUNT("num_hidden_layers", num_hidden_layers, "32", MAX_LAYERS, "transformer blocks"),
    ROW_COUNT("num_attention_heads", num_attention_heads, "32", MAX_HEADS, "query heads"),
    ROW_COUNT("num_key_value_heads", num_key_value_heads, NULL, MAX_HEADS,
              "key and value heads; default: one a query head"),
    ROW_COUNT("head_dim", head_dim, NULL, MAX_HEADS, "width of a head; default: hidden / heads"),
    ROW_COUNT("vocab_size", vocab_size, "32000", MAX_VOCAB, "rows of the embedding"),
    ROW_COUNT("max_position_embeddings", max_position_embeddings, "2048", MAX_VOCAB,
              "rows of a learned position table"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "false",
             "the output layer shares the embedding's weight"),
    ROW_TEXT("hidden_act", hidden_act, "silu", "silu, gelu, gelu_new, relu, ..."),
    ROW_REAL("embedding_dropout", embedding_dropout, "0", 1.0, "probability"),
    ROW_REAL("attention_dropout", attention_dropout, "0", 1.0, "probability"),
    ROW_REAL("hidden_dropout", hidden_dropout, "0", 1.0, "probability"),
    ROW_REAL("partial_rotary_factor", rotary_frac, "1", 1.0, "rotated part of a head"),
    ROW_COUNT("sliding_window", sliding_window, NULL, 1e9, "keys a query sees"),
    ROW_COUNT("sliding_window_pattern", sliding_window_pattern, NULL, MAX_LAYERS,
              "every so many layers one is full"),
    ROW_COUNT("num_experts", num_experts, NULL, 65536.0, "experts a layer; absent: a dense MLP"),
    ROW_COUNT("num_experts_per_tok", num_experts_per_tok, NULL, 65536.0,
              "experts that a token passes"),
    ROW_COUNT("moe_intermediate_size", moe_intermediate_size, NULL, MAX_WIDTH,
              "width of an expert; default: intermediate_size"),
    ROW_COUNT("n_shared_experts", n_shared_experts, NULL, 65536.0, "experts of all tokens"),
    ROW_COUNT("first_k_dense_replace", first_k_dense_replace, NULL, MAX_LAYERS,
              "first layers without experts"),
    {.key = "norm",
     .kind = FIELD_ENUM,
     .offset = DECODER_AT(traits.norm),
     .default_text = "rms",
     .choices = norm_choices,
     .help = "kind of norm"},
    {.key = "position",
     .kind = FIELD_ENUM,
     .offset = DECODER_AT(traits.position),
     .default_text = "rotary",
     .choices = position_choices,
     .help = "how positions enter"},
    ROW_COUNT("norms_per_layer", traits.norms_per_layer, "2", 4.0,
              "1 (shared), 2, or 4 (before and after each part)"),
    ROW_BOOL("gated", traits.is_gated, "true", "gate and up projections"),
    TRAIT_BOOL("parallel", is_parallel, "attention and MLP read the same input"),
    TRAIT_BOOL("qkv_bias", has_qkv_bias, "q, k, v projections have a bias"),
    TRAIT_BOOL("o_bias", has_o_bias, "the o projection has a bias"),
    TRAIT_BOOL("mlp_bias", has_mlp_bias, "the MLP's projections have a bias"),
    TRAIT_BOOL("head_bias", has_head_bias, "the output layer has a bias"),
    TRAIT_BOOL("norm_bias", has_norm_bias, "norms have a bias"),
    TRAIT_BOOL("qk_norm", has_qk_norm, "norms of queries and keys, head by head"),
    TRAIT_BOOL("fused_qkv", has_fused_qkv, "one projection for q, k, v"),
    TRAIT_BOOL("fused_gate_up", has_fused_gate_up, "one projection for gate and up"),
    TRAIT_BOOL("embedding_norm", has_embedding_norm, "a norm after the embedding"),
    TRAIT_BOOL("native_softmax", has_native_softmax,
               "eager attention: softmax in the compute dtype"),
    {0}};

static const char *const ignored_keys[] = {"description", "source", NULL};

const struct field_table decoder_table = {
    .name = "model (family: decoder)",
    .help = "any decoder, with every switch in its file",
    .fields = decoder_rows,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = ignored_keys,
    .check = model_check_transformer,
};

static const struct field multimodal_rows[] = {{.key = "text_config",
                                                .kind = FIELD_STRUCT,
                                                .choose = model_choose_table,
                                                .is_required = true,
                                                .help = "the language model of a multimodal file"},
                                               ROW_NAME,
                                               {0}};

const struct field_table multimodal_table = {
    .name = "model (multimodal)",
    .help = "config.json with a text_config: the language model alone is read",
    .fields = multimodal_rows,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = model_cosmetic_keys,
    .warns_unknown = true,
};
