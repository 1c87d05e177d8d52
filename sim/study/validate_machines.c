/*
 * study/validate_machines.c: what a table says of itself → the machine it ran on.
 *
 *   rules:
 *     - {gpu: '*h100*', cluster: dgx-h100, citation: '…'}
 *     - {network: '*efa*', set: ['host.nics.count=<nic_count>'], citation: '…'}
 *
 * Patterns ('*' any run of characters, '?' one, alternatives split by '|') are matched against the
 * table's words in lower case: `gpu` the hardware line's GPU or the device of the log, `within` the
 * link between the GPUs of a node, `network` that between nodes, `env` the NCCL settings, `version`
 * the NCCL version, `notes`, `table` the file's name, `collective`. A rule holds where all it names
 * match. Rules are applied in order, later ones over earlier ones; the settings of all that hold
 * are kept.
 *
 * In a setting <nic_count> and <nic_bandwidth> stand for what the network's words say: "8x400G" is
 * 8 and "400Gbps". A rule with such a setting does not hold where they say nothing of the kind.
 */
#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "config/config.h"
#include "study/validate_collectives_private.h"
#include "study/validate_private.h"

enum rule_nodes { NODES_ANY, NODES_ONE, NODES_SEVERAL };
enum rule_times { TIMES_UNSAID, TIMES_OUT_OF_PLACE, TIMES_IN_PLACE };
enum rule_health { HEALTH_UNSAID, HEALTH_HEALTHY, HEALTH_DEGRADED };

struct machine_rule {
    const char *gpu, *within, *network, *env, *version, *notes, *table, *collective;
    int nodes; /* enum rule_nodes */
    const char *cluster, *fabric, *launch;
    struct config_list set;
    bool is_one_host;
    int times;  /* enum rule_times */
    int health; /* enum rule_health */
    const char *exclude, *citation, *assumed;
};

struct rules_file {
    int64_t version;
    struct config_list rules;
};

#define RULE_TEXT(member, text)                                                                    \
    {                                                                                              \
        .key = #member, .kind = FIELD_TEXT, .offset = offsetof(struct machine_rule, member),       \
        .help = (text)                                                                             \
    }

static const struct choice node_choices[] = {{"any", NODES_ANY, NULL},
                                             {"one", NODES_ONE, "tables of one node"},
                                             {"several", NODES_SEVERAL, "of more than one"},
                                             {0}};
static const struct choice times_choices[] = {
    {"unsaid", TIMES_UNSAID, NULL},
    {"out_of_place", TIMES_OUT_OF_PLACE, "the default; in-place where there are none"},
    {"in_place", TIMES_IN_PLACE, "where the source says that the others are disturbed"},
    {0}};
static const struct choice health_choices[] = {
    {"unsaid", HEALTH_UNSAID, NULL},
    {"healthy", HEALTH_HEALTHY, "scored"},
    {"degraded", HEALTH_DEGRADED, "not scored: one setting that explains it is searched"},
    {0}};

static const struct field rule_fields[] = {
    RULE_TEXT(gpu, "pattern: the GPU"),
    RULE_TEXT(within, "pattern: the link between the GPUs of a node"),
    RULE_TEXT(network, "pattern: the link between nodes"),
    RULE_TEXT(env, "pattern: the NCCL settings"),
    RULE_TEXT(version, "pattern: the NCCL version"),
    RULE_TEXT(notes, "pattern: the notes"),
    RULE_TEXT(table, "pattern: the name of the table's file"),
    RULE_TEXT(collective, "pattern: all_gather, reduce_scatter or all_reduce"),
    {.key = "nodes",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct machine_rule, nodes),
     .default_text = "any",
     .choices = node_choices,
     .help = "only tables of so many nodes"},
    RULE_TEXT(cluster, "the cluster file"),
    {.key = "set",
     .kind = FIELD_TEXT_LIST,
     .offset = offsetof(struct machine_rule, set),
     .min = 0,
     .max = 100,
     .help = "settings of the cluster file, as -s takes them"},
    {.key = "one_host",
     .kind = FIELD_BOOL,
     .offset = offsetof(struct machine_rule, is_one_host),
     .default_text = "false",
     .help = "the nodes share one NVLink domain, which is one host of the cluster"},
    RULE_TEXT(fabric, "the kind of link that bounds it, for the totals"),
    RULE_TEXT(launch, "how it was run, where that is not one process a GPU of nccl-tests"),
    {.key = "times",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct machine_rule, times),
     .default_text = "unsaid",
     .choices = times_choices,
     .help = "which of a row's times counts"},
    {.key = "health",
     .kind = FIELD_ENUM,
     .offset = offsetof(struct machine_rule, health),
     .default_text = "unsaid",
     .choices = health_choices,
     .help = "what the source says of the run"},
    RULE_TEXT(exclude, "why such tables are out of scope"),
    RULE_TEXT(citation, "where it is said"),
    RULE_TEXT(assumed, "why it is taken to be so"),
    {0}};

static void rule_check(struct config *config, const char *path, void *bound)
{
    const struct machine_rule *rule = bound;
    if (rule->citation == NULL && rule->assumed == NULL)
        config_error(config, path, "give 'citation', or say why it is 'assumed'",
                     "a rule without its source");
    if (rule->cluster == NULL && rule->exclude == NULL && rule->fabric == NULL &&
        rule->launch == NULL && !rule->is_one_host && rule->times == TIMES_UNSAID &&
        rule->health == HEALTH_UNSAID && rule->set.count == 0)
        config_error(config, path,
                     "one of cluster, set, one_host, fabric, launch, times, health, exclude",
                     "a rule that says nothing");
}

static const struct field_table rule_table = {.name = "rule",
                                              .help = "what some tables ran on",
                                              .fields = rule_fields,
                                              .struct_bytes = sizeof(struct machine_rule),
                                              .check = rule_check};

static const struct field file_fields[] = {FIELD_VERSION(struct rules_file),
                                           {.key = "rules",
                                            .kind = FIELD_LIST,
                                            .offset = offsetof(struct rules_file, rules),
                                            .is_required = true,
                                            .table = &rule_table,
                                            .min = 1,
                                            .max = 10000,
                                            .help = "applied in order"},
                                           {0}};
static const struct field_table file_table = {.name = "machines",
                                              .help = "what measured tables ran on",
                                              .fields = file_fields,
                                              .struct_bytes = sizeof(struct rules_file)};

enum status machine_rules_load(struct arena *arena, const char *path, struct machine_rules *rules,
                               struct diag *diag)
{
    struct config *config = ARENA_NEW(arena, struct config);
    struct rules_file *file = ARENA_NEW(arena, struct rules_file);
    config_init(config, arena, diag, data_folders_find(arena));
    enum status status = config_load(config, path);
    if (status == STATUS_OK)
        status = config_bind(config, &file_table, file);
    const struct machine_rule *items = file->rules.items;
    for (int64_t i = 0; status == STATUS_OK && i < file->rules.count; i++)
        *ARENA_PUSH(arena, rules) = items[i];
    return status;
}

/* ---- what a table says ---------------------------------------------------------------------- */

struct table_words {
    const char *gpu, *within, *network, *env, *version, *notes, *name, *collective; /* lower case */
    int64_t nodes;
    const char *nic_count, *nic_bandwidth; /* NULL: not said */
};

static const char *lower(struct arena *arena, const char *text)
{
    char *copy = arena_strdup(arena, text != NULL ? text : "");
    for (char *c = copy; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return copy;
}

/* "8x400g": the first such words of a network. */
static void read_nics(struct arena *arena, struct table_words *words)
{
    for (const char *at = words->network; *at != '\0'; at++) {
        if (!isdigit((unsigned char)*at) || (at > words->network && isalnum((unsigned char)at[-1])))
            continue;
        const size_t count = strspn(at, "0123456789");
        const size_t rate = at[count] == 'x' ? strspn(at + count + 1, "0123456789") : 0;
        if (rate == 0 || at[count + 1 + rate] != 'g')
            continue;
        words->nic_count = arena_strndup(arena, at, count);
        words->nic_bandwidth =
            arena_printf(arena, "%sGbps", arena_strndup(arena, at + count + 1, rate));
        return;
    }
}

static struct table_words words_of(struct arena *arena, const struct collective_result *result)
{
    const struct nccl_table *table = result->log;
    const char *hardware = nccl_table_fact(table, "hardware");
    struct table_words words = {.gpu = lower(arena, hardware != NULL ? hardware : table->device),
                                .within = lower(arena, nccl_table_fact(table, "intra-node link")),
                                .network = lower(arena, nccl_table_fact(table, "inter-node link")),
                                .env = lower(arena, nccl_table_fact(table, "env settings")),
                                .version = lower(arena, table->version),
                                .notes = lower(arena, nccl_table_fact(table, "notes")),
                                .name = lower(arena, result->name),
                                .collective = collective_op_name(table->op),
                                .nodes = table->nodes};
    read_nics(arena, &words);
    return words;
}

/* ---- applying ----------------------------------------------------------------------------- */

static bool needs_nics(const struct machine_rule *rule)
{
    const char *const *set = rule->set.items;
    for (int64_t i = 0; i < rule->set.count; i++)
        if (strstr(set[i], "<nic_") != NULL)
            return true;
    return false;
}

static bool rule_holds(const struct machine_rule *rule, const struct table_words *words)
{
    const struct {
        const char *pattern, *text;
    } pairs[] = {{rule->gpu, words->gpu},         {rule->within, words->within},
                 {rule->network, words->network}, {rule->env, words->env},
                 {rule->version, words->version}, {rule->notes, words->notes},
                 {rule->table, words->name},      {rule->collective, words->collective}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i].pattern != NULL && !pattern_matches(pairs[i].pattern, pairs[i].text))
            return false;
    if (rule->nodes != NODES_ANY && (rule->nodes == NODES_ONE) != (words->nodes == 1))
        return false;
    return words->nic_count != NULL || !needs_nics(rule);
}

static const char *replaced(struct arena *arena, const char *text, const char *word,
                            const char *value)
{
    const char *at = strstr(text, word);
    if (at == NULL || value == NULL)
        return text;
    return arena_printf(arena, "%s%s%s", arena_strndup(arena, text, (size_t)(at - text)), value,
                        at + strlen(word));
}

static void take(struct arena *arena, const struct machine_rule *rule,
                 const struct table_words *words, struct collective_result *result)
{
    const char *const *set = rule->set.items;
    if (rule->cluster != NULL) {
        result->cluster = rule->cluster;
        result->setting_count = 0; /* of another machine */
    }
    if (rule->fabric != NULL)
        result->fabric = rule->fabric;
    if (rule->launch != NULL)
        result->launch = rule->launch;
    if (rule->health != HEALTH_UNSAID) {
        result->is_degraded = rule->health == HEALTH_DEGRADED;
        result->because = nccl_table_fact(result->log, "notes");
        if (result->because == NULL)
            result->because = rule->citation != NULL ? rule->citation : rule->assumed;
    }
    if (rule->times != TIMES_UNSAID)
        result->is_in_place = rule->times == TIMES_IN_PLACE;
    if (rule->exclude != NULL)
        result->reason = rule->exclude;
    if (rule->is_one_host) {
        result->gpus_per_node *= result->nodes;
        result->nodes = 1;
    }
    const char **settings =
        ARENA_ARRAY(arena, const char *, result->setting_count + rule->set.count + 1);
    for (int32_t i = 0; i < result->setting_count; i++)
        settings[i] = result->settings[i];
    for (int64_t i = 0; i < rule->set.count; i++)
        settings[result->setting_count++] =
            replaced(arena, replaced(arena, set[i], "<nic_count>", words->nic_count),
                     "<nic_bandwidth>", words->nic_bandwidth);
    result->settings = settings;
}

void machine_rules_apply(struct arena *arena, const struct machine_rules *rules,
                         struct collective_result *result)
{
    const struct table_words words = words_of(arena, result);
    result->nodes = result->log->nodes;
    result->gpus_per_node = result->log->gpus_per_node;
    result->fabric = "other";
    for (int32_t i = 0; i < rules->count; i++)
        if (rule_holds(&rules->items[i], &words))
            take(arena, &rules->items[i], &words, result);
    if (result->cluster == NULL && result->reason == NULL)
        result->reason =
            words.gpu[0] != '\0'
                ? arena_printf(arena, "no rule of machines.yaml covers '%s'", words.gpu)
                : "the text names no GPU";
}
