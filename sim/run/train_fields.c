/* run/train_fields.c: the fields of `train`. */
#include "run/experiment_private.h"

static const struct choice checkpointing_choices[] = {
    {"none", CHECKPOINT_NONE, "keep every activation"},
    {"full", CHECKPOINT_FULL, "keep a block's input, compute the block again in backward"},
    {"selective", CHECKPOINT_SELECTIVE_OP,
     "keep every second matmul and attention, compute the rest again (torchtitan's per-op policy)"},
    {"per_child", CHECKPOINT_PER_CHILD, "attention, MLP and norms each checkpointed on their own"},
    {0}};

static const struct choice attention_choices[] = {
    {"flash", ATTENTION_FA2, "FlashAttention-2, as SDPA's flash backend"},
    {"sdpa", ATTENTION_FA2, "the same"},
    {"fa1", ATTENTION_FA1, "FlashAttention 1"},
    {"fa2", ATTENTION_FA2, "FlashAttention 2"},
    {"fa3", ATTENTION_FA3, "FlashAttention 3 (Hopper)"},
    {"triton", ATTENTION_TRITON, "the Triton kernel of 2022-23 (llm-foundry's attn_impl: triton)"},
    {"xformers", ATTENTION_XFORMERS, "CUTLASS memory-efficient"},
    {"cudnn", ATTENTION_CUDNN, "cuDNN fused attention"},
    {"eager", ATTENTION_EAGER, "scores and softmax in memory"},
    {0}};

static const struct choice loss_choices[] = {
    {"eager", LOSS_EAGER, "logits, upcast, log-softmax, nll"},
    {"fused", LOSS_FUSED, "one fused kernel over the logits (Liger, Apex)"},
    {"linear", LOSS_LINEAR, "fused with the head's matmul: no logits in memory"},
    {0}};

static const struct choice float8_choices[] = {
    {"none", FLOAT8_NONE, NULL},
    {"tensorwise", FLOAT8_TENSORWISE, "linear layers of the blocks, dynamic scaling by tensor"},
    {"rowwise", FLOAT8_ROWWISE, "dynamic scaling by row"},
    {"rowwise_with_gw_hp", FLOAT8_ROWWISE_GW_HP, "by row; gradients of weights in param_dtype"},
    {0}};

static const struct choice rotary_choices[] = {
    {"real", ROTARY_REAL, "in real numbers, which compile fuses (transformers)"},
    {"complex", ROTARY_COMPLEX,
     "as a product of complex numbers, which compile does not fuse (Meta's Llama, torchtitan)"},
    {0}};

static const struct choice experts_choices[] = {
    {"grouped", EXPERTS_GROUPED, "one product a projection over tokens sorted by expert"},
    {"loop", EXPERTS_LOOP,
     "expert by expert; the host waits for the number of tokens of each (transformers' Mixtral)"},
    {0}};

static const struct field checkpointing_fields[] = {
    {.key = "policy",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct checkpointing_config, policy),
     .default_text = "full",
     .choices = checkpointing_choices,
     .help = "which activations are kept for backward"},
    {.key = "every",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct checkpointing_config, every),
     .default_text = "1",
     .min = 1,
     .max = 1 << 14,
     .help = "checkpoint every n-th block only"},
    {.key = "early_stop",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct checkpointing_config, early_stop),
     .default_text = "true",
     .help = "recompute ends with the last tensor that the backward reads, not with the block: "
             "torch.utils.checkpoint with use_reentrant=False, PyTorch 2.1 on; compiled blocks do "
             "so always"},
    {.key = "save_attention",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct checkpointing_config, save_attention),
     .default_text = "true",
     .help = "selective: false: attention runs again as well, as torchtitan's list of kept "
             "operations made cuDNN's do until December 2025"},
    {.key = "reentrant",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct checkpointing_config, reentrant),
     .default_text = "false",
     .help = "torch.utils.checkpoint with use_reentrant=True around the unit, as Hugging Face's "
             "gradient_checkpointing: recompute runs to the end and gathers the unit for itself; "
             "under fsdp1 a frozen unit keeps its input and that input's gradient until backward "
             "ends"},
    {.key = "inside_unit",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct checkpointing_config, inside_unit),
     .default_text = "false",
     .help = "a reentrant checkpoint inside the unit instead of around it "
             "(apply_activation_checkpointing on wrapped modules): the hooks of the unit do not "
             "run again, those of units inside it do"},
    {0}};

static const struct field_table checkpointing_table = {.name = "activation_checkpointing",
                                                       .help = "a policy's word, or a map",
                                                       .fields = checkpointing_fields,
                                                       .struct_bytes =
                                                           sizeof(struct checkpointing_config)};

static const struct choice fused_kernels_choices[] = {
    {"false", FUSED_NONE, NULL},
    {"true", FUSED_ALL, "norm, rotary and activation (Liger, Apex, TransformerEngine)"},
    {"norm_rotary", FUSED_NORM_ROTARY, "the activation as PyTorch's operations (foak, Unsloth)"},
    {0}};

static const struct choice upcast_choices[] = {
    {"true", UPCAST_LOSS, "by the loss; those of the head live as long"},
    {"model", UPCAST_MODEL, "by the model, which gives back fp32"},
    {"false", UPCAST_NONE, NULL},
    {0}};

static const struct choice kept_choices[] = {
    {"false", OUTPUT_DROPPED, "dropped when the loss is taken out of it (Hugging Face's Trainer)"},
    {"true", OUTPUT_UNTIL_BACKWARD, "until backward is over: pred = model(x); loss_fn(pred, y)"},
    {"next_step", OUTPUT_UNTIL_NEXT_OUTPUT,
     "until the next forward has given another, loss included: outputs = model(**batch) of "
     "Hugging Face's models"},
    {0}};

static const struct field loss_fields[] = {{.key = "impl",
                                            .kind = FIELD_ENUM,
                                            .offset = offsetof(struct loss_config, impl),
                                            .default_text = "eager",
                                            .choices = loss_choices,
                                            .help = "implementation"},
                                           {.key = "chunks",
                                            .kind = FIELD_COUNT,
                                            .offset = offsetof(struct loss_config, chunks),
                                            .default_text = "1",
                                            .min = 1,
                                            .max = 1 << 20,
                                            .help = "pieces the loss is computed in"},
                                           {.key = "upcast",
                                            .kind = FIELD_ENUM,
                                            .offset = offsetof(struct loss_config, upcast),
                                            .default_text = "true",
                                            .choices = upcast_choices,
                                            .help = "logits to fp32 for the loss"},
                                           {.key = "shifted",
                                            .kind = FIELD_BOOL,
                                            .offset = offsetof(struct loss_config, shifted),
                                            .default_text = "false",
                                            .help = "the loss reads a copy of the logits without "
                                                    "each sequence's last token (Hugging Face's "
                                                    "models up to transformers 4.45)"},
                                           {.key = "keeps_logits",
                                            .kind = FIELD_ENUM,
                                            .offset = offsetof(struct loss_config, keeps_logits),
                                            .default_text = "false",
                                            .choices = kept_choices,
                                            .help = "how long a variable of the training loop "
                                                    "holds the model's output"},
                                           {.key = "metrics",
                                            .kind = FIELD_COUNT,
                                            .offset = offsetof(struct loss_config, metrics),
                                            .default_text = "0",
                                            .min = 0,
                                            .max = 100,
                                            .help = "cross-entropies computed of the logits beside "
                                                    "the loss, in fp32 and without gradient "
                                                    "(Composer's training metrics: 2)"},
                                           {0}};

static const struct field_table loss_table = {.name = "loss",
                                              .help = "cross-entropy",
                                              .fields = loss_fields,
                                              .struct_bytes = sizeof(struct loss_config)};

static const struct choice max_split_choices[] = {{"none", 0, "blocks of any size are split"}, {0}};

static const struct choice division_choices[] = {{"none", 0, "sizes are rounded to 512 B"},
                                                 {"2", 2, NULL},
                                                 {"4", 4, NULL},
                                                 {"8", 8, NULL},
                                                 {"16", 16, NULL},
                                                 {"32", 32, NULL},
                                                 {"64", 64, NULL},
                                                 {0}};

static const struct field allocator_fields[] = {
    {.key = "expandable_segments",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct allocator_config, expandable_segments),
     .default_text = "false",
     .help = "segments grow page by page instead of being asked for one by one"},
    {.key = "max_split_size_mb",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct allocator_config, max_split_size_mb),
     .default_text = "none",
     .min = 21,
     .max = 1 << 20,
     .choices = max_split_choices,
     .help = "MiB from which on a block is not split"},
    {.key = "roundup_power2_divisions",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct allocator_config, roundup_power2_divisions),
     .default_text = "none",
     .choices = division_choices,
     .help = "steps between two powers of two that sizes are rounded up to"},
    {0}};

static const struct field_table allocator_table = {
    .name = "allocator",
    .help = "PyTorch's caching allocator, as PYTORCH_CUDA_ALLOC_CONF sets it",
    .fields = allocator_fields,
    .struct_bytes = sizeof(struct allocator_config)};

static const struct choice quantization_choices[] = {
    {"none", QUANTIZE_NONE, "the base in base_dtype"},
    {"nf4", QUANTIZE_NF4, "linear layers of the blocks in 4 bits (bitsandbytes, torchao): QLoRA"},
    {0}};

static const struct choice adapter_dtype_choices[] = {
    {"param", 0, "as param_dtype"},
    {"fp32", 1, "PEFT's autocast_adapter_dtype: the layer's input is cast to fp32 and back"},
    {0}};

static const struct choice base_dtype_choices[] = {{"param", 0, "as param_dtype"},
                                                   {"fp32", DTYPE_FP32 + 1, NULL},
                                                   {"bf16", DTYPE_BF16 + 1, NULL},
                                                   {"fp16", DTYPE_FP16 + 1, NULL},
                                                   {0}};

static const struct field lora_fields[] = {
    {.key = "rank",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct lora_config, rank),
     .is_required = true,
     .min = 1,
     .max = 1 << 14,
     .help = "of the adapters (PEFT: r)"},
    {.key = "alpha",
     .kind = FIELD_REAL,
     .offset = offsetof(struct lora_config, alpha),
     .default_text = "16",
     .min = 0,
     .max = 1e9,
     .help = "scale alpha / rank; it changes no time and no memory (PEFT: lora_alpha)"},
    {.key = "target_modules",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct lora_config, targets),
     .is_required = true,
     .help = "linear layers with an adapter: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
             "down_proj, or all-linear"},
    {.key = "dropout",
     .kind = FIELD_REAL,
     .offset = offsetof(struct lora_config, dropout),
     .default_text = "0",
     .min = 0,
     .max = 1,
     .help = "before the adapters (PEFT: lora_dropout)"},
    {.key = "adapter_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct lora_config, adapter_dtype),
     .default_text = "param",
     .choices = adapter_dtype_choices,
     .help = "what an adapter's input is cast to (what its weights are kept in: storage_dtype)"},
    {.key = "fused_scale",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct lora_config, fused_scale),
     .default_text = "false",
     .help = "alpha / rank is part of the adapter's products (Triton kernels of NeMo AutoModel), "
             "not a pass of its own"},
    {.key = "output_copy",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct lora_config, output_copy),
     .default_text = "false",
     .help = "what the base's product made is copied before the adapter's is added (PEFT on "
             "bitsandbytes' packed weights)"},
    {.key = "quantization",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct lora_config, quantization),
     .default_text = "none",
     .choices = quantization_choices,
     .help = "of the frozen base"},
    {.key = "double_quant",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct lora_config, double_quant),
     .default_text = "false",
     .help = "nf4: scales in 8 bits too: 4.127 bits a weight instead of 4.5 (bitsandbytes: "
             "bnb_4bit_use_double_quant)"},
    {.key = "holds_inputs",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct lora_config, holds_inputs),
     .default_text = "false",
     .help = "nf4: every product with a packed weight holds its input until the graph is gone "
             "(bitsandbytes before 0.43.3)"},
    {.key = "base_dtype",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct lora_config, base_dtype),
     .default_text = "param",
     .choices = base_dtype_choices,
     .help = "what frozen parameters are kept in; storage_dtype is that of the adapters "
             "(accelerate with FSDP2 and mixed precision: fp32)"},
    {0}};

static const struct field norms_fields[] = {
    {.key = "fused",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct norms_config, fused),
     .default_text = "false",
     .help = "eager: torch.nn.RMSNorm is one kernel: torch 2.9, nightly builds since July 2025"},
    {.key = "cooperative",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct norms_config, cooperative),
     .default_text = "false",
     .help =
         "norms need all SMs at once (cooperative launch): they wait for a collective that runs"},
    {.key = "sm_margin",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct norms_config, sm_margin),
     .default_text = "0",
     .min = 0,
     .max = 10000,
     .help = "SMs that cooperative norms leave to others (NVTE_FWD_LAYERNORM_SM_MARGIN)"},
    {0}};
static const struct field_table norms_table = {
    .name = "norms", .fields = norms_fields, .struct_bytes = sizeof(struct norms_config)};

static const struct field_table lora_table = {
    .name = "lora",
    .help = "low-rank adapters on a frozen base; without it every parameter is trained",
    .fields = lora_fields,
    .struct_bytes = sizeof(struct lora_config)};

static const struct field train_fields[] = {
    {.key = "seq_len",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, seq_len),
     .min = 1,
     .max = 1 << 24,
     .help = "tokens a sequence (abstract models: 1 if not given)"},
    {.key = "decoder_seq_len",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, decoder_seq_len),
     .min = 1,
     .max = 1 << 24,
     .help = "encoder-decoder models: tokens of the target (seq_len if not given)"},
    {.key = "micro_batch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, micro_batch),
     .default_text = "1",
     .min = 1,
     .max = 1 << 16,
     .help = "sequences per GPU and microbatch"},
    {.key = "grad_accum",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, grad_accum),
     .min = 1,
     .max = 4096,
     .help = "microbatches a step, gradients reduced in each (1, or what global_batch asks for)"},
    {.key = "global_batch",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, global_batch),
     .min = 1,
     .max = 1 << 30,
     .help = "sequences a step over all GPUs, instead of grad_accum"},
    {.key = "precision",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, precision),
     .table = &precision_table,
     .help = "dtypes"},
    {.key = "optimizer",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, optimizer),
     .table = &optimizer_table,
     .help = "the optimizer"},
    {.key = "activation_checkpointing",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, checkpointing),
     .default_text = "none",
     .table = &checkpointing_table,
     .scalar_key = "policy",
     .help = "none, full, selective, per_child, or {every: n}"},
    {.key = "attention",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct train_config, attention),
     .default_text = "flash",
     .choices = attention_choices,
     .help = "attention implementation"},
    {.key = "float8",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct train_config, float8),
     .default_text = "none",
     .choices = float8_choices,
     .help = "linear layers in float8"},
    {.key = "experts",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct train_config, experts),
     .default_text = "grouped",
     .choices = experts_choices,
     .help = "models with experts: how these are run"},
    {.key = "host_syncs",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, host_syncs),
     .default_text = "0",
     .min = 0,
     .max = 64,
     .help = "times the host waits for the GPU within the forward of each block, evenly spread: "
             "routing of experts (.tolist()), .item(), logging"},
    {.key = "packed_sequence_check",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct train_config, checks_packing),
     .default_text = "false",
     .help = "each attention reads on the host whether position ids fall, as FlashAttention-2 of "
             "transformers does from 4.44 on (its issue 39213): the host waits for the GPU there"},
    {.key = "cuda_device_max_connections",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct train_config, hardware_queues),
     .default_text = "8",
     .min = 1,
     .max = 32,
     .help =
         "hardware queues that streams are spread over (CUDA_DEVICE_MAX_CONNECTIONS): with fewer "
         "queues than streams, operations of one queue begin in order of issue"},
    {.key = "rotary",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct train_config, rotary),
     .default_text = "real",
     .choices = rotary_choices,
     .help = "how rotary position embeddings are written"},
    {.key = "loss",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, loss),
     .table = &loss_table,
     .scalar_key = "impl",
     .help = "cross-entropy: eager, fused, linear, or a map"},
    {.key = "key_value_cache",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct train_config, key_value_cache),
     .default_text = "false",
     .help = "keys and values of every block are in the model's output, as long as "
             "'loss.keeps_logits' says: use_cache of Hugging Face's models, which is on unless the "
             "script or their own gradient_checkpointing turns it off"},
    {.key = "microbatch_costs",
     .kind = FIELD_LIST,
     .offset = offsetof(struct train_config, microbatch_costs),
     .table = &microbatch_cost_table,
     .help = "microbatches that take longer or shorter on some GPUs"},
    {.key = "norms",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, norms),
     .table = &norms_table,
     .help = "how norms are launched"},
    {.key = "tensor_parallel",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, tensor_parallel),
     .table = &tensor_parallel_table,
     .help = "how 'mesh.tp' is done"},
    {.key = "lora",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, lora),
     .table = &lora_table,
     .help = "adapters on a frozen base"},
    {.key = "frozen",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct train_config, frozen),
     .is_line = true,
     .help =
         "modules that are not trained (requires_grad_(False)): embed_tokens, layers.0-15, norm, "
         "lm_head; backward ends behind those that nothing trained stands before"},
    {.key = "allocator",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, allocator),
     .table = &allocator_table,
     .help = "the caching allocator of GPU memory"},
    {.key = "data_loader",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, loading),
     .table = &loading_table,
     .help = "torch.utils.data.DataLoader: a step cannot be faster than its batches come"},
    {.key = "checkpoint",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct train_config, saving),
     .table = &saving_table,
     .help = "saving of checkpoints (torch.distributed.checkpoint; activations are recomputed by "
             "activation_checkpointing)"},
    {.key = "max_grad_norm",
     .kind = FIELD_REAL,
     .offset = offsetof(struct train_config, max_grad_norm),
     .default_text = "1.0",
     .min = 0,
     .max = 1e9,
     .help = "gradient norm clipping; 0: none"},
    {.key = "compile",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct train_config, compile),
     .default_text = "false",
     .help = "torch.compile of each block: fused kernels, cheaper launches"},
    {.key = "fused_kernels",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct train_config, fused_kernels),
     .default_text = "false",
     .choices = fused_kernels_choices,
     .help = "hand-fused kernels of the blocks and the final norm"},
    {0}};

const struct field_table train_table = {.name = "train",
                                        .help = "how the model is trained",
                                        .fields = train_fields,
                                        .struct_bytes = sizeof(struct train_config)};
