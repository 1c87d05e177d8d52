/* tests/unit/base/test_shown_text.c: what must not reach a terminal, and what must. */
#include "base/shown_text.h"

#include <string.h>

#include "suites.h"

static void test_shown(void)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"configs/a b.yaml", "configs/a b.yaml"},
        {"a\tb", "a\tb"},
        {"lämna → 模型 😀", "lämna → 模型 😀"},
        {"\302\240no-break, \342\200\223 dash", "\302\240no-break, \342\200\223 dash"},
        {"a\033[2Jb\n", "a?[2Jb?"},
        {"\001\037\177 ", "??? "},
        {"x\302\200\302\233y\302\237", "x??y?"},
        {"exe\342\200\256lmay.\342\200\254", "exe?lmay.?"},
        {"\342\200\252\342\200\253\342\200\254\342\200\255\342\200\256", "?????"},
        {"\342\201\246\342\201\247\342\201\250\342\201\251", "????"},
        {"\342\200\251\342\200\257\342\201\245\342\201\252",
         "\342\200\251\342\200\257\342\201\245\342\201\252"},
        /* Cut in the middle: as it is. */
        {"\342\200", "\342\200"},
        {"\302", "\302"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_context("row %d", (int)i);
        CHECK_TEXT(text_shown(&arena, rows[i].text), rows[i].shown);
    }
    check_context(NULL);
    CHECK_TRUE(text_shown(&arena, rows[1].text) == rows[1].text);
    arena_release(&arena);
}

/* Each code point, in UTF-8, by both functions. */
static void test_code_points(void)
{
    int hidden = 0, disagree = 0;
    for (uint32_t code = 1; code < 0x3000; code++) {
        char text[4] = "";
        if (code < 0x80) {
            text[0] = (char)code;
        } else if (code < 0x800) {
            text[0] = (char)(0xC0 | code >> 6);
            text[1] = (char)(0x80 | (code & 0x3F));
        } else {
            text[0] = (char)(0xE0 | code >> 12);
            text[1] = (char)(0x80 | (code >> 6 & 0x3F));
            text[2] = (char)(0x80 | (code & 0x3F));
        }
        const bool is_hidden = is_hidden_character(code);
        hidden += is_hidden ? 1 : 0;
        disagree += (hidden_length(text, strlen(text)) == strlen(text)) == is_hidden ? 0 : 1;
    }
    /* 30 of C0 without NUL and tab, DEL, 32 of C1, 5 + 4 of direction. */
    CHECK_INT(hidden, 30 + 1 + 32 + 5 + 4);
    CHECK_INT(disagree, 0);
}

const struct check_case shown_text_cases[] = {
    {"shown", test_shown}, {"code points", test_code_points}, {0}};
