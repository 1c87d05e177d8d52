/*
 * base/units.h: the only place that knows units, prefixes, bits and GB against GiB.
 *
 * GB is 1e9 bytes, GiB is 2^30; `Gbps`, `Gb/s`, `Gbit/s` are bits per second and become bytes per
 * second; decimal and binary prefixes k M G T P E / Ki Mi Gi Ti Pi ('KB', written for 1000 and for
 * 1024, is unknown). Spaces between number and unit are allowed. Case matters ('b' is bit, 'B' is
 * byte; 'm' milli, 'M' mega). Decimal prefixes move the exponent before the text is rounded: 0.7 us
 * and 700 ns are the same double.
 */
#ifndef FSDPSIM_BASE_UNITS_H
#define FSDPSIM_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dimension {
    DIM_NONE,      /* plain number */
    DIM_BYTES,     /* B kB MB GB TB, KiB MiB GiB TiB */
    DIM_BANDWIDTH, /* bytes per second: GB/s GiB/s … and Gbps Gb/s Gbit/s */
    DIM_TIME,      /* seconds: ps ns us µs ms s min h */
    DIM_FLOP_RATE, /* FLOP per second: GFLOPS TFLOPS PFLOPS, GFLOP/s TFLOP/s PFLOP/s */
    DIM_FREQUENCY, /* hertz: MHz GHz */
    DIM_POWER,     /* watt: W kW */
    DIM_TOKENS,    /* a count of tokens: k M G B T, B as in '300B tokens' (1e9); or bare */
};

enum unit_error {
    UNIT_OK = 0,
    UNIT_NOT_A_NUMBER, /* no number at the start, nan, inf, hex, octal, trailing characters */
    UNIT_MISSING,      /* a bare number where a unit is needed */
    UNIT_UNKNOWN,      /* no such unit */
    UNIT_MISFIT,       /* a known unit of another dimension ('400 Gb' for a bandwidth) */
    UNIT_OVERFLOW,     /* not finite after scaling */
};

/*
 * Pure and total: any text gives a value or an error. `unit_start`, when not NULL, receives where
 * in the text the unit begins.
 */
enum unit_error units_parse(const char *text, enum dimension dimension, double *value,
                            size_t *unit_start);
/* "Gbps (Gb/s, Gbit/s) for bits; GB/s, GiB/s for bytes": for the hint of an error. */
const char *units_accepted(enum dimension dimension);
/* "bandwidth", "time", … */
const char *dimension_name(enum dimension dimension);

/*
 * Seconds (>= 0, finite) to integer picoseconds, rounding up; a value within 2^-40 (relative) of an
 * integer is that integer, since 0.01 s is not exact in binary. The only such conversion. Saturates
 * at INT64_MAX / 4.
 */
int64_t ps_from_s(double seconds);
double s_from_ps(int64_t ps);

/* Human forms into `out` (returned): "1.234 s", "12.3 ms", "79.6 GiB", "436.2 MB", "50 GB/s". */
char *format_seconds(char *out, size_t size, double seconds);
char *format_gib(char *out, size_t size, double bytes);   /* B, KiB, MiB, GiB */
char *format_bytes(char *out, size_t size, double bytes); /* B, kB, MB, GB, TB */
char *format_bandwidth(char *out, size_t size, double bytes_per_s);
char *format_count(char *out, size_t size, int64_t count); /* 8,030,261,248 */
/* A quantity of `dimension` as YAML that units_parse reads back to the same value. */
char *format_quantity(char *out, size_t size, double value, enum dimension dimension);

#endif
