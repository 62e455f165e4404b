/* Stories of XLA: the compiler's refusal, the runtime's failed allocation, rematerialization,
 * totals and statistics. What counts as a giant (half of the memory) follows the advice in
 * docs/errors/error_1000 of openxla/xla. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "sim/hlo/teller.h"

static int64_t difference(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a > b ? a - b : -1;
}

/* A larger or equal size, both known. */
static bool reaches(int64_t a, int64_t b)
{
    return a >= 0 && b >= 0 && a >= b;
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
static bool tell_replication(const struct teller *t, int64_t bytes)
{
    const char *said = t->log->setting[HB_SET_PROCESSES];
    if (!hb_log_seen(t->log, HB_LOG_GATHER) || bytes <= 0)
        return false;
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
    hb_teller_knob(t, HB_KNOB_CALLBACK, count > 1 ? bytes - bytes / count : -1);
    hb_teller_note(t, "No step ran yet: this is the load of the model. Batch and remat do not "
                      "matter here.");
    return true;
}

static int64_t apart_of(int64_t output, int64_t alias)
{
    return alias > 0 && output > alias ? output - alias : output;
}

/* So often the memory, and fewer sequences are not what it takes: something is whole that was to
 * be sharded. */
enum { TIMES_TOO_LARGE = 4 };

/* Why a program as a whole does not fit. needed and capacity of the device; over may be -1. */
static void find_program_cause(const struct teller *t, int64_t needed, int64_t capacity)
{
    struct hb_story *s = t->story;
    int64_t over = s->over_bytes;
    int64_t padding = padding_of(s); /* of a list that may be cut: the sums tell it as well */
    int64_t summed = hb_teller_fact(t, HB_FACT_PADDED) - hb_teller_fact(t, HB_FACT_UNPADDED);
    padding = summed > padding ? summed : padding;
    int64_t fragmentation = hb_teller_fact(t, HB_FACT_FRAGMENTATION);
    int64_t argument = hb_teller_fact(t, HB_FACT_ARGUMENT);
    int64_t output = apart_of(hb_teller_fact(t, HB_FACT_OUTPUT), hb_teller_fact(t, HB_FACT_ALIAS));
    int64_t largest = s->group_count ? s->groups[0].bytes / s->groups[0].count : -1;
    if (padding > 0 && (reaches(padding, over) || padding > needed / 4)) {
        hb_teller_cause(
            t, HB_CAUSE_PADDING,
            hb_teller_text(t,
                           "%s of what is listed is padding: shapes whose last dimensions "
                           "do not fill the tiles (8 x 128).",
                           hb_teller_size(t, padding)));
        hb_teller_knob(t, HB_KNOB_PADDING, padding);
    } else if (capacity > 0 && largest > capacity / 2) {
        hb_teller_cause(
            t, HB_CAUSE_GIANT,
            hb_teller_text(t,
                           "One buffer of %s is more than half of the memory: more often a "
                           "missing sharding or a tensor that need not exist than a model "
                           "that is too large.",
                           hb_teller_size(t, largest)));
        hb_teller_knob(t, HB_KNOB_UNREPLICATE, -1);
    } else if (over > 0 && reaches(fragmentation, over)) {
        hb_teller_cause(t, HB_CAUSE_FRAGMENTATION,
                        hb_teller_text(t, "Without the %s that packing leaves unused it would fit.",
                                       hb_teller_size(t, fragmentation)));
    } else if (argument > (capacity > 0 ? capacity : needed) / 10 * 6) {
        hb_teller_cause(
            t, HB_CAUSE_STATE,
            hb_teller_text(t,
                           "The arguments alone (parameters, optimizer states, inputs) take "
                           "%s, %d %% of %s: little is left for the step itself.",
                           hb_teller_size(t, argument),
                           hb_teller_percent(argument, capacity > 0 ? capacity : needed),
                           capacity > 0 ? "the memory" : "all"));
        hb_teller_knob(t, hb_teller_generates(t) ? HB_KNOB_WEIGHTS : HB_KNOB_FSDP, -1);
        hb_teller_knob(t, HB_KNOB_OFFLOAD, -1);
        hb_teller_knob(t, HB_KNOB_MOMENTS, -1);
    } else if (output > 0 && output > needed / 2) {
        hb_teller_cause(
            t, HB_CAUSE_OUTPUTS,
            hb_teller_text(t,
                           "The outputs alone take %s, %d %% of all: results that are returned "
                           "whole, or a state that does not take its arguments' place.",
                           hb_teller_size(t, output), hb_teller_percent(output, needed)));
        hb_teller_knob(t, HB_KNOB_DONATE, -1);
        hb_teller_knob(t, HB_KNOB_UNREPLICATE, -1);
    } else {
        hb_teller_cause(t, HB_CAUSE_SIZE,
                        "What lives at the same time is too much; no single buffer, "
                        "padding or fragmentation in the log explains the excess.");
        if (capacity > 0 && needed / TIMES_TOO_LARGE > capacity && !s->group_count)
            hb_teller_knob(t, HB_KNOB_DUMP, -1);
    }
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
    hb_teller_knob(t, HB_KNOB_DONATE, apart < argument ? apart : argument);
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
        hb_teller_knob(t, HB_KNOB_UNREPLICATE, -1);
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
    if (!tell_replication(t, s->wanted_bytes)) {
        find_program_cause(t, s->wanted_bytes, s->capacity_bytes);
        check_donation(t);
        hb_teller_knobs(t);
    }
    note_neighbours(t);
}

/* Whether an analysis beside the failure says that outputs are most of the program. */
static bool tell_analysed_outputs(const struct teller *t)
{
    int64_t total = hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_TOTAL);
    int64_t output = apart_of(hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_OUTPUT),
                              hb_log_fact(t->log, HB_LOG_ANALYSIS, HB_FACT_ALIAS));
    if (output <= 0 || output <= total / 2)
        return false;
    hb_teller_cause(t, HB_CAUSE_OUTPUTS,
                    hb_teller_text(t,
                                   "The program returns %s that take no argument's place, of %s "
                                   "in all: results that are kept, or a state that is not donated.",
                                   hb_teller_size(t, output), hb_teller_size(t, total)));
    return true;
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
    if (tell_replication(t, asked))
        return;
    if (whole)
        hb_teller_cause(t, HB_CAUSE_GIANT,
                        "No setting of the allocator helps: this tensor must become "
                        "smaller or be sharded.");
    else if (reaches(free_bytes, asked))
        hb_teller_cause(t, HB_CAUSE_FRAGMENTATION, "Enough was free, but not in one piece.");
    else if (tell_analysed_outputs(t))
        hb_teller_note(t, "The compiler's analysis stands in the log beside the failure.");
    else
        hb_teller_cause(t, HB_CAUSE_SIZE,
                        "Buffers held before (state, earlier batches, arrays that are "
                        "still referenced) left too little.");
    if (whole)
        hb_teller_knob(t, HB_KNOB_UNREPLICATE, -1);
    else
        hb_teller_note(t, "Arrays that are still referenced stay on the device: look for a second "
                          "copy of the state, and for programs compiled besides the step.");
    bool jax = t->log->framework[HB_FW_LOG_JAX] > 0;
    if (s->cause == HB_CAUSE_OUTPUTS)
        hb_teller_knob(t, HB_KNOB_DONATE, -1);
    else if ((s->kind == HB_LOG_TPU_BUFFER && jax) || s->cause == HB_CAUSE_FRAGMENTATION)
        hb_teller_knob(t, HB_KNOB_RELEASE, -1);
    hb_teller_knobs(t);
    hb_teller_knob(t, HB_KNOB_DONATE, -1);
    note_neighbours(t);
}

/* What the pool had when the request came: from the dump, else from statistics. */
struct pool {
    int64_t limit;
    int64_t in_use;
    int64_t free_bytes;
    int64_t largest_free; /* at most that, where only bins are told */
};

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
    if (p.free_bytes < 0)
        p.free_bytes = hb_log_fact(log, HB_LOG_BFC_DUMP, HB_FACT_BIN_FREE);
    if (p.largest_free < 0)
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

/* The largest buffer that the program makes itself and that is most of the request; -1: none. */
static int64_t find_giant(const struct hb_story *s, int64_t asked)
{
    for (int i = 0; i < s->group_count; i++) {
        int64_t bytes = s->groups[i].item->bytes;
        if (s->groups[i].what != HB_WHAT_ARGUMENT && bytes >= asked / 2 &&
            bytes <= asked + asked / 100)
            return bytes;
    }
    return -1;
}

static void tell_scattered(const struct teller *t, struct pool p)
{
    hb_teller_cause(
        t, HB_CAUSE_FRAGMENTATION,
        p.largest_free >= 0
            ? hb_teller_text(t,
                             "%s were free in the pool, but the largest piece was %s: the free "
                             "memory is scattered between chunks in use.",
                             hb_teller_size(t, p.free_bytes), hb_teller_size(t, p.largest_free))
            : hb_teller_text(t,
                             "By the statistics in the log %s of the pool were free: either in "
                             "pieces, or taken between that print and the failure.",
                             hb_teller_size(t, p.free_bytes)));
    hb_teller_knob(t, HB_KNOB_SEGMENTS, -1);
}

/* Whoever cannot get so little stands before a full pool. */
#define LITTLE_BYTES ((int64_t)64 << 20)

static void find_pool_cause(const struct teller *t, int64_t asked, struct pool p)
{
    bool little = asked >= 0 && asked < LITTLE_BYTES;
    bool tensor = t->story->kind == HB_LOG_GRAPH; /* XLA takes all temporaries in one piece */
    int64_t giant = little ? -1 : find_giant(t->story, asked);
    int64_t output = hb_log_fact(t->log, HB_LOG_BUFFERS, HB_FACT_OUTPUT);
    int64_t total = hb_log_fact(t->log, HB_LOG_BUFFERS, HB_FACT_TOTAL);
    /* A few per cent in pieces: the pool is full. */
    bool full = p.limit > 0 && p.free_bytes < p.limit / 20;
    bool scattered = reaches(p.free_bytes, asked) && p.largest_free < asked && !full;
    const char *free_text =
        p.free_bytes >= 0
            ? hb_teller_text(t, "%s were free, whole or in pieces.",
                             hb_teller_size(t, p.free_bytes))
            : "The log does not say what was free; nothing in it speaks of fragmentation.";
    if (asked >= HB_TELLER_ABSURD_BYTES) {
        hb_teller_cause(t, HB_CAUSE_CORRUPT,
                        hb_teller_text(t,
                                       "%s is more than any device has and no program's wish: the "
                                       "driver told a free memory that it does not have, or a size "
                                       "overflowed.",
                                       hb_teller_size(t, asked)));
        hb_teller_knob(t, HB_KNOB_DRIVER, -1);
    } else if (scattered) {
        tell_scattered(t, p);
    } else if (giant >= 0) {
        hb_teller_cause(t, HB_CAUSE_GIANT,
                        hb_teller_text(t, "One buffer of %s is most of the request. %s",
                                       hb_teller_size(t, giant), free_text));
    } else if (tensor && p.limit > 0 && asked <= p.limit && asked > p.limit / 5) {
        hb_teller_cause(t, HB_CAUSE_GIANT,
                        hb_teller_text(t, "A single tensor of %s, %d %% of the pool. %s",
                                       hb_teller_size(t, asked), hb_teller_percent(asked, p.limit),
                                       free_text));
    } else if (little && p.free_bytes < 0) {
        hb_teller_cause(t, HB_CAUSE_SIZE,
                        "So little was asked that the pool was full before: by the state, by what "
                        "earlier programs left, or by another process.");
    } else if (output > total / 2 && total > 0 && output >= asked) {
        hb_teller_cause(t, HB_CAUSE_OUTPUTS,
                        hb_teller_text(t,
                                       "The outputs take %s of the program's %s: results that are "
                                       "returned whole, or a state that is not donated.",
                                       hb_teller_size(t, output), hb_teller_size(t, total)));
        hb_teller_knob(t, HB_KNOB_DONATE, -1);
    } else if (p.limit >= 0 && asked > p.limit) {
        hb_teller_cause(t, tensor ? HB_CAUSE_GIANT : HB_CAUSE_SIZE,
                        hb_teller_text(t, "Even an empty pool of %s could not hold it.",
                                       hb_teller_size(t, p.limit)));
        if (!t->story->group_count)
            hb_teller_knob(t, HB_KNOB_DUMP, -1);
    } else if (hb_teller_loads(t)) {
        hb_teller_cause(t, HB_CAUSE_STATE, "It failed while weights were loaded or made.");
    } else {
        hb_teller_cause(t, HB_CAUSE_SIZE, free_text);
    }
}

/* The pool is a share of the device: more of it helps only if the excess is small. */
static void check_fraction(const struct teller *t, struct pool p)
{
    int64_t over = t->story->over_bytes;
    bool gpu = t->story->compiler && hb_str_same(t->story->compiler, "xla-gpu");
    bool jax = t->story->framework < HB_FW_LOG_TORCHTITAN || t->story->framework == HB_FW_LOG_JAX;
    if (p.limit > 0 && over > 0 && over <= p.limit / 4 && t->story->framework != HB_FW_LOG_TORCH &&
        t->story->framework != HB_FW_LOG_TENSORFLOW)
        hb_teller_knob(t, HB_KNOB_FRACTION, over);
    /* The log has one sentence: what costs nothing comes first. */
    if (p.limit < 0 && p.free_bytes < 0 && gpu && jax && t->story->kind != HB_LOG_DRIVER &&
        t->story->cause == HB_CAUSE_SIZE && !t->story->group_count && !hb_teller_generates(t) &&
        !hb_log_seen(t->log, HB_LOG_BUFFERS) && t->story->wanted_bytes < HB_TELLER_POOL_BYTES)
        hb_teller_knob(t, HB_KNOB_FRACTION, -1);
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
    if (peak > in_use && reaches(largest, (peak - in_use) / 100 * 99) && largest <= peak - in_use)
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

/* What others hold of the device: before the program began, or beside its pool; -1: little. */
static int64_t taken_by_others(const struct teller *t)
{
    int64_t free_bytes = hb_teller_fact(t, HB_FACT_FREE);
    int64_t all = hb_teller_fact(t, HB_FACT_CAPACITY);
    int64_t in_use = hb_log_fact(t->log, HB_LOG_STATS, HB_FACT_IN_USE);
    if (free_bytes < 0 || all <= 0)
        return -1;
    if (t->story->kind == HB_LOG_ASYNC && in_use >= 0 && all - free_bytes - in_use > all / 4)
        return all - free_bytes - in_use;
    return t->story->kind == HB_LOG_DRIVER && free_bytes < all / 2 ? all - free_bytes : -1;
}

static void tell_taken(const struct teller *t, int64_t taken)
{
    bool began = t->story->kind == HB_LOG_DRIVER;
    t->story->available_of = began ? "what was free when it began" : "what was free";
    hb_teller_figures(t, t->story->wanted_bytes, hb_teller_fact(t, HB_FACT_FREE), -1);
    hb_teller_cause(
        t, HB_CAUSE_OTHERS,
        hb_teller_text(t,
                       began ? "%s of the device were taken before the program began: by another "
                               "process, or one of an earlier start."
                             : "%s of the device are neither free nor in this program's pool: "
                               "another process, or another library in this one, holds them.",
                       hb_teller_size(t, taken)));
    hb_teller_knob(t, HB_KNOB_OTHERS, taken);
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
    } else if (taken_by_others(t) > 0) {
        tell_taken(t, taken_by_others(t));
    } else if (!tell_replication(t, asked)) {
        note_arena(t, asked);
        find_pool_cause(t, asked, p);
        check_fraction(t, p);
    }
    if (s->cause != HB_CAUSE_REPLICATION && s->cause != HB_CAUSE_CORRUPT)
        hb_teller_knobs(t);
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
    hb_teller_knob(t, HB_KNOB_TUNER, -1);
    check_fraction(t, p);
    hb_teller_knobs(t);
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
        hb_teller_knob(t, HB_KNOB_DONATE, -1);
        hb_teller_knobs(t);
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
    hb_teller_knobs(t);
    note_neighbours(t);
}

void hb_tell_totals(const struct teller *t)
{
    struct hb_story *s = t->story;
    int64_t argument = hb_teller_fact(t, HB_FACT_ARGUMENT);
    int64_t temp = hb_teller_fact(t, HB_FACT_TEMP);
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
        return;
    }
    hb_teller_cause(t, HB_CAUSE_NONE,
                    hb_teller_text(t, "%d %% of it is the state that stays, %d %% are temporaries.",
                                   hb_teller_percent(argument, total),
                                   hb_teller_percent(temp, total)));
    check_donation(t);
    hb_teller_knobs(t);
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
