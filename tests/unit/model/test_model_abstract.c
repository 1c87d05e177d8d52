/* family: abstract: what is given comes out, once a unit. */
#include <stddef.h>

#include "base/arena.h"
#include "check.h"
#include "model_fixture.h"

extern const struct check_case model_abstract_cases[];

static struct abstract_unit units[] = {
    {.repeat = 2,
     .parameters = 1500,
     .forward_s = 0.0046,
     .backward_s = 0.0092,
     .saved_activation_bytes = 67108864,
     .input_activation_bytes = 8192},
    {.repeat = 1, .parameters = 700, .forward_s = 0.002, .backward_s = 0.018},
};

static struct model_config two_units(void)
{
    return (struct model_config){.family = FAMILY_ABSTRACT,
                                 .abstract = {.repeat = 3, .units = {.items = units, .count = 2}}};
}

static void test_units(void)
{
    struct arena arena = {0};
    struct model_config config = two_units();
    struct train_shape shape = fixture_shape(100, 1);
    const struct model *model = fixture_build(&arena, &config, &shape);
    static const int32_t expected[] = {0, 0, 1, 0, 0, 1, 0, 0, 1, 2};
    if (CHECK_INT(model->module_count, 10))
        for (int i = 0; i < 10; i++)
            CHECK_INT(model->modules[i].kind_idx, expected[i]);
    CHECK_TEXT(model->modules[8].name, "units.8");
    CHECK_TEXT(model->modules[9].name, "loss");
    CHECK_TEXT(model->name, "abstract");
    CHECK_INT(model->parameters, 3 * (2 * 1500 + 700));
    CHECK_INT(model_config_parameters(&config), 11100);
    CHECK_INT(model->layers, 9);

    const struct module_kind *kind = &model->kinds[0];
    CHECK_INT(kind->role, MODULE_BLOCK);
    CHECK_INT(kind->params[0].dim0, 1500);
    CHECK_INT(kind->params[0].rest, 1);
    CHECK_INT(kind->forward.count, 1);
    CHECK_INT(kind->forward.items[0].kind, KERNEL_GIVEN);
    CHECK_NEAR(kind->forward.items[0].given_s, 0.0046, 1e-15);
    CHECK_INT(kind->backward.items[0].pass, PASS_BACKWARD);
    CHECK_NEAR(kind->backward.items[0].given_s, 0.0092, 1e-15);
    CHECK_INT(kind->saved_bytes, 67108864);
    CHECK_TRUE(!kind->is_recomputed);
    CHECK_INT(model->kinds[2].role, MODULE_LOSS);
    CHECK_INT(model->kinds[2].forward.count + model->kinds[2].backward.count, 0);
    arena_release(&arena);
}

static void test_checkpointing(void)
{
    struct arena arena = {0};
    struct model_config config = two_units();
    struct train_shape shape = fixture_shape(100, 1);
    shape.checkpointing = CHECKPOINT_FULL;
    const struct model *model = fixture_build(&arena, &config, &shape);
    CHECK_TRUE(model->kinds[0].is_recomputed);
    CHECK_INT(model->kinds[0].saved_bytes, 8192);
    CHECK_INT(model->kinds[0].recompute_saved_bytes, 67108864);
    CHECK_TRUE(!model->kinds[2].is_recomputed);
    arena_release(&arena);
}

/* 6 a parameter, or as given: 1.11e6 over 11,100 parameters is 100 each, a third of it forward. */
static void test_flop(void)
{
    struct arena arena = {0};
    struct model_config config = two_units();
    struct train_shape shape = fixture_shape(50, 2);
    const struct model *model = fixture_build(&arena, &config, &shape);
    CHECK_NEAR(model->flop_per_token, 66600.0, 1e-15);
    CHECK_NEAR(model->kinds[0].model_flop, 2.0 * 1500 * 100, 1e-15);
    config.abstract.flop_per_token = 1.11e6;
    model = fixture_build(&arena, &config, &shape);
    CHECK_NEAR(model->flop_per_token, 1.11e6, 1e-15);
    CHECK_NEAR(model->kinds[1].model_flop, 100.0 / 3 * 700 * 100, 1e-14);
    arena_release(&arena);
}

const struct check_case model_abstract_cases[] = {{"units", test_units},
                                                  {"checkpointing", test_checkpointing},
                                                  {"flop", test_flop},
                                                  {NULL, NULL}};
