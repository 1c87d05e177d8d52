/* foreign/foreign_read.c: values as other tools write them. */
#include <math.h>
#include <string.h>

#include "base/shown_text.h"
#include "foreign/foreign_private.h"

static int lowered(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

static bool is_same_word(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (lowered(*a) != lowered(*b))
            return false;
    return *a == *b;
}

const struct node_entry *foreign_entry(const struct node *map, const char *key)
{
    for (int32_t i = 0; map != NULL && map->kind == NODE_MAP && i < map->entries.count; i++)
        if (strcmp(map->entries.items[i].key, key) == 0)
            return &map->entries.items[i];
    return NULL;
}

static void refuse(struct foreign *foreign, const struct node_entry *entry, const char *accepted)
{
    const struct node *value = entry->value;
    diag_add(foreign->diag, DIAG_ERROR, value->place.line > 0 ? value->place : entry->key_place,
             accepted, "'%s' cannot be '%s'", text_shown(foreign->arena, entry->key),
             value->kind == NODE_SCALAR ? text_shown(foreign->arena, value->text)
             : value->kind == NODE_MAP  ? "a map"
                                        : "a list");
}

/* The scalar of a key that is set, NULL otherwise. */
static const struct node_entry *scalar_entry(struct foreign *foreign, const struct node *map,
                                             const char *key, const char *accepted)
{
    const struct node_entry *entry = foreign_entry(map, key);
    if (!foreign_is_written(map, key))
        return NULL;
    if (entry->value->kind == NODE_SCALAR)
        return entry;
    refuse(foreign, entry, accepted);
    return NULL;
}

const struct node *foreign_map(struct foreign *foreign, const struct node *map, const char *key)
{
    const struct node_entry *entry = foreign_entry(map, key);
    if (entry == NULL || entry->value->kind == NODE_NULL || entry->value->kind == NODE_MAP)
        return entry != NULL && entry->value->kind == NODE_MAP ? entry->value : NULL;
    refuse(foreign, entry, "a map of keys");
    return NULL;
}

bool foreign_is_auto(const struct node *map, const char *key)
{
    const struct node_entry *entry = foreign_entry(map, key);
    return entry != NULL && entry->value->kind == NODE_SCALAR &&
           is_same_word(entry->value->text, "auto");
}

bool foreign_is_written(const struct node *map, const char *key)
{
    const struct node_entry *entry = foreign_entry(map, key);
    return entry != NULL && entry->value->kind != NODE_NULL && !foreign_is_auto(map, key);
}

const char *foreign_text(struct foreign *foreign, const struct node *map, const char *key)
{
    const struct node_entry *entry = scalar_entry(foreign, map, key, "a word");
    return entry != NULL ? entry->value->text : NULL;
}

bool foreign_bool(struct foreign *foreign, const struct node *map, const char *key, bool *value)
{
    static const struct choice words[] = {{"true", 1, NULL},
                                          {"false", 0, NULL},
                                          {"yes", 1, NULL},
                                          {"no", 0, NULL},
                                          {"1", 1, NULL},
                                          {"0", 0, NULL},
                                          {0}};
    const struct node_entry *entry = scalar_entry(foreign, map, key, "true or false");
    for (int i = 0; entry != NULL && words[i].word != NULL; i++) {
        if (!is_same_word(words[i].word, entry->value->text))
            continue;
        *value = words[i].value != 0;
        return true;
    }
    if (entry != NULL)
        refuse(foreign, entry, "true or false");
    return false;
}

bool foreign_real(struct foreign *foreign, const struct node *map, const char *key, double *value)
{
    const struct node_entry *entry = scalar_entry(foreign, map, key, "a number from 0 on");
    if (entry == NULL)
        return false;
    if (text_to_double(entry->value->text, value) && *value >= 0)
        return true;
    refuse(foreign, entry, "a number from 0 on");
    return false;
}

bool foreign_count(struct foreign *foreign, const struct node *map, const char *key, int64_t least,
                   int64_t *value)
{
    static const double most = 1e15;
    char accepted[64];
    double number = 0;
    snprintf(accepted, sizeof(accepted), "a whole number from %lld to 1e15", (long long)least);
    const struct node_entry *entry = scalar_entry(foreign, map, key, accepted);
    if (entry == NULL)
        return false;
    if (!text_to_double(entry->value->text, &number) || number < (double)least || number > most ||
        number > floor(number)) {
        refuse(foreign, entry, accepted);
        return false;
    }
    *value = (int64_t)number;
    return true;
}

bool foreign_word(struct foreign *foreign, const struct node *map, const char *key,
                  const struct choice *words, int *value)
{
    const char *accepted = "accepted:";
    for (int i = 0; words[i].word != NULL; i++)
        accepted =
            arena_printf(foreign->arena, "%s%s %s", accepted, i > 0 ? "," : "", words[i].word);
    const struct node_entry *entry = scalar_entry(foreign, map, key, accepted);
    for (int i = 0; entry != NULL && words[i].word != NULL; i++) {
        if (!is_same_word(words[i].word, entry->value->text))
            continue;
        *value = (int)words[i].value;
        return true;
    }
    if (entry != NULL)
        refuse(foreign, entry, accepted);
    return false;
}
