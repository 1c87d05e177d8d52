/* cli/verbs.c: the table of verbs; see verb.h. */
#include <stddef.h>
#include <string.h>

#include "cli/verb.h"

static const char *const schema_words[] = {"config",      "model", "cluster", "gpu",
                                           "calibration", "runs",  NULL};
static const char *const list_words[] = {"models", "clusters", "gpus", "calibrations", NULL};
static const char *const model_words[] = {"show", NULL};
static const char *const import_words[] = {"accelerate", "deepspeed", "nccl-topo", "topo-m", NULL};
static const char *const db_words[] = {"ls", "show", "merge", "export", NULL};
static const char *const calibrate_words[] = {"nccl", NULL};
static const char *const shell_words[] = {"bash", NULL};

const struct verb verb_table[] = {
    {.id = VERB_RUN,
     .name = "run",
     .arguments = "FILE...",
     .summary = "simulate one training step; print the summary; store it",
     .text =
         "Plays the training step of each FILE and prints step time, exposed communication and\n"
         "memory, one column a FILE. FILE is a YAML file, the name of a shipped configuration, "
         "or\n"
         "'-' for standard input. It may carry overrides of its own, after those of -s:\n"
         "FILE@nodes=4@train.micro_batch=2, also -@nodes=4.\n",
     .examples = {{"fsdpsim run llama3-8b_dgx-h100 -s nodes=4", "a shipped configuration, bigger"},
                  {"fsdpsim run my.yaml my.yaml@nodes=16 --assert fits",
                   "side by side; exit 3 if one does not fit"}},
     .min_arguments = 1,
     .max_arguments = -1,
     .play = verb_run},
    {.id = VERB_SWEEP,
     .name = "sweep",
     .arguments = "FILE",
     .summary = "simulate many configurations on all cores; print a table; store them",
     .text = "Plays FILE with every combination of the swept keys: those of its section 'sweep:', "
             "and of\n"
             "-s KEY=VALUES, where VALUES is v1,v2,..., range(a,b,step), log2(a,b) or geom(a,b,n), "
             "with units\n"
             "(range leaves b out). Points that are stored are not played again, so a sweep that "
             "was stopped\n"
             "(Ctrl-C: exit 75) or killed goes on where it was. See docs/sweep.md.\n",
     .examples = {{"fsdpsim sweep llama3-8b_dgx-h100 -s 'nodes=log2(1,128)'",
                   "step time and memory from 8 to 1,024 GPUs"},
                  {"fsdpsim sweep my.yaml -s train.micro_batch=1,2,4 -n",
                   "how many points, how long"}},
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_sweep},
    {.id = VERB_SOLVE,
     .name = "solve",
     .arguments = "FILE",
     .summary = "the smallest or largest value of one key with which conditions hold",
     .text =
         "Varies one key of FILE and says from which value on, or up to which, every --until "
         "holds, with\n"
         "the metrics just inside and just outside. --vary KEY=LOW:HIGH: any value between where "
         "the ends\n"
         "have a unit or a decimal point, else whole numbers; KEY=LOW:HIGH:STEP; or a list as "
         "'sweep' takes\n"
         "it. What is asked for, the smallest or the largest, follows from where the conditions "
         "hold. Metrics\n"
         "that are not monotone are named, with all intervals that were seen. Exit 3 where "
         "nothing meets\n"
         "them. The answer is stored as a run. See docs/solve.md.\n",
     .examples = {{"fsdpsim solve llama3-8b_dgx-h100 -s nodes=4 --vary "
                   "cluster.host.nics.bandwidth=10Gbps:800Gbps --until 'exposed_comm_fraction<=5%'",
                   "the slowest NIC that is fast enough"},
                  {"fsdpsim solve my.yaml --vary train.micro_batch=1:64 --until fits",
                   "the largest microbatch that fits"}},
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_solve},
    {.id = VERB_COMPARE,
     .name = "compare",
     .arguments = "A B",
     .summary = "two configurations or stored runs: which settings differ, and where time and "
                "memory do",
     .text =
         "Each of A and B is a configuration (FILE, a shipped name, FILE@KEY=VALUE), which is "
         "played, or the\n"
         "ID of a stored run. Prints the settings that differ, the differences of step time and "
         "memory by\n"
         "category, phase and FSDP unit, the largest first, and one paragraph that says what "
         "changed.\n"
         "Nothing is stored. See docs/compare.md.\n",
     .examples = {{"fsdpsim compare my.yaml my.yaml@fsdp.reshard_after_forward=false",
                   "what a setting does, and where"},
                  {"fsdpsim compare 3 7", "two stored runs"}},
     .min_arguments = 2,
     .max_arguments = 2,
     .play = verb_compare},
    {.id = VERB_CHECK,
     .name = "check",
     .arguments = "FILE...",
     .summary = "read files as 'run' would, and report every mistake",
     .text = "Loads each FILE with all it names and checks it, without simulating.\n",
     .examples = {{"fsdpsim check my.yaml", "all mistakes at once, with their place"},
                  {"fsdpsim check my.yaml --resolved", "every value in force, and its origin"}},
     .min_arguments = 1,
     .max_arguments = -1,
     .play = verb_check},
    {.id = VERB_SCHEMA,
     .name = "schema",
     .arguments = "KIND",
     .summary = "print the reference of a kind of file",
     .text =
         "KIND is config, model, cluster, gpu or calibration: every key with its kind, unit, range "
         "and default; or runs: the columns of a CSV for 'validate', and their words.\n",
     .examples = {{"fsdpsim schema config", "what a configuration may say"},
                  {"fsdpsim schema runs", "what a CSV of measured runs may say"}},
     .words = schema_words,
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_schema},
    {.id = VERB_LIST,
     .name = "list",
     .arguments = "KIND",
     .summary = "list the models, clusters, GPUs or calibrations that ship",
     .text =
         "KIND is models, clusters, gpus or calibrations. Each can be named in a configuration.\n",
     .examples = {{"fsdpsim list models", "names, parameters, files"},
                  {"fsdpsim list gpus --json", "the same for machines"}},
     .words = list_words,
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_list},
    {.id = VERB_MODEL,
     .name = "model",
     .arguments = "show NAME|FILE",
     .summary = "the tree of a model: parameters, FLOP, activations",
     .text = "NAME is one of 'fsdpsim list models', FILE a YAML file or a Hugging Face "
             "config.json.\n",
     .examples = {{"fsdpsim model show llama-3.1-8b", "modules and their parts"},
                  {"fsdpsim model show config.json --depth 3 --json", "down to parameters"}},
     .words = model_words,
     .min_arguments = 1,
     .max_arguments = 2,
     .play = verb_model},
    {.id = VERB_TOPOLOGY,
     .name = "topology",
     .arguments = "show NAME|FILE",
     .summary = "what hangs where in a cluster: GPUs, switches, sockets, NICs, fabric",
     .text =
         "NAME is one of 'fsdpsim list clusters', FILE a YAML file. Prints the tree of a host, "
         "the\nlinks between GPUs, the levels of the fabric and each kind of link with its rate "
         "and\nsource; --dot prints a graph for Graphviz.\n",
     .examples = {{"fsdpsim topology show dgx-h100", "as a tree"},
                  {"fsdpsim topology show my.yaml --dot | dot -Tsvg -o my.svg", "as a picture"}},
     .words = model_words,
     .min_arguments = 1,
     .max_arguments = 2,
     .play = verb_topology},
    {.id = VERB_IMPORT,
     .name = "import",
     .arguments = "KIND FILE",
     .summary = "turn a description that others write into a file of ours",
     .text =
         "KIND says what FILE ('-': standard input) is:\n"
         "nccl-topo: XML of NCCL or RCCL, as NCCL_TOPO_DUMP_FILE=FILE makes a job write it, or a\n"
         "cloud's NCCL_TOPO_FILE. topo-m: what 'nvidia-smi topo -m' prints. Both become a cluster\n"
         "file, with comments on what was read, corrected (rates that are known to be wrong),\n"
         "assumed (what FILE does not say) and dropped. accelerate: what 'accelerate config'\n"
         "writes. deepspeed: a ds_config.json. Both become a configuration; which model on which\n"
         "machine they do not say (--model, --cluster, --seq-len). See docs/importing.md.\n",
     .examples = {{"fsdpsim import nccl-topo topo.xml -o mine.yaml",
                   "then 'cluster: ./mine.yaml' in a configuration"},
                  {"fsdpsim import accelerate fsdp.yaml --model llama-3.1-8b --cluster dgx-h100",
                   "a configuration that runs"}},
     .words = import_words,
     .min_arguments = 2,
     .max_arguments = 2,
     .play = verb_import},
    {.id = VERB_MEMORY,
     .name = "memory",
     .arguments = "FILE",
     .summary = "the memory a GPU needs, at once and without simulating",
     .text = "Bytes by state and sharding from closed forms, and what fits. With --budget, and "
             "where nothing\nfits, also what to change, from what costs no time to what costs "
             "most, and by how much each of\nthem fails.\n",
     .examples = {{"fsdpsim memory my.yaml", "per ZeRO stage, against the GPU's own memory"},
                  {"fsdpsim memory my.yaml --budget 40GiB", "against a budget"}},
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_memory},
    {.id = VERB_EXPLAIN,
     .name = "explain",
     .arguments = "FILE",
     .summary = "textbook arithmetic beside what the simulation found",
     .text = "Each line is a closed form with its numbers, and the simulated figure beside it.\n",
     .examples = {{"fsdpsim explain llama3-8b_dgx-h100", "where the step time comes from"},
                  {"fsdpsim explain my.yaml -s nodes=16", "the same on more hosts"}},
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_explain},
    {.id = VERB_VALIDATE,
     .name = "validate",
     .arguments = "[all|kernels|models|collectives] [CSV]",
     .summary = "predictions beside published measurements",
     .text =
         "Simulates the run of each row of CSV ('-': standard input; without it, the published "
         "runs\n"
         "that ship) and prints the errors of step time, memory and MFU by source, GPU and "
         "regime,\n"
         "which rows are out of scope and why, the worst rows, and whether series of runs that "
         "differ in\n"
         "one thing keep their shape. What a source says of its runs stands in\n"
         "results/measured/facts/, what columns a CSV has in results/measured/README.md.\n"
         "'kernels': the same for single kernels (GEMM, attention, memory bound) by GPU and kind; "
         "without\n"
         "CSV, the measurements that took no part in making the tables that ship. 'models': "
         "forward "
         "and\n"
         "backward of whole models on one GPU, by GPU and model.\n"
         "'collectives' [FILE|FOLDER...]: measured tables of nccl-tests (all_gather, "
         "reduce_scatter,\n"
         "all_reduce) by table and size, with and without calibration; a degraded one is "
         "explained by one\n"
         "setting. What the tables ran on follows from rules in results/collectives/machines.yaml "
         "and --facts.\n"
         "'all': every part, as results/accuracy.md has them; --update RESULTS writes the files.\n"
         "--torchtitan-log FILE CONFIG: the training log of a run of yours beside what is "
         "predicted "
         "for\n"
         "CONFIG: medians of the steps after the 10th over all ranks.\n"
         "Training runs are stored in the results database (tables validation, validation_row).\n",
     .examples = {{"fsdpsim validate --torchtitan-log train.log mine.yaml",
                   "a run of yours beside its prediction"},
                  {"fsdpsim validate my_runs.csv --facts mine.yaml --json", "runs of your own"}},
     .min_arguments = 0,
     .max_arguments = -1,
     .play = verb_validate},
    {.id = VERB_COMM,
     .name = "comm",
     .arguments = "CLUSTER",
     .summary = "one simulated collective over sizes, in the table of nccl-tests",
     .text = "Plays a collective alone on CLUSTER (a shipped name or a file) and prints what "
             "nccl-tests would:\n"
             "the same columns, sizes and busbw factors, so that a measured log can lie beside it. "
             "Sizes are\n"
             "written as 64KiB, or as nccl-tests has them (64K, 65536).\n",
     .examples = {{"fsdpsim comm dgx-h100 --op all_gather --nodes 2 --begin 64KiB --end 8GiB",
                   "over all 16 GPUs of two hosts"},
                  {"fsdpsim comm dgx-h100 --op all_reduce --nodes 4 -s host.nics.bandwidth=200Gbps",
                   "with other NICs"}},
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_comm},
    {.id = VERB_CALIBRATE,
     .name = "calibrate",
     .arguments = "nccl LOG...",
     .summary = "fit measured collectives; write a calibration that a cluster can name",
     .text =
         "Reads what nccl-tests printed (text of any version, JSON of -J, '-': standard input), "
         "fits time over\n"
         "size for each collective, nodes and GPUs a node, and prints the fit beside the data "
         "with its error\n"
         "bars and what looks wrong. '-o FILE' writes the fit; a cluster file names it under "
         "collectives:\n"
         "{calibration: FILE}.\n",
     .examples = {{"fsdpsim calibrate nccl all_gather.log reduce_scatter.log -o mine.yaml",
                   "fit and write"},
                  {"fsdpsim calibrate nccl table.txt --op all_gather --ranks 16 --nodes 2",
                   "a text that does not say what it is"}},
     .words = calibrate_words,
     .min_arguments = 1,
     .max_arguments = -1,
     .play = verb_calibrate},
    {.id = VERB_DB,
     .name = "db",
     .arguments = "ls|show|merge|export [ID|FILE...|csv|json]",
     .summary = "look into the results database",
     .text =
         "'ls' lists the stored runs, 'show ID' prints one of them, 'merge FILE...' copies the\n"
         "runs and sweeps of other databases into this one (what is there already stays "
         "once).\n"
         "'export csv|json' writes the rows of a table or a view, to standard output or -o FILE; "
         "the\nunits of a CSV's columns go to FILE-metadata.json. See docs/database.md.\n",
     .examples = {{"fsdpsim db show 3 --units", "run 3 with its tables"},
                  {"fsdpsim db export csv --where 'fits AND n_gpus >= 8' -o runs.csv",
                   "one row a run, for pandas or a spreadsheet"}},
     .words = db_words,
     .min_arguments = 1,
     .max_arguments = -1,
     .play = verb_db},
    {.id = VERB_COMPLETION,
     .name = "completion",
     .arguments = "SHELL",
     .summary = "print the completion script of a shell",
     .text = "SHELL is bash.\n",
     .examples = {{"eval \"$(fsdpsim completion bash)\"", "for this shell"},
                  {"fsdpsim completion bash > ~/.local/share/bash-completion/completions/fsdpsim",
                   "for good"}},
     .words = shell_words,
     .min_arguments = 1,
     .max_arguments = 1,
     .play = verb_completion},
    {.id = VERB_HELP,
     .name = "help",
     .arguments = "[VERB]",
     .summary = "print help on a verb",
     .text = "The same as 'fsdpsim VERB --help'.\n",
     .examples = {{"fsdpsim help", "the verbs"}, {"fsdpsim help run", "one of them"}},
     .min_arguments = 0,
     .max_arguments = 1,
     .play = verb_help},
};

_Static_assert(sizeof(verb_table) / sizeof(verb_table[0]) == VERB_COUNT, "a row for every verb");

const struct verb *verb_find(const char *name)
{
    for (const struct verb *verb = verb_table; verb < verb_table + VERB_COUNT; verb++) {
        if (strcmp(verb->name, name) == 0)
            return verb;
    }
    return NULL;
}

void verb_names(const char *names[VERB_COUNT + 1])
{
    for (int k = 0; k < VERB_COUNT; k++)
        names[k] = verb_table[k].name;
    names[VERB_COUNT] = NULL;
}
