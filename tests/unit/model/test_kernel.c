#include <stddef.h>
#include <string.h>

#include "check.h"
#include "model/kernel.h"

extern const struct check_case kernel_cases[];

static void test_dtypes(void)
{
    static const struct {
        enum dtype dtype;
        int64_t bytes;
        const char *name;
    } rows[] = {{DTYPE_FP32, 4, "fp32"},
                {DTYPE_BF16, 2, "bf16"},
                {DTYPE_FP16, 2, "fp16"},
                {DTYPE_FP8, 1, "fp8"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(dtype_bytes(rows[i].dtype), rows[i].bytes);
        CHECK_TEXT(dtype_name(rows[i].dtype), rows[i].name);
    }
}

/* Every kind has a name, and no two the same. */
static void test_kind_names(void)
{
    for (int i = 0; i < KERNEL_KIND_COUNT; i++) {
        const char *name = kernel_kind_name((enum kernel_kind)i);
        if (!CHECK_TRUE(name != NULL))
            continue;
        for (int j = 0; j < i; j++)
            CHECK_TRUE(strcmp(name, kernel_kind_name((enum kernel_kind)j)) != 0);
    }
    CHECK_TEXT(kernel_kind_name(KERNEL_CHUNK_CAT), "chunk_cat");
}

static void test_sums(void)
{
    struct kernel kernels[] = {{.flop = 2.5e12, .bytes = 7.25e6},
                               {.flop = 0.375e12, .bytes = 11e6}};
    struct kernel_list list = {.items = kernels, .count = 2, .capacity = 2};
    struct kernel_list empty = {0};
    CHECK_NEAR(kernel_list_flop(&list), 2.875e12, 1e-15);
    CHECK_NEAR(kernel_list_bytes(&list), 18.25e6, 1e-15);
    CHECK_NEAR(kernel_list_flop(&empty), 0.0, 0.0);
}

/* What FSDP adds: copies and casts, and nothing of the model. */
static void test_copies(void)
{
    CHECK_TRUE(kernel_is_copy(KERNEL_COPY_IN));
    CHECK_TRUE(kernel_is_copy(KERNEL_COPY_OUT));
    CHECK_TRUE(kernel_is_copy(KERNEL_CHUNK_CAT));
    CHECK_TRUE(kernel_is_copy(KERNEL_CAST));
    CHECK_TRUE(!kernel_is_copy(KERNEL_ELEMENTWISE));
    CHECK_TRUE(!kernel_is_copy(KERNEL_GEMM));
}

const struct check_case kernel_cases[] = {{"dtypes", test_dtypes},
                                          {"kind names", test_kind_names},
                                          {"sums", test_sums},
                                          {"copies", test_copies},
                                          {NULL, NULL}};
