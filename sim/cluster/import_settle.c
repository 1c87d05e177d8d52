/*
 * cluster/import_settle.c: which GPU, which rates: what the file says, against what devices can.
 *
 * PCIe rates in such files are often wrong, each in a known way:
 *   - templates of clouds write one rate for all: 8 GT/s for A100 (p4d), 16 GT/s for V100 (ND v2);
 *   - virtual machines show what their emulated ports can: 16 GT/s above an H200, 2.5 GT/s x1;
 *   - RCCL writes 32 GT/s for MI250, which has 16.
 * So a device is never faster than its own generation (gpus.csv); a module (SXM, OAM) sits on a
 * board of its own generation and has 16 lanes; a port of 5 GT/s and less above a GPU, or of QEMU's
 * make, is an emulated one and says nothing; a bridge that says the same as GPUs below it that were
 * corrected says nothing either; nothing that hangs on a CPU is faster than that. What is left is
 * believed: a card of 16 GT/s in a slot of 8 GT/s is one.
 *
 * The rate of a NIC: as the file says; else of its model (nics.csv); else the largest rate of a
 * network that its slot carries (8 GT/s x16 is 126 Gb/s: 100; 16 GT/s: 200; 32 GT/s: 400), which
 * is said aloud. 180,000 Mb/s is 200 Gb/s, less what a virtual function may use.
 */
#include <math.h>
#include <string.h>

#include "cluster/fields_private.h"
#include "cluster/gpu.h"
#include "cluster/import_private.h"
#include "config/config.h"

struct settler {
    struct machine_graph *graph;
    const struct import_tables *tables;
    const struct import_options *options;
    struct machine_facts *facts;
    bool *was_raised; /* by bridge: all GPUs below said too little */
};

/* ---- which GPU ---------------------------------------------------------------------------- */

/* Whether a GPU of this row may be what the file has: by its architecture, and the CPU's. */
static bool fits_arch(const struct settler *settler, const struct graph_gpu *gpu,
                      const struct gpu_row *row)
{
    const char *host = settler->graph->cpus.items[gpu->pci.cpu].arch;
    return gpu->arch[0] != '\0' && strcmp(row->arch, gpu->arch) == 0 &&
           (host[0] == '\0' || strcmp(row->host, host) == 0);
}

/* The row of what the file says of a GPU, NULL: nothing that helps. Of several of an architecture
   the one of the GPU `wanted` (or NULL), else a module: hosts with many GPUs have those. */
static const struct gpu_row *row_of(const struct settler *settler, const struct graph_gpu *gpu,
                                    const char *wanted)
{
    const struct gpu_row *best = NULL;
    int best_rank = 0;
    for (int32_t k = 0; k < settler->tables->gpu_count; k++) {
        const struct gpu_row *row = &settler->tables->gpus[k];
        if (gpu->pci.device != 0 && row->vendor == gpu->pci.vendor &&
            row->device == gpu->pci.device)
            return row;
        if (!fits_arch(settler, gpu, row))
            continue;
        const bool is_wanted = wanted != NULL && strcmp(row->gpu, wanted) == 0;
        const int rank = is_wanted ? 3 : row->is_module ? 2 : 1;
        if (rank > best_rank) {
            best = row;
            best_rank = rank;
        }
    }
    return best;
}

static const struct gpu_row *row_named(const struct import_tables *tables, const char *gpu)
{
    for (int32_t k = 0; k < tables->gpu_count; k++) {
        if (strcmp(tables->gpus[k].gpu, gpu) == 0)
            return &tables->gpus[k];
    }
    return NULL;
}

/* "a, b": GPUs of the catalog that fit what the file says, all of them for NULL; NULL: none. */
static const char *candidates(const struct settler *settler, const struct graph_gpu *gpu)
{
    const char *text = NULL;
    const char *last = "";
    for (int32_t k = 0; k < settler->tables->gpu_count; k++) {
        const struct gpu_row *row = &settler->tables->gpus[k];
        if (row->gpu[0] == '\0' || strcmp(row->gpu, last) == 0 ||
            (gpu != NULL && !fits_arch(settler, gpu, row)))
            continue;
        last = row->gpu;
        text =
            text == NULL ? row->gpu : arena_printf(settler->graph->arena, "%s, %s", text, row->gpu);
    }
    return text;
}

static enum status refuse_unknown_gpu(const struct settler *settler, const struct graph_gpu *gpu,
                                      const struct gpu_row *row)
{
    struct machine_graph *graph = settler->graph;
    const bool is_known = row != NULL && row->gpu[0] == '\0';
    const char *some = candidates(settler, gpu);
    const char *hint = arena_printf(
        graph->arena, "give --gpu NAME: %s%s; 'fsdpsim list gpus' describes them",
        some != NULL ? "these fit: " : "", some != NULL ? some : candidates(settler, NULL));
    if (is_known)
        diag_add(graph->diag, DIAG_ERROR, gpu->pci.place, hint,
                 "this is %s, which is not in the catalog", row->what);
    else if (gpu->arch[0] != '\0')
        diag_add(graph->diag, DIAG_ERROR, gpu->pci.place, hint,
                 "the file says %s, but not which GPU this is", gpu->arch);
    else
        diag_add(graph->diag, DIAG_ERROR, gpu->pci.place, hint,
                 "the file does not say which GPU this is");
    return STATUS_INPUT;
}

static enum status choose_from_file(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    const struct graph_gpu *first = &graph->gpus.items[0];
    const struct gpu_row *row = row_of(settler, first, NULL);
    const bool has_device = row != NULL && first->pci.device == row->device;
    for (int32_t k = 1; k < graph->gpus.count; k++) {
        const struct gpu_row *other = row_of(settler, &graph->gpus.items[k], NULL);
        if (other == row)
            continue;
        diag_add(graph->diag, DIAG_ERROR, graph->gpus.items[k].pci.place,
                 "a host has GPUs of one kind; --gpu NAME takes all for that one",
                 "GPU %d is %s, but GPU 0 is %s", (int)k, other != NULL ? other->what : "unknown",
                 row != NULL ? row->what : "unknown");
        return STATUS_INPUT;
    }
    const char *fitting = candidates(settler, first);
    const bool is_only_one = row != NULL && fitting != NULL && strcmp(fitting, row->gpu) == 0;
    if (row == NULL || row->gpu[0] == '\0' || (!has_device && !is_only_one))
        return refuse_unknown_gpu(settler, first, row);
    settler->facts->gpu = row->gpu;
    settler->facts->row = row;
    if (has_device)
        graph_note(graph, ABOUT_GPU, NOTE_READ, NULL, "PCI id %04x:%04x is %s", row->vendor,
                   row->device, row->what);
    else
        graph_note(graph, ABOUT_GPU, NOTE_READ, NULL, "%s is %s", row->arch, row->what);
    return STATUS_OK;
}

/* --gpu: what the file has still says how it is wired. */
static enum status choose_given(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    const char *name =
        import_catalog_name(settler->tables, "topologies/gpus", settler->options->gpu);
    const struct graph_gpu *first = &graph->gpus.items[0];
    const struct gpu_row *row = row_of(settler, first, name);
    const struct gpu_row *named = row_named(settler->tables, name);
    const bool has_device = row != NULL && row->device == first->pci.device;
    if (row != NULL && (named == NULL || strcmp(row->gpu, name) != 0))
        graph_warn(graph, ABOUT_GPU, NOTE_CORRECTED, first->pci.place, NULL,
                   "the file's GPU is %s; --gpu puts %s in its place, wired as %s",
                   has_device ? row->what : first->arch, name, row->what);
    else
        graph_note(graph, ABOUT_GPU, NOTE_ASSUMED, NULL, "%s as --gpu says", name);
    settler->facts->gpu = name;
    settler->facts->row = row != NULL ? row : named;
    if (settler->facts->row != NULL)
        return STATUS_OK;
    diag_add(graph->diag, DIAG_ERROR, first->pci.place,
             "what PCIe generation and links a GPU has stands in topologies/import/gpus.csv",
             "neither the file nor the tables say how '%s' is wired", name);
    return STATUS_INPUT;
}

/* ---- rates of PCIe ------------------------------------------------------------------------ */

static const char *speed_text(struct arena *arena, struct pcie_speed speed)
{
    if (!(speed.gt_per_s > 0) && speed.width == 0)
        return "nothing";
    return arena_printf(arena, "%g GT/s x%d", speed.gt_per_s, (int)speed.width);
}

enum { FULL_WIDTH = 16 };
static const double emulated_gt_per_s = 5; /* and less: no port above a GPU of the catalog */
enum { VENDOR_QEMU = 0x1b36 };

static bool is_emulated(const struct pci_device *pci)
{
    return pci->vendor == VENDOR_QEMU ||
           (pci->speed.gt_per_s > 0 && pci->speed.gt_per_s <= emulated_gt_per_s);
}

static void correct(struct settler *settler, struct pci_device *pci, struct pcie_speed speed,
                    const char *name, const char *why)
{
    struct machine_graph *graph = settler->graph;
    const bool was_said = pci->speed.gt_per_s > 0 && pci->speed.width > 0;
    if (pci->speed.gt_per_s == speed.gt_per_s && pci->speed.width == speed.width)
        return;
    if (graph->has_pci)
        graph_note(graph, ABOUT_PCIE, was_said ? NOTE_CORRECTED : NOTE_ASSUMED, name,
                   "%s -> %s: %s", speed_text(graph->arena, pci->speed),
                   speed_text(graph->arena, speed), why);
    pci->speed = speed;
}

static bool is_real_width(int32_t width)
{
    return width == 1 || width == 2 || width == 4 || width == 8 || width == FULL_WIDTH;
}

static const struct cpu_row *cpu_row_of(const struct settler *settler, const struct graph_cpu *cpu)
{
    for (int32_t k = 0; k < settler->tables->cpu_count; k++) {
        const struct cpu_row *row = &settler->tables->cpus[k];
        if (strcmp(row->arch, cpu->arch) == 0 &&
            (row->vendor[0] == '\0' || strcmp(row->vendor, cpu->vendor) == 0) &&
            (row->family < 0 || row->family == cpu->family) &&
            (row->model < 0 || row->model == cpu->model))
            return row;
    }
    return NULL;
}

/* What hangs on a CPU is no faster than its root ports; otherwise `why` stays as it is. */
static const char *limit_to_cpu(struct settler *settler, const struct pci_device *pci,
                                struct pcie_speed *speed, const char *why)
{
    const struct cpu_row *row = cpu_row_of(settler, &settler->graph->cpus.items[pci->cpu]);
    if (pci->bridge != NO_ITEM || row == NULL || !(speed->gt_per_s > row->gt_per_s))
        return why;
    speed->gt_per_s = row->gt_per_s;
    return arena_printf(settler->graph->arena, "the root ports of %s", row->what);
}

/* True when the file said less than the GPU has, wrongly. */
static bool settle_gpu_speed(struct settler *settler, struct graph_gpu *gpu, const char *name)
{
    const struct gpu_row *row = settler->facts->row;
    const struct pcie_speed said = gpu->pci.speed;
    struct pcie_speed speed = said;
    const char *why = "not said: the GPU's generation";
    bool is_raised = false;
    if (!(said.gt_per_s > 0)) {
        speed.gt_per_s = row->gt_per_s;
    } else if (said.gt_per_s > row->gt_per_s) {
        speed.gt_per_s = row->gt_per_s;
        why = "more than the GPU's generation has";
    } else if (said.gt_per_s < row->gt_per_s && (row->is_module || is_emulated(&gpu->pci))) {
        speed.gt_per_s = row->gt_per_s;
        is_raised = true;
        why = row->is_module ? "a module sits on a board of its generation" : "an emulated port";
    }
    if (!is_real_width(said.width) || (said.width < FULL_WIDTH && row->is_module) ||
        (said.width < 4 && is_emulated(&gpu->pci))) {
        speed.width = FULL_WIDTH;
        if (said.width > 0 && !is_raised && speed.gt_per_s >= said.gt_per_s)
            why = row->is_module ? "a module has 16 lanes" : "no width of a slot";
    }
    why = limit_to_cpu(settler, &gpu->pci, &speed, why);
    correct(settler, &gpu->pci, speed, name, why);
    return is_raised;
}

/* Every bridge above a GPU that was raised, and that says no more than it did. */
static void mark_raised(struct settler *settler, int32_t bridge, double said)
{
    while (bridge != NO_ITEM) {
        if (settler->graph->bridges.items[bridge].speed.gt_per_s <= said)
            settler->was_raised[bridge] = true;
        bridge = settler->graph->bridges.items[bridge].bridge;
    }
}

static void settle_bridge_speed(struct settler *settler, int32_t idx)
{
    struct pci_device *pci = &settler->graph->bridges.items[idx];
    struct pcie_speed speed = pci->speed;
    const char *why = "not said: the GPUs' generation";
    if (!(speed.gt_per_s > 0) || is_emulated(pci) || settler->was_raised[idx]) {
        if (speed.gt_per_s > 0)
            why = is_emulated(pci) ? "an emulated port" : "as wrong as the GPUs below it";
        if (!(speed.gt_per_s >= settler->facts->row->gt_per_s))
            speed.gt_per_s = settler->facts->row->gt_per_s;
        speed.width = FULL_WIDTH;
    } else if (speed.width != 2 * FULL_WIDTH && !is_real_width(speed.width)) {
        speed.width = FULL_WIDTH;
        why = "no such width";
    }
    why = limit_to_cpu(settler, pci, &speed, why);
    correct(settler, pci, speed, pci->busid, why);
}

static void settle_nic_speed(struct settler *settler, struct pci_device *pci)
{
    struct pcie_speed speed = pci->speed;
    if (is_emulated(pci)) { /* its rate says more: machine_settle_nics */
        pci->speed = (struct pcie_speed){0};
        return;
    }
    const char *why = limit_to_cpu(settler, pci, &speed, "");
    correct(settler, pci, speed, pci->busid, why);
}

static void settle_speeds(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    settler->was_raised = ARENA_ARRAY(graph->arena, bool, graph->bridges.count);
    for (int32_t k = 0; k < graph->gpus.count; k++) {
        struct graph_gpu *gpu = &graph->gpus.items[k];
        const double said = gpu->pci.speed.gt_per_s;
        if (settle_gpu_speed(settler, gpu, graph_gpu_name(graph, k)))
            mark_raised(settler, gpu->pci.bridge, said);
    }
    for (int32_t k = 0; k < graph->bridges.count; k++)
        settle_bridge_speed(settler, k);
    for (int32_t k = 0; k < graph->nics.count; k++)
        settle_nic_speed(settler, &graph->nics.items[k].pci);
    if (!graph->has_pci)
        graph_note(graph, ABOUT_PCIE, NOTE_ASSUMED, NULL,
                   "every slot and uplink has 16 lanes of %g GT/s, as the GPU's generation",
                   settler->facts->row->gt_per_s);
}

/* ---- links between GPUs ------------------------------------------------------------------- */

/* A matrix shows the same number to every peer whether links are shared by all of them (a switch)
   or each peer has its own: then they add up to no more than the GPU has. */
static void find_switch(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    const int32_t count = graph->gpus.count;
    int32_t sum = 0;
    int32_t same = count > 1 ? graph->pair_links[1] : 0;
    for (int32_t k = 1; k < count; k++)
        sum += graph->pair_links[k];
    if (graph->has_pci || sum <= settler->facts->row->links)
        return;
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = 0; b < count; b++) {
            if (a != b && graph->pair_links[a * count + b] != same)
                return;
        }
    }
    for (int32_t a = 0; a < count; a++)
        graph->switch_links[a] = same;
    memset(graph->pair_links, 0, sizeof(int32_t) * (size_t)count * (size_t)count);
    graph_note(graph, ABOUT_SCALE_UP, NOTE_READ, NULL,
               "NV%d to each of %d peers is more than %s has: a switch", (int)same,
               (int)(count - 1), settler->facts->row->what);
}

/* A tray alone does not show that its switch joins others. */
static void note_domain(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    const struct node *host = import_machine_node(settler->tables, settler->facts->like, "host");
    const struct node *scale_up = host != NULL ? node_get(host, "scale_up") : NULL;
    const struct node *hosts = scale_up != NULL ? node_get(scale_up, "domain_hosts") : NULL;
    if (graph->host_count == 1 && graph->switch_links[0] > 0 && hosts != NULL &&
        hosts->kind == NODE_SCALAR)
        graph_note(graph, ABOUT_SCALE_UP, NOTE_ASSUMED, NULL,
                   "the switch joins the GPUs of one host; in %s it is 'domain_hosts: %s'",
                   settler->facts->like, hosts->text);
}

static void settle_links(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    const struct gpu_row *row = settler->facts->row;
    const int32_t count = graph->gpus.count;
    find_switch(settler);
    bool has_links = false;
    for (int32_t k = 0; k < count * count; k++)
        has_links |= graph->pair_links[k] > 0;
    for (int32_t k = 0; k < count; k++)
        has_links |= graph->switch_links[k] > 0;
    if (!has_links && row->is_module && row->links > 0 && count > 1) {
        /* Templates leave the links to NCCL, which asks the driver. */
        graph_warn(graph, ABOUT_SCALE_UP, NOTE_ASSUMED, graph->gpus.items[0].pci.place,
                   "write 'scale_up' as it is if that is wrong",
                   "the file says nothing of links between GPUs: as in '%s'", row->like);
        settler->facts->link = row->link;
        return;
    }
    if (!has_links)
        return;
    if (row->link[0] == '\0') {
        graph_warn(graph, ABOUT_SCALE_UP, NOTE_DROPPED, graph->gpus.items[0].pci.place, NULL,
                   "links between GPUs: %s has none", row->what);
        memset(graph->pair_links, 0, sizeof(int32_t) * (size_t)count * (size_t)count);
        memset(graph->switch_links, 0, sizeof(int32_t) * (size_t)count);
        return;
    }
    settler->facts->link = row->link;
    settler->facts->link_bytes_per_s = row->link_bytes_per_s;
    note_domain(settler);
}

/* ---- the CPU ------------------------------------------------------------------------------ */

static const char *shipped_cpu(const struct settler *settler)
{
    const struct node *host = import_machine_node(settler->tables, settler->facts->like, "host");
    const struct node *cpu = host != NULL ? node_get(host, "cpu") : NULL;
    return cpu != NULL && cpu->kind == NODE_SCALAR ? cpu->text : NULL;
}

static enum status settle_cpu(struct settler *settler)
{
    struct machine_graph *graph = settler->graph;
    struct machine_facts *facts = settler->facts;
    const struct graph_cpu *first = &graph->cpus.items[graph->gpus.items[0].pci.cpu];
    const struct cpu_row *row = cpu_row_of(settler, first);
    facts->cpu = row != NULL ? row->cpu : shipped_cpu(settler);
    facts->socket_link = row != NULL ? row->socket : NULL;
    if (settler->options->cpu != NULL) {
        facts->cpu = import_catalog_name(settler->tables, "topologies/cpus", settler->options->cpu);
        graph_note(graph, ABOUT_CPU, NOTE_ASSUMED, NULL, "%s as --cpu says", facts->cpu);
    } else if (row != NULL) {
        graph_note(graph, ABOUT_CPU, NOTE_READ, NULL,
                   "the CPU is %s; costs of the host thread: the nearest that were measured",
                   row->what);
    } else if (facts->cpu != NULL) {
        graph_note(graph, ABOUT_CPU, NOTE_ASSUMED, NULL, "the host thread costs what it does in %s",
                   facts->like);
    }
    if (facts->cpu != NULL)
        return STATUS_OK;
    diag_add(graph->diag, DIAG_ERROR, first->place,
             arena_printf(graph->arena, "give --cpu NAME: %s",
                          import_catalog_names(settler->tables, "topologies/cpus")),
             "nothing says what the host thread costs");
    return STATUS_INPUT;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* A file of the user's own: what `check` would say of it is said now. */
static void check_file(struct settler *settler, const char *flag, const struct field_table *table,
                       const char *path)
{
    struct diag *diag = settler->graph->diag;
    struct config config;
    void *bound = arena_alloc(settler->graph->arena, table->struct_bytes);
    config_init(&config, settler->graph->arena, diag, settler->tables->data_folders);
    if (config_load(&config, path) != STATUS_OK || config_bind(&config, table, bound) != STATUS_OK)
        diag_add(diag, DIAG_ERROR, NO_PLACE, NULL, "%s: '%s' is no file of a %s", flag, path,
                 table->name);
}

static void check_flag(struct settler *settler, const char *flag, const char *folder,
                       const struct field_table *table, const char *name)
{
    struct arena *arena = settler->graph->arena;
    const char *found = name != NULL ? import_catalog_name(settler->tables, folder, name) : NULL;
    if (found != NULL && found == name)
        check_file(settler, flag, table, name);
    if (name == NULL || found != NULL)
        return;
    const char *const *names = data_names(arena, settler->tables->data_folders, folder);
    const char *nearest = nearest_name(name, names);
    diag_add(settler->graph->diag, DIAG_ERROR, NO_PLACE,
             nearest != NULL ? arena_printf(arena, "did you mean '%s'?", nearest)
                             : arena_printf(arena, "known: %s, or a path",
                                            import_catalog_names(settler->tables, folder)),
             "%s: there is no '%s' in %s/", flag, name, folder);
}

enum status machine_settle(struct machine_graph *graph, const struct import_tables *tables,
                           const struct import_options *options, struct machine_facts *facts)
{
    struct settler settler = {.graph = graph, .tables = tables, .options = options, .facts = facts};
    const int32_t errors = graph->diag->error_count;
    *facts = (struct machine_facts){0};
    check_flag(&settler, "--gpu", "topologies/gpus", &gpu_table, options->gpu);
    check_flag(&settler, "--nic-link", "topologies/links", &link_table, options->nic_link);
    check_flag(&settler, "--cpu", "topologies/cpus", &cpu_table, options->cpu);
    if (graph->diag->error_count > errors)
        return STATUS_INPUT;
    enum status status = options->gpu != NULL ? choose_given(&settler) : choose_from_file(&settler);
    if (status != STATUS_OK)
        return status;
    facts->like = facts->row->like;
    settle_speeds(&settler);
    settle_links(&settler);
    machine_settle_nics(graph, tables, options, facts);
    return settle_cpu(&settler);
}
