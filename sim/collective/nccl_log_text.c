/* collective/nccl_log_text.c: the text form, line by line; see nccl_log.h. */
#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "collective/nccl_log_private.h"

/* More facts, or longer ones, no table states: a text that is no log must not cost long. */
enum { FACTS_MAX = 64, FACT_BYTES_MAX = 4096 };

/* A line of the text without prefixes, and where it stands. */
struct line {
    char *text;             /* NUL-terminated copy without colours */
    int32_t number, column; /* of its first character */
    bool is_last;           /* not ended by a line feed */
};

struct text_reader {
    struct arena *arena;
    const struct source *source;
    struct nccl_log *log;
    struct row_warnings *warnings;
    struct nccl_table *table; /* open */
    struct columns columns;
    struct rank_list ranks;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- tables ------------------------------------------------------------------------------- */

static void table_close(struct text_reader *reader)
{
    if (reader->table->rows.count > 0)
        rank_list_close(&reader->ranks, reader->table);
    else
        reader->log->tables.count--;
    reader->ranks = (struct rank_list){0};
    reader->columns.count = 0;
}

static void table_open(struct text_reader *reader, struct place place)
{
    reader->table = ARENA_PUSH(reader->arena, &reader->log->tables);
    *reader->table = (struct nccl_table){.name = reader->source->name, .place = place};
}

/* What begins a test: after rows, it begins another one. */
static void begin(struct text_reader *reader, struct place place)
{
    if (reader->table->rows.count == 0)
        return;
    table_close(reader);
    table_open(reader, place);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Colours and other escapes of a terminal, in place. */
static void strip_escapes(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        if (at[0] == '\033' && at[1] == '[') {
            at += 2;
            while (*at != '\0' && (*at < '@' || *at > '~'))
                at++;
            at += *at != '\0';
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

/* The character at `at` of a line, '\0' behind it. */
static char peek(const char *text, size_t length, size_t at)
{
    return (char)(at < length ? text[at] : 0);
}

/* "[1,0]<stdout>:", "[node0:0] ", "[2025-10-14 10:15:00]": mpirun, torchrun, kubectl. */
static size_t bracket_length(const char *text, size_t length)
{
    enum { NAME_MAX_BYTES = 128 };
    const size_t limit = length < NAME_MAX_BYTES ? length : NAME_MAX_BYTES;
    const char *end = limit > 0 && text[0] == '[' ? memchr(text, ']', limit) : NULL;
    if (end == NULL || end == text + 1)
        return 0;
    size_t at = (size_t)(end - text) + 1;
    if (peek(text, length, at) == '<') {
        const char *stream_end = memchr(text + at, '>', length - at);
        at = stream_end != NULL ? (size_t)(stream_end - text) + 1 : at;
    }
    return at + (peek(text, length, at) == ':');
}

/* "12: " of srun -l; "node7: " of pdsh where a row or a comment follows. */
static size_t label_length(const char *text, size_t length)
{
    size_t at = 0;
    bool is_number = true;
    for (; at < length && (isalnum((unsigned char)text[at]) || strchr("._-", text[at]) != NULL) &&
           text[at] != '\0';
         at++)
        is_number = is_number && is_digit(text[at]);
    if (at == 0 || peek(text, length, at) != ':' || peek(text, length, at + 1) != ' ')
        return 0;
    size_t next = at + 1;
    while (is_space(peek(text, length, next)))
        next++;
    const char first = peek(text, length, next);
    return is_number || first == '#' || is_digit(first) ? at + 1 : 0;
}

/* "2025-10-14T10:15:00.123Z ", "10:15:00 ": the blank after it is needed. */
static size_t stamp_length(const char *text, size_t length)
{
    size_t at = 0;
    int32_t colons = 0;
    int32_t dashes = 0;
    for (; at < length && (is_digit(text[at]) || strchr("-:.,+TZ", text[at]) != NULL) &&
           text[at] != '\0';
         at++) {
        colons += text[at] == ':';
        dashes += text[at] == '-';
    }
    const bool is_date = at >= 10 && dashes >= 2 && text[4] == '-' && text[7] == '-';
    const bool is_time = at >= 8 && colons >= 2 && text[2] == ':' && text[5] == ':';
    return at < length && is_digit(text[0]) && is_space(text[at]) && (is_date || is_time) ? at : 0;
}

/* Bytes of what launchers put before each line, several of them and blanks included. */
static size_t prefix_length(const char *text, size_t length)
{
    size_t at = 0;
    for (;;) {
        while (is_space(peek(text, length, at)))
            at++;
        size_t one = bracket_length(text + at, length - at);
        if (one == 0)
            one = label_length(text + at, length - at);
        if (one == 0)
            one = stamp_length(text + at, length - at);
        if (one == 0)
            return at;
        at += one;
    }
}

static int32_t characters(const char *text, size_t length)
{
    int32_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* "2025-10-14", "10:15:00": what -S adds to a row. */
static bool is_stamp(const char *text, size_t length)
{
    if (length == 10)
        return is_digit(text[0]) && text[4] == '-' && text[7] == '-' && is_digit(text[9]);
    return length == 8 && is_digit(text[0]) && text[2] == ':' && text[5] == ':' &&
           is_digit(text[7]);
}

static struct words words_of(const struct text_reader *reader, const struct line *line)
{
    struct words words = {0};
    const char *counted = line->text; /* up to here `column` counts: one walk for all words */
    int32_t column = line->column;
    for (const char *at = line->text; *at != '\0';) {
        while (is_space(*at))
            at++;
        size_t length = 0;
        while (at[length] != '\0' && !is_space(at[length]))
            length++;
        if (length > 0 && !is_stamp(at, length)) {
            struct word *word = ARENA_PUSH(reader->arena, &words);
            word->text = arena_strndup(reader->arena, at, length);
            column += characters(counted, (size_t)(at - counted));
            counted = at;
            word->place = (struct place){.source = reader->source,
                                         .line = line->number,
                                         .column = column,
                                         .length = characters(at, length)};
        }
        at += length;
    }
    return words;
}

/* ---- what comments and other lines say ------------------------------------------------------ */

static const char *word_at(const struct words *words, int32_t index)
{
    return index >= 0 && index < words->count ? words->items[index].text : "";
}

static int32_t find_word(const struct words *words, const char *text)
{
    for (int32_t i = 0; i < words->count; i++)
        if (strcmp(words->items[i].text, text) == 0)
            return i;
    return -1;
}

static int64_t number_after(const struct words *words, const char *text)
{
    int64_t number = 0;
    const int32_t at = find_word(words, text);
    return at >= 0 && text_to_int64(word_at(words, at + 1), &number) ? number : 0;
}

static char *join_from(struct arena *arena, const struct words *words, int32_t from)
{
    enum { WORDS_MAX = 12 };
    char *text = arena_strdup(arena, word_at(words, from));
    for (int32_t i = from + 1; i < words->count && i < from + WORDS_MAX; i++)
        text = arena_printf(arena, "%s %s", text, words->items[i].text);
    return text;
}

/* "Rank  3 Group  0 Pid 431 on node7 device  3 [0x0f] NVIDIA H100 80GB HBM3" */
static bool take_rank(struct text_reader *reader, const struct words *words)
{
    const int32_t on = find_word(words, "on");
    const int32_t device = find_word(words, "device");
    int64_t rank;
    if (on < 0 || device < on || !text_to_int64(word_at(words, 1), &rank) || rank < 0)
        return false;
    rank_list_add(reader->arena, &reader->ranks, rank, word_at(words, on + 1),
                  words->items[1].place);
    int32_t name = device + 2;
    while (name < words->count && strchr(words->items[name - 1].text, ']') == NULL)
        name++;
    if (reader->table->device == NULL && name < words->count)
        reader->table->device = join_from(reader->arena, words, name);
    return true;
}

static void take_program(struct text_reader *reader, const char *name)
{
    struct nccl_table *table = reader->table;
    table->program = arena_strdup(reader->arena, name);
    table->has_op = nccl_op_from_log(name, &table->op);
}

static void add_fact(struct text_reader *reader, const char *text, size_t length,
                     struct place place)
{
    struct arena *arena = reader->arena;
    if (reader->table->facts.count >= FACTS_MAX)
        return;
    while (length > 0 && is_space(*text))
        text++, length--;
    const char *colon = memchr(text, ':', length);
    if (colon == NULL || colon == text)
        return;
    size_t key_length = (size_t)(colon - text);
    while (key_length > 0 && is_space(text[key_length - 1]))
        key_length--;
    const char *value = colon + 1;
    size_t value_length = length - (size_t)(value - text);
    while (value_length > 0 && is_space(*value))
        value++, value_length--;
    while (value_length > 0 && is_space(value[value_length - 1]))
        value_length--;
    *ARENA_PUSH(arena, &reader->table->facts) = (struct nccl_fact){
        arena_strndup(arena, text, key_length), arena_strndup(arena, value, value_length), place};
}

/* "# hardware: A; intra-node link: B", "# n ranks: 8, n nodes: 2" */
static void take_facts(struct text_reader *reader, const char *text, struct place place)
{
    if (strlen(text) > FACT_BYTES_MAX)
        return;
    while (*text != '\0') {
        const char *end = strstr(text, "; int"); /* intra-node link, inter-node link */
        const char *nodes = strstr(text, ", n nodes:");
        if (nodes != NULL && (end == NULL || nodes < end))
            end = nodes;
        const size_t length = end != NULL ? (size_t)(end - text) : strlen(text);
        add_fact(reader, text, length, place);
        text += length + (end != NULL ? 2 : 0);
    }
}

static void take_known_facts(struct nccl_table *table)
{
    const char *op = nccl_table_fact(table, "collective");
    const char *ranks = nccl_table_fact(table, "n ranks");
    const char *nodes = nccl_table_fact(table, "n nodes");
    if (op != NULL && table->program == NULL) {
        table->program = op;
        table->has_op = nccl_op_from_log(op, &table->op);
    }
    if (ranks != NULL && !text_to_int64(ranks, &table->ranks))
        table->ranks = 0;
    if (nodes != NULL && !text_to_int64(nodes, &table->nodes))
        table->nodes = 0;
    const char *version = nccl_table_fact(table, "NCCL/RCCL version");
    if (version != NULL)
        table->version = version;
}

/* "# nccl-tests version 2.17.1 nccl-headers=22707 nccl-library=22707" */
static void take_library(struct text_reader *reader, const struct words *words)
{
    static const char key[] = "nccl-library=";
    for (int32_t i = 0; i < words->count; i++) {
        int64_t code;
        const char *text = words->items[i].text;
        if (strncmp(text, key, sizeof(key) - 1) == 0 &&
            text_to_int64(text + sizeof(key) - 1, &code))
            reader->table->version = version_from_code(reader->arena, code);
    }
}

static void take_comment(struct text_reader *reader, const struct words *words, const char *text)
{
    const struct place place = words->items[0].place;
    struct columns columns;
    struct words rest = *words; /* without the '#', alone or glued to the first word */
    if (strcmp(rest.items[0].text, "#") == 0)
        rest.items++, rest.count--;
    else if (rest.items[0].text[0] == '#')
        rest.items[0].text++;
    const char *first = word_at(&rest, 0);
    if (columns_from_header(&rest, &columns)) {
        begin(reader, place);
        reader->columns = columns;
    } else if (strcmp(first, "Rank") == 0 && take_rank(reader, &rest)) {
        return;
    } else if (strncmp(first, "nThread", 7) == 0) {
        begin(reader, place);
        const int64_t threads = number_after(&rest, rest.items[0].text);
        const int64_t gpus = number_after(&rest, first[7] == ':' ? "nGpus:" : "nGpus");
        reader->table->gpus_per_process = threads > 0 ? threads * gpus : gpus;
    } else if (strcmp(first, "Collective") == 0 && strcmp(word_at(&rest, 2), "starting:") == 0) {
        begin(reader, place);
        take_program(reader, word_at(&rest, 3));
    } else if (strcmp(first, "nccl-tests") == 0) {
        begin(reader, place);
        take_library(reader, &rest);
    } else {
        if (strcmp(first, "source:") == 0)
            begin(reader, place);
        take_facts(reader, text, place);
        take_known_facts(reader->table);
    }
    table_take_environment(reader->arena, reader->table, text);
}

/* Whether a word is a program of nccl-tests: "./build/all_reduce_perf", "all_gather_perf_mpi". */
static bool is_program(const char *word)
{
    const char *perf = strstr(word, "_perf");
    return perf != NULL && (perf[5] == '\0' || strcmp(perf, "_perf_mpi") == 0);
}

static void take_other(struct text_reader *reader, const struct words *words, const char *text)
{
    static const char version[] = "NCCL version ";
    struct columns columns;
    if (strcmp(word_at(words, 0), "Rank") == 0 && take_rank(reader, words))
        return;
    if (columns_from_header(words, &columns)) { /* a '#' lost on the way through Markdown */
        begin(reader, words->items[0].place);
        reader->columns = columns;
        return;
    }
    for (int32_t i = 0; i < words->count; i++) {
        if (!is_program(words->items[i].text))
            continue;
        begin(reader, words->items[0].place);
        if (reader->table->program == NULL)
            take_program(reader, words->items[i].text);
    }
    const char *at = strstr(text, version);
    if (at != NULL && reader->table->version == NULL && is_digit(at[sizeof(version) - 1])) {
        at += sizeof(version) - 1;
        reader->table->version = arena_strndup(reader->arena, at, strspn(at, "0123456789."));
    }
    table_take_environment(reader->arena, reader->table, text);
}

static void take_line(struct text_reader *reader, const struct line *line)
{
    const char *text = line->text;
    const struct words words = words_of(reader, line);
    if (words.count == 0)
        return;
    while (is_space(*text))
        text++;
    if (*text == '#') {
        take_comment(reader, &words, text + 1);
    } else if (words_are_row(&words)) {
        struct nccl_row row;
        if (row_from_words(reader->arena, &words, &reader->columns, line->is_last, &row,
                           reader->warnings))
            *ARENA_PUSH(reader->arena, &reader->table->rows) = row;
    } else {
        take_other(reader, &words, text);
    }
}

/* ---- the text ----------------------------------------------------------------------------- */

enum status nccl_text_parse(struct arena *arena, const struct source *source, struct nccl_log *log,
                            struct row_warnings *warnings)
{
    struct text_reader reader = {
        .arena = arena, .source = source, .log = log, .warnings = warnings};
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    const char *at = source->text;
    const char *const end = at + source->length;
    if (source->length >= 3 && memcmp(at, byte_order_mark, 3) == 0)
        at += 3;
    table_open(&reader, (struct place){source, 1, 1, 1});
    for (int32_t number = 1; at < end; number++) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const size_t length = feed != NULL ? (size_t)(feed - at) : (size_t)(end - at);
        const size_t skipped = prefix_length(at, length);
        struct line line = {
            .number = number, .column = characters(at, skipped) + 1, .is_last = feed == NULL};
        line.text = arena_strndup(arena, at + skipped, length - skipped);
        strip_escapes(line.text);
        take_line(&reader, &line);
        at += length + 1;
    }
    table_close(&reader);
    return STATUS_OK;
}
