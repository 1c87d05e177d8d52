/*
 * model/network.h: a transformer with every default filled in (inside this room).
 *
 * `network_of` joins what a file says (struct decoder_config) with what its model_type implies
 * (the traits table of network.c). Everything else of the room reads struct network only, so that a
 * new architecture is a row of traits, a field table, and nothing more.
 *
 * Widths: q = a·d_qk, k = kv_heads·d_qk, v = kv_heads·d_v, context = a·d_v (input of o_proj).
 * Llama: d_qk = d_v, k = v, context = q.
 */
#ifndef FSDPSIM_MODEL_NETWORK_H
#define FSDPSIM_MODEL_NETWORK_H

#include "model/model_private.h"

enum network_kind { NETWORK_DECODER, NETWORK_ENCODER_DECODER, NETWORK_ENCODER, NETWORK_VISION };

struct network {
    enum network_kind kind;
    enum model_type type;
    int64_t h, f, layers, decoder_layers, a, kv_heads, d_qk, d_v, q, k, v, context, vocab;
    int64_t whole_vocab; /* of all ranks of tensor parallelism */
    struct decoder_traits traits;
    enum norm_kind norm;
    enum position_kind position;
    enum activation_kind activation;
    bool is_tied, has_final_norm, has_softcap, has_sinks;
    bool has_head_bias;
    double embedding_dropout, attention_dropout, hidden_dropout, rotary_frac;
    int64_t positions, position_rows; /* learned; rows of the table (OPT: 2 more) */
    int64_t token_types;              /* BERT */
    int64_t embedding_width;          /* OPT-350m: not h, with projections */
    enum bert_head bert_head;
    int64_t patch_features, patches, labels; /* ViT */
    int64_t buckets;                         /* T5 */

    int64_t window, window_pattern, window_first;
    const struct config_list *layer_types;

    int64_t experts, top_k, expert_f, shared_f, dense_layers;
    bool has_router_bias, has_expert_bias, has_shared_gate;

    int64_t q_lora, kv_lora, d_rope, d_nope; /* MLA when kv_lora > 0 */
};

void network_of(const struct model_config *config, struct network *network);

/* The word of model_type ("llama"), or "decoder". */
const char *model_type_word(enum model_type type);

/* A kind of block. */
struct block_spec {
    const char *label;
    bool is_moe, is_causal, has_cross, has_window, has_buckets;
    int64_t tokens, seq_len;             /* of its own stream */
    int64_t cross_tokens, cross_seq_len; /* of the encoder's */
};
bool network_layer_has_window(const struct network *network, int64_t layer);

/*
 * Parameters one by one, in the order of registration: the name, the rows, the elements a row
 * (experts are one entry with the rows of all), and whose weight it is.
 */
enum param_role {
    PARAM_OTHER,
    PARAM_LINEAR,  /* an nn.Linear's weight */
    PARAM_EXPERTS, /* one tensor of grouped products; nn.Linear layers where experts are a loop */
};
struct network_param {
    const char *name;
    int64_t rows, rest;
    enum param_role role;
};
typedef void param_visitor(void *context, const struct network_param *param);
void network_block_params(const struct network *network, const struct block_spec *spec,
                          param_visitor *visit, void *context);
void network_embedding_params(const struct network *network, param_visitor *visit, void *context);
void network_final_norm_params(const struct network *network, param_visitor *visit, void *context);
void network_head_params(const struct network *network, param_visitor *visit, void *context);

/* Blocks of each kind, as far as parameters differ; calls for each kind with its number. */
struct network_counts {
    int64_t dense, moe;     /* decoder, encoder */
    int64_t decoder_blocks; /* T5 */
};
struct network_counts network_count_blocks(const struct network *network);

/* All parameters, exact and as a double that cannot overflow; active ones. */
double network_parameters_estimate(const struct network *network);
int64_t network_parameters(const struct network *network);
/* Parameters of the experts of one block that a token does not pass. */
int64_t network_idle_expert_numel(const struct network *network);
int64_t network_active_parameters(const struct network *network);

#endif
