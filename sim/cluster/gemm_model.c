/* cluster/gemm_model.c: a GPU's own figures over a measured grid. */
#include "cluster/gemm_model.h"

#include <math.h>

#include "base/strbuf.h"
#include "cluster/gemm_grid.h"

struct gemm_model {
    struct gemm_grid grid;
    const struct gemm_table *tables[DTYPE_COUNT];
    struct gemm_device devices[DTYPE_COUNT];
    double ceiling_frac, backward_frac, rowwise_frac, sustained_clock_frac, stream_frac;
    bool is_derived;
};

/* Whose r a dtype uses: its own, else that of 16 bits, else any that is there. */
static const struct gemm_table *table_for(const struct gemm_grid *grid, enum dtype dtype)
{
    const struct gemm_table *half =
        grid->tables[DTYPE_BF16] ? grid->tables[DTYPE_BF16] : grid->tables[DTYPE_FP16];
    for (int i = 0; i < DTYPE_COUNT && !half; i++)
        half = grid->tables[i];
    switch (dtype) {
    case DTYPE_BF16:
    case DTYPE_FP16:
        return half;
    case DTYPE_FP8:
    case DTYPE_FP32:
        return grid->tables[dtype] ? grid->tables[dtype] : half;
    case DTYPE_FP64:
        return table_for(grid, DTYPE_FP32);
    case DTYPE_COUNT:
        break;
    }
    BUG("dtype %d", (int)dtype);
}

static void device_fill(struct gemm_model *model, const struct gemm_spec *spec, enum dtype dtype)
{
    const struct gemm_device *from = &model->tables[dtype]->device;
    struct gemm_device *device = &model->devices[dtype];
    *device = (struct gemm_device){
        .peak_flop_per_s = spec->peak_flop_per_s[dtype],
        .hbm_bytes_per_s = spec->hbm_bytes_per_s,
        .sm_count = (double)spec->sm_count,
        .floor_s =
            model->is_derived && spec->kernel_floor_s > 0 ? spec->kernel_floor_s : from->floor_s,
        .wave_frac = from->wave_frac,
    };
    gemm_element_bytes(dtype, &device->operand_bytes, &device->result_bytes);
}

enum status gemm_model_new(struct arena *arena, struct diag *diag, const struct gemm_spec *spec,
                           const char *grid_path, struct gemm_model **out)
{
    struct gemm_model *model = ARENA_NEW(arena, struct gemm_model);
    *out = NULL;
    model->ceiling_frac = spec->ceiling_frac;
    model->backward_frac = spec->backward_frac > 0 ? spec->backward_frac : 1;
    model->rowwise_frac = spec->rowwise_frac > 0 ? spec->rowwise_frac : 1;
    model->sustained_clock_frac = spec->sustained_clock_frac > 0 ? spec->sustained_clock_frac : 1;
    model->stream_frac = spec->stream_frac > 0 ? spec->stream_frac : 1;
    enum status status = gemm_grid_read(arena, diag, grid_path, &model->grid);
    if (status != STATUS_OK)
        return status;
    model->is_derived = !text_equal(model->grid.gpu_name, spec->gpu_name);
    for (int i = 0; i < DTYPE_COUNT; i++) {
        model->tables[i] = table_for(&model->grid, (enum dtype)i);
        device_fill(model, spec, (enum dtype)i);
    }
    *out = model;
    return STATUS_OK;
}

static struct gemm_shape shape_of(const struct kernel *kernel)
{
    return (struct gemm_shape){(double)kernel->m, (double)kernel->n, (double)kernel->k,
                               kernel->batch > 0 ? (double)kernel->batch : 1};
}

/* The shape whose r is taken: the tile of the GPU of the table works as long on it as the tile of
   this one on `shape`, so that what start and end of a tile cost is the same share. */
static struct gemm_shape shape_alike(const struct gemm_table *table,
                                     const struct gemm_device *device,
                                     const struct gemm_shape *shape)
{
    struct gemm_shape alike = *shape;
    alike.k *= table->device.peak_flop_per_s / table->device.sm_count /
               (device->peak_flop_per_s / device->sm_count);
    return alike;
}

static bool is_memory_bound_in_table(const struct gemm_table *table, const struct gemm_shape *alike)
{
    struct gemm_shape inside = {gemm_axis_clamp(&table->m, alike->m * alike->batch),
                                gemm_axis_clamp(&table->n, alike->n),
                                gemm_axis_clamp(&table->k, alike->k), 1};
    struct gemm_parts parts = gemm_basis(&table->device, &inside);
    return parts.memory_s > parts.compute_s;
}

/* The parts of a burst, with what the table found beyond the basis. */
static struct gemm_parts burst_parts(const struct gemm_model *model, enum dtype dtype,
                                     const struct gemm_shape *shape)
{
    const struct gemm_table *table = model->tables[dtype];
    const struct gemm_device *device = &model->devices[dtype];
    struct gemm_parts parts = gemm_basis(device, shape);
    struct gemm_shape alike = shape_alike(table, device, shape);
    double r = gemm_r(table, &alike);
    bool is_memory_bound = parts.memory_s > parts.compute_s;
    parts.compute_s *= r;
    if (is_memory_bound && !is_memory_bound_in_table(table, &alike)) {
        parts.memory_s /= model->stream_frac;
        return parts;
    }
    parts.memory_s *= r;
    parts.floor_s *= r;
    return parts;
}

double gemm_model_burst_s(const struct gemm_model *model, const struct kernel *kernel)
{
    struct gemm_shape shape = shape_of(kernel);
    struct gemm_parts parts = burst_parts(model, kernel->dtype, &shape);
    return gemm_parts_s(&parts);
}

double gemm_model_s(const struct gemm_model *model, const struct kernel *kernel, double clock_frac,
                    bool *is_memory_bound)
{
    struct gemm_shape shape = shape_of(kernel);
    const struct gemm_device *device = &model->devices[kernel->dtype];
    struct gemm_parts parts = burst_parts(model, kernel->dtype, &shape);
    /* Ceiling, layouts and sustained clock were measured on the matrix units in 16 bits. */
    bool has_step_data = kernel->dtype != DTYPE_FP32;
    double rate_frac = (has_step_data ? model->sustained_clock_frac : 1) * clock_frac;
    if (kernel->pass == PASS_BACKWARD && has_step_data)
        rate_frac *= model->backward_frac;
    if (kernel->product == PRODUCT_FLOAT8_ROWWISE)
        rate_frac *= model->rowwise_frac;
    parts.compute_s /= rate_frac;
    if (is_memory_bound)
        *is_memory_bound = parts.memory_s > parts.compute_s;
    double seconds = gemm_parts_s(&parts);
    if (model->ceiling_frac <= 0 || !has_step_data)
        return seconds;
    double flop = 2 * shape.batch * shape.m * shape.n * shape.k;
    return fmax(seconds, flop / (device->peak_flop_per_s * model->ceiling_frac * rate_frac));
}

double gemm_model_scatter(const struct gemm_model *model, enum dtype dtype)
{
    const struct gemm_table *table = model->tables[dtype];
    return model->is_derived || table->dtype != dtype ? 0 : table->scatter_frac;
}

bool gemm_model_is_derived(const struct gemm_model *model)
{
    return model->is_derived;
}

struct hash128 gemm_model_content(const struct gemm_model *model)
{
    return model->grid.content;
}

const char *gemm_model_source(const struct gemm_model *model)
{
    return model->grid.source;
}
