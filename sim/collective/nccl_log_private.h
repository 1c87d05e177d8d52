/*
 * collective/nccl_log_private.h: what the files of the log reader share.
 *
 *   nccl_log.c        the file, text or JSON, what is known of a table
 *   nccl_log_text.c   lines: comments, ranks, header rows, data rows
 *   nccl_log_row.c    words of a row by their columns
 *   nccl_log_json.c   the tree of -J
 */
#ifndef FSDPSIM_COLLECTIVE_NCCL_LOG_PRIVATE_H
#define FSDPSIM_COLLECTIVE_NCCL_LOG_PRIVATE_H

#include "collective/nccl_log.h"

/* ---- columns and rows --------------------------------------------------------------------- */

struct word {
    const char *text;
    struct place place;
};

struct words {
    struct word *items;
    int32_t count, capacity;
};

enum column_kind {
    COLUMN_IGNORED,
    COLUMN_SIZE,
    COLUMN_COUNT_OF, /* elements */
    COLUMN_TYPE,
    COLUMN_REDOP,
    COLUMN_ROOT,
    COLUMN_TIME,
    COLUMN_ALGBW,
    COLUMN_BUSBW,
    COLUMN_WRONG,
    COLUMN_LOW,
    COLUMN_HIGH
};

struct column {
    enum column_kind kind;
    bool is_in_place;
};

enum { NCCL_MAX_COLUMNS = 48 };

struct columns {
    struct column items[NCCL_MAX_COLUMNS];
    int32_t count; /* 0: no header row yet */
};

/* Whether the words (without '#') are the header row of a table; then fills `columns`. */
bool columns_from_header(const struct words *words, struct columns *columns);
/* Whether the words look like a data row: two whole numbers and a type. */
bool words_are_row(const struct words *words);

/* Rows of one text that are left out or doubtful: the first NCCL_ROW_WARNINGS_MAX are told. */
struct row_warnings {
    struct diag *diag;
    int32_t left_out, doubtful;
};

enum { NCCL_ROW_WARNINGS_MAX = 20 };

/* Warns that a row is left out; always false. */
bool row_left_out(struct row_warnings *warnings, struct place place, const char *hint,
                  const char *format, ...) PRINTF_LIKE(4, 5);

/* Whether a calibration file could hold it; 0 is what programs print of nothing. */
bool row_size_is_possible(int64_t bytes);
bool row_time_is_possible(double time_s);
bool row_rate_is_possible(double bytes_per_s);

/* The row, or false with a message at the word that is wrong. `is_last`: the text ends in it. */
bool row_from_words(struct arena *arena, const struct words *words, const struct columns *columns,
                    bool is_last, struct nccl_row *row, struct row_warnings *warnings);

/* ---- the two forms ------------------------------------------------------------------------ */

/* Hosts and devices of one table, while it is read. */
struct rank_list {
    struct {
        const char **items;
        int32_t count, capacity;
    } hosts;                 /* different ones */
    int64_t listed, highest; /* ranks listed, the highest number */
    struct place place;      /* of the highest */
    bool is_repeated;        /* rank 0 twice: processes that do not know of each other */
};

void rank_list_add(struct arena *arena, struct rank_list *list, int64_t rank, const char *host,
                   struct place place);
void rank_list_close(const struct rank_list *list, struct nccl_table *table);

enum status nccl_text_parse(struct arena *arena, const struct source *source, struct nccl_log *log,
                            struct row_warnings *warnings);
enum status nccl_json_parse(struct arena *arena, const struct source *source, struct nccl_log *log,
                            struct row_warnings *warnings);

/* NCCL_ALGO, NCCL_PROTO and the like in `text`: "NCCL_ALGO=Ring", "NCCL_ALGO set by environment to
   Ring". */
void table_take_environment(struct arena *arena, struct nccl_table *table, const char *text);
/* "NCCL version 2.20.5+cuda12.4" → "2.20.5"; 22907 → "2.29.7". */
const char *version_from_code(struct arena *arena, int64_t code);
char *text_lower(struct arena *arena, const char *text);

#endif
