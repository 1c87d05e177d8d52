/* cluster/fabric_fields.c: the fields of the network between hosts. */
#include <stddef.h>

#include "cluster/fields_private.h"

static void fabric_check(struct config *config, const char *path, void *bound)
{
    const struct fabric_config *fabric = bound;
    const bool is_oversubscribed = fabric->oversubscription > 1 || fabric->oversubscription < 1;
    if (is_oversubscribed && fabric->hosts_per_leaf == 0)
        config_error(config, arena_printf(config->arena, "%s.oversubscription", path),
                     "give 'hosts_per_leaf' beside it",
                     "oversubscription is of a leaf's uplinks: how many hosts share a leaf?");
    if (fabric->levels.count > 0 && fabric->hosts_per_leaf == 0)
        config_error(config, arena_printf(config->arena, "%s.levels", path),
                     "give 'hosts_per_leaf' beside it", "levels above leaves, but no leaves");
    const struct level_config *levels = fabric->levels.items;
    int64_t below = fabric->hosts_per_leaf;
    for (int64_t i = 0; i < fabric->levels.count; i++) {
        if (below > 0 && (levels[i].hosts <= below || levels[i].hosts % below != 0))
            config_error(config,
                         arena_printf(config->arena, "%s.levels[%lld].hosts", path, (long long)i),
                         NULL, "%lld hosts are no multiple of the %lld of the level below",
                         (long long)levels[i].hosts, (long long)below);
        below = levels[i].hosts;
    }
}

static const struct field level_fields[] = {
    {.key = "hosts",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct level_config, hosts),
     .is_required = true,
     .min = 1,
     .max = 1e9,
     .help = "hosts below one group (pod, plane) of this level"},
    {.key = "oversubscription",
     .kind = FIELD_REAL,
     .offset = offsetof(struct level_config, oversubscription),
     .default_text = "1",
     .min = 1,
     .max = 1000,
     .help = "bandwidth into the group from below over what leaves it upwards"},
    {0}};
static const struct field_table level_table = {.name = "levels",
                                               .help = "a level of switches above the leaves",
                                               .fields = level_fields,
                                               .struct_bytes = sizeof(struct level_config)};

static const struct choice placements[] = {
    {"packed", PLACEMENT_PACKED, "hosts fill one leaf after the other, in the order of ranks"},
    {"spread", PLACEMENT_SPREAD, "neighbours in the order of ranks sit on different leaves"},
    {0}};

static const struct field fabric_fields[] = {
    {.key = "rails",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct fabric_config, has_rails),
     .default_text = "false",
     .help = "rail-optimised: NIC i of the hosts of a group is on leaf i of it; otherwise all NICs "
             "of a host are on one leaf"},
    {.key = "hosts_per_leaf",
     .kind = FIELD_COUNT,
     .offset = offsetof(struct fabric_config, hosts_per_leaf),
     .min = 1,
     .max = 1e6,
     .help = "hosts on one leaf (with rails: on one group of leaves); absent: one switch for all"},
    {.key = "oversubscription",
     .kind = FIELD_REAL,
     .offset = offsetof(struct fabric_config, oversubscription),
     .default_text = "1",
     .min = 1,
     .max = 1000,
     .help = "bandwidth of a leaf's hosts over that of its uplinks; 1: non-blocking"},
    {.key = "levels",
     .kind = FIELD_LIST,
     .offset = offsetof(struct fabric_config, levels),
     .table = &level_table,
     .help = "levels above the leaves that are oversubscribed, from below"},
    {.key = "hop_latency",
     .kind = FIELD_QUANTITY,
     .dimension = DIM_TIME,
     .offset = offsetof(struct fabric_config, hop_latency_s),
     .default_text = "0 s",
     .min = 0,
     .max = 1,
     .help = "of one switch more than the first, cable included"},
    {.key = "placement",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct fabric_config, placement),
     .default_text = "packed",
     .choices = placements,
     .help = "which hosts share a leaf"},
    {.key = "source",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct fabric_config, source),
     .help = "where the numbers come from"},
    {0}};
const struct field_table fabric_table = {.name = "fabric",
                                         .help = "the network between hosts",
                                         .fields = fabric_fields,
                                         .struct_bytes = sizeof(struct fabric_config),
                                         .check = fabric_check};
