/* report/report_model.h: `fsdpsim model show`: the tree of a model as text and as JSON. */
#ifndef FSDPSIM_REPORT_REPORT_MODEL_H
#define FSDPSIM_REPORT_REPORT_MODEL_H

#include <stdio.h>

#include "model/model_tree.h"

void report_model(const struct model *model, const struct model_tree *tree, FILE *file);
/* One object: `parameters`, `active_parameters` (tied weights once), totals, `tree`. */
void report_model_json(const struct model *model, const struct model_tree *tree, FILE *file);

#endif
