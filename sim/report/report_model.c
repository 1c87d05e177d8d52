/* report/report_model.c: the tree of a model as text and as JSON. */
#include "report/report_model.h"

#include <inttypes.h>

#include "base/units.h"
#include "report/json_writer.h"
#include "report/report_table_private.h"

static bool has_experts(const struct model *model)
{
    return model->active_parameters != model->parameters;
}

static void write_row(struct table *table, const struct model *model,
                      const struct model_tree_row *row)
{
    char count[32];
    table_row(table);
    if (row->count > 1 && row->depth == 1)
        table_cell(table, "%*s%s x %" PRId64, 2 * (int)row->depth, "", row->name, row->count);
    else
        table_cell(table, "%*s%s", 2 * (int)row->depth, "", row->name);
    table_cell(table, "%s", format_count(count, sizeof(count), row->parameters));
    if (has_experts(model))
        table_cell(table, "%s", format_count(count, sizeof(count), row->active_parameters));
    table_cell(table, "%.1f %%", 100.0 * row->parameter_share);
    if (row->flop_per_token > 0.0) {
        table_cell(table, "%.6g", row->flop_per_token / 1e6);
        table_cell(table, "%.1f %%", 100.0 * row->flop_share);
    } else {
        table_cell(table, "-");
        table_cell(table, "-");
    }
    if (row->saved_bytes_per_token > 0.0)
        table_cell(table, "%.6g", row->saved_bytes_per_token / 1e3);
    else
        table_cell(table, "-");
}

void report_model(const struct model *model, const struct model_tree *tree, FILE *file)
{
    char parameters[32], active[32];
    struct table table = {0};
    fprintf(file, "%s: %s parameters", model->name,
            format_count(parameters, sizeof(parameters), model->parameters));
    if (has_experts(model))
        fprintf(file, ", %s active a token",
                format_count(active, sizeof(active), model->active_parameters));
    fprintf(file, "%s\n", model->is_tied ? " (embedding and output share a weight)" : "");
    fprintf(file,
            "training: %.6g GFLOP a token at sequence %" PRId64
            " (convention torchtitan); forward FLOP and kept activations below,\n"
            "a token, bf16, eager, fused attention where there is one, nothing recomputed\n\n",
            model->flop_per_token / 1e9, model->seq_len);
    table_init(&table, has_experts(model) ? 7 : 6, 1);
    table_row(&table);
    table_cell(&table, "module");
    table_cell(&table, "parameters");
    if (has_experts(model))
        table_cell(&table, "active");
    table_cell(&table, "share");
    table_cell(&table, "MFLOP");
    table_cell(&table, "share");
    table_cell(&table, "activations kB");
    for (int32_t i = 0; i < tree->count; i++)
        write_row(&table, model, &tree->items[i]);
    table_write(&table, file);
    table_release(&table);
}

static void write_json_row(struct json_writer *json, const struct model_tree_row *row)
{
    json_begin_object(json);
    json_key(json, "name");
    json_text(json, row->name);
    json_key(json, "depth");
    json_int(json, row->depth);
    json_key(json, "count");
    json_int(json, row->count);
    json_key(json, "parameters");
    json_int(json, row->parameters);
    json_key(json, "active_parameters");
    json_int(json, row->active_parameters);
    json_key(json, "parameter_share");
    json_double(json, row->parameter_share);
    json_key(json, "forward_flop_per_token");
    json_double(json, row->flop_per_token);
    json_key(json, "flop_share");
    json_double(json, row->flop_share);
    json_key(json, "activation_bytes_per_token");
    json_double(json, row->saved_bytes_per_token);
    json_end_object(json);
}

void report_model_json(const struct model *model, const struct model_tree *tree, FILE *file)
{
    struct json_writer json;
    json_init(&json, file);
    json_begin_object(&json);
    json_key(&json, "schema_version");
    json_int(&json, 1);
    json_key(&json, "model");
    json_text(&json, model->name);
    json_key(&json, "parameters");
    json_int(&json, model->parameters);
    json_key(&json, "active_parameters");
    json_int(&json, model->active_parameters);
    json_key(&json, "input_embedding_parameters");
    json_int(&json, model->input_embedding_parameters);
    json_key(&json, "tied_embeddings");
    json_bool(&json, model->is_tied);
    json_key(&json, "layers");
    json_int(&json, model->layers);
    json_key(&json, "seq_len");
    json_int(&json, model->seq_len);
    json_key(&json, "flop_per_token");
    json_double(&json, model->flop_per_token);
    json_key(&json, "tree");
    json_begin_array(&json);
    for (int32_t i = 0; i < tree->count; i++)
        write_json_row(&json, &tree->items[i]);
    json_end_array(&json);
    json_end_object(&json);
    json_finish(&json);
}
