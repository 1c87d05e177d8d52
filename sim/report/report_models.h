/*
 * report/report_models.h: errors of whole models on one GPU, by GPU and model, and row by row; for
 * people, the accuracy page and machines.
 */
#ifndef FSDPSIM_REPORT_REPORT_MODELS_H
#define FSDPSIM_REPORT_REPORT_MODELS_H

#include <stdio.h>

#include "study/validate_models.h"

void report_models(const struct model_validation *validation, FILE *file);
void report_models_markdown(const struct model_validation *validation, FILE *file);
void report_models_json(const struct model_validation *validation, FILE *file);

#endif
