/*
 * fsdpsim.h: the C interface of libfsdpsim: load a configuration, simulate it, read the result.
 *
 *     struct fsdpsim *sim = fsdpsim_new();
 *     const char *overrides[] = {"nodes=4"};
 *     if (fsdpsim_load(sim, "llama3-8b_dgx-h100", overrides, 1) != FSDPSIM_OK ||
 *         fsdpsim_run(sim) != FSDPSIM_OK)
 *         fputs(fsdpsim_messages(sim), stderr);
 *     double step_s;
 *     if (fsdpsim_metric(sim, "step_time_s", &step_s))
 *         printf("%.4f s\n", step_s);
 *     fsdpsim_free(sim);
 *
 * Metric names are the scalar keys of `fsdpsim run --json` (fsdpsim_metric_name lists them), in SI
 * units. A handle is used by one thread at a time; several handles may live at once. While the
 * major version is 0 the interface may change.
 *
 * A NULL or negative argument where none may be is a mistake like any other: FSDPSIM_INPUT with a
 * message, 0, or NULL; without a handle fsdpsim_messages says that one is missing. Out of memory
 * ends the process with exit status 1.
 */
#ifndef FSDPSIM_H
#define FSDPSIM_H

#ifdef __cplusplus
extern "C" {
#endif

#define FSDPSIM_API __attribute__((visibility("default")))

enum fsdpsim_status {
    FSDPSIM_OK = 0,
    FSDPSIM_WORLD = 1, /* a file could not be read */
    FSDPSIM_INPUT = 2  /* the configuration or an argument is wrong: see fsdpsim_messages */
};

struct fsdpsim;

FSDPSIM_API struct fsdpsim *fsdpsim_new(void);
FSDPSIM_API void fsdpsim_free(struct fsdpsim *sim); /* NULL: nothing */

/* `path`: a YAML file, or the name of a shipped configuration. Overrides as `-s key=value`;
   NULL and 0: none. May be called again: the earlier configuration and its result are dropped. */
FSDPSIM_API int fsdpsim_load(struct fsdpsim *sim, const char *path, const char *const *overrides,
                             int override_count);
FSDPSIM_API int fsdpsim_run(struct fsdpsim *sim);

/* 1 and the value, or 0: no such metric, not a number, not defined, or nothing ran. bool: 0 or 1.
 */
FSDPSIM_API int fsdpsim_metric(const struct fsdpsim *sim, const char *name, double *value);
/* Texts such as "bottleneck"; NULL like above. Valid until the next load or free. */
FSDPSIM_API const char *fsdpsim_text(const struct fsdpsim *sim, const char *name);
/* The i-th metric's name, NULL past the last. */
FSDPSIM_API const char *fsdpsim_metric_name(int index);
/* All errors, warnings and notes so far, one text; never NULL. */
FSDPSIM_API const char *fsdpsim_messages(struct fsdpsim *sim);
FSDPSIM_API const char *fsdpsim_version(void);

#ifdef __cplusplus
}
#endif

#endif
