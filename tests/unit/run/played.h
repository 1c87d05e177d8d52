/*
 * tests/unit/run/played.h: a shipped configuration loaded, built and played in one call, for tests.
 *
 *     struct played played;
 *     if (played_play(&played, "worked-examples/units-3", "fsdp.wrap=block; nodes=1"))
 *         CHECK_NEAR(played.outcome.forward_s, 0.085, 1e-12);
 *     played_release(&played);
 *
 * A name is that of a file under configs/, without ".yaml", or a path from the top of the source
 * tree. Overrides are what -s takes, split at ';'.
 */
#ifndef FSDPSIM_TESTS_PLAYED_H
#define FSDPSIM_TESTS_PLAYED_H

#include "report/report.h"
#include "report/report_estimate.h"
#include "run/experiment.h"

struct played {
    struct arena arena; /* of messages and texts */
    struct diag diag;
    struct experiment experiment;
    struct outcome outcome;
};

/* Loads only; what went wrong is in played_messages. */
enum status played_load(struct played *played, const char *config, const char *overrides);
/* Loads and builds, plays: a CHECK fails (and says why) when that cannot be done. */
bool played_build(struct played *played, const char *config, const char *overrides);
bool played_play(struct played *played, const char *config, const char *overrides);
/* Loads, builds and plays as far as it goes: for what is expected to fail. */
enum status played_try(struct played *played, const char *config, const char *overrides);
void played_release(struct played *played);

const char *played_messages(struct played *played);
struct mistake {
    const char *config, *overrides;
    const char *parts[3]; /* of its messages */
};
/* Each row by itself is refused, with a place, and says so. */
void check_mistakes(const struct mistake *rows, size_t count);
/* Texts, alive until released: the program, --json, `memory`, `explain`. */
const char *played_dump(struct played *played);
const char *played_json(struct played *played);
const char *played_memory(struct played *played, const struct estimate *estimate);
const char *played_explain(struct played *played, double hidden_frac);

/* As the caching allocator counts: each piece up to a multiple of 512 B. */
int64_t rounded_up(int64_t bytes);

#endif
