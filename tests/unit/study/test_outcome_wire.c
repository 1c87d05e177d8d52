/* tests/unit/study/test_outcome_wire.c: an outcome comes out of its bytes as it went in. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "outcome_fixture.h"
#include "study/outcome_wire.h"
#include "study_tests.h"

static void check_lists(const struct outcome *out)
{
    CHECK_INT(out->unit_count, 3);
    CHECK_TEXT(out->units[1].name, "layers.0");
    CHECK_NEAR(out->units[2].exposed_s, 0.2021, 0);
    CHECK_INT(out->collective_count, 2);
    CHECK_NEAR(out->collectives[1].alone_s, 0.0047755, 0);
    CHECK_INT(out->link_count, 1);
    CHECK_INT(out->links[0].instances, 16);
    CHECK_INT(out->memory_unit_count, 2);
    CHECK_TEXT(out->memory_units[0].name, "layers.31");
    CHECK_INT(out->memory_units[1].bytes, 67108864);
    CHECK_INT(out->origin_count, 3);
    CHECK_TEXT(out->origins[2].origin, "<command line>");
    CHECK_INT(out->warning_count, 1);
    CHECK_TEXT(out->warnings[0], "attention 'flash' has no measured curve on 'h100'");
}

static void check_scalars(const struct outcome *out)
{
    CHECK_TEXT(out->model, "llama-3.1-8b");
    CHECK_NEAR(out->step_time_s, 2.385, 0);
    CHECK_INT(out->n_samples, 20);
    CHECK_INT(out->interval_count, 1);
    CHECK_TEXT(out->intervals[0].metric, "step_time_s");
    CHECK_NEAR(out->intervals[0].p95, 2.515, 0);
    CHECK_TRUE(isnan(out->hfu));
    CHECK_TRUE(out->fits);
    CHECK_U64(out->fingerprint, UINT64_C(0x0123456789abcdef));
    CHECK_U64(out->config_hash.low, UINT64_C(0xfedcba9876543210));
    CHECK_INT(out->peak_composition[MEMORY_OPTIMIZER], (INT64_C(4) * 1024 + 20) << 20);
}

static void test_round_trip(void)
{
    struct arena arena = {0};
    struct outcome in;
    outcome_fixture(&arena, &in);
    for (int has_detail = 0; has_detail < 2; has_detail++) {
        struct strbuf bytes = {0};
        struct strbuf again = {0};
        struct outcome out;
        outcome_pack(&in, has_detail == 1, &bytes);
        outcome_unpack(bytes.text, bytes.length, &arena, &out);
        check_scalars(&out);
        if (has_detail == 1)
            check_lists(&out);
        else
            CHECK_INT(out.unit_count + out.memory_unit_count + out.origin_count, 0);
        outcome_pack(&out, has_detail == 1, &again);
        CHECK_INT(again.length, bytes.length);
        CHECK_TRUE(memcmp(again.text, bytes.text, bytes.length) == 0);
        strbuf_release(&bytes);
        strbuf_release(&again);
    }
    arena_release(&arena);
}

const struct check_case outcome_wire_cases[] = {{"round trip", test_round_trip}, {0}};
