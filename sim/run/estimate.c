/* run/estimate.c: closed forms of memory. */
#include "run/estimate.h"

#include "run/experiment_private.h"

const char *estimate_stage_name(enum estimate_stage stage)
{
    static const char *const names[STAGE_COUNT] = {"ddp", "zero1", "zero2", "zero3 (fsdp2)"};
    return names[stage];
}

/* What of a stage's states offload moves to the host; DeepSpeed keeps gradients there in fp32. */
static void move_to_host(const struct experiment *experiment, const struct estimate *estimate,
                         int stage, struct estimate_row *row)
{
    const struct fsdp_config *fsdp = &experiment->fsdp;
    const bool is_fsdp = fsdp->api == API_FSDP2 || fsdp->api == API_FSDP1;
    const bool is_all = is_fsdp && fsdp->cpu_offload.params && stage == STAGE_ZERO3;
    const bool is_zero = !is_fsdp && fsdp->api != API_DDP && stage >= STAGE_ZERO1;
    const bool has_optimizer =
        is_all || (is_zero && experiment->zero.offload_optimizer == OFFLOAD_CPU);
    const bool has_parameters = is_all || (is_zero && stage == STAGE_ZERO3 &&
                                           experiment->zero.offload_param == OFFLOAD_CPU);
    const double fp32 = 4 * (double)estimate->parameters / (double)estimate->ranks;
    if (has_optimizer) {
        row->host_bytes += row->optimizer_bytes + (is_all ? row->gradient_bytes : fp32);
        row->optimizer_bytes = 0;
        row->gradient_bytes = stage >= STAGE_ZERO2 ? 0 : row->gradient_bytes;
    }
    if (has_parameters) {
        row->host_bytes += row->parameter_bytes;
        row->parameter_bytes = 0;
    }
}

static void fill_states(const struct experiment *experiment, struct estimate *estimate,
                        bool has_ddp_buckets)
{
    const double parameters = (double)estimate->parameters;
    const double ranks = (double)estimate->ranks;
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct estimate_row *row = &estimate->rows[stage];
        row->parameter_bytes =
            parameters * estimate->bytes_per_parameter[0] / (stage >= STAGE_ZERO3 ? ranks : 1);
        row->gradient_bytes =
            parameters * estimate->bytes_per_parameter[1] / (stage >= STAGE_ZERO2 ? ranks : 1);
        row->optimizer_bytes =
            parameters * estimate->bytes_per_parameter[2] / (stage >= STAGE_ZERO1 ? ranks : 1);
        move_to_host(experiment, estimate, stage, row);
        row->bucket_bytes = stage == STAGE_DDP && has_ddp_buckets ? row->gradient_bytes : 0;
        row->states_bytes =
            row->parameter_bytes + row->gradient_bytes + row->optimizer_bytes + row->bucket_bytes;
        row->bytes_per_parameter = parameters > 0 ? row->states_bytes / parameters : 0;
    }
}

/* A packed weight is half a byte and its share of the scales. */
static double packed_bytes(const struct experiment *experiment)
{
    return 0.5 + experiment->model->packed_scale_bytes;
}

/* Of a module's parameters, so many bytes an element where they are frozen and trained. */
static double weigh(const struct experiment *experiment, const struct module_kind *kind,
                    double frozen_bytes, double trained_bytes)
{
    double packed = 0;
    for (int32_t p = 0; p < kind->param_count; p++)
        if (kind->params[p].is_packed)
            packed += (double)kind->params[p].dim0 * (double)kind->params[p].rest;
    return packed * packed_bytes(experiment) +
           ((double)kind->frozen_numel - packed) * frozen_bytes +
           (double)(kind->numel - kind->frozen_numel) * trained_bytes;
}

/* Bytes of parameter, gradient and optimizer over all parameters, trained or not. */
static void set_bytes_per_parameter(const struct experiment *experiment, struct estimate *estimate)
{
    const struct train_config *train = &experiment->train;
    const struct model *model = experiment->model;
    const double storage = (double)dtype_bytes((enum dtype)train->precision.storage_dtype);
    const double base = (double)dtype_bytes(lora_base_dtype(train));
    const int master = train->precision.master_dtype;
    const double state =
        optimizer_state_bytes(&train->optimizer) +
        (master == MASTER_NONE ? 0 : (double)dtype_bytes((enum dtype)(master - 1)));
    const double all = model->rank_parameters > 0 ? (double)model->rank_parameters : 1;
    const double trained = (double)model->rank_trained_parameters / all;
    double stored = 0;
    for (int32_t i = 0; i < model->module_count; i++)
        stored += weigh(experiment, &model->kinds[model->modules[i].kind_idx], base, storage);
    const bool is_whole = model->frozen_parameters == 0;
    estimate->bytes_per_parameter[0] = is_whole ? storage : stored / all;
    estimate->bytes_per_parameter[1] = is_whole ? storage : trained * storage;
    estimate->bytes_per_parameter[2] = is_whole ? state : trained * state;
}

void estimate_state_bytes(const struct experiment *experiment, double bytes[3])
{
    struct estimate estimate = {0};
    set_bytes_per_parameter(experiment, &estimate);
    for (int i = 0; i < 3; i++)
        bytes[i] = estimate.bytes_per_parameter[i] * (double)experiment->model->parameters;
}

/* Parameters of the largest block, and of everything outside blocks. */
static void measure_units(const struct experiment *experiment, struct estimate *estimate,
                          double *outside_blocks)
{
    const struct model *model = experiment->model;
    const double param = (double)dtype_bytes((enum dtype)experiment->train.precision.param_dtype);
    *outside_blocks = 0;
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        const double numel = (double)kind->numel;
        if (kind->role != MODULE_BLOCK) {
            *outside_blocks += numel;
        } else if (numel > estimate->largest_unit_parameters) {
            estimate->largest_unit_parameters = numel;
            estimate->largest_unit_trained = (double)(kind->numel - kind->frozen_numel);
            estimate->one_unit_gathered_bytes = weigh(experiment, kind, param, param);
        }
    }
}

/* Whether every unit stays gathered from forward to backward. */
static bool keeps_gathered(const struct experiment *experiment)
{
    const struct fsdp_config *fsdp = &experiment->fsdp;
    return fsdp->api == API_FSDP1 ? !sharding_frees_after_forward(fsdp->sharding_strategy)
                                  : fsdp->reshard_after_forward == 0;
}

/* What stays gathered through forward and backward: the root, or the head; without resharding, all.
 */
static double kept_bytes(const struct experiment *experiment, const struct estimate *estimate,
                         double outside_blocks)
{
    const double param = (double)dtype_bytes((enum dtype)experiment->train.precision.param_dtype);
    if (!keeps_gathered(experiment))
        return outside_blocks * param;
    double bytes = 0;
    for (int32_t i = 0; i < experiment->model->module_count; i++)
        bytes +=
            weigh(experiment, &experiment->model->kinds[experiment->model->modules[i].kind_idx],
                  param, param);
    return estimate->parameters > 0 ? bytes : 0;
}

/* Between forward and backward, and between microbatches: slices of resharded units, gradients that
   are not reduced yet. */
static double waiting_bytes(const struct experiment *experiment, const struct estimate *estimate,
                            double outside_blocks)
{
    const struct fsdp_config *fsdp = &experiment->fsdp;
    const struct precision_config *precision = &experiment->train.precision;
    const double param = (double)dtype_bytes((enum dtype)precision->param_dtype);
    const double reduce =
        fsdp->api == API_FSDP1 ? param : (double)dtype_bytes((enum dtype)precision->reduce_dtype);
    const double slices = fsdp->reshard_after_forward > 1
                              ? ((double)estimate->parameters - outside_blocks) * param /
                                    (double)fsdp->reshard_after_forward
                              : 0;
    const bool waits =
        experiment->train.grad_accum > 1 && fsdp->requires_gradient_sync == MICROBATCH_LAST;
    const double trained = (double)experiment->model->rank_trained_parameters;
    return slices + (waits ? trained * reduce : 0);
}

/* fully_shard, backward: two gathered copies, one gradient, and as many reduce-scatter inputs as
   there are buffers. */
static double in_flight_bytes(const struct experiment *experiment, const struct estimate *estimate)
{
    const struct precision_config *precision = &experiment->train.precision;
    const double param = (double)dtype_bytes((enum dtype)precision->param_dtype);
    const double reduce = (double)dtype_bytes((enum dtype)precision->reduce_dtype);
    const double gathered = keeps_gathered(experiment) ? 0 : 2 * estimate->one_unit_gathered_bytes;
    const int64_t buffers = experiment->fsdp.reduce_scatter_buffers < estimate->layers
                                ? experiment->fsdp.reduce_scatter_buffers
                                : estimate->layers;
    return gathered +
           estimate->largest_unit_trained * (param + reduce * (double)(buffers > 1 ? buffers : 1));
}

static void fill_working(const struct experiment *experiment, struct estimate *estimate,
                         double outside_blocks)
{
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct estimate_row *row = &estimate->rows[stage];
        const bool is_gathering = stage == STAGE_ZERO3 && estimate->ranks > 1;
        const double kept = is_gathering ? kept_bytes(experiment, estimate, outside_blocks) +
                                               waiting_bytes(experiment, estimate, outside_blocks)
                                         : 0;
        row->gathered_bytes = is_gathering ? kept + in_flight_bytes(experiment, estimate) : 0;
        const double loss = kept + estimate->logits_bytes;
        const double backward = row->gathered_bytes + estimate->recomputed_bytes;
        row->working_bytes = estimate->activation_bytes + (loss > backward ? loss : backward);
        row->total_bytes = row->states_bytes + row->working_bytes + estimate->outside_bytes;
    }
}

static void fill_activations(const struct experiment *experiment, struct estimate *estimate)
{
    const struct model *model = experiment->model;
    for (int32_t i = 0; i < model->module_count; i++) {
        const struct module_kind *kind = &model->kinds[model->modules[i].kind_idx];
        if (kind->role == MODULE_LOSS)
            estimate->logits_bytes += (double)(kind->saved_bytes + kind->backward_temp_bytes);
        else
            estimate->activation_bytes += (double)kind->saved_bytes;
        if (kind->is_recomputed &&
            (double)(kind->recompute_saved_bytes - kind->saved_bytes) > estimate->recomputed_bytes)
            estimate->recomputed_bytes = (double)(kind->recompute_saved_bytes - kind->saved_bytes);
    }
    if (model->family != FAMILY_ABSTRACT) {
        estimate->hidden_elements = model->tokens * experiment->model_config.decoder.hidden_size;
        estimate->hidden_bytes =
            (double)(estimate->hidden_elements *
                     dtype_bytes((enum dtype)experiment->train.precision.param_dtype));
    }
    estimate->layers = model->layers;
}

enum status estimate_memory(struct experiment *experiment, double budget_bytes,
                            bool has_ddp_buckets, struct estimate *estimate)
{
    *estimate = (struct estimate){.smallest_fitting = -1};
    const enum status status = experiment_build_model(experiment);
    if (status != STATUS_OK)
        return status;
    const struct gpu *gpu = &experiment->cluster.gpu;
    estimate->parameters = experiment->model->rank_parameters;
    estimate->ranks = experiment->mesh.dp_shard;
    set_bytes_per_parameter(experiment, estimate);
    fill_states(experiment, estimate, has_ddp_buckets);
    double outside_blocks = 0;
    measure_units(experiment, estimate, &outside_blocks);
    fill_activations(experiment, estimate);
    estimate->textbook_peak_bytes =
        estimate->rows[STAGE_ZERO3].states_bytes + estimate->one_unit_gathered_bytes;
    const int64_t communicators = experiment->fsdp.separate_reduce_scatter_communicator ? 2 : 1;
    estimate->outside_bytes =
        (double)(gpu->context_bytes + gpu->workspace_bytes +
                 (estimate->ranks > 1 ? communicators * gpu->communicator_bytes : 0));
    estimate->budget_bytes = budget_bytes > 0 ? budget_bytes : (double)gpu->memory_bytes;
    fill_working(experiment, estimate, outside_blocks);
    for (int stage = STAGE_COUNT - 1; stage >= 0; stage--) {
        struct estimate_row *row = &estimate->rows[stage];
        row->fits = row->total_bytes <= estimate->budget_bytes;
        row->over_bytes = row->fits ? 0 : row->total_bytes - estimate->budget_bytes;
        if (row->fits)
            estimate->smallest_fitting = stage;
    }
    return STATUS_OK;
}
