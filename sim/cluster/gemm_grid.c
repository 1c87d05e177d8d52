/* cluster/gemm_grid.c: reads a grid file. */
#include "cluster/gemm_grid.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/strbuf.h"

static const size_t file_most_bytes = 1 << 20;
static const double r_scale = 1e-4;

/* Where reading is: the rest of the line, and its number for messages. */
struct reader {
    const char *path;
    const char *at, *end_of_line, *end;
    int32_t line;
    struct arena *arena;
    struct diag *diag;
};

static bool next_line(struct reader *reader)
{
    while (reader->end_of_line < reader->end) {
        reader->at = reader->end_of_line + (reader->line > 0);
        if (reader->at >= reader->end)
            return false;
        const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
        reader->end_of_line = newline ? newline : reader->end;
        reader->line++;
        if (*reader->at != '#' && reader->at < reader->end_of_line)
            return true;
    }
    return false;
}

static enum status complain(const struct reader *reader, const char *what)
{
    struct source *source = ARENA_NEW(reader->arena, struct source);
    source->name = arena_strdup(reader->arena, reader->path);
    struct place place = {source, reader->line, 1, 1};
    diag_add(reader->diag, DIAG_ERROR, place, "format: cluster/gemm_grid.h", "%s", what);
    return STATUS_INPUT;
}

/* Takes `word` and the blank behind it. */
static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end_of_line - reader->at) < length ||
        memcmp(reader->at, word, length) != 0)
        return false;
    const char *after = reader->at + length;
    if (after < reader->end_of_line && *after != ' ')
        return false;
    reader->at = after < reader->end_of_line ? after + 1 : after;
    return true;
}

/* Takes a positive number of at most nine digits and the blank behind it; 0: there is none. */
static int32_t take_number(struct reader *reader)
{
    int32_t value = 0;
    int32_t digits = 0;
    while (reader->at < reader->end_of_line && isdigit((unsigned char)*reader->at) && digits < 9) {
        value = value * 10 + (*reader->at++ - '0');
        digits++;
    }
    if (reader->at < reader->end_of_line && *reader->at == ' ')
        reader->at++;
    return value;
}

static const char *take_rest(struct reader *reader)
{
    return arena_strndup(reader->arena, reader->at, (size_t)(reader->end_of_line - reader->at));
}

static bool take_field(struct reader *reader, const char *word, double scale, double *value)
{
    if (!take_word(reader, word))
        return false;
    *value = take_number(reader) * scale;
    return true;
}

static enum status read_table_line(struct reader *reader, struct gemm_table *table)
{
    struct gemm_device *device = &table->device;
    table->dtype = DTYPE_COUNT;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (take_word(reader, dtype_name((enum dtype)i))) {
            table->dtype = (enum dtype)i;
            break;
        }
    }
    if (table->dtype == DTYPE_COUNT)
        return complain(reader, "'table' needs a dtype");
    gemm_element_bytes(table->dtype, &device->operand_bytes, &device->result_bytes);
    bool is_good = take_field(reader, "peak_gflop_per_s", 1e9, &device->peak_flop_per_s) &&
                   take_field(reader, "hbm_mb_per_s", 1e6, &device->hbm_bytes_per_s) &&
                   take_field(reader, "sm", 1, &device->sm_count) &&
                   take_field(reader, "floor_ns", 1e-9, &device->floor_s) &&
                   take_field(reader, "wave_permille", 1e-3, &device->wave_frac) &&
                   take_field(reader, "scatter_permille", 1e-3, &table->scatter_frac) &&
                   reader->at == reader->end_of_line;
    if (!is_good || device->peak_flop_per_s <= 0 || device->hbm_bytes_per_s <= 0 ||
        device->sm_count <= 0)
        return complain(reader, "the 'table' line is not as it should be");
    return STATUS_OK;
}

static enum status read_axis(struct reader *reader, const char *word, struct gemm_axis *axis)
{
    if (!next_line(reader) || !take_word(reader, word))
        return complain(reader, "an axis is missing");
    while (reader->at < reader->end_of_line) {
        int32_t value = take_number(reader);
        if (axis->count == GEMM_AXIS_MAX ||
            value <= (axis->count > 0 ? axis->at[axis->count - 1] : 0))
            return complain(reader, "an axis must increase and have at most 32 points");
        axis->at[axis->count++] = value;
    }
    if (axis->count == 0)
        return complain(reader, "an axis needs points");
    gemm_axis_logs(axis);
    return STATUS_OK;
}

static enum status read_row(struct reader *reader, struct gemm_table *table, int32_t im, int32_t in)
{
    if (!next_line(reader) || !take_word(reader, "r") || take_number(reader) != table->m.at[im] ||
        take_number(reader) != table->n.at[in])
        return complain(reader, "a row 'r m n …' is missing or out of order");
    double *r = table->r + (size_t)(im * table->n.count + in) * (size_t)table->k.count;
    for (int32_t i = 0; i < table->k.count; i++) {
        int32_t value = take_number(reader);
        if (value == 0)
            return complain(reader, "a row needs a positive number for each k");
        r[i] = value * r_scale;
    }
    if (reader->at != reader->end_of_line)
        return complain(reader, "a row has more numbers than there are k");
    return STATUS_OK;
}

static enum status read_table(struct reader *reader, struct gemm_grid *grid)
{
    struct gemm_table *table = ARENA_NEW(reader->arena, struct gemm_table);
    enum status status = read_table_line(reader, table);
    if (status == STATUS_OK)
        status = read_axis(reader, "m", &table->m);
    if (status == STATUS_OK)
        status = read_axis(reader, "n", &table->n);
    if (status == STATUS_OK)
        status = read_axis(reader, "k", &table->k);
    if (status != STATUS_OK)
        return status;
    int32_t rows = table->m.count * table->n.count;
    table->r = ARENA_ARRAY(reader->arena, double, rows * table->k.count);
    for (int32_t i = 0; i < rows && status == STATUS_OK; i++)
        status = read_row(reader, table, i / table->n.count, i % table->n.count);
    grid->tables[table->dtype] = table;
    return status;
}

static enum status read_all(struct reader *reader, struct gemm_grid *grid)
{
    if (!next_line(reader) || !take_word(reader, "gemm-grid") || take_number(reader) != 1)
        return complain(reader, "the first line is not 'gemm-grid 1'");
    if (!next_line(reader) || !take_word(reader, "gpu"))
        return complain(reader, "the second line is not 'gpu NAME'");
    grid->gpu_name = take_rest(reader);
    if (!next_line(reader) || !take_word(reader, "source"))
        return complain(reader, "the third line is not 'source TEXT'");
    grid->source = take_rest(reader);
    enum status status = STATUS_OK;
    int32_t table_count = 0;
    while (status == STATUS_OK && next_line(reader)) {
        if (!take_word(reader, "table"))
            return complain(reader, "expected 'table'");
        status = read_table(reader, grid);
        table_count++;
    }
    if (status == STATUS_OK && table_count == 0)
        return complain(reader, "there is no table");
    return status;
}

static void hash_axis(struct hash128 *hash, const struct gemm_axis *axis)
{
    hash128_u64(hash, (uint64_t)axis->count);
    for (int32_t i = 0; i < axis->count; i++)
        hash128_u64(hash, (uint64_t)axis->at[i]);
}

static void hash_table(struct hash128 *hash, const struct gemm_table *table)
{
    const struct gemm_device *device = &table->device;
    hash128_u64(hash, (uint64_t)table->dtype);
    hash128_double(hash, device->peak_flop_per_s);
    hash128_double(hash, device->hbm_bytes_per_s);
    hash128_double(hash, device->sm_count);
    hash128_double(hash, device->floor_s);
    hash128_double(hash, device->wave_frac);
    hash128_double(hash, table->scatter_frac);
    hash_axis(hash, &table->m);
    hash_axis(hash, &table->n);
    hash_axis(hash, &table->k);
    const size_t count = (size_t)table->m.count * (size_t)table->n.count * (size_t)table->k.count;
    for (size_t i = 0; i < count; i++)
        hash128_double(hash, table->r[i]);
}

static struct hash128 hash_content(const struct gemm_grid *grid)
{
    struct hash128 hash;
    hash128_init(&hash);
    hash128_text(&hash, grid->gpu_name);
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (grid->tables[i] != NULL)
            hash_table(&hash, grid->tables[i]);
    return hash128_done(hash);
}

enum status gemm_grid_read(struct arena *arena, struct diag *diag, const char *path,
                           struct gemm_grid *grid)
{
    *grid = (struct gemm_grid){0};
    struct strbuf text = {0};
    enum status status = strbuf_read_file(&text, path, file_most_bytes, diag);
    if (status != STATUS_OK)
        goto out;
    struct reader reader = {.path = path,
                            .at = text.text,
                            .end_of_line = text.text,
                            .end = text.text + text.length,
                            .arena = arena,
                            .diag = diag};
    status = read_all(&reader, grid);
    if (status == STATUS_OK)
        grid->content = hash_content(grid);
out:
    strbuf_release(&text);
    return status;
}
