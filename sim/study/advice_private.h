/* study/advice_private.h: the settings that are tried. */
#ifndef FSDPSIM_STUDY_ADVICE_PRIVATE_H
#define FSDPSIM_STUDY_ADVICE_PRIVATE_H

#include "study/advice.h"

struct trial {
    const char *words;
    const char *texts[3]; /* overrides, NULL-ended when fewer */
    bool is_hardware;
};

struct trial_list {
    struct trial *items;
    int32_t count, capacity;
};

/* Those of the table, and those whose value follows from the run's. */
struct trial_list trials_of(struct arena *arena, const struct experiment *experiment);

#endif
