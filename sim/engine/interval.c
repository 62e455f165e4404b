/* Kinds of steps, their spreads, and the order statistics of scores: see interval.h. */
#include "sim/engine/interval.h"

#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/engine/run.h"

/* --- kinds --- */

/* Four bits each, in the order in which they narrow a kind. */
enum trait { FAMILY, CHIP, EXPERTS, HARD, FEW, RARE, TRAIT_COUNT };
enum { TRAIT_BITS = 4, TRAIT_MASK = 15, UNKNOWN = 15, PPM = 1000000 };
_Static_assert((int)TRAIT_COUNT == (int)HB_INTERVAL_LEVELS, "a trait for each level");

/* An empty word is not said. */
static const char *const words[TRAIT_COUNT][3] = {
    [FAMILY] = {"xla-tpu", "xla-gpu on NVIDIA", "xla-gpu on AMD"},
    [CHIP] = {"v5e", "v5p", "v6e"},
    [EXPERTS] = {"dense", "experts"},
    [HARD] = {"", "hard form"},
    [FEW] = {"", "few layers"},
    [RARE] = {"", "rare knobs"}};

static uint32_t with_trait(uint32_t kind, enum trait t, uint32_t value)
{
    return kind | value << TRAIT_BITS * t;
}

static uint32_t trait_of(uint32_t kind, enum trait t)
{
    return kind >> TRAIT_BITS * t & TRAIT_MASK;
}

static uint32_t family_of(const struct hb_spec *s)
{
    if (s->compiler == HB_TORCH)
        return UNKNOWN;
    if (s->compiler == HB_XLA_TPU)
        return 0;
    return hb_str_starts(s->hardware.device, "amd-") ? 2 : 1;
}

/* Of a TPU; one compiler serves all GPUs of a family. */
static uint32_t chip_of(const struct hb_spec *s)
{
    static const char *const names[] = {"tpu-v5e", "tpu-v5p", "tpu-v6e"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hb_str_starts(s->hardware.device, names[i]))
            return i;
    return UNKNOWN;
}

static bool has_experts(const struct hb_spec *s)
{
    bool experts = false;
    for (int i = 0; i < s->model.block_count; i++)
        experts = experts || s->model.blocks[i].moe.experts > 0;
    return experts;
}

/* Pipelines, loops and nested scans, split sequences, states on the host, no constraints. */
static bool is_hard(const struct hb_spec *s)
{
    const struct hb_optim *o = &s->optimizer;
    return s->mesh[HB_AX_SEQUENCE] > 1 || s->mesh[HB_AX_PIPELINE] > 1 ||
           s->stack.form != HB_FORM_SCAN || !s->sharding.activation_constraints ||
           o->offload == HB_PLACE_PINNED_HOST || o->ema == HB_PLACE_PINNED_HOST ||
           o->params_offload == HB_PLACE_PINNED_HOST;
}

/* What stands at the model's ends weighs more than in models as they are trained. */
static bool has_few_layers(const struct hb_spec *s)
{
    enum { FEW_LAYERS = 16 };
    int64_t layers = 0;
    for (int i = 0; i < s->model.block_count; i++)
        layers += s->model.blocks[i].repeat;
    return layers < FEW_LAYERS;
}

static bool has_rare_knobs(const struct hb_spec *s)
{
    const struct hb_optim *o = &s->optimizer;
    bool rare = o->name != HB_OPT_ADAMW || o->moments[0] != HB_DT_F32 ||
                o->moments[1] != HB_DT_F32 || o->ema != HB_PLACE_NONE || s->step.cast_upfront ||
                !s->step.donate || s->step.nan_to_num || s->precision.grads != HB_GRADS_PARAMS ||
                s->lookup == HB_LOOKUP_ONEHOT;
    for (int i = 0; i < s->model.block_count; i++)
        rare = rare || s->model.blocks[i].attention.kernel == HB_KERNEL_NAIVE;
    return rare;
}

uint32_t hb_interval_kind(const struct hb_spec *s)
{
    uint32_t kind = with_trait(0, FAMILY, family_of(s));
    kind = with_trait(kind, CHIP, chip_of(s));
    kind = with_trait(kind, EXPERTS, has_experts(s));
    kind = with_trait(kind, HARD, is_hard(s));
    kind = with_trait(kind, FEW, has_few_layers(s));
    return with_trait(kind, RARE, has_rare_knobs(s));
}

bool hb_interval_is_known(uint32_t kind)
{
    return trait_of(kind, FAMILY) != UNKNOWN;
}

uint32_t hb_interval_kind_at(uint32_t kind, uint32_t level)
{
    return kind & (((uint32_t)1 << TRAIT_BITS * level) - 1);
}

const char *hb_interval_kind_words(struct hb_arena *arena, uint32_t kind)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int t = 0; t < TRAIT_COUNT; t++) {
        uint32_t value = trait_of(kind, (enum trait)t);
        if (value != UNKNOWN && *words[t][value])
            hb_str_addf(&s, "%s%s", s.len ? ", " : "", words[t][value]);
    }
    return s.text;
}

/* --- spreads --- */

/* Of the peak, beside what is working: on golden records, whose scores it makes most alike of 0.1,
 * 0.2, 0.3, 0.5 and 1. */
static const double loose_part = 0.3;

static double working_bytes(const struct hb_memory *m)
{
    return (double)m->category_bytes[HB_CAT_WORKING] +
           (double)m->category_bytes[HB_CAT_COMMUNICATION];
}

double hb_interval_loose(const struct hb_memory *m)
{
    return loose_part * (double)m->peak_bytes + working_bytes(m);
}

double hb_interval_scale(const struct hb_interval_scale *scales, uint32_t count, uint32_t kind)
{
    for (uint32_t i = count; i > 0; i--)
        if (scales[i - 1].kind == hb_interval_kind_at(kind, scales[i - 1].level))
            return (double)scales[i - 1].scale_ppm / PPM;
    return 0;
}

static double scale_of(const struct hb_spec *spec)
{
    const struct hb_interval_table *t = &hb_interval_table;
    uint32_t kind = hb_interval_kind(spec);
    return hb_interval_is_known(kind) ? hb_interval_scale(t->scales, t->scale_count, kind) : 0;
}

/* --- order statistics --- */

/* Ends in spreads, and the confidence that they have. */
struct ends {
    double low;
    double high;
    double confidence;
};

/* Below: a quarter of what may lie outside. The prediction itself is always within: that only
 * widens. */
static struct ends find_ends(double confidence)
{
    const struct hb_interval_table *t = &hb_interval_table;
    double outside = (1 - confidence) * ((double)t->count + 1) + 1e-9;
    if (t->count < 2)
        return (struct ends){0};
    uint32_t ranks = outside >= 2 ? (uint32_t)outside : 2;
    uint32_t below = ranks >= 4 ? ranks / 4 : 1;
    double low = (double)t->scores_ppm[below - 1] / PPM;
    double high = (double)t->scores_ppm[t->count - (ranks - below)] / PPM;
    return (struct ends){low < 0 ? low : 0, high > 0 ? high : 0,
                         outside >= 2 ? confidence : 1 - 2 / ((double)t->count + 1)};
}

static int64_t add_spreads(int64_t peak_bytes, double bytes)
{
    double end = ceil((double)peak_bytes + bytes);
    return bytes <= 0 ? peak_bytes : end < 0x1p62 ? (int64_t)end : INT64_MAX;
}

int64_t hb_interval_high(const struct hb_spec *spec, double confidence, const struct hb_memory *m)
{
    return add_spreads(m->peak_bytes,
                       find_ends(confidence).high * scale_of(spec) * hb_interval_loose(m));
}

/* "wide": half as much again as half of the records are. */
static const char *width_word(double spread, int64_t peak_bytes)
{
    double times = spread / ((double)peak_bytes * hb_interval_table.usual_ppm / PPM);
    return times < 2.0 / 3 ? "narrow" : times > 1.5 ? "wide" : "usual";
}

void hb_interval_make(struct hb_arena *arena, const struct hb_spec *spec, double confidence,
                      const struct hb_memory *m, struct hb_interval *out)
{
    struct ends ends = find_ends(confidence);
    double spread = scale_of(spec) * hb_interval_loose(m);
    double low = floor((double)m->peak_bytes + ends.low * spread);
    *out = (struct hb_interval){m->peak_bytes, m->peak_bytes, 0, 0, "", ""};
    if (!(spread > 0) || !(ends.confidence > 0))
        return;
    if (low < (double)m->peak_bytes)
        out->low_bytes = low > 0 ? (int64_t)low : 0;
    out->high_bytes = add_spreads(m->peak_bytes, ends.high * spread);
    out->confidence = ends.confidence;
    out->records = hb_interval_table.count;
    out->width = width_word(spread, m->peak_bytes);
    out->like = hb_arena_printf(arena, "%s, %.0f %% working",
                                hb_interval_kind_words(arena, hb_interval_kind(spec)),
                                100 * working_bytes(m) / (double)m->peak_bytes);
}

/* One more than what fits by the ratio, for what rounding does. */
int64_t hb_interval_most_peak(const struct hb_spec *spec, double confidence, int64_t budget_bytes)
{
    double times = 1 + find_ends(confidence).high * scale_of(spec) * loose_part;
    if (times <= 1 || budget_bytes == INT64_MAX)
        return budget_bytes;
    int64_t most = (int64_t)ceil((double)budget_bytes / times) + 1;
    return most < budget_bytes ? most : budget_bytes;
}

enum hb_verdict hb_interval_verdict(const struct hb_interval *i, int64_t budget_bytes)
{
    if (i->high_bytes <= budget_bytes)
        return HB_VERDICT_FITS;
    return i->low_bytes <= budget_bytes ? HB_VERDICT_TIGHT : HB_VERDICT_NOT;
}

const char *hb_verdict_name(enum hb_verdict verdict)
{
    static const char *const names[] = {"fits", "tight", "does not fit"};
    return names[verdict];
}
