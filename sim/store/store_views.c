/*
 * store/store_views.c: the views: what people ask of runs, in SQL.
 *
 *   v_runs       a row a run: all metrics, and the settings that are swept most
 *   v_sweep      a row a point of a sweep, with its run
 *   v_breakdown  a row a run and part of its step; the seconds add up to step_time_s
 *   v_scaling    runs that differ only in the number of GPUs, against the smallest of them
 *
 * Two runs are of one configuration where all they were given is the same but the number of hosts
 * and GPUs and the prices, and what the program derived from those; runs of a sweep without
 * --detail, of which only what was swept is stored, where that is the same in the same sweep.
 * Speed-up is in tokens per second, so that it means the same when the batch grows with the GPUs.
 * Example: 8 GPUs at 53,980 tokens/s, 32 at 221,085: speed-up 4.096, efficiency 102 %.
 */
#include "store/store_private.h"

/* Keys of the configuration that people sweep and that are no metric: columns of v_runs. */
static const struct swept_key {
    const char *column, *key, *help;
    bool is_integer;
    const char *other_key; /* where the value stands when `key` was not given */
} swept_keys[] = {
    {"nodes", "nodes", "hosts asked for", true, NULL},
    {"global_batch", "train.global_batch", "sequences of a step", true, NULL},
    {"optimizer", "train.optimizer.name", "optimizer", false, NULL},
    {"activation_checkpointing", "train.activation_checkpointing.policy", "what is recomputed",
     false, NULL},
    {"param_dtype", "train.precision.param_dtype", "type of compute and all-gather", false, NULL},
    {"reduce_dtype", "train.precision.reduce_dtype", "type of reduce-scatter", false, NULL},
    {"compile", "train.compile", "torch.compile", false, NULL},
    {"dp_replicate", "mesh.dp_replicate", "replicas (HSDP)", true, NULL},
    {"dp_shard", "mesh.dp_shard", "ranks that share a copy; -1: all", true, NULL},
    {"tp", "mesh.tp", "tensor parallel ranks", true, NULL},
    {"pp", "mesh.pp", "pipeline stages", true, NULL},
    {"cp", "mesh.cp", "context parallel ranks", true, NULL},
    {"ep", "mesh.ep", "expert parallel ranks", true, NULL},
    {"api", "fsdp.api", "sharding API", false, NULL},
    {"wrap", "fsdp.wrap.policy", "what makes a unit", false, NULL},
    {"reshard_after_forward", "fsdp.reshard_after_forward", "free gathered parameters", false,
     NULL},
    {"forward_prefetch", "fsdp.forward_prefetch", "units gathered ahead, forward", true, NULL},
    {"backward_prefetch", "fsdp.backward_prefetch", "prefetch in backward", false, NULL},
    {"nic_bandwidth", "cluster.host.nics.bandwidth", "of one NIC and direction", false,
     "cluster.host.nics.link.bandwidth"},
    {"seed", "simulate.seed", "random seed", true, NULL},
    {"network", "simulate.network", "flows or messages", false, NULL},
};
enum { SWEPT_KEY_COUNT = sizeof(swept_keys) / sizeof(swept_keys[0]) };

#define COLUMN(column, in, explains)                                                               \
    {                                                                                              \
        .name = (column), .unit = (in), .help = (explains)                                         \
    }

static const struct metric breakdown_columns[] = {
    COLUMN("run_id", "count", "run.id"),
    COLUMN("position", "count", "order of the parts of a run, from 0"),
    COLUMN(
        "category", "text",
        "compute, exposed_comm, memcpy (copies alone), checkpoint, data_wait, idle (none of them)"),
    COLUMN("seconds", "s", "of a step; all parts add up to step_time_s"),
    COLUMN("share", "1", "seconds / step_time_s"),
    {.name = NULL},
};

static const struct metric scaling_columns[] = {
    COLUMN("base_run_id", "count", "run.id of the run of this configuration with the fewest GPUs"),
    COLUMN("n_gpus", "count", "GPUs of the job"),
    COLUMN("run_id", "count", "run.id, of equal runs the latest"),
    COLUMN("config_name", "text", "name of the configuration"),
    COLUMN("model", "text", "network architecture"),
    COLUMN("cluster", "text", "cluster the step was simulated on"),
    COLUMN("policy", "text", "how the training state is sharded"),
    COLUMN("step_time_s", "s", "as in run"),
    COLUMN("tokens_per_s", "tokens/s", "as in run"),
    COLUMN("exposed_comm_fraction", "1", "as in run"),
    COLUMN("speedup", "1", "tokens_per_s over that of the base run"),
    COLUMN("efficiency", "1", "speedup over how many times more GPUs"),
    {.name = NULL},
};

static const char breakdown_sql[] =
    "CREATE VIEW v_breakdown AS\n"
    "SELECT id AS run_id, 0 AS position, 'compute' AS category, compute_s AS seconds,\n"
    " compute_s / step_time_s AS share FROM run\n"
    "UNION ALL SELECT id, 1, 'exposed_comm', exposed_comm_s, exposed_comm_s / step_time_s FROM "
    "run\n"
    "UNION ALL SELECT id, 2, 'memcpy', memcpy_s, memcpy_s / step_time_s FROM run\n"
    "UNION ALL SELECT id, 3, 'checkpoint', ifnull(checkpoint_s, 0),\n"
    " ifnull(checkpoint_s, 0) / step_time_s FROM run\n"
    "UNION ALL SELECT id, 4, 'data_wait', ifnull(data_wait_s, 0),\n"
    " ifnull(data_wait_s, 0) / step_time_s FROM run\n"
    "UNION ALL SELECT id, 5, 'idle',\n"
    " idle_s - memcpy_s - ifnull(checkpoint_s, 0) - ifnull(data_wait_s, 0),\n"
    " (idle_s - memcpy_s - ifnull(checkpoint_s, 0) - ifnull(data_wait_s, 0)) / step_time_s\n"
    " FROM run;\n";

/* What the number of GPUs decides stands in the configuration as derived; the origins say so. */
static const char scaling_sql[] =
    "CREATE VIEW v_scaling AS\n"
    "WITH given AS (\n"
    " SELECT run_id, group_concat(key || '=' || value, char(10)) AS configuration FROM (\n"
    "  SELECT run_id, key, value FROM run_config WHERE key NOT IN ('nodes', 'gpus_per_node',\n"
    "   'mesh.dp_shard', 'mesh.dp_replicate') AND key NOT LIKE 'cost.%' AND NOT (key IN\n"
    "   ('train.global_batch', 'train.grad_accum') AND origin IN\n"
    "   ('micro_batch x grad_accum x GPUs', 'global_batch, or 1'))\n"
    "  ORDER BY run_id, key)\n"
    " GROUP BY run_id),\n"
    "swept AS (\n"
    " SELECT run_id, min('sweep ' || sweep_id || ': ' || json_remove(settings, '$.nodes',\n"
    "  '$.gpus_per_node', '$.\"mesh.dp_shard\"', '$.\"mesh.dp_replicate\"')) AS configuration\n"
    " FROM sweep_point WHERE run_id IS NOT NULL GROUP BY run_id),\n"
    "keyed AS (\n"
    " SELECT run.*, ifnull(given.configuration, swept.configuration) AS configuration,\n"
    "  row_number() OVER (PARTITION BY config_hash ORDER BY id DESC) AS age\n"
    " FROM run LEFT JOIN given ON given.run_id = id LEFT JOIN swept ON swept.run_id = id)\n"
    "SELECT first_value(id) OVER family AS base_run_id, n_gpus, id AS run_id, config_name, model,\n"
    " cluster, policy, step_time_s, tokens_per_s, exposed_comm_fraction,\n"
    " tokens_per_s / first_value(tokens_per_s) OVER family AS speedup,\n"
    " tokens_per_s / first_value(tokens_per_s) OVER family * first_value(n_gpus) OVER family /\n"
    "  n_gpus AS efficiency\n"
    "FROM keyed WHERE age = 1 AND configuration IS NOT NULL\n"
    "WINDOW family AS (PARTITION BY configuration ORDER BY n_gpus, id);\n";

void store_add_views(struct strbuf *sql)
{
    strbuf_add(sql,
               "CREATE VIEW v_sweep AS SELECT p.sweep_id, p.position, p.settings, p.state,"
               " p.reason, run.*\nFROM sweep_point AS p LEFT JOIN run ON run.id = p.run_id;\n");
    strbuf_add(sql, "CREATE VIEW v_runs AS SELECT run.*");
    for (int i = 0; i < SWEPT_KEY_COUNT; i++) {
        const struct swept_key *swept = &swept_keys[i];
        strbuf_printf(sql,
                      ",\n (SELECT %s FROM run_config AS c WHERE c.run_id = run.id AND"
                      " c.key IN ('%s', '%s') ORDER BY length(c.key) LIMIT 1) AS %s",
                      swept->is_integer ? "CAST(c.value AS INTEGER)" : "c.value", swept->key,
                      swept->other_key != NULL ? swept->other_key : swept->key, swept->column);
    }
    strbuf_add(sql, "\nFROM run;\n");
    strbuf_add(sql, breakdown_sql);
    strbuf_add(sql, scaling_sql);
}

void store_drop_views(struct strbuf *sql)
{
    static const char *const views[] = {"v_runs", "v_sweep", "v_breakdown", "v_scaling"};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        strbuf_printf(sql, "DROP VIEW IF EXISTS %s;\n", views[i]);
}

void store_add_view_meta(struct meta_writer *meta)
{
    store_add_meta_columns(meta, "v_breakdown", breakdown_columns);
    store_add_meta_columns(meta, "v_scaling", scaling_columns);
    for (int i = 0; i < SWEPT_KEY_COUNT; i++)
        store_add_meta(meta, "v_runs", swept_keys[i].column,
                       swept_keys[i].is_integer ? "count" : "text", swept_keys[i].help);
}
