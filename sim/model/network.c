/*
 * model/network.c: the parameters of a transformer, one by one.
 *
 * One enumeration serves building (FSDP shards rows) and counting. Experts of a block are one entry
 * with the rows of all of them, which is how they shard when each expert's rows do.
 */
#include "model/network.h"

#include "base/strbuf.h"

struct visit {
    param_visitor *function;
    void *context;
    const struct network *net;
};

static void visit_param(const struct visit *to, struct network_param param)
{
    if (param.rows > 0 && param.rest > 0)
        to->function(to->context, &param);
}

static void visit(const struct visit *to, const char *name, int64_t rows, int64_t rest)
{
    visit_param(to, (struct network_param){.name = name, .rows = rows, .rest = rest});
}

static void visit_weight(const struct visit *to, const char *name, int64_t outputs, int64_t inputs)
{
    bool is_transposed = to->net->traits.is_weight_transposed;
    visit_param(to, (struct network_param){.name = name,
                                           .rows = is_transposed ? inputs : outputs,
                                           .rest = is_transposed ? outputs : inputs,
                                           .role = PARAM_LINEAR});
}

static void visit_linear(const struct visit *to, const char *weight, const char *bias,
                         int64_t outputs, int64_t inputs, bool has_bias)
{
    visit_weight(to, weight, outputs, inputs);
    if (has_bias)
        visit(to, bias, outputs, 1);
}

static void visit_norm(const struct visit *to, const char *weight, const char *bias, int64_t width)
{
    visit(to, weight, width, 1);
    if (to->net->traits.has_norm_bias)
        visit(to, bias, width, 1);
}

static void visit_expert(const struct visit *to, const char *name, int64_t outputs, int64_t inputs)
{
    visit_param(to, (struct network_param){
                        .name = name, .rows = outputs, .rest = inputs, .role = PARAM_EXPERTS});
}

/* Multi-head latent attention: low-rank q (V3) and kv, rotary part shared by the heads. */
static void visit_latent_attention(const struct visit *to)
{
    const struct network *net = to->net;
    bool bias = net->traits.has_qkv_bias;
    if (net->q_lora > 0) {
        visit_linear(to, "self_attn.q_a_proj.weight", "self_attn.q_a_proj.bias", net->q_lora,
                     net->h, bias);
        visit(to, "self_attn.q_a_layernorm.weight", net->q_lora, 1);
        visit_linear(to, "self_attn.q_b_proj.weight", NULL, net->q, net->q_lora, false);
    } else {
        visit_linear(to, "self_attn.q_proj.weight", NULL, net->q, net->h, false);
    }
    visit_linear(to, "self_attn.kv_a_proj_with_mqa.weight", "self_attn.kv_a_proj_with_mqa.bias",
                 net->kv_lora + net->d_rope, net->h, bias);
    visit(to, "self_attn.kv_a_layernorm.weight", net->kv_lora, 1);
    visit_linear(to, "self_attn.kv_b_proj.weight", NULL, net->a * (net->d_nope + net->d_v),
                 net->kv_lora, false);
    visit_linear(to, "self_attn.o_proj.weight", "self_attn.o_proj.bias", net->h, net->context,
                 bias);
}

static void visit_attention(const struct visit *to, const struct block_spec *spec)
{
    const struct network *net = to->net;
    const struct decoder_traits *traits = &net->traits;
    if (net->kv_lora > 0) {
        visit_latent_attention(to);
        return;
    }
    if (traits->has_fused_qkv) {
        visit_linear(to, "self_attn.qkv_proj.weight", "self_attn.qkv_proj.bias",
                     net->q + net->k + net->v, net->h, traits->has_qkv_bias);
    } else {
        visit_linear(to, "self_attn.q_proj.weight", "self_attn.q_proj.bias", net->q, net->h,
                     traits->has_qkv_bias);
        visit_linear(to, "self_attn.k_proj.weight", "self_attn.k_proj.bias", net->k, net->h,
                     traits->has_qkv_bias);
        visit_linear(to, "self_attn.v_proj.weight", "self_attn.v_proj.bias", net->v, net->h,
                     traits->has_qkv_bias);
    }
    visit_linear(to, "self_attn.o_proj.weight", "self_attn.o_proj.bias", net->h, net->context,
                 traits->has_o_bias);
    if (traits->has_qk_norm) {
        /* Per head, but MPT's qk_ln spans the whole width. */
        bool is_wide = net->type == TYPE_MPT;
        visit_norm(to, "self_attn.q_norm.weight", "self_attn.q_norm.bias",
                   is_wide ? net->q : net->d_qk);
        visit_norm(to, "self_attn.k_norm.weight", "self_attn.k_norm.bias",
                   is_wide ? net->k : net->d_qk);
    }
    if (net->has_sinks)
        visit(to, "self_attn.sinks", net->a, 1);
    if (spec->has_buckets)
        visit(to, "self_attn.relative_attention_bias.weight", net->buckets, net->a);
}

static void visit_dense_mlp(const struct visit *to)
{
    const struct network *net = to->net;
    const struct decoder_traits *traits = &net->traits;
    bool bias = traits->has_mlp_bias;
    if (traits->is_gated && traits->has_fused_gate_up) {
        visit_linear(to, "mlp.gate_up_proj.weight", "mlp.gate_up_proj.bias", 2 * net->f, net->h,
                     bias);
    } else {
        if (traits->is_gated)
            visit_linear(to, "mlp.gate_proj.weight", "mlp.gate_proj.bias", net->f, net->h, bias);
        visit_linear(to, "mlp.up_proj.weight", "mlp.up_proj.bias", net->f, net->h, bias);
    }
    visit_linear(to, "mlp.down_proj.weight", "mlp.down_proj.bias", net->h, net->f, bias);
}

static void visit_experts(const struct visit *to)
{
    const struct network *net = to->net;
    int64_t experts = net->experts, f = net->expert_f;
    visit_weight(to, "mlp.router.weight", experts, net->h);
    if (net->has_router_bias)
        visit(to, "mlp.router.bias", experts, 1);
    visit_expert(to, "mlp.experts.gate_up_proj", experts * 2 * f, net->h);
    if (net->has_expert_bias)
        visit(to, "mlp.experts.gate_up_proj_bias", experts, 2 * f);
    visit_expert(to, "mlp.experts.down_proj", experts * net->h, f);
    if (net->has_expert_bias)
        visit(to, "mlp.experts.down_proj_bias", experts, net->h);
    visit_weight(to, "mlp.shared_expert.gate_proj.weight", net->shared_f, net->h);
    visit_weight(to, "mlp.shared_expert.up_proj.weight", net->shared_f, net->h);
    visit_weight(to, "mlp.shared_expert.down_proj.weight", net->h, net->shared_f);
    if (net->has_shared_gate)
        visit(to, "mlp.shared_expert_gate.weight", 1, net->h);
}

static void visit_block_norms(const struct visit *to, const struct block_spec *spec)
{
    static const char *const names[4][2] = {
        {"input_layernorm.weight", "input_layernorm.bias"},
        {"post_attention_layernorm.weight", "post_attention_layernorm.bias"},
        {"pre_feedforward_layernorm.weight", "pre_feedforward_layernorm.bias"},
        {"post_feedforward_layernorm.weight", "post_feedforward_layernorm.bias"}};
    const struct network *net = to->net;
    int64_t count = net->traits.norms_per_layer;
    for (int64_t i = 0; i < count && i < 4; i++)
        visit_norm(to, names[i][0], names[i][1], net->h);
    if (spec->has_cross)
        visit_norm(to, "cross_attention_layernorm.weight", "cross_attention_layernorm.bias",
                   net->h);
}

void network_block_params(const struct network *network, const struct block_spec *spec,
                          param_visitor *function, void *context)
{
    const struct visit to = {function, context, network};
    visit_attention(&to, spec);
    if (spec->has_cross) {
        visit_weight(&to, "cross_attn.q_proj.weight", network->q, network->h);
        visit_weight(&to, "cross_attn.k_proj.weight", network->k, network->h);
        visit_weight(&to, "cross_attn.v_proj.weight", network->v, network->h);
        visit_weight(&to, "cross_attn.o_proj.weight", network->h, network->context);
    }
    if (spec->is_moe)
        visit_experts(&to);
    else
        visit_dense_mlp(&to);
    visit_block_norms(&to, spec);
}

void network_embedding_params(const struct network *network, param_visitor *function, void *context)
{
    const struct visit to = {function, context, network};
    if (network->kind == NETWORK_VISION) {
        visit(&to, "patch_embedding.weight", network->h, network->patch_features);
        visit(&to, "patch_embedding.bias", network->h, 1);
        visit(&to, "cls_token", 1, network->h);
        visit(&to, "position_embeddings", network->position_rows, network->h);
        return;
    }
    visit(&to, "embed_tokens.weight", network->vocab, network->embedding_width);
    visit(&to, "embed_positions.weight", network->position_rows, network->h);
    visit(&to, "token_type_embeddings.weight", network->token_types, network->h);
    if (network->embedding_width != network->h)
        visit(&to, "project_in.weight", network->h, network->embedding_width);
    if (network->traits.has_embedding_norm)
        visit_norm(&to, "embed_norm.weight", "embed_norm.bias", network->h);
}

void network_final_norm_params(const struct network *network, param_visitor *function,
                               void *context)
{
    const struct visit to = {function, context, network};
    if (network->has_final_norm)
        visit_norm(&to, "norm.weight", "norm.bias", network->h);
}

void network_head_params(const struct network *network, param_visitor *function, void *context)
{
    const struct visit to = {function, context, network};
    if (network->kind == NETWORK_VISION) {
        visit(&to, "classifier.weight", network->labels, network->h);
        visit(&to, "classifier.bias", network->labels, 1);
        return;
    }
    if (network->kind == NETWORK_ENCODER) {
        visit(&to, network->bert_head == BERT_HEAD_LM ? "transform.weight" : "pooler.weight",
              network->h, network->h);
        visit(&to, network->bert_head == BERT_HEAD_LM ? "transform.bias" : "pooler.bias",
              network->h, 1);
        if (network->bert_head == BERT_HEAD_LM) {
            visit_norm(&to, "transform.norm.weight", "transform.norm.bias", network->h);
            visit(&to, "lm_head.bias", network->vocab, 1);
        }
        return;
    }
    if (network->embedding_width != network->h)
        visit(&to, "project_out.weight", network->embedding_width, network->h);
    if (!network->is_tied)
        visit(&to, "lm_head.weight", network->vocab, network->embedding_width);
    if (network->has_head_bias)
        visit(&to, "lm_head.bias", network->vocab, 1);
}

struct network_counts network_count_blocks(const struct network *network)
{
    struct network_counts counts = {.decoder_blocks = network->decoder_layers};
    counts.dense = network->experts > 0 ? network->dense_layers : network->layers;
    if (counts.dense > network->layers)
        counts.dense = network->layers;
    counts.moe = network->layers - counts.dense;
    return counts;
}

static void add_estimate(void *context, const struct network_param *param)
{
    *(double *)context += (double)param->rows * (double)param->rest;
}

static void add_exact(void *context, const struct network_param *param)
{
    *(int64_t *)context += param->rows * param->rest;
}

static const struct block_spec dense_spec = {.is_causal = true};
static const struct block_spec moe_spec = {.is_moe = true};
static const struct block_spec cross_spec = {.has_cross = true};

double network_parameters_estimate(const struct network *network)
{
    struct network_counts counts = network_count_blocks(network);
    double dense = 0.0, moe = 0.0, cross = 0.0, sum = 0.0;
    network_block_params(network, &dense_spec, add_estimate, &dense);
    if (counts.moe > 0)
        network_block_params(network, &moe_spec, add_estimate, &moe);
    if (counts.decoder_blocks > 0)
        network_block_params(network, &cross_spec, add_estimate, &cross);
    network_embedding_params(network, add_estimate, &sum);
    network_final_norm_params(network, add_estimate, &sum);
    network_head_params(network, add_estimate, &sum);
    return sum + (double)counts.dense * dense + (double)counts.moe * moe +
           (double)counts.decoder_blocks * cross;
}

int64_t network_parameters(const struct network *network)
{
    struct network_counts counts = network_count_blocks(network);
    int64_t dense = 0, moe = 0, cross = 0, sum = 0;
    network_block_params(network, &dense_spec, add_exact, &dense);
    if (counts.moe > 0)
        network_block_params(network, &moe_spec, add_exact, &moe);
    if (counts.decoder_blocks > 0) {
        /* The decoder has a final norm of its own, and both stacks a table of buckets. */
        network_block_params(network, &cross_spec, add_exact, &cross);
        network_final_norm_params(network, add_exact, &sum);
        sum += 2 * network->buckets * network->a;
    }
    network_embedding_params(network, add_exact, &sum);
    network_final_norm_params(network, add_exact, &sum);
    network_head_params(network, add_exact, &sum);
    return sum + counts.dense * dense + counts.moe * moe + counts.decoder_blocks * cross;
}

int64_t network_idle_expert_numel(const struct network *network)
{
    int64_t expert = 3 * network->h * network->expert_f;
    if (network->has_expert_bias)
        expert += 2 * network->expert_f + network->h;
    return (network->experts - network->top_k) * expert;
}

int64_t network_active_parameters(const struct network *network)
{
    return network_parameters(network) -
           network_count_blocks(network).moe * network_idle_expert_numel(network);
}
