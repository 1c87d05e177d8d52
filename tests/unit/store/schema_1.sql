-- Schema 1 as the last program with it wrote it: with offload, without the allocator.
-- Two runs of tests/golden/two-blocks.yaml, with 1 and 2 sequences a GPU; rows of meta, run_config,
-- unit_time, link_use and collective left out.
PRAGMA application_id = 1718838384;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE collective (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 position INTEGER NOT NULL,
 op TEXT NOT NULL,
 communicator TEXT NOT NULL,
 count INTEGER NOT NULL,
 bytes REAL NOT NULL CONSTRAINT "bytes is finite" CHECK (abs(bytes) <= 1.7976931348623157e308),
 alone_s REAL NOT NULL CONSTRAINT "alone_s is finite" CHECK (abs(alone_s) <= 1.7976931348623157e308),
 busbw_bytes_per_s REAL NOT NULL CONSTRAINT "busbw_bytes_per_s is finite" CHECK (abs(busbw_bytes_per_s) <= 1.7976931348623157e308),
 PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "collective" VALUES(1,0,'all_gather','dp_shard',2,3072.0,1.536e-06,1000000000.0);
INSERT INTO "collective" VALUES(1,1,'all_gather','dp_shard',4,5440.0,2.72e-06,1.00000000000000011926e+09);
INSERT INTO "collective" VALUES(2,0,'all_gather','dp_shard',2,3072.0,1.536e-06,1000000000.0);
INSERT INTO "collective" VALUES(2,1,'all_gather','dp_shard',4,5440.0,2.72e-06,1.00000000000000011926e+09);
CREATE TABLE link_use (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 position INTEGER NOT NULL,
 name TEXT NOT NULL,
 capacity_bytes_per_s REAL NOT NULL CONSTRAINT "capacity_bytes_per_s is finite" CHECK (abs(capacity_bytes_per_s) <= 1.7976931348623157e308),
 instances INTEGER NOT NULL,
 bytes REAL NOT NULL CONSTRAINT "bytes is finite" CHECK (abs(bytes) <= 1.7976931348623157e308),
 busy_frac REAL NOT NULL CONSTRAINT "busy_frac is finite" CHECK (abs(busy_frac) <= 1.7976931348623157e308),
 utilisation REAL NOT NULL CONSTRAINT "utilisation is finite" CHECK (abs(utilisation) <= 1.7976931348623157e308),
 PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "link_use" VALUES(1,0,'HBM',1.0e+15,2,1171856.0,8.25138604553352528626e-05,3.59859927271110344258e-05);
INSERT INTO "link_use" VALUES(1,1,'scale-up out (ideal)',1000000000.0,2,32564.0,9.99993059868826694724e-01,9.99993059868826694724e-01);
INSERT INTO "link_use" VALUES(2,0,'HBM',1.0e+15,2,1933328.0,1.48690774962684506711e-04,5.93696899167816838924e-05);
INSERT INTO "link_use" VALUES(2,1,'scale-up out (ideal)',1000000000.0,2,32564.0,9.99993059868826694724e-01,9.99993059868826694724e-01);
CREATE TABLE memory_peak (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 category TEXT NOT NULL,
 bytes INTEGER NOT NULL,
 PRIMARY KEY (run_id, category)
) STRICT, WITHOUT ROWID;
INSERT INTO "memory_peak" VALUES(1,'activations',50176);
INSERT INTO "memory_peak" VALUES(1,'cached',32256);
INSERT INTO "memory_peak" VALUES(1,'communicators',0);
INSERT INTO "memory_peak" VALUES(1,'context',0);
INSERT INTO "memory_peak" VALUES(1,'gradients',0);
INSERT INTO "memory_peak" VALUES(1,'logits',36864);
INSERT INTO "memory_peak" VALUES(1,'optimizer',51200);
INSERT INTO "memory_peak" VALUES(1,'parameters',25600);
INSERT INTO "memory_peak" VALUES(1,'reduce_buffers',0);
INSERT INTO "memory_peak" VALUES(1,'temporaries',0);
INSERT INTO "memory_peak" VALUES(1,'unsharded_gradients',0);
INSERT INTO "memory_peak" VALUES(1,'unsharded_parameters',4096);
INSERT INTO "memory_peak" VALUES(1,'workspace',0);
INSERT INTO "memory_peak" VALUES(2,'activations',98304);
INSERT INTO "memory_peak" VALUES(2,'cached',32256);
INSERT INTO "memory_peak" VALUES(2,'communicators',0);
INSERT INTO "memory_peak" VALUES(2,'context',0);
INSERT INTO "memory_peak" VALUES(2,'gradients',0);
INSERT INTO "memory_peak" VALUES(2,'logits',73728);
INSERT INTO "memory_peak" VALUES(2,'optimizer',51200);
INSERT INTO "memory_peak" VALUES(2,'parameters',25600);
INSERT INTO "memory_peak" VALUES(2,'reduce_buffers',0);
INSERT INTO "memory_peak" VALUES(2,'temporaries',0);
INSERT INTO "memory_peak" VALUES(2,'unsharded_gradients',0);
INSERT INTO "memory_peak" VALUES(2,'unsharded_parameters',4096);
INSERT INTO "memory_peak" VALUES(2,'workspace',0);
CREATE TABLE meta (
 table_name TEXT NOT NULL,
 column_name TEXT NOT NULL,
 unit TEXT NOT NULL,
 help TEXT NOT NULL,
 PRIMARY KEY (table_name, column_name)
) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('run','backward_s','s','backward phase');
INSERT INTO "meta" VALUES('run','bottleneck','text','what bounds the step: compute, host or a link');
INSERT INTO "meta" VALUES('run','cluster','text','cluster the step was simulated on');
INSERT INTO "meta" VALUES('run','comm_bytes_per_gpu','bytes','sent by each GPU in a step');
INSERT INTO "meta" VALUES('run','comm_s','s','collective kernels run, waiting included (union of intervals)');
INSERT INTO "meta" VALUES('run','comm_wait_s','s','part of comm_s spent waiting for other ranks');
INSERT INTO "meta" VALUES('run','compute_s','s','compute kernels run (union of intervals)');
INSERT INTO "meta" VALUES('run','config_hash','text','128-bit hash of the resolved content, the seed and model_version');
INSERT INTO "meta" VALUES('run','config_name','text','name of the configuration');
INSERT INTO "meta" VALUES('run','copy_s','s','part of compute_s that is FSDP''s own copies and casts');
INSERT INTO "meta" VALUES('run','created_utc','text','when it was stored');
INSERT INTO "meta" VALUES('run','events','count','events played by the simulator');
INSERT INTO "meta" VALUES('run','exposed_comm_fraction','1','exposed_comm_s / step_time_s');
INSERT INTO "meta" VALUES('run','exposed_comm_s','s','communication runs and no compute does');
INSERT INTO "meta" VALUES('run','fingerprint','text','64-bit hash of the trajectory of events');
INSERT INTO "meta" VALUES('run','first_step_peak_active_bytes','bytes','peak_active_bytes of the very first step');
INSERT INTO "meta" VALUES('run','fits','bool','the device peak is within the capacity, and peak_host_bytes within the host''s');
INSERT INTO "meta" VALUES('run','forward_s','s','forward phase');
INSERT INTO "meta" VALUES('run','fsdpsim_version','text','program version');
INSERT INTO "meta" VALUES('run','gpu','text','kind of GPU');
INSERT INTO "meta" VALUES('run','gpus_per_node','count','GPUs used on each host');
INSERT INTO "meta" VALUES('run','grad_accum','count','microbatches of a step');
INSERT INTO "meta" VALUES('run','hfu','1','the same with recomputed FLOPs counted');
INSERT INTO "meta" VALUES('run','host_memory_bytes','bytes','memory of one host; 0: the cluster does not say');
INSERT INTO "meta" VALUES('run','id','count','number of the run in this file');
INSERT INTO "meta" VALUES('run','idle_s','s','neither compute nor communication runs');
INSERT INTO "meta" VALUES('run','memcpy_s','s','part of idle_s in which only host-device copies run');
INSERT INTO "meta" VALUES('run','memory_capacity_bytes','bytes','memory of one GPU as the driver reports it');
INSERT INTO "meta" VALUES('run','memory_over_bytes','bytes','by how much the device peak exceeds the capacity; 0: it fits');
INSERT INTO "meta" VALUES('run','mfu','1','model FLOP/s over dense peak, by mfu_convention');
INSERT INTO "meta" VALUES('run','mfu_convention','text','how model FLOPs are counted for mfu');
INSERT INTO "meta" VALUES('run','micro_batch','count','sequences per GPU and microbatch');
INSERT INTO "meta" VALUES('run','model','text','network architecture');
INSERT INTO "meta" VALUES('run','model_version','count','moves when the same input gives other numbers');
INSERT INTO "meta" VALUES('run','n_gpus','count','GPUs of the job');
INSERT INTO "meta" VALUES('run','n_nodes','count','hosts of the job');
INSERT INTO "meta" VALUES('run','optimizer_s','s','optimizer phase');
INSERT INTO "meta" VALUES('run','overlap_fraction','1','1 - exposed_comm_s / comm_s; 0 without communication');
INSERT INTO "meta" VALUES('run','parameters','count','parameters of the model');
INSERT INTO "meta" VALUES('run','peak_active_bytes','bytes','most that the program holds allocated');
INSERT INTO "meta" VALUES('run','peak_allocated_bytes','bytes','as max_memory_allocated: what is freed counts no longer, though a stream may still use it');
INSERT INTO "meta" VALUES('run','peak_at','text','what was allocated when the peak was reached');
INSERT INTO "meta" VALUES('run','peak_device_bytes','bytes','reserved, context, communicators and workspaces');
INSERT INTO "meta" VALUES('run','peak_host_bytes','bytes','training states that offload keeps in the memory of one host');
INSERT INTO "meta" VALUES('run','peak_reserved_bytes','bytes','most that the caching allocator''s pools hold');
INSERT INTO "meta" VALUES('run','policy','text','how the training state is sharded: fsdp2, ...');
INSERT INTO "meta" VALUES('run','seq_len','tokens','tokens of a sequence');
INSERT INTO "meta" VALUES('run','step_time_s','s','end of one optimizer step to the end of the next, slowest rank class');
INSERT INTO "meta" VALUES('run','tflops_per_gpu','TFLOP/s','model FLOPs per second and GPU, 1e12');
INSERT INTO "meta" VALUES('run','tokens_per_s','tokens/s','tokens of the whole job per second');
INSERT INTO "meta" VALUES('run','tokens_per_s_per_gpu','tokens/s','tokens per second and GPU');
INSERT INTO "meta" VALUES('run','tokens_per_step','tokens','tokens of the whole job in a step');
CREATE TABLE metric (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 name TEXT NOT NULL,
 value REAL NOT NULL CONSTRAINT "value is finite" CHECK (abs(value) <= 1.7976931348623157e308),
 unit TEXT NOT NULL,
 PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "metric" VALUES(1,'backward_s',2.4031855e-05,'s');
INSERT INTO "metric" VALUES(1,'comm_bytes_per_gpu',32564.0,'bytes');
INSERT INTO "metric" VALUES(1,'comm_s',3.2564e-05,'s');
INSERT INTO "metric" VALUES(1,'comm_wait_s',0.0,'s');
INSERT INTO "metric" VALUES(1,'compute_s',2.687e-09,'s');
INSERT INTO "metric" VALUES(1,'copy_s',2.46e-10,'s');
INSERT INTO "metric" VALUES(1,'events',91.0,'count');
INSERT INTO "metric" VALUES(1,'exposed_comm_fraction',9.99917486139544675616e-01,'1');
INSERT INTO "metric" VALUES(1,'exposed_comm_s',3.2561539e-05,'s');
INSERT INTO "metric" VALUES(1,'first_step_peak_active_bytes',116736.0,'bytes');
INSERT INTO "metric" VALUES(1,'fits',1.0,'bool');
INSERT INTO "metric" VALUES(1,'forward_s',8.528198e-06,'s');
INSERT INTO "metric" VALUES(1,'gpus_per_node',2.0,'count');
INSERT INTO "metric" VALUES(1,'grad_accum',1.0,'count');
INSERT INTO "metric" VALUES(1,'hfu',5.33002074116547402971e-05,'1');
INSERT INTO "metric" VALUES(1,'host_memory_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(1,'idle_s',0.0,'s');
INSERT INTO "metric" VALUES(1,'memcpy_s',0.0,'s');
INSERT INTO "metric" VALUES(1,'memory_capacity_bytes',80000000000.0,'bytes');
INSERT INTO "metric" VALUES(1,'memory_over_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(1,'mfu',5.33002074116547402971e-05,'1');
INSERT INTO "metric" VALUES(1,'micro_batch',1.0,'count');
INSERT INTO "metric" VALUES(1,'n_gpus',2.0,'count');
INSERT INTO "metric" VALUES(1,'n_nodes',1.0,'count');
INSERT INTO "metric" VALUES(1,'optimizer_s',4.173e-09,'s');
INSERT INTO "metric" VALUES(1,'overlap_fraction',7.55742537771331157614e-05,'1');
INSERT INTO "metric" VALUES(1,'parameters',8528.0,'count');
INSERT INTO "metric" VALUES(1,'peak_active_bytes',167936.0,'bytes');
INSERT INTO "metric" VALUES(1,'peak_allocated_bytes',167936.0,'bytes');
INSERT INTO "metric" VALUES(1,'peak_device_bytes',200192.0,'bytes');
INSERT INTO "metric" VALUES(1,'peak_host_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(1,'peak_reserved_bytes',200192.0,'bytes');
INSERT INTO "metric" VALUES(1,'seq_len',32.0,'tokens');
INSERT INTO "metric" VALUES(1,'step_time_s',3.2564226e-05,'s');
INSERT INTO "metric" VALUES(1,'tflops_per_gpu',5.33002074116547402971e-02,'TFLOP/s');
INSERT INTO "metric" VALUES(1,'tokens_per_s',1.96534688096072059125e+06,'tokens/s');
INSERT INTO "metric" VALUES(1,'tokens_per_s_per_gpu',9.82673440480360295586e+05,'tokens/s');
INSERT INTO "metric" VALUES(1,'tokens_per_step',64.0,'tokens');
INSERT INTO "metric" VALUES(2,'backward_s',2.4031695e-05,'s');
INSERT INTO "metric" VALUES(2,'comm_bytes_per_gpu',32564.0,'bytes');
INSERT INTO "metric" VALUES(2,'comm_s',3.2564e-05,'s');
INSERT INTO "metric" VALUES(2,'comm_wait_s',0.0,'s');
INSERT INTO "metric" VALUES(2,'compute_s',4.842e-09,'s');
INSERT INTO "metric" VALUES(2,'copy_s',2.48e-10,'s');
INSERT INTO "metric" VALUES(2,'events',91.0,'count');
INSERT INTO "metric" VALUES(2,'exposed_comm_fraction',9.99851309225037288008e-01,'1');
INSERT INTO "metric" VALUES(2,'exposed_comm_s',3.2559384e-05,'s');
INSERT INTO "metric" VALUES(2,'first_step_peak_active_bytes',201728.0,'bytes');
INSERT INTO "metric" VALUES(2,'fits',1.0,'bool');
INSERT INTO "metric" VALUES(2,'forward_s',8.528358e-06,'s');
INSERT INTO "metric" VALUES(2,'gpus_per_node',2.0,'count');
INSERT INTO "metric" VALUES(2,'grad_accum',1.0,'count');
INSERT INTO "metric" VALUES(2,'hfu',1.06600414823309480594e-04,'1');
INSERT INTO "metric" VALUES(2,'host_memory_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(2,'idle_s',0.0,'s');
INSERT INTO "metric" VALUES(2,'memcpy_s',0.0,'s');
INSERT INTO "metric" VALUES(2,'memory_capacity_bytes',80000000000.0,'bytes');
INSERT INTO "metric" VALUES(2,'memory_over_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(2,'mfu',1.06600414823309480594e-04,'1');
INSERT INTO "metric" VALUES(2,'micro_batch',2.0,'count');
INSERT INTO "metric" VALUES(2,'n_gpus',2.0,'count');
INSERT INTO "metric" VALUES(2,'n_nodes',1.0,'count');
INSERT INTO "metric" VALUES(2,'optimizer_s',4.173e-09,'s');
INSERT INTO "metric" VALUES(2,'overlap_fraction',1.41751627564135063153e-04,'1');
INSERT INTO "metric" VALUES(2,'parameters',8528.0,'count');
INSERT INTO "metric" VALUES(2,'peak_active_bytes',252928.0,'bytes');
INSERT INTO "metric" VALUES(2,'peak_allocated_bytes',252928.0,'bytes');
INSERT INTO "metric" VALUES(2,'peak_device_bytes',285184.0,'bytes');
INSERT INTO "metric" VALUES(2,'peak_host_bytes',0.0,'bytes');
INSERT INTO "metric" VALUES(2,'peak_reserved_bytes',285184.0,'bytes');
INSERT INTO "metric" VALUES(2,'seq_len',32.0,'tokens');
INSERT INTO "metric" VALUES(2,'step_time_s',3.2564226e-05,'s');
INSERT INTO "metric" VALUES(2,'tflops_per_gpu',1.06600414823309480594e-01,'TFLOP/s');
INSERT INTO "metric" VALUES(2,'tokens_per_s',3.93069376192144118251e+06,'tokens/s');
INSERT INTO "metric" VALUES(2,'tokens_per_s_per_gpu',1.96534688096072059125e+06,'tokens/s');
INSERT INTO "metric" VALUES(2,'tokens_per_step',128.0,'tokens');
CREATE TABLE run (
 id INTEGER NOT NULL PRIMARY KEY,
 created_utc TEXT NOT NULL,
 fsdpsim_version TEXT NOT NULL,
 model_version INTEGER NOT NULL,
 config_hash TEXT NOT NULL,
 fingerprint TEXT NOT NULL,
 model TEXT NOT NULL,
 cluster TEXT NOT NULL,
 n_gpus INTEGER NOT NULL,
 step_time_s REAL NOT NULL CONSTRAINT "step_time_s is finite" CHECK (abs(step_time_s) <= 1.7976931348623157e308),
 tokens_per_s REAL NOT NULL CONSTRAINT "tokens_per_s is finite" CHECK (abs(tokens_per_s) <= 1.7976931348623157e308),
 tokens_per_s_per_gpu REAL NOT NULL CONSTRAINT "tokens_per_s_per_gpu is finite" CHECK (abs(tokens_per_s_per_gpu) <= 1.7976931348623157e308),
 mfu REAL CONSTRAINT "mfu is finite" CHECK (abs(mfu) <= 1.7976931348623157e308),
 hfu REAL CONSTRAINT "hfu is finite" CHECK (abs(hfu) <= 1.7976931348623157e308),
 tflops_per_gpu REAL CONSTRAINT "tflops_per_gpu is finite" CHECK (abs(tflops_per_gpu) <= 1.7976931348623157e308),
 compute_s REAL NOT NULL CONSTRAINT "compute_s is finite" CHECK (abs(compute_s) <= 1.7976931348623157e308),
 comm_s REAL NOT NULL CONSTRAINT "comm_s is finite" CHECK (abs(comm_s) <= 1.7976931348623157e308),
 comm_wait_s REAL NOT NULL CONSTRAINT "comm_wait_s is finite" CHECK (abs(comm_wait_s) <= 1.7976931348623157e308),
 copy_s REAL NOT NULL CONSTRAINT "copy_s is finite" CHECK (abs(copy_s) <= 1.7976931348623157e308),
 exposed_comm_s REAL NOT NULL CONSTRAINT "exposed_comm_s is finite" CHECK (abs(exposed_comm_s) <= 1.7976931348623157e308),
 idle_s REAL NOT NULL CONSTRAINT "idle_s is finite" CHECK (abs(idle_s) <= 1.7976931348623157e308),
 memcpy_s REAL NOT NULL CONSTRAINT "memcpy_s is finite" CHECK (abs(memcpy_s) <= 1.7976931348623157e308),
 exposed_comm_fraction REAL NOT NULL CONSTRAINT "exposed_comm_fraction is finite" CHECK (abs(exposed_comm_fraction) <= 1.7976931348623157e308),
 overlap_fraction REAL NOT NULL CONSTRAINT "overlap_fraction is finite" CHECK (abs(overlap_fraction) <= 1.7976931348623157e308),
 peak_active_bytes INTEGER NOT NULL,
 peak_reserved_bytes INTEGER NOT NULL,
 peak_device_bytes INTEGER NOT NULL,
 memory_capacity_bytes INTEGER NOT NULL,
 fits INTEGER NOT NULL CONSTRAINT "fits is 0 or 1" CHECK (fits IN (0, 1)),
 comm_bytes_per_gpu REAL NOT NULL CONSTRAINT "comm_bytes_per_gpu is finite" CHECK (abs(comm_bytes_per_gpu) <= 1.7976931348623157e308),
 bottleneck TEXT NOT NULL,
 events INTEGER NOT NULL,
 config_name TEXT NOT NULL,
 policy TEXT NOT NULL,
 gpu TEXT NOT NULL,
 n_nodes INTEGER NOT NULL,
 gpus_per_node INTEGER NOT NULL,
 parameters INTEGER NOT NULL,
 seq_len INTEGER NOT NULL,
 micro_batch INTEGER NOT NULL,
 grad_accum INTEGER NOT NULL,
 tokens_per_step INTEGER NOT NULL,
 mfu_convention TEXT NOT NULL,
 forward_s REAL NOT NULL CONSTRAINT "forward_s is finite" CHECK (abs(forward_s) <= 1.7976931348623157e308),
 backward_s REAL NOT NULL CONSTRAINT "backward_s is finite" CHECK (abs(backward_s) <= 1.7976931348623157e308),
 optimizer_s REAL NOT NULL CONSTRAINT "optimizer_s is finite" CHECK (abs(optimizer_s) <= 1.7976931348623157e308),
 first_step_peak_active_bytes INTEGER NOT NULL,
 peak_allocated_bytes INTEGER NOT NULL,
 memory_over_bytes INTEGER NOT NULL,
 peak_at TEXT NOT NULL,
 peak_host_bytes INTEGER NOT NULL,
 host_memory_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO "run" VALUES(1,'2026-11-30T03:33:10Z','0.1.0',1,'0c20dd77fb42f9746b0548ebf724941f','54fbfe08dca4f212','two-blocks','ideal-2x1gbs',2,3.2564226e-05,1.96534688096072059125e+06,9.82673440480360295586e+05,5.33002074116547402971e-05,5.33002074116547402971e-05,5.33002074116547402971e-02,2.687e-09,3.2564e-05,0.0,2.46e-10,3.2561539e-05,0.0,0.0,9.99917486139544675616e-01,7.55742537771331157614e-05,167936,200192,200192,80000000000,1,32564.0,'scale-up out (ideal)',91,'two-blocks','fsdp2','ideal-gpu',1,2,8528,32,1,1,64,'torchtitan',8.528198e-06,2.4031855e-05,4.173e-09,116736,167936,0,'backward_temp(loss)',0,0);
INSERT INTO "run" VALUES(2,'2026-11-30T03:33:10Z','0.1.0',1,'0090f7634c7f096cb4fbf7ba72fa2058','c3606a9453c6dc7e','two-blocks','ideal-2x1gbs',2,3.2564226e-05,3.93069376192144118251e+06,1.96534688096072059125e+06,1.06600414823309480594e-04,1.06600414823309480594e-04,1.06600414823309480594e-01,4.842e-09,3.2564e-05,0.0,2.48e-10,3.2559384e-05,0.0,0.0,9.99851309225037288008e-01,1.41751627564135063153e-04,252928,285184,285184,80000000000,1,32564.0,'scale-up out (ideal)',91,'two-blocks','fsdp2','ideal-gpu',1,2,8528,32,2,1,128,'torchtitan',8.528358e-06,2.4031695e-05,4.173e-09,201728,252928,0,'backward_temp(loss)',0,0);
CREATE TABLE run_config (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 position INTEGER NOT NULL,
 key TEXT NOT NULL,
 value TEXT NOT NULL,
 origin TEXT NOT NULL,
 PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "run_config" VALUES(1,168,'fsdp.api','fsdp2','default');
INSERT INTO "run_config" VALUES(1,216,'nodes','1','cluster''s default');
INSERT INTO "run_config" VALUES(1,137,'train.micro_batch','1','two-blocks.yaml');
INSERT INTO "run_config" VALUES(1,136,'train.seq_len','32','two-blocks.yaml');
INSERT INTO "run_config" VALUES(2,168,'fsdp.api','fsdp2','default');
INSERT INTO "run_config" VALUES(2,216,'nodes','1','cluster''s default');
INSERT INTO "run_config" VALUES(2,137,'train.micro_batch','2','<command line>');
INSERT INTO "run_config" VALUES(2,136,'train.seq_len','32','two-blocks.yaml');
CREATE TABLE unit_time (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 position INTEGER NOT NULL,
 name TEXT NOT NULL,
 parameters INTEGER NOT NULL,
 forward_s REAL NOT NULL CONSTRAINT "forward_s is finite" CHECK (abs(forward_s) <= 1.7976931348623157e308),
 backward_s REAL NOT NULL CONSTRAINT "backward_s is finite" CHECK (abs(backward_s) <= 1.7976931348623157e308),
 all_gather_s REAL NOT NULL CONSTRAINT "all_gather_s is finite" CHECK (abs(all_gather_s) <= 1.7976931348623157e308),
 reduce_scatter_s REAL NOT NULL CONSTRAINT "reduce_scatter_s is finite" CHECK (abs(reduce_scatter_s) <= 1.7976931348623157e308),
 exposed_s REAL NOT NULL CONSTRAINT "exposed_s is finite" CHECK (abs(exposed_s) <= 1.7976931348623157e308),
 PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "unit_time" VALUES(1,0,'embed_tokens',1536,2.1e-11,4.1e-11,3.072e-06,3.072e-06,6.143969e-06);
INSERT INTO "unit_time" VALUES(1,1,'layers.0',2720,3.33e-10,6.7e-10,5.44e-06,5.44e-06,1.0879944e-05);
INSERT INTO "unit_time" VALUES(2,0,'embed_tokens',1536,2.5e-11,4.4e-11,3.072e-06,3.072e-06,6.143969e-06);
INSERT INTO "unit_time" VALUES(2,1,'layers.0',2720,6.1e-10,1.235e-09,5.44e-06,5.44e-06,1.0879939e-05);
CREATE TABLE warning (
 run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
 position INTEGER NOT NULL,
 message TEXT NOT NULL,
 PRIMARY KEY (run_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_by_config ON run (config_hash);
CREATE VIEW v_runs AS SELECT run.*,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('nodes', 'nodes') ORDER BY length(c.key) LIMIT 1) AS nodes,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.global_batch', 'train.global_batch') ORDER BY length(c.key) LIMIT 1) AS global_batch,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.optimizer.name', 'train.optimizer.name') ORDER BY length(c.key) LIMIT 1) AS optimizer,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.activation_checkpointing', 'train.activation_checkpointing') ORDER BY length(c.key) LIMIT 1) AS activation_checkpointing,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.precision.param_dtype', 'train.precision.param_dtype') ORDER BY length(c.key) LIMIT 1) AS param_dtype,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.precision.reduce_dtype', 'train.precision.reduce_dtype') ORDER BY length(c.key) LIMIT 1) AS reduce_dtype,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('train.compile', 'train.compile') ORDER BY length(c.key) LIMIT 1) AS compile,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.dp_replicate', 'mesh.dp_replicate') ORDER BY length(c.key) LIMIT 1) AS dp_replicate,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.dp_shard', 'mesh.dp_shard') ORDER BY length(c.key) LIMIT 1) AS dp_shard,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.tp', 'mesh.tp') ORDER BY length(c.key) LIMIT 1) AS tp,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.pp', 'mesh.pp') ORDER BY length(c.key) LIMIT 1) AS pp,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.cp', 'mesh.cp') ORDER BY length(c.key) LIMIT 1) AS cp,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('mesh.ep', 'mesh.ep') ORDER BY length(c.key) LIMIT 1) AS ep,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('fsdp.api', 'fsdp.api') ORDER BY length(c.key) LIMIT 1) AS api,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('fsdp.wrap', 'fsdp.wrap') ORDER BY length(c.key) LIMIT 1) AS wrap,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('fsdp.reshard_after_forward', 'fsdp.reshard_after_forward') ORDER BY length(c.key) LIMIT 1) AS reshard_after_forward,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('fsdp.forward_prefetch', 'fsdp.forward_prefetch') ORDER BY length(c.key) LIMIT 1) AS forward_prefetch,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('fsdp.backward_prefetch', 'fsdp.backward_prefetch') ORDER BY length(c.key) LIMIT 1) AS backward_prefetch,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('cluster.host.nics.bandwidth', 'cluster.host.nics.link.bandwidth') ORDER BY length(c.key) LIMIT 1) AS nic_bandwidth,
 (SELECT CAST(c.value AS INTEGER) FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('simulate.seed', 'simulate.seed') ORDER BY length(c.key) LIMIT 1) AS seed,
 (SELECT c.value FROM run_config AS c WHERE c.run_id = run.id AND c.key IN ('simulate.network', 'simulate.network') ORDER BY length(c.key) LIMIT 1) AS network
FROM run;
COMMIT;
