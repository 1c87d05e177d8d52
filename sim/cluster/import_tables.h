/*
 * cluster/import_tables.h: what devices in foreign files are: the tables of topologies/import/.
 *
 *   gpus.csv       PCI ids and architecture → GPU of the catalog, PCIe generation, links it has
 *   cpus.csv       family and model → PCIe generation, link between sockets, host costs
 *   nics.csv       PCI ids, names → kind of network, rate
 *   nic_links.csv  kind and rate → link of the catalog
 *   pcie.csv       transfer rate → bytes a lane, link of the catalog
 *
 * A new device is a row; nothing to compile.
 */
#ifndef FSDPSIM_CLUSTER_IMPORT_TABLES_H
#define FSDPSIM_CLUSTER_IMPORT_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"
#include "config/node.h"

struct gpu_row {
    uint32_t vendor, device;
    const char *what; /* "A100 SXM4 80GB" */
    const char *gpu;  /* of the catalog, "": it has none */
    const char *arch; /* "sm_80", "gfx942" */
    double gt_per_s;  /* of its PCIe generation */
    bool is_module;   /* sits on a board of its own generation (SXM, OAM), no card in a slot */
    bool is_p2p;      /* the driver lets it read others over PCIe */
    int64_t links;    /* NVLink or xGMI; 0: none */
    const char *link;
    double link_bytes_per_s; /* one of them, one direction */
    const char *host;        /* architecture of the CPUs that it is built with */
    const char *like;        /* a shipped machine with it, or the nearest */
};

struct cpu_row {
    const char *arch, *vendor;
    int64_t family, model; /* -1: any */
    const char *what;
    double gt_per_s;
    const char *socket; /* link between sockets */
    const char *cpu;
};

struct nic_row {
    uint32_t vendor, device; /* 0: by `name` */
    const char *name;        /* how names of the kind begin; "" : by ids */
    const char *what, *kind;
    double bytes_per_s; /* 0: of several rates */
};

struct nic_link_row {
    const char *kind;
    double bytes_per_s;
    const char *link;
};

struct pcie_row {
    double gt_per_s, lane_bytes_per_s;
    const char *link; /* "": the catalog has none */
};

struct import_tables {
    struct arena *arena;
    const char *const *data_folders;
    const struct gpu_row *gpus;
    const struct cpu_row *cpus;
    const struct nic_row *nics;
    const struct nic_link_row *nic_links;
    const struct pcie_row *pcie;
    int32_t gpu_count, cpu_count, nic_count, nic_link_count, pcie_count;
};

MUST_CHECK enum status import_tables_load(struct arena *arena, const char *const *data_folders,
                                          struct import_tables *tables, struct diag *diag);

/* The row of this transfer rate; the nearest below when there is none, the slowest else. */
const struct pcie_row *import_pcie_row(const struct import_tables *tables, double gt_per_s);

/* `bandwidth` of topologies/links/NAME.yaml; 0 when it cannot be read. */
double import_link_bytes_per_s(const struct import_tables *tables, const char *name);

/* What topologies/NAME.yaml says under `key`, NULL: nothing. */
const struct node *import_machine_node(const struct import_tables *tables, const char *name,
                                       const char *key);

/* The file NAME.yaml of a folder of the catalog that `name` is, or has among its aliases; a path is
   itself; NULL: there is none. */
const char *import_catalog_name(const struct import_tables *tables, const char *folder,
                                const char *name);
/* "a, b, c": all names of a folder. */
const char *import_catalog_names(const struct import_tables *tables, const char *folder);

#endif
