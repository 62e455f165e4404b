/* What is reported, not only spoken of: see logreport.h. */
#include "sim/hlo/logreport.h"

#include <string.h>

#include "sim/hlo/logrefusal.h"
#include "sim/hlo/logsupposed.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "RuntimeError", "std::bad_alloc", "error:", "ERROR", "[E]" */
static bool has_level(struct hb_span s)
{
    static const char *const marks[] = {"Error:",    "error:", "ERROR",  "FATAL",     "WARNING",
                                        "EXHAUSTED", "[E]",    "[W]",    "bad_alloc", "OUT_OF_",
                                        ".cc:",      ".cpp:",  "what()", "Exception:"};
    if (HB_SPAN_HAS_ANY(s, marks))
        return true;
    struct hb_span name = s; /* a class that the line begins with: "MemoryError" */
    while (s.at < s.end && (is_letter(*s.at) || *s.at == '.' || *s.at == '_'))
        s.at++;
    name.end = s.at;
    return hb_span_has(name, "Error");
}

/* "12:30:59" */
static bool has_time(struct hb_span s)
{
    for (const char *at = s.at; s.end - at >= 8; at++)
        if (is_digit(at[0]) && is_digit(at[1]) && at[2] == ':' && is_digit(at[3]) &&
            is_digit(at[4]) && at[5] == ':' && is_digit(at[6]))
            return true;
    return false;
}

bool hb_report_is_printed(const struct hb_sentence *l)
{
    return has_level(l->span) || has_time(l->span);
}

/* "CUDA OOM ...", "[BUG] GPU out of memory ...", "..., but OOM": nothing before it in its clause
 * but whose it is. */
static bool is_headline(const struct hb_sentence *l, int i)
{
    static const char *const heads[] = {"bug",   "issue", "help",   "a",   "an", "the", "runtime",
                                        "torch", "still", "always", "not", "no", "too", NULL};
    enum { SAYS = DEVICE | OWNER | HOST | MEMORY | FAILS | CANNOTS | ALLOCS | SHORT };
    if (hb_sentence_is(l, i, "exceeding")) /* "Exceeding memory surfaces as ..." */
        return false;
    for (int k = i - 1; k >= 0 && l->word[k].kind == HB_WORD_TEXT; k--)
        if (!(l->bits[k] & SAYS) && !hb_sentence_is_any(l, k, heads))
            return false;
    return true;
}

/* "DefaultCPUAllocator: not enough memory": a name of one word, and what it says */
static bool is_named(const struct hb_sentence *l, int i)
{
    int name = hb_sentence_is(l, i - 1, "not") ? i - 2 : i - 1;
    struct hb_span s = l->span;
    hb_span_skip(&s, " >`*");
    return name >= 0 && l->word[name].keys &&
           !memchr(s.at, ' ', (size_t)(l->word[name].span.end - s.at));
}

/* "# Decode OOM due to ...", the title of a thread, but not of a change. */
static bool is_titled(const struct hb_sentence *l)
{
    return hb_span_starts(l->span, "# ") && !hb_supposed_is_change(l);
}

static const char *const events[] = {
    "get",      "gets",        "getting",  "run",      "runs",      "running",    "hit",
    "hits",     "hitting",     "face",     "facing",   "encounter", "encounters", "encountering",
    "meet",     "meeting",     "throw",    "throws",   "throwing",  "raise",      "raises",
    "rasing",   "crash",       "crashes",  "crashing", "show",      "shows",      "showing",
    "shown",    "see",         "give",     "gives",    "goes",      "went",       "dies",
    "receive",  "receiving",   "reports",  "led",      "triggered", "experience", "experiencing",
    "had",      "says",        "said",     "keep",     "keeps",     "fail",       "fails",
    "returns",  "immediately", "suddenly", "complain", "complains", "appear",     "appears",
    "appeared", "turns",       "displays", "enters",   "stops",     "killed",     "become",
    "became",   "kills",       "invoked",  "invoking", "i",         "my",         "me",
    "still",    "always",      NULL};

/* "to", "will", "may": what follows has not happened. */
static bool is_open(const struct hb_sentence *l, int k)
{
    static const char *const modals[] = {"to", "will", "would", "can", "may", "if", NULL};
    return hb_sentence_is_any(l, k - 1, modals) ||
           (hb_sentence_is_any(l, k - 2, modals) && l->word[k - 1].kind == HB_WORD_TEXT);
}

/* Whether one of words stands among the `far` before i, and nothing says that it is still to come.
 */
static bool has_before(const struct hb_sentence *l, int i, int far, const char *const *words)
{
    int k = hb_sentence_nearest(l, i, far, words);
    while (k >= 0 && is_open(l, k))
        k = hb_sentence_nearest(l, k, far - (i - k), words);
    return k >= 0;
}

/* "I got an OOM", "training crashes with an out of memory error" */
static bool is_event(const struct hb_sentence *l, int i)
{
    enum { FAR = 10 };
    static const char *const states[] = {"is", "was", "are", "were", NULL};
    static const char *const between[] = {"being", "not", "just", "simply", NULL};
    int state = i - 1; /* "there is just not enough memory" */
    while (hb_sentence_is_any(l, state, between))
        state--;
    if (hb_sentence_is_any(l, state, states) && !is_open(l, state))
        return true;
    return has_before(l, i, FAR, events);
}

/* "the OOM occurred", "OOM at step 5", but not "when OOM occurs" */
static bool is_told_behind(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    static const char *const open[] = {"when", "until", "of",    "to", "for",
                                       "any",  "no",    "catch", NULL};
    static const char *const words[] = {"happened", "came",  "occurs", "happens",
                                        "appears",  "again", NULL};
    static const char *const when[] = {"when", "while", "during", "at", "after", NULL};
    if (hb_sentence_is_any(l, i - 1, open) ||
        (i > 0 && l->bits[i - 1] & DEVICE && hb_sentence_is_any(l, i - 2, open)))
        return false;
    for (int k = i + 1; k <= i + FAR && k < l->count && l->word[k].kind != HB_WORD_END; k++)
        if (hb_sentence_is_any(l, k, words) && !is_open(l, k))
            return true;
    int memory = hb_sentence_ahead(l, i, 3, MEMORY); /* the end of "out of GPU memory" */
    int end = memory < 0 || hb_refusal_is_oom(l, i) ? i : memory;
    return hb_sentence_is_any(l, end + 1, when);
}

/* "Fixes an HBM OOM issue during ...": what is mended has happened */
static bool is_mended(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    static const char *const verbs[] = {"fix", "fixes", NULL};
    static const char *const nouns[] = {"issue", "issues",  "error", "errors",
                                        "crash", "problem", "bug",   NULL};
    int memory = hb_refusal_is_oom(l, i) ? i : hb_sentence_ahead(l, i, 3, MEMORY);
    return memory >= 0 && hb_sentence_is_any(l, memory + 1, nouns) && has_before(l, i, FAR, verbs);
}

/* "OOMs", "OOMed": a verb */
static bool is_verb(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"ooms", "oomed", "ooming", NULL};
    return hb_sentence_is_any(l, i, verbs);
}

/* "I got an OOM", "the run crashed with OOM": it was met, once. */
static bool is_told(const struct hb_sentence *l, int i)
{
    static const char *const met[] = {"got",      "ran",      "hit",     "saw",         "seeing",
                                      "met",      "faced",    "threw",   "raised",      "crashed",
                                      "died",     "received", "failed",  "encountered", "reported",
                                      "happened", "occurred", "stopped", "getting",     "resulted",
                                      "caused",   "gave",     "seen",    "observed",    NULL};
    enum { FAR = 10 };
    return has_before(l, i, FAR, met);
}

enum { SHORT_LINE = 9 }; /* words: "Reason: OOMKilled" */

/* Words of a call or a process that failed, as it is told by what watches it. */
static bool is_failure(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"failed", "fails", "failing", "unable",
                                        "cannot", "cant",  "kubelet", NULL};
    for (int k = 0; k < l->count; k++)
        if (hb_sentence_is_any(l, k, verbs) || (l->bits[k] & FAILS && l->word[k].keys))
            return true;
    return l->word[i].kind == HB_WORD_NUMBER || hb_sentence_is(l, i, "sigkill") ||
           (hb_sentence_is(l, i, "oom") && hb_sentence_is(l, i + 1, "killed") &&
            l->count <= SHORT_LINE) ||
           hb_sentence_has_pair(l, "could", "not");
}

/* Chinese, Japanese or Korean, of which the grammar parts no words. */
static bool is_foreign(struct hb_span s)
{
    for (const char *at = s.at; at < s.end; at++)
        if ((unsigned char)*at >= 0xe3 && (unsigned char)*at <= 0xed)
            return true;
    return false;
}

enum hb_report hb_report_of(const struct hb_sentence *l, int i)
{
    if (hb_report_is_printed(l) || is_told(l, i) || is_foreign(l->span))
        return HB_REPORT_TOLD;
    if (hb_supposed_is_guess(l, i))
        return HB_REPORT_NONE;
    bool said = is_headline(l, i) || is_event(l, i) || is_told_behind(l, i) || is_mended(l, i) ||
                is_verb(l, i) || is_failure(l, i) || is_titled(l) || is_named(l, i);
    return said ? HB_REPORT_SAID : HB_REPORT_NONE;
}

/* "RuntimeError:", "Reason:", "MemoryError": what a printed line begins with. */
static bool has_head(struct hb_span line, struct hb_span before)
{
    enum { FAR = 48 };
    struct hb_span head = hb_span_first(before, FAR), word = line;
    hb_span_skip(&word, " \t>`");
    struct hb_span rest = word;
    if (hb_span_find(&rest, " "))
        word.end = rest.at;
    return hb_span_has(head, ":") || hb_span_has(head, "Error") || hb_span_has(word, "Error");
}

bool hb_report_is_line(const struct hb_sentence *l, int i)
{
    enum { TAIL = 5 }; /* words: "[out] of memory", "OOM when allocating tensor" */
    struct hb_span before = {l->span.at, l->word[i].span.at};
    int k = i + 1;
    while (k < l->count && (l->word[k].kind == HB_WORD_TEXT || *l->word[k].span.at == '(' ||
                            *l->word[k].span.at == ')'))
        k++; /* "Out of memory (OOM) errors occur when ..." goes on */
    return is_titled(l) || has_time(before) || (has_head(l->span, before) && k <= i + TAIL);
}
