/* cluster/cluster_private.h: the former name of cluster/cluster_config.h. */
#ifndef FSDPSIM_CLUSTER_CLUSTER_PRIVATE_H
#define FSDPSIM_CLUSTER_CLUSTER_PRIVATE_H

#include "cluster/cluster_config.h"

#endif
