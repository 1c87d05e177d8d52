/*
 * config/node_text.c: texts before and after the tree: which characters a source may hold, and
 * nodes written back as text.
 */
#include <string.h>

#include "base/shown_text.h"
#include "config/config_private.h"

int32_t utf8_length(const char *text, size_t bytes)
{
    int32_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* One character of UTF-8 (shortest form, no surrogates): its bytes, 0 when it is none. */
static size_t utf8_next(const unsigned char *at, size_t left, uint32_t *code)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = 1;
    if (at[0] < 0x80)
        *code = at[0];
    else if (at[0] >= 0xC2 && at[0] <= 0xDF)
        length = 2, *code = at[0] & 0x1FU;
    else if ((at[0] & 0xF0) == 0xE0)
        length = 3, *code = at[0] & 0x0FU;
    else if (at[0] >= 0xF0 && at[0] <= 0xF4)
        length = 4, *code = at[0] & 0x07U;
    else
        return 0;
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3FU);
    }
    const bool is_surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code < smallest[length] || *code > 0x10FFFF || is_surrogate ? 0 : length;
}

/* What libyaml would refuse without a place, or count as a line where an editor does not. */
static const char *character_complaint(uint32_t code, bool is_first, bool is_before_newline)
{
    if (code == '\0')
        return "a NUL byte in the text";
    if (code == '\r')
        return is_before_newline ? NULL : "a carriage return without a line feed";
    if (code == 0x85 || code == 0x2028 || code == 0x2029)
        return "a line break that is not a line feed";
    if (code == 0xFEFF)
        return is_first ? NULL : "a byte order mark in the middle of the text";
    if ((code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0) ||
        code == 0xFFFE || code == 0xFFFF)
        return "a control character in the text";
    return NULL;
}

bool text_check(const struct source *source, size_t max_bytes, struct diag *diag)
{
    struct place place = {source, 1, 1, 1};
    if (source->length > max_bytes) {
        diag_add(diag, DIAG_ERROR, place, NULL, "the text has %zu bytes: at most %zu are read",
                 source->length, max_bytes);
        return false;
    }
    for (size_t i = 0; i < source->length;) {
        uint32_t code = 0;
        const size_t left = source->length - i;
        const size_t bytes = utf8_next((const unsigned char *)source->text + i, left, &code);
        const bool is_before_newline = left > 1 && source->text[i + 1] == '\n';
        const char *complaint = bytes == 0 ? "bytes that are not UTF-8"
                                           : character_complaint(code, i == 0, is_before_newline);
        if (complaint != NULL) {
            diag_add(diag, DIAG_ERROR, place, NULL, "%s", complaint);
            return false;
        }
        if (code == '\n') {
            place.line++;
            place.column = 1;
        } else if (code != 0xFEFF) {
            place.column++;
        }
        i += bytes;
    }
    return true;
}

/* The character at `at`, moved past; a stray byte (there should be none) is taken as it is. */
static uint32_t take_character(const char **at)
{
    uint32_t code = 0;
    const size_t bytes = utf8_next((const unsigned char *)*at, strnlen(*at, 4), &code);
    *at += bytes > 0 ? bytes : 1;
    return code;
}

/* Characters that came in as an escape (`\u0085`) and would be refused as they are. */
static bool is_escaped(uint32_t code)
{
    return code < 0x20 || is_hidden_character(code) ||
           character_complaint(code, false, false) != NULL;
}

uint32_t text_hidden_character(const char *text)
{
    while (*text != '\0') {
        const uint32_t code = take_character(&text);
        if (code != '\n' && is_hidden_character(code))
            return code;
    }
    return 0;
}

/* Whether the plain form reads back as the same text; inside [] and {} less is plain. */
static bool is_plain(const char *text, bool is_inside)
{
    static const char never_first[] = "?:,[]{}#&*!|>'\"%@` ";
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
        if (strcmp(text, nulls[i]) == 0)
            return false;
    const size_t length = strlen(text);
    if (strchr(never_first, text[0]) != NULL || text[length - 1] == ' ' || text[length - 1] == ':')
        return false;
    if (text[0] == '-' && (text[1] < '0' || text[1] > '9') && text[1] != '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((is_inside && strchr(",[]{}", text[i]) != NULL) ||
            (text[i] == ' ' && text[i + 1] == '#'))
            return false;
        if (text[i] == ':' && strchr(" ?:", text[i + 1]) != NULL)
            return false;
    }
    for (const char *at = text; *at != '\0';)
        if (is_escaped(take_character(&at)))
            return false;
    return true;
}

void strbuf_add_scalar(struct strbuf *buf, const char *text, bool is_inside)
{
    if (is_plain(text, is_inside)) {
        strbuf_add(buf, text);
        return;
    }
    strbuf_add(buf, "\"");
    while (*text != '\0') {
        const char *start = text;
        const uint32_t code = take_character(&text);
        if (code == '"' || code == '\\')
            strbuf_printf(buf, "\\%c", (int)code);
        else if (code == '\n')
            strbuf_add(buf, "\\n");
        else if (is_escaped(code))
            strbuf_printf(buf, "\\u%04X", (unsigned)code);
        else
            strbuf_add_bytes(buf, start, (size_t)(text - start));
    }
    strbuf_add(buf, "\"");
}

static void add_flow(struct strbuf *buf, const struct node *node, bool is_inside)
{
    if (node->kind == NODE_NULL || node->kind == NODE_SCALAR) {
        if (node->kind == NODE_NULL)
            strbuf_add(buf, "null");
        else
            strbuf_add_scalar(buf, node->text, is_inside);
        return;
    }
    strbuf_add(buf, node->kind == NODE_MAP ? "{" : "[");
    for (int32_t i = 0; i < node->entries.count; i++) {
        const struct node_entry *entry = &node->entries.items[i];
        strbuf_add(buf, i > 0 ? ", " : "");
        if (node->kind == NODE_MAP) {
            strbuf_add_scalar(buf, entry->key, true);
            strbuf_add(buf, ": ");
        }
        add_flow(buf, entry->value, true);
    }
    strbuf_add(buf, node->kind == NODE_MAP ? "}" : "]");
}

const char *node_flow_text(struct arena *arena, const struct node *node)
{
    struct strbuf buf = {0};
    add_flow(&buf, node, false);
    const char *text = arena_strdup(arena, buf.text);
    strbuf_release(&buf);
    return text;
}

const char *node_describe(struct arena *arena, const struct node *node)
{
    enum { SHOWN_BYTES = 60 };
    if (node->kind == NODE_MAP)
        return "a map";
    if (node->kind == NODE_LIST)
        return "a list";
    if (node->kind == NODE_NULL)
        return "nothing";
    size_t length = strlen(node->text);
    if (length <= SHOWN_BYTES)
        return arena_printf(arena, "'%s'", node->text);
    /* Cut between characters, not inside one. */
    for (length = SHOWN_BYTES; ((unsigned char)node->text[length] & 0xC0) == 0x80;)
        length--;
    return arena_printf(arena, "'%.*s…'", (int)length, node->text);
}

struct node_entry *node_entry_find(const struct node *map, const char *key)
{
    if (map == NULL || map->kind != NODE_MAP)
        return NULL;
    for (int32_t i = 0; i < map->entries.count; i++)
        if (strcmp(map->entries.items[i].key, key) == 0)
            return &map->entries.items[i];
    return NULL;
}

struct node *node_get(const struct node *map, const char *key)
{
    const struct node_entry *entry = node_entry_find(map, key);
    return entry != NULL ? entry->value : NULL;
}
