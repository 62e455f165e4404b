/* Stories of PyTorch: its allocator's refusal, its statistics. */
#include "base/size.h"
#include "sim/hlo/teller.h"

/* What a context alone takes; a message may be cut within the figure. */
#define LEAST_PROCESS_BYTES ((int64_t)16 << 20)

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
     * several the smallest, if it can hold what we do, else at most the largest. The message may be
     * cut before all of it. */
    int64_t least = hb_teller_fact(t, HB_FACT_LEAST_OTHER);
    int64_t most = hb_teller_fact(t, HB_FACT_MOST_OTHER);
    int64_t ours = f.reserved >= 0 ? f.reserved : f.allocated;
    if (f.process < 0 && f.others >= 0 && f.others >= ours) {
        f.process = least >= ours ? least : most;
        f.others = f.others > f.process ? f.others - f.process : -1;
    }
    if (f.process >= 0 && f.process < ours)
        f.process = -1; /* "this process has 0 bytes in use": what it holds is not known there */
    /* A process that holds much and gave PyTorch little: its memory is another library's. MPS's own
     * graphs are such. */
    bool mps = hb_str_same(t->log->message[HB_LOG_TORCH].name, "MPS");
    if (!mps && f.process > 0 && f.reserved >= 0 && f.reserved < f.process / 8 &&
        f.process > f.capacity / 2)
        f.lost = f.process - f.reserved;
    if (f.process >= f.reserved && f.reserved >= 0)
        f.beside = f.process - f.reserved;
    /* Of a container the others' processes are not listed. */
    int64_t rest = f.free_bytes >= 0 ? f.capacity - f.free_bytes - f.process : 0;
    if (f.process >= LEAST_PROCESS_BYTES && f.others < 0 && rest > f.capacity / 4)
        f.lost = rest;
    if (f.process < 0 && f.others < 0 && f.reserved >= 0 && f.free_bytes >= 0 &&
        f.capacity >= f.reserved + f.free_bytes)
        f.lost = f.capacity - f.reserved - f.free_bytes;
    /* The message was cut before what is reserved: seldom twice what tensors take. */
    if (f.process < 0 && f.others < 0 && f.reserved < 0 && f.allocated >= 0 && f.free_bytes >= 0 &&
        f.capacity / 2 > f.free_bytes + 2 * f.allocated)
        f.lost = f.capacity - f.free_bytes - 2 * f.allocated;
    return f;
}

/* What the words around the message say of a giant; one above the device is scores more often than
 * logits. */
static void mark_giant(const struct teller *t, bool above)
{
    const int64_t *mark = t->log->mark;
    bool named = mark[HB_MARK_SCORES] || mark[HB_MARK_LOGITS];
    bool trainer = t->story->framework < HB_FW_LOG_JAX;
    hb_teller_trait(t, mark[HB_MARK_SCORES] && (above || !mark[HB_MARK_LOGITS]), HB_TRAIT_SCORES);
    hb_teller_trait(t, !named && !trainer, HB_TRAIT_UNNAMED);
}

/* What the figures are. A driver gives a tenth less than the device has, where it does not say what
 * is free. */
static struct hb_ledger ledger_of(const struct teller *t, const struct figures *f)
{
    bool untold = f->free_bytes < 0 && f->reserved >= 0 && f->capacity > 0;
    struct hb_ledger l = hb_ledger_untold();
    l.asked = f->asked;
    l.capacity = f->capacity;
    l.card = t->log->card_bytes > 0 ? t->log->card_bytes : -1;
    l.allowed = f->allowed;
    l.room = untold ? f->capacity / 10 * 8 - f->reserved : f->free_bytes;
    l.live = f->allocated;
    l.idle = f->unallocated;
    l.others = f->free_bytes >= 0 ? f->others : -1;
    l.lost = f->lost;
    l.blur = t->log->message[HB_LOG_TORCH].step[HB_FACT_FREE];
    l.tensor = true;
    l.reckoned = untold;
    l.loads = hb_teller_loads(t);
    l.updates = hb_teller_updates(t);
    return l;
}

static void mark_reason(const struct teller *t, const struct figures *f, enum hb_reason reason)
{
    bool lost = reason == HB_REASON_LOST, mine = lost && f->lost == f->beside;
    hb_teller_trait(t, reason == HB_REASON_CARD, HB_TRAIT_CARD);
    hb_teller_trait(t, reason == HB_REASON_SHARE || reason == HB_REASON_LARGEST,
                    HB_TRAIT_OWN_LIMIT);
    hb_teller_trait(t, mine && f->process > f->lost, HB_TRAIT_MINE);
    if (hb_reason_cause(reason) == HB_CAUSE_OTHERS)
        hb_teller_frees(t, HB_KNOB_OTHERS, lost ? f->lost : f->others);
    mark_giant(t, reason == HB_REASON_ABOVE);
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
    struct hb_ledger ledger = ledger_of(t, &f);
    mark_reason(t, &f, hb_teller_decide(t, &ledger));
    hb_teller_trait(t, hb_str_same(api, "MPS"), HB_TRAIT_METAL);
    hb_teller_trait(t,
                    hb_teller_generates(t) && !t->log->mark[HB_MARK_SERVES] &&
                        !t->log->mark[HB_MARK_IMAGES] && !t->log->mark[HB_MARK_INPUTS] &&
                        f.capacity > 0 && f.allocated > f.capacity / 100 * 85 &&
                        f.asked < f.capacity / 20,
                    HB_TRAIT_FULL);
    hb_teller_frees(t, HB_KNOB_SEGMENTS, f.unallocated);
    hb_teller_trait(t,
                    f.unallocated > f.allocated / 10 || (f.unallocated >= f.asked && f.asked >= 0),
                    HB_TRAIT_IDLE);
    if (f.beside > (int64_t)4 << 30) {
        hb_teller_note(t, "%s stand beside PyTorch's own memory: many communicators?",
                       hb_teller_size(t, f.beside));
        hb_teller_trait(t, true, HB_TRAIT_BESIDE);
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
    hb_teller_trait(t, reserved > 0 && peak > 0 && peak < reserved / 10 * 8, HB_TRAIT_IDLE);
    hb_teller_frees(t, HB_KNOB_SEGMENTS, reserved - peak);
    note_stats(t);
}
