/* numeric/sobol.c: see sobol.h. */
#include "numeric/sobol.h"

#include <gsl/gsl_qrng.h>

#include "base/status.h"

/* The generator itself, under a name of ours. */
static gsl_qrng *generator_of(struct sobol *sobol)
{
    return (gsl_qrng *)(void *)sobol;
}

struct sobol *sobol_new(int dimensions)
{
    BUG_IF(dimensions < 1 || dimensions > SOBOL_MAX_DIMENSIONS);
    gsl_qrng *generator = gsl_qrng_alloc(gsl_qrng_sobol, (unsigned)dimensions);
    if (generator == NULL)
        out_of_memory(0);
    return (struct sobol *)(void *)generator;
}

void sobol_free(struct sobol *sobol)
{
    if (sobol != NULL)
        gsl_qrng_free(generator_of(sobol));
}

void sobol_next(struct sobol *sobol, double *point)
{
    const int failure = gsl_qrng_get(generator_of(sobol), point);
    BUG_IF(failure != 0);
}
