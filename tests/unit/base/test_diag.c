/* tests/unit/base/test_diag.c: messages as a user sees them. */
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

#include "suites.h"

struct sheet {
    struct arena arena;
    struct diag diag;
    struct source source;
    char *text;
};

static void sheet_init(struct sheet *sheet, const char *name, const char *text)
{
    *sheet = (struct sheet){.source = {name, text, text != NULL ? strlen(text) : 0}};
    diag_init(&sheet->diag, &sheet->arena);
}

static struct place at(const struct sheet *sheet, int32_t line, int32_t column, int32_t length)
{
    return (struct place){&sheet->source, line, column, length};
}

static const char *written(struct sheet *sheet, bool is_coloured)
{
    size_t size = 0;
    free(sheet->text);
    sheet->text = NULL;
    FILE *file = open_memstream(&sheet->text, &size);
    if (file == NULL)
        return NULL;
    diag_write(&sheet->diag, file, is_coloured);
    fclose(file);
    return sheet->text;
}

static void sheet_release(struct sheet *sheet)
{
    free(sheet->text);
    arena_release(&sheet->arena);
}

static void test_style_guide_example(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "topologies/h100.yaml", "a: 1\nb: 2\nc: 3\nd:\n  bandwidth: 400 Gb\n");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 5, 14, 6),
             "accepted units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes",
             "unit '%s' does not fit '%s'", "Gb", "bandwidth");
    CHECK_INT(sheet.diag.error_count, 1);
    CHECK_TEXT(written(&sheet, false),
               "topologies/h100.yaml:5:14: error: unit 'Gb' does not fit 'bandwidth'\n"
               "    5 |   bandwidth: 400 Gb\n"
               "      |              ^^^^^^\n"
               "      = accepted units: Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes\n");
    sheet_release(&sheet);
}

static void test_without_a_place(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "-", NULL);
    diag_world(&sheet.diag, "cannot open '%s': %s", "x.yaml", "Permission denied");
    diag_add(&sheet.diag, DIAG_WARNING, NO_PLACE, "set 'nodes'", "no nodes given");
    CHECK_TEXT(written(&sheet, false), "error: cannot open 'x.yaml': Permission denied\n"
                                       "warning: no nodes given\n"
                                       "      = set 'nodes'\n");
    sheet_release(&sheet);
}

static void test_command_line(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "<command line>", "nodes=many");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 1, 7, 4), NULL, "'many' is not a number");
    CHECK_TEXT(written(&sheet, false), "<command line>:1:7: error: 'many' is not a number\n"
                                       "    1 | nodes=many\n"
                                       "      |       ^^^^\n");
    sheet_release(&sheet);
}

/* Columns count characters; tabs stay tabs, so that the caret stands below what it means. */
static void test_utf8_and_tabs(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "u.yaml", "caf\xC3\xA9: \xE2\x82\xAC\xE2\x82\xAC x\n\tk:\tv\r\nlast");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 1, 7, 2), NULL, "euro");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 2, 5, 1), NULL, "tab");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 3, 1, 99), NULL, "end");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 3, 9, 1), NULL, "beyond");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 9, 1, 1), NULL, "no such line");
    CHECK_TEXT(written(&sheet, false), "u.yaml:1:7: error: euro\n"
                                       "    1 | caf\xC3\xA9: \xE2\x82\xAC\xE2\x82\xAC x\n"
                                       "      |       ^^\n"
                                       "u.yaml:2:5: error: tab\n"
                                       "    2 | \tk:\tv\n"
                                       "      | \t  \t^\n"
                                       "u.yaml:3:1: error: end\n"
                                       "    3 | last\n"
                                       "      | ^^^^\n"
                                       "u.yaml:3:9: error: beyond\n"
                                       "    3 | last\n"
                                       "      |     ^\n"
                                       "u.yaml:9:1: error: no such line\n");
    sheet_release(&sheet);
}

static void test_wide_line_numbers(void)
{
    struct sheet sheet;
    static char text[123457];
    memset(text, '\n', 123455);
    text[123455] = 'k';
    text[123456] = '\0';
    sheet_init(&sheet, "n.yaml", text);
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 123456, 1, 1), "hint", "far down");
    CHECK_TEXT(written(&sheet, false), "n.yaml:123456:1: error: far down\n"
                                       "123456 | k\n"
                                       "       | ^\n"
                                       "       = hint\n");
    sheet_release(&sheet);
}

/* A file of one line is shown in part. */
static void test_long_line(void)
{
    struct sheet sheet;
    char text[1001];
    for (int i = 0; i < 1000; i++)
        text[i] = (char)('a' + i % 26);
    text[1000] = '\0';
    sheet_init(&sheet, "one.json", text);
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 1, 521, 3), NULL, "here");
    /* Column 521 is 520 % 26 = 0: an 'a'; 60 characters before it begin at 'i' + 10. */
    const char *shown = written(&sheet, false);
    CHECK_CONTAINS(shown, "    1 | ...stuvwxyzabc");
    CHECK_CONTAINS(shown, "...\n      |    ");
    const char *line = strstr(shown, "1 | ");
    const char *carets = strchr(shown, '^');
    if (CHECK_TRUE(line != NULL && carets != NULL)) {
        const char *second = strchr(line, '\n') + 1;
        CHECK_TEXT(carets, "^^^\n");
        CHECK_INT(line[carets - second - 4], 'a');
    }
    sheet_release(&sheet);
}

static void test_hostile_characters(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "e\033.yaml", "k: \033[2Jv\n");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 1, 4, 1), "\a", "value '%s'", "\033[2Jv");
    CHECK_TEXT(written(&sheet, false), "e?.yaml:1:4: error: value '?[2Jv'\n"
                                       "    1 | k: ?[2Jv\n"
                                       "      |    ^\n"
                                       "      = ?\n");
    sheet_release(&sheet);
}

static void test_twenty_errors(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "m.yaml", NULL);
    for (int i = 1; i <= 23; i++) {
        diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, i, 1, 1), NULL, "mistake");
        diag_add(&sheet.diag, DIAG_NOTE, at(&sheet, i, 2, 1), NULL, "remark");
    }
    const char *shown = written(&sheet, false);
    CHECK_CONTAINS(shown, "m.yaml:20:1: error: mistake\n"
                          "m.yaml:20:2: note: remark\n"
                          "and 3 more errors\n");
    CHECK_TRUE(strstr(shown, ":21:") == NULL);
    sheet_release(&sheet);

    sheet_init(&sheet, "m.yaml", NULL);
    for (int i = 1; i <= 21; i++)
        diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, i, 1, 1), NULL, "mistake");
    CHECK_CONTAINS(written(&sheet, false), "and 1 more error\n");
    sheet_release(&sheet);
}

/* The same file loaded twice: another struct source, the same name. */
static void test_said_once(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "d.yaml", NULL);
    const struct source again = {"d.yaml", NULL, 0};
    for (int i = 0; i < 2; i++) {
        const struct place place = {i == 0 ? &sheet.source : &again, 3, 5, 1};
        diag_add(&sheet.diag, DIAG_WARNING, place, NULL, "odd");
        diag_add(&sheet.diag, DIAG_NOTE, place, NULL, "because");
        diag_add(&sheet.diag, DIAG_NOTE, place, NULL, "because");
    }
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 3, 5, 1), NULL, "odd");
    diag_add(&sheet.diag, DIAG_NOTE, at(&sheet, 3, 5, 1), NULL, "because");
    CHECK_TEXT(written(&sheet, false), "d.yaml:3:5: warning: odd\n"
                                       "d.yaml:3:5: note: because\n"
                                       "d.yaml:3:5: error: odd\n"
                                       "d.yaml:3:5: note: because\n");
    sheet_release(&sheet);
}

static void test_colour(void)
{
    struct sheet sheet;
    sheet_init(&sheet, "c.yaml", "key\n");
    CHECK_TEXT(written(&sheet, true), "");
    diag_add(&sheet.diag, DIAG_ERROR, at(&sheet, 1, 1, 3), NULL, "red");
    CHECK_TEXT(written(&sheet, true), "c.yaml:1:1: \033[1;31merror:\033[0m red\n"
                                      "    1 | key\n"
                                      "      | \033[1;32m^^^\033[0m\n");
    sheet_release(&sheet);
}

const struct check_case diag_cases[] = {{"the style guide's example", test_style_guide_example},
                                        {"without a place", test_without_a_place},
                                        {"command line", test_command_line},
                                        {"UTF-8 and tabs", test_utf8_and_tabs},
                                        {"wide line numbers", test_wide_line_numbers},
                                        {"long line", test_long_line},
                                        {"hostile characters", test_hostile_characters},
                                        {"twenty errors", test_twenty_errors},
                                        {"said once", test_said_once},
                                        {"colour", test_colour},
                                        {0}};
