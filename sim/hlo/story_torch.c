/* Stories of PyTorch: its allocator's refusal, its statistics. */
#include "base/size.h"
#include "sim/hlo/teller.h"

/* The figures of an out-of-memory message, completed: old wordings tell reserved, new ones what
 * is reserved but unallocated. */
struct figures {
    int64_t asked;
    int64_t capacity;
    int64_t free_bytes;
    int64_t allocated;
    int64_t unallocated;
    int64_t reserved;
    int64_t process; /* of it all on the device */
    int64_t others;
    int64_t allowed;
    int64_t beside; /* context, libraries, communicators: process - reserved */
    int64_t lost;   /* neither PyTorch's nor free, and not said whose; -1: not told */
};

static struct figures read_figures(const struct teller *t)
{
    struct figures f = {.asked = hb_teller_fact(t, HB_FACT_ASKED),
                        .capacity = hb_teller_fact(t, HB_FACT_CAPACITY),
                        .free_bytes = hb_teller_fact(t, HB_FACT_FREE),
                        .allocated = hb_teller_fact(t, HB_FACT_ALLOCATED),
                        .unallocated = hb_teller_fact(t, HB_FACT_UNALLOCATED),
                        .reserved = hb_teller_fact(t, HB_FACT_RESERVED),
                        .process = hb_teller_fact(t, HB_FACT_PROCESS),
                        .others = hb_teller_fact(t, HB_FACT_OTHERS),
                        .allowed = hb_teller_fact(t, HB_FACT_ALLOWED),
                        .beside = -1,
                        .lost = -1};
    if (f.allowed >= 0 && f.capacity > 0 && f.allowed > f.capacity / 100 * 98)
        f.allowed = -1; /* no less than all of it */
    if (f.reserved < 0 && f.allocated >= 0 && f.unallocated >= 0)
        f.reserved = f.allocated + f.unallocated;
    if (f.unallocated < 0 && f.reserved >= f.allocated && f.allocated >= 0)
        f.unallocated = f.reserved - f.allocated;
    /* In a container the driver's process numbers are foreign: the only one listed is our own, of
     * several the smallest that can hold what we do. The message may be cut before all of it. */
    int64_t least = hb_teller_fact(t, HB_FACT_LEAST_OTHER);
    int64_t ours = f.reserved >= 0 ? f.reserved : f.allocated;
    if (f.process < 0 && f.others >= 0 && f.others >= ours) {
        f.process = least >= ours ? least : f.others;
        f.others = f.others > f.process ? f.others - f.process : -1;
    }
    /* A process that holds much and gave PyTorch little: its memory is another library's. MPS's own
     * graphs are such. */
    bool mps = hb_str_same(t->log->message[HB_LOG_TORCH].name, "MPS");
    if (!mps && f.process > 0 && f.reserved >= 0 && f.reserved < f.process / 8 &&
        f.process > f.capacity / 2)
        f.lost = f.process - f.reserved;
    if (f.process >= f.reserved && f.reserved >= 0)
        f.beside = f.process - f.reserved;
    if (f.process < 0 && f.others < 0 && f.reserved >= 0 && f.free_bytes >= 0 &&
        f.capacity >= f.reserved + f.free_bytes)
        f.lost = f.capacity - f.reserved - f.free_bytes;
    /* The message was cut before what is reserved: seldom twice what tensors take. */
    if (f.process < 0 && f.others < 0 && f.reserved < 0 && f.allocated >= 0 && f.free_bytes >= 0 &&
        f.capacity / 2 > f.free_bytes + 2 * f.allocated)
        f.lost = f.capacity - f.free_bytes - 2 * f.allocated;
    return f;
}

/* The device had room: something else said no. */
static void tell_refused_with_room(const struct teller *t, const struct figures *f)
{
    if (f->allowed >= 0 && f->free_bytes < 0) {
        hb_teller_cause(t, HB_CAUSE_LIMIT,
                        hb_teller_text(t,
                                       "This platform gives at most %s in one piece. On Intel Arc "
                                       "UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1 lifts that.",
                                       hb_teller_size(t, f->allowed)));
        hb_teller_knob(t, HB_KNOB_LIMIT, -1);
        return;
    }
    if (f->free_bytes < 0) {
        hb_teller_cause(t, HB_CAUSE_LIMIT,
                        hb_teller_text(t,
                                       "PyTorch holds %s of the device's %s, so there should have "
                                       "been room: a largest size of one allocation (4 GiB on "
                                       "Intel Arc unless UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1), "
                                       "or memory that others hold.",
                                       hb_teller_size(t, f->reserved),
                                       hb_teller_size(t, f->capacity)));
        hb_teller_knob(t, HB_KNOB_LIMIT, -1);
        hb_teller_knob(t, HB_KNOB_OTHERS, -1);
        return;
    }
    if (f->allowed >= 0) {
        hb_teller_cause(t, HB_CAUSE_LIMIT,
                        hb_teller_text(t,
                                       "The device had %s free, but the program may use only %s: "
                                       "set_per_process_memory_fraction, or a scheduler's share.",
                                       hb_teller_size(t, f->free_bytes),
                                       hb_teller_size(t, f->allowed)));
        hb_teller_knob(t, HB_KNOB_LIMIT, -1);
        return;
    }
    hb_teller_cause(
        t, HB_CAUSE_LIMIT,
        hb_teller_text(t,
                       "The device had %s free, more than was asked: the driver refused for "
                       "another reason (number of mappings, a limit on locked or shared "
                       "memory, a share of the device), or the memory was taken in between.",
                       hb_teller_size(t, f->free_bytes)));
    hb_teller_knob(t, HB_KNOB_LIMIT, -1);
    hb_teller_knob(t, HB_KNOB_OTHERS, -1);
}

static void tell_fragmentation(const struct teller *t, const struct figures *f)
{
    hb_teller_cause(
        t, HB_CAUSE_FRAGMENTATION,
        hb_teller_text(t,
                       "PyTorch holds %s that no tensor uses, more than the %s that were "
                       "asked: it lies in pieces too small for the request.",
                       hb_teller_size(t, f->unallocated), hb_teller_size(t, f->asked)));
    if (t->log->mark[HB_MARK_SERVES] && hb_teller_generates(t))
        hb_teller_knob(t, HB_KNOB_SERVER, -1);
    hb_teller_knob(t, HB_KNOB_SEGMENTS, f->unallocated);
}

/* What the words around the message say of a giant; a giant above the device is scores more often
 * than logits. */
static void add_giant_knobs(const struct teller *t, bool above)
{
    const int64_t *mark = t->log->mark;
    if (mark[HB_MARK_SERVES] && hb_teller_generates(t))
        hb_teller_knob(t, HB_KNOB_SERVER, -1);
    bool named = mark[HB_MARK_SCORES] || mark[HB_MARK_LOGITS];
    bool scores =
        mark[HB_MARK_SCORES] ? !mark[HB_MARK_LOGITS] || above : above && !mark[HB_MARK_LOGITS];
    if (!named && (!above || mark[HB_MARK_IMAGES]) && t->story->framework >= HB_FW_LOG_JAX)
        hb_teller_knob(
            t, hb_teller_generates(t) || hb_teller_is_least(t) ? HB_KNOB_FEWER : HB_KNOB_BATCH, -1);
    hb_teller_knob(t, scores ? HB_KNOB_FLASH : HB_KNOB_LOSS_CHUNKS, -1);
    hb_teller_knob(t, scores ? HB_KNOB_LOSS_CHUNKS : HB_KNOB_FLASH, -1);
}

/* More than a device has that is to be had today. */
#define LARGEST_BYTES ((int64_t)300 << 30)

static void tell_plain(const struct teller *t, const struct figures *f)
{
    const int64_t *mark = t->log->mark;
    bool loads = hb_teller_loads(t);
    bool updates = mark[HB_MARK_UPDATES] && !mark[HB_MARK_BACKWARD];
    bool above = f->capacity > 0 ? f->asked > f->capacity : f->asked > LARGEST_BYTES;
    if (above) {
        hb_teller_cause(t, HB_CAUSE_GIANT,
                        "One tensor larger than the whole device: a shape that went "
                        "wrong, or scores and logits of a long sequence.");
        add_giant_knobs(t, true);
    } else if (loads) {
        hb_teller_cause(t, HB_CAUSE_STATE,
                        hb_teller_text(t,
                                       "It failed while weights were loaded: they alone take %s, "
                                       "%d %% of the device.",
                                       hb_teller_size(t, f->allocated),
                                       hb_teller_percent(f->allocated, f->capacity)));
    } else if (updates) {
        hb_teller_cause(t, HB_CAUSE_STATE,
                        "It failed in the optimizer's step: its states, which the first step "
                        "makes, come on top of weights and gradients; activations are gone by "
                        "then.");
    } else if (f->asked > (f->capacity > 0 ? f->capacity : LARGEST_BYTES) / 5) {
        hb_teller_cause(
            t, HB_CAUSE_GIANT,
            f->capacity > 0
                ? hb_teller_text(t,
                                 "A single tensor of %s, %d %% of the device: logits, attention "
                                 "scores or a flattened state.",
                                 hb_teller_size(t, f->asked),
                                 hb_teller_percent(f->asked, f->capacity))
                : hb_teller_text(t,
                                 "A single tensor of %s, a large part of any device: logits, "
                                 "attention scores or a flattened state.",
                                 hb_teller_size(t, f->asked)));
        add_giant_knobs(t, false);
    } else if (f->asked < 0 && f->allocated < 0) {
        hb_teller_cause(t, HB_CAUSE_UNKNOWN, "The message has no figures.");
    } else {
        hb_teller_cause(
            t, HB_CAUSE_SIZE,
            f->allocated >= 0
                ? hb_teller_text(t,
                                 "Tensors take %s, %d %% of the device; what is reserved "
                                 "beside them would not have been enough.",
                                 hb_teller_size(t, f->allocated),
                                 hb_teller_percent(f->allocated, f->capacity))
                : "The message does not say what tensors take.");
    }
}

static void tell_absurd(const struct teller *t, const struct figures *f)
{
    hb_teller_cause(t, HB_CAUSE_CORRUPT,
                    hb_teller_text(t,
                                   "%s is more than any device has and no program's wish: a kernel "
                                   "gave back garbage for a size, mostly an extension that was "
                                   "compiled for another GPU or CUDA than runs it.",
                                   hb_teller_size(t, f->asked)));
    hb_teller_knob(t, HB_KNOB_DRIVER, -1);
}

static void tell_elsewhere(const struct teller *t, const struct figures *f)
{
    hb_teller_cause(
        t, HB_CAUSE_OTHERS,
        hb_teller_text(t,
                       "%s of the device are neither PyTorch's nor free: another process, another "
                       "framework in this one, or libraries (NCCL, contexts) hold them.",
                       hb_teller_size(t, f->lost)));
    if (f->process > f->lost && t->log->mark[HB_MARK_SERVES]) /* the server's own engine */
        hb_teller_knob(t, HB_KNOB_SERVER, -1);
    hb_teller_knob(t, HB_KNOB_OTHERS, f->lost);
}

enum { FULL_PERCENT = 90, SOME_PERCENT = 10, LITTLE_PERCENT = 8 };

/* In this order: what is not about the model comes first. */
static void find_cause(const struct teller *t, const struct figures *f)
{
    /* What is free of a full device lies in pieces. */
    int64_t step = t->log->message[HB_LOG_TORCH].step[HB_FACT_FREE]; /* figures are rounded */
    bool room =
        f->free_bytes >= f->asked + step && f->asked >= 0 && f->free_bytes > f->capacity / 50;
    bool untold = f->free_bytes < 0 && f->reserved >= 0 && f->capacity > 0 &&
                  f->asked < f->capacity / 10 * 8 - f->reserved;
    /* What others hold; of little of it more would have been asked for next. */
    bool crowded = f->others > f->capacity / 100 * SOME_PERCENT && f->asked >= 0 &&
                   f->free_bytes >= 0 && f->others >= f->asked - f->free_bytes;
    /* Tensors that fill the device are too many, and a few MiB more would not have helped. */
    bool full = f->capacity > 0 && f->allocated > f->capacity / 100 * FULL_PERCENT;
    bool scattered = f->unallocated >= f->asked && f->asked >= 0 && !full &&
                     f->unallocated > f->capacity / 100 * LITTLE_PERCENT;
    bool elsewhere = f->lost > f->capacity / 4 && f->lost >= f->asked - f->free_bytes;
    int64_t card = hb_teller_fact(t, HB_FACT_TOTAL);
    if (f->capacity > 0 && card / 2 > f->capacity) {
        hb_teller_cause(t, HB_CAUSE_LIMIT,
                        hb_teller_text(t,
                                       "The card is set to %s, of which the program is shown %s: a "
                                       "setting of driver or kernel, not the model.",
                                       hb_teller_size(t, card), hb_teller_size(t, f->capacity)));
        hb_teller_knob(t, HB_KNOB_DRIVER, -1);
    } else if (f->asked >= HB_TELLER_ABSURD_BYTES) {
        tell_absurd(t, f);
    } else if (room || untold || f->allowed >= 0) {
        tell_refused_with_room(t, f);
    } else if (elsewhere) {
        tell_elsewhere(t, f);
    } else if (scattered) {
        tell_fragmentation(t, f);
    } else if (crowded) {
        hb_teller_cause(t, HB_CAUSE_OTHERS,
                        hb_teller_text(t,
                                       "Other processes hold %s of this device; without them the "
                                       "request would have been met.",
                                       hb_teller_size(t, f->others)));
        hb_teller_knob(t, HB_KNOB_OTHERS, f->others);
    } else {
        tell_plain(t, f);
    }
}

static void add_parts(const struct teller *t, const struct figures *f)
{
    hb_teller_part(t, "tensors", f->allocated, false);
    hb_teller_part(t, "of private pools (graphs)", hb_teller_fact(t, HB_FACT_POOLS), true);
    hb_teller_part(t, "reserved by PyTorch, used by no tensor", f->unallocated, false);
    hb_teller_part(t, "beside PyTorch: context, libraries, communicators", f->beside, false);
    hb_teller_part(t, "other processes", f->others, false);
    hb_teller_part(t, "neither PyTorch's nor free: other processes, contexts, NCCL", f->lost,
                   false);
    hb_teller_part(t, "free", f->free_bytes, false);
}

static void note_stats(const struct teller *t)
{
    int64_t peak = hb_log_fact(t->log, HB_LOG_TORCH_STATS, HB_FACT_PEAK_ALLOCATED);
    int64_t now = hb_log_fact(t->log, HB_LOG_TORCH_STATS, HB_FACT_ALLOCATED);
    int64_t retries = hb_log_fact(t->log, HB_LOG_TORCH_STATS, HB_FACT_RETRIES);
    if (now >= 0 && peak >= now) {
        t->story->state_bytes = now;
        t->story->transient_bytes = peak - now;
        hb_teller_note(t, "Statistics in the log: tensors %s when printed, %s at the peak.",
                       hb_teller_size(t, now), hb_teller_size(t, peak));
    }
    if (retries > 0)
        hb_teller_note(t,
                       "The allocator had to give back its cache and try again %lld time%s: each "
                       "costs time.",
                       (long long)retries, retries == 1 ? "" : "s");
}

void hb_tell_torch(const struct teller *t)
{
    struct hb_story *s = t->story;
    struct figures f = read_figures(t);
    const char *api = t->log->message[HB_LOG_TORCH].name;
    int64_t device = hb_teller_fact(t, HB_FACT_DEVICE);
    const char *where =
        device >= 0 ? hb_teller_text(t, " on %s %lld", hb_str_same(api, "NPU") ? api : "GPU",
                                     (long long)device)
                    : "";
    s->title = hb_teller_text(t, "PyTorch could not get memory from %s%s.",
                              api[0] ? api : "the driver", where);
    s->wanted_of = "one tensor";
    s->available_of = "what was free on the device";
    s->capacity_bytes = f.capacity;
    s->beside_bytes = f.beside > 0 && f.lost < 0 ? f.beside : 0;
    hb_teller_figures(t, f.asked, f.free_bytes, -1);
    add_parts(t, &f);
    find_cause(t, &f);
    /* A program that trains nothing and fills the device: with weights. */
    if (s->cause == HB_CAUSE_SIZE && hb_teller_generates(t) && !t->log->mark[HB_MARK_SERVES] &&
        f.capacity > 0 && f.allocated > f.capacity / 100 * 85 && f.asked < f.capacity / 20)
        hb_teller_knob(t, hb_str_same(api, "MPS") ? HB_KNOB_QUANTIZE : HB_KNOB_WEIGHTS, -1);
    if (s->cause == HB_CAUSE_UNKNOWN)
        hb_teller_look(t);
    else if (hb_teller_trains(t) && t->log->mark[HB_MARK_GATHERS])
        hb_teller_knob(t, HB_KNOB_CHECKPOINT, -1);
    if (s->cause != HB_CAUSE_LIMIT && s->cause != HB_CAUSE_OTHERS && s->cause != HB_CAUSE_CORRUPT)
        hb_teller_knobs(t);
    if (s->cause != HB_CAUSE_FRAGMENTATION && s->cause != HB_CAUSE_CORRUPT &&
        (f.unallocated > f.allocated / 10 || (f.unallocated >= f.asked && f.asked >= 0)))
        hb_teller_knob(t, HB_KNOB_SEGMENTS, f.unallocated);
    if (f.beside > (int64_t)4 << 30) {
        hb_teller_note(t, "%s stand beside PyTorch's own memory: many communicators?",
                       hb_teller_size(t, f.beside));
        hb_teller_knob(t, HB_KNOB_SMALLER_POOL, -1);
    }
    note_stats(t);
}

void hb_tell_torch_stats(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t peak = hb_teller_fact(t, HB_FACT_PEAK_ALLOCATED);
    int64_t reserved = hb_teller_fact(t, HB_FACT_PEAK_RESERVED);
    s->title = "PyTorch's memory statistics; nothing failed in this log.";
    s->wanted_of = reserved >= 0 ? "the most that was reserved" : "the most that tensors took";
    s->available_of = "the device";
    s->capacity_bytes = hb_teller_fact(t, HB_FACT_CAPACITY);
    hb_teller_figures(t, reserved >= 0 ? reserved : peak, s->capacity_bytes, -1);
    hb_teller_part(t, "tensors when printed", hb_teller_fact(t, HB_FACT_ALLOCATED), false);
    hb_teller_part(t, "tensors at the peak", peak, false);
    hb_teller_part(t, "reserved when printed", hb_teller_fact(t, HB_FACT_RESERVED), false);
    hb_teller_part(t, "reserved at the most", reserved, false);
    hb_teller_part(t, "free pieces that cannot be given back",
                   hb_teller_fact(t, HB_FACT_UNRELEASABLE), true);
    hb_teller_cause(t, HB_CAUSE_NONE,
                    reserved >= peak && peak > 0
                        ? hb_teller_text(t,
                                         "%d %% of what was reserved at the most was in tensors.",
                                         hb_teller_percent(peak, reserved))
                        : "The log does not tell both what was reserved and what tensors took.");
    if (reserved > 0 && peak > 0 && peak < reserved / 10 * 8)
        hb_teller_knob(t, HB_KNOB_SEGMENTS, reserved - peak);
    note_stats(t);
}
