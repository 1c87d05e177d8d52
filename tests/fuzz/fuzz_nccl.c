/* tests/fuzz/fuzz_nccl.c: any bytes as a log of nccl-tests: tables and fits, or messages. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/calibration.h"
#include "collective/calibrate.h"
#include "numeric/curve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fit(const struct calibrate_fit *fit)
{
    double last_s = 0;
    BUG_IF(fit->point_count < 1 || fit->point_count > CALIBRATE_MAX_POINTS);
    for (int32_t i = 0; i < fit->point_count; i++) {
        const struct calibrate_point *point = &fit->points[i];
        BUG_IF(!(point->fit_s > 0) || !isfinite(point->fit_s));
        BUG_IF(point->fit_s < last_s * (1 - 1e-9));
        BUG_IF(point->low_s > point->time_s || point->high_s < point->time_s);
        last_s = point->fit_s;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag;
    struct nccl_log log = {0};
    struct calibrate_set set = {0};
    /* The last byte says what the request adds. */
    const uint8_t said = size > 0 ? data[size - 1] : 0;
    const struct nccl_request request = {
        .has_op = said & 1, .ranks = said & 2 ? 16 : 0, .nodes = said & 4 ? 2 : 0};
    numeric_init();
    diag_init(&diag, &arena);
    const char *text = arena_strndup(&arena, (const char *)data, size);
    const struct source source = {.name = "fuzz", .text = text, .length = size};
    const enum status status = nccl_log_parse(&arena, &source, &request, &log, &diag);
    if ((status == STATUS_OK) != (diag.error_count == 0))
        BUG("a status without its message");
    if (status == STATUS_OK)
        (void)calibrate_log(&arena, &log, &set, &diag);
    for (int32_t i = 0; i < set.count; i++)
        check_fit(&set.items[i]);
    calibrate_set_release(&set);
    arena_release(&arena);
    return 0;
}
