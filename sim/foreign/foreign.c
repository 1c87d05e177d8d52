/* foreign/foreign.c: from a foreign text to ours; see foreign.h. */
#include <string.h>

#include "base/shown_text.h"
#include "foreign/foreign_private.h"

/* Blanks the comment that begins at `text[at]`; returns where it ends. */
static size_t blank_comment(char *text, size_t at, size_t length)
{
    const bool is_line = text[at + 1] == '/';
    text[at] = text[at + 1] = ' ';
    for (at += 2; at < length; at++) {
        if (is_line && text[at] == '\n')
            return at;
        if (!is_line && text[at] == '*' && text[at + 1] == '/') {
            text[at] = text[at + 1] = ' ';
            return at + 1;
        }
        text[at] = text[at] == '\n' ? '\n' : ' ';
    }
    return at;
}

/* JSON with comments: they become blanks, so that places stay. */
static struct source *without_comments(struct arena *arena, const struct source *source)
{
    const size_t length = source->length;
    char *text = arena_strndup(arena, source->text, length);
    bool is_text = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            is_text = !is_text;
        else if (is_text && text[i] == '\\')
            i++;
        else if (!is_text && text[i] == '/' && (text[i + 1] == '/' || text[i + 1] == '*'))
            i = blank_comment(text, i, length);
    }
    struct source *clean = ARENA_NEW(arena, struct source);
    *clean = (struct source){.name = source->name, .text = text, .length = length};
    return clean;
}

static void add_dropped(struct foreign *foreign, const struct node_entry *entry, const char *why)
{
    const char *key = text_shown(foreign->arena, entry->key);
    *ARENA_PUSH(foreign->arena, &foreign->dropped) =
        arena_printf(foreign->arena, "dropped: %s: %s", key, why);
}

void foreign_drop(struct foreign *foreign, const struct node_entry *entry, const char *why)
{
    if (entry == NULL)
        return;
    add_dropped(foreign, entry, why);
    diag_add(foreign->diag, DIAG_WARNING, entry->key_place, NULL, "dropped '%s': %s",
             text_shown(foreign->arena, entry->key), why);
}

static const char *nearest_key(struct foreign *foreign, const struct foreign_key *keys,
                               const char *word)
{
    int32_t count = 0;
    while (keys[count].key != NULL)
        count++;
    const char **names = ARENA_ARRAY(foreign->arena, const char *, count + 1);
    for (int32_t i = 0; i < count; i++)
        names[i] = keys[i].key;
    const char *nearest = nearest_name(word, names);
    return nearest != NULL ? arena_printf(foreign->arena, "did you mean '%s'?", nearest) : NULL;
}

bool foreign_is_off(const struct node *value)
{
    static const char *const words[] = {"false", "False", "no", "none", "None",
                                        "0",     "all",   "",   NULL};
    if (value->kind != NODE_SCALAR)
        return value->kind == NODE_NULL || value->entries.count == 0;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(value->text, words[i]) == 0)
            return true;
    return false;
}

void foreign_ignore(struct foreign *foreign, const struct node_entry *entry)
{
    *ARENA_PUSH(foreign->arena, &foreign->silent) = text_shown(foreign->arena, entry->key);
}

void foreign_classify(struct foreign *foreign, const struct node *map,
                      const struct foreign_key *keys, const char *section)
{
    for (int32_t i = 0; map != NULL && i < map->entries.count; i++) {
        const struct node_entry *entry = &map->entries.items[i];
        const struct foreign_key *known = keys;
        while (known->key != NULL && strcmp(known->key, entry->key) != 0)
            known++;
        if (known->key == NULL) {
            add_dropped(foreign, entry, "unknown");
            diag_add(foreign->diag, DIAG_NOTE, entry->key_place,
                     nearest_key(foreign, keys, entry->key), "unknown key '%s' in %s is dropped",
                     text_shown(foreign->arena, entry->key),
                     section == NULL ? "the file" : arena_printf(foreign->arena, "'%s'", section));
        } else if (known->use == FOREIGN_SILENT ||
                   (known->use == FOREIGN_DROPPED && foreign_is_off(entry->value))) {
            foreign_ignore(foreign, entry);
        } else if (known->use == FOREIGN_DROPPED) {
            foreign_drop(foreign, entry, known->why);
        }
    }
}

/* ---- whose file ----------------------------------------------------------------------------- */

static const struct {
    const char *word, *title, *written; /* of 'import', in messages, as a hint */
    const struct foreign_key *keys;
    void (*read)(struct foreign *foreign, const struct node *root);
} formats[] = {
    [FOREIGN_ACCELERATE] = {"accelerate", "an accelerate configuration",
                            "what 'accelerate config' writes", accelerate_keys, accelerate_read},
    [FOREIGN_DEEPSPEED] = {"deepspeed", "a DeepSpeed configuration", "a ds_config.json",
                           deepspeed_keys, deepspeed_read},
};

static int32_t known_keys(const struct node *root, enum foreign_format format)
{
    int32_t count = 0;
    for (const struct foreign_key *known = formats[format].keys; known->key != NULL; known++)
        count += foreign_entry(root, known->key) != NULL ? 1 : 0;
    return count;
}

/* Is it a map of this tool's keys, more than of the other's? No key is of both. */
static bool is_of_format(const struct node *root, enum foreign_format format, struct diag *diag)
{
    const enum foreign_format other =
        format == FOREIGN_DEEPSPEED ? FOREIGN_ACCELERATE : FOREIGN_DEEPSPEED;
    const int32_t own = known_keys(root, format), others = known_keys(root, other);
    if (root->kind != NODE_MAP)
        diag_add(diag, DIAG_ERROR, root->place, formats[format].written,
                 "the file is not a map of keys");
    else if (others > own)
        diag_add(diag, DIAG_ERROR, root->place,
                 arena_printf(diag->arena, "fsdpsim import %s FILE", formats[other].word),
                 "this is %s", formats[other].title);
    else if (own == 0)
        diag_add(diag, DIAG_ERROR, root->place, formats[format].written,
                 "the file holds no key of %s", formats[format].title);
    else
        return true;
    return false;
}

/* ---- the result ----------------------------------------------------------------------------- */

/* What neither tool knows of. */
static void set_outside(struct foreign *foreign)
{
    const struct foreign_options *options = foreign->options;
    if (options->model != NULL)
        foreign_set(foreign, "model", options->model, "from --model");
    else
        diag_add(foreign->diag, DIAG_WARNING, NO_PLACE,
                 "--model NAME: of 'fsdpsim list models', or a path to a config.json",
                 "the file does not say which model is trained: set 'model' before it can run");
    if (options->cluster != NULL)
        foreign_set(foreign, "cluster", options->cluster, "from --cluster");
    else
        diag_add(foreign->diag, DIAG_WARNING, NO_PLACE,
                 "--cluster NAME: of 'fsdpsim list clusters', or a path",
                 "the file does not say on which machine: set 'cluster' before it can run");
    if (options->seq_len > 0)
        foreign_set(foreign, "train.seq_len",
                    arena_printf(foreign->arena, "%lld", (long long)options->seq_len),
                    "from --seq-len");
    else
        foreign_assume(foreign, "train.seq_len", "2048",
                       "the file does not say how long sequences are (--seq-len)");
}

enum status foreign_import(struct arena *arena, enum foreign_format format,
                           const struct source *source, const struct foreign_options *options,
                           struct strbuf *out, struct diag *diag)
{
    struct foreign foreign = {.arena = arena, .diag = diag, .options = options};
    struct node *root = NULL;
    const struct source *text =
        format == FOREIGN_DEEPSPEED ? without_comments(arena, source) : source;
    const int32_t before = diag->error_count;
    enum status status = node_parse(arena, text, &root, diag);
    if (status != STATUS_OK)
        return status;
    if (!is_of_format(root, format, diag))
        return STATUS_INPUT;
    foreign_set(&foreign, "version", "1", NULL);
    set_outside(&foreign);
    formats[format].read(&foreign, root);
    if (diag->error_count > before)
        return STATUS_INPUT;
    foreign_write(&foreign, formats[format].title, out);
    return STATUS_OK;
}
