/*
 * report/json_writer.h: a streaming JSON writer: commas, indentation and escapes are its business.
 * Doubles print with the fewest digits (at most 17) that read back equal; NaN prints null; infinity
 * is a BUG. Texts must be UTF-8; control characters are escaped.
 */
#ifndef FSDPSIM_REPORT_JSON_WRITER_H
#define FSDPSIM_REPORT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *file;
    int32_t depth;
    bool has_item[32];
    bool is_after_key;
};

void json_init(struct json_writer *json, FILE *file);
void json_begin_object(struct json_writer *json);
void json_end_object(struct json_writer *json);
void json_begin_array(struct json_writer *json);
void json_end_array(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_double(struct json_writer *json, double value);
void json_int(struct json_writer *json, int64_t value);
void json_bool(struct json_writer *json, bool value);
void json_text(struct json_writer *json, const char *text); /* NULL: null */
void json_finish(struct json_writer *json); /* final newline; BUG when something is open */

#endif
