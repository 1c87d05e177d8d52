/*
 * study/advice.h: settings that would make a run faster, each tried by simulation, not guessed.
 *
 * A table of settings (advice_settings.c) is gone through; each is put on top of the overrides that
 * the run was loaded with, loaded, checked, built and played as a run of its own. A setting that is
 * refused (it belongs to another policy, say), that changes nothing, or with which the run does not
 * fit is left out. What is left is ordered by the time that a token takes:
 *
 *     gain = 1 − (step' / tokens') / (step / tokens)
 *
 * Example: 1.214 s for 65,536 tokens; with the double micro-batch 2.380 s for 131,072: 18.53 us a
 * token are 18.16: gain 2.0 %.
 *
 * When the run itself does not fit, every setting with which it does is listed, the fastest first.
 * What other hardware would do (NICs twice as fast, a host that costs nothing) is tried too, and
 * kept apart.
 *
 * Ranks are folded in all of them. Left out: settings two at a time; what changes the result of
 * training beyond the order of sums, but for the reduction's dtype, which is named with its words.
 */
#ifndef FSDPSIM_STUDY_ADVICE_H
#define FSDPSIM_STUDY_ADVICE_H

#include "run/experiment.h"

struct advice_item {
    const char *words; /* "keep parameters gathered from forward to backward" */
    const char
        *texts[3]; /* "fsdp.reshard_after_forward=false": what -s takes; NULL-ended if fewer */
    double step_time_s, tokens_per_s;
    double gain; /* of the time a token takes; negative: slower */
    int64_t peak_device_bytes;
};

struct advice_list {
    struct advice_item *items; /* the best first */
    int32_t count, capacity;
};

struct advice {
    struct advice_list settings, hardware;
    bool did_fit;                  /* the run as it is */
    int32_t tried, refused, unfit; /* settings: in all (hardware too), left out */
};

/* Below this, a difference is not worth a change. */
extern const double advice_least_gain;

/*
 * `path` and `overrides`: those that `experiment` was loaded with (a path that can be read again).
 * The result lives in `arena`.
 */
struct advice *advice_find(struct arena *arena, const struct experiment *experiment,
                           const struct outcome *outcome, const char *path,
                           const char *const *overrides, int32_t override_count);

#endif
