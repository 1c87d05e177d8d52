/*
 * numeric/distribution.h: quantiles of the normal and lognormal law, of the largest of n draws, and
 * of samples (GSL: gsl_cdf_ugaussian_Pinv and Qinv, gsl_stats_quantile_from_sorted_data,
 * gsl_stats_spearman).
 *
 *     largest of n draws    P(max <= x) = F(x)^n, so its u-quantile is F^-1(u^(1/n))
 *     lognormal, mean 1     exp(sigma z - sigma^2/2), z standard normal
 *     quantile, type 7      x_k + (h - k)(x_(k+1) - x_k), h = (n - 1) p, k = floor(h), from k = 0
 *                           (Hyndman and Fan, "Sample quantiles in statistical packages", The
 *                           American Statistician 50, 1996; what NumPy and R do by default)
 *
 * Example: the median of the largest of 64 standard normal draws is 2.298; the 5 % quantile of
 * 1, 2, …, 21 is 2.
 */
#ifndef FSDPSIM_NUMERIC_DISTRIBUTION_H
#define FSDPSIM_NUMERIC_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>

/* The middle of one of 2^52 equal parts of (0, 1): never 0, never 1. */
double unit_of_bits(uint64_t bits);

double normal_quantile(double u);                   /* 0 < u < 1 */
double normal_max_quantile(double u, double n);     /* of the largest of n >= 1 draws */
double lognormal_of_normal(double z, double sigma); /* of mean 1 */
double sample_quantile(const double *sorted, size_t count, double p); /* type 7; count > 0 */
/* Spearman's: of ranks, in [-1, 1]; 0 where one of the two does not vary. `work`: 2 * count. */
double rank_correlation(const double *x, const double *y, size_t count, double *work);

#endif
