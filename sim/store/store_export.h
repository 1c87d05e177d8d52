/*
 * store/store_export.h: the rows of a table or a view, one after another, with the unit of every
 * column: what `db export` writes.
 *
 *     struct store_rows *rows = NULL;
 *     struct store_query query = {.table = "v_runs", .where = "n_gpus >= 8 AND fits"};
 *     status = store_rows_open(store, &query, &rows, diag);
 *     while (status == STATUS_OK && store_rows_next(rows, &status, diag))
 *         for (int i = 0; i < store_rows_column_count(rows); i++)
 *             store_rows_cell(rows, i, &cell);
 *     store_rows_close(rows);
 *
 * Rows come one at a time, as of one moment, in order of the first two columns (a run's id, its
 * row). Nothing is kept, so a table may have any size. `where` is an expression of SQLite over the
 * columns; in it a name in double quotes is a column and never, as SQLite would have it, a text.
 *
 * Errors (STATUS_INPUT): no such table, no such run, an expression that SQLite refuses.
 */
#ifndef FSDPSIM_STORE_STORE_EXPORT_H
#define FSDPSIM_STORE_STORE_EXPORT_H

#include "store/store.h"

struct store_range { /* of ids of runs, both ends included */
    int64_t first, last;
};

struct store_query {
    const char *table;                /* "v_runs" */
    const struct store_range *ranges; /* only these runs; NULL: all */
    int32_t range_count;
    const char *where; /* NULL: all */
};

enum store_cell_kind { CELL_NULL, CELL_INT, CELL_REAL, CELL_BOOL, CELL_TEXT };
struct store_cell {
    enum store_cell_kind kind;
    int64_t integer; /* CELL_INT, CELL_BOOL */
    double real;
    const char *text; /* until the next row */
};

struct store_column {
    const char *name, *unit, *help; /* unit and help "" where `meta` has none */
    const char *type;               /* as declared: "REAL", "INTEGER", "TEXT"; "": an expression */
};

struct store_rows;

MUST_CHECK enum status store_rows_open(struct store *store, const struct store_query *query,
                                       struct store_rows **rows, struct diag *diag);
/* False at the end, and after an error, which sets `status`. */
bool store_rows_next(struct store_rows *rows, enum status *status, struct diag *diag);
int store_rows_column_count(const struct store_rows *rows);
const struct store_column *store_rows_column(const struct store_rows *rows, int column);
void store_rows_cell(const struct store_rows *rows, int column, struct store_cell *cell);
void store_rows_close(struct store_rows *rows); /* NULL: nothing */

#endif
