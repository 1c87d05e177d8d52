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

/* The digits of a number without its point and leading zeros, times 10^exponent. */
struct decimal {
    char digits[DIGITS_MAX + 1];
    int digit_count;
    int exponent;
};

static void decimal_add(struct decimal *decimal, char digit, bool is_fraction)
{
    const bool is_leading_zero = digit == '0' && decimal->digit_count == 0;
    const bool is_kept = !is_leading_zero && decimal->digit_count < DIGITS_MAX;
    if (is_kept)
        decimal->digits[decimal->digit_count++] = digit;
    if (is_fraction && (is_kept || is_leading_zero))
        decimal->exponent--;
    if (!is_fraction && !is_kept && !is_leading_zero)
        decimal->exponent++;
}

double number_scaled(const char *text, size_t length, int exponent10)
{
    struct decimal decimal = {.exponent = exponent10};
    const char *end = text + length;
    const bool is_negative = *text == '-';
    bool is_fraction = false;
    for (const char *c = text + (is_negative ? 1 : 0); c < end; c++) {
        if (*c == 'e' || *c == 'E') {
            decimal.exponent += exponent_at(c + 1, end);
            break;
        }
        if (*c == '.')
            is_fraction = true;
        else
            decimal_add(&decimal, *c, is_fraction);
    }
    /* Without a point strtod never meets the locale's; the 0 stands for no digits at all. */
    char copy[DIGITS_MAX + 32];
    snprintf(copy, sizeof(copy), "%s%s0e%d", is_negative ? "-" : "", decimal.digits,
             decimal.exponent - 1);
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
