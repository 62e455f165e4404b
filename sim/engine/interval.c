/* Kinds of steps, their spreads, and the order statistics of scores: see interval.h. */
#include "sim/engine/interval.h"

#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/ir/lower.h"

enum { PPM = 1000000 };

/* --- kinds --- */

enum { KIND_BITS = 2, KIND_MASK = 3 };
_Static_assert((int)HB_INTERVAL_VALUES == KIND_MASK + 1, "a value has its bits");
_Static_assert(KIND_BITS *((int)HB_FACT_COUNT + 1) <= 32, "facts and a family");
/* Of facts that have no such value, and of v4 and v7. */
enum { OTHER = 0 };

static const char *const families[] = {"xla-tpu", "xla-gpu on NVIDIA", "xla-gpu on AMD"};
static const char *const chips[] = {[OTHER] = "", ", v5e", ", v5p", ", v6e"};

uint32_t hb_interval_family_of(uint32_t kind)
{
    return kind & KIND_MASK;
}

uint32_t hb_interval_value(uint32_t kind, enum hb_interval_fact fact)
{
    return kind >> KIND_BITS * ((uint32_t)fact + 1) & KIND_MASK;
}

static uint32_t family_of(const struct hb_spec *s)
{
    if (s->compiler == HB_TORCH)
        return HB_INTERVAL_FAMILIES;
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
            return i + 1;
    return OTHER;
}

/* None, in groups of their own size, or as an einsum over places. */
static uint32_t experts_of(const struct hb_spec *s)
{
    uint32_t most = 0;
    for (int i = 0; i < s->model.block_count; i++) {
        const struct hb_moe *moe = &s->model.blocks[i].moe;
        uint32_t value = moe->experts <= 0 ? 0 : moe->dispatch == HB_DISPATCH_EINSUM ? 2 : 1;
        most = value > most ? value : most;
    }
    return most;
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

static bool has_hard_form(const struct hb_spec *s)
{
    return s->mesh[HB_AX_SEQUENCE] > 1 || s->mesh[HB_AX_PIPELINE] > 1 ||
           s->stack.form != HB_FORM_SCAN;
}

static bool has_rare_knobs(const struct hb_spec *s)
{
    bool rare = s->optimizer.name != HB_OPT_ADAMW;
    for (int i = 0; i < s->model.block_count; i++)
        rare = rare || s->model.blocks[i].attention.kernel == HB_KERNEL_NAIVE;
    return rare;
}

static bool has_host_states(const struct hb_spec *s)
{
    const struct hb_optim *o = &s->optimizer;
    return o->offload == HB_PLACE_PINNED_HOST || o->ema == HB_PLACE_PINNED_HOST ||
           o->params_offload == HB_PLACE_PINNED_HOST;
}

/* Of a microbatch, on a device: one, two or three, more. */
static uint32_t sequences_of(const struct hb_spec *s)
{
    double ways = (double)s->mesh[HB_AX_DATA] * (double)s->mesh[HB_AX_FSDP] *
                  (double)s->mesh[HB_AX_EXPERT] * (double)s->batch.accumulate;
    double sequences = (double)s->batch.global / ways;
    return sequences < 2 ? 0 : sequences < 4 ? 1 : 2;
}

uint32_t hb_interval_kind(const struct hb_spec *s)
{
    const uint32_t values[HB_FACT_COUNT] = {
        [HB_FACT_CHIP] = chip_of(s),          [HB_FACT_EXPERTS] = experts_of(s),
        [HB_FACT_LAYERS] = has_few_layers(s), [HB_FACT_FORM] = has_hard_form(s),
        [HB_FACT_KNOBS] = has_rare_knobs(s),  [HB_FACT_FREE] = !s->sharding.activation_constraints,
        [HB_FACT_HOST] = has_host_states(s),  [HB_FACT_PROGRAM] = hb_lower_is_maxtext(s),
        [HB_FACT_SEQUENCES] = sequences_of(s)};
    uint32_t kind = family_of(s);
    for (uint32_t i = 0; i < HB_FACT_COUNT; i++)
        kind |= values[i] << KIND_BITS * (i + 1);
    return kind;
}

static const char *kind_words(struct hb_arena *arena, uint32_t kind)
{
    bool experts = hb_interval_value(kind, HB_FACT_EXPERTS) > 0;
    return hb_arena_printf(arena, "%s%s, %s", families[hb_interval_family_of(kind)],
                           chips[hb_interval_value(kind, HB_FACT_CHIP)],
                           experts ? "experts" : "dense");
}

double hb_interval_spread(const struct hb_interval_family *family, uint32_t kind)
{
    double spread = (double)family->spread_ppm / PPM;
    for (uint32_t i = 0; i < HB_FACT_COUNT; i++) {
        uint32_t value = hb_interval_value(kind, (enum hb_interval_fact)i);
        spread *= (double)family->factors_ppm[i][value] / PPM;
    }
    return spread;
}

/* --- order statistics --- */

/* Ends in parts of the peak, and what they are from. */
struct ends {
    double low;
    double high;
    double confidence;
    uint32_t records;
};

/* The prediction itself is always within: that only widens. */
static struct ends find_ends(uint32_t kind, double confidence)
{
    uint32_t family = hb_interval_family_of(kind);
    if (family >= HB_INTERVAL_FAMILIES || hb_interval_table.families[family].count < 2)
        return (struct ends){0};
    const struct hb_interval_family *f = &hb_interval_table.families[family];
    double spread = hb_interval_spread(f, kind), outside = (1 - confidence) * (f->count + 1.0);
    uint32_t ranks = outside + 1e-9 >= 2 ? (uint32_t)(outside + 1e-9) : 2;
    uint32_t below = ranks >= 3 ? ranks / 3 : 1;
    double low = spread * f->scores_ppm[below - 1] / PPM;
    double high = spread * f->scores_ppm[f->count - (ranks - below)] / PPM;
    return (struct ends){.low = low > -1 ? (low < 0 ? low : 0) : -1,
                         .high = high > 0 ? high : 0,
                         .confidence = outside + 1e-9 >= 2 ? confidence : 1 - 2 / (f->count + 1.0),
                         .records = f->count};
}

static int64_t scale_up(int64_t bytes, double high)
{
    double scaled = ceil((double)bytes * (1 + high));
    return !(high > 0) ? bytes : scaled < 0x1p62 ? (int64_t)scaled : INT64_MAX;
}

void hb_interval_make(struct hb_arena *arena, const struct hb_spec *spec, double confidence,
                      int64_t peak_bytes, struct hb_interval *out)
{
    uint32_t kind = hb_interval_kind(spec);
    struct ends ends = find_ends(kind, confidence);
    *out = (struct hb_interval){
        .low_bytes =
            ends.low < 0 ? (int64_t)floor((double)peak_bytes * (1 + ends.low)) : peak_bytes,
        .high_bytes = scale_up(peak_bytes, ends.high),
        .confidence = ends.confidence,
        .records = ends.records,
        .like = ends.records ? kind_words(arena, kind) : ""};
}

int64_t hb_interval_high(const struct hb_spec *spec, double confidence, int64_t peak_bytes)
{
    return scale_up(peak_bytes, find_ends(hb_interval_kind(spec), confidence).high);
}

/* One more than what fits by the ratio, for what rounding does. */
int64_t hb_interval_most_peak(const struct hb_spec *spec, double confidence, int64_t budget_bytes)
{
    struct ends ends = find_ends(hb_interval_kind(spec), confidence);
    if (!(ends.high > 0) || budget_bytes == INT64_MAX)
        return budget_bytes;
    int64_t most = (int64_t)ceil((double)budget_bytes / (1 + ends.high)) + 1;
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
