/* base/status.c: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bug_at(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: bug: ", file, line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nThis is a mistake of the simulator, not of your input. Please report it.\n");
    va_end(arguments);
    abort();
}

void out_of_memory(size_t wanted_bytes)
{
    fflush(stdout);
    if (wanted_bytes > 0)
        fprintf(stderr, "error: out of memory (%zu bytes wanted)\n", wanted_bytes);
    else
        fprintf(stderr, "error: out of memory\n");
    exit(STATUS_WORLD);
}
