/* model/module_name.c: names of modules as users write them. */
#include "model/module_name.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static size_t word_length(const char *text)
{
    const char *dot = strchr(text, '.');
    return dot != NULL ? (size_t)(dot - text) : strlen(text);
}

/* Of at most nine digits; −1: no number. */
static int64_t number_of(const char *text, size_t length)
{
    int64_t number = 0;
    if (length == 0 || length > 9)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        number = 10 * number + (text[i] - '0');
    }
    return number;
}

static bool is_in_range(const char *word, size_t length, const char *range, size_t range_length)
{
    const char *dash = memchr(range, '-', range_length);
    if (dash == NULL)
        return false;
    const size_t before = (size_t)(dash - range);
    const int64_t first = number_of(range, before);
    const int64_t last = number_of(dash + 1, range_length - before - 1);
    const int64_t number = number_of(word, length);
    return first >= 0 && last >= 0 && number >= first && number <= last;
}

bool module_name_matches(const char *name, const char *pattern)
{
    for (;;) {
        const size_t length = word_length(name), wanted = word_length(pattern);
        const bool is_any = wanted == 1 && pattern[0] == '*';
        const bool is_same = length == wanted && strncmp(name, pattern, length) == 0;
        if (!is_any && !is_same && !is_in_range(name, length, pattern, wanted))
            return false;
        name += length;
        pattern += wanted;
        if (*name == '\0' || *pattern == '\0')
            return *name == *pattern;
        name++;
        pattern++;
    }
}
