/*
 * model/module_name.h: names of modules as users write them: "layers.*.mlp", "layers.0-15".
 *
 * Words between dots are compared one by one; * stands for any word, a-b for the numbers from a to
 * b.
 */
#ifndef FSDPSIM_MODEL_MODULE_NAME_H
#define FSDPSIM_MODEL_MODULE_NAME_H

#include <stdbool.h>

bool module_name_matches(const char *name, const char *pattern);

#endif
