/* Stories of what comes with few figures or none, of servers of models, of other runtimes and of
 * the host. */
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/teller.h"

/* Kinds that say little or nothing in figures: a sentence, a reason, what helps. */
static const struct small {
    enum hb_log_kind kind;
    enum hb_cause cause;
    const char *title;
    const char *because;
} smalls[] = {
    {HB_LOG_TORCH_CORRUPT, HB_CAUSE_CORRUPT, "PyTorch was asked for more than an exabyte.",
     "No program means that: a size was read from garbage, mostly because ranks ran different "
     "collectives (unequal numbers of batches, one rank that left earlier) or a message was "
     "received as another type."},
    {HB_LOG_CORRUPT, HB_CAUSE_CORRUPT, "More was asked for than a process can address.",
     "No program means that: the size was worked out from garbage, an overflow or an input of a "
     "shape that was not foreseen."},
    {HB_LOG_LIBRARY, HB_CAUSE_COMMUNICATOR,
     "A library of kernels (cuBLAS, cuDNN, ...) found no memory for its handle or workspace.",
     "It allocates beside the framework's pool, which had taken the rest of the device. Where much "
     "is free, look for an index out of range first (CUDA_LAUNCH_BLOCKING=1): the failure that it "
     "leaves behind is reported by the next call, which is often this one."},
    {HB_LOG_NCCL, HB_CAUSE_COMMUNICATOR,
     "The communication library found no memory for its buffers.",
     "It allocates beside the framework's pool, which had taken the rest of the device."},
    {HB_LOG_TPU_SCOPED, HB_CAUSE_ONCHIP,
     "A kernel asks for more of an on-chip memory (vmem, smem, ...) than there is.",
     "This is not the device's main memory: blocks of a kernel are too large, or a compiler flag "
     "gives it too little."},
    {HB_LOG_TACTIC, HB_CAUSE_NONE,
     "TensorRT passed over a tactic that wants more memory than is free.",
     "That is no failure: another tactic is taken, maybe a slower one. A workspace that the device "
     "has keeps such tactics out."},
    {HB_LOG_BFC_SOFT, HB_CAUSE_NONE,
     "The allocator gave up a request that its caller could do without.",
     "That is no failure: it was scratch space that would have made something faster."},
    {HB_LOG_RESHARD, HB_CAUSE_NONE,
     "XLA's partitioner gathers a sharded tensor whole to reshard it.",
     "Its sharding before and after do not follow from each other; the whole tensor stands on "
     "each device for a moment."},
    {HB_LOG_FAULT, HB_CAUSE_FAULT, "A program faulted; the log has no lack of memory.",
     "Memory was touched that is not the program's, an assertion failed or a device was lost: an "
     "index out of range, a kernel built for another device or driver, broken hardware. Kernels "
     "report late: the call that is named may not be the one that failed."},
    {HB_LOG_GATHER, HB_CAUSE_NONE,
     "Arrays are gathered over all processes (process_allgather or the like).",
     "That takes the array times the number of processes on each device. The log does not say "
     "that it failed."},
};

/* Some rank waits for a collective that others never begin. */
static void tell_timeout(const struct teller *t)
{
    t->story->title = "A collective operation timed out; the log has no lack of memory.";
    hb_teller_cause(
        t, HB_CAUSE_FAULT,
        "A rank waited in vain for the others: one of them failed, stalled (a slow load "
        "or save) or went another way through the program. What it printed before "
        "tells; where it ran out of memory its log says so.");
}

static void note_times(const struct teller *t)
{
    int64_t times = t->log->message[t->story->kind].times;
    if (times > 1)
        hb_teller_note(t, "The log says so %lld times.", (long long)times);
}

/* A builder that found no tactic at all. */
static void tell_builder(const struct teller *t, int64_t free_bytes)
{
    t->story->framework = HB_FW_LOG_TENSORRT;
    if (!t->log->mark[HB_MARK_NO_ENGINE])
        return;
    t->story->title = "TensorRT found no tactic for a layer in the memory that it has.";
    if (free_bytes >= 0) {
        hb_teller_cause(t, HB_CAUSE_SIZE, "Each tactic wants more than the device has left.");
    } else {
        hb_teller_cause(t, HB_CAUSE_LIMIT,
                        "The workspace that the builder was given is too small "
                        "for each of its tactics.");
    }
}

void hb_tell_small(const struct teller *t)
{
    struct hb_story *s = t->story;
    const struct hb_log_message *m = &t->log->message[s->kind];
    int64_t asked = hb_teller_fact(t, HB_FACT_ASKED);
    int64_t free_bytes = hb_teller_fact(t, HB_FACT_FREE);
    if (s->kind == HB_LOG_NCCL && asked < 0) /* XLA asks for its collectives' memory itself */
        asked = hb_log_fact(t->log, HB_LOG_RUNTIME, HB_FACT_ASKED);
    for (size_t i = 0; i < sizeof smalls / sizeof smalls[0]; i++) {
        if (smalls[i].kind != s->kind)
            continue;
        s->title = smalls[i].title;
        hb_teller_cause(t, smalls[i].cause, smalls[i].because);
    }
    if (s->kind == HB_LOG_TACTIC)
        tell_builder(t, free_bytes);
    if (s->kind == HB_LOG_FAULT && hb_str_same(m->name, HB_LOG_TIMEOUT))
        tell_timeout(t);
    hb_teller_figures(t, asked >= 0 ? asked : hb_teller_fact(t, HB_FACT_NEEDED),
                      free_bytes >= 0 ? free_bytes : hb_teller_fact(t, HB_FACT_CAPACITY),
                      hb_teller_fact(t, HB_FACT_OVER));
    s->wanted_of = "one request";
    s->available_of = m->name[0] && s->kind == HB_LOG_TPU_SCOPED ? m->name : "there is";
    note_times(t);
    hb_teller_groups(t, s->kind);
}

/* vLLM and SGLang: what the share of the device leaves for the cache; or less is free when they
 * start than their share. */
void hb_tell_serve(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t capacity = hb_teller_fact(t, HB_FACT_CAPACITY);
    int64_t asked = hb_teller_fact(t, HB_FACT_ASKED);
    int64_t free_bytes = hb_teller_fact(t, HB_FACT_FREE);
    hb_teller_figures(t, asked, free_bytes, -1);
    s->capacity_bytes = capacity;
    s->available_of = "there is";
    bool warm_up = hb_str_same(t->log->message[s->kind].name, HB_LOG_WARM_UP);
    struct hb_ledger l = hb_ledger_untold();
    l.asked = asked;
    l.capacity = capacity;
    l.room = free_bytes;
    l.others = capacity > 0 && free_bytes >= 0 ? capacity - free_bytes : -1;
    l.named = l.fresh = true;
    l.share = l.others < 0 && !warm_up;
    hb_teller_decide(t, &l);
    if (s->cause == HB_CAUSE_OTHERS) {
        s->title = "The server found less of the device free than the share that it was to have.";
        s->wanted_of = "the server's share";
        hb_teller_frees(t, HB_KNOB_OTHERS, l.others);
    } else if (warm_up) {
        s->title = "The server found no room for the largest batch that it is to take.";
        s->wanted_of = "the batch";
        hb_teller_note(t,
                       "Weights and cache are laid out by then; logits of as many sequences as it "
                       "may take at once come on top.");
    } else {
        s->title =
            "The server's share of the device leaves no room for its cache of keys and values.";
        s->wanted_of = "what the cache was to have";
    }
    note_times(t);
}

void hb_tell_host(const struct teller *t)
{
    struct hb_story *s = t->story;
    const char *name = t->log->message[s->kind].name;
    int64_t resident = hb_teller_fact(t, HB_FACT_RESIDENT);
    int64_t asked = hb_teller_fact(t, HB_FACT_ASKED);
    bool refused = hb_str_same(name, HB_LOG_REFUSED);
    bool worker = hb_str_same(name, HB_LOG_WORKER);
    s->title = refused  ? "The host had no room for an allocation."
               : worker ? "A worker nears its share of the host's memory."
                        : "The host's memory ran out: the system ended a process.";
    s->wanted_of = resident >= 0 ? "what the process held when it was ended"
                   : refused     ? "one allocation, in the host's memory"
                   : worker      ? "what the worker holds"
                                 : "what stood in the node's memory";
    s->available_of = "there is";
    int64_t capacity = hb_teller_fact(t, HB_FACT_CAPACITY);
    int64_t limit = t->log->limit_bytes;
    asked = limit > 0 && asked == limit ? -1 : asked; /* what a job asked for is its limit */
    bool given = capacity < 0 && limit && (!refused || asked < 0);
    if (given)
        s->available_of = "the limit that container or job were given";
    hb_teller_figures(t, resident >= 0 ? resident : asked, given ? limit : capacity, -1);
    hb_teller_cause(t, HB_CAUSE_HOST,
                    "This is not the device's memory. Pinned buffers, offloaded states, loader "
                    "workers and checkpoints that are gathered on one host live there.");
    note_times(t);
}

/* What a table of nvidia-smi shows free of a device that is all but full; -1: no such table. */
static int64_t left_by_table(const struct teller *t)
{
    int64_t all = t->log->device_bytes;
    int64_t used = t->log->device_used_bytes;
    return t->story->kind == HB_LOG_PLAIN && all > 0 && used > all / 10 * 9 ? all - used : -1;
}

/* Runtimes that run models, most telling first. */
static enum hb_log_framework engine_of(const struct teller *t)
{
    static const enum hb_log_framework engines[] = {HB_FW_LOG_GGML, HB_FW_LOG_TENSORRT,
                                                    HB_FW_LOG_ONNX};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (t->log->framework[engines[i]])
            return engines[i];
    return HB_FW_LOG_COUNT;
}

/* Whether the refusal, or a line beside it, names a limit. */
static bool names_limit(const struct teller *t)
{
    enum { LINES = 3 };
    static const enum hb_log_kind kinds[] = {HB_LOG_RUNTIME, HB_LOG_PLAIN, HB_LOG_ANY};
    int64_t line = t->log->message[t->story->kind].line;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct hb_log_message *m = &t->log->message[kinds[i]];
        if (m->times && hb_str_same(m->name, HB_LOG_LIMIT) && m->line <= line + LINES &&
            m->line >= line - LINES)
            return true;
    }
    return false;
}

/* Whether memory ran short, nobody says how much or whose, and something fills the host's, or that
 * is named beside. */
static bool is_of_host(const struct teller *t)
{
    return hb_teller_fact(t, HB_FACT_ASKED) < 0 && t->story->kind == HB_LOG_ANY &&
           (t->log->mark[HB_MARK_FILLS_HOST] || hb_log_seen(t->log, HB_LOG_HOST)) &&
           !t->log->mark[HB_MARK_OF_DEVICE] && !hb_log_seen(t->log, HB_LOG_PLAIN);
}

/* Whether memory ran short and neither figures nor any word tell whose: the host's is named beside
 * it, or no device is, nothing that only runs on one, and nothing is trained. A quarter of such
 * threads end with the host's. */
static bool is_anyones(const struct teller *t)
{
    bool named = t->log->mark[HB_MARK_DEVICE] > 0;
    for (int i = 0; i < HB_FW_LOG_COUNT; i++)
        named = named || t->log->framework[i];
    bool open = !named && (!hb_teller_trains(t) || hb_teller_is_open(t));
    bool fills = t->story->kind == HB_LOG_PLAIN && t->log->mark[HB_MARK_FILLS_HOST];
    bool anyones = t->story->kind == HB_LOG_ANY && (open || t->log->mark[HB_MARK_HOST]);
    return (fills || anyones) && t->story->cause == HB_CAUSE_UNKNOWN &&
           t->story->available_bytes < 0;
}

/* A refusal in anybody's words: by its figures, and by what the log tells of the program. */
void hb_tell_refusal(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t asked = hb_teller_fact(t, HB_FACT_ASKED);
    int64_t left = left_by_table(t);
    if (is_of_host(t)) {
        hb_tell_host(t);
        return;
    }
    int64_t free_bytes = left >= 0 ? left : hb_teller_fact(t, HB_FACT_FREE);
    enum hb_log_framework engine = engine_of(t);
    bool runs = engine != HB_FW_LOG_COUNT && !hb_teller_trains(t);
    bool loads = hb_teller_loads(t);
    if (runs)
        s->framework = engine;
    s->title = asked >= 0                ? "A request for memory was refused."
               : s->kind == HB_LOG_PLAIN ? "The driver says out of memory, without figures."
                                         : "Memory was refused; the log has no figures of it.";
    s->wanted_of = "one request";
    s->available_of = "there is";
    s->capacity_bytes = hb_teller_fact(t, HB_FACT_CAPACITY);
    hb_teller_figures(t, asked, free_bytes, -1);
    struct hb_ledger l = hb_ledger_untold();
    l.asked = asked;
    l.room = free_bytes;
    l.capacity = left >= 0 ? t->log->device_bytes : s->capacity_bytes;
    l.others = left >= 0 ? t->log->device_used_bytes : -1;
    l.context = hb_str_same(t->log->message[s->kind].name, HB_LOG_CONTEXT);
    l.limited = names_limit(t) || (free_bytes >= 0 && engine == HB_FW_LOG_ONNX);
    l.loads = loads;
    l.updates = hb_teller_updates(t);
    l.pieces = t->log->mark[HB_MARK_PIECES] > 0;
    hb_teller_decide(t, &l);
    if (is_anyones(t)) {
        hb_teller_trait(t, true, HB_TRAIT_ANYONES);
        s->because = "The log does not even tell whose memory it was, the host's or a device's.";
    }
    hb_teller_frees(t, HB_KNOB_OTHERS, l.others);
    if (s->cause != HB_CAUSE_LIMIT)
        note_times(t);
}
