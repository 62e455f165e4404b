/* Stories of XLA: the compiler's refusal, the runtime's failed allocation, rematerialization,
 * totals and statistics. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "sim/hlo/teller.h"

static int64_t difference(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a > b ? a - b : -1;
}

static int64_t padding_of(const struct hb_story *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->group_count; i++)
        sum = hb_add_sat(sum, s->groups[i].padding_bytes);
    return sum;
}

/* An array that each process holds, gathered from all of them to see that they agree: jax's
 * device_put of a host array to a replicated sharding does that. */
static void tell_replication(const struct teller *t, int64_t bytes)
{
    const char *said = t->log->setting[HB_SET_PROCESSES];
    long count = strtol(said, NULL, 10);
    const char *all = hb_teller_size(t, bytes);
    const char *products =
        count > 1 ? hb_teller_text(t, "%s x %ld processes", hb_teller_size(t, bytes / count), count)
                  : hb_teller_text(t, "%s x 64 processes, or %s x 32, or %s x 16",
                                   hb_teller_size(t, bytes / 64), hb_teller_size(t, bytes / 32),
                                   hb_teller_size(t, bytes / 16));
    hb_teller_cause(
        t, HB_CAUSE_REPLICATION,
        hb_teller_text(t,
                       "%s is one replicated array times the number of processes (%s): the "
                       "check that all hosts hold the same value gathers all their copies "
                       "on each device. It grows with the processes, not with the batch.",
                       all, products));
    hb_teller_frees(t, HB_KNOB_CALLBACK, count > 1 ? bytes - bytes / count : -1);
    hb_teller_note(t, "No step ran yet: this is the load of the model. Batch and remat do not "
                      "matter here.");
}

static int64_t apart_of(int64_t output, int64_t alias)
{
    return alias > 0 && output > alias ? output - alias : output;
}

/* So often the memory, and fewer sequences are not what it takes: something is whole that was to
 * be sharded. */
enum { TIMES_TOO_LARGE = 4 };

/* The padding of the buffers that are listed, or of all by their sums: the list may be cut. */
static int64_t all_padding(const struct teller *t)
{
    int64_t listed = padding_of(t->story);
    int64_t summed = hb_teller_fact(t, HB_FACT_PADDED) - hb_teller_fact(t, HB_FACT_UNPADDED);
    return summed > listed ? summed : listed;
}

static int64_t copies_of(const struct teller *t, int64_t asked)
{
    return hb_log_seen(t->log, HB_LOG_GATHER) ? asked : -1;
}

/* A program as a whole. */
static enum hb_reason decide_program(const struct teller *t)
{
    struct hb_story *s = t->story;
    struct hb_ledger l = hb_ledger_untold();
    l.asked = s->wanted_bytes;
    l.total = s->wanted_bytes;
    l.capacity = s->capacity_bytes;
    l.padding = all_padding(t);
    l.packing = hb_teller_fact(t, HB_FACT_FRAGMENTATION);
    l.buffer = s->group_count ? s->groups[0].bytes / s->groups[0].count : -1;
    l.arguments = hb_teller_fact(t, HB_FACT_ARGUMENT);
    l.outputs = apart_of(hb_teller_fact(t, HB_FACT_OUTPUT), hb_teller_fact(t, HB_FACT_ALIAS));
    l.copies = copies_of(t, s->wanted_bytes);
    l.named = true;
    return hb_teller_decide(t, &l);
}

static void mark_program(const struct teller *t, enum hb_reason reason)
{
    const struct hb_story *s = t->story;
    hb_teller_frees(t, HB_KNOB_PADDING, all_padding(t));
    hb_teller_trait(t,
                    reason == HB_REASON_PROGRAM && s->capacity_bytes > 0 &&
                        s->wanted_bytes / TIMES_TOO_LARGE > s->capacity_bytes,
                    HB_TRAIT_FAR_ABOVE);
}

static void add_program_parts(const struct teller *t)
{
    int64_t output = hb_teller_fact(t, HB_FACT_OUTPUT);
    int64_t alias = hb_teller_fact(t, HB_FACT_ALIAS);
    hb_teller_part(t, "arguments", hb_teller_fact(t, HB_FACT_ARGUMENT), false);
    hb_teller_part(t, alias > 0 ? "outputs that do not take an argument's place" : "outputs",
                   alias > 0 ? difference(output, alias) : output, false);
    hb_teller_part(t, "TensorCore", hb_teller_fact(t, HB_FACT_TENSORCORE), false);
    hb_teller_part(t, "SparseCore", hb_teller_fact(t, HB_FACT_SPARSECORE), false);
    hb_teller_part(t, "temporaries", hb_teller_fact(t, HB_FACT_TEMP), false);
    hb_teller_part(t, "fragmentation", hb_teller_fact(t, HB_FACT_FRAGMENTATION), true);
    hb_teller_part(t, "padding in the buffers listed", padding_of(t->story), true);
    hb_teller_part(t, "reserved by the runtime", hb_teller_fact(t, HB_FACT_RESERVED), false);
}

/* An output as large as an argument that does not take its place asks for donation. */
static void check_donation(const struct teller *t)
{
    int64_t output = hb_teller_fact(t, HB_FACT_OUTPUT);
    int64_t alias = hb_teller_fact(t, HB_FACT_ALIAS);
    int64_t argument = hb_teller_fact(t, HB_FACT_ARGUMENT);
    int64_t apart = output - (alias > 0 ? alias : 0);
    if (alias < 0 || output < 0 || argument <= 0 || apart < argument / 4)
        return;
    hb_teller_note(t, "Outputs of %s do not take their arguments' place: is the state donated?",
                   hb_teller_size(t, apart));
    hb_teller_trait(t, true, HB_TRAIT_APART);
    hb_teller_frees(t, HB_KNOB_DONATE, apart < argument ? apart : argument);
}

/* "XLA's rematerialization ..." as a note beside another story, or as the story's reason. */
static const char *describe_remat(const struct teller *t)
{
    int64_t target = hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_TARGET);
    int64_t reached = hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_REACHED);
    int64_t original = hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_ORIGINAL);
    if (reached < 0)
        return hb_teller_text(t, "XLA tried to recompute its way below %s and did not get there.",
                              hb_teller_size(t, target));
    if (target < 0)
        return hb_teller_text(t,
                              "What arguments leave for temporaries and outputs is less than "
                              "nothing: they alone are above the limit. Recomputing leaves %s of "
                              "temporaries and outputs beside them.",
                              hb_teller_size(t, reached));
    const char *from =
        original < 0
            ? ""
            : hb_teller_text(t, " from %s (%d %% of what was missing)", hb_teller_size(t, original),
                             hb_teller_percent(original - reached, original - target));
    return hb_teller_text(t,
                          "XLA had %s for temporaries and outputs; recomputing brought it%s to "
                          "%s, still %s too much. What remains it cannot recompute: a few giants, "
                          "loop carries, or arguments that leave no room.",
                          hb_teller_size(t, target), from, hb_teller_size(t, reached),
                          hb_teller_size(t, reached > target ? reached - target : 0));
}

static void note_neighbours(const struct teller *t)
{
    const struct hb_log *log = t->log;
    if (hb_log_seen(log, HB_LOG_REMAT) && t->story->kind != HB_LOG_REMAT)
        hb_teller_note(t, "%s", describe_remat(t));
    if (hb_log_seen(log, HB_LOG_RESHARD)) {
        const struct hb_log_message *m = &log->message[HB_LOG_RESHARD];
        hb_teller_note(t,
                       "The partitioner gathered %lld tensor%s whole to reshard, the first %s: the "
                       "shardings before and after do not follow from each other.",
                       (long long)m->times, m->times == 1 ? "" : "s",
                       m->item_count && m->items[0].shape[0] ? m->items[0].shape : m->name);
        hb_teller_trait(t, true, HB_TRAIT_RESHARDS);
    }
}

void hb_tell_tpu(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t needed = hb_teller_fact(t, HB_FACT_NEEDED);
    int64_t total = hb_teller_fact(t, HB_FACT_TOTAL);
    int64_t padded = hb_teller_fact(t, HB_FACT_PADDED);
    s->capacity_bytes = hb_teller_fact(t, HB_FACT_CAPACITY);
    s->wanted_of = "all that the program keeps on a device";
    s->available_of = "what a program may use";
    hb_teller_figures(t,
                      needed >= 0  ? needed
                      : total >= 0 ? total
                                   : padded,
                      s->capacity_bytes, hb_teller_fact(t, HB_FACT_OVER));
    s->title = s->over_bytes > 0 || needed >= 0
                   ? "The compiler refused the program: it does not fit a TPU's memory. Nothing "
                     "ran."
                   : "The compiler told what the program keeps in a TPU's memory.";
    if (hb_teller_fact(t, HB_FACT_ARGUMENT) > 0) {
        s->state_bytes = hb_teller_fact(t, HB_FACT_ARGUMENT);
        s->transient_bytes = difference(s->wanted_bytes, s->state_bytes);
    }
    hb_teller_groups(t, s->kind);
    add_program_parts(t);
    enum hb_reason reason = decide_program(t);
    if (s->cause == HB_CAUSE_REPLICATION) {
        tell_replication(t, s->wanted_bytes);
    } else {
        mark_program(t, reason);
        check_donation(t);
    }
    note_neighbours(t);
}

void hb_tell_tpu_runtime(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t asked = hb_teller_fact(t, HB_FACT_ASKED);
    int64_t free_bytes = hb_teller_fact(t, HB_FACT_FREE);
    s->capacity_bytes = hb_teller_fact(t, HB_FACT_CAPACITY);
    bool whole = s->kind == HB_LOG_TPU_ALLOC;
    s->wanted_of = s->kind == HB_LOG_TPU_PROGRAM ? "a program, in one piece" : "one buffer";
    s->available_of = whole ? "the whole memory" : "what was free";
    hb_teller_figures(t, asked, whole ? s->capacity_bytes : free_bytes, -1);
    hb_teller_groups(t, s->kind);
    s->title = whole ? "One allocation is larger than the device's memory."
               : s->kind == HB_LOG_TPU_PROGRAM
                   ? "The runtime had no room to load a compiled program beside the buffers "
                     "that stood there."
                   : "The runtime had no room for a buffer (an input, an output or a device_put).";
    struct hb_ledger l = hb_ledger_untold();
    l.asked = asked;
    l.capacity = s->capacity_bytes;
    l.room = free_bytes;
    l.piece = hb_teller_fact(t, HB_FACT_LARGEST_FREE);
    l.outputs = apart_of(hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_OUTPUT),
                         hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_ALIAS));
    l.total = hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_TOTAL);
    l.copies = copies_of(t, asked);
    l.one_piece = true;
    l.tensor = whole;
    hb_teller_decide(t, &l);
    if (s->cause == HB_CAUSE_REPLICATION) {
        tell_replication(t, asked);
        return;
    }
    if (!whole)
        hb_teller_note(t, "Arrays that are still referenced stay on the device: look for a second "
                          "copy of the state, and for programs compiled besides the step.");
    note_neighbours(t);
}

/* What the pool had when the request came: from the dump, else from statistics. */
struct pool {
    int64_t limit;
    int64_t in_use;
    int64_t free_bytes;
    int64_t largest_free; /* at most that, where only bins are told */
};

/* Of 256 bytes, 512 and so on to 256 MiB. */
enum { BINS = 21 };

static struct pool find_pool(const struct teller *t)
{
    const struct hb_log *log = t->log;
    struct pool p = {hb_log_fact(log, HB_LOG_STATS, HB_FACT_LIMIT),
                     hb_log_fact(log, HB_LOG_STATS, HB_FACT_IN_USE),
                     hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_FREE),
                     hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_LARGEST_FREE)};
    int64_t dumped = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_IN_USE);
    if (p.limit < 0)
        p.limit = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_LIMIT);
    if (p.limit < 0 && log->pool_bytes)
        p.limit = log->pool_bytes;
    /* The dump's own sum is rounded in print; the statistics' is exact. */
    if (dumped >= 0 && (p.in_use < 0 || log->message[HB_LOG_BFC_DUMP].step[HB_FACT_IN_USE] == 1 ||
                        log->message[HB_LOG_STATS].step[HB_FACT_IN_USE] > 1))
        p.in_use = dumped;
    bool whole = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_BINS) >= BINS; /* it may be cut */
    if (p.free_bytes < 0 && whole)
        p.free_bytes = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_BIN_FREE);
    if (p.largest_free < 0 && whole)
        p.largest_free = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_BIN_LARGEST);
    if (hb_log_seen(log, HB_LOG_ASYNC)) {
        p.free_bytes = hb_log_fact(log, HB_LOG_ASYNC, HB_FACT_FREE);
        if (p.limit < 0)
            p.limit = hb_log_fact(log, HB_LOG_ASYNC, HB_FACT_CAPACITY);
    }
    if (p.free_bytes < 0 && p.limit >= 0 && p.in_use >= 0)
        p.free_bytes = p.limit > p.in_use ? p.limit - p.in_use : 0;
    return p;
}

static bool is_near(int64_t a, int64_t b)
{
    return a > 0 && b > 0 && llabs(a - b) <= a / 200;
}

/* XLA takes all temporaries of a program in one piece: say so, and what stands in it. */
static void note_arena(const struct teller *t, int64_t asked)
{
    const struct hb_log_message *m = &t->log->message[HB_LOG_XLA_ALLOC];
    const char *name = hb_log_seen(t->log, HB_LOG_XLA_ALLOC) && m->name[0] ? m->name : NULL;
    int64_t temp = hb_log_fact(t->log, HB_LOG_BUFFERS, HB_FACT_TEMP);
    int64_t reached = hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_REACHED);
    if (is_near(asked, temp) || (temp < 0 && (name || reached >= asked)))
        hb_teller_note(t,
                       "The request is not one tensor: XLA takes all temporaries of a program%s%s "
                       "in one piece.",
                       name ? " " : "", name ? name : "");
}

/* The largest buffer of those that the program makes itself and that are no larger than the request
 * for all of them; -1: none. */
static int64_t largest_within(const struct hb_story *s, int64_t asked)
{
    for (int i = 0; i < s->group_count; i++)
        if (s->groups[i].what != HB_WHAT_ARGUMENT &&
            s->groups[i].item->bytes <= asked + asked / 100)
            return s->groups[i].item->bytes;
    return -1;
}

/* What is neither free nor the pool's, where the driver tells what the device has. */
static int64_t lost_of(const struct teller *t)
{
    int64_t free_bytes = hb_teller_fact(t, HB_FACT_FREE);
    int64_t all = hb_teller_fact(t, HB_FACT_CAPACITY);
    int64_t in_use = hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_IN_USE);
    if (free_bytes < 0 || all <= 0)
        return -1;
    if (t->story->kind == HB_LOG_DRIVER) /* the pool does not stand yet */
        return difference(all, free_bytes);
    return t->story->kind == HB_LOG_ASYNC && in_use >= 0 ? difference(all, free_bytes + in_use)
                                                         : -1;
}

/* A request to a pool, or to the driver for one. */
static enum hb_reason decide_pool(const struct teller *t, int64_t asked, struct pool p)
{
    bool driver = t->story->kind == HB_LOG_DRIVER;
    struct hb_ledger l = hb_ledger_untold();
    l.asked = asked;
    l.capacity = driver ? hb_teller_fact(t, HB_FACT_CAPACITY) : p.limit;
    l.room = driver ? hb_teller_fact(t, HB_FACT_FREE) : p.free_bytes;
    l.piece = p.largest_free;
    l.lost = lost_of(t);
    l.buffer = largest_within(t->story, asked);
    l.outputs = hb_log_fact(t->log, HB_LOG_BUFFERS, HB_FACT_OUTPUT);
    l.total = hb_log_fact(t->log, HB_LOG_BUFFERS, HB_FACT_TOTAL);
    if (l.total < 0 && hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_ARGUMENT) >
                           hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_LIMIT))
        l.outputs = l.total = hb_log_fact(t->log, HB_LOG_REMAT, HB_FACT_ARGUMENT);
    l.copies = copies_of(t, asked);
    l.one_piece = true;
    l.tensor = t->story->kind == HB_LOG_GRAPH;
    l.named = l.tensor;
    l.loads = hb_teller_loads(t);
    l.updates = hb_teller_updates(t);
    return hb_teller_decide(t, &l);
}

/* The pool is a share of the device: more of it helps only if the excess is small. */
static void mark_near(const struct teller *t, struct pool p)
{
    int64_t over = t->story->over_bytes;
    enum hb_log_framework framework = t->story->framework;
    bool gpu = t->story->compiler && hb_str_same(t->story->compiler, "xla-gpu");
    bool jax = framework < HB_FW_LOG_TORCHTITAN || framework == HB_FW_LOG_JAX;
    bool little = p.limit > 0 && over > 0 && over <= p.limit / 4 && framework != HB_FW_LOG_TORCH &&
                  framework != HB_FW_LOG_TENSORFLOW;
    /* The log has one sentence: what costs nothing comes first. */
    bool only = p.limit < 0 && p.free_bytes < 0 && gpu && jax && t->story->kind != HB_LOG_DRIVER &&
                t->story->cause == HB_CAUSE_SIZE && !t->story->group_count &&
                !hb_teller_generates(t) && !hb_log_seen(t->log, HB_LOG_BUFFERS) &&
                t->story->wanted_bytes < HB_TELLER_POOL_BYTES;
    hb_teller_trait(t, little || only, HB_TRAIT_NEAR);
    hb_teller_frees(t, HB_KNOB_FRACTION, little ? over : -1);
}

static void add_buffer_parts(const struct teller *t)
{
    const struct hb_log *log = t->log;
    hb_teller_part(t, "parameters and inputs", hb_log_fact(log, HB_LOG_BUFFERS, HB_FACT_ARGUMENT),
                   false);
    hb_teller_part(t, "outputs", hb_log_fact(log, HB_LOG_BUFFERS, HB_FACT_OUTPUT), false);
    hb_teller_part(t, "constants", hb_log_fact(log, HB_LOG_BUFFERS, HB_FACT_CONSTANT), false);
    hb_teller_part(t, "temporaries, in one piece", hb_log_fact(log, HB_LOG_BUFFERS, HB_FACT_TEMP),
                   false);
    hb_teller_part(t, "fragmentation", hb_log_fact(log, HB_LOG_BUFFERS, HB_FACT_TEMP_FRAGMENTATION),
                   true);
}

/* Statistics that end a dump are of the moment of failure: what was in use then is no state. */
static bool is_print_of_failure(const struct hb_log *log)
{
    return hb_log_seen(log, HB_LOG_BFC_DUMP) && hb_log_seen(log, HB_LOG_STATS) &&
           log->message[HB_LOG_STATS].line > log->message[HB_LOG_BFC_DUMP].line;
}

/* state: held between steps; transient: what a step adds at its peak. */
static void split_peak(const struct teller *t)
{
    int64_t in_use = hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_IN_USE);
    int64_t peak = hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_PEAK);
    int64_t largest = hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_LARGEST);
    if (in_use < 0 || peak < in_use || is_print_of_failure(t->log))
        return;
    t->story->state_bytes = in_use;
    t->story->transient_bytes = peak - in_use;
    if (peak > in_use && largest >= (peak - in_use) / 100 * 99 && largest <= peak - in_use)
        hb_teller_note(
            t,
            "What came on top of the state at the peak (%s) is a single allocation of "
            "%s%s.",
            hb_teller_size(t, peak - in_use), hb_teller_size(t, largest),
            peak - in_use > largest
                ? hb_teller_text(t, " and %lld bytes", (long long)(peak - in_use - largest))
                : "");
}

static const char *title_of_xla(const struct teller *t)
{
    const struct hb_log *log = t->log;
    if (t->story->kind == HB_LOG_BUFFERS)
        return "XLA listed what its program keeps on the device.";
    if (hb_log_seen(log, HB_LOG_BFC))
        return hb_teller_text(t, "The allocator%s%s could not give what was asked.",
                              log->message[HB_LOG_BFC].name[0] ? " " : "",
                              log->message[HB_LOG_BFC].name);
    if (t->story->kind == HB_LOG_GRAPH)
        return hb_teller_text(t, "A tensor of shape [%s] found no room.",
                              log->message[HB_LOG_GRAPH].name);
    if (hb_log_seen(log, HB_LOG_DRIVER))
        return "The driver refused an allocation.";
    return "The runtime could not get what the program asked for.";
}

/* Of the device, where others hold it: the pool does not matter. */
static void tell_free(const struct teller *t)
{
    t->story->available_of =
        t->story->kind == HB_LOG_DRIVER ? "what was free when it began" : "what was free";
    hb_teller_figures(t, t->story->wanted_bytes, hb_teller_fact(t, HB_FACT_FREE), -1);
}

void hb_tell_xla(const struct teller *t)
{
    struct hb_story *s = t->story;
    struct pool p = find_pool(t);
    int64_t asked = hb_log_asked(t->log, s->kind);
    if (asked < 0 && s->kind == HB_LOG_GRAPH) /* its shape came without a type */
        asked = hb_log_asked(t->log, HB_LOG_BFC);
    s->title = title_of_xla(t);
    s->wanted_of = "one allocation";
    s->available_of = p.free_bytes >= 0 ? "what was free" : NULL;
    s->capacity_bytes = p.limit;
    hb_teller_figures(t, asked, p.free_bytes, -1);
    hb_teller_groups(t, HB_LOG_BUFFERS);
    add_buffer_parts(t);
    split_peak(t);
    if (s->kind == HB_LOG_BUFFERS) {
        s->wanted_of = "all that the program keeps on a device";
        hb_teller_figures(t, hb_teller_fact(t, HB_FACT_TOTAL), -1, -1);
        hb_teller_cause(t, HB_CAUSE_NONE, "The log has no failure beside this list.");
    } else {
        enum hb_reason reason = decide_pool(t, asked, p);
        hb_teller_trait(
            t, reason == HB_REASON_POOL || reason == HB_REASON_ABOVE || asked > HB_LARGEST_BYTES,
            HB_TRAIT_ABOVE);
        hb_teller_frees(t, HB_KNOB_OTHERS, lost_of(t));
        if (reason == HB_REASON_COPIES)
            tell_replication(t, asked);
        else
            note_arena(t, asked);
        if (reason == HB_REASON_LOST)
            tell_free(t);
        else if (reason != HB_REASON_COPIES)
            mark_near(t, p);
    }
    note_neighbours(t);
}

void hb_tell_tuner(const struct teller *t)
{
    struct hb_story *s = t->story;
    struct pool p = find_pool(t);
    s->title =
        "XLA's autotuner found no room on the device to try kernels: it failed while compiling.";
    s->wanted_of = "a buffer of a kernel that was tried";
    s->available_of = p.free_bytes >= 0 ? "what was free" : NULL;
    s->capacity_bytes = p.limit;
    hb_teller_figures(t, hb_log_asked(t->log, HB_LOG_XLA_ALLOC), p.free_bytes, -1);
    hb_teller_cause(t, HB_CAUSE_SIZE,
                    "Kernels run with operands of their own beside what stands on the device: "
                    "state, inputs, other processes. Where these leave too little for one kernel, "
                    "look whether they leave enough for the step.");
    mark_near(t, p);
    note_neighbours(t);
}

void hb_tell_remat(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t target = hb_teller_fact(t, HB_FACT_TARGET);
    int64_t reached = hb_teller_fact(t, HB_FACT_REACHED);
    int64_t held = hb_teller_fact(t, HB_FACT_ARGUMENT);
    if (held >= 0) {
        s->title = "What the program is given and gives back is more than the device has for it.";
        s->wanted_of = "arguments and outputs";
        s->available_of = "what a program may use";
        hb_teller_figures(t, held, hb_teller_fact(t, HB_FACT_LIMIT), -1);
        hb_teller_cause(t, HB_CAUSE_OUTPUTS,
                        "Outputs stand beside the arguments that they replace, unless those are "
                        "donated; temporaries come on top.");
        note_neighbours(t);
        return;
    }
    bool failed = hb_log_seen(t->log, HB_LOG_PLAIN) || hb_log_seen(t->log, HB_LOG_ANY);
    s->title = failed
                   ? "Memory ran out; XLA had warned that its program stays above what it aims at."
                   : "XLA warned while compiling that its program stays above the memory it aims "
                     "at. That is no failure yet.";
    s->wanted_of = "temporaries and outputs after recomputation";
    s->available_of = "what arguments leave for them";
    hb_teller_figures(t, reached, target, -1);
    hb_teller_cause(t, reached > target ? HB_CAUSE_SIZE : HB_CAUSE_NONE, describe_remat(t));
    note_neighbours(t);
}

/* Outputs that take no argument's place are told where they are more than a rest. */
static const char *describe_shares(const struct teller *t, int64_t total)
{
    enum { TOLD = 10 }; /* % */
    int64_t argument = hb_teller_fact(t, HB_FACT_ARGUMENT);
    int64_t temp_bytes = hb_teller_fact(t, HB_FACT_TEMP);
    int state = hb_teller_percent(argument, total);
    int temp = hb_teller_percent(temp_bytes, total);
    int outputs =
        argument >= 0 && temp_bytes >= 0 && hb_teller_fact(t, HB_FACT_OUTPUT) > 0
            ? hb_teller_percent(difference(total, hb_add_sat(argument, temp_bytes)), total)
            : 0;
    if (outputs < TOLD)
        return hb_teller_text(t, "%d %% of it is the state that stays, %d %% are temporaries.",
                              state, temp);
    return hb_teller_text(
        t, "%d %% of it is the state that stays, %d %% are temporaries, %d %% are outputs.", state,
        temp, outputs);
}

void hb_tell_totals(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t argument = hb_teller_fact(t, HB_FACT_ARGUMENT);
    int64_t total = hb_teller_fact(t, HB_FACT_TOTAL);
    s->title = "The program was compiled; this is what it takes on each device. Nothing failed.";
    s->wanted_of = "argument + output - alias + temporaries";
    hb_teller_figures(t, total, -1, -1);
    s->state_bytes = argument;
    s->transient_bytes = difference(total, argument);
    add_program_parts(t);
    hb_teller_part(t, "temporaries in host memory", hb_teller_fact(t, HB_FACT_HOST_TEMP), false);
    if (total == 0) {
        hb_teller_cause(t, HB_CAUSE_NONE, "All figures are zero: this backend does not tell them.");
        hb_teller_trait(t, true, HB_TRAIT_NOTHING);
        return;
    }
    hb_teller_cause(t, HB_CAUSE_NONE, describe_shares(t, total));
    check_donation(t);
    note_neighbours(t);
}

void hb_tell_stats(const struct teller *t)
{
    struct hb_story *s = t->story;
    struct pool p = find_pool(t);
    s->title = "The allocator's statistics; nothing failed in this log.";
    s->wanted_of = "the peak so far";
    s->available_of = "the pool's limit";
    s->capacity_bytes = p.limit;
    hb_teller_figures(t, hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_PEAK), p.limit, -1);
    split_peak(t);
    hb_teller_part(t, "in use", p.in_use, false);
    hb_teller_part(t, "largest allocation", hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_LARGEST),
                   true);
    hb_teller_cause(t, HB_CAUSE_NONE,
                    s->transient_bytes >= 0
                        ? hb_teller_text(t, "%s are held, %s came on top of it at the peak.",
                                         hb_teller_size(t, s->state_bytes),
                                         hb_teller_size(t, s->transient_bytes))
                        : "The log does not tell what is held and what is transient.");
    note_neighbours(t);
}
