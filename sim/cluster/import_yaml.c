/*
 * cluster/import_yaml.c: the cluster file of an imported machine, as one would write it by hand,
 * with the notes above the blocks that they are about.
 */
#include <string.h>

#include "base/units.h"
#include "cluster/import_private.h"

enum { LINE_WIDTH = 98 };

struct writer {
    const struct machine_graph *graph;
    const struct import_tables *tables;
    const struct machine_facts *facts;
    const struct machine_plan *plan;
    struct strbuf *yaml;
};

/* ---- texts -------------------------------------------------------------------------------- */

/* Texts of the file may hold anything: only what is printable, and in ASCII, is written. */
static const char *printable(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    for (char *at = copy; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7F)
            *at = '?';
    }
    return copy;
}

/* Words of `text` in lines of LINE_WIDTH: the first after `lead`, the others after `next`. */
static void write_wrapped(struct writer *writer, const char *lead, const char *next,
                          const char *text)
{
    const char *rest = printable(writer->graph->arena, text);
    for (; rest[0] != '\0'; lead = next) {
        const size_t room = LINE_WIDTH - strlen(lead);
        size_t cut = strlen(rest);
        if (cut > room) {
            cut = room;
            while (cut > 0 && rest[cut] != ' ')
                cut--;
            cut = cut == 0 ? room : cut;
        }
        strbuf_printf(writer->yaml, "%s%.*s\n", lead, (int)cut, rest);
        rest += cut;
        rest += strspn(rest, " ");
    }
}

static void write_comment(struct writer *writer, int32_t indent, const char *text)
{
    struct arena *arena = writer->graph->arena;
    write_wrapped(writer, arena_printf(arena, "%*s# ", (int)indent, ""),
                  arena_printf(arena, "%*s#   ", (int)indent, ""), text);
}

static void write_notes(struct writer *writer, enum note_about about, int32_t indent)
{
    static const char *const words[] = {"read", "corrected", "assumed", "dropped"};
    struct arena *arena = writer->graph->arena;
    for (int32_t k = 0; k < writer->graph->notes.count; k++) {
        const struct import_note *note = &writer->graph->notes.items[k];
        if (note->about != about)
            continue;
        const char *devices = note->devices;
        if (note->device_count > 4)
            devices = arena_printf(arena, "%s and %d more", devices, (int)note->device_count - 4);
        write_comment(writer, indent,
                      devices == NULL ? arena_printf(arena, "%s: %s", words[note->kind], note->text)
                                      : arena_printf(arena, "%s: %s (%s)", words[note->kind],
                                                     note->text, devices));
    }
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_plain(const char *text)
{
    return text[0] != '\0' && strchr(LETTERS, text[0]) != NULL &&
           strspn(text, LETTERS "0123456789-_./") == strlen(text) && strcmp(text, "true") != 0 &&
           strcmp(text, "false") != 0 && strcmp(text, "null") != 0;
}

/* Bare where YAML reads it as it is, in quotes otherwise. */
static const char *scalar(struct arena *arena, const char *text)
{
    if (is_plain(text))
        return text;
    struct strbuf out = {0};
    strbuf_add(&out, "\"");
    for (const char *at = printable(arena, text); *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            strbuf_add(&out, "\\");
        strbuf_add_bytes(&out, at, 1);
    }
    strbuf_add(&out, "\"");
    const char *copy = arena_strdup(arena, out.text);
    strbuf_release(&out);
    return copy;
}

static const char *bandwidth_text(struct arena *arena, double bytes_per_s)
{
    char text[64];
    return arena_strdup(arena, format_quantity(text, sizeof(text), bytes_per_s, DIM_BANDWIDTH));
}

/* A value of a shipped file, in flow form. */
static void write_node(struct writer *writer, const struct node *node)
{
    struct arena *arena = writer->graph->arena;
    const bool is_map = node->kind == NODE_MAP;
    if (node->kind == NODE_SCALAR || node->kind == NODE_NULL) {
        const char *text = node->kind == NODE_NULL ? "null" : node->text;
        strbuf_add(writer->yaml, node->is_quoted ? scalar(arena, text) : printable(arena, text));
        return;
    }
    strbuf_add(writer->yaml, is_map ? "{" : "[");
    for (int32_t k = 0; k < node->entries.count; k++) {
        strbuf_add(writer->yaml, k > 0 ? ", " : "");
        if (is_map)
            strbuf_printf(writer->yaml, "%s: ", node->entries.items[k].key);
        write_node(writer, node->entries.items[k].value);
    }
    strbuf_add(writer->yaml, is_map ? "}" : "]");
}

static const struct node *shipped(const struct writer *writer, const char *part, const char *key)
{
    const struct node *host = import_machine_node(writer->tables, writer->facts->like, "host");
    const struct node *map = host != NULL ? node_get(host, part) : NULL;
    return map == NULL || key == NULL || map->kind != NODE_MAP ? (key == NULL ? map : NULL)
                                                               : node_get(map, key);
}

/* ---- links between GPUs ------------------------------------------------------------------- */

/* A port of so many links; on one line unless pairs follow. */
static void write_port(struct writer *writer, const char *kind, int32_t links, bool has_pairs)
{
    struct arena *arena = writer->graph->arena;
    const struct machine_facts *facts = writer->facts;
    const double port = facts->link_bytes_per_s * links;
    const char *gap = has_pairs ? "\n    " : ", ";
    strbuf_printf(writer->yaml, "  scale_up:%skind: %s%slink: %s", has_pairs ? "\n    " : " {",
                  kind, gap, facts->link);
    if (port != import_link_bytes_per_s(writer->tables, facts->link))
        strbuf_printf(writer->yaml, "%sbandwidth: %s", gap, bandwidth_text(arena, port));
    if (writer->graph->host_count > 1)
        strbuf_printf(writer->yaml, "%sdomain_hosts: %d", gap, (int)writer->graph->host_count);
    strbuf_printf(writer->yaml, "%s # a port of %d links of %s\n", has_pairs ? "" : "}", (int)links,
                  bandwidth_text(arena, facts->link_bytes_per_s));
}

static void write_pairs(struct writer *writer)
{
    const struct machine_graph *graph = writer->graph;
    const int32_t count = graph->gpus.count;
    strbuf_add(writer->yaml, "    links:\n");
    for (int32_t a = 0; a < count; a++) {
        for (int32_t b = a + 1; b < count; b++) {
            const int32_t links = graph->pair_links[a * count + b];
            if (links > 0)
                strbuf_printf(writer->yaml, "      - {gpus: [%d, %d], count: %d}\n", (int)a, (int)b,
                              (int)links);
        }
    }
}

/* The scale-up of the shipped machine, for a file that says nothing of it. */
static void write_shipped_scale_up(struct writer *writer)
{
    const struct node *node = shipped(writer, "scale_up", NULL);
    if (node == NULL)
        return;
    strbuf_add(writer->yaml, "  scale_up: ");
    write_node(writer, node);
    strbuf_add(writer->yaml, "\n");
}

static void write_scale_up(struct writer *writer)
{
    const struct machine_graph *graph = writer->graph;
    const int32_t count = graph->gpus.count;
    int32_t to_switch = count > 0 ? graph->switch_links[0] : 0;
    int32_t least = INT32_MAX;
    int32_t most_of_one = 0;
    for (int32_t a = 0; a < count; a++) {
        int32_t sum = 0;
        to_switch = graph->switch_links[a] < to_switch ? graph->switch_links[a] : to_switch;
        for (int32_t b = 0; b < count; b++) {
            const int32_t links = graph->pair_links[a * count + b];
            sum += links;
            if (a != b && links < least)
                least = links;
        }
        most_of_one = sum > most_of_one ? sum : most_of_one;
    }
    write_notes(writer, ABOUT_SCALE_UP, 2);
    if (count < 2 && graph->host_count < 2)
        return;
    if (writer->facts->link == NULL)
        return;
    if (!(writer->facts->link_bytes_per_s > 0)) {
        write_shipped_scale_up(writer);
    } else if (to_switch > 0) {
        write_port(writer, "nvswitch", to_switch, false);
    } else if (least > 0 && least * (count - 1) == most_of_one) {
        write_port(writer, "mesh", most_of_one, false);
    } else if (most_of_one > 0) {
        write_port(writer, "links", most_of_one, true);
        write_pairs(writer);
    }
}

/* ---- PCIe --------------------------------------------------------------------------------- */

/* "0-1" or "[0, 4-5]": those of `slots` that `is_wanted` says. */
static const char *indices(struct arena *arena, const struct plan_slot *slots, int32_t count,
                           const bool *is_wanted)
{
    const char *text = NULL;
    int32_t ranges = 0;
    (void)slots;
    for (int32_t k = 0; k < count; k++) {
        if (!is_wanted[k])
            continue;
        int32_t last = k;
        while (last + 1 < count && is_wanted[last + 1])
            last++;
        const char *range = last > k ? arena_printf(arena, "%d-%d", (int)k, (int)last)
                                     : arena_printf(arena, "%d", (int)k);
        text = text == NULL ? range : arena_printf(arena, "%s, %s", text, range);
        ranges++;
        k = last;
    }
    return ranges > 1 ? arena_printf(arena, "[%s]", text) : text;
}

/* Of a switch, or (group NO_ITEM) of root ports of one NUMA node with as many lanes as the first
   that is not written yet; marks them. */
static const char *take(struct writer *writer, const struct plan_slot *slots, int32_t count,
                        int32_t group, int32_t numa, bool *is_written, int32_t *lanes)
{
    enum { FULL = 16 };
    bool *is_wanted = ARENA_ARRAY(writer->graph->arena, bool, count);
    bool has_any = false;
    *lanes = FULL;
    for (int32_t k = 0; k < count; k++) {
        const struct plan_slot *slot = &slots[k];
        if (is_written[k] || slot->group != group || (group == NO_ITEM && slot->numa != numa) ||
            (has_any && slot->lanes != *lanes))
            continue;
        *lanes = slot->lanes;
        has_any = true;
        is_wanted[k] = true;
        is_written[k] = true;
    }
    return indices(writer->graph->arena, slots, count, is_wanted);
}

struct hanging {
    const char *gpus, *nics;
    int32_t gpu_lanes, nic_lanes;
};

static void write_hanging(struct writer *writer, const struct hanging *hanging, int32_t numa,
                          const char *comma)
{
    enum { FULL = 16 };
    if (hanging->gpus != NULL) {
        strbuf_printf(writer->yaml, "%sgpus: %s", comma, hanging->gpus);
        comma = ", ";
    }
    if (hanging->nics != NULL) {
        strbuf_printf(writer->yaml, "%snics: %s", comma, hanging->nics);
        comma = ", ";
    }
    if (hanging->gpus != NULL && hanging->gpu_lanes != FULL)
        strbuf_printf(writer->yaml, ", gpu_lanes: %d", (int)hanging->gpu_lanes);
    if (hanging->nics != NULL && hanging->nic_lanes != FULL)
        strbuf_printf(writer->yaml, ", nic_lanes: %d", (int)hanging->nic_lanes);
    strbuf_printf(writer->yaml, "%snuma: %d", comma, (int)numa);
}

static void write_switches(struct writer *writer, bool *has_gpu, bool *has_nic)
{
    enum { FULL = 16 };
    const struct machine_plan *plan = writer->plan;
    const struct machine_graph *graph = writer->graph;
    for (int32_t k = 0; k < plan->switch_count; k++) {
        const struct plan_switch *one = &plan->switches[k];
        struct hanging hanging = {0};
        hanging.gpus =
            take(writer, plan->gpus, graph->gpus.count, k, 0, has_gpu, &hanging.gpu_lanes);
        hanging.nics =
            take(writer, plan->nics, graph->nics.count, k, 0, has_nic, &hanging.nic_lanes);
        if (k == 0)
            strbuf_add(writer->yaml, "    switches:\n");
        strbuf_printf(writer->yaml, "      - {name: sw%d, ", (int)k);
        if (one->parent != NO_ITEM)
            strbuf_printf(writer->yaml, "parent: sw%d, ", (int)one->parent);
        if (one->uplink_lanes != FULL)
            strbuf_printf(writer->yaml, "uplink_lanes: %d, ", (int)one->uplink_lanes);
        write_hanging(writer, &hanging, one->numa, "");
        strbuf_add(writer->yaml, "}");
        if (one->busid[0] != '\0')
            strbuf_printf(writer->yaml, " # %s", printable(graph->arena, one->busid));
        strbuf_add(writer->yaml, "\n");
    }
}

static void write_roots(struct writer *writer, bool *has_gpu, bool *has_nic)
{
    const struct machine_plan *plan = writer->plan;
    const struct machine_graph *graph = writer->graph;
    bool is_first = true;
    for (int32_t numa = 0; numa < plan->numa_count;) {
        struct hanging hanging = {0};
        hanging.gpus =
            take(writer, plan->gpus, graph->gpus.count, NO_ITEM, numa, has_gpu, &hanging.gpu_lanes);
        hanging.nics =
            take(writer, plan->nics, graph->nics.count, NO_ITEM, numa, has_nic, &hanging.nic_lanes);
        if (hanging.gpus == NULL && hanging.nics == NULL) {
            numa++;
            continue;
        }
        strbuf_printf(writer->yaml, "%s      - {", is_first ? "    roots:\n" : "");
        is_first = false;
        write_hanging(writer, &hanging, numa, "");
        strbuf_add(writer->yaml, "}\n");
    }
}

static bool has_c2c(const struct machine_graph *graph)
{
    return graph->gpus.items[0].c2c_bytes_per_s > 0;
}

static void write_pcie(struct writer *writer)
{
    const struct machine_graph *graph = writer->graph;
    bool *has_gpu = ARENA_ARRAY(graph->arena, bool, graph->gpus.count);
    bool *has_nic = ARENA_ARRAY(graph->arena, bool, graph->nics.count);
    write_notes(writer, ABOUT_PCIE, 2);
    strbuf_printf(writer->yaml, "  pcie:\n    link: %s\n", writer->plan->pcie->link);
    const struct node *c2c = shipped(writer, "pcie", "gpu_link");
    if (has_c2c(graph) && c2c != NULL) {
        strbuf_add(writer->yaml, "    gpu_link: ");
        write_node(writer, c2c);
        strbuf_add(writer->yaml, "\n");
    }
    if (!writer->facts->row->is_p2p) {
        const struct node *staged = shipped(writer, "pcie", "staged");
        strbuf_add(writer->yaml, "    p2p: host\n");
        if (staged != NULL) {
            strbuf_add(writer->yaml, "    staged: ");
            write_node(writer, staged);
            strbuf_add(writer->yaml, "\n");
        }
    }
    write_switches(writer, has_gpu, has_nic);
    write_roots(writer, has_gpu, has_nic);
}

/* ---- the rest ----------------------------------------------------------------------------- */

static void write_numa(struct writer *writer)
{
    const struct machine_plan *plan = writer->plan;
    struct arena *arena = writer->graph->arena;
    const struct node *node = shipped(writer, "numa", "link");
    const char *link = writer->facts->socket_link;
    if (link == NULL && node != NULL && node->kind == NODE_SCALAR)
        link = node->text;
    if (plan->numa_count < 2)
        return;
    const char *ids = "";
    for (int32_t k = 0; k < plan->numa_count && plan->numa_ids[k] >= 0; k++)
        ids = arena_printf(arena, "%s%s%lld", ids, k > 0 ? ", " : "", (long long)plan->numa_ids[k]);
    if (ids[0] != '\0')
        write_comment(writer, 2, arena_printf(arena, "read: NUMA nodes %s, here from 0", ids));
    write_notes(writer, ABOUT_NUMA, 2);
    strbuf_printf(writer->yaml, "  numa: {count: %d, link: %s}\n", (int)plan->numa_count,
                  link != NULL ? link : "upi-skylake");
}

static void write_nics(struct writer *writer)
{
    const struct machine_facts *facts = writer->facts;
    struct arena *arena = writer->graph->arena;
    const char *names = "";
    write_notes(writer, ABOUT_NICS, 2);
    if (facts->nic_link == NULL)
        return;
    for (int32_t k = 0; k < writer->graph->nics.count; k++) {
        const struct graph_nic *nic = &writer->graph->nics.items[k];
        const char *name = nic->name[0] != '\0' ? nic->name : nic->pci.busid;
        names = arena_printf(arena, "%s%s%s", names, k > 0 ? ", " : "", name);
    }
    if (writer->graph->nics.count <= 16)
        write_comment(writer, 2, arena_printf(arena, "read: NICs from 0: %s", names));
    strbuf_printf(writer->yaml, "  nics: {count: %d, link: %s", (int)writer->graph->nics.count,
                  scalar(arena, facts->nic_link));
    if (facts->nic_bytes_per_s > 0)
        strbuf_printf(writer->yaml, ", bandwidth: %s",
                      bandwidth_text(arena, facts->nic_bytes_per_s));
    strbuf_add(writer->yaml, "}\n");
}

static const char *stem_of(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    char *stem = dot != NULL && dot > name ? arena_strndup(arena, name, (size_t)(dot - name))
                                           : arena_strdup(arena, name);
    for (char *at = stem; *at != '\0'; at++) {
        if (strchr("<>", *at) != NULL || !is_plain(arena_printf(arena, "a%c", *at)))
            *at = '-';
    }
    return stem;
}

static void write_summary(struct writer *writer)
{
    struct arena *arena = writer->graph->arena;
    const struct machine_facts *facts = writer->facts;
    char rate[64];
    const char *text =
        arena_printf(arena, "%d %s a host", (int)writer->graph->gpus.count, facts->row->what);
    if (facts->link != NULL)
        text = arena_printf(arena, "%s, %s", text, facts->link);
    if (facts->nic_link != NULL)
        text = arena_printf(
            arena, "%s, %d x %s", text, (int)writer->graph->nics.count,
            format_bandwidth(rate, sizeof(rate), writer->graph->nics.items[0].bytes_per_s));
    strbuf_printf(writer->yaml, "summary: %s\n",
                  strspn(text, LETTERS "0123456789 ,.-/+") == strlen(text) ? text
                                                                           : scalar(arena, text));
}

static void write_rest(struct writer *writer)
{
    const struct node *collectives =
        import_machine_node(writer->tables, writer->facts->like, "collectives");
    const int32_t hosts = writer->graph->host_count;
    write_notes(writer, ABOUT_REST, 0);
    write_comment(writer, 0,
                  "assumed: how many such hosts there are, and one switch for all that "
                  "carries all they send");
    strbuf_printf(writer->yaml, "hosts: {default: %d, max: %d}\nfabric: {oversubscription: 1}\n",
                  (int)hosts, writer->facts->nic_link != NULL ? 4096 : (int)hosts);
    if (collectives == NULL || collectives->kind != NODE_MAP)
        return;
    write_comment(writer, 0,
                  arena_printf(writer->graph->arena, "assumed: collectives run as in %s",
                               writer->facts->like));
    strbuf_add(writer->yaml, "collectives:\n");
    for (int32_t k = 0; k < collectives->entries.count; k++) {
        strbuf_printf(writer->yaml, "  %s: ", collectives->entries.items[k].key);
        const struct node *value = collectives->entries.items[k].value;
        if (value->kind == NODE_SCALAR && strlen(value->text) > LINE_WIDTH / 2) {
            strbuf_add(writer->yaml, ">-\n");
            write_wrapped(writer, "    ", "    ", value->text);
            continue;
        }
        write_node(writer, value);
        strbuf_add(writer->yaml, "\n");
    }
}

void machine_write(const struct machine_graph *graph, const struct import_tables *tables,
                   const struct machine_facts *facts, const struct machine_plan *plan,
                   const struct import_options *options, struct strbuf *yaml)
{
    struct writer writer = {
        .graph = graph, .tables = tables, .facts = facts, .plan = plan, .yaml = yaml};
    const char *slash = strrchr(graph->source->name, '/');
    const char *file = slash != NULL ? slash + 1 : graph->source->name;
    write_wrapped(
        &writer, "# ", "# ",
        arena_printf(graph->arena,
                     "Imported from %s (%s). Comments say what of it was read, corrected, "
                     "assumed or dropped.",
                     file, graph->made_by));
    write_notes(&writer, ABOUT_FILE, 0);
    strbuf_printf(yaml, "version: 1\nname: %s\n",
                  scalar(graph->arena, options->name != NULL
                                           ? options->name
                                           : stem_of(graph->arena, graph->source->name)));
    write_summary(&writer);
    strbuf_add(yaml, "host:\n");
    write_notes(&writer, ABOUT_GPU, 2);
    strbuf_printf(yaml, "  gpu: %s\n  gpus: %d\n", scalar(graph->arena, facts->gpu),
                  (int)graph->gpus.count);
    write_scale_up(&writer);
    write_pcie(&writer);
    write_numa(&writer);
    write_nics(&writer);
    write_notes(&writer, ABOUT_CPU, 2);
    strbuf_printf(yaml, "  cpu: %s\n", scalar(graph->arena, facts->cpu));
    write_rest(&writer);
}
