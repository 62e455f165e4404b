/* Guessing what a buffer is: see what.h. The words are those of JAX programs' operation names
 * (flax, MaxText, levanter, equinox, optax) as they stand in public logs. */
#include "sim/hlo/what.h"

#include <ctype.h>
#include <string.h>

#include "sim/hlo/logtext.h"

struct hb_what_shape hb_what_shape(const char *text)
{
    struct hb_what_shape shape = {0};
    struct hb_span s = hb_span_of(text);
    if (!hb_span_find(&s, "["))
        return shape;
    while (shape.rank < HB_WHAT_RANK && hb_span_int(&s, &shape.dim[shape.rank])) {
        shape.rank++;
        hb_span_skip(&s, ",");
    }
    return shape;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < len && tolower((unsigned char)text[i]) == word[i])
            i++;
        if (i == len)
            return true;
    }
    return false;
}

/* Any of the words of "one|two". */
static bool has_any(const char *text, const char *words)
{
    char word[32];
    while (*words) {
        struct hb_span s = hb_span_of(words);
        hb_span_copy(&s, "|", word, sizeof word);
        if (has_word(text, word))
            return true;
        words = *s.at ? s.at + 1 : s.at;
    }
    return false;
}

/* The last two dimensions are long: queries by keys. */
static bool is_square(const struct hb_what_shape *s)
{
    return s->rank >= 3 && s->dim[s->rank - 1] >= 512 && s->dim[s->rank - 2] >= 512;
}

/* The last dimension is of a vocabulary's size: 28 k (GPT-J's neighbours) to 300 k (gemma). */
static bool is_vocabulary(const struct hb_what_shape *s)
{
    return s->rank >= 2 && s->dim[s->rank - 1] >= 28000 && s->dim[s->rank - 1] <= 300000;
}

/* A leading dimension that can count layers. */
static bool is_stack(const struct hb_what_shape *s)
{
    return s->rank >= 3 && s->dim[0] >= 2 && s->dim[0] <= 256;
}

static bool is_any(const struct hb_what_shape *s)
{
    (void)s;
    return true;
}

/* In order; the first row that agrees says what it is. Words are looked for in the operation's
 * name; a row without words looks at the shape alone. */
static const struct rule {
    enum hb_what what;
    const char *words;
    bool (*shape)(const struct hb_what_shape *s);
} rules[] = {
    {HB_WHAT_SCORES, "attention|attn|bhqk|hqk|softmax|scores", is_square},
    {HB_WHAT_ONEHOT, "one_hot|onehot", is_any},
    {HB_WHAT_LOGITS, NULL, is_vocabulary},
    {HB_WHAT_LOGITS, "logits|lm_head|unembed|cross_entropy", is_any},
    {HB_WHAT_GATHERED, "all_gather|all-gather", is_any},
    {HB_WHAT_MOE, "moe|expert|ragged_dot|gmm", is_any},
    {HB_WHAT_OPTIMIZER, "adam|optax|opt_state|optimizer|scale_by|apply_updates|global_norm",
     is_any},
    {HB_WHAT_SAVED, "dynamic_update_slice|checkpoint|remat", is_stack},
    {HB_WHAT_HALO, "/pad|halo|roll", is_any},
    {HB_WHAT_CONVERT, "convert_element_type", is_any},
    {HB_WHAT_ACTIVATION, "jvp(|transpose(", is_any},
};

enum hb_what hb_what_of(const struct hb_log_item *item)
{
    struct hb_what_shape shape = hb_what_shape(item->shape);
    if (has_any(item->type, "argument|input|param"))
        return HB_WHAT_ARGUMENT;
    if (has_any(item->label, "all-gather"))
        return HB_WHAT_GATHERED;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].shape(&shape) && (!rules[i].words || has_any(item->op, rules[i].words)))
            return rules[i].what;
    return HB_WHAT_OTHER;
}

#define HB_ENUM(name, key, title) key,
static const char *const keys[] = {HB_WHATS(HB_ENUM)};
#undef HB_ENUM
#define HB_ENUM(name, key, title) title,
static const char *const titles[] = {HB_WHATS(HB_ENUM)};
#undef HB_ENUM

const char *hb_what_key(enum hb_what what)
{
    return keys[what];
}

const char *hb_what_title(enum hb_what what)
{
    return titles[what];
}
