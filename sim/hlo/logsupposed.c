/* What is only supposed: see logsupposed.h. */
#include "sim/hlo/logsupposed.h"

#include <string.h>

/* A title's first word, behind its tags: "# [BUG] [core] ", "docs: ", "fix(x): ", "only". Whether
 * one of them is of those that commits begin with. */
static int first_of_title(const struct hb_sentence *l, bool *out_tagged)
{
    static const char *const kinds[] = {"docs", "doc",  "feat",  "fix", "chore", "refactor",
                                        "test", "perf", "infra", "ci",  "build"};
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
        "add",       "log",     "document",    "handle",  "support",   "allow",     "catch",
        "detect",    "report",  "improve",     "retry",   "ignore",    "relaunch",  "implement",
        "enable",    "disable", "update",      "use",     "interpret", "propagate", "expose",
        "surface",   "inform",  "print",       "change",  "remove",    "rename",    "refactor",
        "introduce", "make",    "raise",       "bump",    "adds",      "throttle",  "tune",
        "include",   "clarify", "distinguish", "mention", "recover",   "indicate",  NULL};
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
        "fix",      "fixes",    "fixed",     "reduce",   "prevent",   "avoid",    "set",
        "lower",    "limit",    "release",   "optimize", "skip",      "better",   "increase",
        "move",     "simplify", "stabilize", "provide",  "warn",      "switch",   "migrate",
        "adjust",   "bound",    "cap",       "chunk",    "clamp",     "classify", "clean",
        "convert",  "default",  "defer",     "delete",   "deprecate", "drop",     "ensure",
        "extend",   "free",     "guard",     "hide",     "keep",      "mark",     "merge",
        "mitigate", "offload",  "port",      "prefer",   "refine",    "replace",  "require",
        "resolve",  "restrict", "return",    "reuse",    "revert",    "rework",   "shard",
        "shrink",   "speed",    "split",     "stop",     "stream",    "tweak",    "unify",
        "upgrade",  "validate", "verify",    "wrap",     "calculate", NULL};
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
    static const char *const verbs[] = {"solve", "resolve", "fix",     "handle",
                                        "deal",  "debug",   "process", NULL};
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
    enum { FAR = 8 };
    for (int k = i - 1; k > 0 && k >= i - FAR && l->word[k].kind != HB_WORD_END; k--) {
        if (l->word[k].kind == HB_WORD_PAUSE && *l->word[k].span.at == ',')
            return false;
        if ((hb_sentence_is(l, k, "of") && hb_sentence_is(l, k - 1, "instead")) ||
            (hb_sentence_is(l, k, "than") && hb_sentence_is(l, k - 1, "rather")))
            return true;
    }
    return false;
}

/* "the status should report an OOM kill": wished, unless somebody asks what he should do */
static bool is_wanted(const struct hb_sentence *l, int i)
{
    static const char *const modals[] = {"should", "must", "shall", NULL};
    static const char *const others[] = {"i", "we", "not", "be", "have", "fit", NULL};
    for (int k = i - 1; k >= 0 && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is_any(l, k, modals))
            return !hb_sentence_is_any(l, k + 1, others) && !hb_sentence_is(l, k - 1, "i");
    return false;
}

/* "a CUDA OOM must not take the server down", "the pod should be killed",
 * "it should be shown when out of memory": what would be if. */
static bool is_supposed(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    static const char *const modals[] = {"must", "should", "would", "shall", NULL};
    for (int k = i + 1; k <= i + FAR && k < l->count && l->word[k].kind == HB_WORD_TEXT &&
                        !hb_sentence_is(l, k, "it"); /* something else than the refusal */
         k++)
        if (hb_sentence_is_any(l, k, modals))
            return true;
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--)
        if (hb_sentence_is(l, k, "noticed") || hb_sentence_is(l, k, "observed"))
            return false; /* "I noticed that the memory would grow": a habit */
    if (hb_sentence_is_any(l, i - 1, modals) ||
        (hb_sentence_is(l, i - 1, "be") && hb_sentence_is_any(l, i - 2, modals)))
        return true;
    int when = i - 1;
    while (when >= 0 && l->word[when].kind != HB_WORD_END && !hb_sentence_is(l, when, "when")) {
        if (hb_sentence_is(l, when, "we") && hb_sentence_is(l, when + 1, "should"))
            return true;
        when--;
    }
    return hb_sentence_is(l, when, "when") && hb_sentence_is(l, when - 3, "should") &&
           hb_sentence_is(l, when - 2, "be");
}

/* "Look for OOM-kill events", "always check your system logs for ..." */
static bool is_looked_for(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"look", "check", "checks", "watch", "monitor", NULL};
    enum { FAR = 6 };
    int k = hb_sentence_behind(l, i, FAR, LEADS);
    while (k >= 0 && !hb_sentence_is(l, k, "for"))
        k = hb_sentence_behind(l, k, FAR, LEADS);
    for (int n = k - 1; n >= 0 && n >= k - FAR && l->word[n].kind == HB_WORD_TEXT; n--)
        if (hb_sentence_is_any(l, n, verbs))
            return true;
    return false;
}

/* "may have been killed", "may have crashed", but not "may have problems" */
static bool is_perfect(const struct hb_sentence *l, int k)
{
    static const char *const past[] = {"been", "run", "ran", "hit", "gotten", NULL};
    size_t len = k + 1 < l->count ? strlen(l->word[k + 1].text) : 0;
    return hb_sentence_is(l, k, "have") &&
           (hb_sentence_is_any(l, k + 1, past) ||
            (len > 2 && strcmp(l->word[k + 1].text + len - 2, "ed") == 0));
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

/* "backs off on OOM", "reduced the batch size on OOM", "catches OOM errors": what follows of some
 */
static bool is_answered(const struct hb_sentence *l, int i)
{
    static const char *const answers[] = {
        "backs",  "back",    "retry",   "retries", "halve",   "halves", "skip",  "skips",
        "reduce", "reduces", "reduced", "restart", "recover", "fall",   "falls", NULL};
    static const char *const catches[] = {"catches", "handles", "detects", "survives", NULL};
    enum { FAR = 7, NEAR = 3 };
    int on = i - 1;
    while (on > 0 && (l->bits[on] & DEVICE || hb_sentence_is(l, on, "an")))
        on--;
    for (int k = on - 1; hb_sentence_is(l, on, "on") && k >= 0 && k >= on - FAR; k--)
        if (hb_sentence_is_any(l, k, answers))
            return true;
    for (int k = i - 1; k >= 0 && k >= i - NEAR && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is_any(l, k, catches))
            return true;
    return false;
}

/* "to catch the OOM exception": what is done about some */
static bool is_handled(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"catch", "detect", "survive", "recover", "tolerate", NULL};
    enum { FAR = 4 };
    for (int k = i - 1; k > 0 && k >= i - FAR && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is_any(l, k, verbs) && hb_sentence_is(l, k - 1, "to"))
            return true;
    return false;
}

/* "When a cgroup's OOM kill fires, it picks the largest": of any such, at the beginning; "even when
 * the OOM occurred in ..." */
static bool is_general(const struct hb_sentence *l, int i)
{
    int first = i;
    while (first > 0 && l->word[first - 1].kind == HB_WORD_TEXT)
        first--;
    if (hb_sentence_is(l, i - 1, "the") && hb_sentence_is(l, i - 2, "when") &&
        hb_sentence_is(l, i - 3, "even"))
        return true;
    return (hb_sentence_is(l, first, "when") || hb_sentence_is(l, first, "whenever")) &&
           (hb_sentence_is(l, first + 1, "a") || hb_sentence_is(l, first + 1, "an"));
}

/* "has an OOM killer", "the OOM threshold", "a metric of OOM kills", "how many tasks were killed":
 * a part of a system, or a count. What the killer did has happened. */
static bool is_part(const struct hb_sentence *l, int i)
{
    enum { FAR = 2, BACK = 4 };
    static const char *const parts[] = {"threshold", "metric",  "metrics",
                                        "policy",    "counter", NULL};
    static const char *const counts[] = {"metric", "metrics", "rate", "number", "count", NULL};
    static const char *const does[] = {"preemptively", "kills", "is", "can", "picks", NULL};
    for (int k = i + 1; k <= i + FAR && k < l->count && l->word[k].kind == HB_WORD_TEXT; k++)
        if (hb_sentence_is_any(l, k, parts) ||
            (hb_sentence_is(l, k, "killer") &&
             (hb_sentence_is(l, i - 1, "an") || hb_sentence_is_any(l, k + 1, does) ||
              hb_sentence_is_any(l, k + 1, parts))))
            return true;
    for (int k = i - 1; k > 0 && k >= i - BACK && l->word[k].kind == HB_WORD_TEXT; k--)
        if ((hb_sentence_is(l, k, "of") || hb_sentence_is(l, k, "for")) &&
            hb_sentence_is_any(l, k - 1, counts))
            return true;
    for (int k = i - 1; k > 0 && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is(l, k, "many") && hb_sentence_is(l, k - 1, "how"))
            return true;
    return false;
}

/* "to kill workers when the node is full", "by killing a process": how a system works */
static bool is_purpose(const struct hb_sentence *l, int i)
{
    for (int k = i; k > 0 && l->word[k - 1].kind == HB_WORD_TEXT; k--)
        if ((hb_sentence_is(l, k, "kill") && hb_sentence_is(l, k - 1, "to")) ||
            (hb_sentence_is(l, k, "killing") && hb_sentence_is(l, k - 1, "by")))
            return true;
    return false;
}

/* "a version is critical, as it is giving OOM without it", "as earlier versions result in OOM" */
static bool is_averted(const struct hb_sentence *l, int i)
{
    for (int k = i - 1; k > 0 && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is(l, k, "versions") &&
            (hb_sentence_is(l, k - 1, "earlier") || hb_sentence_is(l, k - 1, "older")))
            return true;
    return hb_sentence_is(l, i + 1, "without") &&
           (hb_sentence_is(l, i + 2, "it") || hb_sentence_is(l, i + 2, "this"));
}

/* "The status OOMKilled signifies that ...": what a word means */
static bool is_defined(const struct hb_sentence *l)
{
    return hb_sentence_has_word(l, "signifies") || hb_sentence_has_word(l, "denotes") ||
           hb_sentence_has_pair(l, "refers", "to");
}

/* "Is it possible to go on when it is out of memory?": asks for something else than to mend it */
static bool is_wished(const struct hb_sentence *l, int first, int i)
{
    static const char *const words[] = {"possible", "posible", NULL};
    if (!hb_sentence_is(l, first, "is") || !hb_sentence_is(l, first + 1, "it") ||
        !hb_sentence_is_any(l, first + 2, words))
        return false;
    for (int k = first + 3; k < i; k++)
        if (hb_sentence_is(l, k, "but") || solves(l, k))
            return false;
    return true;
}

/* "Will it run out of memory while ...?": the sentence begins with its verb */
static bool is_question(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"will",   "would",   "does", "do",      "can",      "could",
                                        "should", "wouldnt", "wont", "couldnt", "shouldnt", NULL};
    static const char *const whom[] = {"it", "this", "we", "that", "there", NULL};
    int first = i;
    while (first > 0 && l->word[first - 1].kind != HB_WORD_END)
        first--;
    if (hb_sentence_is(l, first, "do") && hb_sentence_is(l, first + 1, "you") &&
        hb_sentence_is(l, first + 2, "mean"))
        return true;
    if (hb_sentence_is(l, first, "have") && hb_sentence_is(l, first + 1, "you") &&
        hb_sentence_is(l, first + 2, "ever"))
        return true;
    if ((hb_sentence_is(l, first, "will") || hb_sentence_is(l, first, "would")) &&
        hb_sentence_is(l, first + 1, "i"))
        return true;
    if (hb_sentence_is(l, first, "what") && hb_sentence_is(l, first + 1, "is") &&
        hb_sentence_is(l, first + 2, "oom"))
        return true; /* what the word means */
    if (hb_sentence_is(l, first, "whats") || hb_sentence_is(l, first, "what"))
        return hb_sentence_is(l, i - 1, "the") || hb_sentence_is(l, i - 1, "an");
    return is_wished(l, first, i) ||
           (hb_sentence_is_any(l, first, verbs) && hb_sentence_is_any(l, first + 1, whom));
}

/* "can cause an OOM", "may run out of memory": k is the verb. */
static bool is_possible(const struct hb_sentence *l, int k, int i)
{
    static const char *const coming[] = {"run", "cause", "lead", "result", "be", NULL};
    static const char *const guesses[] = {"almost", "likely", "probably", NULL};
    for (int n = k + 1; n < i; n++)
        if (hb_sentence_is(l, n, "i") || hb_sentence_is(l, n, "we"))
            return false; /* "can run into issues as here, where we ran into OOMs" */
    bool can = hb_sentence_is(l, k, "could") || hb_sentence_is(l, k, "can") ||
               (hb_sentence_is(l, k, "will") && hb_sentence_is(l, i + 1, "if"));
    if (hb_sentence_is(l, k, "will") && hb_sentence_is_any(l, k + 1, guesses))
        return true;
    return (can && hb_sentence_is_any(l, k + 1, coming)) ||
           (hb_sentence_is(l, k, "may") && !has_happened(l, k, i));
}

/* "how to avoid", but not "how to split a model to solve" it; i is the refusal */
static bool is_how_to(const struct hb_sentence *l, int k, int i)
{
    if (!hb_sentence_is(l, k, "how") || !hb_sentence_is(l, k + 1, "to"))
        return false;
    for (int n = k + 2; n < i; n++)
        if (hb_sentence_is(l, n - 1, "to") && solves(l, n))
            return false;
    return true;
}

/* "in case of", "did it", "you will", "you would get" */
static bool is_told_of(const struct hb_sentence *l, int k)
{
    return (hb_sentence_is(l, k, "in") && hb_sentence_is(l, k + 1, "case")) ||
           (hb_sentence_is(l, k, "did") && hb_sentence_is(l, k + 1, "it")) || /* a question */
           (hb_sentence_is(l, k, "you") && hb_sentence_is(l, k + 1, "will")) ||
           (hb_sentence_is(l, k, "you") && hb_sentence_is(l, k + 1, "would") &&
            hb_sentence_is(l, k + 2, "get"));
}

/* "does not raise an OOM error": it was not met */
static bool is_not_met(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    static const char *const nots[] = {"not", "doesnt", "didnt", "dont", "wont", NULL};
    static const char *const verbs[] = {"raise", "throw",   "get",     "give",      "hit",
                                        "see",   "report",  "cause",   "produce",   "show",
                                        "face",  "trigger", "receive", "encounter", NULL};
    for (int k = i - 1; k > 0 && k >= i - FAR && l->word[k].kind == HB_WORD_TEXT; k--) {
        if (hb_sentence_is(l, k, "why") || hb_sentence_is(l, k, "past"))
            return false;
        if (hb_sentence_is_any(l, k, verbs) && hb_sentence_is_any(l, k - 1, nots))
            return true;
    }
    return false;
}

bool hb_supposed_is(const struct hb_sentence *l, int i)
{
    if (is_change(l) || is_other(l, i) || is_wanted(l, i) || is_supposed(l, i) ||
        is_looked_for(l, i) || is_heading(l) || is_handled(l, i) || is_answered(l, i) ||
        is_general(l, i) || is_question(l, i) || is_part(l, i) || is_purpose(l, i) ||
        is_averted(l, i) || is_defined(l) || is_not_met(l, i))
        return true;
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--) {
        if (hb_sentence_is(l, k, "error") && l->word[k].keys) /* quoted as it was printed */
            return false;
        if (hb_sentence_is(l, k, "but") || /* "I reduced the batch, but ..." */
            (hb_sentence_is(l, k, "as") && hb_sentence_is(l, k + 1, "you") &&
             hb_sentence_is(l, k + 2, "are"))) /* advice, and why */
            break;
        if (advises(l, k, i))
            return true;
    }
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--)
        if (is_possible(l, k, i) || is_how_to(l, k, i) || is_told_of(l, k))
            return true;
    return false;
}
