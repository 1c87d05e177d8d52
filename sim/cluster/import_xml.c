/* cluster/import_xml.c: see import_xml.h. */
#include "cluster/import_xml.h"

#include <expat.h>
#include <string.h>

#include "base/strbuf.h"

struct reader {
    struct arena *arena;
    const struct source *source;
    struct diag *diag;
    XML_Parser parser;
    struct xml_tree *tree;
    int32_t open; /* the innermost open element */
    int32_t depth;
    enum status status;
};

static struct place here(const struct reader *reader, int32_t length)
{
    return (struct place){.source = reader->source,
                          .line = (int32_t)XML_GetCurrentLineNumber(reader->parser),
                          .column = (int32_t)XML_GetCurrentColumnNumber(reader->parser) + 1,
                          .length = length > 0 ? length : 1};
}

static void refuse(struct reader *reader, struct place place, const char *hint, const char *text)
{
    if (reader->status == STATUS_OK)
        diag_add(reader->diag, DIAG_ERROR, place, hint, "%s", text);
    reader->status = STATUS_INPUT;
    (void)XML_StopParser(reader->parser, XML_FALSE);
}

/* ---- places of attributes ----------------------------------------------------------------- */

/* Walks over the text of a tag, which expat has found to be well formed. */
struct walker {
    const char *at, *end;
    int32_t line, column;
};

/* Over one character. */
static void step(struct walker *walker)
{
    if (walker->at >= walker->end)
        return;
    const bool is_line_end = *walker->at == '\n';
    do {
        walker->at++;
    } while (walker->at < walker->end && ((unsigned char)*walker->at & 0xC0) == 0x80);
    walker->line += is_line_end;
    walker->column = is_line_end ? 1 : walker->column + 1;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* Moves to the next value; its place, without the quotes. */
static struct place next_value(struct walker *walker, const struct source *source)
{
    while (walker->at < walker->end && *walker->at != '"' && *walker->at != '\'')
        step(walker);
    char quote = '"';
    if (walker->at < walker->end)
        quote = *walker->at;
    step(walker);
    struct place place = {source, walker->line, walker->column, 0};
    for (; walker->at < walker->end && *walker->at != quote; step(walker))
        place.length += walker->line == place.line;
    step(walker);
    if (place.length < 1)
        place.length = 1;
    return place;
}

static struct walker walk_tag(const struct reader *reader)
{
    const XML_Index offset = XML_GetCurrentByteIndex(reader->parser);
    const struct place place = here(reader, 1);
    struct walker walker = {.at = reader->source->text + (offset > 0 ? offset : 0),
                            .end = reader->source->text + reader->source->length,
                            .line = place.line,
                            .column = place.column};
    while (walker.at < walker.end && !is_blank(*walker.at))
        step(&walker); /* '<' and the name */
    return walker;
}

/* Where the declaration starts that expat is in the middle of. */
static struct place declaration_place(const struct reader *reader)
{
    const XML_Index offset = XML_GetCurrentByteIndex(reader->parser);
    const char *text = reader->source->text;
    const char *start = text + (offset > 0 ? offset : 0);
    while (start > text && strncmp(start, "<!", 2) != 0)
        start--;
    struct walker walker = {text, start, 1, 1};
    while (walker.at < walker.end)
        step(&walker);
    return (struct place){reader->source, walker.line, walker.column, 9};
}

/* ---- handlers ----------------------------------------------------------------------------- */

static bool is_within_limits(struct reader *reader, struct place place, const char **attributes)
{
    size_t count = 0;
    for (; attributes[2 * count] != NULL; count++) {
        if (strlen(attributes[2 * count + 1]) > XML_MAX_VALUE_BYTES) {
            refuse(reader, place, "1024 bytes at most", "a value is too long");
            return false;
        }
    }
    if (count > XML_MAX_ATTRIBUTES)
        refuse(reader, place, "64 at most", "too many attributes");
    else if (reader->depth >= XML_MAX_DEPTH)
        refuse(reader, place, "32 levels at most", "elements are nested too deep");
    else if (reader->tree->count >= XML_MAX_ELEMENTS)
        refuse(reader, place, "65536 at most", "too many elements");
    else
        return true;
    return false;
}

static void read_attributes(struct reader *reader, struct xml_element *element,
                            const char **attributes)
{
    while (attributes[(ptrdiff_t)2 * element->attribute_count] != NULL)
        element->attribute_count++;
    if (element->attribute_count == 0)
        return; /* its name may end without a blank: the walk below would not */
    struct xml_attribute *items =
        ARENA_ARRAY(reader->arena, struct xml_attribute, element->attribute_count);
    struct walker walker = walk_tag(reader);
    for (int32_t k = 0; k < element->attribute_count; k++) {
        items[k].name = arena_strdup(reader->arena, attributes[(ptrdiff_t)2 * k]);
        items[k].value = arena_strdup(reader->arena, attributes[(ptrdiff_t)2 * k + 1]);
        items[k].place = next_value(&walker, reader->source);
    }
    element->attributes = items;
}

static void XMLCALL on_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = data;
    const struct place place = here(reader, (int32_t)strnlen(name, 64) + 1);
    if (reader->status != STATUS_OK || !is_within_limits(reader, place, attributes))
        return;
    const int32_t idx = reader->tree->count;
    struct xml_element *element = ARENA_PUSH(reader->arena, reader->tree);
    *element = (struct xml_element){.name = arena_strdup(reader->arena, name),
                                    .place = place,
                                    .parent = reader->open,
                                    .first_child = XML_NONE,
                                    .last_child = XML_NONE,
                                    .next = XML_NONE};
    read_attributes(reader, element, attributes);
    if (reader->open != XML_NONE) {
        struct xml_element *parent = &reader->tree->items[reader->open];
        if (parent->last_child == XML_NONE)
            parent->first_child = idx;
        else
            reader->tree->items[parent->last_child].next = idx;
        parent->last_child = idx;
    }
    reader->open = idx;
    reader->depth++;
}

static void XMLCALL on_end(void *data, const XML_Char *name)
{
    struct reader *reader = data;
    (void)name;
    if (reader->status != STATUS_OK || reader->open == XML_NONE)
        return;
    reader->open = reader->tree->items[reader->open].parent;
    reader->depth--;
}

static void XMLCALL on_doctype(void *data, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int has_internal_subset)
{
    struct reader *reader = data;
    (void)name;
    (void)system;
    (void)public;
    (void)has_internal_subset;
    refuse(reader, declaration_place(reader), "no topology file has one",
           "document types, and so entities, are refused");
}

/* ---- parsing ------------------------------------------------------------------------------ */

static void say_expat_error(struct reader *reader)
{
    const enum XML_Error error = XML_GetErrorCode(reader->parser);
    if (error == XML_ERROR_NO_MEMORY)
        out_of_memory(0);
    diag_add(reader->diag, DIAG_ERROR, here(reader, 1), NULL, "this is not XML: %s",
             XML_ErrorString(error));
    reader->status = STATUS_INPUT;
}

enum status xml_parse(struct arena *arena, const struct source *source, struct xml_tree *tree,
                      struct diag *diag)
{
    struct reader reader = {.arena = arena,
                            .source = source,
                            .diag = diag,
                            .tree = tree,
                            .open = XML_NONE,
                            .status = STATUS_OK};
    *tree = (struct xml_tree){0};
    if (source->length > XML_MAX_BYTES) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, NULL, "'%s' is over 16 MiB", source->name);
        return STATUS_INPUT;
    }
    /* Whatever the document says of its encoding: places and values are those of UTF-8. */
    reader.parser = XML_ParserCreate("UTF-8");
    if (reader.parser == NULL)
        out_of_memory(0);
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(reader.parser, on_doctype);
    const enum XML_Status parsed =
        XML_Parse(reader.parser, source->text, (int)source->length, XML_TRUE);
    if (parsed != XML_STATUS_OK && reader.status == STATUS_OK)
        say_expat_error(&reader);
    XML_ParserFree(reader.parser);
    return reader.status;
}

const struct xml_attribute *xml_get(const struct xml_element *element, const char *name)
{
    for (int32_t k = 0; k < element->attribute_count; k++) {
        if (strcmp(element->attributes[k].name, name) == 0)
            return &element->attributes[k];
    }
    return NULL;
}
