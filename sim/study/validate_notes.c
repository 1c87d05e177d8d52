/* study/validate_notes.c: keys `source.…` of facts: what a source's figures mean, and the words
   that each accepts. */
#include <string.h>

#include "base/strbuf.h"
#include "study/validate_private.h"

static const char prefix[] = "source.";

static const char *const memory_words[] = {
    [MEMORY_KIND_NONE] = "none",     [MEMORY_KIND_ALLOCATED] = "allocated",
    [MEMORY_KIND_ACTIVE] = "active", [MEMORY_KIND_RESERVED] = "reserved",
    [MEMORY_KIND_DEVICE] = "device", NULL};
static const char *const mfu_words[] = {"stated", NULL};
static const char *const network_words[] = {"assumed", NULL};
static const char *const step_time_words[] = {"none", "tokens", NULL};

static const char *const note_keys[] = {"source.memory_kind", "source.mfu", "source.network",
                                        "source.step_time", NULL};
static const char *const *const note_words[] = {memory_words, mfu_words, network_words,
                                                step_time_words};

_Static_assert(sizeof(note_keys) / sizeof(note_keys[0]) ==
                   sizeof(note_words) / sizeof(note_words[0]) + 1,
               "words for each key");

const char *memory_kind_name(enum memory_kind kind)
{
    return memory_words[kind];
}

/* -1: none. */
static int index_of(const char *word, const char *const *words)
{
    for (int k = 0; words[k] != NULL; k++)
        if (text_equal(word, words[k]))
            return k;
    return -1;
}

enum memory_kind memory_kind_of(const char *word)
{
    const int k = index_of(word, memory_words);
    return k >= 0 ? (enum memory_kind)k : MEMORY_KIND_NONE;
}

bool setting_is_note(const char *key)
{
    return strncmp(key, prefix, sizeof(prefix) - 1) == 0;
}

/* "did you mean 'none'? accepted: none, tokens" */
static const char *hint_of(struct arena *arena, const char *word, const char *const *words)
{
    const char *near = nearest_name(word, words), *all = words[0];
    for (int k = 1; words[k] != NULL; k++)
        all = arena_printf(arena, "%s, %s", all, words[k]);
    return near != NULL ? arena_printf(arena, "did you mean '%s'? accepted: %s", near, all)
                        : arena_printf(arena, "accepted: %s", all);
}

bool note_check(struct config *config, const char *path, const char *key, const char *value)
{
    const int k = index_of(key, note_keys);
    if (k < 0) {
        config_error(config, path, hint_of(config->arena, key, note_keys),
                     "'%s' is no note on a source", key);
        return false;
    }
    if (value[0] == '\0' || index_of(value, note_words[k]) >= 0)
        return true;
    config_error(config, path, hint_of(config->arena, value, note_words[k]), "'%s' cannot be '%s'",
                 key, value);
    return false;
}
