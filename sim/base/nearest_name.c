/* base/nearest_name.c: "did you mean", see diag.h. */
#include <string.h>

#include "base/diag.h"

enum { WORD_MAX = 64, DISTANCE_MAX = 2 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/*
 * Edits (insert, delete, replace, swap of neighbours; optimal string alignment) that turn `a` into
 * `b`. Both are at most WORD_MAX long.
 */
static int edit_distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][WORD_MAX + 1];
    int *before_last = rows[0], *last = rows[1], *row = rows[2];
    for (int j = 0; j <= b_length; j++)
        last[j] = j;
    for (int i = 1; i <= a_length; i++) {
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            const int replace = last[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            row[j] = smaller(replace, smaller(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], before_last[j - 2] + 1);
        }
        int *free_row = before_last;
        before_last = last;
        last = row;
        row = free_row;
    }
    return last[b_length];
}

const char *nearest_name(const char *word, const char *const *names)
{
    const size_t word_length = strlen(word);
    if (word_length > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    int best = smaller(DISTANCE_MAX, (int)word_length - 1) + 1;
    for (; *names != NULL; names++) {
        const size_t length = strlen(*names);
        if (length > WORD_MAX)
            continue;
        const int distance = edit_distance(word, (int)word_length, *names, (int)length);
        if (distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest;
}
