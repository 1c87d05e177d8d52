/* collective/nccl_log.c: the log as a whole: which form, what is known of each table. */
#include "collective/nccl_log.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "base/strbuf.h"
#include "cluster/calibration.h"
#include "collective/nccl_log_private.h"

/* More hosts than any machine has: those after are not told apart. */
enum { HOSTS_MAX = 1 << 14 };

/* ---- names -------------------------------------------------------------------------------- */

char *text_lower(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text);
    for (char *c = copy; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return copy;
}

bool nccl_op_from_name(const char *name, enum collective_op *op)
{
    char letters[32];
    size_t count = 0;
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const char *end = strstr(base, "_perf");
    const size_t length = end != NULL ? (size_t)(end - base) : strlen(base);
    for (size_t i = 0; i < length && count < sizeof(letters) - 1; i++)
        if (isalnum((unsigned char)base[i]))
            letters[count++] = (char)tolower((unsigned char)base[i]);
    letters[count] = '\0';
    static const struct {
        const char *letters;
        enum collective_op op;
    } names[] = {{"allgather", COLLECTIVE_ALL_GATHER}, {"reducescatter", COLLECTIVE_REDUCE_SCATTER},
                 {"allreduce", COLLECTIVE_ALL_REDUCE}, {"broadcast", COLLECTIVE_BROADCAST},
                 {"alltoall", COLLECTIVE_ALL_TO_ALL},  {"sendrecv", COLLECTIVE_SEND_RECV}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(letters, names[i].letters) == 0) {
            *op = names[i].op;
            return true;
        }
    }
    return false;
}

const char *version_from_code(struct arena *arena, int64_t code)
{
    if (code < 10000) /* up to 2.8: 2804 */
        return arena_printf(arena, "%d.%d.%d", (int)(code / 1000), (int)(code / 100 % 10),
                            (int)(code % 100));
    return arena_printf(arena, "%d.%d.%d", (int)(code / 10000), (int)(code / 100 % 100),
                        (int)(code % 100));
}

bool nccl_op_is_read(enum collective_op op)
{
    return op == COLLECTIVE_ALL_GATHER || op == COLLECTIVE_REDUCE_SCATTER ||
           op == COLLECTIVE_ALL_REDUCE;
}

bool nccl_op_from_log(const char *name, enum collective_op *op)
{
    enum collective_op found;
    if (!nccl_op_from_name(name, &found) || !nccl_op_is_read(found))
        return false;
    *op = found;
    return true;
}

double nccl_bus_factor(enum collective_op op, int64_t ranks)
{
    const double n = (double)ranks;
    if (op == COLLECTIVE_BROADCAST || op == COLLECTIVE_SEND_RECV)
        return 1;
    return (op == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (n - 1) / n;
}

const char *nccl_table_fact(const struct nccl_table *table, const char *key)
{
    for (int32_t i = 0; i < table->facts.count; i++)
        if (strcmp(table->facts.items[i].key, key) == 0)
            return table->facts.items[i].value;
    return NULL;
}

/* ---- environment and ranks ------------------------------------------------------------------ */

/* The word after `key` ("NCCL_ALGO=Ring", "NCCL_ALGO set by environment to Ring"), lower case. */
static const char *setting(struct arena *arena, const char *text, const char *key)
{
    static const char spoken[] = " set by environment to ";
    const char *at = strstr(text, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    if (*at == '=')
        at++;
    else if (strncmp(at, spoken, sizeof(spoken) - 1) == 0)
        at += sizeof(spoken) - 1;
    else
        return NULL;
    at += *at == '"' || *at == '\'';
    const size_t length = strcspn(at, " ,;\"'\t\r");
    /* "^Tree" and lists of several leave the choice to NCCL. */
    if (length == 0 || *at == '^' || at[length] == ',')
        return length > 0 && *at != '^' && at[length] == ',' && at[length + 1] == ' '
                   ? text_lower(arena, arena_strndup(arena, at, length))
                   : NULL;
    return text_lower(arena, arena_strndup(arena, at, length));
}

void table_take_environment(struct arena *arena, struct nccl_table *table, const char *text)
{
    const char *algorithm = setting(arena, text, "NCCL_ALGO");
    const char *protocol = setting(arena, text, "NCCL_PROTO");
    if (algorithm != NULL)
        table->algorithm = algorithm;
    if (protocol != NULL)
        table->protocol = protocol;
}

void rank_list_add(struct arena *arena, struct rank_list *list, int64_t rank, const char *host,
                   struct place place)
{
    list->is_repeated = list->is_repeated || (rank == 0 && list->listed > 0);
    list->listed++;
    if (rank >= list->highest) {
        list->highest = rank;
        list->place = place;
    }
    /* Ranks of a host follow one another, so the last host is nearly always the one. */
    if (list->hosts.count >= HOSTS_MAX)
        return;
    for (int32_t i = list->hosts.count - 1; i >= 0; i--)
        if (strcmp(list->hosts.items[i], host) == 0)
            return;
    *ARENA_PUSH(arena, &list->hosts) = arena_strdup(arena, host);
}

void rank_list_close(const struct rank_list *list, struct nccl_table *table)
{
    if (list->listed == 0)
        return;
    table->ranks = list->highest < INT64_MAX ? list->highest + 1 : list->highest;
    table->ranks_place = list->place;
    if (list->listed >= table->ranks) /* else lines are missing */
        table->nodes = list->hosts.count;
}

/* ---- what is known of a table --------------------------------------------------------------- */

/* busbw / algbw of the fastest row that has three digits (two decimals of GB/s); NaN: none has. */
static double printed_ratio(const struct nccl_table *table)
{
    double best = (double)NAN;
    double largest = 0;
    for (int32_t i = 0; i < table->rows.count; i++) {
        const struct nccl_times *times = &table->rows.items[i].out_of_place;
        const double algbw = times->algbw_bytes_per_s;
        if (algbw >= 5e9 && times->busbw_bytes_per_s > 0 && algbw > largest) {
            largest = algbw;
            best = times->busbw_bytes_per_s / algbw;
        }
    }
    return best;
}

/* Without a name: a sum whose busbw exceeds algbw is an all-reduce, one below is a reduce-scatter.
   An all-gather has no such mark (other collectives look the same). */
static void infer_op(struct nccl_table *table, double ratio)
{
    const char *redop = table->rows.items[0].redop;
    if (table->has_op || table->program != NULL || isnan(ratio) || redop[0] == '\0' ||
        strcmp(redop, "none") == 0)
        return;
    if (ratio > 1.01 || ratio < 0.99) {
        table->has_op = true;
        table->op = ratio > 1 ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER;
    }
}

static void infer_ranks(struct nccl_table *table, double ratio)
{
    if (table->ranks > 0 || !table->has_op || isnan(ratio))
        return;
    for (int64_t n = 2; n <= 64; n++)
        if (fabs(nccl_bus_factor(table->op, n) / ratio - 1) < 0.2 / (double)(n * n))
            table->ranks = n;
}

static void apply(const struct nccl_request *request, struct nccl_table *table)
{
    if (request->has_op) {
        table->has_op = true;
        table->op = request->op;
    }
    if (request->ranks > 0 && request->ranks != table->ranks) {
        table->ranks = request->ranks;
        table->ranks_place = NO_PLACE;
        table->nodes = table->nodes == 1 ? 1 : 0;
    }
    if (request->nodes > 0)
        table->nodes = request->nodes;
}

static bool complain(struct diag *diag, const struct nccl_table *table, const char *hint,
                     const char *what)
{
    diag_add(diag, DIAG_ERROR, table->place, hint, "%s", what);
    return false;
}

/* Ranks and nodes that a calibration file could not hold. */
static bool shape_is_possible(const struct nccl_table *table, struct diag *diag)
{
    const int64_t ranks_max = (int64_t)CALIBRATION_NODES_MAX * CALIBRATION_GPUS_PER_NODE_MAX;
    const bool is_ranks_wrong =
        table->ranks > ranks_max ||
        (table->nodes > 0 && table->ranks / table->nodes > CALIBRATION_GPUS_PER_NODE_MAX);
    if (!is_ranks_wrong && table->nodes <= CALIBRATION_NODES_MAX)
        return true;
    const bool is_placed = is_ranks_wrong && table->ranks_place.source != NULL;
    diag_add(diag, DIAG_ERROR, is_placed ? table->ranks_place : table->place,
             "say it: --ranks N --nodes N",
             "%lld ranks on %lld nodes: up to %d nodes of up to %d GPUs are known",
             (long long)table->ranks, (long long)table->nodes, (int)CALIBRATION_NODES_MAX,
             (int)CALIBRATION_GPUS_PER_NODE_MAX);
    return false;
}

/* Whether all is known that a table must say; the rest is filled in. */
static bool table_complete(const struct nccl_request *request, struct nccl_table *table,
                           struct diag *diag)
{
    const double ratio = printed_ratio(table);
    apply(request, table);
    infer_op(table, ratio);
    infer_ranks(table, ratio);
    /* One process drives GPUs of one host only. */
    if (table->nodes == 0 && table->ranks > 0 && table->gpus_per_process >= table->ranks)
        table->nodes = 1;
    if (!table->has_op)
        return complain(diag, table, "say it: --op all_gather, reduce_scatter or all_reduce",
                        "the text does not say which collective this is");
    if (table->ranks == 0)
        return complain(diag, table, "say it: --ranks N",
                        "the text does not say over how many ranks it ran");
    if (!shape_is_possible(table, diag))
        return false;
    if (table->ranks == 1)
        return complain(diag, table,
                        "processes that do not find one another print so: build nccl-tests with "
                        "MPI=1",
                        "it ran over one rank: nothing was sent");
    if (table->nodes == 0)
        return complain(diag, table, "say it: --nodes N",
                        "the text does not say over how many nodes it ran");
    if (table->nodes < 0 || table->ranks < 0 || table->ranks % table->nodes != 0)
        return complain(diag, table, "say it: --ranks N --nodes N",
                        arena_printf(diag->arena, "%lld ranks do not fill %lld nodes evenly",
                                     (long long)table->ranks, (long long)table->nodes));
    table->gpus_per_node = table->ranks / table->nodes;
    return true;
}

/* size / time against algbw as printed: a row in which they differ was edited or mixed up. */
static void check_rows(const struct nccl_table *table, struct row_warnings *warnings)
{
    const double factor = nccl_bus_factor(table->op, table->ranks);
    for (int32_t i = 0; i < table->rows.count; i++) {
        const struct nccl_row *row = &table->rows.items[i];
        const struct nccl_times *times = &row->out_of_place;
        const double algbw = (double)row->bytes / times->time_s;
        const double printed = times->algbw_bytes_per_s;
        /* Two decimals are printed; old versions have the factor in it. */
        const double tolerance = 0.02 * printed + 0.01e9;
        if (isnan(algbw) || isnan(printed) || times->time_s <= 0 ||
            fabs(algbw - printed) <= tolerance || fabs(algbw * factor - printed) <= tolerance)
            continue;
        if (warnings->doubtful++ < NCCL_ROW_WARNINGS_MAX)
            diag_add(warnings->diag, DIAG_WARNING, row->place, NULL,
                     "size / time is %.2f GB/s, but algbw says %.2f", algbw / 1e9, printed / 1e9);
    }
}

static enum status log_complete(const struct nccl_request *request, struct nccl_log *log,
                                int32_t first, struct row_warnings *warnings)
{
    struct diag *diag = warnings->diag;
    enum status status = STATUS_OK;
    int32_t kept = first;
    for (int32_t i = first; i < log->tables.count; i++) {
        struct nccl_table *table = &log->tables.items[i];
        if (!table->has_op && table->program != NULL && !request->has_op) {
            diag_add(diag, DIAG_NOTE, table->place,
                     "read are all_gather, reduce_scatter, all_reduce", "'%s' is skipped",
                     text_shown(diag->arena, table->program));
            continue;
        }
        if (!table_complete(request, table, diag))
            status = STATUS_INPUT;
        else
            check_rows(table, warnings);
        log->tables.items[kept++] = *table;
    }
    log->tables.count = kept;
    return status;
}

/* How many rows were not told of. */
static void warnings_close(const struct row_warnings *warnings, const char *name)
{
    const struct {
        int32_t count;
        const char *what;
    } kinds[] = {{warnings->left_out, "left out"},
                 {warnings->doubtful, "whose size / time is not their algbw"}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].count > NCCL_ROW_WARNINGS_MAX)
            diag_add(warnings->diag, DIAG_WARNING, NO_PLACE, NULL, "%s: %d more rows %s", name,
                     (int)(kinds[i].count - NCCL_ROW_WARNINGS_MAX), kinds[i].what);
}

enum status nccl_log_parse(struct arena *arena, const struct source *source,
                           const struct nccl_request *request, struct nccl_log *log,
                           struct diag *diag)
{
    struct row_warnings warnings = {.diag = diag};
    const int32_t first = log->tables.count;
    size_t at = 0;
    while (at < source->length && strchr(" \t\r\n\xEF\xBB\xBF", source->text[at]) != NULL &&
           source->text[at] != '\0')
        at++;
    const bool is_json = at < source->length && source->text[at] == '{';
    enum status status = is_json ? nccl_json_parse(arena, source, log, &warnings)
                                 : nccl_text_parse(arena, source, log, &warnings);
    if (status == STATUS_OK && log->tables.count == first) {
        diag_add(diag, DIAG_ERROR, (struct place){source, 1, 1, 1},
                 "rows look like '1048576 262144 float sum -1 61.2 17.1 …'",
                 "no row of nccl-tests in this text");
        status = STATUS_INPUT;
    }
    if (status == STATUS_OK)
        status = log_complete(request, log, first, &warnings);
    warnings_close(&warnings, source->name);
    return status;
}

enum status nccl_log_load(struct arena *arena, const char *path, const struct nccl_request *request,
                          struct nccl_log *log, struct diag *diag)
{
    struct source *source;
    const enum status status = source_load(arena, path, NCCL_LOG_MAX_BYTES, &source, diag);
    return status == STATUS_OK ? nccl_log_parse(arena, source, request, log, diag) : status;
}
