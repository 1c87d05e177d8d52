/* tests/unit/cluster/main.c */
#include "cluster_tests.h"
#include "numeric/curve.h"

int main(int argc, char **argv)
{
    const struct check_suite suites[] = {{"cluster", cluster_cases},
                                         {"gemm", gemm_cases},
                                         {"gpu", gpu_cases},
                                         {"group", group_cases},
                                         {"holdout", holdout_cases},
                                         {"host cost", host_cost_cases},
                                         {"import", import_cases},
                                         {"import rings", import_ring_cases},
                                         {"import tables", import_table_cases},
                                         {"layout", layout_cases},
                                         {"partition", partition_cases},
                                         {"traffic", traffic_cases},
                                         {0}};
    numeric_init();
    return check_main(argc, argv, suites);
}
