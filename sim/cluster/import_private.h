/*
 * cluster/import_private.h: what a foreign description of a machine comes to, and the steps from
 * there to a cluster file.
 *
 *   text ─ import_nccl / import_topo_m → machine_graph      devices as they are written
 *        ─ import_graph                → numbers, pairs     GPUs in order, links between them
 *        ─ import_settle               → machine_facts      which GPU, which rates
 *        ─ import_plan                 → machine_plan       switches, root ports, NUMA nodes
 *        ─ import_yaml                 → YAML
 *
 * Readers judge nothing but syntax and references. Every later decision leaves a note: what it is
 * about, whether something was read, corrected, assumed or dropped, and of which devices; the
 * writer puts the notes above the block that they are about.
 */
#ifndef FSDPSIM_CLUSTER_IMPORT_PRIVATE_H
#define FSDPSIM_CLUSTER_IMPORT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cluster/import.h"
#include "cluster/import_tables.h"

enum { NO_ITEM = -1, MAX_IMPORTED_GPUS = 1024, MAX_IMPORTED_NICS = 1024, MAX_IMPORTED_CPUS = 64 };

/* ---- notes -------------------------------------------------------------------------------- */

enum note_kind { NOTE_READ, NOTE_CORRECTED, NOTE_ASSUMED, NOTE_DROPPED };
enum note_about {
    ABOUT_FILE,
    ABOUT_GPU,
    ABOUT_SCALE_UP,
    ABOUT_PCIE,
    ABOUT_NUMA,
    ABOUT_NICS,
    ABOUT_CPU,
    ABOUT_REST, /* hosts, fabric, collectives */
};

struct import_note {
    enum note_about about;
    enum note_kind kind;
    const char *text;
    const char *devices; /* "0000:10:1c.0, 0000:10:1d.0 and 6 more"; NULL: of the whole */
    int32_t device_count;
};

/* ---- the machine as the file has it ------------------------------------------------------- */

struct pcie_speed {
    double gt_per_s; /* 0: not said */
    int32_t width;   /* lanes; 0: not said */
};

struct pci_device { /* what a file says of a device; vendor, device, class 0: nothing */
    const char *busid;
    uint32_t vendor, device, class_code;
    struct pcie_speed speed;
    int32_t bridge; /* the bridge above, NO_ITEM: the CPU itself */
    int32_t cpu;
    bool is_anywhere; /* on which CPU is not said */
    struct place place;
};

struct graph_cpu {
    const char *host;          /* which, in a dump of several; "" */
    int64_t numa;              /* as the file numbers them; -1: not said */
    const char *arch, *vendor; /* "": not said */
    int64_t family, model;     /* -1: not said */
    struct place place;
};

struct graph_gpu {
    struct pci_device pci;
    int64_t dev;      /* local index, -1: not said */
    const char *arch; /* "sm_90", "gfx942", "" */
    double c2c_bytes_per_s;
};

struct graph_link {   /* of a GPU, as stated from its side */
    int32_t from, to; /* GPUs; `to` NO_ITEM: by `target` */
    bool is_to_switch;
    int64_t count;
    const char *target; /* bus id, "" when `to` is known */
    struct place place;
};

struct graph_nic {
    struct pci_device pci; /* busid "": none was given */
    const char *name;      /* "": none */
    double bytes_per_s;    /* 0: not said */
};

#define GRAPH_LIST(type)                                                                           \
    struct {                                                                                       \
        struct type *items;                                                                        \
        int32_t count, capacity;                                                                   \
    }

struct machine_graph {
    struct arena *arena;
    struct diag *diag;
    const struct source *source;
    const char *made_by; /* "NCCL topology XML", "nvidia-smi topo -m" */
    GRAPH_LIST(graph_cpu) cpus;
    GRAPH_LIST(pci_device) bridges; /* parents before children */
    GRAPH_LIST(graph_gpu) gpus;
    GRAPH_LIST(graph_link) links;
    GRAPH_LIST(graph_nic) nics;
    GRAPH_LIST(import_note) notes;
    bool has_pci;            /* the file says what hangs below which bridge, and speeds */
    int32_t unclassed_count; /* devices that could be anything */
    /* from graph_finish: */
    int32_t *pair_links;   /* [gpu * count + gpu], of the smaller side */
    int32_t *switch_links; /* [gpu] */
    int32_t host_count;    /* in one scale-up domain; the graph then holds the first */
};

/* `device` NULL: about the whole. The same text about several devices is one note. */
void graph_note(struct machine_graph *graph, enum note_about about, enum note_kind kind,
                const char *device, const char *format, ...) PRINTF_LIKE(5, 6);

/* As a note, and a warning to the user beside it. */
void graph_warn(struct machine_graph *graph, enum note_about about, enum note_kind kind,
                struct place place, const char *hint, const char *format, ...) PRINTF_LIKE(6, 7);

MUST_CHECK enum status import_nccl_read(struct machine_graph *graph);
MUST_CHECK enum status import_topo_m_read(struct machine_graph *graph);

/* GPUs in the driver's order, links by pairs, one host of several; refuses what no host can be. */
MUST_CHECK enum status graph_finish(struct machine_graph *graph);
const char *graph_gpu_name(const struct machine_graph *graph, int32_t gpu);

/* ---- what the devices are ----------------------------------------------------------------- */

struct machine_facts {
    const char *gpu;           /* as it is written into the YAML */
    const struct gpu_row *row; /* of the GPU that the file has, or stands for it */
    const char *link;          /* between GPUs, NULL: none */
    double link_bytes_per_s;   /* one of them */
    const char *nic_link;      /* NULL: no NICs */
    double nic_bytes_per_s;    /* 0: as the link has it */
    const char *cpu;           /* topologies/cpus */
    const char *socket_link;   /* between NUMA nodes, NULL: none */
    const char *like;          /* the shipped machine that the rest is taken from */
};

/* Corrects the speeds of the graph in place, drops NICs that do not fit. */
MUST_CHECK enum status machine_settle(struct machine_graph *graph,
                                      const struct import_tables *tables,
                                      const struct import_options *options,
                                      struct machine_facts *facts);

/* The part of it that is about NICs. */
void machine_settle_nics(struct machine_graph *graph, const struct import_tables *tables,
                         const struct import_options *options, struct machine_facts *facts);

/* ---- what hangs where --------------------------------------------------------------------- */

struct plan_slot { /* a GPU or a NIC */
    int32_t group; /* what it hangs on: a switch, NO_ITEM: a root port */
    int32_t numa;  /* NO_ITEM: not said */
    int32_t lanes; /* of the host's PCIe link */
};

struct plan_switch {
    const char *busid;
    int32_t parent; /* switch, NO_ITEM: a root port */
    int32_t numa;
    int32_t uplink_lanes;
};

struct machine_plan {
    const struct pcie_row *pcie; /* the host's PCIe link */
    struct plan_switch *switches;
    int32_t switch_count;
    struct plan_slot *gpus, *nics; /* as many as the graph has */
    int32_t numa_count;
    const int64_t *numa_ids; /* as the file numbers them, by ours */
};

void machine_plan_build(struct machine_graph *graph, const struct import_tables *tables,
                        struct machine_plan *plan);

/* ---- writing ------------------------------------------------------------------------------ */

void machine_write(const struct machine_graph *graph, const struct import_tables *tables,
                   const struct machine_facts *facts, const struct machine_plan *plan,
                   const struct import_options *options, struct strbuf *yaml);

#endif
