/*
 * cluster/import_xml.h: XML of others → a tree of elements that remember where they were written.
 *
 * Elements and attributes only: text between tags, comments and processing instructions are
 * skipped. What can make a small file large or reach outside of it is refused, each with its place:
 * a document type (so no entities, internal or external), texts over 16 MiB, more than 32 levels,
 * 65536 elements or 64 attributes an element, values over 1024 bytes, bytes that are not UTF-8.
 * Reading stops at the first mistake: after it, what XML means is not defined.
 *
 *   <cpu numaid="0">            element 1 of parent 0; "0" at FILE:2:16
 */
#ifndef FSDPSIM_CLUSTER_IMPORT_XML_H
#define FSDPSIM_CLUSTER_IMPORT_XML_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/status.h"

enum {
    XML_MAX_BYTES = 16 << 20,
    XML_MAX_DEPTH = 32,
    XML_MAX_ELEMENTS = 65536,
    XML_MAX_ATTRIBUTES = 64,
    XML_MAX_VALUE_BYTES = 1024,
    XML_NONE = -1, /* no such element */
};

struct xml_attribute {
    const char *name, *value;
    struct place place; /* of the value, without its quotes */
};

struct xml_element {
    const char *name;
    struct place place;                            /* of '<' and the name */
    int32_t parent, first_child, last_child, next; /* elements; XML_NONE */
    const struct xml_attribute *attributes;
    int32_t attribute_count;
};

struct xml_tree { /* in document order: the root is element 0, parents before children */
    struct xml_element *items;
    int32_t count, capacity;
};

/* Parses `source->text`; the source and its text must live as long as the tree. */
MUST_CHECK enum status xml_parse(struct arena *arena, const struct source *source,
                                 struct xml_tree *tree, struct diag *diag);

/* NULL when absent. */
const struct xml_attribute *xml_get(const struct xml_element *element, const char *name);

#endif
