/* The table of advice: see advice.h. */
#include "sim/hlo/advice.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/size.h"
#include "sim/hlo/teller.h"

#define BIT(i)     (UINT64_C(1) << (i))
#define KIND(name) BIT(HB_LOG_##name)
#define OF(name)   BIT(HB_CAUSE_##name)
#define IF(name)   BIT(HB_TRAIT_##name)
_Static_assert((int)HB_LOG_KIND_COUNT <= 64 && (int)HB_CAUSE_COUNT <= 64 &&
                   (int)HB_TRAIT_COUNT <= 64,
               "bits");

/* Messages that tell alike. */
#define TORCH   KIND(TORCH)
#define PROGRAM KIND(TPU)
#define LOADED  (KIND(TPU_ALLOC) | KIND(TPU_PROGRAM) | KIND(TPU_BUFFER))
#define POOL                                                                                       \
    (KIND(XLA_ALLOC) | KIND(GRAPH) | KIND(BFC) | KIND(ASYNC) | KIND(DRIVER) | KIND(BUFFERS))
#define WORDS  (KIND(RUNTIME) | KIND(PLAIN) | KIND(ANY))
#define TOTALS (KIND(MAXTEXT) | KIND(ANALYSIS))
#define ANY    (~UINT64_C(0))

/* Not of these. */
#define NOT(bits) (~(bits))

/* Neither a limit nor the host's. */
#define OPEN NOT(OF(LIMIT) | OF(HOST))

/* In the place of a knob: what the listed buffers call for, then what helps such a program. */
#define REST HB_KNOB_COUNT

/* From top to bottom: a knob is proposed where the message is one of kinds, the cause one of
 * causes, all of `when` hold and none of `unless`. */
static const struct rule {
    enum hb_knob knob;
    uint64_t kinds;
    uint64_t causes;
    uint64_t when;
    uint64_t unless;
} rules[] = {
    /* What is no lack of the device's memory, or not the program's. */
    {HB_KNOB_CALLBACK, ANY, OF(REPLICATION), 0, 0},
    {HB_KNOB_HOST_MEMORY, ANY, OF(HOST), 0, 0},
    {HB_KNOB_HOST_MEMORY, KIND(HOST), OF(UNKNOWN), 0, 0},
    {HB_KNOB_BLOCKS, ANY, OF(ONCHIP), 0, 0},
    {HB_KNOB_FAULT, ANY, OF(FAULT), 0, 0},
    {HB_KNOB_FEWER, KIND(LIBRARY), OF(COMMUNICATOR), IF(GROWS) | IF(RUNS), 0},
    {HB_KNOB_BATCH, KIND(LIBRARY), OF(COMMUNICATOR), IF(GROWS), 0},
    {HB_KNOB_SMALLER_POOL, ANY, OF(COMMUNICATOR), 0, 0},
    {HB_KNOB_ORDER, KIND(TORCH_CORRUPT), ANY, 0, 0},
    {HB_KNOB_DUMP, KIND(CORRUPT), ANY, 0, 0},
    {HB_KNOB_DUMP, WORDS, OF(CORRUPT), 0, 0},
    {HB_KNOB_DRIVER, TORCH | POOL, OF(CORRUPT), 0, 0},
    {HB_KNOB_DRIVER, TORCH, OF(LIMIT), IF(CARD), 0},
    {HB_KNOB_CALLBACK, KIND(GATHER), ANY, 0, 0},
    {HB_KNOB_UNREPLICATE, KIND(RESHARD), ANY, 0, 0},
    {HB_KNOB_FRACTION, KIND(BFC_SOFT), ANY, 0, 0},
    {HB_KNOB_WORKSPACE, KIND(TACTIC), OF(NONE), 0, 0},
    {HB_KNOB_FEWER, KIND(TACTIC), OF(SIZE), 0, 0},
    {HB_KNOB_LIMIT, KIND(TACTIC) | TORCH | WORDS, OF(LIMIT), 0, IF(CARD)},
    {HB_KNOB_OTHERS, TORCH, OF(LIMIT), 0, IF(CARD) | IF(OWN_LIMIT)},
    {HB_KNOB_FEWER, WORDS, OF(LIMIT), 0, 0},
    {HB_KNOB_SERVER, TORCH, OF(OTHERS), IF(SERVES) | IF(MINE), 0},
    {HB_KNOB_OTHERS, TORCH | POOL | WORDS | KIND(SERVE), OF(OTHERS), 0, 0},
    {HB_KNOB_OTHERS, WORDS, OF(LIMIT), 0, 0},

    /* A server's own share. */
    {HB_KNOB_SERVER, KIND(SERVE), ANY, 0, 0},
    {HB_KNOB_WEIGHTS, KIND(SERVE), ANY, 0, 0},
    {HB_KNOB_QUANTIZE, KIND(SERVE), ANY, 0, 0},
    {HB_KNOB_SERVER, TORCH, OF(FRAGMENTATION) | OF(GIANT), IF(SERVES) | IF(RUNS), 0},

    /* Memory in pieces. */
    {HB_KNOB_SEGMENTS, TORCH | POOL | WORDS, OF(FRAGMENTATION), 0, 0},
    {HB_KNOB_RELEASE, LOADED, OF(FRAGMENTATION), 0, 0},
    {HB_KNOB_RELEASE, KIND(TPU_BUFFER), NOT(OF(GIANT) | OF(OUTPUTS)), IF(JAX), 0},

    /* A part of the program. */
    {HB_KNOB_PADDING, PROGRAM, OF(PADDING), 0, 0},
    {HB_KNOB_WEIGHTS, PROGRAM, OF(STATE), IF(RUNS), 0},
    {HB_KNOB_FSDP, PROGRAM, OF(STATE), 0, 0},
    {HB_KNOB_OFFLOAD, PROGRAM, OF(STATE), 0, 0},
    {HB_KNOB_MOMENTS, PROGRAM, OF(STATE), 0, 0},
    {HB_KNOB_DONATE, PROGRAM | LOADED | POOL | KIND(REMAT), OF(OUTPUTS), 0, 0},
    {HB_KNOB_UNREPLICATE, PROGRAM, OF(OUTPUTS) | OF(GIANT), 0, 0},
    {HB_KNOB_UNREPLICATE, LOADED, OF(GIANT), 0, 0},
    {HB_KNOB_DUMP, PROGRAM, OF(SIZE), IF(FAR_ABOVE), IF(LISTED)},
    {HB_KNOB_DUMP, POOL, ANY, IF(ABOVE), IF(LISTED)},
    {HB_KNOB_FEWER, TORCH, OF(GIANT), IF(UNNAMED) | IF(RUNS), 0},
    {HB_KNOB_FEWER, TORCH, OF(GIANT), IF(UNNAMED) | IF(LEAST), 0},
    {HB_KNOB_BATCH, TORCH, OF(GIANT), IF(UNNAMED), 0},
    {HB_KNOB_FLASH, TORCH, OF(GIANT), IF(SCORES), 0},
    {HB_KNOB_LOSS_CHUNKS, TORCH, OF(GIANT), 0, 0},
    {HB_KNOB_FLASH, TORCH, OF(GIANT), 0, 0},
    {HB_KNOB_TUNER, KIND(TUNER), ANY, 0, 0},
    {HB_KNOB_FRACTION, POOL | KIND(TUNER), NOT(OF(REPLICATION)), IF(NEAR), 0},
    {HB_KNOB_DONATE, PROGRAM | TOTALS, ANY, IF(APART), 0},

    /* A program that trains nothing and fills the device: with weights. */
    {HB_KNOB_QUANTIZE, TORCH, OF(SIZE), IF(FULL) | IF(METAL), 0},
    {HB_KNOB_WEIGHTS, TORCH, OF(SIZE), IF(FULL), IF(METAL)},

    /* A word without figures, or with those of one request. */
    {HB_KNOB_SERVER, WORDS, OPEN, IF(LOWERS), IF(FIGURES)},
    {HB_KNOB_SERVER, WORDS, OPEN, IF(ENGINE) | IF(SERVES), IF(METAL) | IF(FIGURES)},
    {HB_KNOB_QUANTIZE, WORDS, OPEN, IF(ENGINE) | IF(LOADS) | IF(FIGURES), 0},
    {HB_KNOB_WEIGHTS, WORDS, OPEN, IF(ENGINE) | IF(LOADS) | IF(FIGURES), 0},
    {HB_KNOB_FEWER, WORDS, OPEN, IF(ENGINE), 0},
    {HB_KNOB_WORKSPACE, WORDS, OPEN, IF(ENGINE) | IF(TENSORRT) | IF(FIGURES), 0},
    {HB_KNOB_WEIGHTS, WORDS, OPEN, IF(ENGINE) | IF(FIGURES), 0},
    {HB_KNOB_QUANTIZE, WORDS, OPEN, IF(ENGINE) | IF(FIGURES), 0},
    {HB_KNOB_OTHERS, WORDS, OPEN, IF(ENGINE) | IF(FIGURES), 0},
    {HB_KNOB_FRACTION, WORDS, OPEN, IF(JAX) | IF(FIGURES) | IF(SMALL), IF(ENGINE)},

/* Where nothing is known but what kind of program it was. */
#define UNTOLD WORDS, NOT(OF(LIMIT) | OF(STATE) | OF(HOST))
    {HB_KNOB_OTHERS, UNTOLD, IF(HELD), IF(FIGURES)},
    {HB_KNOB_WEIGHTS, UNTOLD, IF(ONE) | IF(MANY), IF(FIGURES) | IF(TRAINS)},
    {HB_KNOB_QUANTIZE, UNTOLD, IF(LOADS), IF(FIGURES) | IF(SERVES)},
    {HB_KNOB_QUANTIZE, UNTOLD, IF(LOADS) | IF(METAL), IF(FIGURES)},
    {HB_KNOB_CHECKPOINT, UNTOLD, IF(SAVES), IF(FIGURES) | IF(RUNS)},
    {HB_KNOB_CHECKPOINT, UNTOLD, IF(TRAINS) | IF(WHOLE), IF(FIGURES)},
    {HB_KNOB_CHECKPOINT, TORCH, NOT(OF(NONE)), IF(TRAINS) | IF(WHOLE), 0},
    {HB_KNOB_CHECKPOINT, TORCH, OF(SIZE), IF(SAVES), IF(TRAINS)},
    {HB_KNOB_SERVER, UNTOLD, IF(SERVES), IF(FIGURES) | IF(METAL)},
    {HB_KNOB_FSDP, UNTOLD, IF(TRAINS) | IF(WHOLLY), IF(FIGURES)},
    {HB_KNOB_FSDP, UNTOLD, IF(MANY) | IF(TRAINS) | IF(LEAST) | IF(REMAT), IF(FIGURES)},
    {HB_KNOB_OTHERS, UNTOLD, IF(TRAINS) | IF(PLACES), IF(FIGURES)},
    {HB_KNOB_LOSS_CHUNKS, UNTOLD, IF(TRAINS) | IF(VOCAB), IF(FIGURES)},
    {HB_KNOB_BATCH, UNTOLD, IF(TRAINS), IF(FIGURES)},
    {HB_KNOB_FEWER, UNTOLD, IF(INPUTS), IF(FIGURES) | IF(TRAINS)},
    {HB_KNOB_REMAT, UNTOLD, IF(LEAST), IF(FIGURES) | IF(REMAT) | IF(RUNS)},
    {HB_KNOB_DUMP, UNTOLD, 0, IF(FIGURES) | IF(RUNS)},

    /* What helps such a program, whatever was refused. */
    {REST, PROGRAM | LOADED | KIND(TUNER) | KIND(REMAT) | TOTALS, NOT(OF(REPLICATION)), 0,
     IF(NOTHING)},
    {REST, POOL, NOT(OF(REPLICATION) | OF(CORRUPT)), 0, 0},
    {REST, TORCH, NOT(OF(LIMIT) | OF(OTHERS) | OF(CORRUPT)), 0, 0},
    {REST, WORDS, OPEN, 0, IF(ENGINE)},
    {REST, WORDS, OPEN, 0, IF(FIGURES)},
    {HB_KNOB_SEGMENTS, TORCH | KIND(TORCH_STATS), NOT(OF(CORRUPT)), IF(IDLE), 0},
    {HB_KNOB_SMALLER_POOL, TORCH, ANY, IF(BESIDE), 0},
    {HB_KNOB_DONATE, LOADED, NOT(OF(REPLICATION)), 0, 0},
    {HB_KNOB_UNREPLICATE,
     PROGRAM | LOADED | POOL | KIND(TUNER) | KIND(REMAT) | TOTALS | KIND(STATS) | KIND(BFC_DUMP),
     ANY, IF(RESHARDS), 0},
};

/* What the program is, as far as the log tells: each is helped by other things first. */
enum program { PROGRAM_STEP, PROGRAM_STATE, PROGRAM_UNKNOWN, PROGRAM_RUNS, PROGRAM_LOADS };

enum { MOST = 7 };
static const enum hb_knob orders[][MOST] = {
    [PROGRAM_STEP] = {HB_KNOB_REMAT, HB_KNOB_BATCH, HB_KNOB_LOSS_CHUNKS, HB_KNOB_FSDP,
                      HB_KNOB_SEQUENCE, HB_KNOB_OFFLOAD, HB_KNOB_DUMP},
    [PROGRAM_STATE] = {HB_KNOB_FSDP, HB_KNOB_OFFLOAD, HB_KNOB_MOMENTS, HB_KNOB_BATCH, HB_KNOB_REMAT,
                       HB_KNOB_LOSS_CHUNKS, HB_KNOB_DUMP},
    [PROGRAM_UNKNOWN] = {HB_KNOB_BATCH, HB_KNOB_REMAT, HB_KNOB_LOSS_CHUNKS, HB_KNOB_FSDP,
                         HB_KNOB_SEQUENCE, HB_KNOB_OFFLOAD, HB_KNOB_DUMP},
    [PROGRAM_RUNS] = {HB_KNOB_FEWER, HB_KNOB_WEIGHTS, HB_KNOB_QUANTIZE, HB_KNOB_SEQUENCE,
                      HB_KNOB_DUMP, HB_KNOB_DUMP, HB_KNOB_DUMP},
    [PROGRAM_LOADS] = {HB_KNOB_WEIGHTS, HB_KNOB_QUANTIZE, HB_KNOB_RELEASE, HB_KNOB_DUMP,
                       HB_KNOB_DUMP, HB_KNOB_DUMP, HB_KNOB_DUMP},
};

/* What helps against a kind of buffer, and what share of it at most goes away, in eighths. */
static const struct remedy {
    enum hb_knob knob;
    int eighths; /* 0: not known */
} remedies[HB_WHAT_COUNT] = {
    [HB_WHAT_ARGUMENT] = {HB_KNOB_FSDP, 0},      [HB_WHAT_SCORES] = {HB_KNOB_FLASH, 8},
    [HB_WHAT_LOGITS] = {HB_KNOB_LOSS_CHUNKS, 7}, [HB_WHAT_ONEHOT] = {HB_KNOB_ONEHOT, 8},
    [HB_WHAT_GATHERED] = {HB_KNOB_GATHER, 8},    [HB_WHAT_MOE] = {HB_KNOB_EXPERTS, 0},
    [HB_WHAT_OPTIMIZER] = {HB_KNOB_FSDP, 0},     [HB_WHAT_SAVED] = {HB_KNOB_REMAT, 0},
    [HB_WHAT_HALO] = {HB_KNOB_HALO, 8},          [HB_WHAT_CONVERT] = {HB_KNOB_DUMP, 0},
    [HB_WHAT_ACTIVATION] = {HB_KNOB_REMAT, 0},   [HB_WHAT_OTHER] = {HB_KNOB_DUMP, 0},
};

enum { GROUPS_TREATED = 4 };

/* What only a training step has. */
#define OF_TRAINING                                                                                \
    (BIT(HB_KNOB_REMAT) | BIT(HB_KNOB_BATCH) | BIT(HB_KNOB_LOSS_CHUNKS) | BIT(HB_KNOB_OFFLOAD) |   \
     BIT(HB_KNOB_MOMENTS) | BIT(HB_KNOB_ONEHOT) | BIT(HB_KNOB_DONATE) | BIT(HB_KNOB_FSDP))
_Static_assert((int)HB_KNOB_COUNT <= 64, "bits");

/* A runtime that runs models is named. */
static bool has_engine(const struct hb_log *log)
{
    return log->framework[HB_FW_LOG_GGML] || log->framework[HB_FW_LOG_TENSORRT] ||
           log->framework[HB_FW_LOG_ONNX];
}

/* Nothing but PyTorch is named whose pool it may be, and no communication library failed. */
static bool grows(const struct hb_log *log)
{
    return log->framework[HB_FW_LOG_TORCH] && !log->framework[HB_FW_LOG_JAX] &&
           !log->framework[HB_FW_LOG_TENSORFLOW] && !has_engine(log) &&
           !hb_log_seen(log, HB_LOG_NCCL);
}

static uint64_t bit_if(bool holds, enum hb_trait trait)
{
    return holds ? BIT(trait) : 0;
}

static uint64_t traits_of(const struct teller *t)
{
    const struct hb_story *s = t->story;
    const int64_t *mark = t->log->mark;
    bool trains = hb_teller_trains(t);
    return t->advice->traits | bit_if(trains, HB_TRAIT_TRAINS) |
           bit_if(hb_teller_generates(t), HB_TRAIT_RUNS) |
           bit_if(hb_teller_loads(t), HB_TRAIT_LOADS) |
           bit_if(mark[HB_MARK_SERVES], HB_TRAIT_SERVES) |
           bit_if(mark[HB_MARK_METAL], HB_TRAIT_METAL) |
           bit_if(has_engine(t->log) && !trains, HB_TRAIT_ENGINE) |
           bit_if(s->framework < HB_FW_LOG_JAX, HB_TRAIT_TRAINER) |
           bit_if(t->log->framework[HB_FW_LOG_JAX], HB_TRAIT_JAX) |
           bit_if(s->framework == HB_FW_LOG_TENSORRT, HB_TRAIT_TENSORRT) |
           bit_if(grows(t->log), HB_TRAIT_GROWS) | bit_if(hb_teller_is_least(t), HB_TRAIT_LEAST) |
           bit_if(hb_str_same(t->log->setting[HB_SET_REMAT], "full"), HB_TRAIT_REMAT) |
           bit_if(mark[HB_MARK_SAVES], HB_TRAIT_SAVES) |
           bit_if(mark[HB_MARK_GATHERS], HB_TRAIT_WHOLE) |
           bit_if(mark[HB_MARK_SHARE], HB_TRAIT_LOWERS) |
           bit_if(mark[HB_MARK_PLACES], HB_TRAIT_PLACES) |
           bit_if(mark[HB_MARK_MANY], HB_TRAIT_MANY) | bit_if(mark[HB_MARK_ONE], HB_TRAIT_ONE) |
           bit_if(mark[HB_MARK_HELD], HB_TRAIT_HELD) |
           bit_if(mark[HB_MARK_INPUTS], HB_TRAIT_INPUTS) |
           bit_if(mark[HB_MARK_UNSHARDED], HB_TRAIT_WHOLLY) |
           bit_if(mark[HB_MARK_WHOLE_LOGITS], HB_TRAIT_VOCAB) |
           bit_if(s->wanted_bytes >= 0, HB_TRAIT_FIGURES) |
           bit_if(s->wanted_bytes < HB_TELLER_POOL_BYTES, HB_TRAIT_SMALL) |
           bit_if(s->group_count, HB_TRAIT_LISTED);
}

/* Unless it is there, or makes no sense in such a program. */
static void add(const struct teller *t, uint64_t traits, enum hb_knob knob, int64_t frees_bytes)
{
    struct hb_story *s = t->story;
    if ((traits & IF(RUNS) && BIT(knob) & OF_TRAINING) ||
        (traits & IF(LEAST) && knob == HB_KNOB_BATCH))
        return;
    for (int i = 0; i < s->knob_count; i++)
        if (s->knobs[i].knob == knob)
            return;
    if (s->knob_count < HB_STORY_KNOBS)
        s->knobs[s->knob_count++] = (struct hb_story_knob){knob, frees_bytes, HB_WHEN_ANY};
}

/* Whether what is held is more than what a step adds, as far as the log tells. */
static bool is_state_heavy(const struct teller *t)
{
    const struct hb_story *s = t->story;
    enum hb_log_kind kind = hb_log_seen(t->log, HB_LOG_BUFFERS) ? HB_LOG_BUFFERS : s->kind;
    int64_t argument = hb_log_fact(t->log, kind, HB_FACT_ARGUMENT);
    int64_t temp = hb_log_fact(t->log, kind, HB_FACT_TEMP);
    if (s->cause == HB_CAUSE_GIANT && s->kind == HB_LOG_GRAPH)
        return false; /* one tensor of the step */
    if (s->kind == HB_LOG_TORCH && s->cause != HB_CAUSE_STATE)
        return false; /* statistics printed at a failure tell no state */
    if (s->cause == HB_CAUSE_STATE || (argument >= 0 && temp >= 0))
        return s->cause == HB_CAUSE_STATE || argument > temp;
    return s->state_bytes > s->transient_bytes && s->transient_bytes > 0 &&
           s->wanted_bytes < s->state_bytes;
}

static bool shares(uint64_t traits)
{
    return traits & IF(SERVES) && !(traits & IF(METAL));
}

static enum program program_of(const struct teller *t, uint64_t traits)
{
    bool trainer = traits & IF(TRAINER) || t->log->framework[HB_FW_LOG_MAXTEXT];
    bool least = traits & IF(LEAST) && traits & IF(REMAT);
    if (traits & IF(LOADS) && (t->story->cause != HB_CAUSE_UNKNOWN || !shares(traits)))
        return PROGRAM_LOADS;
    if (traits & IF(RUNS))
        return PROGRAM_RUNS;
    if (is_state_heavy(t) || least)
        return PROGRAM_STATE;
    bool step = t->log->mark[HB_MARK_BACKWARD] || t->log->mark[HB_MARK_UPDATES];
    return trainer || step ? PROGRAM_STEP : PROGRAM_UNKNOWN;
}

static int64_t bytes_of_what(const struct hb_story *s, enum hb_what what)
{
    int64_t sum = 0;
    for (int i = 0; i < s->group_count; i++)
        if (s->groups[i].what == what)
            sum = hb_add_sat(sum, s->groups[i].bytes);
    return sum;
}

static void add_for_groups(const struct teller *t, uint64_t traits)
{
    const struct hb_story *s = t->story;
    for (int i = 0; i < s->group_count && i < GROUPS_TREATED; i++) {
        const struct remedy *r = &remedies[s->groups[i].what];
        int64_t all = bytes_of_what(s, s->groups[i].what);
        if (r->knob != HB_KNOB_DUMP)
            add(t, traits, r->knob, r->eighths ? all / 8 * r->eighths : -1);
    }
}

static void add_rest(const struct teller *t, uint64_t traits)
{
    enum program program = program_of(t, traits);
    const struct hb_story *s = t->story;
    bool listed = s->cause == HB_CAUSE_NONE || s->group_count > 0;
    if (program == PROGRAM_RUNS && shares(traits))
        add(t, traits, HB_KNOB_SERVER, -1);
    add_for_groups(t, traits);
    for (int i = 0; i < MOST; i++) {
        enum hb_knob knob = orders[program][i];
        if (!(knob == HB_KNOB_REMAT && traits & IF(REMAT)) && !(knob == HB_KNOB_DUMP && listed))
            add(t, traits, knob, -1);
    }
}

/* Takes a knob out of the list. */
static void drop(struct hb_story *s, enum hb_knob knob)
{
    int count = 0;
    for (int i = 0; i < s->knob_count; i++)
        if (s->knobs[i].knob != knob)
            s->knobs[count++] = s->knobs[i];
    s->knob_count = count;
}

static void put_first(struct hb_story *s, enum hb_knob knob, enum hb_story_when when)
{
    drop(s, knob);
    int last = s->knob_count < HB_STORY_KNOBS ? s->knob_count++ : HB_STORY_KNOBS - 1;
    memmove(s->knobs + 1, s->knobs, (size_t)last * sizeof *s->knobs);
    s->knobs[0] = (struct hb_story_knob){knob, -1, when};
}

/* Less at once is another knob for a program that trains than for one that only runs a model: where
 * the log leaves open which it is, both come first, each for its case, the likelier before. */
static void part_first(const struct teller *t, uint64_t traits)
{
    struct hb_story *s = t->story;
    enum hb_knob first = s->knob_count ? s->knobs[0].knob : HB_KNOB_COUNT;
    bool sure = traits & (IF(ENGINE) | IF(TRAINER)) || t->log->framework[HB_FW_LOG_MAXTEXT];
    bool less = first == HB_KNOB_BATCH || first == HB_KNOB_FEWER || first == HB_KNOB_DUMP;
    bool again = first == HB_KNOB_REMAT && traits & IF(LEAST);
    if (sure || BIT(s->cause) & (OF(NONE) | OF(CORRUPT)) || !(less || again) ||
        !hb_teller_is_open(t) || !(BIT(s->kind) & (TORCH | WORDS | KIND(LIBRARY))))
        return;
    bool least = traits & IF(LEAST) && !(traits & IF(REMAT));
    enum hb_knob training = least ? HB_KNOB_REMAT : HB_KNOB_BATCH;
    bool trains = first != HB_KNOB_FEWER && !(traits & IF(RUNS));
    put_first(s, trains ? HB_KNOB_FEWER : training, trains ? HB_WHEN_RUNS : HB_WHEN_TRAINS);
    put_first(s, trains ? training : HB_KNOB_FEWER, trains ? HB_WHEN_TRAINS : HB_WHEN_RUNS);
}

/* Where nothing tells whose memory it was the host's comes behind what is for a device. */
static void part_owner(struct hb_story *s)
{
    int i = 0;
    while (i < s->knob_count && s->knobs[i].when != HB_WHEN_ANY)
        i++;
    if (i == 0 && s->knob_count)
        s->knobs[i++].when = HB_WHEN_DEVICE;
    int last = s->knob_count < HB_STORY_KNOBS ? s->knob_count++ : HB_STORY_KNOBS - 1;
    memmove(s->knobs + i + 1, s->knobs + i, (size_t)(last - i) * sizeof *s->knobs);
    s->knobs[i] = (struct hb_story_knob){HB_KNOB_HOST_MEMORY, -1, HB_WHEN_HOST};
}

void hb_advise(const struct teller *t)
{
    uint64_t traits = traits_of(t);
    uint64_t kind = BIT(t->story->kind);
    uint64_t cause = BIT(t->story->cause);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        if (!(r->kinds & kind) || !(r->causes & cause) || (r->when & ~traits) ||
            (r->unless & traits))
            continue;
        int64_t frees = r->knob == REST ? 0 : t->advice->frees[r->knob];
        if (r->knob == REST)
            add_rest(t, traits);
        else
            add(t, traits, r->knob, frees > 0 ? frees : -1);
    }
    part_first(t, traits);
    if (traits & IF(ANYONES))
        part_owner(t->story);
}
