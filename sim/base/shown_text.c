/* base/shown_text.c: see shown_text.h. */
#include "base/shown_text.h"

#include <string.h>

bool is_hidden_character(uint32_t code)
{
    const bool is_control = (code < 0x20 && code != '\t') || (code >= 0x7F && code < 0xA0);
    const bool is_direction =
        (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return is_control || is_direction;
}

size_t hidden_length(const char *at, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)at;
    if (left >= 1 && bytes[0] < 0x80)
        return is_hidden_character(bytes[0]) ? 1 : 0;
    /* All others of them have two bytes that begin with C2, or three that begin with E2. */
    if (left >= 2 && bytes[0] == 0xC2)
        return is_hidden_character(bytes[1]) ? 2 : 0;
    if (left >= 3 && bytes[0] == 0xE2)
        return is_hidden_character(0x2000U | (bytes[1] & 0x3FU) << 6 | (bytes[2] & 0x3FU)) ? 3 : 0;
    return 0;
}

const char *text_shown(struct arena *arena, const char *text)
{
    size_t left = strlen(text);
    size_t first = 0;
    while (first < left && hidden_length(text + first, left - first) == 0)
        first++;
    if (first == left)
        return text;
    char *copy = arena_strdup(arena, text);
    char *to = copy;
    while (left > 0) {
        const size_t hidden = hidden_length(text, left);
        const size_t taken = hidden > 0 ? hidden : 1;
        *to++ = *text;
        if (hidden > 0)
            to[-1] = '?';
        text += taken;
        left -= taken;
    }
    *to = '\0';
    return copy;
}
