/* cli/options.c: see options.h. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

#define AT(field) offsetof(struct options, field)
#define IN(verb) (UINT32_C(1) << (verb))

enum {
    IN_ALL = (1 << VERB_COUNT) - 1,
    IN_LOGS = 1 << VERB_VALIDATE | 1 << VERB_CALIBRATE,
    IN_LOADING = 1 << VERB_RUN | 1 << VERB_SWEEP | 1 << VERB_SOLVE | 1 << VERB_COMPARE |
                 1 << VERB_CHECK | 1 << VERB_MEMORY | 1 << VERB_EXPLAIN | 1 << VERB_VALIDATE |
                 1 << VERB_COMM | 1 << VERB_CALIBRATE | 1 << VERB_TOPOLOGY,
};

const struct option option_table[] = {
    {.name = "set",
     .letter = 's',
     .kind = OPTION_LIST,
     .offset = AT(overrides),
     .verbs = IN_LOADING,
     .value_name = "KEY=VALUE",
     .help = "override a value of the loaded files; repeatable, the last one wins"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .offset = AT(is_json),
     .verbs = IN(VERB_RUN) | IN(VERB_SWEEP) | IN(VERB_SOLVE) | IN(VERB_COMPARE) | IN(VERB_MEMORY) |
              IN(VERB_DB) | IN(VERB_LIST) | IN(VERB_MODEL) | IN(VERB_TOPOLOGY) | IN(VERB_VALIDATE) |
              IN(VERB_COMM) | IN(VERB_CALIBRATE),
     .help = "print JSON, SI units in the key names (run: one object a FILE)"},
    {.name = "assert",
     .kind = OPTION_LIST,
     .offset = AT(conditions),
     .verbs = IN(VERB_RUN),
     .value_name = "CONDITION",
     .help = "exit 3 unless it holds: 'fits', 'peak_device_bytes<80GiB', 'mfu>=40%'; repeatable"},
    {.name = "vary",
     .kind = OPTION_LIST,
     .offset = AT(vary),
     .verbs = IN(VERB_SOLVE),
     .value_name = "KEY=LOW:HIGH",
     .help = "the key that is varied and its range, or a list of values"},
    {.name = "until",
     .kind = OPTION_LIST,
     .offset = AT(until),
     .verbs = IN(VERB_SOLVE),
     .value_name = "CONDITION",
     .help = "what must hold, as --assert of 'run' takes it: 'exposed_comm_fraction<=5%', 'fits'; "
             "repeatable: all of them"},
    {.name = "smallest",
     .kind = OPTION_FLAG,
     .offset = AT(is_smallest),
     .verbs = IN(VERB_SOLVE),
     .help = "the smallest value that meets them, wherever else they hold"},
    {.name = "largest",
     .kind = OPTION_FLAG,
     .offset = AT(is_largest),
     .verbs = IN(VERB_SOLVE),
     .help = "the largest value that meets them, wherever else they hold"},
    {.name = "tolerance",
     .kind = OPTION_TEXT,
     .offset = AT(tolerance),
     .verbs = IN(VERB_SOLVE),
     .value_name = "SHARE",
     .help = "how near the answer is to the bound, where any value goes: a share of the value "
             "(default: 0.1%)"},
    {.name = "units",
     .kind = OPTION_FLAG,
     .offset = AT(has_units),
     .verbs = IN(VERB_RUN) | IN(VERB_DB),
     .help = "also tables of FSDP units, collectives and links"},
    {.name = "why",
     .kind = OPTION_FLAG,
     .offset = AT(is_why),
     .verbs = IN(VERB_RUN),
     .help = "also the critical path of the step, what waited for what, and the settings that help "
             "most, each tried by simulation"},
    {.name = "top",
     .kind = OPTION_COUNT,
     .offset = AT(top),
     .verbs = IN(VERB_RUN) | IN(VERB_COMPARE) | IN(VERB_DB),
     .value_name = "N",
     .help = "like --units, with the N slowest units only (compare: the N that differ most, "
             "default 8)"},
    {.name = "dot",
     .kind = OPTION_FLAG,
     .offset = AT(is_dot),
     .verbs = IN(VERB_TOPOLOGY),
     .help = "print a graph for Graphviz"},
    {.name = "depth",
     .kind = OPTION_COUNT,
     .offset = AT(depth),
     .verbs = IN(VERB_MODEL),
     .value_name = "N",
     .help = "levels of the tree: 1 modules, 2 their parts (default), 3 parameters"},
    {.name = "db",
     .kind = OPTION_TEXT,
     .offset = AT(db),
     .verbs = IN(VERB_RUN) | IN(VERB_SWEEP) | IN(VERB_SOLVE) | IN(VERB_COMPARE) | IN(VERB_DB) |
              IN(VERB_VALIDATE),
     .value_name = "FILE",
     .help = "the results database (else $FSDPSIM_DB, else results/fsdpsim.db where such a folder "
             "is, else the XDG data folder)"},
    {.name = "no-db",
     .kind = OPTION_FLAG,
     .offset = AT(is_unstored),
     .verbs = IN(VERB_RUN) | IN(VERB_SOLVE) | IN(VERB_VALIDATE),
     .help = "do not store the run"},
    {.name = "dump-program",
     .kind = OPTION_TEXT,
     .offset = AT(dump_path),
     .verbs = IN(VERB_RUN),
     .value_name = "FILE",
     .help = "write the program of a rank as text; '-': to stdout, and simulate nothing"},
    {.name = "trace",
     .kind = OPTION_TEXT,
     .offset = AT(trace_path),
     .verbs = IN(VERB_RUN),
     .value_name = "FILE",
     .help =
         "write the timeline for Perfetto and Holistic Trace Analysis; FILE.gz: compressed; one "
         "file a class of ranks"},
    {.name = "resolved",
     .kind = OPTION_FLAG,
     .offset = AT(is_resolved),
     .verbs = IN(VERB_CHECK) | IN(VERB_VALIDATE),
     .help = "print every value in force and where it comes from"},
    {.name = "as",
     .kind = OPTION_TEXT,
     .offset = AT(kind),
     .verbs = IN(VERB_CHECK),
     .value_name = "KIND",
     .help = "what FILE is: config (default), model, cluster, gpu or calibration"},
    {.name = "budget",
     .kind = OPTION_TEXT,
     .offset = AT(budget),
     .verbs = IN(VERB_MEMORY),
     .value_name = "SIZE",
     .help = "memory of one GPU to fit into, as 40GiB (default: the GPU's own)"},
    {.name = "ddp-buckets",
     .kind = OPTION_FLAG,
     .offset = AT(has_ddp_buckets),
     .verbs = IN(VERB_MEMORY),
     .help = "count the second copy of the gradients that DDP keeps in its buckets"},
    {.name = "hidden-share",
     .kind = OPTION_TEXT,
     .offset = AT(hidden_share),
     .verbs = IN(VERB_EXPLAIN),
     .value_name = "SHARE",
     .help = "share of the communication taken as hidden behind compute, as 0.5 or 50%"},
    {.name = "source",
     .kind = OPTION_TEXT,
     .offset = AT(source),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "TEXT",
     .help = "only rows whose source contains TEXT"},
    {.name = "limit",
     .kind = OPTION_COUNT,
     .offset = AT(limit),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "N",
     .help = "the N worst rows (default 20)"},
    {.name = "facts",
     .kind = OPTION_LIST,
     .offset = AT(facts),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "FILE",
     .help = "facts on the CSV's sources (collectives: rules for machines), over those that ship; "
             "repeatable"},
    {.name = "markdown",
     .kind = OPTION_FLAG,
     .offset = AT(is_markdown),
     .verbs = IN(VERB_VALIDATE) | IN(VERB_SWEEP) | IN(VERB_COMPARE),
     .help = "print Markdown (validate: as in results/accuracy.md)"},
    {.name = "svg",
     .kind = OPTION_TEXT,
     .offset = AT(svg),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "FILE",
     .help = "also write a picture, predicted step time against measured"},
    {.name = "torchtitan-log",
     .kind = OPTION_TEXT,
     .offset = AT(torchtitan_log),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "FILE",
     .help = "lay the training log that torchtitan printed beside the configuration given instead "
             "of a CSV"},
    {.name = "update",
     .kind = OPTION_TEXT,
     .offset = AT(update),
     .verbs = IN(VERB_VALIDATE),
     .value_name = "FOLDER",
     .help = "validate all: write what is generated of FOLDER (results/ of a clone) anew"},
    {.name = "csv",
     .kind = OPTION_FLAG,
     .offset = AT(is_csv),
     .verbs = IN(VERB_SWEEP),
     .help = "print CSV with every metric, SI units in the names"},
    {.name = "map",
     .kind = OPTION_TEXT,
     .offset = AT(map),
     .verbs = IN(VERB_SWEEP),
     .value_name = "METRIC",
     .help = "print a map of METRIC over the last two swept keys instead of the table, with the "
             "knee of each row"},
    {.name = "line",
     .kind = OPTION_TEXT,
     .offset = AT(line),
     .verbs = IN(VERB_SWEEP),
     .value_name = "METRIC",
     .help = "print METRIC as bars over the last swept key instead of the table"},
    {.name = "sobol",
     .kind = OPTION_COUNT,
     .offset = AT(sobol),
     .verbs = IN(VERB_SWEEP),
     .value_name = "K",
     .help = "K points of Sobol's sequence over all keys at once, each -s key=low:high or a list, "
             "instead of every combination"},
    {.name = "tornado",
     .kind = OPTION_TEXT,
     .offset = AT(tornado),
     .verbs = IN(VERB_SWEEP),
     .value_name = "METRIC",
     .help =
         "each key alone (-s key=low:high, or a list), the others as the file says: which moves "
         "METRIC most; with --sobol, the rank correlation with each key"},
    {.name = "samples",
     .kind = OPTION_COUNT,
     .offset = AT(samples),
     .verbs = IN(VERB_RUN) | IN(VERB_SWEEP),
     .value_name = "K",
     .help = "K runs with other numbers drawn each (simulate.jitter, error bars of calibrations): "
             "5 to 95 % of their results; short for -s simulate.samples=K"},
    {.name = "jobs",
     .letter = 'j',
     .kind = OPTION_COUNT,
     .offset = AT(jobs),
     .verbs = IN(VERB_SWEEP),
     .value_name = "N",
     .help = "worker processes (default: one a processor)"},
    {.name = "dry-run",
     .letter = 'n',
     .kind = OPTION_FLAG,
     .offset = AT(is_dry_run),
     .verbs = IN(VERB_SWEEP),
     .help = "check and count the points, estimate the time from a few; store nothing"},
    {.name = "zip",
     .kind = OPTION_FLAG,
     .offset = AT(is_zip),
     .verbs = IN(VERB_SWEEP),
     .help = "the k-th values of all keys together instead of every combination"},
    {.name = "scaling",
     .kind = OPTION_TEXT,
     .offset = AT(scaling),
     .verbs = IN(VERB_SWEEP),
     .value_name = "KIND",
     .help = "strong: the global batch of the first point for all; weak: its batch a GPU"},
    {.name = "shard",
     .kind = OPTION_TEXT,
     .offset = AT(shard),
     .verbs = IN(VERB_SWEEP),
     .value_name = "I/N",
     .help = "only every N-th point from the I-th on; auto or auto/N: as the job array says"},
    {.name = "rerun",
     .kind = OPTION_FLAG,
     .offset = AT(is_rerun),
     .verbs = IN(VERB_SWEEP),
     .help = "play points that are stored again, and store them beside"},
    {.name = "retry-failed",
     .kind = OPTION_FLAG,
     .offset = AT(retries_failed),
     .verbs = IN(VERB_SWEEP),
     .help = "try points again whose worker crashed"},
    {.name = "detail",
     .kind = OPTION_FLAG,
     .offset = AT(has_detail),
     .verbs = IN(VERB_SWEEP),
     .help = "also store units, collectives, links and the configuration of each point"},
    {.name = "op",
     .kind = OPTION_TEXT,
     .offset = AT(op),
     .verbs = IN_LOGS | IN(VERB_COMM),
     .value_name = "NAME",
     .help = "all_gather, reduce_scatter, all_reduce (of a log: where it does not say); comm: "
             "broadcast, "
             "all_to_all, send_recv too"},
    {.name = "nodes",
     .kind = OPTION_COUNT,
     .offset = AT(nodes),
     .verbs = IN_LOGS | IN(VERB_COMM),
     .value_name = "N",
     .help = "hosts (default: the cluster's; of a log: where it does not say)"},
    {.name = "gpus-per-node",
     .kind = OPTION_COUNT,
     .offset = AT(gpus_per_node),
     .verbs = IN(VERB_COMM),
     .value_name = "N",
     .help = "GPUs of each host (default: all)"},
    {.name = "ranks",
     .kind = OPTION_COUNT,
     .offset = AT(ranks),
     .verbs = IN_LOGS,
     .value_name = "N",
     .help = "GPUs in all, where a log does not say"},
    {.name = "begin",
     .letter = 'b',
     .kind = OPTION_TEXT,
     .offset = AT(begin),
     .verbs = IN(VERB_COMM),
     .value_name = "SIZE",
     .help = "smallest size (default 64KiB)"},
    {.name = "end",
     .letter = 'e',
     .kind = OPTION_TEXT,
     .offset = AT(end),
     .verbs = IN(VERB_COMM),
     .value_name = "SIZE",
     .help = "largest size (default: that of --begin, or 1GiB)"},
    {.name = "factor",
     .letter = 'f',
     .kind = OPTION_COUNT,
     .offset = AT(factor),
     .verbs = IN(VERB_COMM),
     .value_name = "N",
     .help = "from size to size (default 2)"},
    {.name = "step",
     .letter = 'i',
     .kind = OPTION_TEXT,
     .offset = AT(step),
     .verbs = IN(VERB_COMM),
     .value_name = "SIZE",
     .help = "from size to size, in bytes instead of a factor"},
    {.name = "algo",
     .kind = OPTION_TEXT,
     .offset = AT(algorithm),
     .verbs = IN(VERB_COMM),
     .value_name = "NAME",
     .help = "as NCCL_ALGO: short for -s collectives.algorithm=NAME"},
    {.name = "proto",
     .kind = OPTION_TEXT,
     .offset = AT(protocol),
     .verbs = IN(VERB_COMM),
     .value_name = "NAME",
     .help = "as NCCL_PROTO: short for -s collectives.protocol=NAME"},
    {.name = "network",
     .kind = OPTION_TEXT,
     .offset = AT(network),
     .verbs = IN(VERB_COMM),
     .value_name = "MODE",
     .help = "flows (default) or messages: ring steps one by one"},
    {.name = "cluster",
     .kind = OPTION_TEXT,
     .offset = AT(cluster),
     .verbs = IN(VERB_CALIBRATE) | IN(VERB_IMPORT),
     .value_name = "NAME",
     .help =
         "calibrate: also compare with the model of this cluster, and warn where the log is far "
         "slower; import of a configuration: the cluster it runs on"},
    {.name = "model",
     .kind = OPTION_TEXT,
     .offset = AT(model),
     .verbs = IN(VERB_IMPORT),
     .value_name = "NAME",
     .help = "accelerate, deepspeed: the model that is trained"},
    {.name = "seq-len",
     .kind = OPTION_COUNT,
     .offset = AT(seq_len),
     .verbs = IN(VERB_IMPORT),
     .value_name = "N",
     .help = "accelerate, deepspeed: tokens of a sequence (default: 2048)"},
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_TEXT,
     .offset = AT(output),
     .verbs = IN(VERB_CALIBRATE) | IN(VERB_IMPORT) | IN(VERB_VALIDATE) | IN(VERB_DB),
     .value_name = "FILE",
     .help = "write to FILE; '-': to stdout, and nothing else (import, validate, db export: the "
             "default)"},
    {.name = "overwrite",
     .kind = OPTION_FLAG,
     .offset = AT(overwrites),
     .verbs = IN(VERB_DB),
     .help = "export: -o may replace a file"},
    {.name = "table",
     .kind = OPTION_TEXT,
     .offset = AT(table),
     .verbs = IN(VERB_DB),
     .value_name = "NAME",
     .help = "export: a table or a view (default v_runs: a row a run); 'meta' has the units"},
    {.name = "runs",
     .kind = OPTION_TEXT,
     .offset = AT(runs),
     .verbs = IN(VERB_DB),
     .value_name = "LIST",
     .help = "export: only these runs, as 3,7-9"},
    {.name = "where",
     .kind = OPTION_TEXT,
     .offset = AT(where),
     .verbs = IN(VERB_DB),
     .value_name = "SQL",
     .help = "export: only rows for which this holds, as 'n_gpus >= 8 AND fits'"},
    {.name = "gpu",
     .kind = OPTION_TEXT,
     .offset = AT(gpu),
     .verbs = IN(VERB_IMPORT),
     .value_name = "NAME",
     .help = "the GPU, where the file does not say it: of 'fsdpsim list gpus', or a path"},
    {.name = "nic-link",
     .kind = OPTION_TEXT,
     .offset = AT(nic_link),
     .verbs = IN(VERB_IMPORT),
     .value_name = "NAME",
     .help = "the link of the NICs, of topologies/links/ (default: by their rate)"},
    {.name = "cpu",
     .kind = OPTION_TEXT,
     .offset = AT(cpu),
     .verbs = IN(VERB_IMPORT),
     .value_name = "NAME",
     .help = "costs of the host thread, of topologies/cpus/ (default: by the CPU)"},
    {.name = "name",
     .kind = OPTION_TEXT,
     .offset = AT(name),
     .verbs = IN(VERB_IMPORT),
     .value_name = "TEXT",
     .help = "name of the cluster (default: of the file)"},
    {.name = "man",
     .kind = OPTION_FLAG,
     .offset = AT(is_man),
     .verbs = IN(VERB_HELP),
     .is_hidden = true,
     .help = "print the man page (roff)"},
    {.name = "no-color",
     .kind = OPTION_FLAG,
     .offset = AT(is_plain),
     .verbs = IN_ALL,
     .help = "no colour in messages (so without a terminal, under NO_COLOR or TERM=dumb)"},
    {.name = "quiet",
     .letter = 'q',
     .kind = OPTION_FLAG,
     .offset = AT(is_quiet),
     .verbs = IN_ALL,
     .help = "errors only on stderr: no warnings, no notes"},
    {.name = "help",
     .letter = 'h',
     .kind = OPTION_FLAG,
     .offset = AT(is_help),
     .verbs = IN_ALL,
     .help = "print this help"},
    {.name = NULL},
};

bool option_belongs(const struct option *option, const struct verb *verb)
{
    return (option->verbs & IN(verb->id)) != 0;
}

/* ---- finding ------------------------------------------------------------------------------ */

static const struct option *find_name(const char *name, size_t length)
{
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static const struct option *find_letter(char letter)
{
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (row->letter == letter)
            return row;
    }
    return NULL;
}

static const char *nearest_option(struct arena *arena, const struct verb *verb, const char *name)
{
    const char *names[128];
    size_t count = 0;
    for (const struct option *row = option_table; row->name != NULL; row++) {
        if (option_belongs(row, verb) && !row->is_hidden)
            names[count++] = row->name;
    }
    names[count] = NULL;
    const char *nearest = nearest_name(name, names);
    return nearest != NULL ? arena_printf(arena, "did you mean '--%s'?", nearest)
                           : arena_printf(arena, "'fsdpsim %s --help' lists them", verb->name);
}

static const char *verbs_of(struct arena *arena, const struct option *option)
{
    const char *text = NULL;
    for (const struct verb *verb = verb_table; verb < verb_table + VERB_COUNT; verb++) {
        if (!option_belongs(option, verb))
            continue;
        text = text == NULL ? arena_printf(arena, "it belongs to '%s'", verb->name)
                            : arena_printf(arena, "%s, '%s'", text, verb->name);
    }
    return text;
}

/* ---- storing ------------------------------------------------------------------------------ */

struct parser {
    struct arena *arena;
    const struct verb *verb;
    struct options *options;
    struct diag *diag;
    int argc;
    char **argv;
    int at; /* the argument being read */
};

static void *slot_of(const struct parser *parser, const struct option *option)
{
    return (char *)parser->options + option->offset;
}

static enum status store_count(struct parser *parser, const struct option *option,
                               const char *value)
{
    int64_t *slot = slot_of(parser, option);
    if (text_to_int64(value, slot) && *slot >= 1)
        return STATUS_OK;
    diag_add(parser->diag, DIAG_ERROR, NO_PLACE, NULL,
             "'--%s' wants a whole number of at least 1, not '%s'", option->name, value);
    return STATUS_INPUT;
}

/* "nodes=": a shell's empty variable, which would silently stand for the default. */
static enum status store_list(struct parser *parser, const struct option *option, const char *value)
{
    const char *equals = option->offset == AT(overrides) ? strchr(value, '=') : NULL;
    if (equals != NULL && equals[1 + strspn(equals + 1, " \t")] == '\0') {
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE,
                 arena_printf(parser->arena, "'%.*s=null' goes back to the default",
                              (int)(equals - value), value),
                 "'-s %s' gives no value", value);
        return STATUS_INPUT;
    }
    *ARENA_PUSH(parser->arena, (struct text_list *)slot_of(parser, option)) = value;
    return STATUS_OK;
}

static enum status store_value(struct parser *parser, const struct option *option,
                               const char *value)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)slot_of(parser, option) = true;
        return STATUS_OK;
    case OPTION_TEXT:
        *(const char **)slot_of(parser, option) = value;
        return STATUS_OK;
    case OPTION_LIST:
        return store_list(parser, option, value);
    case OPTION_COUNT:
        return store_count(parser, option, value);
    }
    BUG("option kind %d", (int)option->kind);
}

/* `written` is the option as the user wrote it; `value` what was glued to it, or NULL. */
static enum status take(struct parser *parser, const struct option *option, const char *written,
                        const char *value)
{
    if (!option_belongs(option, parser->verb)) {
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, verbs_of(parser->arena, option),
                 "'%s' is not an option of 'fsdpsim %s'", written, parser->verb->name);
        return STATUS_INPUT;
    }
    if (option->kind == OPTION_FLAG) {
        if (value == NULL)
            return store_value(parser, option, NULL);
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, NULL, "'%s' takes no value", written);
        return STATUS_INPUT;
    }
    if (value == NULL && parser->at + 1 < parser->argc)
        value = parser->argv[++parser->at];
    if (value == NULL) {
        diag_add(
            parser->diag, DIAG_ERROR, NO_PLACE,
            arena_printf(parser->arena, "%s %s: %s", written, option->value_name, option->help),
            "'%s' wants a value", written);
        return STATUS_INPUT;
    }
    return store_value(parser, option, value);
}

static enum status parse_long(struct parser *parser, const char *word)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const char *written = arena_strndup(parser->arena, word, length + 2);
    const struct option *option = find_name(name, length);
    if (option != NULL)
        return take(parser, option, written, equals != NULL ? equals + 1 : NULL);
    diag_add(parser->diag, DIAG_ERROR, NO_PLACE,
             nearest_option(parser->arena, parser->verb, written + 2), "unknown option '%s'",
             written);
    return STATUS_INPUT;
}

static enum status parse_short(struct parser *parser, const char *word)
{
    const char *written = arena_strndup(parser->arena, word, 2);
    const struct option *option = find_letter(word[1]);
    if (option == NULL || (word[2] != '\0' && !option_belongs(option, parser->verb))) {
        /* `-json` for `--json` is a common slip. */
        const char *hint = nearest_option(parser->arena, parser->verb, word + 1);
        diag_add(parser->diag, DIAG_ERROR, NO_PLACE, hint, "unknown option '%s'", word);
        return STATUS_INPUT;
    }
    return take(parser, option, written, word[2] != '\0' ? word + 2 : NULL);
}

enum status options_parse(struct arena *arena, const struct verb *verb, int argc, char **argv,
                          int from, struct options *options, struct text_list *arguments,
                          struct diag *diag)
{
    struct parser parser = {
        .arena = arena, .verb = verb, .options = options, .diag = diag, .argc = argc, .argv = argv};
    enum status status = STATUS_OK;
    bool has_ended = false;
    for (parser.at = from; parser.at < argc; parser.at++) {
        const char *word = argv[parser.at];
        enum status one = STATUS_OK;
        /* "-@nodes=4": standard input with an override. */
        if (has_ended || word[0] != '-' || word[1] == '\0' || word[1] == '@')
            *ARENA_PUSH(arena, arguments) = word;
        else if (strcmp(word, "--") == 0)
            has_ended = true;
        else if (word[1] == '-')
            one = parse_long(&parser, word);
        else
            one = parse_short(&parser, word);
        if (one != STATUS_OK)
            status = one;
    }
    return status;
}
