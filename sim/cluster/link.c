/* cluster/link.c: see link.h. */
#include "cluster/link.h"

static const char *const protocol_names[PROTOCOL_COUNT] = {
    [PROTOCOL_LL] = "ll", [PROTOCOL_LL128] = "ll128", [PROTOCOL_SIMPLE] = "simple"};

const char *protocol_name(enum protocol protocol)
{
    return protocol < PROTOCOL_COUNT ? protocol_names[protocol] : "auto";
}

double link_step_s(const struct link *link, enum protocol protocol)
{
    if (protocol == PROTOCOL_LL)
        return link->ll.step_latency_s;
    if (protocol == PROTOCOL_LL128)
        return link->ll128.step_latency_s;
    return link->step_latency_s;
}

double link_share(const struct link *link, enum protocol protocol)
{
    if (protocol == PROTOCOL_LL)
        return link->ll.share;
    return protocol == PROTOCOL_LL128 ? link->ll128.share : 1;
}
