/* tests/fuzz/fuzz_torchtitan_log.c: any bytes as a training log: figures, or messages. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "study/torchtitan_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct diag diag;
    struct torchtitan_log log;
    diag_init(&diag, &arena);
    const char *text = arena_strndup(&arena, (const char *)data, size);
    const struct source source = {.name = "fuzz", .text = text, .length = size};
    const enum status status = torchtitan_log_parse(&arena, &source, &log, &diag);
    if ((status == STATUS_OK) != (diag.error_count == 0))
        BUG("a status without its message");
    if (status == STATUS_OK) {
        BUG_IF(log.lines_used < 1 || log.lines_used > log.lines || log.ranks < 1);
        BUG_IF(!(log.tokens_per_s_per_gpu > 0) || !isfinite(log.tokens_per_s_per_gpu));
        /* Quantiles between ranks round. */
        const double low = log.tokens_per_s_per_gpu * (1 - 1e-9);
        const double high = log.tokens_per_s_per_gpu * (1 + 1e-9);
        BUG_IF(log.slow_tokens_per_s > high || log.fast_tokens_per_s < low);
        BUG_IF(log.mfu <= 0 || log.reserved_bytes <= 0 || log.first_step > log.last_step);
    }
    arena_release(&arena);
    return 0;
}
