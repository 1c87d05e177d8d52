/* tests/unit/cluster/cluster_fixture.h: a shipped cluster, loaded as a user would, with overrides.
 */
#ifndef FSDPSIM_TESTS_CLUSTER_FIXTURE_H
#define FSDPSIM_TESTS_CLUSTER_FIXTURE_H

#include "cluster/layout.h"

struct cluster_fixture {
    struct arena arena;
    struct diag diag;
    struct config config;
    struct cluster cluster;
    enum status status; /* of loading, binding, building: the first that failed */
};

struct gpu_fixture { /* a shipped GPU by itself */
    struct arena arena;
    struct diag diag;
    struct config config;
    struct gpu gpu;
    enum status status;
};

void gpu_fixture_init(struct gpu_fixture *fixture, const char *name);
void gpu_fixture_release(struct gpu_fixture *fixture);

/* `overrides`: "key=value" texts, NULL-ended, relative to the cluster; may be NULL. */
void fixture_init(struct cluster_fixture *fixture, const char *name, const char *const *overrides);
void fixture_release(struct cluster_fixture *fixture);
/* All messages as cli/ would print them; in the fixture's arena. */
const char *fixture_messages(struct cluster_fixture *fixture);
/* Builds a layout and checks that it worked. */
struct layout fixture_layout(struct cluster_fixture *fixture, int64_t hosts, bool is_folded);

#endif
