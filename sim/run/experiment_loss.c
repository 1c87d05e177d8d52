/* run/experiment_loss.c: what of the loss, and of what is kept of the model's output, has a
 * meaning.
 */
#include "run/experiment_private.h"

static void check_logits(struct config *config, const struct loss_config *loss)
{
    static const char hint[] = "it goes with 'impl: eager' or 'impl: fused'";
    if (loss->metrics > 0 && loss->impl == LOSS_LINEAR)
        config_error(config, "train.loss.metrics", hint,
                     "'metrics' needs the logits, which 'impl: linear' never makes");
    if (loss->keeps_logits != OUTPUT_DROPPED && loss->impl == LOSS_LINEAR)
        config_error(config, "train.loss.keeps_logits", hint,
                     "'keeps_logits' needs the logits, which 'impl: linear' never makes");
    if (loss->shifted && (loss->impl == LOSS_LINEAR || loss->chunks > 1))
        config_error(config, "train.loss.shifted",
                     "it goes with 'impl: eager' or 'impl: fused', and without chunks",
                     "'shifted' copies the logits of the whole microbatch");
}

void loss_check(struct experiment *experiment)
{
    struct config *config = &experiment->config;
    const struct model_config *model = &experiment->model_config;
    const bool has_decoder =
        model->family != FAMILY_ABSTRACT && model->type != TYPE_BERT && model->type != TYPE_VIT;
    check_logits(config, &experiment->train.loss);
    if (experiment->train.key_value_cache && !has_decoder)
        config_error(config, "train.key_value_cache", "leave it out",
                     "this model has no decoder whose keys and values could be cached");
}
