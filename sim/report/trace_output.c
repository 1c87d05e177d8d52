/* report/trace_output.c: see trace_output.h. */
#include "report/trace_output.h"

#include <string.h>
#include <zlib.h>

enum {
    BUFFER_BYTES = 1 << 16,
    GZIP_WINDOW = 15 + 16, /* the largest window; 16: with the header of gzip */
    GZIP_MEMORY = 8,
    GZIP_LEVEL = 3, /* of a trace as small as 6 within a fifth, in a third of the time */
};

struct trace_output {
    FILE *file;
    bool is_compressed, has_failed;
    z_stream stream;
    size_t used;
    char buffer[BUFFER_BYTES];
    unsigned char packed[BUFFER_BYTES];
};

struct trace_output *trace_output_new(struct arena *arena, FILE *file, bool is_compressed)
{
    struct trace_output *out = ARENA_NEW(arena, struct trace_output);
    out->file = file;
    out->is_compressed = is_compressed;
    if (is_compressed && deflateInit2(&out->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW,
                                      GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
        out_of_memory(sizeof(*out));
    return out;
}

static void write_bytes(struct trace_output *out, const void *bytes, size_t count)
{
    if (!out->has_failed && fwrite(bytes, 1, count, out->file) != count)
        out->has_failed = true;
}

static void write_packed(struct trace_output *out, int flush)
{
    z_stream *stream = &out->stream;
    stream->next_in = (unsigned char *)out->buffer;
    stream->avail_in = (uInt)out->used;
    do {
        stream->next_out = out->packed;
        stream->avail_out = BUFFER_BYTES;
        (void)deflate(stream, flush);
        write_bytes(out, out->packed, BUFFER_BYTES - stream->avail_out);
    } while (stream->avail_out == 0);
}

static void flush_buffer(struct trace_output *out)
{
    if (out->is_compressed)
        write_packed(out, Z_NO_FLUSH);
    else
        write_bytes(out, out->buffer, out->used);
    out->used = 0;
}

bool trace_output_close(struct trace_output *out)
{
    if (out->is_compressed) {
        write_packed(out, Z_FINISH);
        (void)deflateEnd(&out->stream);
    } else {
        flush_buffer(out);
    }
    return !out->has_failed && fflush(out->file) == 0;
}

static void put_bytes(struct trace_output *out, const char *bytes, size_t count)
{
    while (count > 0) {
        if (out->used == BUFFER_BYTES)
            flush_buffer(out);
        const size_t room = BUFFER_BYTES - out->used;
        const size_t now = count < room ? count : room;
        memcpy(out->buffer + out->used, bytes, now);
        out->used += now;
        bytes += now;
        count -= now;
    }
}

void put_raw(struct trace_output *out, const char *text)
{
    put_bytes(out, text, strlen(text));
}

void put_escaped(struct trace_output *out, const char *text)
{
    const char *plain = text;
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        put_bytes(out, plain, (size_t)(text - plain));
        char escaped[8];
        if (c < ' ')
            snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        else
            snprintf(escaped, sizeof(escaped), "\\%c", c);
        put_raw(out, escaped);
        plain = text + 1;
    }
    put_bytes(out, plain, (size_t)(text - plain));
}

/* The digits of `value`, at least `digits` of them, ending before `end`; returns the first. */
static char *write_digits(char *end, uint64_t value, int digits)
{
    for (; value > 0 || digits > 0; digits--) {
        *--end = (char)('0' + value % 10);
        value /= 10;
    }
    return end;
}

void put_int(struct trace_output *out, int64_t value)
{
    char text[24];
    char *end = text + sizeof(text);
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char *begin = write_digits(end, magnitude, 1);
    if (value < 0)
        *--begin = '-';
    put_bytes(out, begin, (size_t)(end - begin));
}

void put_double(struct trace_output *out, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.15g", value);
    put_raw(out, text);
}

void put_us(struct trace_output *out, int64_t ns)
{
    char text[8];
    put_int(out, ns / 1000);
    char *begin = write_digits(text + sizeof(text), (uint64_t)(ns % 1000), 3);
    *--begin = '.';
    put_bytes(out, begin, (size_t)(text + sizeof(text) - begin));
}
