/*
 * numeric/sobol.h: Sobol's sequence, points that fill a cube more evenly than random ones (GSL
 * gsl_qrng_sobol: Antonov and Saleev, USSR Comput. Math. Math. Phys. 19, 1980).
 *
 * Not scrambled; the point at the origin is left out. The first three points are (1/2, 1/2, …),
 * (3/4, 1/4, …), (1/4, 3/4, …): 2^m - 1 points divide each axis evenly. At most 40 dimensions.
 */
#ifndef FSDPSIM_NUMERIC_SOBOL_H
#define FSDPSIM_NUMERIC_SOBOL_H

enum { SOBOL_MAX_DIMENSIONS = 40 };

struct sobol;
struct sobol *sobol_new(int dimensions); /* 1 to SOBOL_MAX_DIMENSIONS */
void sobol_free(struct sobol *sobol);
void sobol_next(struct sobol *sobol, double *point); /* each 0 <= x < 1 */

#endif
