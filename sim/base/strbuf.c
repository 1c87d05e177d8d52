/* base/strbuf.c: see strbuf.h. */
#include "base/strbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Room for `more` characters and the closing NUL. */
static void reserve(struct strbuf *buf, size_t more)
{
    const size_t needed = buf->length + more + 1;
    if (needed <= buf->capacity)
        return;
    size_t capacity = buf->capacity > 0 ? buf->capacity : 64;
    while (capacity < needed)
        capacity *= 2;
    char *text = realloc(buf->text, capacity);
    if (text == NULL)
        out_of_memory(capacity);
    buf->text = text;
    buf->capacity = capacity;
}

void strbuf_release(struct strbuf *buf)
{
    free(buf->text);
    *buf = (struct strbuf){0};
}

void strbuf_add_bytes(struct strbuf *buf, const char *bytes, size_t count)
{
    reserve(buf, count);
    if (count > 0)
        memcpy(buf->text + buf->length, bytes, count);
    buf->length += count;
    buf->text[buf->length] = '\0';
}

void strbuf_add(struct strbuf *buf, const char *text)
{
    strbuf_add_bytes(buf, text, strlen(text));
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
    va_list arguments;
    reserve(buf, 64);
    const size_t room = buf->capacity - buf->length;
    va_start(arguments, format);
    const int length = vsnprintf(buf->text + buf->length, room, format, arguments);
    va_end(arguments);
    BUG_IF(length < 0);
    if ((size_t)length >= room) {
        reserve(buf, (size_t)length);
        va_start(arguments, format);
        vsnprintf(buf->text + buf->length, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    buf->length += (size_t)length;
}

/* Appends what `file` still holds; false: a read error (errno). Stops after `max_bytes` + 1. */
static bool read_all(struct strbuf *buf, FILE *file, size_t max_bytes)
{
    char chunk[16384];
    while (buf->length <= max_bytes) {
        const size_t wanted = max_bytes - buf->length < sizeof(chunk) - 1
                                  ? max_bytes - buf->length + 1
                                  : sizeof(chunk);
        const size_t got = fread(chunk, 1, wanted, file);
        strbuf_add_bytes(buf, chunk, got);
        if (got < wanted)
            return ferror(file) == 0;
    }
    return true;
}

enum status strbuf_read_file(struct strbuf *buf, const char *path, size_t max_bytes,
                             struct diag *diag)
{
    enum status status = STATUS_WORLD;
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "<stdin>" : path;
    *buf = (struct strbuf){0};
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (file == NULL) {
        diag_world(diag, "cannot open '%s': %s", path, strerror(errno));
        goto out;
    }
    struct stat about;
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        diag_world(diag, "cannot read '%s': it is a folder", name);
        goto out;
    }
    errno = 0;
    if (!read_all(buf, file, max_bytes)) {
        diag_world(diag, "cannot read '%s': %s", name, strerror(errno));
        goto out;
    }
    if (buf->length > max_bytes) {
        diag_add(diag, DIAG_ERROR, NO_PLACE, NULL, "'%s' is larger than %zu bytes", name,
                 max_bytes);
        status = STATUS_INPUT;
        goto out;
    }
    status = STATUS_OK;
out:
    if (file != NULL && !is_stdin)
        fclose(file);
    if (status != STATUS_OK)
        strbuf_release(buf);
    return status;
}

enum status source_load(struct arena *arena, const char *path, size_t max_bytes,
                        struct source **source, struct diag *diag)
{
    struct strbuf buf;
    const enum status status = strbuf_read_file(&buf, path, max_bytes, diag);
    if (status == STATUS_OK) {
        *source = ARENA_NEW(arena, struct source);
        (*source)->name = strcmp(path, "-") == 0 ? "<stdin>" : arena_strdup(arena, path);
        (*source)->text = arena_strndup(arena, buf.text != NULL ? buf.text : "", buf.length);
        (*source)->length = buf.length;
    }
    strbuf_release(&buf);
    return status;
}

bool text_equal(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}
