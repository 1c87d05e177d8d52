/* cluster/calibration_config.h: a calibration file as bound. */
#ifndef FSDPSIM_CLUSTER_CALIBRATION_CONFIG_H
#define FSDPSIM_CLUSTER_CALIBRATION_CONFIG_H

#include "cluster/calibration.h"

struct calibration_error_config { /* of the fit against its data: shares of the measured time */
    double median, p90, max, leave_one_out;
    double repeat; /* how far repeats of a measurement lie apart, median */
};

struct calibration_table_config {
    int op; /* enum collective_op */
    int64_t nodes, gpus_per_node;
    const char *algorithm, *protocol;
    int fit; /* enum calibration_fit */
    double floor_s;
    struct config_list points; /* struct calibration_point */
    struct calibration_error_config error;
    const char *source;
};

struct calibration_config {
    int64_t version;
    const char *name, *summary;
    struct config_list tables; /* struct calibration_table_config */
};

#endif
