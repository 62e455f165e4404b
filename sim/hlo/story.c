/* Picks the message that the story is told from, and what all stories share: see story.h. */
#include "sim/hlo/story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/hlo/teller.h"

enum family { FAMILY_JAX, FAMILY_TORCH, FAMILY_GRAPH, FAMILY_ANY };

/* Kinds that a story can be told from, the weightiest first. */
static const struct source {
    enum hb_log_kind kind;
    enum family family;
    const char *compiler;
    void (*tell)(const struct teller *t);
} sources[] = {
    {HB_LOG_TORCH_CORRUPT, FAMILY_TORCH, "torch", hb_tell_small},
    {HB_LOG_CORRUPT, FAMILY_ANY, NULL, hb_tell_small},
    {HB_LOG_TPU, FAMILY_JAX, "xla-tpu", hb_tell_tpu},
    {HB_LOG_TPU_ALLOC, FAMILY_JAX, "xla-tpu", hb_tell_tpu_runtime},
    {HB_LOG_TPU_PROGRAM, FAMILY_JAX, "xla-tpu", hb_tell_tpu_runtime},
    {HB_LOG_TPU_BUFFER, FAMILY_JAX, "xla-tpu", hb_tell_tpu_runtime},
    {HB_LOG_TUNER, FAMILY_JAX, "xla-gpu", hb_tell_tuner},
    {HB_LOG_XLA_ALLOC, FAMILY_JAX, "xla-gpu", hb_tell_xla},
    {HB_LOG_TORCH, FAMILY_TORCH, "torch", hb_tell_torch},
    {HB_LOG_GRAPH, FAMILY_GRAPH, NULL, hb_tell_xla},
    {HB_LOG_BFC, FAMILY_JAX, "xla-gpu", hb_tell_xla},
    {HB_LOG_ASYNC, FAMILY_JAX, "xla-gpu", hb_tell_xla},
    {HB_LOG_LIBRARY, FAMILY_TORCH, "torch", hb_tell_small},
    {HB_LOG_NCCL, FAMILY_TORCH, "torch", hb_tell_small},
    {HB_LOG_DRIVER, FAMILY_JAX, "xla-gpu", hb_tell_xla},
    {HB_LOG_TPU_SCOPED, FAMILY_JAX, "xla-tpu", hb_tell_small},
    {HB_LOG_RUNTIME, FAMILY_ANY, NULL, hb_tell_refusal},
    {HB_LOG_PLAIN, FAMILY_ANY, NULL, hb_tell_refusal},
    {HB_LOG_SERVE, FAMILY_TORCH, "torch", hb_tell_serve},
    {HB_LOG_HOST, FAMILY_ANY, NULL, hb_tell_host},
    {HB_LOG_ANY, FAMILY_ANY, NULL, hb_tell_refusal},
    {HB_LOG_BUFFERS, FAMILY_JAX, "xla-gpu", hb_tell_xla},
    {HB_LOG_REMAT, FAMILY_JAX, NULL, hb_tell_remat},
    {HB_LOG_MAXTEXT, FAMILY_JAX, NULL, hb_tell_totals},
    {HB_LOG_ANALYSIS, FAMILY_JAX, NULL, hb_tell_totals},
    {HB_LOG_STATS, FAMILY_JAX, NULL, hb_tell_stats},
    {HB_LOG_TORCH_STATS, FAMILY_TORCH, "torch", hb_tell_torch_stats},
    {HB_LOG_BFC_DUMP, FAMILY_JAX, "xla-gpu", hb_tell_stats},
    {HB_LOG_BFC_SOFT, FAMILY_JAX, "xla-gpu", hb_tell_small},
    {HB_LOG_TACTIC, FAMILY_ANY, NULL, hb_tell_small},
    {HB_LOG_RESHARD, FAMILY_JAX, NULL, hb_tell_small},
    {HB_LOG_GATHER, FAMILY_JAX, NULL, hb_tell_small},
    {HB_LOG_FAULT, FAMILY_ANY, NULL, hb_tell_small},
};
_Static_assert(sizeof sources / sizeof sources[0] == HB_LOG_KIND_COUNT, "each kind tells a story");

const char *hb_teller_size(const struct teller *t, int64_t bytes)
{
    char text[HB_SIZE_TEXT];
    return hb_arena_strdup(t->arena, hb_size_print(bytes, text));
}

static const char *print_text(struct hb_arena *arena, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static const char *print_text(struct hb_arena *arena, const char *fmt, va_list ap)
{
    char text[1024];
    vsnprintf(text, sizeof text, fmt, ap);
    return hb_arena_strdup(arena, text);
}

const char *hb_teller_text(const struct teller *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = print_text(t->arena, fmt, ap);
    va_end(ap);
    return text;
}

void hb_teller_note(const struct teller *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = print_text(t->arena, fmt, ap);
    va_end(ap);
    if (t->story->note_count < HB_STORY_NOTES)
        t->story->notes[t->story->note_count++] = text;
}

void hb_teller_part(const struct teller *t, const char *name, int64_t bytes, bool inside)
{
    struct hb_story *s = t->story;
    if (bytes > 0 && s->part_count < HB_STORY_PARTS)
        s->parts[s->part_count++] = (struct hb_story_part){name, bytes, inside};
}

/* A few words decide only where they are of one mind. */
static bool is_decided(const struct hb_evidence *evidence)
{
    enum { MANY = 4, CLEAR = 80 };
    return evidence->words >= MANY || (evidence->words && llabs(evidence->trains) >= CLEAR);
}

/* What runs a model, by its name or by a trace through what records no gradients. */
static bool is_run(const int64_t *mark)
{
    bool ungraded = mark[HB_MARK_NO_GRADS] && !mark[HB_MARK_UPDATES] && !mark[HB_MARK_BACKWARD];
    return mark[HB_MARK_RUN_NAMED] || ungraded;
}

/* The name of what was compiled proves it, before all words. */
bool hb_teller_trains(const struct teller *t)
{
    const int64_t *mark = t->log->mark;
    if (mark[HB_MARK_STEP_NAMED] || is_run(mark))
        return mark[HB_MARK_STEP_NAMED] > 0;
    if (mark[HB_MARK_NO_GRADS]) /* a step of the optimizer */
        return true;
    return is_decided(&t->log->evidence) && t->log->evidence.trains > 0;
}

bool hb_teller_generates(const struct teller *t)
{
    bool named = is_run(t->log->mark) && !t->log->mark[HB_MARK_STEP_NAMED];
    return named || (is_decided(&t->log->evidence) && !hb_teller_trains(t) &&
                     !t->log->mark[HB_MARK_UPDATES]);
}

bool hb_teller_is_open(const struct teller *t)
{
    /* Below, one text in five is of the other kind, in eight folds; above, one in sixty. */
    enum { SURE = 300 };
    const int64_t *mark = t->log->mark;
    return !mark[HB_MARK_STEP_NAMED] && !is_run(mark) && !mark[HB_MARK_BACKWARD] &&
           !mark[HB_MARK_UPDATES] && llabs(t->log->evidence.trains) < SURE;
}

bool hb_teller_is_least(const struct teller *t)
{
    int64_t batch = t->log->device_batch ? t->log->device_batch : t->log->any_batch;
    return batch == 1;
}

bool hb_teller_loads(const struct teller *t)
{
    return t->log->mark[HB_MARK_LOADS] && !hb_teller_trains(t);
}

bool hb_teller_updates(const struct teller *t)
{
    return t->log->mark[HB_MARK_UPDATES] && !t->log->mark[HB_MARK_BACKWARD];
}

void hb_teller_trait(const struct teller *t, bool holds, enum hb_trait trait)
{
    if (holds)
        t->advice->traits |= UINT64_C(1) << trait;
}

void hb_teller_frees(const struct teller *t, enum hb_knob knob, int64_t bytes)
{
    t->advice->frees[knob] = bytes;
}

void hb_teller_figures(const struct teller *t, int64_t wanted, int64_t available, int64_t over)
{
    struct hb_story *s = t->story;
    s->wanted_bytes = wanted;
    s->available_bytes = available;
    s->over_bytes = over;
    if (over < 0 && wanted >= 0 && available >= 0 && wanted > available)
        s->over_bytes = wanted - available;
}

void hb_teller_cause(const struct teller *t, enum hb_cause cause, const char *because)
{
    t->story->cause = cause;
    t->story->because = because;
}

enum hb_reason hb_teller_decide(const struct teller *t, const struct hb_ledger *ledger)
{
    enum hb_reason reason = hb_ledger_reason(ledger);
    hb_teller_cause(t, hb_reason_cause(reason), hb_reason_text(t->arena, ledger, reason));
    return reason;
}

int64_t hb_teller_fact(const struct teller *t, enum hb_log_fact fact)
{
    return hb_log_fact(t->log, t->story->kind, fact);
}

int hb_teller_percent(int64_t part, int64_t whole)
{
    if (part < 0 || whole <= 0)
        return 0;
    double percent = 100.0 * (double)part / (double)whole;
    return percent > 9999 ? 9999 : (int)(percent + 0.5);
}

/* Equal but for the numbers in them: h/0/attention, h/11/attention. */
static bool is_alike(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    while (*a && *b) {
        size_t na = strspn(a, digits);
        size_t nb = strspn(b, digits);
        if ((na == 0) != (nb == 0) || (na == 0 && *a != *b))
            return false;
        a += na ? na : 1;
        b += nb ? nb : 1;
    }
    return *a == *b;
}

static void add_to_group(struct hb_story *s, const struct hb_log_item *item)
{
    struct hb_story_group *g = NULL;
    for (int i = 0; i < s->group_count && !g; i++) {
        struct hb_story_group *at = &s->groups[i];
        if (at->item->bytes == item->bytes && strcmp(at->item->shape, item->shape) == 0 &&
            is_alike(at->item->op, item->op) && strcmp(at->item->type, item->type) == 0)
            g = at;
    }
    if (!g && s->group_count == HB_STORY_GROUPS)
        return;
    if (!g) {
        g = &s->groups[s->group_count++];
        *g = (struct hb_story_group){.what = hb_what_of(item), .item = item};
    }
    g->count++;
    g->bytes = hb_add_sat(g->bytes, item->bytes);
    g->padding_bytes = hb_add_sat(g->padding_bytes, item->padding_bytes);
}

/* Larger first; of equals the one that came first in the list. */
static int compare_groups(const void *a, const void *b)
{
    const struct hb_story_group *x = a;
    const struct hb_story_group *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->item < y->item ? -1 : 1;
}

void hb_teller_groups(const struct teller *t, enum hb_log_kind kind)
{
    struct hb_story *s = t->story;
    const struct hb_log_message *m = &t->log->message[kind];
    if (!hb_log_seen(t->log, kind))
        return;
    for (int i = 0; i < m->item_count; i++)
        add_to_group(s, &m->items[i]);
    if (s->group_count)
        qsort(s->groups, (size_t)s->group_count, sizeof s->groups[0], compare_groups);
}

static enum hb_log_framework framework_of(const struct hb_log *log, enum family family)
{
    for (int i = 0; i < HB_FW_LOG_JAX; i++) {
        bool on_jax = i == HB_FW_LOG_MAXTEXT || i == HB_FW_LOG_LEVANTER;
        bool fits = family == FAMILY_ANY || (family == FAMILY_JAX) == on_jax;
        if (log->framework[i] && fits && family != FAMILY_GRAPH)
            return (enum hb_log_framework)i;
    }
    return family == FAMILY_JAX     ? HB_FW_LOG_JAX
           : family == FAMILY_TORCH ? HB_FW_LOG_TORCH
           : family == FAMILY_GRAPH ? HB_FW_LOG_TENSORFLOW
                                    : HB_FW_LOG_COUNT;
}

/* What programs may use of a device, in MiB, where the figure tells the device. TPU: limits that
 * XLA prints ("of 15.75G hbm"), from logs; GPUs: totals that torch prints. Those that several
 * devices share (79.15 GiB) are left out. */
static const struct {
    int low_mib;
    int high_mib;
    const char *name;
} capacities[] = {
    {16100, 16200, "tpu-v5e"},       {31450, 31530, "tpu-v4"},
    {31900, 32030, "tpu-v6e"},       {96950, 97060, "tpu-v7"},
    {97980, 98100, "tpu-v5p"},       {40300, 40600, "nvidia-a100-40gb"},
    {142900, 143600, "nvidia-h200"}, {196500, 196608, "amd-mi300x"},
    {262000, 262144, "amd-mi325x"},
};

static const char *device_of(const struct hb_log *log, const struct hb_story *s)
{
    if (log->setting[HB_SET_DEVICE][0])
        return log->setting[HB_SET_DEVICE];
    int64_t mib = s->capacity_bytes >> 20;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        bool tpu = hb_str_starts(capacities[i].name, "tpu");
        bool fits = !s->compiler || tpu == hb_str_same(s->compiler, "xla-tpu");
        if (fits && mib >= capacities[i].low_mib && mib <= capacities[i].high_mib)
            return capacities[i].name;
    }
    return NULL;
}

/* A list of what a program keeps, beside the runtime's word of what failed: that one tells. */
static bool is_list_only(const struct hb_log *log, enum hb_log_kind kind)
{
    return kind == HB_LOG_TPU && hb_log_fact(log, HB_LOG_TPU, HB_FACT_NEEDED) < 0 &&
           (hb_log_seen(log, HB_LOG_TPU_SCOPED) || hb_log_seen(log, HB_LOG_TPU_PROGRAM) ||
            hb_log_seen(log, HB_LOG_TPU_BUFFER) || hb_log_seen(log, HB_LOG_TPU_ALLOC) ||
            hb_log_seen(log, HB_LOG_XLA_ALLOC));
}

/* What TensorRT's builder could not get for a tactic that it then did without; somebody's word
 * about a request that was given up without harm. */
static bool is_passed_over(const struct hb_log *log, enum hb_log_kind kind)
{
    if ((kind == HB_LOG_ANY ||
         (kind == HB_LOG_PLAIN && log->message[kind].report < HB_REPORT_TOLD)) &&
        hb_log_seen(log, HB_LOG_BFC_SOFT) && hb_log_fact(log, kind, HB_FACT_ASKED) < 0)
        return true;
    return (kind == HB_LOG_RUNTIME || kind == HB_LOG_PLAIN || kind == HB_LOG_ANY) &&
           hb_log_seen(log, HB_LOG_TACTIC) && !log->mark[HB_MARK_NO_ENGINE];
}

/* The driver's word in the line that tells of memory of the host, or without figures behind it; a
 * request that is told of the host elsewhere. */
static bool is_of_the_host(const struct hb_log *log, enum hb_log_kind kind)
{
    int64_t asked = hb_log_fact(log, kind, HB_FACT_ASKED);
    int64_t of_host = hb_log_fact(log, HB_LOG_HOST, HB_FACT_ASKED);
    if (kind == HB_LOG_RUNTIME && asked >= 0 && of_host >= 0)
        return llabs(asked - of_host) <= log->message[kind].step[HB_FACT_ASKED];
    int64_t host = log->message[HB_LOG_HOST].line;
    int64_t line = log->message[HB_LOG_PLAIN].line;
    if (kind != HB_LOG_PLAIN || !hb_log_seen(log, HB_LOG_HOST) || log->mark[HB_MARK_DEVICE_ALLOC])
        return false;
    bool before = host < line && hb_log_fact(log, HB_LOG_PLAIN, HB_FACT_ASKED) < 0;
    bool told = of_host >= 0 && hb_str_same(log->message[HB_LOG_HOST].name, HB_LOG_REFUSED);
    return before || (host == line && of_host >= 0) || (told && asked < 0);
}

/* What PyTorch says after a server's own word that it cannot begin. */
static bool is_behind_server(const struct hb_log *log, enum hb_log_kind kind)
{
    return kind == HB_LOG_TORCH && hb_log_seen(log, HB_LOG_SERVE) &&
           log->message[HB_LOG_SERVE].line < log->message[HB_LOG_TORCH].line;
}

/* Somebody's word, without figures, over a warning of the compiler or a server's refusal that has
 * them. */
static bool is_bare(const struct hb_log *log, enum hb_log_kind kind)
{
    bool told =
        hb_log_seen(log, HB_LOG_REMAT) ||
        (hb_log_seen(log, HB_LOG_SERVE) && hb_log_fact(log, HB_LOG_SERVE, HB_FACT_ASKED) >= 0);
    return (kind == HB_LOG_PLAIN || kind == HB_LOG_ANY) && told &&
           hb_log_fact(log, kind, HB_FACT_ASKED) < 0 && hb_log_fact(log, kind, HB_FACT_FREE) < 0;
}

/* A tuner that failed of something else, or what failed long behind it. */
static bool is_not_of_tuner(const struct hb_log *log, enum hb_log_kind kind)
{
    enum { LINES = 128 }; /* it prints the whole kernel */
    int64_t gap = log->message[HB_LOG_XLA_ALLOC].line - log->message[HB_LOG_TUNER].line;
    return kind == HB_LOG_TUNER && (!hb_log_seen(log, HB_LOG_XLA_ALLOC) || gap < 0 || gap > LINES);
}

/* In the text of a change, and nobody tells of himself: what is said there is of what may be, but
 * for what a program printed or somebody met. */
static bool is_of_change(const struct hb_log *log)
{
    return log->mark[HB_MARK_CHANGE] && !log->mark[HB_MARK_NARRATED];
}

/* A guide, a page of help, an answer to anybody, by its words or a definition; nobody tells of
 * himself: what is said there is of any such error, but for a line that a program printed. */
static bool is_of_guide(const struct hb_log *log)
{
    return (log->evidence.teaches > 0 || log->mark[HB_MARK_DEFINES]) &&
           !log->mark[HB_MARK_NARRATED] && !log->mark[HB_MARK_PRINTED];
}

/* In a guide, a message that is only prose. */
static bool is_taught(const struct hb_log *log, enum hb_log_kind kind)
{
    static const enum hb_log_fact figures[] = {HB_FACT_ASKED, HB_FACT_FREE, HB_FACT_CAPACITY};
    if (!is_of_guide(log) || !hb_log_is_prose(kind))
        return false;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (hb_log_fact(log, kind, figures[i]) >= 0)
            return false;
    return true;
}

/* Whether a message is more than words. */
static bool is_shown(const struct hb_log *log, enum hb_log_kind kind)
{
    return log->message[kind].report >= (is_of_change(log) ? HB_REPORT_TOLD : HB_REPORT_SAID);
}

/* What the text of a change mentions: "adds handling of OOM"; a fault that no program printed. */
static bool is_mere_word(const struct hb_log *log, enum hb_log_kind kind)
{
    return is_of_change(log) && (log->message[kind].report == HB_REPORT_NONE ||
                                 (kind == HB_LOG_FAULT && !log->mark[HB_MARK_PRINTED]));
}

/* What a program that failed of something else had told of its memory before: no failure. */
static bool is_beside_fault(const struct hb_log *log, enum hb_log_kind kind)
{
    return hb_log_seen(log, HB_LOG_FAULT) &&
           (kind == HB_LOG_TORCH_STATS || kind == HB_LOG_STATS || kind == HB_LOG_MAXTEXT ||
            kind == HB_LOG_ANALYSIS || kind == HB_LOG_BFC_SOFT || kind == HB_LOG_TACTIC ||
            kind == HB_LOG_REMAT || kind == HB_LOG_RESHARD);
}

/* A process that was ended, for what nobody says, after it or another had failed of a fault: who
 * started them ends them all. */
static bool is_after_fault(const struct hb_log *log, enum hb_log_kind kind)
{
    return kind == HB_LOG_HOST && hb_log_seen(log, HB_LOG_FAULT) &&
           log->message[HB_LOG_FAULT].line < log->message[HB_LOG_HOST].line &&
           hb_str_same(log->message[HB_LOG_HOST].name, HB_LOG_SIGNAL);
}

static const struct source *find_source(const struct hb_log *log, bool shown)
{
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (hb_log_seen(log, sources[i].kind) && is_shown(log, sources[i].kind) == shown &&
            !is_mere_word(log, sources[i].kind) && !is_taught(log, sources[i].kind) &&
            !is_list_only(log, sources[i].kind) && !is_bare(log, sources[i].kind) &&
            !is_not_of_tuner(log, sources[i].kind) && !is_passed_over(log, sources[i].kind) &&
            !is_of_the_host(log, sources[i].kind) && !is_behind_server(log, sources[i].kind) &&
            !is_beside_fault(log, sources[i].kind) && !is_after_fault(log, sources[i].kind))
            return &sources[i];
    return NULL;
}

static enum family family_of(const struct hb_log *log, const struct source *source)
{
    bool jax = log->framework[HB_FW_LOG_JAX] || log->framework[HB_FW_LOG_MAXTEXT] ||
               log->framework[HB_FW_LOG_LEVANTER];
    if ((source->kind == HB_LOG_NCCL || source->kind == HB_LOG_LIBRARY) && jax)
        return FAMILY_JAX;
    if (source->kind == HB_LOG_BFC && log->framework[HB_FW_LOG_TENSORFLOW] && !jax)
        return FAMILY_GRAPH;
    return source->family;
}

/* The runtime's messages are alike on TPU and GPU: other words in the log tell which it was. */
static const char *compiler_of(const struct hb_log *log, const struct source *source)
{
    bool tpu = log->mark[HB_MARK_TPU] || hb_str_starts(log->setting[HB_SET_DEVICE], "tpu");
    if (source->kind == HB_LOG_TPU_SCOPED && /* a GPU's, of a kernel of anybody's */
        hb_str_same(log->message[HB_LOG_TPU_SCOPED].name, "shared memory"))
        return NULL;
    return source->kind == HB_LOG_XLA_ALLOC && tpu ? "xla-tpu" : source->compiler;
}

/* Whether it is about the memory of a training step on a device. */
static bool is_of_a_step(const struct teller *t)
{
    const struct hb_story *s = t->story;
    bool other = s->cause == HB_CAUSE_CORRUPT || s->cause == HB_CAUSE_ONCHIP ||
                 s->cause == HB_CAUSE_HOST || s->cause == HB_CAUSE_FAULT ||
                 s->kind == HB_LOG_SERVE || s->kind == HB_LOG_RUNTIME || s->kind == HB_LOG_TACTIC ||
                 s->kind == HB_LOG_ANY || s->framework == HB_FW_LOG_TENSORFLOW;
    return s->cause == HB_CAUSE_REPLICATION || (!other && !hb_teller_generates(t));
}

/* A container's status, 137, and nothing of memory; a signal, where the text names who else ends
 * processes. "It ran out of memory" beside it tells why. */
static bool is_end_only(const struct hb_log *log, const struct hb_story *s)
{
    bool why = hb_log_seen(log, HB_LOG_ANY) && is_shown(log, HB_LOG_ANY);
    const char *name = log->message[HB_LOG_HOST].name;
    return s->kind == HB_LOG_HOST && s->wanted_bytes < 0 && !why &&
           (hb_str_same(name, HB_LOG_ENDED) ||
            (hb_str_same(name, HB_LOG_SIGNAL) && log->mark[HB_MARK_ENDED_BY]));
}

/* Whether no program printed that memory was refused, and the words of the text speak for one that
 * only mentions it; a few words tell nothing. */
static bool is_outweighed(const struct hb_log *log, const struct hb_story *s)
{
    enum { MANY = 10 };
    return hb_log_is_prose(s->kind) && !log->mark[HB_MARK_SHOWN] && log->evidence.told >= MANY &&
           log->evidence.mentions > 0;
}

/* Whether a line beside the message says that it is not what it says. */
static bool is_denied(const struct hb_log *log, const struct hb_story *s)
{
    enum { LINES = 3 };
    return log->denied_line && hb_log_is_prose(s->kind) &&
           llabs(log->denied_line - log->message[s->kind].line) <= LINES;
}

/* Whether all that a story has is somebody's word for memory that runs out, nobody's that it did.
 */
static bool is_mere_mention(const struct hb_log *log, const struct hb_story *s)
{
    if (is_end_only(log, s))
        return true;
    if (s->wanted_bytes >= 0)
        return false;
    return (!is_shown(log, s->kind) && !log->mark[HB_MARK_NARRATED]) || is_outweighed(log, s) ||
           is_denied(log, s);
}

/* Without evidence that memory was refused no cause is told, and nothing is advised. */
static void suppose(const struct teller *t)
{
    struct hb_story *s = t->story;
    s->supposed = true;
    if (is_end_only(t->log, s)) {
        s->title = "A process was ended by signal 9; nothing here says that memory ran out.";
        if (t->log->mark[HB_MARK_ENDED_BY]) {
            hb_teller_cause(t, HB_CAUSE_UNKNOWN,
                            "The text names what else ends processes: a deadline, a probe, "
                            "somebody's hand or a rule of the system. Whether it was memory tell "
                            "dmesg, or the scheduler's accounting.");
            return;
        }
        hb_teller_cause(t, HB_CAUSE_UNKNOWN,
                        "Status 137 is that of any process that was killed: for want of memory, by "
                        "a probe or at a deadline. Who did it tells `kubectl describe pod` "
                        "(Reason: OOMKilled), dmesg, or the scheduler's accounting.");
        return;
    }
    s->title = "Memory that runs out is spoken of; nothing here says that it did.";
    hb_teller_cause(t, HB_CAUSE_UNKNOWN,
                    "No program printed a refusal here, and the words are those of texts that only "
                    "speak of such errors: there is nothing to advise. If a run failed, the lines "
                    "that it printed tell how much was wanted, and by what.");
}

bool hb_story_tell(struct hb_arena *arena, const struct hb_log *log, struct hb_story *out_story)
{
    const struct source *source = find_source(log, true);
    if (!source)
        source = find_source(log, false);
    if (!source)
        return false;
    enum family family = family_of(log, source);
    *out_story = (struct hb_story){.kind = source->kind,
                                   .framework = framework_of(log, family),
                                   .compiler = compiler_of(log, source),
                                   .wanted_bytes = -1,
                                   .available_bytes = -1,
                                   .over_bytes = -1,
                                   .capacity_bytes = -1,
                                   .state_bytes = -1,
                                   .transient_bytes = -1};
    struct hb_advice advice = {0};
    struct teller t = {arena, log, out_story, &advice};
    source->tell(&t);
    if (is_mere_mention(log, out_story))
        suppose(&t);
    else
        hb_advise(&t);
    out_story->device = device_of(log, out_story);
    out_story->of_a_step = !out_story->supposed && is_of_a_step(&t);
    if (log->rank_count > 1)
        hb_teller_note(&t, "%d ranks wrote such messages; the figures are of one of them.",
                       log->rank_count);
    return true;
}

const char *hb_story_set(const struct hb_story *story, enum hb_knob knob)
{
    bool torch_only = knob == HB_KNOB_SEGMENTS || knob == HB_KNOB_GATHER;
    bool whole_logits = story->framework == HB_FW_LOG_MEGATRON ||
                        story->framework == HB_FW_LOG_DEEPSPEED; /* no chunks of them there */
    bool xla_only = (knob == HB_KNOB_LOSS_CHUNKS && whole_logits) || knob == HB_KNOB_OFFLOAD ||
                    knob == HB_KNOB_SEQUENCE || knob == HB_KNOB_ONEHOT;
    bool torch = story->compiler && hb_str_same(story->compiler, "torch");
    return torch ? xla_only ? NULL : hb_knob_set(knob) : torch_only ? NULL : hb_knob_set(knob);
}

const char *hb_when_key(enum hb_story_when when)
{
    static const char *const keys[] = {[HB_WHEN_ANY] = NULL,
                                       [HB_WHEN_TRAINS] = "trains",
                                       [HB_WHEN_RUNS] = "runs",
                                       [HB_WHEN_DEVICE] = "device",
                                       [HB_WHEN_HOST] = "host"};
    return keys[when];
}

#define HB_ENUM(name, key, title) key,
static const char *const cause_keys[] = {HB_CAUSES(HB_ENUM)};
#undef HB_ENUM
#define HB_ENUM(name, key, title) title,
static const char *const cause_titles[] = {HB_CAUSES(HB_ENUM)};
#undef HB_ENUM

const char *hb_cause_key(enum hb_cause cause)
{
    return cause_keys[cause];
}

const char *hb_cause_title(enum hb_cause cause)
{
    return cause_titles[cause];
}
