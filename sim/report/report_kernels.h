/*
 * report/report_kernels.h: errors of kernel times by GPU and kind, one line a cell; for people, the
 * accuracy page and machines.
 */
#ifndef FSDPSIM_REPORT_REPORT_KERNELS_H
#define FSDPSIM_REPORT_REPORT_KERNELS_H

#include <stdio.h>

#include "study/validate_kernels.h"

void report_kernels(const struct kernel_validation *validation, FILE *file);
void report_kernels_markdown(const struct kernel_validation *validation, FILE *file);
void report_kernels_json(const struct kernel_validation *validation, FILE *file);

#endif
