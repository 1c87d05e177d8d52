/* cluster/override_fields.c: the fields of what differs on a host, a GPU or a NIC. */
#include <stddef.h>

#include "cluster/fields_private.h"

#define FIELD_SHARE(member, text)                                                                  \
    {                                                                                              \
        .key = #member, .kind = FIELD_REAL, .offset = offsetof(struct override_config, member),    \
        .default_text = "1", .min = 0.001, .max = 1, .help = (text)                                \
    }

static void override_check(struct config *config, const char *path, void *bound)
{
    const struct override_config *override = bound;
    if (override->gpu >= 0 && override->nic_frac < 1)
        config_error(config, arena_printf(config->arena, "%s.nic_frac", path),
                     "leave 'gpu' out, or give it in an override of its own",
                     "'nic_frac' is of NICs, but 'gpu' names a GPU");
    if (override->nic >= 0 && !(override->nic_frac < 1))
        config_error(config, arena_printf(config->arena, "%s.nic", path),
                     "give 'nic_frac' beside it", "'nic' without what differs about it");
    if (override->gpu >= 0 && override->nics > 0)
        config_error(config, arena_printf(config->arena, "%s.nics", path),
                     "leave 'gpu' out, or give it in an override of its own",
                     "'nics' is of a whole host, but 'gpu' names one");
    if (override->gpu >= 0 && override->step_latency_s > 0)
        config_error(config, arena_printf(config->arena, "%s.step_latency", path),
                     "leave 'gpu' out, or give it in an override of its own",
                     "'step_latency' is of a whole host, but 'gpu' names one");
}

static const struct choice gpu_choices[] = {{"all", -1, "every GPU of the host"}, {0}};
static const struct choice nic_choices[] = {{"all", -1, "every NIC of the host"}, {0}};

static const struct field override_fields[] = {
    {.key = "host",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, host),
     .is_required = true,
     .min = 0,
     .max = 1e9,
     .help = "which host, from 0"},
    {.key = "gpu",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, gpu),
     .default_text = "all",
     .min = 0,
     .max = 1023,
     .choices = gpu_choices,
     .help = "which GPU of it, from 0"},
    {.key = "nic",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, nic),
     .default_text = "all",
     .min = 0,
     .max = 1023,
     .choices = nic_choices,
     .help = "which NIC of it, from 0, for 'nic_frac'"},
    {.key = "gpu_type",
     .kind = FIELD_REF,
     .offset = offsetof(struct override_config, gpu_type),
     .table = &gpu_table,
     .folder = "topologies/gpus",
     .help = "another kind of GPU stands there"},
    FIELD_SHARE(clock_frac, "compute-bound kernels run at this share of their rate"),
    FIELD_SHARE(hbm_frac, "the GPU's memory runs at this share of its rate"),
    FIELD_SHARE(scale_up_frac, "the GPU's scale-up links run at this share of their rate"),
    FIELD_SHARE(pcie_frac, "the GPU's PCIe link runs at this share of its rate (x8 in x16: 0.5)"),
    FIELD_SHARE(nic_frac, "NICs run at this share of their rate"),
    {.key = "nics",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct override_config, nics),
     .min = 1,
     .max = 1024,
     .help = "the host has only the first of its NICs, so many; absent: all"},
    {.key = "step_latency",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct override_config, step_latency_s),
     .default_text = "0 s",
     .min = 0,
     .max = 1,
     .help = "one more hop: added to each step that leaves the host"},
    {0}};
const struct field_table override_table = {.name = "override",
                                           .help = "a GPU, a NIC or a host that differs",
                                           .fields = override_fields,
                                           .struct_bytes = sizeof(struct override_config),
                                           .check = override_check};
