/* What is only supposed: see logsupposed.h. */
#include "sim/hlo/logsupposed.h"

#include <string.h>

#include "sim/hlo/logrefusal.h"

/* A title's first word, behind its tags: "# [BUG] [core] ", "docs: ", "fix(x): ", "only". Whether
 * one of them is of those that commits begin with. */
static int first_of_title(const struct hb_sentence *l, bool *out_tagged)
{
    static const char *const kinds[] = {"docs",     "doc",  "feat", "fix",   "chore",
                                        "refactor", "test", "perf", "infra", "ci",
                                        "build",    "FR",   "RFE",  "RFC"};
    struct hb_span tags = l->span;
    hb_span_skip(&tags, "# ");
    while (hb_span_starts(tags, "[") && hb_span_find(&tags, "]"))
        hb_span_skip(&tags, " :");
    *out_tagged = false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !*out_tagged; k++) {
        struct hb_span rest = tags;
        size_t len = strlen(kinds[k]);
        if (!hb_span_starts(tags, kinds[k]))
            continue;
        rest.at += len;
        if (hb_span_starts(rest, "(") && !hb_span_find(&rest, ")"))
            continue;
        *out_tagged = hb_span_starts(rest, ":");
        tags = *out_tagged ? (struct hb_span){rest.at + 1, rest.end} : tags;
    }
    int first = 0;
    while (first < l->count &&
           (l->word[first].kind != HB_WORD_TEXT || l->word[first].span.at < tags.at))
        first++;
    return hb_sentence_is(l, first, "only") ? first + 1 : first;
}

/* "Add OOM howto", "[BUG] Catch ...", "Only relaunch pods that are OOMKilled": the title of a
 * change, which begins with what was done. That something was fixed had happened. */
static bool is_change(const struct hb_sentence *l)
{
    static const char *const verbs[] = {
        "add",     "log",         "document",  "handle",    "support",   "allow",   "catch",
        "detect",  "report",      "improve",   "relaunch",  "implement", "enable",  "disable",
        "update",  "use",         "interpret", "propagate", "expose",    "surface", "print",
        "change",  "remove",      "make",      "raise",     "throw",     "bump",    "adds",
        "include", "distinguish", "indicate",  "find",      "updates",   "enhance", NULL};
    bool tagged;
    int first = first_of_title(l, &tagged);
    bool path = first < l->count && l->word[first].span.end < l->span.end &&
                *l->word[first].span.end == '/'; /* "include/shm.h:28" */
    if (hb_sentence_is_any(l, first, verbs) && !l->word[first].keys && !path)
        return true;
    return (hb_sentence_is(l, first, "more") && hb_sentence_is(l, first + 1, "hints")) ||
           (hb_sentence_is(l, first, "set") && hb_sentence_has_pair(l, "to", "oom"));
}

bool hb_supposed_is_change(const struct hb_sentence *title)
{
    static const char *const mends[] = {
        "fix",     "fixes",    "fixed",  "reduce",   "prevent", "avoid",     "set",     "lower",
        "limit",   "optimize", "better", "increase", "move",    "stabilize", "provide", "warn",
        "migrate", "adjust",   "bound",  "convert",  "default", "extend",    "keep",    "port",
        "refine",  "shard",    "stop",   "upgrade",  NULL};
    static const char *const told[] = {"causes", "fails", "crashes", "gets",   "gives",
                                       "throws", "leads", "results", "raises", NULL};
    bool tagged;
    int first = first_of_title(title, &tagged);
    for (int k = first + 1; k < title->count && !tagged; k++)
        if (hb_sentence_is_any(title, k, told)) /* "Increase of the batch size causes OOM" */
            return false;
    return tagged || is_change(title) ||
           (hb_sentence_is_any(title, first, mends) && !title->word[first].keys);
}

/* "how to solve this": it happened. */
static bool solves(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"solve", "fix", "deal", "debug", "process", NULL};
    return hb_sentence_is_any(l, i, verbs);
}

/* A word of advice, not the name "HiRes fix" of what draws in two steps, nor the "Fix" that a title
 * begins with: what was mended had happened, nor "if I run it", which tells what happens. i is
 * the refusal. */
static bool advises(const struct hb_sentence *l, int k, int i)
{
    int before = k > 0 && l->word[k - 1].kind == HB_WORD_END ? k - 2 : k - 1;
    bool title = k == 0 && strncmp(l->word[k].text, "fix", 3) == 0 && !l->word[k].keys &&
                 !hb_sentence_has_word(l, "possible") && !hb_sentence_has_word(l, "potential");
    bool told = hb_sentence_is(l, k, "if") &&
                (hb_sentence_is(l, k + 1, "i") || hb_sentence_is(l, k + 1, "we") ||
                 hb_sentence_is(l, k - 1, "wondering") || hb_sentence_is(l, k - 1, "wonder"));
    bool asked = hb_sentence_is(l, k - 1, "to") && hb_sentence_is(l, k - 2, "how") && solves(l, k);
    for (int n = k + 1; n < i && hb_sentence_is(l, k, "if"); n++)
        told = told || hb_sentence_is(l, n, "then"); /* "if there is none then your RAM was full" */
    return l->bits[k] & ADVISES && !title && !hb_sentence_is(l, k, "reduced") && !told && !asked &&
           !hb_sentence_is(l, before, "hires") && !hb_sentence_is(l, before, "res");
}

/* "a fault instead of an OutOfMemoryError", "rather than a plain CUDA OOM": it was not. */
static bool is_other(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    static const char *const words[] = {"instead", "rather", NULL};
    int k = hb_sentence_nearest(l, i, FAR, words);
    return k >= 0 && (hb_sentence_is(l, k + 1, "of") || hb_sentence_is(l, k + 1, "than"));
}

static bool ends_in(const struct hb_sentence *l, int i, const char *ending)
{
    size_t len = i >= 0 && i < l->count ? strlen(l->word[i].text) : 0;
    size_t cut = strlen(ending);
    return len > cut && strcmp(l->word[i].text + len - cut, ending) == 0;
}

/* "jobs that exceed it will be killed": any such; "my job will be killed" is met */
static bool is_rule(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    static const char *const wills[] = {"will", NULL};
    static const char *const own[] = {"my", "i", NULL};
    int will = hb_sentence_nearest(l, i, i, wills);
    int end = will < 0 ? -1 : hb_sentence_ahead(l, will, FAR, ENDS);
    return end >= 0 && end <= i && hb_sentence_is(l, will + 1, "be") &&
           hb_sentence_nearest(l, i, i, own) < 0;
}

/* "a CUDA OOM must not take the server down", "the pod should be killed": what would be if */
static bool is_supposed(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    static const char *const modals[] = {"must", "should", "would", "shall", NULL};
    static const char *const lets[] = {"allow", NULL};
    static const char *const tells[] = {"report", "detect", NULL};
    int before = hb_sentence_is(l, i - 1, "be") ? i - 2 : i - 1;
    int wish = hb_sentence_nearest(l, i, i, modals);
    if (hb_sentence_is_any(l, i - 1, lets) || hb_sentence_is_any(l, i - 2, lets))
        return true;                                /* "allow it OOM" */
    int next = hb_sentence_next(l, i, FAR, modals); /* "it should" is of something else */
    return (next >= 0 && !hb_sentence_is(l, next - 1, "it")) ||
           (hb_sentence_is(l, wish, "should") &&
            (hb_sentence_is(l, wish - 1, "we") || hb_sentence_is_any(l, wish + 1, tells) ||
             (hb_sentence_is(l, wish + 1, "be") && ends_in(l, wish + 2, "ed")))) ||
           hb_sentence_is_any(l, before, modals);
}

/* "Look for OOM-kill events", "always check your system logs for ..." */
static bool is_looked_for(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"look", "check", "checks", "monitor", NULL};
    static const char *const aims[] = {"for", NULL};
    enum { FAR = 6 };
    int aim = hb_sentence_nearest(l, i, FAR, aims);
    return aim > 0 && hb_sentence_nearest(l, aim, FAR, verbs) >= 0;
}

/* "may have been killed", "may have crashed", but not "may have problems" */
static bool is_perfect(const struct hb_sentence *l, int k)
{
    return hb_sentence_is(l, k, "have") &&
           (hb_sentence_is(l, k + 1, "been") || ends_in(l, k + 1, "ed"));
}

/* "may have been killed", "there may not be enough", "it may load but ...": it did. */
static bool has_happened(const struct hb_sentence *l, int may, int i)
{
    for (int k = may + 1; k < i; k++)
        if (hb_sentence_is(l, k, "but") || hb_sentence_is(l, k, "not") ||
            (k == may + 1 && is_perfect(l, k)))
            return true;
    return false;
}

/* "1. Out of Memory (OOM):", over a list of what helps */
static bool is_heading(const struct hb_sentence *l)
{
    struct hb_span s = l->span;
    while (s.end > s.at && (s.end[-1] == ' ' || s.end[-1] == '*'))
        s.end--;
    hb_span_skip(&s, " #*-");
    bool listed = s.at > l->span.at || (s.at + 1 < s.end && s.at[1] == '.');
    return listed && s.end > s.at && s.end[-1] == ':' && l->count <= 8;
}

/* "When a cgroup's OOM kill fires, it picks the largest", "When a container exceeds its limit, the
 * OOM killer ends it": of any such, at the beginning; "even when the OOM occurred in ...", "when
 * you're running low" */
static bool is_general(const struct hb_sentence *l, int i)
{
    static const char *const whens[] = {"when", "whenever", NULL};
    static const char *const any[] = {"a", "an", NULL};
    static const char *const you[] = {"you", "your", NULL};
    static const char *const occurs[] = {"happens", "occurs", NULL};
    int when = hb_sentence_nearest(l, i, i, whens);
    enum { FAR = 6 };
    int then = hb_sentence_next(l, i, FAR, whens); /* "OOM happens when your GPU runs out of it" */
    if (then > 0 && hb_sentence_is_any(l, then + 1, you) &&
        hb_sentence_next(l, then - 2, 1, occurs) > 0)
        return true;
    bool figure = false; /* "when you hit malloc of size 2147483648 failed": a message */
    for (int k = when + 1; k < l->count; k++)
        figure = figure || l->word[k].kind == HB_WORD_NUMBER;
    if (when >= 0 && hb_sentence_is_any(l, when + 1, you) && !figure)
        return true;
    int first = i;
    while (first > 0 && l->word[first - 1].kind == HB_WORD_TEXT)
        first--;
    bool begins = first == 0 || l->word[first - 1].kind == HB_WORD_END;
    if (i < l->count && l->word[i].kind == HB_WORD_PAUSE) /* a quotation in the first clause */
        return begins && when == first && hb_sentence_is_any(l, first + 1, any);
    if (first > 0 && *l->word[first - 1].span.at == ',') /* its clause, and one before */
        for (first--; first > 0 && l->word[first - 1].kind == HB_WORD_TEXT;)
            first--;
    return (when == i - 2 && hb_sentence_is(l, i - 1, "the") && hb_sentence_is(l, i - 3, "even")) ||
           (when == first && hb_sentence_is_any(l, first + 1, any));
}

/* "to kill workers when the node is full", "by killing a process": how a system works */
static bool is_purpose(const struct hb_sentence *l, int i)
{
    static const char *const kills[] = {"kill", "killing", NULL};
    int k = hb_sentence_nearest(l, i + 1, i, kills);
    return hb_sentence_is(l, k - 1, "to") || hb_sentence_is(l, k - 1, "by");
}

/* "has an OOM killer", "the OOM threshold", "a metric of OOM kills", "how many tasks were killed":
 * a part of a system, or a count. What the killer did has happened. */
static bool is_part(const struct hb_sentence *l, int i)
{
    enum { FAR = 2, BACK = 5 };
    static const char *const parts[] = {"threshold",  "metrics",  "handling",
                                        "controller", "behavior", NULL};
    static const char *const counts[] = {"metric", "metrics", "rate", "many", NULL};
    static const char *const killer[] = {"killer", NULL};
    static const char *const does[] = {"preemptively", "is", NULL};
    int name = hb_sentence_next(l, i, FAR, killer);
    if (name > 0 && (hb_sentence_is(l, i - 1, "an") || hb_sentence_is_any(l, name + 1, does)))
        return true;
    int count = hb_sentence_nearest(l, i, BACK, counts);
    if (hb_sentence_is(l, i - 1, "on") && !l->word[i].keys) /* "backs off on OOM" */
        return true;
    return hb_sentence_next(l, i, FAR, parts) >= 0 ||
           (count >= 0 &&
            (hb_sentence_is(l, count + 1, "of") || hb_sentence_is(l, count + 1, "for") ||
             hb_sentence_is(l, count - 1, "how")));
}

static int first_of_sentence(const struct hb_sentence *l, int i)
{
    static const char *const openers[] = {"so",  "and",  "or",    "but", "hi",
                                          "hey", "also", "hello", NULL};
    bool tagged;
    int first = i;
    while (first > 0 && l->word[first - 1].kind != HB_WORD_END)
        first--;
    if (first == 0)
        first = first_of_title(l, &tagged);
    while (first < i &&
           (l->word[first].kind == HB_WORD_PAUSE || hb_sentence_is_any(l, first, openers)))
        first++;
    return first;
}

bool hb_supposed_is_guess(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"is", "was", "are", NULL};
    static const char *const these[] = {"this", "that", "it", NULL};
    static const char *const asks[] = {"possible", "posible", NULL};
    int first = first_of_sentence(l, i);
    return (hb_sentence_is_any(l, first, verbs) && hb_sentence_is_any(l, first + 1, these) &&
            !hb_sentence_is_any(l, first + 2, asks)) ||
           (hb_sentence_is(l, first, "any") && hb_sentence_is(l, first + 1, "chance"));
}

/* "Will it run out of memory while ...?", "When does it OOM?": the verb stands before whom it is
 * of, and nobody tells of himself. "Is this OOM expected?" is of one that was met. */
static bool is_question(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"is",      "are",    "was",      "do",    "does",
                                        "did",     "will",   "can",      "could", "should",
                                        "wouldnt", "doesnt", "shouldnt", NULL};
    static const char *const whats[] = {"when", "how", "what", "where", "in", NULL};
    int first = first_of_sentence(l, i);
    int verb = hb_sentence_is_any(l, first, whats) ? first + 1 : first;
    bool you = hb_sentence_is(l, verb, "have") && hb_sentence_is(l, verb + 1, "you");
    if (hb_supposed_is_guess(l, i) || !(you || hb_sentence_is_any(l, verb, verbs)))
        return false;
    if (ends_in(l, verb + 1, "ing") || hb_sentence_is(l, verb + 1, "not") ||
        (hb_sentence_is(l, i - 1, "the") && i - 1 == verb + 1))
        return false;
    /* somebody's own case, or what mends one, has happened; "will I run ..." has not */
    static const char *const own[] = {"i", "my", "me", "why", "fix", "solve", "process", NULL};
    bool will = hb_sentence_is(l, verb, "will") || hb_sentence_is(l, verb, "would");
    int whose = hb_sentence_nearest(l, i, i - verb - 1, own);
    return whose < 0 || (will && whose == verb + 1);
}

/* "can cause an OOM", "may run out of memory": k is the verb. */
static bool is_possible(const struct hb_sentence *l, int k, int i)
{
    static const char *const coming[] = {"run", "cause", "lead", "result", "be", NULL};
    static const char *const guesses[] = {"almost", "probably", NULL};
    for (int n = k + 1; n < i; n++)
        if (hb_sentence_is(l, n, "i") || hb_sentence_is(l, n, "we"))
            return false; /* "can run into issues as here, where we ran into OOMs" */
    bool can = hb_sentence_is(l, k, "could") || hb_sentence_is(l, k, "can") ||
               (hb_sentence_is(l, k, "will") && hb_sentence_is(l, i + 1, "if"));
    if (hb_sentence_is(l, k, "will") && hb_sentence_is_any(l, k + 1, guesses))
        return true;
    if (hb_sentence_is(l, k, "likely") && k + 1 == i) /* "6 GB are likely insufficient for it" */
        return true;
    return (can && hb_sentence_is_any(l, k + 1, coming)) ||
           (hb_sentence_is(l, k, "may") && !has_happened(l, k, i));
}

/* "in case of", "did it", "did the OOM occur", "you will", "you would get" */
static bool is_told_of(const struct hb_sentence *l, int k)
{
    static const char *const whoms[] = {"you", "the", NULL};
    static const char *const met[] = {"why", NULL};
    return (hb_sentence_is(l, k, "in") && hb_sentence_is(l, k + 1, "case")) ||
           (hb_sentence_is(l, k, "did") && hb_sentence_is_any(l, k + 1, whoms) &&
            !hb_sentence_is_any(l, k - 1, met)) || /* a question */
           (hb_sentence_is(l, k, "you") && hb_sentence_is(l, k + 1, "will")) ||
           (hb_sentence_is(l, k, "you") && hb_sentence_is(l, k + 1, "would") &&
            hb_sentence_is(l, k + 2, "get"));
}

/* "does not raise an OOM error", "almost caused an OOM kill": it was not met */
static bool is_not_met(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    static const char *const nots[] = {"not", "doesnt", "didnt", "dont", "wont", "almost", NULL};
    static const char *const verbs[] = {
        "caused", "raise",   "throw", "get",  "give",    "hit",     "see",       "report",
        "cause",  "produce", "show",  "face", "trigger", "receive", "encounter", NULL};
    int verb = hb_refusal_is_oom(l, i) && hb_sentence_is_any(l, i - 1, nots)
                   ? i /* "it doesn't OOM" */
                   : hb_sentence_nearest(l, i, FAR, verbs);
    bool risk = hb_sentence_is(l, i - 2, "risk") && hb_sentence_is(l, i - 1, "of");
    return risk || hb_sentence_is_any(l, verb - 1, nots);
}

/* "memory.oom.group", "pod-oom-killed-alert": a name; "Monitoring OOM events": what is done about
 * any */
static bool is_object(const struct hb_sentence *l, int i)
{
    static const char *const acts[] = {"monitoring", "addressing", NULL};
    const char *at = l->word[i].span.at, *end = l->word[i].span.end;
    bool joined = at > l->span.at && end + 1 < l->span.end && at[-1] == *end && end[1] != ' ';
    bool name = joined && (*end == '.' || (*end == '-' && hb_refusal_is_oom(l, i)));
    const char *act = i > 0 ? l->word[i - 1].span.at : at;
    bool quoted = act > l->span.at && act[-1] == '"'; /* as a document has it */
    bool first = i == 1 || quoted || (i > 1 && l->word[i - 2].kind == HB_WORD_END);
    return name || (first && hb_sentence_is_any(l, i - 1, acts));
}

bool hb_supposed_defines(const struct hb_sentence *l)
{
    static const char *const occurs[] = {"occurs", "occur", "happens", "happen",
                                         "arises", "arise", NULL};
    static const char *const whens[] = {"when", "if", "because", NULL};
    static const char *const nouns[] = {"error", "errors", "oom", NULL};
    static const char *const mores[] = {"more", "runs", NULL};
    enum { NEAR = 2, FAR = 24 };
    bool label = false;
    for (int k = 1; k < l->count && !label; k++) {
        int when = hb_sentence_is_any(l, k, occurs) ? hb_sentence_next(l, k, 1, whens) : -1;
        label = when > 0 && hb_sentence_nearest(l, k, NEAR, nouns) >= 0 &&
                (hb_sentence_ahead(l, when, FAR, EXCEEDS | SHORT) >= 0 ||
                 hb_sentence_next(l, when, FAR, mores) >= 0);
    }
    return label;
}

bool hb_supposed_is(const struct hb_sentence *l, int i)
{
    bool advice = true;
    int quote = hb_sentence_quoted(l, i);
    int named = quote < 0 ? i : quote; /* where a sentence names it */
    if (is_change(l) || is_other(l, i) || is_supposed(l, i) || is_looked_for(l, named) ||
        is_heading(l) || is_general(l, named) || is_question(l, i) || is_part(l, i) ||
        is_not_met(l, i) || is_purpose(l, i) || is_object(l, i) || is_rule(l, i) ||
        hb_supposed_defines(l))
        return true;
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--) {
        bool quoted = hb_sentence_is(l, k, "error") && l->word[k].keys; /* as it was printed */
        bool why = hb_sentence_is(l, k, "as") && hb_sentence_is(l, k + 1, "you") &&
                   hb_sentence_is(l, k + 2, "are"); /* advice, and why */
        if (hb_sentence_is(l, k, "but"))            /* "I can run it there, but here it went ..." */
            return false;
        advice = advice && !quoted && !why;
        if (is_possible(l, k, i) || is_told_of(l, k) || (advice && advises(l, k, i)))
            return true;
    }
    return false;
}
