/* cli/shard.c: see shard.h. */
#include "cli/shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { SHARDS_MAX = 1000000 };

/* What a scheduler sets for each task of an array (sbatch(1), qsub(1) of Grid Engine, bsub(1),
   qsub(1B)). */
static const struct scheduler {
    const char *index, *first, *last, *step, *count; /* NULL: not said */
} schedulers[] = {
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", NULL, "SLURM_ARRAY_TASK_STEP",
     "SLURM_ARRAY_TASK_COUNT"},
    {"SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE", NULL},
    {"LSB_JOBINDEX", NULL, "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP", NULL},
    {"PBS_ARRAY_INDEX", NULL, NULL, NULL, NULL},
    {"PBS_ARRAYID", NULL, NULL, NULL, NULL},
};
enum { SCHEDULER_COUNT = sizeof(schedulers) / sizeof(schedulers[0]) };

/* False when it is not set or no number (Grid Engine says "undefined" outside an array). */
static bool read_variable(const char *name, int64_t *value)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    return text != NULL && text_to_int64(text, value) && *value >= 0 && *value <= INT32_MAX;
}

static const struct scheduler *find_scheduler(int64_t *index)
{
    for (int i = 0; i < SCHEDULER_COUNT; i++)
        if (read_variable(schedulers[i].index, index))
            return &schedulers[i];
    return NULL;
}

/* Index from 0 and number of tasks; false when the scheduler does not say the number. */
static bool place_in_array(const struct scheduler *scheduler, int64_t index, int64_t *shard,
                           int64_t *count)
{
    int64_t first = 1;
    int64_t last = 0;
    int64_t step = 1;
    (void)read_variable(scheduler->first, &first);
    if (!read_variable(scheduler->step, &step) || step < 1)
        step = 1;
    if (read_variable(scheduler->last, &last))
        *count = (last - first) / step + 1;
    else if (!read_variable(scheduler->count, count))
        return false;
    *shard = (index - first) / step + 1;
    return *shard >= 1 && *shard <= *count;
}

static enum status read_auto(struct command *command, const char *text, int64_t *shard,
                             int64_t *count)
{
    int64_t index = 0;
    const struct scheduler *scheduler = find_scheduler(&index);
    if (scheduler == NULL)
        return (enum status)command_refuse(
            command, "it is set in tasks of job arrays of Slurm, Grid Engine, LSF and PBS",
            "'--shard auto%s': the environment names no task of an array", text);
    if (text[0] == '/' && text_to_int64(text + 1, count) && *count >= 1 && *count <= SHARDS_MAX) {
        *shard = index % *count + 1;
        return STATUS_OK;
    }
    if (text[0] == '\0' && place_in_array(scheduler, index, shard, count))
        return STATUS_OK;
    return (enum status)command_refuse(command, "--shard auto/8 where there are eight tasks",
                                       "'--shard auto%s': %s is %lld, of how many is not known",
                                       text, scheduler->index, (long long)index);
}

enum status shard_read(struct command *command, const char *text, int64_t *shard, int64_t *count)
{
    *shard = *count = 1;
    if (text == NULL)
        return STATUS_OK;
    if (strncmp(text, "auto", 4) == 0 && (text[4] == '\0' || text[4] == '/'))
        return read_auto(command, text + 4, shard, count);
    const char *slash = strchr(text, '/');
    const char *first =
        slash != NULL ? arena_strndup(&command->arena, text, (size_t)(slash - text)) : "";
    if (slash != NULL && text_to_int64(first, shard) && text_to_int64(slash + 1, count) &&
        *shard >= 1 && *count >= *shard && *count <= SHARDS_MAX)
        return STATUS_OK;
    return (enum status)command_refuse(command, "--shard 1/8 is the first of eight; or auto",
                                       "'--shard %s' is not a shard", text);
}
