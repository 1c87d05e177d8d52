/* study/closest.c: see closest.h. */
#include "study/closest.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/units.h"

/* ---- the columns of the index, and of the distance ------------------------------------------ */

enum trait_kind { TRAIT_TEXT, TRAIT_COUNT, TRAIT_REAL, TRAIT_FLAG };
enum trait_weight {
    WEIGHT_NONE,
    WEIGHT_WORD,   /* 1 when it differs */
    WEIGHT_OCTAVE, /* |log2| of the ratio; not where one is 0 */
    WEIGHT_HOSTS   /* 1 when one is 1 and the other is not */
};

static const struct trait {
    const char *name;
    enum trait_kind kind;
    enum trait_weight weight;
    enum dimension dimension; /* TRAIT_REAL */
    size_t offset;
    const char *words; /* in a difference */
} traits[] = {
#define TRAIT(its_name, member, its_kind, its_weight, its_dimension, its_words)                    \
    {                                                                                              \
        .name = (its_name), .kind = (its_kind), .weight = (its_weight),                            \
        .dimension = (its_dimension), .offset = offsetof(struct run_traits, member),               \
        .words = (its_words)                                                                       \
    }
    TRAIT("id", label, TRAIT_TEXT, WEIGHT_NONE, DIM_NONE, NULL),
    TRAIT("model", model, TRAIT_TEXT, WEIGHT_NONE, DIM_NONE, NULL),
    TRAIT("parameters", parameters, TRAIT_COUNT, WEIGHT_OCTAVE, DIM_NONE, "parameters"),
    TRAIT("gpu", gpu, TRAIT_TEXT, WEIGHT_NONE, DIM_NONE, "GPU"),
    TRAIT("n_gpus", n_gpus, TRAIT_COUNT, WEIGHT_OCTAVE, DIM_NONE, "GPUs"),
    TRAIT("n_nodes", n_nodes, TRAIT_COUNT, WEIGHT_HOSTS, DIM_NONE, "hosts"),
    TRAIT("seq_len", seq_len, TRAIT_COUNT, WEIGHT_OCTAVE, DIM_NONE, "tokens a sequence"),
    TRAIT("micro_batch", micro_batch, TRAIT_COUNT, WEIGHT_OCTAVE, DIM_NONE,
          "sequences a microbatch"),
    TRAIT("policy", policy, TRAIT_TEXT, WEIGHT_WORD, DIM_NONE, "policy"),
    TRAIT("checkpointing", checkpointing, TRAIT_TEXT, WEIGHT_WORD, DIM_NONE, "checkpointing"),
    TRAIT("compile", is_compiled, TRAIT_FLAG, WEIGHT_WORD, DIM_NONE, "compile"),
    TRAIT("float8", is_float8, TRAIT_FLAG, WEIGHT_WORD, DIM_NONE, "float8"),
    TRAIT("lora", is_lora, TRAIT_FLAG, WEIGHT_WORD, DIM_NONE, "LoRA"),
    TRAIT("peak_flop_per_s", peak_flop_per_s, TRAIT_REAL, WEIGHT_OCTAVE, DIM_NONE, NULL),
    TRAIT("hbm_bytes_per_s", hbm_bytes_per_s, TRAIT_REAL, WEIGHT_OCTAVE, DIM_NONE, NULL),
    TRAIT("network_bytes_per_s", network_bytes_per_s, TRAIT_REAL, WEIGHT_OCTAVE, DIM_BANDWIDTH,
          "network a GPU"),
    TRAIT("measured_s", measured_s, TRAIT_REAL, WEIGHT_NONE, DIM_NONE, NULL),
    TRAIT("predicted_s", predicted_s, TRAIT_REAL, WEIGHT_NONE, DIM_NONE, NULL),
#undef TRAIT
};
enum { TRAIT_NUMBER = sizeof(traits) / sizeof(traits[0]) };

static const void *member(const struct run_traits *run, const struct trait *trait)
{
    return (const char *)run + trait->offset;
}

static const char *text_of(const struct run_traits *run, const struct trait *trait)
{
    return *(const char *const *)member(run, trait);
}

/* Flags are 0 and 1. */
static double number_of(const struct run_traits *run, const struct trait *trait)
{
    switch (trait->kind) {
    case TRAIT_TEXT:
        break;
    case TRAIT_COUNT:
        return (double)*(const int64_t *)member(run, trait);
    case TRAIT_REAL:
        return *(const double *)member(run, trait);
    case TRAIT_FLAG:
        return *(const bool *)member(run, trait) ? 1 : 0;
    }
    BUG("'%s' is no number", trait->name);
}

struct run_traits run_traits_of(const struct experiment *experiment, const struct outcome *outcome)
{
    static const char *const checkpointing[] = {
        [CHECKPOINT_NONE] = "none",           [CHECKPOINT_FULL] = "full",
        [CHECKPOINT_EVERY] = "every",         [CHECKPOINT_SELECTIVE_OP] = "selective",
        [CHECKPOINT_PER_CHILD] = "per_child",
    };
    const struct cluster *cluster = &experiment->cluster;
    const struct train_config *train = &experiment->train;
    const bool has_network = outcome->n_nodes > 1;
    return (struct run_traits){
        .label = outcome->config_name,
        .model = outcome->model,
        .gpu = outcome->gpu,
        .policy = outcome->policy,
        .checkpointing = checkpointing[train->checkpointing.policy],
        .parameters = outcome->parameters,
        .seq_len = outcome->seq_len,
        .micro_batch = outcome->micro_batch,
        .n_gpus = outcome->n_gpus,
        .n_nodes = outcome->n_nodes,
        .peak_flop_per_s = cluster->gpu.peak_flop_per_s[train->precision.param_dtype],
        .hbm_bytes_per_s = cluster->gpu.hbm_bytes_per_s,
        .network_bytes_per_s = has_network
                                   ? (double)cluster->nic_count * cluster->nic_link.bytes_per_s /
                                         (double)outcome->gpus_per_node
                                   : 0,
        .is_compiled = train->compile,
        .is_float8 = train->float8 != FLOAT8_NONE,
        .is_lora = train->lora.rank > 0,
        .measured_s = (double)NAN,
        .predicted_s = outcome->step_time_s};
}

/* ---- distance ----------------------------------------------------------------------------- */

static double trait_distance(const struct trait *trait, const struct run_traits *a,
                             const struct run_traits *b)
{
    switch (trait->weight) {
    case WEIGHT_NONE:
        break;
    case WEIGHT_WORD:
        if (trait->kind == TRAIT_TEXT)
            return text_equal(text_of(a, trait), text_of(b, trait)) ? 0 : 1;
        return number_of(a, trait) == number_of(b, trait) ? 0 : 1;
    case WEIGHT_OCTAVE: {
        const double x = number_of(a, trait), y = number_of(b, trait);
        return x > 0 && y > 0 ? fabs(log2(x / y)) : 0;
    }
    case WEIGHT_HOSTS:
        return (number_of(a, trait) > 1) == (number_of(b, trait) > 1) ? 0 : 1;
    }
    return 0;
}

double run_distance(const struct run_traits *a, const struct run_traits *b)
{
    double sum = 0;
    for (int i = 0; i < TRAIT_NUMBER; i++)
        sum += trait_distance(&traits[i], a, b);
    return sum;
}

const struct run_traits *run_closest(const struct run_index *index, const struct run_traits *run)
{
    const struct run_traits *best = NULL;
    double least = (double)INFINITY;
    for (int32_t k = 0; k < index->count; k++) {
        const double distance = run_distance(&index->items[k], run);
        if (distance >= least)
            continue;
        least = distance;
        best = &index->items[k];
    }
    return best;
}

static void add_value(struct strbuf *text, const struct trait *trait, const struct run_traits *run)
{
    char shown[48];
    switch (trait->kind) {
    case TRAIT_TEXT:
        strbuf_add(text, text_of(run, trait));
        break;
    case TRAIT_COUNT:
        strbuf_add(text, format_count(shown, sizeof(shown), (int64_t)number_of(run, trait)));
        break;
    case TRAIT_REAL:
        strbuf_add(text, format_bandwidth(shown, sizeof(shown), number_of(run, trait)));
        break;
    case TRAIT_FLAG:
        strbuf_add(text, number_of(run, trait) > 0 ? "on" : "off");
        break;
    }
}

/* The GPU's name stands for its peak and bandwidth; models of nearly one size are of one size. */
static bool is_told(const struct trait *trait, const struct run_traits *a,
                    const struct run_traits *b)
{
    const double same_size = 0.1; /* of an octave: 7 % */
    if (trait->words == NULL)
        return false;
    if (trait->offset == offsetof(struct run_traits, gpu))
        return !text_equal(a->gpu, b->gpu);
    if (trait->offset == offsetof(struct run_traits, parameters))
        return trait_distance(trait, a, b) > same_size;
    return trait_distance(trait, a, b) > 0;
}

const char *run_difference(struct arena *arena, const struct run_traits *run,
                           const struct run_traits *other)
{
    struct strbuf text = {0};
    for (int i = 0; i < TRAIT_NUMBER; i++) {
        if (!is_told(&traits[i], run, other))
            continue;
        strbuf_printf(&text, "%s%s ", text.length > 0 ? ", " : "", traits[i].words);
        add_value(&text, &traits[i], run);
        strbuf_add(&text, " not ");
        add_value(&text, &traits[i], other);
    }
    const char *result = text.length > 0 ? arena_strdup(arena, text.text) : "nothing";
    strbuf_release(&text);
    return result;
}

/* ---- the index ---------------------------------------------------------------------------- */

static bool take_cell(const struct trait *trait, const char *text, struct run_traits *run)
{
    void *field = (char *)run + trait->offset;
    int64_t flag = 0;
    switch (trait->kind) {
    case TRAIT_TEXT:
        *(const char **)field = text;
        return true;
    case TRAIT_COUNT:
        return text_to_int64(text, field);
    case TRAIT_REAL:
        return text_to_double(text, field);
    case TRAIT_FLAG:
        if (!text_to_int64(text, &flag))
            return false;
        *(bool *)field = flag != 0;
        return true;
    }
    return false;
}

/* A line of as many cells as there are traits; the text is cut into them. */
static bool take_line(char *line, struct run_traits *run)
{
    for (int i = 0; i < TRAIT_NUMBER; i++) {
        char *comma = line != NULL ? strchr(line, ',') : NULL;
        if (line == NULL || (comma == NULL) != (i + 1 == TRAIT_NUMBER))
            return false;
        if (comma != NULL)
            *comma = '\0';
        if (!take_cell(&traits[i], line, run))
            return false;
        line = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

static int32_t count_lines(const char *text)
{
    int32_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

/*
 * `run` reads it each time, so it is cut in place instead of through config/csv_table.h, which
 * keeps a place a cell: a quarter of the time.
 */
enum status run_index_load(struct arena *arena, const char *const *data_folders,
                           struct run_index *index, struct diag *diag)
{
    enum { INDEX_MAX_BYTES = 4 << 20 };
    const char *path = data_path(arena, data_folders, "results/measured", "index.csv");
    struct source *source = NULL;
    *index = (struct run_index){0};
    if (path == NULL)
        return STATUS_OK;
    const enum status status = source_load(arena, path, INDEX_MAX_BYTES, &source, diag);
    if (status != STATUS_OK)
        return status;
    char *text = arena_strdup(arena, source->text);
    index->items = ARENA_ARRAY(arena, struct run_traits, count_lines(text) + 1);
    struct place place = {.source = source, .line = 1, .column = 1, .length = 1};
    for (char *end = strchr(text, '\n'); end != NULL; end = strchr(text, '\n')) {
        *end = '\0';
        if (place.line > 1 && !take_line(text, &index->items[index->count++])) {
            diag_add(diag, DIAG_ERROR, place, "the file is generated: results/README.md",
                     "not a run of the index");
            return STATUS_INPUT;
        }
        text = end + 1;
        place.line++;
    }
    return STATUS_OK;
}

/* Cells hold no comma: a name's become spaces. */
static void write_text(const char *text, FILE *file)
{
    for (; *text != '\0'; text++)
        fputc(*text == ',' || *text == '\n' || *text == '\r' ? ' ' : *text, file);
}

void run_index_write(const struct run_index *index, FILE *file)
{
    for (int i = 0; i < TRAIT_NUMBER; i++)
        fprintf(file, "%s%s", i > 0 ? "," : "", traits[i].name);
    fputc('\n', file);
    for (int32_t k = 0; k < index->count; k++) {
        for (int i = 0; i < TRAIT_NUMBER; i++) {
            fputs(i > 0 ? "," : "", file);
            if (traits[i].kind == TRAIT_TEXT)
                write_text(text_of(&index->items[k], &traits[i]), file);
            else if (traits[i].kind == TRAIT_REAL)
                fprintf(file, "%.6g", number_of(&index->items[k], &traits[i]));
            else
                fprintf(file, "%.0f", number_of(&index->items[k], &traits[i]));
        }
        fputc('\n', file);
    }
}
