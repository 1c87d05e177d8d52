/*
 * study/solve.h: the value of one key from which on, or up to which, conditions hold.
 *
 *   scan      the range is played at some points (log-spaced where its ends lie far apart), every
 *             value where there are few
 *   narrow    each place where the conditions begin or cease to hold is narrowed: a continuous key
 *             by Brent's method on the margin (numeric/root.h) until two neighbours are within the
 *             tolerance, whole numbers and lists by halving until they are next to each other
 *   look      where nothing holds, around the point that comes closest; where all holds, around
 *             the one that is closest to failing
 *
 * The margin of a condition is the distance of its metric from its bound over the bound, positive
 * where it holds; of several conditions ("and") the least counts. step_time_s<=0.5s at 0.6 s has
 * the margin -0.2. Of `fits` it is the free memory over the capacity.
 *
 * Which end is asked for follows from where the conditions hold: they hold at the low end and not
 * at the high one: the largest value; the other way round: the smallest; in the middle: the
 * smallest. At both ends, with a gap: where the margin grows from end to end, the smallest value
 * from which on they hold to the end of the range; else the largest up to which they hold from its
 * beginning. Everywhere: the end with the lesser margin. `wanted` forces one.
 *
 * A metric that turns by more than a thousandth of its range over the points is not monotone: the
 * turns are kept, and all intervals that the points see; what lies between two points that agree is
 * not seen. A value that is refused (hosts that do not divide a batch) is no point: it is kept with
 * its reason, and neighbours are played instead.
 *
 * Example: 700 MB over a NIC, in b GB/s, take 0.7/b s; step_time_s<=0.56s: the smallest is 1.25GB/s
 * with 0.56 s; just outside, at 1.249GB/s, it is 0.56045 s.
 */
#ifndef FSDPSIM_STUDY_SOLVE_H
#define FSDPSIM_STUDY_SOLVE_H

#include "run/condition.h"
#include "run/experiment.h"
#include "study/solve_knob.h"

enum solve_end { SOLVE_DERIVED, SOLVE_SMALLEST, SOLVE_LARGEST };
enum solve_result { SOLVE_FOUND, SOLVE_EVERYTHING, SOLVE_NOTHING };
enum solve_trend { TREND_NONE, TREND_FLAT, TREND_RISES, TREND_FALLS, TREND_TURNS };

extern const double solve_default_tolerance;

struct solve_request {
    const char *path;
    const char *const *overrides;
    int32_t override_count;
    const struct knob *knob;
    const struct condition *conditions;
    int32_t condition_count;
    enum solve_end wanted;
    double tolerance; /* between two neighbours of a continuous key: of the value (where the range
                         begins at 0 or below, of the range) */
    struct config_cache *cache;
    void *context;
    void (*has_played)(void *context, int64_t count); /* NULL: nobody asks */
};

struct solve_point {
    double at;          /* solve_knob.h */
    const char *value;  /* "112.34Gbps": what -s takes */
    const char *reason; /* why it is refused; NULL: it was played */
    bool meets;
    double margin;
    double *numbers; /* of each condition's metric; NaN: text, or not defined */
    const char **texts;
    double step_time_s;
    int64_t peak_device_bytes;
    bool fits;
    bool is_settled; /* nothing is left to do between it and the next one */
};

struct solve_place { /* in a list of points */
    struct solve_point *point;
};

struct solve_turn {
    const struct solve_point *point;
};

struct solve_interval { /* of points that meet all conditions */
    const struct solve_point *first, *last;
    const struct solve_point *before, *after; /* just outside; NULL: the range ends */
};

struct solve_metric { /* how the metric of a condition goes over the range */
    enum solve_trend trend;
    struct {
        struct solve_turn *items; /* first, turns, last */
        int32_t count, capacity;
    } turns;
};

struct solve {
    struct arena *arena;
    struct solve_request request;
    struct diag *diag;
    struct {
        struct solve_place *items; /* by `at` */
        int32_t count, capacity;
    } points; /* those that are refused, too */
    int32_t valid_count;
    struct {
        struct solve_interval *items;
        int32_t count, capacity;
    } intervals;
    struct solve_metric *metrics; /* by condition */
    enum solve_result result;
    enum solve_end wanted;             /* derived or forced */
    const struct solve_point *answer;  /* of NOTHING: the closest */
    const struct solve_point *outside; /* its neighbour that does not meet them; NULL: none */
    bool is_cut;                       /* too many values are refused: not every one was tried */
    bool has_sweep;                    /* the file has a section `sweep`, which is left out */
    struct experiment refused;         /* messages point into it */
};

/* All lives in `arena`; every mistake is in `diag`. Whatever the status, release it afterwards. */
MUST_CHECK enum status solve_run(struct solve *solve, struct arena *arena,
                                 const struct solve_request *request, struct diag *diag);
void solve_release(struct solve *solve); /* accepts a zeroed one */
/* Loads the experiment of a point; as experiment_load. */
MUST_CHECK enum status solve_load(const struct solve *solve, const struct solve_point *point,
                                  struct arena *scratch, struct experiment *experiment,
                                  struct diag *diag);
/* The next point after `index` that was played, -1: none; from -1 on the first. */
int32_t solve_next_valid(const struct solve *solve, int32_t index);
/* The first and the last point that was played. */
const struct solve_point *solve_low(const struct solve *solve);
const struct solve_point *solve_high(const struct solve *solve);

#endif
