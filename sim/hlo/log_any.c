/* The grammar of refusals in anybody's words: of a line that says that memory was refused (see
 * logrefusal.h) what kind of message it is, with its figures (logfigures.h). Lines that a form of
 * another table took are left alone, and so is advice. */
#include <string.h>

#include "base/str.h"
#include "sim/hlo/logfigures.h"
#include "sim/hlo/logform.h"
#include "sim/hlo/logkill.h"
#include "sim/hlo/logrefusal.h"
#include "sim/hlo/logreport.h"
#include "sim/hlo/logsupposed.h"

/* More than a process can address, behind a word that says that it was asked for. */
static bool is_absurd(const struct hb_sentence *l, const struct hb_figures *f)
{
    const int64_t most = INT64_C(1) << 47;
    if (f->wanted.bytes >= most)
        return true;
    for (int i = 0; i < l->count; i++)
        if (l->word[i].kind == HB_WORD_NUMBER && l->word[i].amount.bytes < 0 &&
            hb_span_is_absurd(l->word[i].span) && hb_sentence_behind(l, i, 4, WANTS | WANTED) >= 0)
            return true;
    return false;
}

/* "torch.Size([2, 80, 256, 256]), torch.float16" */
static bool tensor_of_torch(struct hb_span s, struct hb_amount *out)
{
    char type[HB_LOG_WORD_CAP];
    if (!hb_span_find(&s, "torch.Size(["))
        return false;
    struct hb_span dims = s;
    if (!hb_span_find(&s, "torch."))
        return false;
    hb_span_copy(&s, " ,)'\"", type, sizeof type);
    int64_t bytes = hb_form_array_bytes(dims, type);
    *out = (struct hb_amount){bytes, 1};
    return bytes >= 0;
}

static void set_known(struct hb_log_message *m, int fact, struct hb_amount amount)
{
    if (amount.bytes >= 0)
        hb_form_set(m, fact, amount);
}

static void take_host(struct hb_log_reader *r, const struct hb_figures *f, enum hb_report report,
                      const char *ended)
{
    struct hb_log_message *m = hb_form_current(r, HB_LOG_HOST);
    bool begun = m;
    if (!begun)
        m = hb_form_open(r, HB_LOG_HOST);
    if (ended && !begun)
        hb_form_name(m, ended);
    else if (!ended && hb_log_is_ended(m))
        m->name[0] = '\0';
    m->report = begun && m->report > report ? m->report : report;
    bool held = f->wanted.bytes < 0;
    if (m->fact[HB_FACT_ASKED] >= 0)
        set_known(m, HB_FACT_ASKED, f->wanted); /* the same, exact */
    if (m->fact[HB_FACT_ASKED] >= 0 || (held && f->held.bytes < 0))
        return;
    if (!held)
        hb_form_name(m, HB_LOG_REFUSED);
    set_known(m, HB_FACT_ASKED, held ? f->held : f->wanted);
    set_known(m, HB_FACT_CAPACITY,
              f->limit.bytes >= 0  ? f->limit
              : f->free.bytes >= 0 ? f->free
                                   : f->total);
}

/* A kernel's blocks, threads and memories have sizes of kilobytes. */
#define CHIP_BYTES ((int64_t)1 << 28)

/* Whether the memory that threads of a kernel share is meant, not the host's of that name. */
static bool is_of_block(const struct hb_sentence *l)
{
    static const char *const words[] = {"triton", "kernel", "kernels", "static", "dynamic",
                                        "ptxas",  "entry",  "threads", "launch"};
    bool shared =
        hb_sentence_has_pair(l, "shared", "memory") || hb_sentence_has_pair(l, "shared", "data");
    bool resources =
        hb_sentence_has_pair(l, "of", "resource") || hb_sentence_has_pair(l, "of", "resources");
    bool named = resources || hb_refusal_is_too_much(l) || hb_sentence_has_pair(l, "per", "block");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        named = named || hb_sentence_has_word(l, words[i]);
    return (shared && named) || (resources && hb_sentence_has_word(l, "triton"));
}

static bool is_of_chip(const struct hb_sentence *l, const struct hb_figures *f)
{
    bool limited =
        hb_sentence_has_pair(l, "shared", "memory") && (f->limit.bytes >= 0 || f->free.bytes >= 0);
    bool little = (is_of_block(l) || limited) && f->wanted.bytes < CHIP_BYTES;
    return (hb_sentence_has(l, CHIP) || little) && !hb_sentence_has(l, HOST);
}

static enum hb_report most_of(enum hb_report a, enum hb_report b)
{
    return a > b ? a : b;
}

static void take_chip(struct hb_log_reader *r, const struct hb_sentence *l,
                      const struct hb_figures *f, enum hb_report report)
{
    struct hb_log_message *m = hb_form_open(r, HB_LOG_TPU_SCOPED);
    m->report = most_of(report, HB_REPORT_SAID);
    hb_form_name(m, hb_sentence_has_word(l, "shared") ? "shared memory" : "on-chip memory");
    set_known(m, HB_FACT_NEEDED, f->wanted.bytes >= 0 ? f->wanted : f->held);
    set_known(m, HB_FACT_CAPACITY,
              f->limit.bytes >= 0  ? f->limit
              : f->free.bytes >= 0 ? f->free
                                   : f->total);
}

/* Whether a limit of the runtime or the device refused, not what was left. */
static bool is_limit(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if ((l->bits[i] & EXCEEDS && (hb_sentence_behind(l, i, 3, LIMITS) >= 0 ||
                                      hb_sentence_ahead(l, i, 4, LIMITS) >= 0)) ||
            (hb_refusal_is_more_than(l, i) && hb_sentence_ahead(l, i, 4, LIMITS) >= 0) ||
            hb_figures_is_most(l, i))
            return true;
    return false;
}

/* A server's cache: "5 GiB KV cache is needed, which is larger than the available ...", or "no
 * memory for the KV cache" */
static bool is_of_cache(const struct hb_sentence *l)
{
    bool little = false;
    for (int i = 0; i < l->count; i++)
        little = little || hb_refusal_is_more_than(l, i) || l->bits[i] & EXCEEDS ||
                 (hb_sentence_is(l, i, "no") && hb_refusal_is_none_left(l, i));
    return little &&
           (hb_sentence_has_pair(l, "kv", "cache") || hb_sentence_has_pair(l, "cache", "blocks"));
}

static bool is_of_tactic(const struct hb_sentence *l)
{
    return (hb_sentence_has_word(l, "tactic") || hb_sentence_has_word(l, "tactics")) &&
           (hb_sentence_has(l, SHORT) || hb_sentence_has_word(l, "workspace"));
}

/* Whether a library is named beside the refusal, not somewhere in the sentence. */
static bool is_refused_of(const struct hb_sentence *l, int library)
{
    enum { FAR = 6 };
    for (int i = 0; i < l->count; i++)
        if (hb_refusal_is(l, i) &&
            (l->bits[i] & library || hb_sentence_behind(l, i, FAR, library) >= 0 ||
             hb_sentence_ahead(l, i, FAR, library) >= 0))
            return true;
    return false;
}

/* With figures a request of a runtime; without, the word of a device's driver, or of anybody. */
static void take_device(struct hb_log_reader *r, const struct hb_sentence *l,
                        const struct hb_figures *f, enum hb_report report)
{
    enum hb_log_kind kind = is_of_cache(l)               ? HB_LOG_SERVE
                            : is_of_tactic(l)            ? HB_LOG_TACTIC
                            : is_refused_of(l, LINKS)    ? HB_LOG_NCCL
                            : is_refused_of(l, KERNELS)  ? HB_LOG_LIBRARY
                            : f->wanted.bytes >= 0       ? HB_LOG_RUNTIME
                            : hb_sentence_has(l, DEVICE) ? HB_LOG_PLAIN
                                                         : HB_LOG_ANY;
    struct hb_log_message *m = hb_form_open(r, kind);
    bool plain = kind == HB_LOG_PLAIN || kind == HB_LOG_ANY;
    m->report = plain ? report : most_of(report, HB_REPORT_SAID); /* who refused is named */
    if (is_limit(l))
        hb_form_name(m, HB_LOG_LIMIT);
    set_known(m, HB_FACT_ASKED, f->wanted);
    set_known(m, HB_FACT_FREE, f->free.bytes >= 0 ? f->free : f->limit);
    set_known(m, HB_FACT_CAPACITY, f->total);
}

static bool has_oom(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (hb_refusal_is_oom(l, i))
            return true;
    return false;
}

/* Languages whose words this grammar does not part: words for memory, and for too little of it. */
static const char *const foreign_memories[] = {"\u663e\u5b58",
                                               "\u5185\u5b58",
                                               "\u986f\u5b58",
                                               "\u8a18\u61b6\u9ad4",
                                               "\u30e1\u30e2\u30ea",
                                               "\uba54\ubaa8\ub9ac",
                                               "\u043f\u0430\u043c\u044f\u0442",
                                               "Speicher",
                                               "speicher",
                                               "emoria",
                                               "m\u00e9moire",
                                               "mem\u00f3ria",
                                               "pami\u0119"};
static const char *const foreign_shorts[] = {"\u4e0d\u8db3",
                                             "\u4e0d\u591f",
                                             "\u6ea2\u51fa",
                                             "\u7206",
                                             "\u62a5\u9519",
                                             "\u8db3\u308a",
                                             "\ubd80\uc871",
                                             "\u043d\u0435 \u0445\u0432\u0430\u0442",
                                             "\u043d\u0435\u0434\u043e\u0441\u0442\u0430\u0442",
                                             "gen\u00fcgend",
                                             "reicht nicht",
                                             "nsuficien",
                                             "nsuffisan",
                                             "zabrak"};

static bool is_foreign_refusal(struct hb_span s)
{
    enum { NEAR = 32 };
    for (size_t i = 0; i < sizeof foreign_shorts / sizeof *foreign_shorts; i++) {
        struct hb_span rest = s;
        while (hb_span_find(&rest, foreign_shorts[i])) {
            if (hb_span_starts(rest, "\u8fd8\u662f")) /* "... or?", in Chinese */
                continue;
            struct hb_span near = {hb_span_last((struct hb_span){s.at, rest.at}, NEAR).at,
                                   hb_span_first(rest, NEAR).end};
            if (HB_SPAN_HAS_ANY(near, foreign_memories))
                return true;
        }
    }
    return false;
}

/* "memory of the system", "the computer's memory", in Chinese: without an owner it may be a card's.
 */
static bool is_foreign_host(struct hb_span s)
{
    enum { NEAR = 9 }; /* an owner, and "of" */
    static const char *const owners[] = {
        "\u7cfb\u7edf", "\u7535\u8111", "\u673a\u5668", "\u670d\u52a1\u5668",
        "\u4e3b\u673a", "CPU",          "cpu"};
    struct hb_span rest = s;
    if (hb_span_has(s, "cv::OutOfMemoryError") || hb_span_has(s, "in function 'OutOfMem"))
        return true; /* OpenCV's */
    while (hb_span_find(&rest, "\u5185\u5b58")) {
        struct hb_span before = {s.at, rest.at - strlen("\u5185\u5b58")};
        if (HB_SPAN_HAS_ANY(hb_span_last(before, NEAR), owners))
            return true;
    }
    return false;
}

/* "the process was killed [by the system]", in Chinese */
static bool is_foreign_kill(struct hb_span s)
{
    enum { NEAR = 24 };
    struct hb_span by = s;
    while (hb_span_find(&by, "\u88ab")) {
        struct hb_span kill = hb_span_first(by, NEAR);
        if (hb_span_find(&kill, "kill") && !hb_span_starts(kill, "\u540e") &&
            !hb_span_starts(kill, "\u4e4b\u540e"))
            return true; /* not "after it was killed" */
    }
    return hb_span_has(s, "\u88ab\u6740") || hb_span_has(s, "\u8fdb\u7a0b\u6740");
}

/* The word that says that memory was refused; -1: none does. */
static int find_refusal(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (hb_refusal_is(l, i) && !hb_supposed_is(l, i))
            return i;
    return -1;
}

/* "2.09 GiB", "5053216Ki", "0x30d40 bytes", "318080": to two digits behind the point, or many in
 * all. */
static bool is_precise(const struct hb_word *w)
{
    enum { BEHIND = 2, ALL = 4, BARE = 6 };
    int all = 0, behind = -1;
    for (const char *at = w->span.at; at < w->span.end; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (!digit && *at != '.' && *at != ',')
            break;
        all += digit;
        behind = digit ? behind + (behind >= 0) : 0;
    }
    return w->kind == HB_WORD_NUMBER && w->amount.bytes >= 0 &&
           (behind >= BEHIND || all >= (w->has_unit ? ALL : BARE) || hb_span_starts(w->span, "0x"));
}

/* "requestedSpace: 44135424 B", "of size: 2304", not "7 x 4 = 28 GB" */
static bool is_keyed(const struct hb_sentence *l, int i)
{
    return i > 0 && l->word[i - 1].keys && l->word[i - 1].kind == HB_WORD_TEXT &&
           (l->word[i].has_unit || l->bits[i - 1] & WANTED);
}

/* "needs 24 GB, only 16 GB are free" */
static bool is_compared(const struct hb_figures *f)
{
    return f->wanted.bytes >= 0 && (f->free.bytes >= 0 || f->limit.bytes >= 0);
}

/* Whether its figures may be those of a request: as a program prints them, of an allocation, or
 * compared with what there is. */
static bool is_told_of_request(const struct hb_sentence *l, const struct hb_figures *f)
{
    bool told = f->wanted.bytes >= 0 && f->wanted.step_bytes == 1;
    for (int i = 1; i < l->count; i++)
        told = told || is_keyed(l, i) ||
               (is_compared(f) && l->word[i].has_unit && hb_sentence_is(l, i - 1, "only"));
    return told || hb_report_is_printed(l) || hb_sentence_has(l, ALLOCS | EXCEEDS) ||
           is_of_chip(l, f);
}

static enum hb_report report_of(const struct hb_sentence *l)
{
    enum hb_report report = HB_REPORT_NONE;
    for (int i = 0; i < l->count; i++)
        if (hb_refusal_is(l, i) && !hb_supposed_is(l, i))
            report = most_of(report, hb_report_of(l, i));
    return report;
}

/* Whether the host's memory was refused: by the sentence that says so, or, if that names neither
 * host nor device, by the line. */
static bool is_host(struct hb_log_reader *r, const struct hb_sentence *l, int refusal)
{
    struct hb_sentence *part = (struct hb_sentence *)hb_form_scratch(r, 2 * sizeof *part) + 1;
    if (refusal < 0 || hb_sentence_is(l, refusal, "maxed") || hb_sentence_is(l, refusal, "filled"))
        return (refusal >= 0 &&
                (!hb_sentence_has(l, DEVICE) || hb_sentence_behind(l, refusal, 3, HOST) >= 0)) ||
               hb_refusal_is_of_host(l);
    hb_sentence_around(l, refusal, part);
    return hb_refusal_is_of_host(part) ||
           (!hb_sentence_has(part, HOST | DEVICE) && hb_refusal_is_of_host(l));
}

void hb_form_complete(struct hb_log_reader *r, enum hb_log_kind kind, struct hb_span segment)
{
    struct hb_sentence *l = hb_form_scratch(r, 2 * sizeof *l);
    struct hb_log_message *m = hb_form_current(r, kind);
    hb_sentence_read(segment, l);
    if (m && find_refusal(l) >= 0)
        set_known(m, HB_FACT_ASKED, hb_figures_read(l).wanted);
}

enum { LIST_WORDS = 12 }; /* "Required memory: 5 GiB", maybe behind a time and a level */

/* Numbers of less without a unit count something else in a list. */
#define LEAST_LISTED ((int64_t)1 << 20)

/* Of a list of figures, "Required memory: 5 GiB", those that a key tells. */
static struct hb_figures read_keyed(struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->word[i].kind == HB_WORD_NUMBER &&
            (!(i > 0 && l->word[i - 1].keys) ||
             (!l->word[i].has_unit && l->word[i].amount.bytes < LEAST_LISTED)))
            l->word[i].amount.bytes = -1;
    for (int i = 0; i < l->count; i++)
        if ((l->bits[i] & (WANTS | WANTED)) == WANTED)
            l->bits[i] &= ~WANTED; /* "file size = 2 GiB" */
    return hb_figures_read(l);
}

void hb_form_follow(struct hb_log_reader *r, struct hb_log_message *m, struct hb_span segment)
{
    struct hb_sentence *l = hb_form_scratch(r, 2 * sizeof *l);
    hb_sentence_read(segment, l);
    if (l->count > LIST_WORDS) /* no figure of a list, but somebody's sentence */
        return;
    struct hb_figures f = read_keyed(l);
    set_known(m, HB_FACT_ASKED, f.wanted);
    if (m->fact[HB_FACT_ASKED] < 0) /* what a device has, at some other time */
        return;
    set_known(m, HB_FACT_FREE, f.free);
    set_known(m, HB_FACT_CAPACITY, f.total);
}

/* A call that failed of a fault, in whose line memory is not said to be short. */
static bool is_faulty(struct hb_log_reader *r, const struct hb_sentence *l)
{
    const struct hb_log_message *fault = hb_form_current(r, HB_LOG_FAULT);
    for (int i = 0; i < l->count; i++)
        if (hb_refusal_is_oom(l, i) || hb_refusal_is_out_of(l, i))
            return false;
    return fault && fault->line == hb_form_line(r);
}

/* "+batch size of 1": added by a patch, "+" alone is a shell's trace; "-        throw new ..." */
static bool is_patch_line(struct hb_span s)
{
    if (hb_span_starts(s, "+\t") || hb_span_starts(s, "+    ") || hb_span_starts(s, "-    "))
        return true;
    char c = s.end - s.at > 1 && *s.at == '+' ? s.at[1] : ' ';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What a line says, and with what evidence. */
struct refusal {
    int word;          /* that says that memory was refused; -1: none does */
    bool foreign;      /* it is said in a language whose words are not parted */
    bool line;         /* it is the line, not part of prose */
    bool killed;       /* a process was ended */
    const char *ended; /* ... of which this is all that is told: HB_LOG_ENDED, _SIGNAL; or null */
    bool crash; /* ... or whatever came of memory that was filled: no figure is the last one */
    enum hb_report report;
};

/* "Perhaps out of memory?": gunicorn's guess at each worker that it had to end */
static bool is_guessed(const struct hb_sentence *l, int i)
{
    return hb_sentence_is(l, i - 1, "perhaps");
}

/* "KILLED BY SIGNAL: 9 (Killed)", "exitcode: -9", "was sent SIGKILL!": by whom and why nobody says,
 * neither where the end is told nor elsewhere in the line */
static bool is_signal(struct hb_log_reader *r, const struct hb_sentence *l)
{
    struct hb_sentence *part = (struct hb_sentence *)hb_form_scratch(r, 2 * sizeof *part) + 1;
    bool ended = false;
    for (int i = 0; i < l->count; i++) {
        if (hb_refusal_is(l, i) && !is_guessed(l, i))
            return false;
        if (!hb_kill_is(l, i))
            continue;
        hb_sentence_around(l, i, part);
        if (hb_sentence_has(part, MEMORY) || hb_sentence_has_word(part, "oom"))
            return false;
        ended = true;
    }
    return ended;
}

static struct refusal read_refusal(struct hb_log_reader *r, const struct hb_sentence *l)
{
    struct hb_span s = l->span;
    struct refusal f = {.word = find_refusal(l),
                        .foreign = is_foreign_refusal(s),
                        .killed = is_foreign_kill(s),
                        .report = HB_REPORT_NONE};
    bool foreign = f.killed || f.foreign;
    bool other = f.killed || f.foreign || f.word >= 0;
    f.line = f.word >= 0 && hb_report_is_line(l, f.word);
    for (int i = 0; i < l->count; i++) {
        bool kill = hb_kill_is(l, i) && !hb_supposed_is(l, i);
        f.killed = f.killed || kill;
        f.line = f.line || (kill && hb_report_is_line(l, i));
        other = other || (kill && !hb_kill_is_status(l, i));
        if (kill)
            f.report = most_of(f.report, hb_report_of(l, i));
    }
    int crash = other ? -1 : hb_refusal_host_crash(l);
    if (crash >= 0 && !hb_supposed_is(l, crash)) {
        f.killed = f.crash = other = true;
        f.report = most_of(f.report, HB_REPORT_SAID);
    }
    f.ended = !f.killed ? NULL : !other ? HB_LOG_ENDED : is_signal(r, l) ? HB_LOG_SIGNAL : NULL;
    f.report = most_of(f.report, report_of(l));
    if (foreign || (hb_form_is_first_line(r) && !hb_span_starts(s, "#")))
        f.report = most_of(f.report, HB_REPORT_TOLD);
    return f;
}

/* Whether a program printed the line: with a level, a class, a time or a head, and no title. */
static bool is_by_program(const struct hb_sentence *l, const struct refusal *refusal)
{
    return hb_report_is_printed(l) || (refusal->line && !hb_span_starts(l->span, "# "));
}

/* Whether a program told the figures: it printed the line, one of them is precise or behind a key,
 * or what was wanted is held against what there was. What is only round in anybody's sentence is
 * what somebody has, sets, needs or reckons: of 21 such at first look twelve were told wrongly. */
static bool is_of_program(const struct hb_sentence *l, const struct refusal *refusal,
                          const struct hb_figures *f)
{
    bool told = is_by_program(l, refusal);
    for (int i = 0; i < l->count; i++)
        told = told || is_precise(&l->word[i]) || is_keyed(l, i);
    return told || is_compared(f) || hb_sentence_has(l, CHIP);
}

/* The line's figures, where they may be of what was refused. */
static struct hb_figures read_figures(struct hb_sentence *l, struct refusal *refusal)
{
    struct hb_amount tensor;
    struct hb_figures f = hb_figures_read(l);
    bool told = is_of_program(l, refusal, &f);
    bool request = told && is_told_of_request(l, &f);
    if (request && f.wanted.bytes >= 0)
        refusal->report = HB_REPORT_TOLD;
    if (refusal->killed)
        f.wanted.bytes = -1; /* "a memory request of 30Mi": what was set, not asked for */
    if (refusal->report == HB_REPORT_NONE || refusal->crash || !told ||
        !(request || (refusal->killed && refusal->line)))
        f = (struct hb_figures){{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}};
    if (f.wanted.bytes < 0 && tensor_of_torch(l->span, &tensor))
        f.wanted = tensor;
    if (f.wanted.bytes < 0 && f.limit.bytes >= 0 && f.held.bytes > f.limit.bytes)
        f.wanted = f.held; /* "uses 400G, exceeding the limit of 95G" */
    return f;
}

/* Whether it is more than somebody's word: of what is refused the line tells something. */
static bool is_of_device(const struct hb_sentence *l, const struct hb_figures *f)
{
    return f->wanted.bytes >= 0 || hb_sentence_has(l, THING) ||
           hb_sentence_has_word(l, "resources") ||
           hb_sentence_has_pair(l, "resource", "exhausted") ||
           hb_sentence_has_pair(l, "resource", "exhaustion") || has_oom(l) || is_limit(l);
}

/* A row of a table that tells what such words mean, "| `TERM_MEMLIMIT` | 16 | Job killed |". */
static bool is_of_glossary(struct hb_log_reader *r, struct hb_span s)
{
    enum { ROWS = 64 };
    int64_t head = hb_form_log(r)->glossary_line;
    return head && hb_form_line(r) <= head + ROWS && hb_span_starts(s, "|");
}

void hb_form_take_any(struct hb_log_reader *r, struct hb_span s)
{
    struct hb_sentence *l = hb_form_scratch(r, 2 * sizeof *l);
    hb_sentence_read(s, l);
    /* before they are filled in; a loader's own room */
    static const char *const texts[] = {"${", "{{", "{len(", "f\"{", "static TLS"};
    if (is_faulty(r, l) || is_of_glossary(r, s) || HB_SPAN_HAS_ANY(s, texts))
        return;
    hb_form_log(r)->mark[HB_MARK_FILLS_HOST] += hb_refusal_fills_host(l);
    hb_form_log(r)->mark[HB_MARK_HOST] += hb_refusal_names_host(l);
    hb_form_log(r)->mark[HB_MARK_DEFINES] += hb_supposed_defines(l);
    struct refusal refusal = read_refusal(r, l);
    bool added = hb_span_starts(s, "+\t") || hb_span_starts(s, "+    ");
    if (added || (!refusal.killed && is_patch_line(s)))
        return;
    if (!refusal.killed && !refusal.foreign && refusal.word < 0)
        return;
    struct hb_figures f = read_figures(l, &refusal);
    hb_form_log(r)->mark[HB_MARK_PRINTED] += refusal.line;
    hb_form_log(r)->mark[HB_MARK_SHOWN] += is_by_program(l, &refusal);
    if (!refusal.killed && is_absurd(l, &f))
        set_known(hb_form_open(r, HB_LOG_CORRUPT), HB_FACT_ASKED, f.wanted);
    else if (!is_of_cache(l) &&
             (refusal.killed || is_foreign_host(s) || is_host(r, l, refusal.word)))
        take_host(r, &f, refusal.report, refusal.ended);
    else if (is_of_chip(l, &f))
        take_chip(r, l, &f, refusal.report);
    else if (refusal.foreign || is_of_device(l, &f)) {
        hb_form_log(r)->mark[HB_MARK_OF_DEVICE] += hb_sentence_has(l, DEVICE);
        take_device(r, l, &f, refusal.report);
    }
}

/* A thread's title, "# fix: ...": of a change, which is what the whole text is of then. */
static void take_title(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_sentence *l = hb_form_scratch(r, 2 * sizeof *l);
    if (!hb_form_is_first_line(r) || place->before.at < place->before.end)
        return;
    hb_sentence_read(place->after, l);
    hb_form_log(r)->mark[HB_MARK_CHANGE] += hb_supposed_is_change(l);
    (void)form;
}

/* "| Reason | Code | Meaning |", "| Symptom | Cause | Fix |": of any such error */
static void take_glossary(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    static const char *const firsts[] = {"| Symptom", "| Error", "| Problem", "| Issue"};
    bool helps = *form->text != 'M';
    if (hb_span_starts(place->before, "|") && hb_span_starts(place->after, " |") &&
        (!helps || HB_SPAN_STARTS_ANY(place->before, firsts)))
        hb_form_log(r)->glossary_line = hb_form_line(r);
    (void)form;
}

static void take_any(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    hb_form_any_seen(r);
    (void)form;
    (void)place;
}

#define ANY(words)                                                                                 \
    {                                                                                              \
        words, HB_LOG_ANY, HB_FORM_ADDS, .handle = take_any                                        \
    }

/* Parts of words of which each refusal has one. */
static const struct hb_form rows[] = {
    {"# ", HB_LOG_ANY, HB_FORM_ADDS, .handle = take_title},
    {"| Meaning", HB_LOG_ANY, HB_FORM_ADDS, .text = "M", .handle = take_glossary},
    {"| Fix", HB_LOG_ANY, HB_FORM_ADDS, .text = "F", .handle = take_glossary},
    {"| Solution", HB_LOG_ANY, HB_FORM_ADDS, .text = "S", .handle = take_glossary},
    {"| Resolution", HB_LOG_ANY, HB_FORM_ADDS, .text = "R", .handle = take_glossary},
    ANY("\u4e0d\u8db3"),
    ANY("\u4e0d\u591f"),
    ANY("\u6ea2\u51fa"),
    ANY("\u7206\u663e"),
    ANY("\u7206"),
    ANY("\u8db3\u308a"),
    ANY("\ubd80\uc871"),
    ANY("\u043f\u0430\u043c"),
    ANY("peicher"),
    ANY("emoria"),
    ANY("\u00e9moire"),
    ANY("mem\u00f3r"),
    ANY(" fit"),
    ANY("illed"),
    ANY("erminated"),
    ANY("VMEM"),
    ANY("vmem"),
    ANY("emory"),
    ANY("EMORY"),
    ANY("lloc"),
    ANY("LLOC"),
    ANY("OOM"),
    ANY("oom"),
    ANY("xhaust"),
    ANY("XHAUST"),
    ANY("IGKILL"),
    ANY("137"),
    ANY("ignal"),
    ANY("ut of "),
    ANY("UT_OF_"),
    ANY("VRAM"),
    ANY("code -9"),
    ANY("code: -9"),
    ANY("utOfRes"),
    ANY(" RAM"),
    ANY("\u88ab"),
    ANY("\u7a0b\u6740"),
    ANY("ool size"),
    ANY("ot enough"),
    ANY("/shm"),
    ANY("hared data"),
    ANY("code = -9"),
    ANY("status -9"),
    ANY("scratch sp"),
    ANY(" ram"),
    ANY(" Ram"),
    ANY("\u62a5\u9519"),
    ANY("rror 2"),
    ANY("RAM us"),
    ANY(" mem "),
    ANY(" MEM "),
    ANY("</torch_"),
    ANY("Vram"),
    ANY("vram"),
};

const struct hb_forms hb_forms_any = {rows, sizeof rows / sizeof rows[0]};
