/*
 * config/schema.c: the reference of a field table, as `fsdpsim schema` prints it:
 *
 *   nics: network cards of one host
 *     count      an integer from 1 to 64       required   NICs a host
 *     bandwidth  a bandwidth                   required   per direction
 *                  units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes
 */
#include <string.h>

#include "config/config_private.h"

/* Tables may nest themselves; printing stops here. */
enum { SCHEMA_MAX_DEPTH = 8, ACCEPTED_WIDTH_MAX = 44 };

struct widths {
    int key, accepted, presence;
};

static const char *presence(struct arena *arena, const struct field *field)
{
    if (field->default_text != NULL)
        return arena_printf(arena, "default %s", field->default_text);
    return field->is_required ? "required" : "optional";
}

static int longer(int width, const char *text, int max)
{
    const int length = (int)strlen(text);
    return length > width && length <= max ? length : width;
}

static void write_field(struct arena *arena, const struct field *field, struct widths widths,
                        int indent, FILE *file)
{
    const char *help = field->help != NULL ? field->help : "";
    const char *present = presence(arena, field);
    const int pad = help[0] != '\0' ? widths.presence : 0;
    fprintf(file, "%*s%-*s  %-*s  %-*s%s%s\n", indent, "", widths.key, field->key, widths.accepted,
            field_accepted(arena, field), pad, present, help[0] != '\0' ? "  " : "", help);
    const int deeper = indent + widths.key + 4;
    if (field->kind == FIELD_QUANTITY)
        fprintf(file, "%*sunits: %s\n", deeper, "", units_accepted(field->dimension));
    for (const struct choice *one = field->choices; one != NULL && one->word != NULL; one++)
        if (one->help != NULL)
            fprintf(file, "%*s%s: %s\n", deeper, "", one->word, one->help);
}

static void write_table(struct arena *arena, const struct field_table *table, int depth, FILE *file)
{
    struct widths widths = {0};
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++) {
        widths.key = longer(widths.key, field->key, 40);
        widths.accepted = longer(widths.accepted, field_accepted(arena, field), ACCEPTED_WIDTH_MAX);
        widths.presence = longer(widths.presence, presence(arena, field), 20);
    }
    for (const struct field *field = table->fields; field->kind != FIELD_END; field++) {
        write_field(arena, field, widths, 2 + 2 * depth, file);
        if (field->table != NULL && depth < SCHEMA_MAX_DEPTH)
            write_table(arena, field->table, depth + 1, file);
    }
}

void schema_write(const struct field_table *table, FILE *file)
{
    struct arena arena = {0};
    fprintf(file, "%s%s%s\n", table->name, table->help != NULL ? ": " : "",
            table->help != NULL ? table->help : "");
    write_table(&arena, table, 0, file);
    if (table->warns_unknown)
        fprintf(file, "  (other keys are ignored with a warning)\n");
    arena_release(&arena);
}
