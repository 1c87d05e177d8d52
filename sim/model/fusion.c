/*
 * model/fusion.c: the fusion table. Operand counts per element: `narrow` in the compute dtype,
 * `wide` in fp32; `once` in bytes. Sources: the operations PyTorch's and transformers' modules call
 * one after another (nn.RMSNorm before its fused kernel and LlamaRMSNorm are the same seven);
 * inductor fuses element-wise work and one reduction into one kernel, never into a GEMM; Liger's
 * and Apex's kernels read and write each tensor once.
 */
#include "model/fusion.h"

struct pass {
    const char *suffix; /* "" is the operation's own name; NULL ends a list */
    enum kernel_kind kind;
    enum kernel_impl impl;
    double narrow, wide, once; /* per element */
    double per_reader;         /* narrow operands an additional reader adds */
    double token_bytes;
    bool is_cast;      /* not there when the compute dtype is fp32 */
    bool reads_weight; /* adds weight_bytes */
    bool for_weight;   /* serves the weight's gradient alone */
};
struct cell {
    const struct pass *forward, *backward;
};

#define ELEMENT(name, by, operands)                                                                \
    {                                                                                              \
        .suffix = (name), .kind = KERNEL_ELEMENTWISE, .impl = (by), .narrow = (operands)           \
    }
#define END                                                                                        \
    {                                                                                              \
        .suffix = NULL                                                                             \
    }
#define NORM_PASS .kind = KERNEL_NORM, .impl = IMPL_COMPOSITE
#define CAST_PASS                                                                                  \
    .kind = KERNEL_ELEMENTWISE, .impl = IMPL_COMPOSITE, .narrow = 1, .wide = 1, .is_cast = true

static const struct pass none[] = {END};

/* x.float(); pow(2); mean; + eps, rsqrt; x·r; cast; ·weight. */
static const struct pass rms_eager[] = {{".to_fp32", CAST_PASS},
                                        {".square", NORM_PASS, .wide = 2},
                                        {".mean", NORM_PASS, .wide = 1, .token_bytes = 4},
                                        {".rsqrt", NORM_PASS, .token_bytes = 16},
                                        {".scale", NORM_PASS, .wide = 2, .token_bytes = 4},
                                        {".from_fp32", CAST_PASS},
                                        {".weight", NORM_PASS, .narrow = 2, .reads_weight = true},
                                        END};
/* The chain rule through these, operation by operation. */
static const struct pass rms_eager_backward[] = {
    {".weight.input_grad", NORM_PASS, .narrow = 2, .reads_weight = true},
    {".weight.product", NORM_PASS, .narrow = 3, .for_weight = true},
    {".weight_grad", NORM_PASS, .narrow = 1, .reads_weight = true, .for_weight = true},
    {".from_fp32.grad", CAST_PASS},
    {".scale.input_grad", NORM_PASS, .wide = 2, .token_bytes = 4},
    {".scale.product", NORM_PASS, .wide = 3},
    {".scale.rsqrt_grad", NORM_PASS, .wide = 1, .token_bytes = 4},
    {".rsqrt.grad", NORM_PASS, .token_bytes = 24},
    {".mean.grad", NORM_PASS, .wide = 1, .token_bytes = 4},
    {".square.power", NORM_PASS, .wide = 2},
    {".square.grad", NORM_PASS, .wide = 3},
    {".grad_sum", NORM_PASS, .wide = 3},
    {".to_fp32.grad", CAST_PASS},
    END};
static const struct pass layer_eager[] = {
    {"", KERNEL_NORM, IMPL_EAGER, .narrow = 2, .token_bytes = 8, .reads_weight = true}, END};
static const struct pass layer_eager_backward[] = {
    {".input_grad", KERNEL_NORM, IMPL_EAGER, .narrow = 3, .token_bytes = 8, .reads_weight = true},
    {".weight_grad", KERNEL_NORM, IMPL_EAGER, .narrow = 2, .token_bytes = 8, .reads_weight = true,
     .for_weight = true},
    END};
static const struct pass norm_inductor[] = {
    {"", KERNEL_NORM, IMPL_INDUCTOR, .narrow = 2, .token_bytes = 4, .reads_weight = true}, END};
/* Reads x and the branch, writes their sum and the norm. */
static const struct pass norm_residual_inductor[] = {
    {".residual", KERNEL_NORM, IMPL_INDUCTOR, .narrow = 4, .token_bytes = 4, .reads_weight = true},
    END};
/* Reads dy of each reader, x, the residual's gradient; writes dx. Then dy of each and x again. */
static const struct pass norm_inductor_backward[] = {
    {".input_grad", KERNEL_NORM, IMPL_INDUCTOR, .narrow = 4, .per_reader = 1, .token_bytes = 4,
     .reads_weight = true},
    {".weight_grad", KERNEL_NORM, IMPL_INDUCTOR, .narrow = 2, .per_reader = 1, .token_bytes = 4,
     .reads_weight = true, .for_weight = true},
    END};
static const struct pass norm_hand[] = {
    {"", KERNEL_NORM, IMPL_HAND, .narrow = 2, .token_bytes = 4, .reads_weight = true}, END};
static const struct pass norm_hand_backward[] = {
    {".grad", KERNEL_NORM, IMPL_HAND, .narrow = 3, .token_bytes = 4, .reads_weight = true}, END};

static const struct pass sum_eager[] = {ELEMENT("", IMPL_EAGER, 3), END};
static const struct pass sum_inductor[] = {ELEMENT("", IMPL_INDUCTOR, 3), END};

/* To fp32, multiply with the table, back; transformers' rotate_half, cat, two products and a sum in
   bf16 move the same 20 bytes an element. Partial rotary leaves out what it does not touch. */
static const struct pass rotary_eager[] = {
    {".to_fp32", CAST_PASS},
    {"", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .wide = 2, .reads_weight = true},
    {".from_fp32", CAST_PASS},
    END};
/* Complex numbers are multiplied by one vectorised kernel. */
static const struct pass rotary_complex_eager[] = {
    {".to_fp32", CAST_PASS},
    {"", KERNEL_ELEMENTWISE, IMPL_EAGER, .wide = 2, .reads_weight = true},
    {".from_fp32", CAST_PASS},
    END};
static const struct pass rotary_inductor[] = {
    {"", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .narrow = 2, .reads_weight = true}, END};
/* Inductor writes no code for complex numbers (pytorch issue 125718): their product stays an
   operation of its own, in fp32, and the casts on both sides are kernels of their own for it. */
static const struct pass rotary_complex_inductor[] = {
    {".to_fp32", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .narrow = 1, .wide = 1, .is_cast = true},
    {"", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .wide = 2, .reads_weight = true},
    {".from_fp32", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .narrow = 1, .wide = 1, .is_cast = true},
    END};
static const struct pass rotary_hand[] = {
    {"", KERNEL_ELEMENTWISE, IMPL_HAND, .narrow = 2, .reads_weight = true}, END};

static const struct pass act_eager[] = {ELEMENT("", IMPL_EAGER, 2), END};
static const struct pass act_eager_backward[] = {ELEMENT(".grad", IMPL_EAGER, 3), END};
static const struct pass act_inductor[] = {ELEMENT("", IMPL_INDUCTOR, 2), END};
static const struct pass act_inductor_backward[] = {ELEMENT(".grad", IMPL_INDUCTOR, 3), END};
static const struct pass gated_eager[] = {ELEMENT("", IMPL_EAGER, 2),
                                          ELEMENT(".mul", IMPL_EAGER, 3), END};
static const struct pass gated_eager_backward[] = {ELEMENT(".mul.act_grad", IMPL_EAGER, 3),
                                                   ELEMENT(".mul.up_grad", IMPL_EAGER, 3),
                                                   ELEMENT(".grad", IMPL_EAGER, 3), END};
/* Reads gate, up, the gradient; writes two gradients. */
static const struct pass gated_inductor[] = {ELEMENT(".mul", IMPL_INDUCTOR, 3), END};
static const struct pass gated_inductor_backward[] = {ELEMENT(".mul.grad", IMPL_INDUCTOR, 5), END};
static const struct pass gated_hand[] = {ELEMENT(".mul", IMPL_HAND, 3), END};
static const struct pass gated_hand_backward[] = {ELEMENT(".mul.grad", IMPL_HAND, 5), END};

/* 0.5·x·(1 + tanh(c·(x + 0.044715·x³))), as transformers writes it. */
#define GELU_NEW_FORWARD                                                                           \
    ELEMENT(".pow", IMPL_EAGER, 2), ELEMENT(".cubic", IMPL_EAGER, 2),                              \
        ELEMENT(".sum", IMPL_EAGER, 3), ELEMENT(".scale", IMPL_EAGER, 2),                          \
        ELEMENT(".tanh", IMPL_EAGER, 2), ELEMENT(".plus_one", IMPL_EAGER, 2),                      \
        ELEMENT(".half", IMPL_EAGER, 2), ELEMENT("", IMPL_EAGER, 3)
#define GELU_NEW_BACKWARD                                                                          \
    ELEMENT(".half_grad", IMPL_EAGER, 3), ELEMENT(".tanh_out_grad", IMPL_EAGER, 3),                \
        ELEMENT(".half.grad", IMPL_EAGER, 2), ELEMENT(".tanh.grad", IMPL_EAGER, 3),                \
        ELEMENT(".scale.grad", IMPL_EAGER, 2), ELEMENT(".cubic.grad", IMPL_EAGER, 2),              \
        ELEMENT(".pow.square", IMPL_EAGER, 2), ELEMENT(".pow.three", IMPL_EAGER, 2),               \
        ELEMENT(".pow.grad", IMPL_EAGER, 3), ELEMENT(".grad_sum", IMPL_EAGER, 3),                  \
        ELEMENT(".grad_sum_2", IMPL_EAGER, 3)
static const struct pass gelu_new_eager[] = {GELU_NEW_FORWARD, END};
static const struct pass gelu_new_eager_backward[] = {GELU_NEW_BACKWARD, END};
static const struct pass gated_gelu_new_eager[] = {GELU_NEW_FORWARD, ELEMENT(".mul", IMPL_EAGER, 3),
                                                   END};
static const struct pass gated_gelu_new_eager_backward[] = {ELEMENT(".mul.act_grad", IMPL_EAGER, 3),
                                                            ELEMENT(".mul.up_grad", IMPL_EAGER, 3),
                                                            GELU_NEW_BACKWARD, END};

/* The mask is a byte an element; compiled, it is all that a fused dropout adds. */
static const struct pass dropout_eager[] = {
    {"", KERNEL_ELEMENTWISE, IMPL_EAGER, .narrow = 2, .once = 1}, END};
static const struct pass dropout_eager_backward[] = {
    {".grad", KERNEL_ELEMENTWISE, IMPL_EAGER, .narrow = 2, .once = 1}, END};

static const struct pass bias_eager[] = {
    {"", KERNEL_REDUCE, IMPL_EAGER, .narrow = 1, .reads_weight = true}, END};
static const struct pass bias_inductor[] = {
    {"", KERNEL_REDUCE, IMPL_INDUCTOR, .narrow = 1, .reads_weight = true}, END};

static const struct pass mask_eager[] = {ELEMENT(".scale", IMPL_EAGER, 2),
                                         ELEMENT(".mask", IMPL_EAGER, 2), END};
static const struct pass mask_eager_backward[] = {ELEMENT(".scale.grad", IMPL_EAGER, 2), END};
static const struct pass softmax_eager[] = {{"", KERNEL_SOFTMAX_LOSS, IMPL_EAGER, .narrow = 2},
                                            END};
static const struct pass softmax_eager_backward[] = {
    {".grad", KERNEL_SOFTMAX_LOSS, IMPL_EAGER, .narrow = 3}, END};
static const struct pass softmax_wide_eager[] = {
    {"", KERNEL_SOFTMAX_LOSS, IMPL_EAGER, .narrow = 1, .wide = 1},
    {".from_fp32", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .narrow = 1, .wide = 1, .is_cast = true},
    END};
static const struct pass softmax_wide_eager_backward[] = {
    {".from_fp32.grad", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .narrow = 1, .wide = 1,
     .is_cast = true},
    {".grad", KERNEL_SOFTMAX_LOSS, IMPL_EAGER, .narrow = 1, .wide = 2},
    END};
/* Scale, mask, softmax, cast, dropout in one kernel. */
static const struct pass softmax_inductor[] = {
    {"", KERNEL_SOFTMAX_LOSS, IMPL_INDUCTOR, .narrow = 2}, END};
static const struct pass softmax_inductor_backward[] = {
    {".grad", KERNEL_SOFTMAX_LOSS, IMPL_INDUCTOR, .narrow = 3}, END};

/* abs, max; to fp32 and scaled, clamped, cast (torchao's hp_tensor_to_float8_dynamic). */
#define FP8_CAST_EAGER                                                                             \
    {".scale", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .narrow = 1, .wide = 1},                        \
        {".clamp", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .wide = 2},                                 \
    {                                                                                              \
        ".to_fp8", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .wide = 1, .once = 1                        \
    }
#define FP8_EAGER                                                                                  \
    {".abs", KERNEL_ELEMENTWISE, IMPL_EAGER, .narrow = 2},                                         \
        {".amax", KERNEL_REDUCE, IMPL_EAGER, .narrow = 1}, FP8_CAST_EAGER
#define FP8_TURN                                                                                   \
    {                                                                                              \
        ".turn", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .once = 2                                     \
    }
static const struct pass fp8_eager[] = {FP8_EAGER, END};
static const struct pass fp8_eager_turned[] = {FP8_EAGER, FP8_TURN, END};
static const struct pass fp8_eager_twice[] = {FP8_EAGER, FP8_EAGER, FP8_TURN, END};
/* What is written turned is written in strides. */
#define FP8_CAST(by, turned_bytes)                                                                 \
    {                                                                                              \
        ".to_fp8", KERNEL_ELEMENTWISE, (by), .narrow = 1, .once = 1 + (turned_bytes)               \
    }
#define FP8_AMAX                                                                                   \
    {                                                                                              \
        ".amax", KERNEL_REDUCE, IMPL_INDUCTOR, .narrow = 1                                         \
    }
static const struct pass fp8_tensorwise[] = {FP8_AMAX, FP8_CAST(IMPL_INDUCTOR, 0), END};
static const struct pass fp8_tensorwise_turned[] = {FP8_CAST(IMPL_COMPOSITE, 0), END};
static const struct pass fp8_tensorwise_both[] = {FP8_AMAX, FP8_CAST(IMPL_COMPOSITE, 1), END};
static const struct pass fp8_turn[] = {FP8_TURN, END};
static const struct pass fp8_rowwise[] = {FP8_CAST(IMPL_INDUCTOR, 0), END};
static const struct pass fp8_rowwise_inside[] = {
    {".to_fp8", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .once = 1}, END};
static const struct pass fp8_rowwise_turned[] = {
    ELEMENT(".turn", IMPL_COMPOSITE, 2),
    {".turned.to_fp8", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .narrow = 1, .once = 1},
    END};
static const struct pass fp8_rowwise_both[] = {
    {".to_fp8", KERNEL_ELEMENTWISE, IMPL_COMPOSITE, .narrow = 2, .once = 1},
    {".turned.to_fp8", KERNEL_ELEMENTWISE, IMPL_INDUCTOR, .narrow = 1, .once = 1},
    END};
/* Eager: the scales' product is a tensor in fp32, then the multiplication. */
static const struct pass fp8_rescale_eager[] = {
    {".scales", KERNEL_ELEMENTWISE, IMPL_EAGER, .wide = 1},
    {".rescale", KERNEL_ELEMENTWISE, IMPL_EAGER, .narrow = 2, .wide = 1},
    END};
static const struct pass fp8_rescale[] = {ELEMENT(".rescale", IMPL_INDUCTOR, 2), END};

static const struct pass copy_eager[] = {ELEMENT("", IMPL_COMPOSITE, 2), END};
static const struct pass copy_inductor[] = {ELEMENT("", IMPL_INDUCTOR, 2), END};

static const struct cell table[FUSION_OP_COUNT][FUSION_MODE_COUNT] = {
    [FUSION_RMS_NORM] = {{rms_eager, rms_eager_backward},
                         {norm_inductor, norm_inductor_backward},
                         {norm_hand, norm_hand_backward}},
    [FUSION_RMS_NORM_RESIDUAL] = {{rms_eager, rms_eager_backward},
                                  {norm_residual_inductor, norm_inductor_backward},
                                  {norm_hand, norm_hand_backward}},
    [FUSION_LAYER_NORM] = {{layer_eager, layer_eager_backward},
                           {norm_inductor, norm_inductor_backward},
                           {norm_hand, norm_hand_backward}},
    [FUSION_LAYER_NORM_RESIDUAL] = {{layer_eager, layer_eager_backward},
                                    {norm_residual_inductor, norm_inductor_backward},
                                    {norm_hand, norm_hand_backward}},
    [FUSION_RESIDUAL] = {{sum_eager, none}, {sum_inductor, none}, {sum_eager, none}},
    [FUSION_RESIDUAL_INSIDE] = {{sum_eager, none}, {none, none}, {sum_eager, none}},
    [FUSION_GRAD_SUM] = {{none, sum_eager}, {none, none}, {none, sum_eager}},
    [FUSION_ROTARY] = {{rotary_eager, rotary_eager},
                       {rotary_inductor, rotary_inductor},
                       {rotary_hand, rotary_hand}},
    [FUSION_ROTARY_COMPLEX] = {{rotary_complex_eager, rotary_complex_eager},
                               {rotary_complex_inductor, rotary_complex_inductor},
                               {rotary_hand, rotary_hand}},
    [FUSION_ACTIVATION] = {{act_eager, act_eager_backward},
                           {act_inductor, act_inductor_backward},
                           {act_eager, act_eager_backward}},
    [FUSION_GATED_ACTIVATION] = {{gated_eager, gated_eager_backward},
                                 {gated_inductor, gated_inductor_backward},
                                 {gated_hand, gated_hand_backward}},
    [FUSION_GELU_NEW] = {{gelu_new_eager, gelu_new_eager_backward},
                         {act_inductor, act_inductor_backward},
                         {gelu_new_eager, gelu_new_eager_backward}},
    [FUSION_GATED_GELU_NEW] = {{gated_gelu_new_eager, gated_gelu_new_eager_backward},
                               {gated_inductor, gated_inductor_backward},
                               {gated_hand, gated_hand_backward}},
    [FUSION_DROPOUT] = {{dropout_eager, dropout_eager_backward},
                        {none, none},
                        {dropout_eager, dropout_eager_backward}},
    [FUSION_BIAS_GRAD] = {{none, bias_eager}, {none, bias_inductor}, {none, bias_eager}},
    [FUSION_SCORES_MASK] = {{mask_eager, mask_eager_backward},
                            {none, none},
                            {mask_eager, mask_eager_backward}},
    [FUSION_SOFTMAX] = {{softmax_eager, softmax_eager_backward},
                        {softmax_inductor, softmax_inductor_backward},
                        {softmax_eager, softmax_eager_backward}},
    [FUSION_SOFTMAX_WIDE] = {{softmax_wide_eager, softmax_wide_eager_backward},
                             {softmax_inductor, softmax_inductor_backward},
                             {softmax_wide_eager, softmax_wide_eager_backward}},
    [FUSION_SCORES_DROPOUT] = {{dropout_eager, dropout_eager_backward},
                               {none, none},
                               {dropout_eager, dropout_eager_backward}},
    [FUSION_FP8_TENSORWISE] = {{fp8_eager, fp8_eager},
                               {fp8_tensorwise, fp8_tensorwise},
                               {fp8_eager, fp8_eager}},
    [FUSION_FP8_TENSORWISE_TURNED] = {{fp8_eager_turned, fp8_eager_turned},
                                      {fp8_tensorwise_turned, fp8_tensorwise_turned},
                                      {fp8_eager_turned, fp8_eager_turned}},
    [FUSION_FP8_TENSORWISE_BOTH] = {{fp8_eager_turned, fp8_eager_turned},
                                    {fp8_tensorwise_both, fp8_tensorwise_both},
                                    {fp8_eager_turned, fp8_eager_turned}},
    [FUSION_FP8_TURN] = {{fp8_turn, fp8_turn}, {fp8_turn, fp8_turn}, {fp8_turn, fp8_turn}},
    [FUSION_FP8_ROWWISE] = {{fp8_eager, fp8_eager},
                            {fp8_rowwise, fp8_rowwise},
                            {fp8_eager, fp8_eager}},
    [FUSION_FP8_ROWWISE_INSIDE] = {{fp8_eager, fp8_eager},
                                   {fp8_rowwise_inside, fp8_rowwise_inside},
                                   {fp8_eager, fp8_eager}},
    [FUSION_FP8_ROWWISE_TURNED] = {{fp8_eager_turned, fp8_eager_turned},
                                   {fp8_rowwise_turned, fp8_rowwise_turned},
                                   {fp8_eager_turned, fp8_eager_turned}},
    [FUSION_FP8_ROWWISE_BOTH] = {{fp8_eager_twice, fp8_eager_twice},
                                 {fp8_rowwise_both, fp8_rowwise_both},
                                 {fp8_eager_twice, fp8_eager_twice}},
    [FUSION_FP8_RESCALE] = {{fp8_rescale_eager, fp8_rescale_eager},
                            {fp8_rescale, fp8_rescale},
                            {fp8_rescale_eager, fp8_rescale_eager}},
    [FUSION_COPY] = {{copy_eager, copy_eager},
                     {copy_inductor, copy_inductor},
                     {copy_eager, copy_eager}},
};

enum fusion_mode fusion_mode_of(const struct train_shape *shape)
{
    if (shape->is_compiled)
        return FUSION_COMPILED;
    return shape->has_fused_kernels ? FUSION_HAND : FUSION_EAGER;
}

void emit_op(struct kernel_sink *sink, enum fusion_mode mode, enum fusion_op op, const char *name,
             struct fusion_size size)
{
    const struct cell *cell = &table[op][mode];
    const struct pass *pass = sink->pass == PASS_FORWARD ? cell->forward : cell->backward;
    double narrow_bytes = (double)dtype_bytes(sink->dtype);
    enum kernel_impl impl = sink->impl;
    for (; pass->suffix != NULL; pass++) {
        if ((pass->is_cast && sink->dtype == DTYPE_FP32) || (pass->for_weight && sink->is_frozen))
            continue;
        double readers = size.reader_count > 1.0 ? size.reader_count - 1.0 : 0.0;
        double bytes = size.elements * (narrow_bytes * (pass->narrow + pass->per_reader * readers) +
                                        4.0 * pass->wide + pass->once) +
                       size.tokens * pass->token_bytes +
                       (pass->reads_weight ? size.weight_bytes : 0.0);
        sink->impl = pass->impl;
        emit_bytes(sink,
                   pass->suffix[0] == '\0' ? name : join_names(sink->arena, name, pass->suffix),
                   pass->kind, bytes);
    }
    sink->impl = impl;
}

enum fusion_op fusion_norm_op(const struct train_shape *shape, enum norm_kind norm,
                              bool follows_residual)
{
    if (norm == NORM_RMS && !shape->has_fused_norms)
        return follows_residual ? FUSION_RMS_NORM_RESIDUAL : FUSION_RMS_NORM;
    return follows_residual ? FUSION_LAYER_NORM_RESIDUAL : FUSION_LAYER_NORM;
}

int64_t fusion_norm_saved_bytes(const struct train_shape *shape, enum fusion_mode mode,
                                enum norm_kind norm, int64_t element_bytes, int64_t elements,
                                int64_t rows, bool is_frozen)
{
    if (norm == NORM_LAYER)
        return elements * element_bytes + 8 * rows; /* x, mean, 1/sigma */
    if (mode != FUSION_EAGER || shape->has_fused_norms)
        return elements * element_bytes + 4 * rows; /* x, 1/rms */
    /* x in fp32, for the weight's gradient normalised x, 1/rms */
    return elements * (4 + (is_frozen ? 0 : element_bytes)) + 4 * rows;
}
