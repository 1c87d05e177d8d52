/* model/model_fields.h: field tables of transformers, one a model_type (inside this room). */
#ifndef FSDPSIM_MODEL_MODEL_FIELDS_H
#define FSDPSIM_MODEL_MODEL_FIELDS_H

#include <stddef.h>

#include "model/network.h"

/* Bounds of single fields: far beyond any model, and small enough for the sums in model_private.h.
 */
#define MAX_WIDTH 4194304.0
#define MAX_HEADS 65536.0
#define MAX_LAYERS 16384.0
#define MAX_VOCAB 67108864.0

#define DECODER_AT(member) offsetof(struct model_config, decoder.member)

#define ROW_NAME                                                                                   \
    {                                                                                              \
        .key = "name", .kind = FIELD_TEXT, .offset = offsetof(struct model_config, name),          \
        .is_line = true, .help = "name in reports; default: the file's name without extension"     \
    }
#define ROW_FAMILY(text, number, what)                                                             \
    {                                                                                              \
        .key = "family", .kind = FIELD_ENUM, .offset = offsetof(struct model_config, type),        \
        .is_required = true,                                                                       \
        .choices =                                                                                 \
            (const struct choice[]){{.word = (text), .value = (number), .help = (what)}, {0}},     \
        .help = "which kind of model"                                                              \
    }
/* At least 1 where it is given; `preset` NULL: not set, which is 0. */
#define ROW_COUNT(word, member, preset, largest, text)                                             \
    {                                                                                              \
        .key = (word), .kind = FIELD_COUNT, .offset = DECODER_AT(member), .min = 1,                \
        .max = (largest), .default_text = (preset), .help = (text)                                 \
    }
/* What a network does not exist without: transformers has a default, which another network's file
   hardly means, and refuses null (`int`, not `int | None`, in its configuration classes). */
#define ROW_SIZE(word, member, preset, largest, text)                                              \
    {                                                                                              \
        .key = (word), .kind = FIELD_COUNT, .offset = DECODER_AT(member), .min = 1,                \
        .max = (largest), .default_text = (preset), .help = (text), .null_means = NULL_IS_WRONG,   \
        .is_expected = true                                                                        \
    }
/* As ROW_COUNT, with what null means. */
#define ROW_COUNT_NULL(word, member, preset, largest, text, meaning)                               \
    {                                                                                              \
        .key = (word), .kind = FIELD_COUNT, .offset = DECODER_AT(member), .min = 1,                \
        .max = (largest), .default_text = (preset), .help = (text), .null_means = (meaning)        \
    }
#define ROW_COUNT0(word, member, preset, largest, text)                                            \
    {                                                                                              \
        .key = (word), .kind = FIELD_COUNT, .offset = DECODER_AT(member), .min = 0,                \
        .max = (largest), .default_text = (preset), .help = (text)                                 \
    }
#define ROW_BOOL(word, member, preset, text)                                                       \
    {                                                                                              \
        .key = (word), .kind = FIELD_BOOL, .offset = DECODER_AT(member), .default_text = (preset), \
        .help = (text)                                                                             \
    }
#define ROW_REAL(word, member, preset, largest, text)                                              \
    {                                                                                              \
        .key = (word), .kind = FIELD_REAL, .offset = DECODER_AT(member), .min = 0.0,               \
        .max = (largest), .default_text = (preset), .help = (text)                                 \
    }
#define ROW_TEXT(word, member, preset, text)                                                       \
    {                                                                                              \
        .key = (word), .kind = FIELD_TEXT, .offset = DECODER_AT(member), .default_text = (preset), \
        .help = (text)                                                                             \
    }
#define ROW_LIST(word, member, text)                                                               \
    {                                                                                              \
        .key = (word), .kind = FIELD_TEXT_LIST, .offset = DECODER_AT(member), .help = (text)       \
    }

/* Tables of config.json by model_type; NULL for TYPE_DECODER. */
const struct field_table *model_type_table(enum model_type type);
extern const struct field_table decoder_table;      /* family: decoder */
extern const struct field_table family_llama_table; /* family: llama */
extern const struct field_table abstract_table;     /* family: abstract */
extern const struct field_table multimodal_table;   /* text_config: of a multimodal file */

/* The `check` of all of them: heads, experts, sizes. */
void model_check_transformer(struct config *config, const char *path, void *bound);
const char *model_child_path(struct config *config, const char *path, const char *key);

/* Keys of a config.json that do not shape the network. */
extern const char *const model_cosmetic_keys[];

#endif
