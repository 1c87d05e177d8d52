/* tests/property/machine/machine_property.h: the suites, and random hybrid-sharded steps. */
#ifndef FSDPSIM_TESTS_MACHINE_PROPERTY_H
#define FSDPSIM_TESTS_MACHINE_PROPERTY_H

#include "base/philox.h"
#include "check.h"
#include "cluster/group_layout.h"
#include "cluster_fixture.h"
#include "toy.h"

extern const struct check_case groups_cases[], links_cases[], pipelines_cases[];

/* dp_replicate × dp_shard on hosts of which some are slow. */
struct mesh {
    struct cluster_fixture cluster;
    int64_t hosts, gpus, nics, shard, replicas;
    struct group groups[2]; /* shard, replicas */
    const char *text;       /* for messages */
};

/* mesh->cluster.status says whether it worked. */
void mesh_draw(struct mesh *mesh, struct philox *random);
/* Makes it one shard group over all ranks. */
void mesh_make_whole(struct mesh *mesh);
void mesh_release(struct mesh *mesh);
void mesh_layout(struct mesh *mesh, bool is_folded, struct layout *layout);
/*
 * Units gathered and computed, then computed, reduced in the shard group and all-reduced in the
 * replica group, over three streams, or all on one (is_serial). Marks 0, 1, 2: begin, end of
 * compute, end of reductions.
 */
void mesh_step(const struct mesh *mesh, struct philox *random, struct toy *toy, bool is_serial);

#endif
