/* numeric/distribution.c: see distribution.h. */
#include "numeric/distribution.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

double unit_of_bits(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

double normal_quantile(double u)
{
    return gsl_cdf_ugaussian_Pinv(u);
}

double normal_max_quantile(double u, double n)
{
    /* From the nearer tail, which keeps its digits. */
    const double power = log(u) / n;
    return power < -1 ? gsl_cdf_ugaussian_Pinv(exp(power)) : gsl_cdf_ugaussian_Qinv(-expm1(power));
}

double lognormal_of_normal(double z, double sigma)
{
    return exp(sigma * z - sigma * sigma / 2);
}

double sample_quantile(const double *sorted, size_t count, double p)
{
    /* Rounding must not leave the two between which it lies. */
    const size_t below = (size_t)((double)(count - 1) * p);
    const size_t above = below + 1 < count ? below + 1 : below;
    const double quantile = gsl_stats_quantile_from_sorted_data(sorted, 1, count, p);
    return fmin(fmax(quantile, sorted[below]), sorted[above]);
}

double rank_correlation(const double *x, const double *y, size_t count, double *work)
{
    const double r = count > 1 ? gsl_stats_spearman(x, 1, y, 1, count, work) : 0;
    return isfinite(r) ? r : 0;
}
