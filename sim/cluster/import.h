/*
 * cluster/import.h: descriptions of a machine that others write → a cluster file of ours.
 *
 *   nccl-topo   XML of NCCL or RCCL: NCCL_TOPO_DUMP_FILE, or a cloud's NCCL_TOPO_FILE
 *   topo-m      the matrix that `nvidia-smi topo -m` prints
 *
 * The result is YAML as one would write it by hand, with comments that say of each block what was
 * read, what was corrected and why, what was assumed since the file does not say it, and what was
 * dropped. What devices are (their GPU, their PCIe generation, the links they have) stands in
 * topologies/import/ with sources. What neither the file nor the tables say (costs of the host
 * thread, settings of collectives, the fabric) is taken from the shipped machine with that GPU.
 */
#ifndef FSDPSIM_CLUSTER_IMPORT_H
#define FSDPSIM_CLUSTER_IMPORT_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "base/strbuf.h"

struct import_options {   /* NULL: from the file and the tables */
    const char *gpu;      /* of topologies/gpus, or a path */
    const char *nic_link; /* of topologies/links, or a path */
    const char *cpu;      /* of topologies/cpus, or a path */
    const char *name;     /* of the cluster */
    const char *const *data_folders;
};

enum import_format { IMPORT_NCCL_TOPO, IMPORT_TOPO_M };

/* Appends the YAML to `yaml`, which the caller releases. What had to be assumed and matters is also
   a warning. `source` and its text must live as long as the messages. */
MUST_CHECK enum status import_machine(struct arena *arena, enum import_format format,
                                      const struct source *source,
                                      const struct import_options *options, struct strbuf *yaml,
                                      struct diag *diag);

#endif
