/* base/number.c: see number_private.h, and the text_to_* functions of strbuf.h. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_private.h"
#include "base/strbuf.h"

/* More digits than any double needs to be told from its neighbours (767). */
enum { DIGITS_MAX = 800, EXPONENT_MAX = 100000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text)
{
    size_t n = 0;
    while (is_digit(text[n]))
        n++;
    return n;
}

size_t number_length(const char *text)
{
    size_t at = text[0] == '-' ? 1 : 0;
    const size_t whole = digits(text + at);
    if (whole == 0 || (whole > 1 && text[at] == '0'))
        return 0;
    at += whole;
    if (text[at] == '.') {
        const size_t fraction = digits(text + at + 1);
        if (fraction == 0)
            return 0;
        at += 1 + fraction;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        const size_t sign = text[at + 1] == '+' || text[at + 1] == '-' ? 1 : 0;
        const size_t power = digits(text + at + 1 + sign);
        if (power > 0)
            at += 1 + sign + power;
    }
    return at;
}

/* The written exponent, held within ±EXPONENT_MAX. */
static int exponent_at(const char *text, const char *end)
{
    const bool is_negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    int value = 0;
    for (; text < end; text++)
        value = value < EXPONENT_MAX ? value * 10 + (*text - '0') : EXPONENT_MAX;
    return is_negative ? -value : value;
}

double number_scaled(const char *text, size_t length, int exponent10)
{
    /* Digits without a point and an exponent: strtod then never meets the locale's point. */
    char copy[DIGITS_MAX + 32];
    size_t used = 0;
    int digit_count = 0;
    int exponent = exponent10;
    bool is_fraction = false;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        if (c == '.') {
            is_fraction = true;
        } else if (c == 'e' || c == 'E') {
            exponent += exponent_at(text + i + 1, text + length);
            break;
        } else if (c == '-') {
            copy[used++] = c;
        } else if (digit_count < DIGITS_MAX) {
            copy[used++] = c;
            /* Leading zeros do not use up the room. */
            digit_count += c != '0' || digit_count > 0 ? 1 : 0;
            used -= digit_count == 0 ? 1u : 0u;
            exponent -= is_fraction ? 1 : 0;
        } else {
            exponent += is_fraction ? 0 : 1;
        }
    }
    if (digit_count == 0)
        copy[used++] = '0';
    snprintf(copy + used, sizeof(copy) - used, "e%d", exponent);
    return strtod(copy, NULL);
}

bool text_to_double(const char *text, double *value)
{
    const size_t length = number_length(text);
    if (length == 0 || text[length] != '\0')
        return false;
    const double number = number_scaled(text, length, 0);
    if (!isfinite(number))
        return false;
    *value = number;
    return true;
}

bool text_to_int64(const char *text, int64_t *value)
{
    const bool is_negative = text[0] == '-';
    const char *digit = text + (is_negative ? 1 : 0);
    const size_t count = digits(digit);
    if (count == 0 || digit[count] != '\0' || (count > 1 && digit[0] == '0'))
        return false;
    /* Negative throughout: INT64_MIN has no positive twin. */
    int64_t number = 0;
    for (; *digit != '\0'; digit++) {
        const int64_t next = *digit - '0';
        if (number < (INT64_MIN + next) / 10)
            return false;
        number = number * 10 - next;
    }
    if (!is_negative && number == INT64_MIN)
        return false;
    *value = is_negative ? number : -number;
    return true;
}
