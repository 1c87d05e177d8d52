/*
 * machine/sum_private.h: a compensated sum (Knuth's two-sum): adding a term and taking it away
 * again leaves what was there before.
 *
 * Example: 1e16 + 1 - 1e16 is 0 in doubles, and 1 here.
 */
#ifndef FSDPSIM_MACHINE_SUM_PRIVATE_H
#define FSDPSIM_MACHINE_SUM_PRIVATE_H

struct sum {
    double high, low;
};

static inline void sum_add(struct sum *sum, double x)
{
    const double total = sum->high + x;
    const double part = total - sum->high;
    sum->low += (sum->high - (total - part)) + (x - part);
    sum->high = total;
}

static inline double sum_value(const struct sum *sum)
{
    return sum->high + sum->low;
}

#endif
