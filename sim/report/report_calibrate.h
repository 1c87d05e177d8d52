/*
 * report/report_calibrate.h: fits of measured collectives: beside their data for people, for
 * machines, and as the YAML that a cluster names (cluster/calibration.h).
 */
#ifndef FSDPSIM_REPORT_REPORT_CALIBRATE_H
#define FSDPSIM_REPORT_REPORT_CALIBRATE_H

#include <stdio.h>

#include "base/diag.h"
#include "collective/calibrate.h"

void report_calibrate(const struct calibrate_set *set, FILE *file);
void report_calibrate_json(const struct calibrate_set *set, FILE *file);
void calibrate_write_yaml(const struct calibrate_set *set, const char *name, FILE *file);

/* What looks wrong in the measurements, as warnings. */
void calibrate_warn(const struct calibrate_set *set, struct diag *diag);

#endif
