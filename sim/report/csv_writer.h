/*
 * report/csv_writer.h: fields of CSV as RFC 4180 has them.
 *
 * A text is put in quotes where it holds a comma, a quote or a line break, quotes in it are
 * doubled; the empty text is "" in quotes, nothing at all is NULL or NaN. Doubles have the fewest
 * digits that read back equal. Commas and line ends are the caller's.
 */
#ifndef FSDPSIM_REPORT_CSV_WRITER_H
#define FSDPSIM_REPORT_CSV_WRITER_H

#include <stdio.h>

void csv_write_text(FILE *file, const char *text);
void csv_write_double(FILE *file, double value);

#endif
