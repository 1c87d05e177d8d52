/*
 * tests/tools/gemm_fit.c: boils a table of measured GEMMs down to a table of a grid file
 * (cluster/gemm_grid.h), leaving a hold-out aside.
 *
 *   gemm_fit DTYPE PEAK_TFLOPS HBM_GBPS SM AXES HOLD_OUT WEIGHT N_MULTIPLE HOLD_OUT_FILE
 *       < table > grid part
 *
 * Standard input: lines "m,n,k,us" (batch 1). AXES: dense | full | widths | tuned | coarse, or two
 * with a slash between them, of which the lines kept apart (below) choose. HOLD_OUT lines are drawn
 * by a hash of (seed, m, n, k), so whatever the order of the lines, and written to HOLD_OUT_FILE as
 * they came; they take no part in what follows. Neither do lines whose n is no multiple of
 * N_MULTIPLE, where a library runs other kernels.
 *
 * Model: log us = log basis(m, n, k) + sum over the 8 corners of weight · R. R minimises, by
 * conjugate gradients,
 *
 *   sum |error| + WEIGHT · (sum (R_i − R_j)^2 + 5 · sum (R_i − R_j − R_k + R_l)^2)
 *
 * with |error| below 5 % counted as squares (iteratively reweighted), i and j neighbours in the
 * grid, and i j k l the corners of a face of it. The second sum says that what a row count, a width
 * and a depth do to a rate add up in the logarithm unless the table says otherwise: where few
 * shapes were measured it carries what is known of one width over to the row counts of another.
 * WEIGHT and the 5 are the best of a few in cross-validation over the lines outside the hold-out.
 *
 * wave_frac is the one of 0, 0.1, … 1 with the least error on a second set of lines (5 %) that the
 * fit of that comparison does not see; the last fit sees them. So are the axes: the later ones of a
 * list, the finer, must be 5 % better than those before (1,000 lines tell no less: 3 % better on
 * them was nothing in cross-validation). The floor is the shortest time that is left, for tables
 * that hold such a GEMM, else the given one.
 *
 * The scatter is how far a line of at least 1 GFLOP is from the median of its four neighbours in m
 * with the same n and k (two below, two above, each within a third), waves taken out: the 90th
 * percentile. It is what the table itself does not foretell, whatever is fitted to it; 0 where
 * fewer than 1,000 lines have such neighbours.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/gemm_grid.h"

enum { ROWS_MOST = 40000, NODES_MOST = 16384, ROUNDS = 6, STEPS = 400 };

/* Errors below it weigh by their square, larger ones by their size. */
#define SQUARE_MOST 0.05
/* Weight of the faces of the grid beside that of its edges. */
#define INTERACTION 5
/* Finer axes must have at most this part of the error. */
#define FINER_FRAC 0.95

enum role { ROLE_FIT, ROLE_CHOOSE, ROLE_HOLD_OUT, ROLE_OTHER_KERNEL };

struct row {
    struct gemm_shape shape;
    double us;
    uint64_t hash;
    enum role role;
    struct gemm_cell cell;
    double target, importance; /* log(us / basis); weight of its square */
};

struct fit {
    struct row *rows;
    int32_t row_count;
    struct gemm_table table;
    int32_t node_count;
    double smoothness;
    bool is_choosing; /* ROLE_CHOOSE lines take no part */
    double nodes[NODES_MOST], residual[NODES_MOST], direction[NODES_MOST], image[NODES_MOST];
};

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9U;
    return hash ^ (hash >> 32);
}

static int by_hash(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

static bool takes_part(const struct fit *fit, const struct row *row)
{
    return row->role == ROLE_FIT || (row->role == ROLE_CHOOSE && !fit->is_choosing);
}

/* Adds smoothness · (R_i − R_j)^2 of every pair of neighbours to the normal equations, and of the
   faces the square of what is not the sum of their two sides. */
static void add_smoothness(const struct fit *fit, const double *in, double *out)
{
    int32_t strides[3] = {fit->table.n.count * fit->table.k.count, fit->table.k.count, 1};
    int32_t counts[3] = {fit->table.m.count, fit->table.n.count, fit->table.k.count};
    for (int32_t i = 0; i < fit->node_count; i++) {
        for (int axis = 0; axis < 3; axis++) {
            if (i / strides[axis] % counts[axis] + 1 == counts[axis])
                continue;
            int32_t j = i + strides[axis];
            double pull = fit->smoothness * (in[i] - in[j]);
            out[i] += pull;
            out[j] -= pull;
            for (int other = axis + 1; other < 3; other++) {
                if (i / strides[other] % counts[other] + 1 == counts[other])
                    continue;
                int32_t k = i + strides[other];
                int32_t l = j + strides[other];
                double twist = INTERACTION * fit->smoothness * (in[i] - in[j] - in[k] + in[l]);
                out[i] += twist;
                out[j] -= twist;
                out[k] -= twist;
                out[l] += twist;
            }
        }
    }
}

static void normal_times(const struct fit *fit, const double *in, double *out)
{
    memset(out, 0, sizeof(double) * (size_t)fit->node_count);
    add_smoothness(fit, in, out);
    for (int32_t i = 0; i < fit->row_count; i++) {
        const struct row *row = &fit->rows[i];
        if (!takes_part(fit, row))
            continue;
        double sum = 0;
        for (int c = 0; c < 8; c++)
            sum += row->cell.weight[c] * in[row->cell.corner[c]];
        for (int c = 0; c < 8; c++)
            out[row->cell.corner[c]] += row->importance * row->cell.weight[c] * sum;
    }
}

static double row_error(const struct fit *fit, const struct row *row)
{
    double sum = 0;
    for (int c = 0; c < 8; c++)
        sum += row->cell.weight[c] * fit->nodes[row->cell.corner[c]];
    return sum - row->target;
}

static double dot(const double *a, const double *b, int32_t count)
{
    double sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void solve(struct fit *fit)
{
    int32_t count = fit->node_count;
    normal_times(fit, fit->nodes, fit->image);
    for (int32_t i = 0; i < count; i++)
        fit->residual[i] = -fit->image[i];
    for (int32_t i = 0; i < fit->row_count; i++) {
        const struct row *row = &fit->rows[i];
        for (int c = 0; c < 8 && takes_part(fit, row); c++)
            fit->residual[row->cell.corner[c]] +=
                row->importance * row->cell.weight[c] * row->target;
    }
    memcpy(fit->direction, fit->residual, sizeof(double) * (size_t)count);
    double square = dot(fit->residual, fit->residual, count);
    for (int step = 0; step < STEPS && square > 1e-12; step++) {
        normal_times(fit, fit->direction, fit->image);
        double length = square / dot(fit->direction, fit->image, count);
        for (int32_t i = 0; i < count; i++) {
            fit->nodes[i] += length * fit->direction[i];
            fit->residual[i] -= length * fit->image[i];
        }
        double next = dot(fit->residual, fit->residual, count);
        for (int32_t i = 0; i < count; i++)
            fit->direction[i] = fit->residual[i] + next / square * fit->direction[i];
        square = next;
    }
}

static void fit_nodes(struct fit *fit, double wave_frac)
{
    fit->table.device.wave_frac = wave_frac;
    for (int32_t i = 0; i < fit->row_count; i++) {
        struct row *row = &fit->rows[i];
        struct gemm_parts parts = gemm_basis(&fit->table.device, &row->shape);
        row->target = log(row->us * 1e-6 / gemm_parts_s(&parts));
        row->importance = 1;
    }
    memset(fit->nodes, 0, sizeof(fit->nodes));
    for (int round = 0; round < ROUNDS; round++) {
        solve(fit);
        for (int32_t i = 0; i < fit->row_count; i++)
            fit->rows[i].importance =
                SQUARE_MOST / fmax(SQUARE_MOST, fabs(row_error(fit, &fit->rows[i])));
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the lines kept apart with at least 1 GFLOP: median + p90 / 3 of |error|, as the goals weigh.
 */
static double choice_error(const struct fit *fit, double *median, double *p90)
{
    static double errors[ROWS_MOST];
    int32_t count = 0;
    for (int32_t i = 0; i < fit->row_count; i++) {
        const struct row *row = &fit->rows[i];
        if (row->role == ROLE_CHOOSE && row->shape.m * row->shape.n * row->shape.k >= 0.5e9)
            errors[count++] = fabs(row_error(fit, row));
    }
    qsort(errors, (size_t)count, sizeof(double), ascending);
    *median = errors[count / 2];
    *p90 = errors[count * 9 / 10];
    return *median + *p90 / 3;
}

/* Half of it where too few lines could be kept apart to tell. */
static double choose_wave_frac(struct fit *fit, double *best_error)
{
    *best_error = 0;
    if (fit->row_count < 400)
        return 0.5;
    double best = 0;
    *best_error = (double)INFINITY;
    double best_median = 0;
    double best_p90 = 0;
    fit->is_choosing = true;
    for (int tenth = 0; tenth <= 10; tenth++) {
        fit_nodes(fit, tenth * 0.1);
        double median;
        double p90;
        double error = choice_error(fit, &median, &p90);
        if (error >= *best_error)
            continue;
        *best_error = error;
        best_median = median;
        best_p90 = p90;
        best = tenth * 0.1;
    }
    fit->is_choosing = false;
    fprintf(stderr, "kept apart: median %.4f p90 %.4f; ", best_median, best_p90);
    return best;
}

static int by_width_then_rows(const void *a, const void *b)
{
    const struct gemm_shape *x = &((const struct row *)a)->shape;
    const struct gemm_shape *y = &((const struct row *)b)->shape;
    if (x->n < y->n || x->n > y->n)
        return x->n < y->n ? -1 : 1;
    if (x->k < y->k || x->k > y->k)
        return x->k < y->k ? -1 : 1;
    return (x->m > y->m) - (x->m < y->m);
}

/* Of the lines at[-2 … 2] of one width and depth: is the middle one between close neighbours? */
static bool is_flanked(const struct row *at)
{
    const struct gemm_shape *low = &at[-2].shape;
    const struct gemm_shape *high = &at[2].shape;
    double m = at->shape.m;
    bool is_one_line = !(low->n < high->n) && !(low->k < high->k) && !(low->k > high->k);
    return is_one_line && low->m * 1.34 > m && high->m < m * 1.34;
}

/* Sorts the rows anew; the hold-out is left out on both sides. */
static double scatter(struct fit *fit)
{
    static double errors[ROWS_MOST];
    int32_t count = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < fit->row_count; i++)
        if (takes_part(fit, &fit->rows[i]))
            fit->rows[kept++] = fit->rows[i];
    fit->row_count = kept;
    qsort(fit->rows, (size_t)kept, sizeof(struct row), by_width_then_rows);
    for (int32_t i = 2; i + 2 < kept; i++) {
        const struct row *at = &fit->rows[i];
        if (at->shape.m * at->shape.n * at->shape.k < 0.5e9 || !is_flanked(at))
            continue;
        double around[4] = {at[-2].target, at[-1].target, at[1].target, at[2].target};
        qsort(around, 4, sizeof(double), ascending);
        errors[count++] = fabs(exp((around[1] + around[2]) / 2 - at->target) - 1);
    }
    if (count < 1000)
        return 0;
    qsort(errors, (size_t)count, sizeof(double), ascending);
    return errors[count * 9 / 10];
}

static struct gemm_axis axis_of(const char *text)
{
    struct gemm_axis axis = {0};
    while (*text) {
        char *end;
        axis.at[axis.count++] = (int32_t)strtol(text, &end, 10);
        text = *end ? end + 1 : end;
    }
    gemm_axis_logs(&axis);
    return axis;
}

/* The first `length` letters of `word`. */
static bool axes_set(struct gemm_table *table, const char *word, size_t length)
{
    static const struct {
        const char *word, *m, *n, *k;
    } sets[] = {
        {"dense", "1,16,64,128,256,512,768,1024,1280,1536,2048,2560,3072,3584,4096,8192,32768",
         "32,64,128,256,512,768,1024,1536,2048,3072,4096,6144,8192,12288,16384,51200,65536",
         "32,64,128,256,512,1024,2048,4096,8192,16384,51200,65536"},
        /* Every width and depth of the collection behind "dense", and its multiples of 256 in m. */
        {"full",
         "1,16,32,64,128,256,512,768,1024,1280,1536,1792,2048,2304,2560,2816,3072,3328,3584,3840,"
         "4096,4352,8192,16384,32768",
         "32,64,128,256,512,768,1024,1536,2048,2560,3072,3584,4096,5120,6144,7168,8192,10240,12288,"
         "16384,51200,65536",
         "32,64,128,256,512,768,1024,1536,2048,2560,3072,3584,4096,5120,6144,7168,8192,10240,12288,"
         "16384,51200,65536"},
        {"widths", "512,1024,1536,2048,3072,4096,6144,8192,16384,32768,65536",
         "512,1024,2048,4096,8192,16384,32768,50272",
         "768,960,1024,1280,1536,1600,2048,2560,3072,4096,8192,16384,50272"},
        {"tuned", "16,64,128,256,512,1024,2048,4096,8192,16384,32768",
         "128,256,1280,2304,3072,5120,6144,8192,16384,51200",
         "640,1280,2048,3200,5120,6144,8192,16384,28672"},
        {"coarse", "16,64,256,1024,4096,16384", "256,1024,4096,16384,65536", "512,1024,4096,16384"},
    };
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        if (strlen(sets[i].word) != length || memcmp(word, sets[i].word, length) != 0)
            continue;
        table->m = axis_of(sets[i].m);
        table->n = axis_of(sets[i].n);
        table->k = axis_of(sets[i].k);
        return true;
    }
    return false;
}

static void print_axis(const char *word, const struct gemm_axis *axis)
{
    printf("%s", word);
    for (int32_t i = 0; i < axis->count; i++)
        printf(" %d", axis->at[i]);
    printf("\n");
}

static void print_table(const struct fit *fit)
{
    const struct gemm_table *table = &fit->table;
    const struct gemm_device *device = &table->device;
    printf("table %s peak_gflop_per_s %.0f hbm_mb_per_s %.0f sm %.0f floor_ns %.0f "
           "wave_permille %.0f scatter_permille %.0f\n",
           dtype_name(table->dtype), device->peak_flop_per_s / 1e9, device->hbm_bytes_per_s / 1e6,
           device->sm_count, device->floor_s * 1e9, device->wave_frac * 1e3,
           table->scatter_frac * 1e3);
    print_axis("m", &table->m);
    print_axis("n", &table->n);
    print_axis("k", &table->k);
    for (int32_t i = 0; i < fit->node_count; i++) {
        if (i % table->k.count == 0)
            printf("r %d %d", table->m.at[i / table->k.count / table->n.count],
                   table->n.at[i / table->k.count % table->n.count]);
        printf(" %.0f", exp(fit->nodes[i]) * 1e4);
        if ((i + 1) % table->k.count == 0)
            printf("\n");
    }
}

static void read_rows(struct fit *fit)
{
    struct row row = {.shape.batch = 1};
    char line[256];
    while (fgets(line, sizeof(line), stdin)) {
        double values[4] = {0};
        char *at = line;
        for (int i = 0; i < 4; i++) {
            values[i] = strtod(at, &at);
            at += *at == ',';
        }
        row.shape.m = values[0];
        row.shape.n = values[1];
        row.shape.k = values[2];
        row.us = values[3];
        if (row.us <= 0)
            continue;
        row.hash =
            hash_mix(hash_mix(hash_mix(20240301, (uint64_t)row.shape.m), (uint64_t)row.shape.n),
                     (uint64_t)row.shape.k);
        if (fit->row_count == ROWS_MOST)
            break;
        fit->rows[fit->row_count++] = row;
    }
    qsort(fit->rows, (size_t)fit->row_count, sizeof(struct row), by_hash);
}

/* Gives each line its part; repeats of a shape go the same way. */
static bool share_out(struct fit *fit, int32_t hold_out, int64_t n_multiple, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    double floor_us = (double)INFINITY;
    for (int32_t i = 0; i < fit->row_count; i++) {
        struct row *row = &fit->rows[i];
        if (i < hold_out || (i > 0 && row->hash == row[-1].hash && row[-1].role == ROLE_HOLD_OUT))
            row->role = ROLE_HOLD_OUT;
        else if ((int64_t)row->shape.n % n_multiple != 0)
            row->role = ROLE_OTHER_KERNEL;
        else if (i < hold_out + fit->row_count / 20)
            row->role = ROLE_CHOOSE;
        if (row->role == ROLE_HOLD_OUT)
            fprintf(file, "%.0f,%.0f,%.0f,%.7g\n", row->shape.m, row->shape.n, row->shape.k,
                    row->us);
        else if (row->role != ROLE_OTHER_KERNEL)
            floor_us = fmin(floor_us, row->us);
    }
    if (floor_us * 1e-6 < fit->table.device.floor_s)
        fit->table.device.floor_s = floor_us * 1e-6;
    return fclose(file) == 0;
}

static bool lay_axes(struct fit *fit, const char *word, size_t length)
{
    struct gemm_table *table = &fit->table;
    if (!axes_set(table, word, length))
        return false;
    fit->node_count = table->m.count * table->n.count * table->k.count;
    for (int32_t i = 0; i < fit->row_count; i++)
        gemm_cell_find(table, &fit->rows[i].shape, &fit->rows[i].cell);
    return true;
}

/* Lays the best axes of the list "a/b" and fits them. */
static bool fit_best(struct fit *fit, const char *list)
{
    double best_error = (double)INFINITY;
    double wave_frac = 0;
    const char *best = list;
    for (const char *at = list; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        if (!lay_axes(fit, at, strcspn(at, "/")))
            return false;
        double error;
        double chosen = choose_wave_frac(fit, &error);
        if (error >= best_error * FINER_FRAC)
            continue;
        best_error = error;
        best = at;
        wave_frac = chosen;
    }
    if (!lay_axes(fit, best, strcspn(best, "/")))
        return false;
    fit_nodes(fit, wave_frac);
    return true;
}

int main(int argc, char **argv)
{
    static struct row rows[ROWS_MOST];
    static struct fit fit;
    if (argc != 10) {
        fprintf(stderr, "usage: see the top of gemm_fit.c\n");
        return 2;
    }
    struct gemm_device *device = &fit.table.device;
    fit.rows = rows;
    fit.table.dtype = DTYPE_COUNT;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (strcmp(dtype_name((enum dtype)i), argv[1]) == 0)
            fit.table.dtype = (enum dtype)i;
    if (fit.table.dtype == DTYPE_COUNT) {
        fprintf(stderr, "no such dtype\n");
        return 2;
    }
    device->peak_flop_per_s = strtod(argv[2], NULL) * 1e12;
    device->hbm_bytes_per_s = strtod(argv[3], NULL) * 1e9;
    device->sm_count = strtod(argv[4], NULL);
    device->floor_s = 2.6e-6; /* the smallest kernel of most tables; lower where the table says */
    gemm_element_bytes(fit.table.dtype, &device->operand_bytes, &device->result_bytes);
    fit.smoothness = strtod(argv[7], NULL);
    read_rows(&fit);
    if (!share_out(&fit, (int32_t)strtol(argv[6], NULL, 10), strtol(argv[8], NULL, 10), argv[9]))
        return 1;
    if (!fit_best(&fit, argv[5])) {
        fprintf(stderr, "no such axes\n");
        return 2;
    }
    fit.table.scatter_frac = scatter(&fit);
    print_table(&fit);
    double error = 0;
    for (int32_t i = 0; i < fit.row_count; i++)
        if (takes_part(&fit, &fit.rows[i]))
            error += fabs(row_error(&fit, &fit.rows[i]));
    fprintf(stderr, "%s %s: %d lines, wave %.1f, floor %.2f us, mean |error| %.4f, scatter %.3f\n",
            argv[9], argv[1], fit.row_count, device->wave_frac, device->floor_s * 1e6,
            error / fit.row_count, fit.table.scatter_frac);
    return 0;
}
