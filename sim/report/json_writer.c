/* report/json_writer.c: see json_writer.h. */
#include "report/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "base/strbuf.h"

enum { INDENT_SPACES = 2, MAX_DEPTH = 32 };

void json_init(struct json_writer *json, FILE *file)
{
    *json = (struct json_writer){.file = file};
}

static void new_line(struct json_writer *json)
{
    fprintf(json->file, "\n%*s", (int)json->depth * INDENT_SPACES, "");
}

/* What stands before a key or a value: nothing after a key, else a comma and a line of its own. */
static void begin_item(struct json_writer *json)
{
    if (json->is_after_key) {
        json->is_after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    if (json->has_item[json->depth - 1])
        fputc(',', json->file);
    json->has_item[json->depth - 1] = true;
    new_line(json);
}

static void begin_container(struct json_writer *json, char opening)
{
    begin_item(json);
    BUG_IF(json->depth >= MAX_DEPTH);
    fputc(opening, json->file);
    json->has_item[json->depth++] = false;
}

static void end_container(struct json_writer *json, char closing)
{
    BUG_IF(json->depth <= 0 || json->is_after_key);
    json->depth--;
    if (json->has_item[json->depth])
        new_line(json);
    fputc(closing, json->file);
}

void json_begin_object(struct json_writer *json)
{
    begin_container(json, '{');
}

void json_end_object(struct json_writer *json)
{
    end_container(json, '}');
}

void json_begin_array(struct json_writer *json)
{
    begin_container(json, '[');
}

void json_end_array(struct json_writer *json)
{
    end_container(json, ']');
}

/* Bytes of the well-formed UTF-8 character at `text`, 0: it is not one. */
static int utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        int length;
    } forms[] = {
        {0x01, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (text[0] < forms[i].first_min || text[0] > forms[i].first_max)
            continue;
        if (forms[i].length == 1)
            return 1;
        if (text[1] < forms[i].second_min || text[1] > forms[i].second_max)
            return 0;
        for (int k = 2; k < forms[i].length; k++) {
            if ((text[k] & 0xc0) != 0x80)
                return 0;
        }
        return forms[i].length;
    }
    return 0;
}

static void write_character(FILE *file, const unsigned char *text, int length)
{
    static const char short_escapes[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                            {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    for (size_t i = 0; i < sizeof(short_escapes) / sizeof(short_escapes[0]); i++) {
        if (text[0] == (unsigned char)short_escapes[i][0]) {
            fprintf(file, "\\%c", short_escapes[i][1]);
            return;
        }
    }
    if (text[0] < 0x20)
        fprintf(file, "\\u%04x", (unsigned)text[0]);
    else
        fwrite(text, 1, (size_t)length, file);
}

static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    const unsigned char *next = (const unsigned char *)text;
    while (*next != '\0') {
        const int length = utf8_length(next);
        if (length == 0) {
            /* A file name may hold any bytes; the JSON must stay valid. */
            fputs("\\ufffd", file);
            next++;
            continue;
        }
        write_character(file, next, length);
        next += length;
    }
    fputc('"', file);
}

void json_key(struct json_writer *json, const char *key)
{
    BUG_IF(json->is_after_key);
    begin_item(json);
    write_text(json->file, key);
    fputs(": ", json->file);
    json->is_after_key = true;
}

void json_double(struct json_writer *json, double value)
{
    begin_item(json);
    if (isnan(value)) {
        fputs("null", json->file);
        return;
    }
    BUG_IF(isinf(value));
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        double back = 0.0;
        snprintf(text, sizeof(text), "%.*g", digits, value);
        /* A program that embeds us may have set a locale with another decimal point. */
        char *point = strchr(text, ',');
        if (point != NULL)
            *point = '.';
        if (text_to_double(text, &back) && back >= value && back <= value)
            break;
    }
    fputs(text, json->file);
}

void json_int(struct json_writer *json, int64_t value)
{
    begin_item(json);
    fprintf(json->file, "%" PRId64, value);
}

void json_bool(struct json_writer *json, bool value)
{
    begin_item(json);
    fputs(value ? "true" : "false", json->file);
}

void json_text(struct json_writer *json, const char *text)
{
    begin_item(json);
    if (text == NULL)
        fputs("null", json->file);
    else
        write_text(json->file, text);
}

void json_finish(struct json_writer *json)
{
    BUG_IF(json->depth != 0 || json->is_after_key);
    fputc('\n', json->file);
}
