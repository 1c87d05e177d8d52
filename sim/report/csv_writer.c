/* report/csv_writer.c: see csv_writer.h. */
#include "report/csv_writer.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"

void csv_write_text(FILE *file, const char *text)
{
    if (text == NULL)
        return;
    if (text[0] != '\0' && strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

void csv_write_double(FILE *file, double value)
{
    char text[40];
    double back = 0;
    if (isnan(value))
        return;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (text_to_double(text, &back) && !(back < value) && !(back > value))
            break;
    }
    fputs(text, file);
}
