/*
 * cluster/import_nccl.c: NCCL's topology XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE), and RCCL's,
 * → machine_graph.
 *
 *   system > cpu(numaid, host_hash, arch, vendor, familyid, modelid)
 *          > pci(busid, class, vendor, device, link_speed, link_width), nested: bridges
 *          > gpu(dev, sm, gcn) > nvlink|xgmi(target, count, tclass), c2c(bw, count)
 *          | nic > net(name, dev, speed in Mbit/s)
 *
 * A 'pci' is a GPU when it holds a 'gpu' or has the class of one (0x03…, 0x12… with a GPU vendor),
 * a NIC when it holds a 'nic' or has class 0x02…, and else a bridge when something is below it. A
 * link whose class is 0x068… or whose target is no device ("fffffff:ff:ff.0") ends at a switch.
 * Files that are written by hand for NCCL to complete (clouds' templates) hold no 'gpu' and 'net'.
 *
 * GPUs are numbered by host, then by 'dev'; where the file has no 'dev', by bus number, as the
 * driver would. Not read: affinity masks beyond their text, latency, guid, gdr, maxconn.
 */
#include <string.h>

#include "base/strbuf.h"
#include "cluster/import_private.h"
#include "cluster/import_xml.h"

enum { MAX_STRANGE = 64 };

struct nccl_reader {
    const struct xml_tree *tree;
    struct machine_graph *graph;
    bool has_nets;        /* some 'net': then a NIC without is used by nobody */
    const char **strange; /* names of elements that were skipped, each once */
    int32_t strange_count;
};

/* ---- attributes --------------------------------------------------------------------------- */

static const char *text_of(const struct xml_element *element, const char *name)
{
    const struct xml_attribute *attribute = xml_get(element, name);
    return attribute != NULL ? attribute->value : "";
}

/* Bus ids are compared as texts: in small letters. */
static const char *busid_of(struct nccl_reader *reader, const struct xml_element *element,
                            const char *name)
{
    char *busid = arena_strdup(reader->graph->arena, text_of(element, name));
    for (char *at = busid; *at != '\0'; at++) {
        if (*at >= 'A' && *at <= 'F')
            *at = (char)(*at - 'A' + 'a');
    }
    return busid;
}

/* `missing` when absent; outside [min, max] or no number: an error. */
static int64_t count_of(struct nccl_reader *reader, const struct xml_element *element,
                        const char *name, int64_t missing, int64_t min, int64_t max)
{
    const struct xml_attribute *attribute = xml_get(element, name);
    int64_t value = 0;
    if (attribute == NULL || attribute->value[0] == '\0')
        return missing;
    if (text_to_int64(attribute->value, &value) && value >= min && value <= max)
        return value;
    diag_add(reader->graph->diag, DIAG_ERROR, attribute->place,
             arena_printf(reader->graph->arena, "a whole number from %lld to %lld", (long long)min,
                          (long long)max),
             "'%s' of '%s' is '%s'", name, element->name, attribute->value);
    return missing;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* "0x10de"; 0 when absent. */
static uint32_t hex_of(struct nccl_reader *reader, const struct xml_element *element,
                       const char *name)
{
    const struct xml_attribute *attribute = xml_get(element, name);
    if (attribute == NULL || attribute->value[0] == '\0')
        return 0;
    const char *digit = attribute->value;
    if (digit[0] == '0' && (digit[1] == 'x' || digit[1] == 'X'))
        digit += 2;
    uint32_t value = 0;
    int32_t digits = 0;
    for (; hex_digit(*digit) >= 0 && digits < 8; digit++, digits++)
        value = value << 4 | (uint32_t)hex_digit(*digit);
    if (*digit == '\0' && digits > 0)
        return value;
    diag_add(reader->graph->diag, DIAG_ERROR, attribute->place, "as 0x10de", "'%s' of '%s' is '%s'",
             name, element->name, attribute->value);
    return 0;
}

/* "16.0 GT/s PCIe", "8 GT/s"; what says nothing ("Unknown", "") is 0. */
static double speed_of(struct nccl_reader *reader, const struct xml_element *element)
{
    const struct xml_attribute *attribute = xml_get(element, "link_speed");
    if (attribute == NULL || strncmp(attribute->value, "Unknown", 7) == 0)
        return 0;
    const size_t length = strspn(attribute->value, "0123456789.");
    const char *number = arena_strndup(reader->graph->arena, attribute->value, length);
    const char *rest = attribute->value + length + strspn(attribute->value + length, " ");
    double value = 0;
    if (length == 0 && rest[0] == '\0')
        return 0;
    if (text_to_double(number, &value) && value > 0 && value <= 1024 &&
        strncmp(rest, "GT/s", 4) == 0)
        return value;
    diag_add(reader->graph->diag, DIAG_ERROR, attribute->place, "as '16.0 GT/s PCIe', or 'Unknown'",
             "'link_speed' of '%s' is '%s'", element->name, attribute->value);
    return 0;
}

/* "0000:81:00.0": domain (up to 8 hexadecimal digits), bus, device, function. */
static bool is_busid(const char *text)
{
    static const struct {
        int32_t min, max;
        char end;
    } parts[] = {{1, 8, ':'}, {2, 2, ':'}, {2, 2, '.'}, {1, 1, '\0'}};
    for (int k = 0; k < 4; k++) {
        int32_t digits = 0;
        while (hex_digit(text[digits]) >= 0)
            digits++;
        if (digits < parts[k].min || digits > parts[k].max || text[digits] != parts[k].end)
            return false;
        text += digits + (parts[k].end != '\0');
    }
    return true;
}

/* ---- what a 'pci' is ---------------------------------------------------------------------- */

static bool is_named(const struct xml_element *element, const char *name)
{
    return strcmp(element->name, name) == 0;
}

static int32_t child_named(const struct xml_tree *tree, int32_t parent, const char *name)
{
    int32_t child = tree->items[parent].first_child;
    while (child != XML_NONE && !is_named(&tree->items[child], name))
        child = tree->items[child].next;
    return child;
}

enum {
    CLASS_NETWORK = 0x02,
    CLASS_DISPLAY = 0x03,
    CLASS_ACCELERATOR = 0x12,
    CLASS_NVSWITCH = 0x0680
};
enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de };

static bool is_gpu(const struct nccl_reader *reader, int32_t idx, const struct pci_device *pci)
{
    const uint32_t base = pci->class_code >> 16;
    const bool is_maker =
        pci->vendor == 0 || pci->vendor == VENDOR_AMD || pci->vendor == VENDOR_NVIDIA;
    return child_named(reader->tree, idx, "gpu") != XML_NONE ||
           ((base == CLASS_DISPLAY || base == CLASS_ACCELERATOR) && is_maker);
}

static bool is_nic(const struct nccl_reader *reader, int32_t idx, const struct pci_device *pci)
{
    return child_named(reader->tree, idx, "nic") != XML_NONE ||
           pci->class_code >> 16 == CLASS_NETWORK;
}

static struct pci_device read_pci(struct nccl_reader *reader, const struct xml_element *element,
                                  int32_t cpu, int32_t bridge)
{
    struct pci_device pci = {.busid = busid_of(reader, element, "busid"),
                             .vendor = hex_of(reader, element, "vendor"),
                             .device = hex_of(reader, element, "device"),
                             .class_code = hex_of(reader, element, "class"),
                             .bridge = bridge,
                             .cpu = cpu,
                             .place = element->place};
    pci.speed.gt_per_s = speed_of(reader, element);
    pci.speed.width = (int32_t)count_of(reader, element, "link_width", 0, 0, 255);
    const struct xml_attribute *busid = xml_get(element, "busid");
    if (busid == NULL)
        diag_add(reader->graph->diag, DIAG_ERROR, element->place, NULL, "'pci' has no 'busid'");
    else if (!is_busid(busid->value))
        diag_add(reader->graph->diag, DIAG_ERROR, busid->place, "as 0000:81:00.0",
                 "'busid' of 'pci' is '%s'", busid->value);
    return pci;
}

/* ---- GPUs and their links ----------------------------------------------------------------- */

static void skip(struct nccl_reader *reader, const struct xml_element *element)
{
    for (int32_t k = 0; k < reader->strange_count; k++) {
        if (strcmp(reader->strange[k], element->name) == 0)
            return;
    }
    if (reader->strange_count >= MAX_STRANGE)
        return;
    reader->strange[reader->strange_count++] = element->name;
    graph_note(reader->graph, ABOUT_FILE, NOTE_DROPPED, NULL, "elements '%s'", element->name);
}

static void read_link(struct nccl_reader *reader, const struct xml_element *element, int32_t from)
{
    const struct xml_attribute *target = xml_get(element, "target");
    struct graph_link link = {.from = from,
                              .to = NO_ITEM,
                              .count = count_of(reader, element, "count", 1, 1, 1024),
                              .target = busid_of(reader, element, "target"),
                              .place = target != NULL ? target->place : element->place};
    if (target == NULL)
        diag_add(reader->graph->diag, DIAG_ERROR, element->place, NULL, "'%s' has no 'target'",
                 element->name);
    /* NVSwitch by its class, or by the bus id that is none. */
    link.is_to_switch = hex_of(reader, element, "tclass") >> 8 == CLASS_NVSWITCH ||
                        strncmp(link.target, "fffffff:", 8) == 0;
    *ARENA_PUSH(reader->graph->arena, &reader->graph->links) = link;
}

/* "90" → "sm_90"; RCCL: gcn "gfx942", or "910", "908", "906" of older ones. */
static const char *arch_of(struct nccl_reader *reader, const struct xml_element *element)
{
    const char *gcn = text_of(element, "gcn");
    const int64_t sm = count_of(reader, element, "sm", 0, 0, 100000);
    if (gcn[0] == 'g')
        return gcn;
    if (gcn[0] != '\0') /* RCCL counts gfx90a as 910 */
        return strcmp(gcn, "910") == 0 ? "gfx90a"
                                       : arena_printf(reader->graph->arena, "gfx%s", gcn);
    return sm > 0 ? arena_printf(reader->graph->arena, "sm_%lld", (long long)sm) : "";
}

static void read_gpu(struct nccl_reader *reader, int32_t idx, const struct pci_device *pci)
{
    enum { MEGA = 1000000 };
    const struct xml_tree *tree = reader->tree;
    const int32_t gpu_idx = reader->graph->gpus.count;
    struct graph_gpu *gpu = ARENA_PUSH(reader->graph->arena, &reader->graph->gpus);
    *gpu = (struct graph_gpu){.pci = *pci, .dev = -1, .arch = ""};
    const int32_t tag = child_named(tree, idx, "gpu");
    if (tag == XML_NONE)
        return;
    gpu->dev = count_of(reader, &tree->items[tag], "dev", -1, 0, 4095);
    gpu->arch = arch_of(reader, &tree->items[tag]);
    for (int32_t at = tree->items[tag].first_child; at != XML_NONE; at = tree->items[at].next) {
        const struct xml_element *child = &tree->items[at];
        if (is_named(child, "nvlink") || is_named(child, "xgmi"))
            read_link(reader, child, gpu_idx);
        else if (is_named(child, "c2c"))
            gpu->c2c_bytes_per_s += (double)count_of(reader, child, "bw", 0, 0, 100000000) *
                                    (double)count_of(reader, child, "count", 1, 1, 1024) * MEGA;
        else
            skip(reader, child);
    }
}

/* ---- NICs --------------------------------------------------------------------------------- */

/* `pci` NULL: it hangs on the CPU, as NICs that NCCL has merged do. */
static void read_net(struct nccl_reader *reader, const struct xml_element *element,
                     const struct pci_device *pci, int32_t cpu)
{
    const double bytes_per_mbit = 1e6 / 8;
    const struct pci_device none = {
        .busid = "", .bridge = NO_ITEM, .cpu = cpu, .place = element->place};
    struct graph_nic *nic = ARENA_PUSH(reader->graph->arena, &reader->graph->nics);
    *nic = (struct graph_nic){.pci = pci != NULL ? *pci : none, .name = text_of(element, "name")};
    nic->bytes_per_s = (double)count_of(reader, element, "speed", 0, 0, 100000000) * bytes_per_mbit;
}

static void read_nets(struct nccl_reader *reader, int32_t nic, const struct pci_device *pci,
                      int32_t cpu)
{
    const struct xml_tree *tree = reader->tree;
    for (int32_t at = tree->items[nic].first_child; at != XML_NONE; at = tree->items[at].next) {
        if (is_named(&tree->items[at], "net"))
            read_net(reader, &tree->items[at], pci, cpu);
        else
            skip(reader, &tree->items[at]);
    }
}

static void read_nic(struct nccl_reader *reader, int32_t idx, const struct pci_device *pci)
{
    const struct xml_tree *tree = reader->tree;
    const int32_t before = reader->graph->nics.count;
    for (int32_t at = tree->items[idx].first_child; at != XML_NONE; at = tree->items[at].next) {
        if (is_named(&tree->items[at], "nic"))
            read_nets(reader, at, pci, pci->cpu);
        else
            skip(reader, &tree->items[at]);
    }
    if (reader->graph->nics.count > before)
        return;
    if (reader->has_nets) {
        graph_note(reader->graph, ABOUT_NICS, NOTE_DROPPED, pci->busid,
                   "without a 'net': NCCL does not use it");
        return;
    }
    *ARENA_PUSH(reader->graph->arena, &reader->graph->nics) =
        (struct graph_nic){.pci = *pci, .name = ""};
}

/* ---- the tree ----------------------------------------------------------------------------- */

static void read_below(struct nccl_reader *reader, int32_t parent, int32_t cpu, int32_t bridge);

static void read_device(struct nccl_reader *reader, int32_t idx, int32_t cpu, int32_t bridge)
{
    const struct pci_device pci = read_pci(reader, &reader->tree->items[idx], cpu, bridge);
    if (is_gpu(reader, idx, &pci)) {
        read_gpu(reader, idx, &pci);
    } else if (is_nic(reader, idx, &pci)) {
        read_nic(reader, idx, &pci);
    } else if (child_named(reader->tree, idx, "pci") != XML_NONE) {
        const int32_t below = reader->graph->bridges.count;
        *ARENA_PUSH(reader->graph->arena, &reader->graph->bridges) = pci;
        read_below(reader, idx, cpu, below);
    } else {
        reader->graph->unclassed_count += pci.class_code == 0;
        graph_note(reader->graph, ABOUT_PCIE, NOTE_DROPPED, pci.busid,
                   "PCI devices that are neither GPU nor NIC");
    }
}

/* The depth of the recursion is that of the XML, which xml_parse bounds. */
static void read_below(struct nccl_reader *reader, int32_t parent, int32_t cpu, int32_t bridge)
{
    const struct xml_tree *tree = reader->tree;
    for (int32_t at = tree->items[parent].first_child; at != XML_NONE; at = tree->items[at].next) {
        if (is_named(&tree->items[at], "pci"))
            read_device(reader, at, cpu, bridge);
        else if (is_named(&tree->items[at], "nic"))
            read_nets(reader, at, NULL, cpu);
        else
            skip(reader, &tree->items[at]);
    }
}

static void read_cpu(struct nccl_reader *reader, int32_t idx)
{
    const struct xml_element *element = &reader->tree->items[idx];
    const int32_t cpu = reader->graph->cpus.count;
    *ARENA_PUSH(reader->graph->arena, &reader->graph->cpus) =
        (struct graph_cpu){.host = text_of(element, "host_hash"),
                           .numa = count_of(reader, element, "numaid", -1, -1, 4095),
                           .arch = text_of(element, "arch"),
                           .vendor = text_of(element, "vendor"),
                           .family = count_of(reader, element, "familyid", -1, -1, 100000),
                           .model = count_of(reader, element, "modelid", -1, -1, 100000),
                           .place = element->place};
    read_below(reader, idx, cpu, NO_ITEM);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static enum status check_root(struct nccl_reader *reader)
{
    const struct xml_element *root = &reader->tree->items[0];
    if (is_named(root, "system"))
        return STATUS_OK;
    diag_add(reader->graph->diag, DIAG_ERROR, root->place,
             is_named(root, "graphs")
                 ? "this is what NCCL_GRAPH_DUMP_FILE writes; NCCL_TOPO_DUMP_FILE is wanted"
                 : "NCCL_TOPO_DUMP_FILE=topo.xml makes NCCL write one",
             "a topology starts with 'system', this with '%s'", root->name);
    return STATUS_INPUT;
}

static bool has_nets(const struct xml_tree *tree)
{
    for (int32_t k = 0; k < tree->count; k++) {
        if (is_named(&tree->items[k], "net"))
            return true;
    }
    return false;
}

enum status import_nccl_read(struct machine_graph *graph)
{
    struct xml_tree tree = {0};
    const int32_t errors = graph->diag->error_count;
    enum status status = xml_parse(graph->arena, graph->source, &tree, graph->diag);
    if (status != STATUS_OK)
        return status;
    struct nccl_reader reader = {.tree = &tree,
                                 .graph = graph,
                                 .has_nets = has_nets(&tree),
                                 .strange = ARENA_ARRAY(graph->arena, const char *, MAX_STRANGE)};
    status = check_root(&reader);
    if (status != STATUS_OK)
        return status;
    graph->made_by = "NCCL topology XML";
    graph->has_pci = true;
    for (int32_t at = tree.items[0].first_child; at != XML_NONE; at = tree.items[at].next) {
        if (is_named(&tree.items[at], "cpu"))
            read_cpu(&reader, at);
        else
            skip(&reader, &tree.items[at]);
    }
    return graph->diag->error_count > errors ? STATUS_INPUT : STATUS_OK;
}
