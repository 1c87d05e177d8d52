/* tests/unit/base/test_strbuf.c */
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suites.h"

static void test_adding(void)
{
    struct strbuf buf = {0};
    strbuf_add(&buf, "");
    CHECK_TEXT(buf.text, "");
    strbuf_add(&buf, "step");
    strbuf_add_bytes(&buf, " time and more", 5);
    strbuf_printf(&buf, " = %.3f s", 2.385);
    CHECK_TEXT(buf.text, "step time = 2.385 s");
    CHECK_INT(buf.length, 19);
    for (int i = 0; i < 300; i++)
        strbuf_printf(&buf, "%0200d", i);
    CHECK_INT(buf.length, 19 + 300 * 200);
    CHECK_INT(strlen(buf.text), buf.length);
    CHECK_TEXT(buf.text + buf.length - 4, "0299");
    strbuf_release(&buf);
    CHECK_TRUE(buf.text == NULL);
    strbuf_release(&buf);
}

static void test_text_equal(void)
{
    CHECK_TRUE(text_equal("a", "a"));
    CHECK_TRUE(!text_equal("a", "b"));
    CHECK_TRUE(!text_equal("a", NULL));
    CHECK_TRUE(!text_equal(NULL, "a"));
    CHECK_TRUE(text_equal(NULL, NULL));
}

struct reading {
    struct arena arena;
    struct diag diag;
    struct strbuf buf;
    enum status status;
};

static void reading_begin(struct reading *reading, const char *path, size_t max_bytes)
{
    *reading = (struct reading){0};
    diag_init(&reading->diag, &reading->arena);
    reading->status = strbuf_read_file(&reading->buf, path, max_bytes, &reading->diag);
}

static void reading_end(struct reading *reading)
{
    strbuf_release(&reading->buf);
    arena_release(&reading->arena);
}

/* A file of 40,000 bytes (more than one read), and what its bounds allow. */
static void test_reading_a_file(void)
{
    char path[] = "/tmp/fsdpsim-test-XXXXXX";
    char letters[1000];
    struct reading reading;
    const int descriptor = mkstemp(path);
    if (!CHECK_TRUE(descriptor >= 0))
        return;
    memset(letters, 'x', sizeof(letters));
    for (int i = 0; i < 40; i++)
        CHECK_INT(write(descriptor, letters, sizeof(letters)), sizeof(letters));
    close(descriptor);

    static const struct {
        size_t max_bytes;
        enum status expected;
    } rows[] = {{40001, STATUS_OK},
                {40000, STATUS_OK},
                {39999, STATUS_INPUT},
                {16384, STATUS_INPUT},
                {0, STATUS_INPUT}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        reading_begin(&reading, path, rows[r].max_bytes);
        check_context("at most %zu bytes", rows[r].max_bytes);
        CHECK_INT(reading.status, rows[r].expected);
        CHECK_INT(reading.buf.length, rows[r].expected == STATUS_OK ? 40000 : 0);
        CHECK_INT(reading.diag.error_count, rows[r].expected == STATUS_OK ? 0 : 1);
        reading_end(&reading);
    }
    check_context(NULL);
    unlink(path);
}

static void test_what_cannot_be_read(void)
{
    struct reading reading;
    reading_begin(&reading, "/nonexistent/config.yaml", 1000);
    CHECK_INT(reading.status, STATUS_WORLD);
    CHECK_INT(reading.diag.count, 1);
    if (reading.diag.count == 1)
        CHECK_TEXT(reading.diag.items[0].text,
                   "cannot open '/nonexistent/config.yaml': No such file or directory");
    reading_end(&reading);

    reading_begin(&reading, "/tmp", 1000);
    CHECK_INT(reading.status, STATUS_WORLD);
    CHECK_INT(reading.diag.count, 1);
    if (reading.diag.count == 1)
        CHECK_TEXT(reading.diag.items[0].text, "cannot read '/tmp': it is a folder");
    reading_end(&reading);

    /* Endless: read no further than the bound. */
    reading_begin(&reading, "/dev/zero", 100000);
    CHECK_INT(reading.status, STATUS_INPUT);
    reading_end(&reading);
}

const struct check_case strbuf_cases[] = {{"adding", test_adding},
                                          {"text_equal", test_text_equal},
                                          {"reading a file", test_reading_a_file},
                                          {"what cannot be read", test_what_cannot_be_read},
                                          {0}};
