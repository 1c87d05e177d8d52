/*
 * tests/unit/study/test_validate_shape.c: the level and the shape of what is predicted beside the
 * published runs that ship. Measured times are the table's; nothing expected here is ours.
 */
#include <math.h>
#include <string.h>

#include "study/validate.h"
#include "study_tests.h"

struct point {
    const char *label;
    double tokens; /* of a step, relative to those of the other points */
};

/* Of a series, from one point to the next. */
enum { POINTS_MAX = 9 };
static const double step_tolerance = 0.08, end_tolerance = 0.10;

static const struct {
    const char *name;
    struct point points[POINTS_MAX];
} series[] = {
    {"microbatch 1, 2, 4, 6 of MPT-7B on A100",
     {{"LFX-001", 1}, {"LFX-002", 2}, {"LFX-003", 4}, {"LFX-004", 6}}},
    {"microbatch 2, 3, 5, 8 of MPT-3B on A100",
     {{"LFX-025", 4}, {"LFX-024", 6}, {"LFX-023", 5}, {"LFX-022", 8}}},
    {"sequences of 512 to 65,536 of MPT-350M on A100",
     {{"LF-129", 1},
      {"LF-127", 1},
      {"LF-126", 1},
      {"LF-125", 1},
      {"LF-124", 1},
      {"LF-123", 1},
      {"LF-122", 1}}},
    {"sequences of 512 to 65,536 of MPT-125M on A100",
     {{"LF-138", 1},
      {"LF-137", 1},
      {"LF-136", 1},
      {"LF-134", 1},
      {"LF-133", 1},
      {"LF-132", 1},
      {"LF-131", 1},
      {"LF-130", 1}}},
    {"sequences of 512 to 32,768 of MPT-1B on H100",
     {{"LF-061", 56 * 512 * 4},
      {"LF-060", 18 * 1024 * 4},
      {"LF-059", 14 * 2048},
      {"LF-055", 7 * 4096 * 4},
      {"LF-053", 2 * 16384 * 4},
      {"LF-052", 32768 * 4}}},
    {"eager, compiled, float8 of Llama-3-8B on H100",
     {{"TT-001", 1}, {"TT-002", 1}, {"TT-003", 1}}},
    {"checkpointing none, selective, full of Llama-2-7B on H100",
     {{"TT-051", 1}, {"TT-049", 1}, {"TT-048", 1}}},
};

static const struct validate_row *row_of(const struct validation *validation, const char *label)
{
    for (int32_t i = 0; i < validation->row_count; i++)
        if (strcmp(validation->rows[i].label, label) == 0)
            return &validation->rows[i];
    return NULL;
}

/* Time a token at `to` over that at `from`. */
static double ratio(double to_s, double from_s, const struct point *to, const struct point *from)
{
    return to_s / to->tokens / (from_s / from->tokens);
}

static void check_pair(const struct validation *validation, const struct point *from,
                       const struct point *to, double tolerance)
{
    const struct validate_row *a = row_of(validation, from->label);
    const struct validate_row *b = row_of(validation, to->label);
    check_context("%s -> %s", from->label, to->label);
    if (!CHECK_TRUE(a != NULL && b != NULL && a->reason == NULL && b->reason == NULL))
        return;
    const double measured = ratio(b->step_s.measured, a->step_s.measured, to, from);
    const double predicted = ratio(b->step_s.predicted, a->step_s.predicted, to, from);
    CHECK_NEAR(predicted, measured, tolerance);
    CHECK_TRUE((predicted < 1) == (measured < 1));
}

static void check_series(const struct validation *validation)
{
    for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++) {
        const struct point *points = series[i].points;
        int last = 0;
        for (; last + 1 < POINTS_MAX && points[last + 1].label != NULL; last++)
            check_pair(validation, &points[last], &points[last + 1], step_tolerance);
        check_pair(validation, &points[0], &points[last], end_tolerance);
    }
    check_context(NULL);
}

/* Hosts of eight GPUs in the sources whose settings are stated best: median 10 %, bias 4 %. */
static void check_level(const struct validation *validation)
{
    static const char *const sources[] = {"mosaicml/llm-foundry", "pytorch/torchtitan",
                                          "pytorch/ao", "Lightning-AI/litgpt"};
    int32_t count = 0, slower = 0, near = 0, above = 0, below = 0;
    for (int32_t i = 0; i < validation->row_count; i++) {
        const struct validate_row *row = &validation->rows[i];
        bool is_meant = false;
        for (size_t s = 0; s < sizeof(sources) / sizeof(sources[0]); s++)
            is_meant = is_meant || strncmp(row->source, sources[s], strlen(sources[s])) == 0;
        if (!is_meant || row->n_gpus != 8 || !row->is_scored || row->reason != NULL ||
            isnan(row->step_s.error))
            continue;
        count++;
        near += fabs(row->step_s.error) <= 0.10;
        slower += row->step_s.error > 0;
        above += row->step_s.error > 0.04;
        below += row->step_s.error < -0.04;
    }
    CHECK_TRUE(count >= 150);
    CHECK_TRUE(2 * near > count);
    /* The median lies within 4 %: less than half of the rows on either side of it. */
    CHECK_TRUE(2 * above < count && 2 * below < count);
    CHECK_TRUE(slower > 0 && slower < count);
}

static void test_published(void)
{
    struct arena arena = {0};
    struct diag diag;
    struct validation validation;
    diag_init(&diag, &arena);
    if (CHECK_INT(validate_run(&arena, &(struct validate_request){0}, &validation, &diag),
                  STATUS_OK)) {
        check_series(&validation);
        check_level(&validation);
    }
    arena_release(&arena);
}

const struct check_case validate_shape_cases[] = {{"published runs", test_published}, {NULL, NULL}};
