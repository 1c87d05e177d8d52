/* numeric/numeric_init.c: see curve.h. */
#include <gsl/gsl_errno.h>

#include "numeric/curve.h"

void numeric_init(void)
{
    gsl_set_error_handler_off();
}
