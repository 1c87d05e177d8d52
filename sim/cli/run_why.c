/* cli/run_why.c: see run_why.h. */
#include "cli/run_why.h"

struct why run_why(struct command *command, const char *argument,
                   const struct experiment *experiment, const struct outcome *outcome)
{
    struct text_list overrides = {0};
    const char *file = command_split_file(command, argument, &overrides);
    return (struct why){.outcome = outcome,
                        .steps = experiment->reported_steps,
                        .path = critical_path_find(&command->arena, experiment->journal,
                                                   experiment->headline_class),
                        .advice = advice_find(&command->arena, experiment, outcome, file,
                                              overrides.items, overrides.count)};
}
