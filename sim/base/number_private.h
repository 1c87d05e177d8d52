/*
 * base/number_private.h: the one number syntax, inside base/.
 *
 *   -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
 *
 * No '+', nan, inf, hex; a leading 0 before a digit (octal elsewhere) is refused.
 */
#ifndef FSDPSIM_BASE_NUMBER_PRIVATE_H
#define FSDPSIM_BASE_NUMBER_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the number at the start of `text`, 0 when there is none. */
size_t number_length(const char *text);

/*
 * The number of the first `length` characters (from number_length) times 10^exponent10, correctly
 * rounded and independent of the locale. Infinite when out of range.
 */
double number_scaled(const char *text, size_t length, int exponent10);

#endif
