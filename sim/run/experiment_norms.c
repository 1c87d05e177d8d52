/* run/experiment_norms.c: what of `train.norms` has a meaning for this model and these kernels. */
#include "model/network.h"
#include "run/experiment_private.h"

/* Latent attention normalises its low ranks by RMSNorm whatever the blocks have. */
static bool has_rms_norms(const struct experiment *experiment)
{
    struct network net;
    if (experiment->model_config.family == FAMILY_ABSTRACT)
        return false;
    network_of(&experiment->model_config, &net);
    return net.norm == NORM_RMS || net.kv_lora > 0;
}

/* `fused` tells the version of PyTorch, which a compiled block has too: a sweep over `compile`
   need not take it back. */
void norms_check(struct experiment *experiment)
{
    const struct train_config *train = &experiment->train;
    struct config *config = &experiment->config;
    if (train->norms.sm_margin > 0 && !train->norms.cooperative)
        config_error(config, "train.norms.sm_margin", "it goes with 'cooperative: true'",
                     "'sm_margin' means nothing for norms that need not all SMs");
    if (!train->norms.fused)
        return;
    if (train->fused_kernels != FUSED_NONE)
        config_error(config, "train.norms.fused", "it goes with 'fused_kernels: false'",
                     "'fused' means nothing for norms that are hand-fused already");
    else if (!has_rms_norms(experiment))
        config_error(config, "train.norms.fused", "LayerNorm is one kernel always",
                     "'fused' means nothing for a model without RMSNorm");
}
