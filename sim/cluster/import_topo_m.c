/*
 * cluster/import_topo_m.c: the matrix of `nvidia-smi topo -m` → machine_graph.
 *
 *           GPU0  GPU1  NIC0  CPU Affinity  NUMA Affinity  GPU NUMA ID
 *     GPU0   X    NV4   PIX   0-23          0              N/A
 *     GPU1  NV4    X    NODE  0-23          0              N/A
 *     NIC0  PIX   NODE   X
 *
 * As people keep it: split by tabs or spaces, the first tab of the header lost, escape sequences of
 * the terminal, text around it, last cells or rows of NICs missing (the other half of the matrix
 * stands in), NIC columns in any order, with or without the legends.
 *
 * The cells of PCIe say how far two devices are, in words; the tree is found again from them:
 *
 *     PIX, PXB  below one switch (of several levels only the group can be told): one switch
 *     PHB       below one CPU, each on root ports of its own
 *     NODE      the same NUMA node      SYS  another one
 *
 * NV# between GPUs hides how they hang on PCIe; that they share a switch then follows only from a
 * NIC that is PIX or PXB to both. NV# to more peers than one GPU has links for means a switch: 8
 * GPUs of 18 links with NV18 to each of 7. NUMA nodes are those of the 'NUMA Affinity' column, or
 * else told apart by 'CPU Affinity', or by SYS.
 */
#include <string.h>

#include "base/strbuf.h"
#include "cluster/import_private.h"

enum { TOPO_M_MAX_BYTES = 1 << 20, MAX_COLUMNS = 256, NAME_BYTES = 64 };

enum cell_kind { CELL_NONE, CELL_SELF, CELL_LINKS, CELL_SWITCH, CELL_ROOT, CELL_NODE, CELL_SYSTEM };

struct cell {
    enum cell_kind kind;
    int32_t links;
    struct place place;
};

struct column {
    const char *name;
    const char *alias; /* from the NIC legend, or NULL */
    bool is_gpu;
    bool has_row;
    const char *cores, *numa; /* "" : not said */
    struct place place;       /* of its row, else of the column */
};

struct matrix {
    struct machine_graph *graph;
    struct column columns[MAX_COLUMNS];
    int32_t count, row_count;
    bool has_numa, has_cores;
    struct cell *cells; /* [row * count + column] */
};

/* ---- lines and words ---------------------------------------------------------------------- */

struct word {
    const char *text;
    struct place place;
    int32_t tabs; /* before it: two and more mean empty cells */
};

struct line {
    struct word items[MAX_COLUMNS + 16];
    int32_t count;
    struct place place;
    bool is_too_long;
};

/* ESC [ … letter, at `at`: its length, 0: none. */
static size_t escape_length(const char *at, const char *end)
{
    const char *start = at;
    if (at >= end || *at != '\033')
        return 0;
    at++;
    if (at < end && *at == '[') {
        at++;
        while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x40)
            at++;
    }
    return (size_t)((at < end ? at + 1 : at) - start);
}

/* Splits one line, without its end, into words by blanks; escapes are skipped. */
static void split_line(struct matrix *matrix, const char *at, const char *end, int32_t number,
                       struct line *line)
{
    const struct source *source = matrix->graph->source;
    int32_t column = 1;
    int32_t tabs = 0;
    line->count = 0;
    line->is_too_long = false;
    line->place = (struct place){source, number, 1, 1};
    while (at < end) {
        const size_t escape = escape_length(at, end);
        if (escape > 0) {
            at += escape;
            column += (int32_t)escape;
        } else if (*at == ' ' || *at == '\t' || *at == '\r') {
            tabs += *at == '\t';
            at++;
            column++;
        } else {
            const char *start = at;
            while (at < end && *at != ' ' && *at != '\t' && *at != '\r' && *at != '\033')
                at++;
            if (line->count == (int32_t)(sizeof(line->items) / sizeof(line->items[0]))) {
                line->is_too_long = true;
                return;
            }
            line->items[line->count++] = (struct word){
                .text = arena_strndup(matrix->graph->arena, start, (size_t)(at - start)),
                .place = {source, number, column, (int32_t)(at - start)},
                .tabs = tabs};
            column += (int32_t)(at - start);
            tabs = 0;
        }
    }
}

static bool is_gpu_name(const char *text)
{
    return strncmp(text, "GPU", 3) == 0 && text[3] >= '0' && text[3] <= '9' &&
           strspn(text + 3, "0123456789") == strlen(text + 3);
}

/* ---- the header --------------------------------------------------------------------------- */

/* "CPU Affinity", "NUMA Affinity", "GPU NUMA ID": what stands after the matrix. */
static bool starts_trailer(const struct line *line, int32_t at)
{
    const char *word = line->items[at].text;
    const char *next = at + 1 < line->count ? line->items[at + 1].text : "";
    return (strcmp(word, "CPU") == 0 || strcmp(word, "NUMA") == 0 || strcmp(word, "GPU") == 0) &&
           (strcmp(next, "Affinity") == 0 || strcmp(next, "NUMA") == 0 || strcmp(next, "ID") == 0);
}

static int32_t column_named(const struct matrix *matrix, const char *name)
{
    for (int32_t k = 0; k < matrix->count; k++) {
        if (strcmp(matrix->columns[k].name, name) == 0)
            return k;
    }
    return NO_ITEM;
}

static bool read_cell(const struct word *word, struct cell *cell);

/* It starts with a GPU, and then comes no cell: "GPU0  X …" is a row. */
static bool is_header(const struct line *line)
{
    struct cell cell;
    return is_gpu_name(line->items[0].text) &&
           (line->count == 1 || !read_cell(&line->items[1], &cell));
}

static void read_header(struct matrix *matrix, const struct line *line)
{
    struct diag *diag = matrix->graph->diag;
    int32_t at = 0;
    for (; at < line->count && !starts_trailer(line, at); at++) {
        const struct word *word = &line->items[at];
        if (column_named(matrix, word->text) != NO_ITEM) {
            diag_add(diag, DIAG_ERROR, word->place, NULL, "column '%s' stands twice", word->text);
            continue;
        }
        if (matrix->count == MAX_COLUMNS) {
            diag_add(diag, DIAG_ERROR, word->place, NULL, "more than %d columns", MAX_COLUMNS);
            return;
        }
        matrix->columns[matrix->count++] = (struct column){.name = word->text,
                                                           .is_gpu = is_gpu_name(word->text),
                                                           .cores = "",
                                                           .numa = "",
                                                           .place = word->place};
    }
    for (; at + 1 < line->count; at++) {
        const bool is_affinity = strcmp(line->items[at + 1].text, "Affinity") == 0;
        matrix->has_cores |= is_affinity && strcmp(line->items[at].text, "CPU") == 0;
        matrix->has_numa |= is_affinity && strcmp(line->items[at].text, "NUMA") == 0;
    }
    matrix->cells = ARENA_ARRAY(matrix->graph->arena, struct cell,
                                (size_t)matrix->count * (size_t)matrix->count);
}

/* ---- rows --------------------------------------------------------------------------------- */

static bool read_cell(const struct word *word, struct cell *cell)
{
    static const struct {
        const char *word;
        enum cell_kind kind;
    } words[] = {{"X", CELL_SELF},     {"PIX", CELL_SWITCH}, {"PXB", CELL_SWITCH},
                 {"PSB", CELL_SWITCH}, {"PHB", CELL_ROOT},   {"NODE", CELL_NODE},
                 {"SYS", CELL_SYSTEM}, {"SOC", CELL_SYSTEM}, {NULL, CELL_NONE}};
    *cell = (struct cell){.place = word->place};
    for (int32_t k = 0; words[k].word != NULL; k++) {
        if (strcmp(words[k].word, word->text) == 0)
            cell->kind = words[k].kind;
    }
    int64_t links = 0;
    if (cell->kind == CELL_NONE && strncmp(word->text, "NV", 2) == 0 &&
        text_to_int64(word->text + 2, &links) && links >= 1 && links <= 1024) {
        cell->kind = CELL_LINKS;
        cell->links = (int32_t)links;
    }
    return cell->kind != CELL_NONE;
}

static bool looks_like_cores(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789,-") == strlen(text);
}

/* After the cells: cores, NUMA node. Tabs tell empty ones apart, blanks do not. */
static void read_trailer(const struct matrix *matrix, const struct line *line, int32_t at,
                         struct column *column)
{
    if (!matrix->has_cores || at >= line->count)
        return;
    int32_t place = line->items[at].tabs > 1 ? line->items[at].tabs - 1 : 0;
    for (; at < line->count; at++) {
        const char *text = line->items[at].text;
        if (place == 0 && looks_like_cores(text))
            column->cores = text;
        else if (place == 1 && looks_like_cores(text) && matrix->has_numa)
            column->numa = text;
        place +=
            at + 1 < line->count && line->items[at + 1].tabs > 1 ? line->items[at + 1].tabs : 1;
    }
}

static void read_row(struct matrix *matrix, const struct line *line, int32_t row)
{
    struct diag *diag = matrix->graph->diag;
    struct column *column = &matrix->columns[row];
    if (column->has_row) {
        diag_add(diag, DIAG_ERROR, line->items[0].place, NULL, "row '%s' stands twice",
                 column->name);
        return;
    }
    column->has_row = true;
    column->place = line->items[0].place;
    matrix->row_count++;
    int32_t at = 1;
    for (; at < line->count && at <= matrix->count; at++) {
        struct cell *cell = &matrix->cells[row * matrix->count + at - 1];
        if (read_cell(&line->items[at], cell))
            continue;
        if (at == 1 || !looks_like_cores(line->items[at].text))
            diag_add(diag, DIAG_ERROR, line->items[at].place,
                     "accepted: X, NV1 to NV1024, PIX, PXB, PHB, NODE, SYS",
                     "'%s' is no cell of the matrix (row '%s', column '%s')", line->items[at].text,
                     column->name, matrix->columns[at - 1].name);
        break;
    }
    const struct cell *self = &matrix->cells[row * matrix->count + row];
    if (self->kind != CELL_SELF && self->kind != CELL_NONE)
        diag_add(diag, DIAG_ERROR, self->place,
                 "cells are missing, or columns are not those of "
                 "the header",
                 "row '%s' has no X below its own column", column->name);
    read_trailer(matrix, line, at, column);
}

/* "  NIC0: mlx5_0" */
static void read_legend(struct matrix *matrix, const struct line *line)
{
    if (line->count != 2)
        return;
    const char *name = line->items[0].text;
    const size_t length = strlen(name);
    if (length < 2 || name[length - 1] != ':')
        return;
    const int32_t column =
        column_named(matrix, arena_strndup(matrix->graph->arena, name, length - 1));
    if (column != NO_ITEM)
        matrix->columns[column].alias = line->items[1].text;
}

static void read_lines(struct matrix *matrix)
{
    const char *at = matrix->graph->source->text;
    const char *text_end = at + matrix->graph->source->length;
    struct line *line = ARENA_NEW(matrix->graph->arena, struct line);
    bool is_in_legend = false;
    for (int32_t number = 1; at < text_end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(text_end - at));
        const char *end = newline != NULL ? newline : text_end;
        split_line(matrix, at, end, number, line);
        at = newline != NULL ? newline + 1 : text_end;
        if (line->is_too_long) {
            diag_add(matrix->graph->diag, DIAG_ERROR, line->place, NULL, "a line of over %d words",
                     MAX_COLUMNS);
            return;
        }
        if (line->count == 0)
            continue;
        const int32_t row = matrix->count > 0 ? column_named(matrix, line->items[0].text) : NO_ITEM;
        if (matrix->count == 0 && is_header(line))
            read_header(matrix, line);
        else if (matrix->count > 0 && strcmp(line->items[0].text, "Legend:") == 0)
            is_in_legend = true;
        else if (row != NO_ITEM && !is_in_legend)
            read_row(matrix, line, row);
        else if (matrix->count > 0)
            read_legend(matrix, line);
    }
}

/* ---- the matrix as a whole ---------------------------------------------------------------- */

static const struct cell *cell_at(const struct matrix *matrix, int32_t a, int32_t b)
{
    const struct cell *ab = &matrix->cells[a * matrix->count + b];
    const struct cell *ba = &matrix->cells[b * matrix->count + a];
    return ab->kind != CELL_NONE ? ab : ba;
}

static const char *cell_text(struct arena *arena, const struct cell *cell)
{
    static const char *const words[] = {"nothing", "X", "NV", "PIX or PXB", "PHB", "NODE", "SYS"};
    return cell->kind == CELL_LINKS ? arena_printf(arena, "NV%d", (int)cell->links)
                                    : words[cell->kind];
}

static void check_matrix(struct matrix *matrix)
{
    struct machine_graph *graph = matrix->graph;
    const struct place place = {graph->source, 1, 1, 1};
    if (matrix->count == 0) {
        diag_add(graph->diag, DIAG_ERROR, place,
                 "its first line names the columns: GPU0, GPU1, …, NIC0, …, CPU Affinity",
                 "there is no matrix of 'nvidia-smi topo -m' here");
        return;
    }
    if (matrix->row_count == 0) {
        diag_add(graph->diag, DIAG_ERROR, place, NULL, "the matrix has a header, but no row");
        return;
    }
    for (int32_t a = 0; a < matrix->count; a++) {
        if (matrix->columns[a].is_gpu && !matrix->columns[a].has_row)
            graph_warn(graph, ABOUT_PCIE, NOTE_ASSUMED, matrix->columns[a].place, NULL,
                       "'%s' has no row: where it hangs is read from the other rows",
                       matrix->columns[a].name);
        for (int32_t b = 0; b < a; b++) {
            const struct cell *ab = &matrix->cells[a * matrix->count + b];
            const struct cell *ba = &matrix->cells[b * matrix->count + a];
            const bool is_missing = ab->kind == CELL_NONE || ba->kind == CELL_NONE;
            if (!is_missing && (ab->kind != ba->kind || ab->links != ba->links))
                diag_add(graph->diag, DIAG_ERROR, ab->place, NULL,
                         "'%s' to '%s' is %s, but the other way it is %s", matrix->columns[a].name,
                         matrix->columns[b].name, cell_text(graph->arena, ab),
                         cell_text(graph->arena, ba));
            if (matrix->columns[a].is_gpu && matrix->columns[b].is_gpu && ab->kind == CELL_NONE &&
                ba->kind == CELL_NONE)
                diag_add(graph->diag, DIAG_ERROR, matrix->columns[a].place, NULL,
                         "no cell says how '%s' and '%s' are joined", matrix->columns[a].name,
                         matrix->columns[b].name);
        }
    }
}

/* ---- groups ------------------------------------------------------------------------------- */

/* Joins devices whose cell is of `kind`; the groups are numbered in the order of their first one.
 */
static int32_t find_groups(const struct matrix *matrix, enum cell_kind kind, int32_t *group)
{
    int32_t count = 0;
    int32_t *stack = ARENA_ARRAY(matrix->graph->arena, int32_t, matrix->count);
    for (int32_t k = 0; k < matrix->count; k++)
        group[k] = NO_ITEM;
    for (int32_t k = 0; k < matrix->count; k++) {
        if (group[k] != NO_ITEM)
            continue;
        int32_t depth = 0;
        stack[depth++] = k;
        group[k] = count;
        while (depth > 0) {
            const int32_t a = stack[--depth];
            for (int32_t b = 0; b < matrix->count; b++) {
                if (group[b] != NO_ITEM || cell_at(matrix, a, b)->kind > kind ||
                    cell_at(matrix, a, b)->kind < CELL_SWITCH)
                    continue;
                group[b] = count;
                stack[depth++] = b;
            }
        }
        count++;
    }
    return count;
}

/* The CPU of these cores or NUMA node: found, or a new one. */
static int32_t cpu_of(struct machine_graph *graph, const char **keys, const char *key, int64_t numa,
                      struct place place)
{
    for (int32_t k = 0; k < graph->cpus.count; k++) {
        if (strcmp(keys[k], key) == 0)
            return k;
    }
    keys[graph->cpus.count] = key;
    *ARENA_PUSH(graph->arena, &graph->cpus) = (struct graph_cpu){.host = "",
                                                                 .numa = numa,
                                                                 .arch = "",
                                                                 .vendor = "",
                                                                 .family = -1,
                                                                 .model = -1,
                                                                 .place = place};
    return graph->cpus.count - 1;
}

struct cpu_finder {
    struct matrix *matrix;
    int32_t *near;     /* by device: its group of what is no farther than NODE */
    int32_t *of_group; /* CPU, NO_ITEM: not known */
    const char **keys; /* by CPU: what tells it from others */
    int32_t *cpu;      /* by device */
};

/* By the affinities that its row gives. */
static int32_t cpu_as_said(struct cpu_finder *finder, const struct column *column)
{
    struct machine_graph *graph = finder->matrix->graph;
    enum { MOST_NUMA = 4095 };
    const size_t digits = strspn(column->numa, "0123456789");
    int64_t numa = -1;
    if (digits > 0 && (!text_to_int64(arena_strndup(graph->arena, column->numa, digits), &numa) ||
                       numa > MOST_NUMA)) {
        diag_add(graph->diag, DIAG_ERROR, column->place,
                 arena_printf(graph->arena, "a whole number from 0 to %d", MOST_NUMA),
                 "the NUMA node of '%s' is '%s'", column->name, column->numa);
        return NO_ITEM;
    }
    if (digits > 0)
        return cpu_of(graph, finder->keys, arena_printf(graph->arena, "node %lld", (long long)numa),
                      numa, column->place);
    if (column->is_gpu && column->cores[0] != '\0')
        return cpu_of(graph, finder->keys, column->cores, -1, column->place);
    return NO_ITEM;
}

/* Whether it is SYS to a device whose CPU is known. */
static bool is_elsewhere(const struct cpu_finder *finder, int32_t device)
{
    for (int32_t k = 0; k < finder->matrix->count; k++) {
        if (cell_at(finder->matrix, device, k)->kind == CELL_SYSTEM &&
            finder->of_group[finder->near[k]] != NO_ITEM)
            return true;
    }
    return false;
}

/* A GPU whose row is silent: on a CPU of its own where it is SYS to others, else on the first. */
static int32_t cpu_by_cells(struct cpu_finder *finder, int32_t device)
{
    struct machine_graph *graph = finder->matrix->graph;
    const char *key = is_elsewhere(finder, device)
                          ? arena_printf(graph->arena, "group %d", (int)finder->near[device])
                          : "";
    if (key[0] == '\0' && graph->cpus.count > 0)
        return 0;
    return cpu_of(graph, finder->keys, key, -1, finder->matrix->columns[device].place);
}

/* The NUMA node of each device, by what the matrix says (see the head of the file); NO_ITEM: it
   does not. */
static void find_cpus(struct matrix *matrix, int32_t *cpu)
{
    struct machine_graph *graph = matrix->graph;
    struct cpu_finder finder = {
        .matrix = matrix,
        .near = ARENA_ARRAY(graph->arena, int32_t, matrix->count),
        .keys = ARENA_ARRAY(graph->arena, const char *, matrix->count + 1),
        .cpu = cpu,
    };
    const int32_t groups = find_groups(matrix, CELL_NODE, finder.near);
    finder.of_group = ARENA_ARRAY(graph->arena, int32_t, groups);
    for (int32_t k = 0; k < groups; k++)
        finder.of_group[k] = NO_ITEM;
    for (int32_t k = 0; k < matrix->count; k++) {
        cpu[k] = cpu_as_said(&finder, &matrix->columns[k]);
        if (cpu[k] != NO_ITEM && finder.of_group[finder.near[k]] == NO_ITEM)
            finder.of_group[finder.near[k]] = cpu[k];
    }
    for (int32_t k = 0; k < matrix->count; k++) {
        int32_t *of_group = &finder.of_group[finder.near[k]];
        if (*of_group == NO_ITEM && matrix->columns[k].is_gpu)
            *of_group = cpu_by_cells(&finder, k);
    }
    for (int32_t k = 0; k < matrix->count; k++) {
        if (cpu[k] == NO_ITEM)
            cpu[k] = finder.of_group[finder.near[k]];
        if (cpu[k] == NO_ITEM)
            graph_note(graph, ABOUT_NUMA, NOTE_ASSUMED, matrix->columns[k].name,
                       "spread over the NUMA nodes: SYS to all, so which one is not told");
    }
}

/* ---- to the graph ------------------------------------------------------------------------- */

/* A switch for each group of PIX and PXB of several devices. */
static void add_switches(struct matrix *matrix, const int32_t *cpu, int32_t *bridge)
{
    struct machine_graph *graph = matrix->graph;
    int32_t *group = ARENA_ARRAY(graph->arena, int32_t, matrix->count);
    const int32_t groups = find_groups(matrix, CELL_SWITCH, group);
    int32_t *members = ARENA_ARRAY(graph->arena, int32_t, groups);
    int32_t *made = ARENA_ARRAY(graph->arena, int32_t, groups);
    for (int32_t k = 0; k < matrix->count; k++)
        members[group[k]]++;
    for (int32_t k = 0; k < groups; k++)
        made[k] = NO_ITEM;
    for (int32_t k = 0; k < matrix->count; k++) {
        bridge[k] = NO_ITEM;
        if (members[group[k]] < 2)
            continue;
        if (made[group[k]] == NO_ITEM) {
            made[group[k]] = graph->bridges.count;
            *ARENA_PUSH(graph->arena, &graph->bridges) = (struct pci_device){
                .busid = "", .bridge = NO_ITEM, .cpu = cpu[k], .place = matrix->columns[k].place};
        }
        bridge[k] = made[group[k]];
    }
}

static void add_devices(struct matrix *matrix)
{
    struct machine_graph *graph = matrix->graph;
    int32_t *cpu = ARENA_ARRAY(graph->arena, int32_t, matrix->count);
    int32_t *bridge = ARENA_ARRAY(graph->arena, int32_t, matrix->count);
    find_cpus(matrix, cpu);
    add_switches(matrix, cpu, bridge);
    for (int32_t k = 0; k < matrix->count; k++) {
        const struct column *column = &matrix->columns[k];
        const struct pci_device pci = {.busid = "",
                                       .bridge = bridge[k],
                                       .cpu = cpu[k] != NO_ITEM ? cpu[k] : 0,
                                       .is_anywhere = cpu[k] == NO_ITEM,
                                       .place = column->place};
        int64_t dev = -1;
        if (!column->is_gpu) {
            *ARENA_PUSH(graph->arena, &graph->nics) = (struct graph_nic){
                .pci = pci, .name = column->alias != NULL ? column->alias : column->name};
        } else {
            if (!text_to_int64(column->name + 3, &dev))
                dev = -1;
            *ARENA_PUSH(graph->arena, &graph->gpus) =
                (struct graph_gpu){.pci = pci, .dev = dev, .arch = ""};
        }
    }
}

/* Links as stated from each side, between GPUs as the graph numbers them. */
static void add_links(struct matrix *matrix)
{
    struct machine_graph *graph = matrix->graph;
    int32_t a = 0;
    for (int32_t row = 0; row < matrix->count; row++) {
        int32_t b = 0;
        for (int32_t k = 0; k < matrix->count && matrix->columns[row].is_gpu; k++) {
            const struct cell *cell = cell_at(matrix, row, k);
            if (!matrix->columns[k].is_gpu)
                continue;
            if (cell->kind == CELL_LINKS)
                *ARENA_PUSH(graph->arena, &graph->links) = (struct graph_link){
                    .from = a, .to = b, .count = cell->links, .target = "", .place = cell->place};
            b++;
        }
        a += matrix->columns[row].is_gpu;
    }
}

enum status import_topo_m_read(struct machine_graph *graph)
{
    const int32_t errors = graph->diag->error_count;
    const struct place place = {graph->source, 1, 1, 1};
    struct matrix *matrix = ARENA_NEW(graph->arena, struct matrix);
    matrix->graph = graph;
    graph->made_by = "nvidia-smi topo -m";
    if (graph->source->length > TOPO_M_MAX_BYTES) {
        diag_add(graph->diag, DIAG_ERROR, place, NULL, "'%s' is over 1 MiB", graph->source->name);
        return STATUS_INPUT;
    }
    read_lines(matrix);
    if (graph->diag->error_count == errors)
        check_matrix(matrix);
    if (graph->diag->error_count > errors)
        return STATUS_INPUT;
    add_devices(matrix);
    add_links(matrix);
    return graph->diag->error_count > errors ? STATUS_INPUT : STATUS_OK;
}
