/*
 * schedule/fsdp_sizes.c: what of a unit is stored, gathered, reduced and updated.
 *
 * fully_shard gathers the whole unit and reduces the gradients that exist: those of trained
 * parameters. FullyShardedDataParallel with original parameters has one flat parameter, and so one
 * flat gradient, as large as the unit even when a thousandth of it is trained (fsdp_semantics.md
 * 88); without them a flat parameter is trained or frozen as a whole, so adapters are units of
 * their own (fsdp_wrap.c).
 *
 * A weight packed in 4 bits is stored and gathered as it is, half a byte, in a tensor that looks
 * like param_dtype (bnb_4bit_quant_storage), so its size counts in elements of that. Its scales are
 * whole on every GPU under FSDP1 (attributes of bitsandbytes' parameter) and sharded and gathered
 * with the weight under FSDP2 (torchao's NF4Tensor).
 *
 * With fsdp.float8_all_gather a weight of the blocks' linear layers is cast on its shard and
 * gathered as a byte an element, which is half an element of param_dtype
 * (torchao/float8/fsdp_utils.py, WeightWithDynamicFloat8CastTensor). The scales of all of them come
 * from one pass over the shards and one small all-reduce after the optimizer's step
 * (precompute_float8_dynamic_scale_for_fsdp), which is left out: 4 bytes a parameter of a shard.
 *
 * Example, Llama-2-7B, rank 8 on q and v, 8 GPUs, bf16: a block gathers 202,514,432 elements and
 * FSDP2 reduces 131,072 of them.
 */
#include "schedule/fsdp_private.h"

static int64_t storage_bytes(const struct fsdp_builder *builder)
{
    return dtype_bytes((enum dtype)builder->settings->precision.storage_dtype);
}

static int64_t param_bytes(const struct fsdp_builder *builder)
{
    return dtype_bytes((enum dtype)builder->settings->precision.param_dtype);
}

static int64_t split(int64_t count, int64_t ranks)
{
    return (count + ranks - 1) / ranks;
}

void fsdp_size_whole(const struct fsdp_builder *builder, struct fsdp_unit *unit)
{
    const struct precision_config *precision = &builder->settings->precision;
    const int64_t stored = unit->shard * storage_bytes(builder);
    const bool casts = precision->param_dtype != precision->storage_dtype;
    unit->sizes = (struct fsdp_sizes){.stored_bytes = stored,
                                      .cast_shard = casts ? unit->shard : 0,
                                      .cast_stored_bytes = casts ? stored : 0,
                                      .trained = unit->parameters,
                                      .trained_count = unit->param_count,
                                      .reduced_padded = unit->padded,
                                      .reduced_shard = unit->shard,
                                      .optimized_shard = unit->shard};
}

/* So many elements of one GPU, kept in `dtype`. */
static void store(const struct fsdp_builder *builder, struct fsdp_unit *unit, int64_t shard,
                  enum dtype dtype)
{
    struct fsdp_sizes *sizes = &unit->sizes;
    const int64_t bytes = shard * dtype_bytes(dtype);
    sizes->stored_bytes += bytes;
    if (dtype == (enum dtype)builder->settings->precision.param_dtype)
        return;
    sizes->cast_shard += shard;
    sizes->cast_stored_bytes += bytes;
}

/* What of it is gathered, in elements of param_dtype. */
static int64_t store_float8(const struct fsdp_builder *builder, struct fsdp_unit *unit,
                            int64_t shard)
{
    const int64_t bytes = shard * storage_bytes(builder);
    const int64_t gathered = split(shard, param_bytes(builder));
    unit->sizes.stored_bytes += bytes;
    unit->sizes.cast_shard += gathered;
    unit->sizes.cast_stored_bytes += bytes;
    return gathered;
}

static void add_param(const struct fsdp_builder *builder, struct fsdp_unit *unit,
                      const struct param *param, int64_t ranks)
{
    const enum dtype storage = (enum dtype)builder->settings->precision.storage_dtype;
    struct fsdp_sizes *sizes = &unit->sizes;
    int64_t shard = param_shard_numel(param, ranks);
    if (param->is_packed) {
        const double weights = (double)split(param->dim0 * param->rest, ranks);
        const int64_t bytes = (int64_t)(weights * (0.5 + builder->model->packed_scale_bytes));
        shard = split(bytes, param_bytes(builder));
        sizes->stored_bytes += bytes;
    } else if (param->is_frozen) {
        store(builder, unit, shard, builder->settings->base_dtype);
    } else {
        sizes->trained += param->dim0 * param->rest;
        sizes->trained_count++;
        sizes->reduced_shard += shard;
        sizes->reduced_padded += shard * ranks;
        sizes->optimized_shard += shard;
        if (param->is_float8)
            shard = store_float8(builder, unit, shard);
        else
            store(builder, unit, shard, storage);
    }
    unit->shard += shard;
    unit->padded += shard * ranks;
}

void fsdp_size_by_param(struct fsdp_builder *builder, int64_t ranks)
{
    for (int32_t i = 0; i < builder->model->module_count; i++) {
        const struct module_kind *kind = fsdp_kind(builder, i);
        for (int32_t p = 0; p < kind->param_count; p++)
            add_param(builder, &builder->units[fsdp_param_unit(builder, i, p)], &kind->params[p],
                      ranks);
    }
}

/* Elements of a unit by how they are kept. */
struct shares {
    int64_t packed, frozen, trained;
    int32_t trained_count;
};

static struct shares share(const struct fsdp_builder *builder, int32_t unit)
{
    struct shares shares = {0};
    for (int32_t i = 0; i < builder->model->module_count; i++) {
        const struct module_kind *kind = fsdp_kind(builder, i);
        for (int32_t p = 0; p < kind->param_count; p++) {
            if (fsdp_param_unit(builder, i, p) != unit)
                continue;
            const struct param *param = &kind->params[p];
            const int64_t numel = param->dim0 * param->rest;
            *(param->is_packed   ? &shares.packed
              : param->is_frozen ? &shares.frozen
                                 : &shares.trained) += numel;
            shares.trained_count += !param->is_frozen;
        }
    }
    return shares;
}

static void size_flat(struct fsdp_builder *builder, int32_t index, const struct shares *shares)
{
    const int64_t ranks = builder->settings->shard_group.ranks;
    struct fsdp_unit *unit = &builder->units[index];
    struct fsdp_sizes *sizes = &unit->sizes;
    const int64_t packed = split(shares->packed, 2 * param_bytes(builder));
    const double scales = (double)shares->packed * builder->model->packed_scale_bytes;
    unit->shard = split(packed + shares->frozen + shares->trained, ranks);
    unit->padded = unit->shard * ranks;
    const int64_t optimized = split(shares->trained, ranks);
    const int64_t packed_shard = split(packed, ranks);
    *sizes =
        (struct fsdp_sizes){.stored_bytes = packed_shard * param_bytes(builder) + (int64_t)scales,
                            .trained = shares->trained,
                            .trained_count = shares->trained_count,
                            .reduced_shard = shares->trained > 0 ? unit->shard : 0,
                            .optimized_shard = optimized};
    sizes->reduced_padded = sizes->reduced_shard * ranks;
    store(builder, unit, unit->shard - packed_shard - optimized, builder->settings->base_dtype);
    store(builder, unit, optimized, (enum dtype)builder->settings->precision.storage_dtype);
}

void fsdp_size_flat(struct fsdp_builder *builder)
{
    const int64_t ranks = builder->settings->shard_group.ranks;
    for (int32_t i = 0; i < builder->unit_count; i++) {
        struct fsdp_unit *unit = &builder->units[i];
        if (builder->model->frozen_parameters > 0) {
            const struct shares shares = share(builder, i);
            size_flat(builder, i, &shares);
            continue;
        }
        unit->shard = split(unit->parameters, ranks);
        unit->padded = unit->shard * ranks;
        fsdp_size_whole(builder, unit);
    }
}
