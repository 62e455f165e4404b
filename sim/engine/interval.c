/* Groupings of calibration records, and their order statistics: see interval.h. */
#include "sim/engine/interval.h"

#include <math.h>

#include "base/arena.h"
#include "base/str.h"

/* --- kinds --- */

/* Four bits each. */
enum trait { FAMILY, CHIP, SORT, LOSS, TRAIT_COUNT };
enum { TRAIT_BITS = 4, TRAIT_MASK = 15, UNKNOWN = 15, PPM = 1000000 };

/* How far errors spread, by what the learning part of the calibration records shows. */
enum sort { USUAL, EXPERTS, KNOBS, HARD, FREE };

static const char hard_words[] = "steps with pipelines, loops or nested scans, split sequences or "
                                 "states on the host";
static const char *const words[TRAIT_COUNT][5] = {
    [FAMILY] = {"xla-tpu", "xla-gpu on NVIDIA", "xla-gpu on AMD"},
    [CHIP] = {"v5e", "v5p", "v6e"},
    [SORT] = {[USUAL] = "usual dense steps",
              [EXPERTS] = "usual steps with experts",
              [KNOBS] = "scans with unusual knobs or few layers",
              [HARD] = hard_words,
              [FREE] = "steps without activation constraints"},
    [LOSS] = {"whole logits", "logits in chunks"}};

#define TRAIT(t) ((uint32_t)TRAIT_MASK << TRAIT_BITS * (t))
/* Narrowest first. Which of them are worth it was seen on the calibration records themselves, not
 * on those that coverage is counted on. */
static const uint32_t groupings[] = {TRAIT(FAMILY) | TRAIT(CHIP) | TRAIT(SORT) | TRAIT(LOSS),
                                     TRAIT(FAMILY) | TRAIT(CHIP) | TRAIT(SORT),
                                     TRAIT(FAMILY) | TRAIT(SORT), TRAIT(SORT), 0};
enum { GROUPINGS = sizeof groupings / sizeof groupings[0] };

static uint32_t with_trait(uint32_t kind, enum trait t, uint32_t value)
{
    return (kind & ~TRAIT(t)) | value << TRAIT_BITS * t;
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

static bool has_host_states(const struct hb_spec *s)
{
    return s->optimizer.offload == HB_PLACE_PINNED_HOST ||
           s->optimizer.ema == HB_PLACE_PINNED_HOST ||
           s->optimizer.params_offload == HB_PLACE_PINNED_HOST;
}

/* Few layers: what stands at the model's ends weighs more than in models as they are trained. */
static bool has_unusual_knobs(const struct hb_spec *s)
{
    enum { FEW_LAYERS = 16 };
    int64_t layers = 0;
    const struct hb_optim *o = &s->optimizer;
    bool unusual = o->name != HB_OPT_ADAMW || o->moments[0] != HB_DT_F32 ||
                   o->moments[1] != HB_DT_F32 || o->ema != HB_PLACE_NONE || s->step.cast_upfront ||
                   !s->step.donate || s->step.nan_to_num || s->precision.grads != HB_GRADS_PARAMS ||
                   s->lookup == HB_LOOKUP_ONEHOT;
    for (int i = 0; i < s->model.block_count; i++) {
        unusual = unusual || s->model.blocks[i].attention.kernel == HB_KERNEL_NAIVE;
        layers += s->model.blocks[i].repeat;
    }
    return unusual || layers < FEW_LAYERS;
}

static bool has_experts(const struct hb_spec *s)
{
    bool experts = false;
    for (int i = 0; i < s->model.block_count; i++)
        experts = experts || s->model.blocks[i].moe.experts > 0;
    return experts;
}

/* By what no cell of a search changes. */
static enum sort given_sort(const struct hb_spec *s)
{
    if (!s->sharding.activation_constraints)
        return FREE;
    if (has_unusual_knobs(s))
        return KNOBS;
    return has_experts(s) ? EXPERTS : USUAL;
}

static enum sort sort_of(const struct hb_spec *s)
{
    bool hard = s->mesh[HB_AX_SEQUENCE] > 1 || s->mesh[HB_AX_PIPELINE] > 1 ||
                s->stack.form != HB_FORM_SCAN || has_host_states(s);
    enum sort given = given_sort(s);
    return given != FREE && hard ? HARD : given;
}

uint32_t hb_interval_kind(const struct hb_spec *s)
{
    uint32_t kind = with_trait(0, FAMILY, family_of(s));
    kind = with_trait(kind, CHIP, chip_of(s));
    kind = with_trait(kind, SORT, sort_of(s));
    return with_trait(kind, LOSS, s->loss.chunks > 1);
}

/* --- order statistics --- */

struct group {
    uint32_t mask; /* of the traits that its records share */
    uint32_t records;
    double confidence;
    int32_t low_ppm;
    int32_t high_ppm;
};

static uint32_t count_like(uint32_t kind, uint32_t mask)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < hb_interval_table.count; i++)
        n += !((hb_interval_table.rows[i].kind ^ kind) & mask);
    return n;
}

/* The ratio of a rank from 1, by rising ratio. */
static int32_t ratio_of_rank(uint32_t kind, uint32_t mask, uint32_t rank)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < hb_interval_table.count; i++) {
        seen += !((hb_interval_table.rows[i].kind ^ kind) & mask);
        if (seen == rank)
            return hb_interval_table.rows[i].ratio_ppm;
    }
    return PPM;
}

/* Half of what may lie outside beyond either end, an odd one beyond the upper. The prediction
 * itself is always within: that only widens. */
static struct group make_group(uint32_t kind, uint32_t mask, uint32_t n, double confidence)
{
    double outside = (1 - confidence) * ((double)n + 1) + 1e-9;
    uint32_t ranks = outside >= 2 ? (uint32_t)outside : 2;
    double reached = outside >= 2 ? confidence : 1 - 2 / ((double)n + 1);
    uint32_t below = ranks / 2;
    struct group g = {mask, n, reached, ratio_of_rank(kind, mask, below),
                      ratio_of_rank(kind, mask, n + 1 - (ranks - below))};
    g.low_ppm = g.low_ppm < PPM ? g.low_ppm : PPM;
    g.high_ppm = g.high_ppm > PPM ? g.high_ppm : PPM;
    return g;
}

static struct group find_group(uint32_t kind, double confidence)
{
    uint32_t n = 0;
    for (int i = 0; i < GROUPINGS && trait_of(kind, FAMILY) != UNKNOWN; i++) {
        n = count_like(kind, groupings[i]);
        /* a little less than was asked, from records that are alike, tells more than all of it
         * from records that are not: what is reached is said */
        bool enough = (1 - confidence) * ((double)n + 1) >= 1 - 1e-9;
        if (enough || (i == GROUPINGS - 1 && n > 2))
            return make_group(kind, groupings[i], n, confidence);
    }
    return (struct group){.low_ppm = PPM, .high_ppm = PPM};
}

static int64_t scale_up(int64_t bytes, int32_t ppm)
{
    double scaled = ceil((double)bytes * (double)ppm / PPM);
    return ppm == PPM ? bytes : scaled < 0x1p62 ? (int64_t)scaled : INT64_MAX;
}

static const char *group_words(struct hb_arena *arena, uint32_t kind, uint32_t mask)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int t = 0; t < TRAIT_COUNT; t++)
        if ((mask & TRAIT(t)) && trait_of(kind, (enum trait)t) != UNKNOWN)
            hb_str_addf(&s, "%s%s", s.len ? ", " : "", words[t][trait_of(kind, (enum trait)t)]);
    return s.len ? s.text : "all records";
}

void hb_interval_make(struct hb_arena *arena, const struct hb_spec *spec, double confidence,
                      int64_t peak_bytes, struct hb_interval *out)
{
    uint32_t kind = hb_interval_kind(spec);
    struct group g = find_group(kind, confidence);
    *out = (struct hb_interval){
        .low_bytes = g.low_ppm == PPM
                         ? peak_bytes
                         : (int64_t)floor((double)peak_bytes * (double)g.low_ppm / PPM),
        .high_bytes = scale_up(peak_bytes, g.high_ppm),
        .confidence = g.confidence,
        .records = g.records,
        .like = group_words(arena, kind, g.mask)};
}

int64_t hb_interval_high(const struct hb_spec *spec, double confidence, int64_t peak_bytes)
{
    return scale_up(peak_bytes, find_group(hb_interval_kind(spec), confidence).high_ppm);
}

/* One more than what fits by the ratio, for what rounding does. */
static int64_t unscale(int64_t budget_bytes, int32_t ppm)
{
    if (ppm == PPM || budget_bytes == INT64_MAX)
        return budget_bytes;
    int64_t most = (int64_t)ceil((double)budget_bytes * PPM / (double)ppm) + 1;
    return most < budget_bytes ? most : budget_bytes;
}

int64_t hb_interval_most_peak(const struct hb_spec *spec, double confidence, int64_t budget_bytes)
{
    struct group g = find_group(hb_interval_kind(spec), confidence);
    return unscale(budget_bytes, g.high_ppm);
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
