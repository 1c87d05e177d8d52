/* foreign/foreign_write.c: lines with their origin → YAML. */
#include <string.h>

#include "base/shown_text.h"
#include "foreign/foreign_private.h"

void foreign_set(struct foreign *foreign, const char *path, const char *value, const char *note)
{
    struct foreign_line *line = NULL;
    for (int32_t i = 0; i < foreign->lines.count; i++)
        if (strcmp(foreign->lines.items[i].path, path) == 0)
            line = &foreign->lines.items[i];
    if (line == NULL)
        line = ARENA_PUSH(foreign->arena, &foreign->lines);
    *line = (struct foreign_line){.path = path, .value = value, .note = note};
}

const char *foreign_read_note(struct foreign *foreign, const struct node_entry *entry)
{
    const struct node *value = entry->value;
    return arena_printf(foreign->arena, "read: %s: %s", text_shown(foreign->arena, entry->key),
                        value->kind == NODE_SCALAR ? text_shown(foreign->arena, value->text)
                                                   : "...");
}

void foreign_assume(struct foreign *foreign, const char *path, const char *value, const char *why)
{
    foreign_set(foreign, path, value, arena_printf(foreign->arena, "assumed: %s", why));
    diag_add(foreign->diag, DIAG_WARNING, NO_PLACE, NULL, "assumed '%s: %s': %s", path, value, why);
}

void foreign_default(struct foreign *foreign, const char *path, const char *value, const char *why)
{
    foreign_set(foreign, path, value, arena_printf(foreign->arena, "assumed: %s", why));
    diag_add(foreign->diag, DIAG_NOTE, NO_PLACE, NULL, "assumed '%s: %s': %s", path, value, why);
}

/* Plain where YAML needs no quotes. */
static void write_value(const char *value, struct strbuf *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
    if (value[0] != '\0' && value[0] != '-' && strspn(value, plain) == strlen(value)) {
        strbuf_add(out, value);
        return;
    }
    strbuf_add(out, "'");
    for (const char *at = value; *at != '\0'; at++)
        strbuf_add_bytes(out, *at == '\'' ? "''" : at, *at == '\'' ? 2 : 1);
    strbuf_add(out, "'");
}

static bool is_below(const char *path, const char *prefix, size_t length)
{
    return strncmp(path, prefix, length) == 0;
}

/* Lines whose path begins with the first `length` bytes of `prefix`, a map deeper at each dot. */
static void write_level(const struct foreign *foreign, const char *prefix, size_t length, int depth,
                        struct strbuf *out)
{
    for (int32_t i = 0; i < foreign->lines.count; i++) {
        const struct foreign_line *line = &foreign->lines.items[i];
        if (!is_below(line->path, prefix, length))
            continue;
        const size_t word = strcspn(line->path + length, ".");
        bool is_written = false;
        for (int32_t k = 0; k < i; k++)
            is_written =
                is_written || is_below(foreign->lines.items[k].path, line->path, length + word + 1);
        if (is_written && line->path[length + word] == '.')
            continue;
        strbuf_printf(out, "%*s%.*s:", 2 * depth, "", (int)word, line->path + length);
        if (line->path[length + word] == '.') {
            strbuf_add(out, "\n");
            write_level(foreign, line->path, length + word + 1, depth + 1, out);
            continue;
        }
        strbuf_add(out, " ");
        write_value(line->value, out);
        if (line->note != NULL)
            strbuf_printf(out, " # %s", line->note);
        strbuf_add(out, "\n");
    }
}

void foreign_write(const struct foreign *foreign, const char *title, struct strbuf *out)
{
    strbuf_printf(
        out, "# A configuration of fsdpsim, from %s. Each line says where it comes from.\n", title);
    if (foreign->options->model == NULL)
        strbuf_add(out, "# model: set it: a name of 'fsdpsim list models', or a path\n");
    if (foreign->options->cluster == NULL)
        strbuf_add(out, "# cluster: set it: a name of 'fsdpsim list clusters', or a path\n");
    write_level(foreign, "", 0, 0, out);
    for (int32_t i = 0; i < foreign->dropped.count; i++)
        strbuf_printf(out, "# %s\n", foreign->dropped.items[i]);
    for (int32_t i = 0; i < foreign->silent.count; i++)
        strbuf_printf(out, "%s %s", i == 0 ? "# changes neither time nor memory:" : ",",
                      foreign->silent.items[i]);
    if (foreign->silent.count > 0)
        strbuf_add(out, "\n");
}
