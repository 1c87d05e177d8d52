/*
 * model/model_fields.c: which keys a config.json of each model_type has, and their defaults, which
 * stand in code (transformers' configuration classes), not in the file.
 */
#include "model/model_fields.h"

#define ROW_TYPE(text, number)                                                                     \
    {                                                                                              \
        .key = "model_type", .kind = FIELD_ENUM, .offset = offsetof(struct model_config, type),    \
        .is_required = true,                                                                       \
        .choices = (const struct choice[]){{.word = (text), .value = (number)}, {0}},              \
        .help = "which network a Hugging Face config.json describes"                               \
    }

#define HELP_H "width of the residual stream"
#define HELP_F "width of the MLP"
#define HELP_L "transformer blocks"
#define HELP_A "query heads"
#define HELP_KV "key and value heads; default: one a query head"
#define HELP_D "width of a head; default: hidden width / heads"
#define HELP_V "rows of the embedding"
#define HELP_TIED "the output layer shares the embedding's weight"
#define HELP_ACT "activation of the MLP: silu, gelu, gelu_new, relu, ..."
#define HELP_BIAS "q, k, v, o projections have a bias"
#define HELP_DROPOUT "dropout probability "
#define HELP_WINDOW "keys a query sees in windowed layers"

/* Sizes under Hugging Face's usual names. */
#define ROWS_SIZES(h, f, layers, a, vocab)                                                         \
    ROW_NAME, ROW_SIZE("hidden_size", hidden_size, h, MAX_WIDTH, HELP_H),                          \
        ROW_SIZE("intermediate_size", intermediate_size, f, MAX_WIDTH, HELP_F),                    \
        ROW_SIZE("num_hidden_layers", num_hidden_layers, layers, MAX_LAYERS, HELP_L),              \
        ROW_SIZE("num_attention_heads", num_attention_heads, a, MAX_HEADS, HELP_A),                \
        ROW_SIZE("vocab_size", vocab_size, vocab, MAX_VOCAB, HELP_V)
/* What all relatives of Llama have besides. `none`, of null key heads and width of a head: unset,
   one a query head and the quotient, where the configuration class says so (`if num_key_value_heads
   is None`); wrong where the class takes no None (Gemma, Qwen3-MoE) or the network fails on it. */
#define ROWS_LLAMA(kv, d, none, tied, act_key, act)                                                \
    ROW_COUNT_NULL("num_key_value_heads", num_key_value_heads, kv, MAX_HEADS, HELP_KV, none),      \
        ROW_COUNT_NULL("head_dim", head_dim, d, MAX_HEADS, HELP_D, none),                          \
        ROW_BOOL("tie_word_embeddings", tie_word_embeddings, tied, HELP_TIED),                     \
        ROW_TEXT(act_key, hidden_act, act, HELP_ACT),                                              \
        ROW_REAL("attention_dropout", attention_dropout, "0", 1.0, HELP_DROPOUT "of scores")
#define ROW_ATTENTION_BIAS(preset) ROW_BOOL("attention_bias", attention_bias, preset, HELP_BIAS)
#define ROW_WINDOW(preset)                                                                         \
    ROW_COUNT_NULL("sliding_window", sliding_window, preset, 1e9, HELP_WINDOW, NULL_IS_UNSET)
#define ROW_LAYER_TYPES                                                                            \
    ROW_LIST("layer_types", layer_types, "full_attention or sliding_attention, a layer each")
#define ROWS_QWEN_WINDOW                                                                           \
    ROW_WINDOW(NULL),                                                                              \
        ROW_BOOL("use_sliding_window", use_sliding_window, "false", "windowed layers at all"),     \
        ROW_COUNT0("max_window_layers", max_window_layers, "28", MAX_LAYERS,                       \
                   "layers before this one are full"),                                             \
        ROW_LAYER_TYPES
#define ROWS_GEMMA_WINDOW(window, pattern)                                                         \
    ROW_WINDOW(window),                                                                            \
        ROW_COUNT("sliding_window_pattern", sliding_window_pattern, pattern, MAX_LAYERS,           \
                  "every so many layers one is full"),                                             \
        ROW_LAYER_TYPES,                                                                           \
        ROW_REAL("final_logit_softcapping", final_logit_softcapping, NULL, 1e9,                    \
                 "tanh over the logits")
#define ROWS_EXPERTS(count_key, count, top_k)                                                      \
    ROW_COUNT(count_key, num_experts, count, 65536.0, "experts a layer"),                          \
        ROW_COUNT("num_experts_per_tok", num_experts_per_tok, top_k, 65536.0,                      \
                  "experts that a token passes")
#define ROW_EXPERT_WIDTH(preset)                                                                   \
    ROW_COUNT("moe_intermediate_size", moe_intermediate_size, preset, MAX_WIDTH,                   \
              "width of an expert")
#define ROWS_QWEN_MOE                                                                              \
    ROW_COUNT("decoder_sparse_step", moe_layer_freq, "1", MAX_LAYERS, "every so many layers"),     \
        ROW_LIST("mlp_only_layers", mlp_only_layers, "layers without experts")
#define ROWS_LATENT(q_lora)                                                                        \
    ROW_COUNT("q_lora_rank", q_lora_rank, q_lora, MAX_WIDTH, "rank of queries; absent: full"),     \
        ROW_COUNT("kv_lora_rank", kv_lora_rank, "512", MAX_WIDTH, "rank of keys and values"),      \
        ROW_COUNT("qk_rope_head_dim", qk_rope_head_dim, "64", MAX_HEADS, "rotary part of a head"), \
        ROW_COUNT("qk_nope_head_dim", qk_nope_head_dim, "128", MAX_HEADS, "the rest of a head"),   \
        ROW_COUNT("v_head_dim", v_head_dim, "128", MAX_HEADS, "width of a value head")
#define ROWS_DEEPSEEK(dense, experts, top_k, shared, width)                                        \
    ROWS_EXPERTS("n_routed_experts", experts, top_k), ROW_EXPERT_WIDTH(width),                     \
        ROW_COUNT0("n_shared_experts", n_shared_experts, shared, 65536.0,                          \
                   "experts of all tokens"),                                                       \
        ROW_COUNT0("first_k_dense_replace", first_k_dense_replace, dense, MAX_LAYERS,              \
                   "first layers without experts"),                                                \
        ROW_COUNT("moe_layer_freq", moe_layer_freq, "1", MAX_LAYERS, "every so many layers")
#define ROWS_HIDDEN_DROPOUT(attention_key, hidden_key, preset)                                     \
    ROW_REAL(attention_key, attention_dropout, preset, 1.0, HELP_DROPOUT "of scores"),             \
        ROW_REAL(hidden_key, hidden_dropout, preset, 1.0, HELP_DROPOUT "of the residual stream")

#define ROWS_OF_LLAMA                                                                              \
    ROWS_SIZES("4096", "11008", "32", "32", "32000"),                                              \
        ROWS_LLAMA(NULL, NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),                      \
        ROW_ATTENTION_BIAS("false"),                                                               \
        ROW_BOOL("mlp_bias", mlp_bias, "false", "gate, up, down projections have a bias")

static const struct field llama_rows[] = {ROW_TYPE("llama", TYPE_LLAMA), ROWS_OF_LLAMA, {0}};

static const struct field family_llama_rows[] = {
    ROW_FAMILY("llama", TYPE_LLAMA, "dense, RMSNorm, rotary, gated MLP"), ROWS_OF_LLAMA, {0}};
const struct field_table family_llama_table = {
    .name = "model (family: llama)",
    .help = "Llama-like network, Hugging Face field names and defaults",
    .fields = family_llama_rows,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = model_cosmetic_keys,
    .check = model_check_transformer,
};

static const struct field mistral_rows[] = {
    ROW_TYPE("mistral", TYPE_MISTRAL),
    ROWS_SIZES("4096", "14336", "32", "32", "32000"),
    ROWS_LLAMA("8", NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_WINDOW("4096"),
    {0}};

static const struct field mixtral_rows[] = {
    ROW_TYPE("mixtral", TYPE_MIXTRAL),
    ROWS_SIZES("4096", "14336", "32", "32", "32000"),
    ROWS_LLAMA("8", NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_WINDOW(NULL),
    ROWS_EXPERTS("num_local_experts", "8", "2"),
    {0}};

static const struct field qwen2_rows[] = {
    ROW_TYPE("qwen2", TYPE_QWEN2),
    ROWS_SIZES("4096", "22016", "32", "32", "151936"),
    ROWS_LLAMA("32", NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROWS_QWEN_WINDOW,
    {0}};

static const struct field qwen2_moe_rows[] = {
    ROW_TYPE("qwen2_moe", TYPE_QWEN2_MOE),
    ROWS_SIZES("2048", "5632", "24", "16", "151936"),
    ROWS_LLAMA("16", NULL, NULL_IS_WRONG, "false", "hidden_act", "silu"),
    ROWS_QWEN_WINDOW,
    ROWS_EXPERTS("num_experts", "60", "4"),
    ROW_EXPERT_WIDTH("1408"),
    ROW_COUNT("shared_expert_intermediate_size", shared_expert_intermediate_size, "5632", MAX_WIDTH,
              "width of the shared expert"),
    ROWS_QWEN_MOE,
    {0}};

static const struct field qwen3_rows[] = {
    ROW_TYPE("qwen3", TYPE_QWEN3),
    ROWS_SIZES("4096", "22016", "32", "32", "151936"),
    ROWS_LLAMA("32", "128", NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_QWEN_WINDOW,
    {0}};

static const struct field qwen3_moe_rows[] = {
    ROW_TYPE("qwen3_moe", TYPE_QWEN3_MOE),
    ROWS_SIZES("2048", "6144", "24", "32", "151936"),
    ROWS_LLAMA("4", NULL, NULL_IS_WRONG, "false", "hidden_act", "silu"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_QWEN_WINDOW,
    ROWS_EXPERTS("num_experts", "128", "8"),
    ROW_EXPERT_WIDTH("768"),
    ROWS_QWEN_MOE,
    {0}};

static const struct field gemma_rows[] = {
    ROW_TYPE("gemma", TYPE_GEMMA),
    ROWS_SIZES("3072", "24576", "28", "16", "256000"),
    ROWS_LLAMA("16", "256", NULL_IS_WRONG, "true", "hidden_activation", "gelu_pytorch_tanh"),
    ROW_ATTENTION_BIAS("false"),
    {0}};

static const struct field gemma2_rows[] = {
    ROW_TYPE("gemma2", TYPE_GEMMA2),
    ROWS_SIZES("2304", "9216", "26", "8", "256000"),
    ROWS_LLAMA("4", "256", NULL_IS_WRONG, "true", "hidden_activation", "gelu_pytorch_tanh"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_GEMMA_WINDOW("4096", "2"),
    {0}};

static const struct field gemma3_rows[] = {
    ROW_TYPE("gemma3_text", TYPE_GEMMA3),
    ROWS_SIZES("2304", "9216", "26", "8", "262208"),
    ROWS_LLAMA("4", "256", NULL_IS_WRONG, "true", "hidden_activation", "gelu_pytorch_tanh"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_GEMMA_WINDOW("4096", "6"),
    {0}};

static const struct field phi_rows[] = {
    ROW_TYPE("phi", TYPE_PHI),
    ROWS_SIZES("2048", "8192", "24", "32", "51200"),
    ROWS_LLAMA(NULL, NULL, NULL_IS_UNSET, "false", "hidden_act", "gelu_new"),
    ROW_REAL("partial_rotary_factor", rotary_frac, "0.5", 1.0, "rotated part of a head"),
    ROW_REAL("resid_pdrop", hidden_dropout, "0", 1.0, HELP_DROPOUT "of the residual stream"),
    ROW_REAL("embd_pdrop", embedding_dropout, "0", 1.0, HELP_DROPOUT "of the embedding"),
    ROW_BOOL("qk_layernorm", qk_ln, "false", "norms of queries and keys"),
    {0}};

static const struct field phi3_rows[] = {
    ROW_TYPE("phi3", TYPE_PHI3),
    ROWS_SIZES("3072", "8192", "32", "32", "32064"),
    ROWS_LLAMA(NULL, NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_REAL("resid_pdrop", hidden_dropout, "0", 1.0, HELP_DROPOUT "of the residual stream"),
    ROW_REAL("embd_pdrop", embedding_dropout, "0", 1.0, HELP_DROPOUT "of the embedding"),
    ROW_WINDOW(NULL),
    {0}};

static const struct field deepseek_v2_rows[] = {
    ROW_TYPE("deepseek_v2", TYPE_DEEPSEEK_V2),
    ROWS_SIZES("4096", "11008", "30", "32", "102400"),
    ROWS_LLAMA(NULL, NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_LATENT(NULL),
    ROWS_DEEPSEEK("0", "64", "6", "2", "1407"),
    {0}};

static const struct field deepseek_v3_rows[] = {
    ROW_TYPE("deepseek_v3", TYPE_DEEPSEEK_V3),
    ROWS_SIZES("7168", "18432", "61", "128", "129280"),
    ROWS_LLAMA(NULL, NULL, NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_ATTENTION_BIAS("false"),
    ROWS_LATENT(NULL),
    ROWS_DEEPSEEK("3", "256", "8", "1", "2048"),
    {0}};

static const struct field gpt_oss_rows[] = {
    ROW_TYPE("gpt_oss", TYPE_GPT_OSS),
    ROWS_SIZES("2880", "2880", "36", "64", "201088"),
    ROWS_LLAMA("8", "64", NULL_IS_UNSET, "false", "hidden_act", "silu"),
    ROW_ATTENTION_BIAS("true"),
    ROW_WINDOW("128"),
    ROW_COUNT("sliding_window_pattern", sliding_window_pattern, "2", MAX_LAYERS,
              "every so many layers one is full"),
    ROW_LAYER_TYPES,
    ROWS_EXPERTS("num_local_experts", "128", "4"),
    {0}};

#define ROWS_GPT2                                                                                  \
    ROW_NAME, ROW_SIZE("n_embd", hidden_size, "768", MAX_WIDTH, HELP_H),                           \
        ROW_COUNT("n_inner", intermediate_size, NULL, MAX_WIDTH, HELP_F "; default: 4 n_embd"),    \
        ROW_SIZE("n_layer", num_hidden_layers, "12", MAX_LAYERS, HELP_L),                          \
        ROW_SIZE("n_head", num_attention_heads, "12", MAX_HEADS, HELP_A),                          \
        ROW_SIZE("vocab_size", vocab_size, "50257", MAX_VOCAB, HELP_V),                            \
        ROW_COUNT("n_positions", max_position_embeddings, "1024", MAX_VOCAB,                       \
                  "rows of the position table"),                                                   \
        ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),                   \
        ROW_REAL("embd_pdrop", embedding_dropout, "0.1", 1.0, HELP_DROPOUT "of the embedding"),    \
        ROWS_HIDDEN_DROPOUT("attn_pdrop", "resid_pdrop", "0.1")

static const struct field gpt2_rows[] = {
    ROW_TYPE("gpt2", TYPE_GPT2),
    ROWS_GPT2,
    ROW_TEXT("activation_function", hidden_act, "gelu_new", HELP_ACT),
    {0}};

static const struct field gpt_bigcode_rows[] = {
    ROW_TYPE("gpt_bigcode", TYPE_GPT_BIGCODE),
    ROWS_GPT2,
    ROW_TEXT("activation_function", hidden_act, "gelu_pytorch_tanh", HELP_ACT),
    ROW_BOOL("multi_query", multi_query, "true", "one key and value head"),
    {0}};

static const struct field gpt_neox_rows[] = {
    ROW_TYPE("gpt_neox", TYPE_GPT_NEOX),
    ROWS_SIZES("6144", "24576", "44", "64", "50432"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "false", HELP_TIED),
    ROW_TEXT("hidden_act", hidden_act, "gelu", HELP_ACT),
    ROW_REAL("rotary_pct", rotary_frac, "0.25", 1.0, "rotated part of a head"),
    ROW_BOOL("use_parallel_residual", use_parallel_residual, "true",
             "attention and MLP read the same input"),
    ROW_ATTENTION_BIAS("true"),
    ROW_REAL("attention_probs_dropout_prob", attention_dropout, NULL, 1.0,
             HELP_DROPOUT "of scores, older name"),
    ROW_REAL("hidden_dropout_prob", hidden_dropout, NULL, 1.0,
             HELP_DROPOUT "of the residual stream, older name"),
    ROW_REAL("attention_dropout", attention_dropout, NULL, 1.0, HELP_DROPOUT "of scores"),
    ROW_REAL("hidden_dropout", hidden_dropout, NULL, 1.0, HELP_DROPOUT "of the residual stream"),
    {0}};

static const struct field opt_rows[] = {
    ROW_TYPE("opt", TYPE_OPT),
    ROW_NAME,
    ROW_SIZE("hidden_size", hidden_size, "768", MAX_WIDTH, HELP_H),
    ROW_SIZE("ffn_dim", intermediate_size, "3072", MAX_WIDTH, HELP_F),
    ROW_SIZE("num_hidden_layers", num_hidden_layers, "12", MAX_LAYERS, HELP_L),
    ROW_SIZE("num_attention_heads", num_attention_heads, "12", MAX_HEADS, HELP_A),
    ROW_SIZE("vocab_size", vocab_size, "50272", MAX_VOCAB, HELP_V),
    ROW_COUNT("max_position_embeddings", max_position_embeddings, "2048", MAX_VOCAB,
              "positions; the table has two rows more"),
    ROW_COUNT("word_embed_proj_dim", word_embed_proj_dim, NULL, MAX_WIDTH,
              "width of the embedding; default: hidden_size"),
    ROW_BOOL("do_layer_norm_before", do_layer_norm_before, "true", "norms before each part"),
    ROW_BOOL("_remove_final_layer_norm", removes_final_norm, "false", "no final norm"),
    ROW_BOOL("enable_bias", has_bias, "true", "linear layers have a bias"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),
    ROW_TEXT("activation_function", hidden_act, "relu", HELP_ACT),
    ROW_REAL("attention_dropout", attention_dropout, "0", 1.0, HELP_DROPOUT "of scores"),
    ROW_REAL("dropout", hidden_dropout, "0.1", 1.0, HELP_DROPOUT "of the residual stream"),
    {0}};

static const struct field bloom_rows[] = {
    ROW_TYPE("bloom", TYPE_BLOOM),
    ROW_NAME,
    ROW_SIZE("hidden_size", hidden_size, "64", MAX_WIDTH, HELP_H),
    ROW_COUNT("n_embed", hidden_size, NULL, MAX_WIDTH, HELP_H ", older name"),
    ROW_SIZE("n_layer", num_hidden_layers, "2", MAX_LAYERS, HELP_L),
    ROW_SIZE("n_head", num_attention_heads, "8", MAX_HEADS, HELP_A),
    ROW_SIZE("vocab_size", vocab_size, "250880", MAX_VOCAB, HELP_V),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),
    ROWS_HIDDEN_DROPOUT("attention_dropout", "hidden_dropout", "0"),
    {0}};

static const struct field falcon_rows[] = {
    ROW_TYPE("falcon", TYPE_FALCON),
    ROW_NAME,
    ROW_SIZE("hidden_size", hidden_size, "4544", MAX_WIDTH, HELP_H),
    ROW_COUNT("ffn_hidden_size", intermediate_size, NULL, MAX_WIDTH,
              HELP_F "; default: 4 hidden_size"),
    ROW_SIZE("num_hidden_layers", num_hidden_layers, "32", MAX_LAYERS, HELP_L),
    ROW_SIZE("num_attention_heads", num_attention_heads, "71", MAX_HEADS, HELP_A),
    ROW_COUNT("num_kv_heads", num_key_value_heads, NULL, MAX_HEADS,
              HELP_KV "; read with new_decoder_architecture only"),
    ROW_SIZE("vocab_size", vocab_size, "65024", MAX_VOCAB, HELP_V),
    ROW_BOOL("multi_query", multi_query, "true", "one key and value head"),
    ROW_BOOL("new_decoder_architecture", new_decoder_architecture, "false", "Falcon-40B's"),
    ROW_BOOL("parallel_attn", parallel_attn, "true", "attention and MLP read the same input"),
    ROW_COUNT("num_ln_in_parallel_attn", num_ln_in_parallel_attn, NULL, 2.0,
              "norms a layer; default: 2 in the new architecture"),
    ROW_BOOL("alibi", alibi, "false", "ALiBi instead of rotary"),
    ROW_BOOL("bias", has_bias, "false", "linear layers have a bias"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),
    ROW_TEXT("activation", hidden_act, "gelu", HELP_ACT),
    ROWS_HIDDEN_DROPOUT("attention_dropout", "hidden_dropout", "0"),
    {0}};

static const struct choice mpt_attention_choices[] = {
    {.word = "multihead_attention", .value = MPT_MULTIHEAD},
    {.word = "multiquery_attention", .value = MPT_MULTIQUERY},
    {.word = "grouped_query_attention", .value = MPT_GROUPED},
    {0}};
static const struct field mpt_attention_rows[] = {
    {.key = "attn_type",
     .kind = FIELD_ENUM,
     .offset = DECODER_AT(attn_type),
     .default_text = "multihead_attention",
     .choices = mpt_attention_choices,
     .help = "which heads have keys of their own"},
    ROW_COUNT("kv_n_heads", num_key_value_heads, NULL, MAX_HEADS, HELP_KV),
    ROW_BOOL("alibi", alibi, "false", "ALiBi instead of learned positions"),
    ROW_BOOL("qk_ln", qk_ln, "false", "norms of queries and keys"),
    ROW_REAL("attn_pdrop", attention_dropout, "0", 1.0, HELP_DROPOUT "of scores"),
    {0}};
static const struct field_table mpt_attention_table = {
    .name = "attn_config",
    .help = "attention of an MPT block",
    .fields = mpt_attention_rows,
    .struct_bytes = sizeof(struct model_config),
    .ignored_keys = model_cosmetic_keys,
    .warns_unknown = true,
};
static const struct field mpt_rows[] = {
    ROW_TYPE("mpt", TYPE_MPT),
    ROW_NAME,
    ROW_SIZE("d_model", hidden_size, "2048", MAX_WIDTH, HELP_H),
    ROW_REAL("expansion_ratio", expansion_ratio, "4", 1024.0, "width of the MLP over d_model"),
    ROW_SIZE("n_layers", num_hidden_layers, "24", MAX_LAYERS, HELP_L),
    ROW_SIZE("n_heads", num_attention_heads, "16", MAX_HEADS, HELP_A),
    ROW_SIZE("vocab_size", vocab_size, "50368", MAX_VOCAB, HELP_V),
    ROW_COUNT("max_seq_len", max_position_embeddings, "2048", MAX_VOCAB,
              "rows of the position table"),
    ROW_BOOL("learned_pos_emb", learned_pos_emb, "true", "a position table, unless alibi"),
    ROW_BOOL("no_bias", no_bias, "true", "no bias anywhere (llm-foundry's own default: false)"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),
    ROW_REAL("emb_pdrop", embedding_dropout, "0", 1.0, HELP_DROPOUT "of the embedding"),
    ROW_REAL("resid_pdrop", hidden_dropout, "0", 1.0, HELP_DROPOUT "of the residual stream"),
    {.key = "attn_config",
     .kind = FIELD_STRUCT,
     .table = &mpt_attention_table,
     .help = "attention of a block"},
    {0}};

static const struct field t5_rows[] = {
    ROW_TYPE("t5", TYPE_T5),
    ROW_NAME,
    ROW_SIZE("d_model", hidden_size, "512", MAX_WIDTH, HELP_H),
    ROW_SIZE("d_ff", intermediate_size, "2048", MAX_WIDTH, HELP_F),
    ROW_COUNT("d_kv", head_dim, "64", MAX_HEADS, "width of a head"),
    ROW_SIZE("num_layers", num_hidden_layers, "6", MAX_LAYERS, "encoder blocks"),
    ROW_COUNT("num_decoder_layers", num_decoder_layers, NULL, MAX_LAYERS,
              "decoder blocks; default: num_layers"),
    ROW_SIZE("num_heads", num_attention_heads, "8", MAX_HEADS, HELP_A),
    ROW_SIZE("vocab_size", vocab_size, "32128", MAX_VOCAB, HELP_V),
    ROW_COUNT("relative_attention_num_buckets", relative_attention_num_buckets, "32", MAX_HEADS,
              "rows of the relative position table"),
    ROW_BOOL("tie_word_embeddings", tie_word_embeddings, "true", HELP_TIED),
    ROW_TEXT("feed_forward_proj", hidden_act, "relu", "relu, gated-gelu, ..."),
    ROW_REAL("dropout_rate", hidden_dropout, "0.1", 1.0, HELP_DROPOUT "everywhere"),
    {0}};

static const struct choice bert_head_choices[] = {
    {.word = "pooler", .value = BERT_HEAD_POOLER, .help = "BertModel"},
    {.word = "lm", .value = BERT_HEAD_LM, .help = "BertLMHeadModel, BertForMaskedLM"},
    {0}};
static const struct field bert_rows[] = {
    ROW_TYPE("bert", TYPE_BERT),
    ROWS_SIZES("768", "3072", "12", "12", "30522"),
    ROW_COUNT("max_position_embeddings", max_position_embeddings, "512", MAX_VOCAB,
              "rows of the position table"),
    ROW_COUNT("type_vocab_size", type_vocab_size, "2", MAX_VOCAB, "rows of the segment table"),
    ROW_TEXT("hidden_act", hidden_act, "gelu", HELP_ACT),
    ROWS_HIDDEN_DROPOUT("attention_probs_dropout_prob", "hidden_dropout_prob", "0.1"),
    {.key = "head",
     .kind = FIELD_ENUM,
     .offset = DECODER_AT(head),
     .default_text = "pooler",
     .choices = bert_head_choices,
     .help = "what stands on the last block (ours)"},
    {0}};

static const struct field vit_rows[] = {
    ROW_TYPE("vit", TYPE_VIT),
    ROW_NAME,
    ROW_SIZE("hidden_size", hidden_size, "768", MAX_WIDTH, HELP_H),
    ROW_SIZE("intermediate_size", intermediate_size, "3072", MAX_WIDTH, HELP_F),
    ROW_SIZE("num_hidden_layers", num_hidden_layers, "12", MAX_LAYERS, HELP_L),
    ROW_SIZE("num_attention_heads", num_attention_heads, "12", MAX_HEADS, HELP_A),
    ROW_COUNT("image_size", image_size, "224", MAX_HEADS, "pixels a side"),
    ROW_COUNT("patch_size", patch_size, "16", MAX_HEADS, "pixels a side of a patch"),
    ROW_COUNT("num_channels", num_channels, "3", MAX_HEADS, "colours"),
    ROW_COUNT("num_labels", num_labels, "1000", MAX_VOCAB, "classes; here 1000 unless given"),
    ROW_BOOL("qkv_bias", attention_bias, "true", "q, k, v projections have a bias"),
    ROW_TEXT("hidden_act", hidden_act, "gelu", HELP_ACT),
    ROWS_HIDDEN_DROPOUT("attention_probs_dropout_prob", "hidden_dropout_prob", "0"),
    {0}};

#define TYPE_TABLE(type, rows_of_type, text)                                                       \
    [type] = {.name = "model (model_type: " text ")",                                              \
              .help = "Hugging Face config.json, read as it is",                                   \
              .fields = (rows_of_type),                                                            \
              .struct_bytes = sizeof(struct model_config),                                         \
              .ignored_keys = model_cosmetic_keys,                                                 \
              .warns_unknown = true,                                                               \
              .check = model_check_transformer}

static const struct field_table tables[MODEL_TYPE_COUNT] = {
    TYPE_TABLE(TYPE_LLAMA, llama_rows, "llama"),
    TYPE_TABLE(TYPE_MISTRAL, mistral_rows, "mistral"),
    TYPE_TABLE(TYPE_MIXTRAL, mixtral_rows, "mixtral"),
    TYPE_TABLE(TYPE_QWEN2, qwen2_rows, "qwen2"),
    TYPE_TABLE(TYPE_QWEN2_MOE, qwen2_moe_rows, "qwen2_moe"),
    TYPE_TABLE(TYPE_QWEN3, qwen3_rows, "qwen3"),
    TYPE_TABLE(TYPE_QWEN3_MOE, qwen3_moe_rows, "qwen3_moe"),
    TYPE_TABLE(TYPE_GEMMA, gemma_rows, "gemma"),
    TYPE_TABLE(TYPE_GEMMA2, gemma2_rows, "gemma2"),
    TYPE_TABLE(TYPE_GEMMA3, gemma3_rows, "gemma3_text"),
    TYPE_TABLE(TYPE_PHI, phi_rows, "phi"),
    TYPE_TABLE(TYPE_PHI3, phi3_rows, "phi3"),
    TYPE_TABLE(TYPE_DEEPSEEK_V2, deepseek_v2_rows, "deepseek_v2"),
    TYPE_TABLE(TYPE_DEEPSEEK_V3, deepseek_v3_rows, "deepseek_v3"),
    TYPE_TABLE(TYPE_GPT_OSS, gpt_oss_rows, "gpt_oss"),
    TYPE_TABLE(TYPE_GPT2, gpt2_rows, "gpt2"),
    TYPE_TABLE(TYPE_GPT_BIGCODE, gpt_bigcode_rows, "gpt_bigcode"),
    TYPE_TABLE(TYPE_GPT_NEOX, gpt_neox_rows, "gpt_neox"),
    TYPE_TABLE(TYPE_OPT, opt_rows, "opt"),
    TYPE_TABLE(TYPE_BLOOM, bloom_rows, "bloom"),
    TYPE_TABLE(TYPE_FALCON, falcon_rows, "falcon"),
    TYPE_TABLE(TYPE_MPT, mpt_rows, "mpt"),
    TYPE_TABLE(TYPE_T5, t5_rows, "t5"),
    TYPE_TABLE(TYPE_BERT, bert_rows, "bert"),
    TYPE_TABLE(TYPE_VIT, vit_rows, "vit"),
};

const struct field_table *model_type_table(enum model_type type)
{
    BUG_IF((unsigned)type >= MODEL_TYPE_COUNT);
    return tables[type].name != NULL ? &tables[type] : NULL;
}

const struct field_table *const model_tables[] = {&tables[TYPE_LLAMA],
                                                  &tables[TYPE_MISTRAL],
                                                  &tables[TYPE_MIXTRAL],
                                                  &tables[TYPE_QWEN2],
                                                  &tables[TYPE_QWEN2_MOE],
                                                  &tables[TYPE_QWEN3],
                                                  &tables[TYPE_QWEN3_MOE],
                                                  &tables[TYPE_GEMMA],
                                                  &tables[TYPE_GEMMA2],
                                                  &tables[TYPE_GEMMA3],
                                                  &tables[TYPE_PHI],
                                                  &tables[TYPE_PHI3],
                                                  &tables[TYPE_DEEPSEEK_V2],
                                                  &tables[TYPE_DEEPSEEK_V3],
                                                  &tables[TYPE_GPT_OSS],
                                                  &tables[TYPE_GPT2],
                                                  &tables[TYPE_GPT_BIGCODE],
                                                  &tables[TYPE_GPT_NEOX],
                                                  &tables[TYPE_OPT],
                                                  &tables[TYPE_BLOOM],
                                                  &tables[TYPE_FALCON],
                                                  &tables[TYPE_MPT],
                                                  &tables[TYPE_T5],
                                                  &tables[TYPE_BERT],
                                                  &tables[TYPE_VIT],
                                                  &decoder_table,
                                                  &family_llama_table,
                                                  &abstract_table,
                                                  NULL};
