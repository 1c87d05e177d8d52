/* study/sweep_work.c: what a worker does with a point; see sweep.h. */
#include <string.h>

#include "study/outcome_wire.h"
#include "study/sweep_private.h"

/* The first mistake in one line, with what is accepted. */
static void add_reason(struct strbuf *answer, const struct diag *diag)
{
    const struct diag_message *error = diag_first_error(diag);
    strbuf_add(answer, error != NULL ? error->text : "cannot be simulated");
    if (error != NULL && error->hint != NULL)
        strbuf_printf(answer, " (%s)", error->hint);
}

static void add_byte(struct strbuf *answer, char byte)
{
    strbuf_add_bytes(answer, &byte, 1);
}

void sweep_work(void *context, uint32_t kind, int64_t position, struct strbuf *answer)
{
    const struct sweep *sweep = context;
    struct arena scratch = {0};
    struct diag diag;
    struct experiment experiment = {0};
    struct outcome outcome = {0};
    scratch.pool = &sweep->plan->cache->pool;
    diag_init(&diag, &scratch);
    enum status status = sweep_plan_load(sweep->plan, position, &scratch, &experiment, &diag);
    if (status == STATUS_OK && kind == TASK_PLAY)
        status = experiment_build(&experiment);
    experiment.is_brief = !sweep->options.has_detail;
    if (status == STATUS_OK && kind == TASK_PLAY)
        status = experiment_play(&experiment, &outcome);
    if (status != STATUS_OK) {
        add_byte(answer, ANSWER_INVALID);
        add_reason(answer, &diag);
    } else if (kind == TASK_PLAY) {
        add_byte(answer, ANSWER_OUTCOME);
        outcome_pack(&outcome, sweep->options.has_detail, answer);
    } else {
        const struct hash128 key = experiment_key(&experiment);
        add_byte(answer, ANSWER_KEY);
        strbuf_add_bytes(answer, (const char *)&key, sizeof(key));
    }
    experiment_release(&experiment);
    arena_release(&scratch);
}
