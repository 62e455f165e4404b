/* Refusals: see logrefusal.h. */
#include "sim/hlo/logrefusal.h"

#include <string.h>

static bool is_resource(const struct hb_sentence *l, int i)
{
    return hb_sentence_is(l, i, "resources") || hb_sentence_is(l, i, "resource");
}

/* "an out-of-memory log": it says nothing of what happened, but for "out-of-memory error". */
static bool is_adjective(const struct hb_sentence *l, int i, int memory)
{
    static const char *const nouns[] = {"when", "while", "during", "killer", "handler",
                                        "kill", "issue", "issues", NULL};
    static const char *const runs[] = {"ran", "run", "runs", "running", NULL};
    if (hb_sentence_is_any(l, i - 1, runs) || memory + 1 >= l->count ||
        l->word[memory + 1].kind != HB_WORD_TEXT || l->bits[memory + 1] & FAILS ||
        hb_sentence_is(l, memory + 1, "errors") || (i > 0 && l->bits[i - 1] & DEVICE))
        return false;
    if (*l->word[memory].span.end == '-') /* in an address: "#out-of-memory-issues" */
        return true;
    return !hb_sentence_is_any(l, memory + 1, nouns);
}

bool hb_refusal_is_out_of(const struct hb_sentence *l, int i)
{
    if (hb_sentence_is(l, i, "outofmemory") ||
        (hb_sentence_is(l, i, "outof") && hb_sentence_is(l, i + 1, "memory")))
        return true;
    if (hb_sentence_is(l, i, "out") && hb_sentence_is(l, i - 1, "of") && i + 1 < l->count &&
        l->bits[i + 1] & MEMORY) /* "cuda of out memory" */
        return true;
    if (!(hb_sentence_is(l, i, "out") || hb_sentence_is(l, i, "aout")) ||
        !hb_sentence_is(l, i + 1, "of"))
        return false;
    static const char *const kinds[] = {"video", "shared", "available", "and", NULL};
    enum { FAR = 5 }; /* "out of GPU and shared host memory" */
    int memory = hb_sentence_ahead(l, i + 1, FAR, MEMORY);
    for (int k = i + 2; k < memory; k++) /* no "out of bounds memory read" */
        if (!(l->bits[k] & (DEVICE | HOST | OWNER | LEADS)) && !hb_sentence_is_any(l, k, kinds))
            memory = -1;
    if (memory >= 0 && hb_sentence_is(l, memory + 2, "section")) /* the "Out-of-memory" section */
        return false;
    if (memory >= 0)
        return *l->word[i].span.end != '-' || !is_adjective(l, i, memory);
    return is_resource(l, i + 2) ||
           (i + 2 < l->count && l->bits[i + 2] & DEVICE && is_resource(l, i + 3));
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool hb_refusal_is_compared(const struct hb_sentence *l, int i)
{
    const char *at = l->word[i].span.at;
    while (at > l->span.at && (at[-1] == ' ' || at[-1] == '"' || at[-1] == '\''))
        at--;
    return at - l->span.at >= 2 && at[-1] == '=' && at[-2] == '=';
}

/* File "spill.py", line 559, in oom: a function of that name */
static bool is_frame(const struct hb_sentence *l, int i)
{
    return hb_sentence_is(l, i - 1, "in") && i > 3 && l->word[i - 3].kind == HB_WORD_NUMBER &&
           hb_sentence_is(l, i - 4, "line");
}

bool hb_refusal_is_called(const struct hb_sentence *l, int i)
{
    const char *at = l->word[i].span.at;
    bool joined = false;
    while (at > l->span.at && is_of_name(at[-1]))
        joined = *--at == '_' || joined;
    for (at = l->word[i].span.at; at < l->span.end && is_of_name(*at); at++)
        joined = joined || *at == '_';
    return joined && at < l->span.end && *at == '(';
}

bool hb_refusal_is_none(const struct hb_sentence *l, int i)
{
    enum { FAR = 10 };
    static const char *const nones[] = {"no", "zero", "without", "never", "avoids", NULL};
    static const char *const joins[] = {"or",      "and",     "max",     "high",    "cuda",  "gpu",
                                        "any",     "more",    "oom",     "ooms",    "kill",  "of",
                                        "further", "getting", "hitting", "running", "going", "into",
                                        "an",      "being",   NULL};
    for (int k = i - 1; k >= 0 && k >= i - FAR; k--) {
        if (hb_sentence_is_any(l, k, nones)) /* no name, as ZeRO-2 is; "cannot train without OOM" */
            return l->word[k].span.end < l->span.end && *l->word[k].span.end == ' ' &&
                   hb_sentence_behind(l, k, FAR, CANNOTS) < 0;
        if (l->word[k].kind != HB_WORD_PAUSE && !hb_sentence_is_any(l, k, joins))
            return false;
    }
    return false;
}

/* "CUDA OOMs: 0" */
static bool is_counted_none(const struct hb_sentence *l, int i)
{
    return l->word[i].keys && i + 1 < l->count && l->word[i + 1].kind == HB_WORD_NUMBER &&
           strcmp(l->word[i + 1].text, "0") == 0;
}

bool hb_refusal_is_never(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"occurs", "occurred", "happened", "appears", NULL};
    enum { FAR = 3 };
    int k = i + 1;
    while (k <= i + FAR && !hb_sentence_is(l, k, "never"))
        k++;
    return k <= i + FAR && hb_sentence_is_any(l, k + 1, verbs);
}

bool hb_refusal_is_denied(const struct hb_sentence *l, int i)
{
    static const char *const nots[] = {"not", "wasnt", "isnt", "didnt", "dont", "doesnt", NULL};
    static const char *const between[] = {
        "a",          "an",       "the",    "any",    "cuda",     "gpu", "host", "oom",  "real",
        "explicitly", "reported", "report", "marked", "recorded", "as",  "have", "true", NULL};
    int k = i - 1;
    while (hb_sentence_is_any(l, k, between) ||
           (k >= 0 && l->word[k].kind != HB_WORD_TEXT && strchr("`\"'", *l->word[k].span.at)))
        k--;
    return hb_sentence_is_any(l, k, nots);
}

/* "is_oom", "test_oom_defers", "oom02": a name */
static bool is_named(const struct hb_sentence *l, int i)
{
    struct hb_span s = l->word[i].span;
    char next = s.end < l->span.end ? *s.end : ' ';
    return *s.at == 'o' &&
           ((s.at > l->span.at && s.at[-1] == '_') || next == '_' || (next >= '0' && next <= '9'));
}

/* "cuda execution failed with error 2": cudaErrorMemoryAllocation */
static bool is_error_number(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    int error = hb_sentence_is(l, i - 1, "code") ? i - 2 : i - 1;
    return l->word[i].kind == HB_WORD_NUMBER && strcmp(l->word[i].text, "2") == 0 &&
           (hb_sentence_is(l, error, "error") || hb_sentence_is(l, error, "err")) &&
           hb_sentence_behind(l, i, FAR, DEVICE) >= 0;
}

bool hb_refusal_is_oom(const struct hb_sentence *l, int i)
{
    static const char *const others[] = {"score",    "prevention", "handling",  "scenarios",
                                         "test",     "style",      "surfaced",  "prone",
                                         "catching", "recovery",   "detection", "backoff",
                                         "behavior", "testing",    NULL};
    if (is_error_number(l, i))
        return true;
    if (!hb_sentence_is(l, i, "oom") && !hb_sentence_is(l, i, "ooms") &&
        !hb_sentence_is(l, i, "oomed") && !hb_sentence_is(l, i, "ooming"))
        return false;
    if (hb_refusal_is_compared(l, i) || is_frame(l, i) || hb_refusal_is_none(l, i) ||
        is_named(l, i) || hb_refusal_is_called(l, i) || hb_refusal_is_never(l, i) ||
        hb_refusal_is_denied(l, i) || is_counted_none(l, i))
        return false;
    return !hb_sentence_is_any(l, i + 1, others);
}

/* "could not [be] allocate[d]", not "does not allocate" */
static bool could_not(const struct hb_sentence *l, int i)
{
    for (int k = i - 1; k > 0 && k >= i - 3 && l->word[k].kind != HB_WORD_END; k--)
        if (hb_sentence_is(l, k, "not"))
            return hb_sentence_is(l, k - 1, "could") || hb_sentence_is(l, k - 1, "can") ||
                   hb_sentence_is(l, k - 1, "was") || hb_sentence_is(l, k - 1, "were") ||
                   hb_sentence_is(l, k - 1, "is") || hb_sentence_is(l, k + 1, "able") ||
                   hb_sentence_is(l, k + 1, "possible");
    return false;
}

/* "memory map", "apply for memory", "obtain device memory" */
static bool is_acquired(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    bool verb = hb_sentence_is(l, i, "obtain") || hb_sentence_is(l, i, "acquire") ||
                (hb_sentence_is(l, i, "apply") && hb_sentence_is(l, i + 1, "for"));
    return (hb_sentence_is(l, i, "map") && hb_sentence_is(l, i - 1, "memory")) ||
           (verb && hb_sentence_ahead(l, i, FAR, MEMORY) >= 0);
}

/* "(socket, malloc, munmap, etc) failed": one of what may have */
static bool is_listed(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    bool alone = i > 0 && l->word[i - 1].kind == HB_WORD_PAUSE && i + 1 < l->count &&
                 l->word[i + 1].kind == HB_WORD_PAUSE;
    for (int k = i + 1; k <= i + FAR && alone; k++)
        if (hb_sentence_is(l, k, "etc"))
            return true;
    return false;
}

/* "failed to allocate ...", "allocation of ... failed", "bad_alloc" */
static bool is_failed_allocation(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    if (!(l->bits[i] & ALLOCS) && !is_acquired(l, i))
        return false;
    if (l->word[i].span.at > l->span.at && l->word[i].span.at[-1] == '/')
        return false; /* a file: "include/alloc.h:102" */
    if (is_listed(l, i))
        return false;
    if (hb_sentence_is(l, i - 1, "bad"))
        return true;
    int failed = hb_sentence_behind(l, i, FAR, FAILS | CANNOTS);
    bool will = failed > 0 && hb_sentence_is(l, failed - 1, "will");
    return (failed >= 0 && !will) || hb_sentence_ahead(l, i, FAR + 4, FAILS) >= 0 ||
           could_not(l, i);
}

bool hb_refusal_is_none_left(const struct hb_sentence *l, int i)
{
    int memory = hb_sentence_ahead(l, i, 2, MEMORY);
    bool named =
        memory == i + 1 || (memory == i + 2 && l->bits[i + 1] & (DEVICE | HOST | OWNER | FREES));
    return named && (hb_sentence_is(l, memory + 1, "for") || hb_sentence_is(l, memory + 1, "left"));
}

/* "is 12 GB not enough?": the clause begins with its verb. */
static bool is_asked(const struct hb_sentence *l, int i)
{
    int first = i;
    while (first > 0 && l->word[first - 1].kind != HB_WORD_END &&
           l->word[first - 1].kind != HB_WORD_PAUSE)
        first--;
    return first < i && (hb_sentence_is(l, first, "is") || hb_sentence_is(l, first, "are"));
}

/* "insufficient memory", "not enough GPU memory", "no available memory" */
static bool is_too_little(const struct hb_sentence *l, int i)
{
    enum { FAR = 5, BACK = 7 }; /* "RAM of our server are not enough" */
    bool enough =
        hb_sentence_is(l, i, "enough") || hb_sentence_is(l, i, "sufficient") || l->bits[i] & FREES;
    if (!enough && !(l->bits[i] & SHORT) && !hb_sentence_is(l, i, "no"))
        return false;
    bool low = hb_sentence_is(l, i + 1, "on") || (i > 0 && l->bits[i - 1] & MEMORY);
    bool used = hb_sentence_is(l, i + 1, "utilization") || hb_sentence_is(l, i + 1, "use");
    if ((hb_sentence_is(l, i, "low") && !low) || is_asked(l, i) || used)
        return false; /* "insufficient utilization of GPU memory" */
    static const char *const dos[] = {"does", NULL};
    static const char *const donts[] = {"dont", "doesnt", "didnt", NULL};
    if (hb_sentence_is(l, i, "free") &&
        (hb_sentence_is_any(l, i - 1, donts) ||
         (hb_sentence_is(l, i - 1, "not") && hb_sentence_is_any(l, i - 2, dos))))
        return false; /* a verb: nothing is given back */
    if (hb_sentence_is(l, i, "no") && hb_refusal_is_none_left(l, i))
        return true;
    if (enough && hb_sentence_is(l, i + 1, "space") && hb_sentence_negates(l, i, 1) &&
        !hb_sentence_is(l, i + 2, "left") && !hb_sentence_has_word(l, "disk"))
        return true; /* in a buffer or a pool */
    bool little =
        l->bits[i] & SHORT || (enough && hb_sentence_negates(l, i, l->bits[i] & FREES ? 1 : 3));
    return little && (hb_sentence_ahead(l, i, FAR, MEMORY) >= 0 ||
                      hb_sentence_behind(l, i, l->bits[i] & FREES ? FAR : BACK, MEMORY) >= 0);
}

/* "Resource exhausted: /data/model.ckpt-6", "ResourceExhaustedError: /data/...": of the disk that a
 * file lies on */
static bool is_of_file(struct hb_span rest)
{
    if (hb_span_starts(rest, "Error"))
        hb_span_find(&rest, "Error");
    hb_span_skip(&rest, "]: '\"");
    return hb_span_starts(rest, "/") ||
           (rest.end - rest.at > 3 &&
            hb_span_starts((struct hb_span){rest.at + 1, rest.end}, ":\\"));
}

/* The status "Resource exhausted" of TensorFlow and XLA, where nothing says that it is of requests,
 * of a quota or of a disk. */
static bool is_status(const struct hb_sentence *l, int i)
{
    static const char *const others[] = {"quota", "message", "rate", "grpc", "messages", "disk"};
    if ((!hb_sentence_is(l, i, "exhausted") && !hb_sentence_is(l, i, "exhaustion")) ||
        !is_resource(l, i - 1) || is_of_file((struct hb_span){l->word[i].span.end, l->span.end}))
        return false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (hb_sentence_has_word(l, others[k]))
            return false;
    return true;
}

/* "no occurrence of memory exceeding", "without hitting the limit" */
static bool is_denied(const struct hb_sentence *l, int i)
{
    enum { FAR = 5 };
    static const char *const words[] = {"no", "without", NULL};
    int k = hb_sentence_nearest(l, i, FAR, words);
    return k >= 0 && !l->word[k].keys;
}

/* "hitting the memory limits of the job" */
static bool is_reached(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    static const char *const verbs[] = {"hit", "hits", "hitting", "reached", "reaches", NULL};
    if (!hb_sentence_is_any(l, i, verbs))
        return false;
    int limit = hb_sentence_ahead(l, i, FAR, LIMITS);
    return limit > 0 && l->bits[limit - 1] & MEMORY && !is_denied(l, i);
}

/* "1024 pixels, memory out", "train one, memory out of" */
static bool is_memory_out(const struct hb_sentence *l, int i)
{
    int behind = hb_sentence_is(l, i + 2, "of") ? i + 3 : i + 2;
    return l->bits[i] & MEMORY && hb_sentence_is(l, i + 1, "out") &&
           (behind >= l->count || l->word[behind].kind != HB_WORD_TEXT);
}

/* "it stopped due to memory issues", "killed at epoch 800 due to CUDA memory usage" */
static bool is_stopped_of(const struct hb_sentence *l, int i)
{
    static const char *const nouns[] = {"issue", "issues", "problem", "problems", NULL};
    static const char *const stops[] = {"stopped", "crash", NULL};
    static const char *const why[] = {"due", "because", NULL};
    enum { FAR = 6, NEAR = 4, WIDE = 16 };
    if (!(l->bits[i] & MEMORY))
        return false;
    int due = hb_sentence_nearest(l, i, NEAR, why);
    bool ended = due >= 0 && hb_sentence_behind(l, i, NEAR, DEVICE) > due &&
                 hb_sentence_behind(l, due, WIDE, ENDS) >= 0;
    return ended ||
           (hb_sentence_is_any(l, i + 1, nouns) && hb_sentence_nearest(l, i, FAR, stops) >= 0);
}

/* "memory exhausted", "exceeding memory limits"; "exceeds 10% of free memory" only warns */
static bool is_exceeded(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    if (!(l->bits[i] & EXCEEDS))
        return false;
    bool may = hb_sentence_is(l, i, "exceed") &&
               (hb_sentence_is(l, i - 1, "that") || hb_sentence_is(l, i - 1, "which"));
    bool late = hb_sentence_is(l, i - 1, "deadline") || hb_sentence_is(l, i + 1, "deadline");
    if (is_denied(l, i) || hb_sentence_is(l, i - 1, "to") || may || late)
        return false; /* "easy to exceed", "models that exceed": such may be */
    if (is_status(l, i) || hb_sentence_has_pair(l, "kv", "cache"))
        return true;
    for (int k = i; k < l->count && k <= i + FAR; k++)
        if (l->word[k].kind == HB_WORD_NUMBER && l->word[k].text[0] == '%')
            return false;
    int limit = hb_sentence_ahead(l, i, FAR, LIMITS); /* "exceeds the limits (shared memory)" */
    return hb_sentence_ahead(l, i, FAR, MEMORY) >= 0 ||
           hb_sentence_behind(l, i, FAR, MEMORY) >= 0 ||
           (limit >= 0 && hb_sentence_ahead(l, limit, FAR, MEMORY) >= 0) ||
           (hb_sentence_behind(l, i, FAR, THING | ALLOCS) >= 0 &&
            hb_sentence_behind(l, i, FAR, LIMITS | WANTED) >= 0);
}

bool hb_refusal_is_more_than(const struct hb_sentence *l, int i)
{
    enum { FAR = 5 };
    bool more = hb_sentence_is(l, i, "more") || hb_sentence_is(l, i, "larger") ||
                hb_sentence_is(l, i, "greater");
    int than = i + 1;
    while (than < i + FAR && than < l->count && l->bits[than] & (MEMORY | DEVICE | OWNER))
        than++; /* "more GPU memory than" */
    if (!more || !hb_sentence_is(l, than, "than") || !hb_sentence_has(l, ALLOCS | WANTS))
        return false;
    if (than > i + 1)
        return hb_sentence_ahead(l, than, 3, LIMITS | TOTALS | FREES) >= 0;
    return hb_sentence_ahead(l, i, FAR, LIMITS | TOTALS | FREES) >= 0 &&
           hb_sentence_ahead(l, i, FAR + 3, THING) >= 0;
}

bool hb_refusal_is_too_much(const struct hb_sentence *l)
{
    for (int i = 0; i + 3 < l->count; i++)
        if (hb_sentence_is(l, i, "too") && hb_sentence_is(l, i + 1, "much") &&
            hb_sentence_is(l, i + 2, "shared"))
            return true;
    return false;
}

/* "requires more dynamic shared memory than this device supports" */
static bool is_more_shared(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    bool more = hb_sentence_is(l, i, "more") && hb_sentence_behind(l, i, 2, WANTS) >= 0;
    for (int k = i + 1; more && k <= i + FAR; k++)
        if (hb_sentence_is(l, k, "shared") && hb_sentence_ahead(l, k, FAR, PAUSES) >= 0)
            return true;
    return hb_sentence_is(l, i, "much") && hb_refusal_is_too_much(l);
}

/* "does not fit into memory", "too large to fit in GPU memory" */
static bool is_no_fit(const struct hb_sentence *l, int i)
{
    enum { FAR = 5 };
    if ((!hb_sentence_is(l, i, "fit") && !hb_sentence_is(l, i, "fits")) ||
        hb_sentence_ahead(l, i, FAR, MEMORY | DEVICE) < 0)
        return false;
    bool large = hb_sentence_is(l, i - 3, "too") && hb_sentence_is(l, i - 1, "to");
    return large || could_not(l, i) || hb_sentence_is(l, i - 1, "doesnt") ||
           (i > 0 && l->bits[i - 1] & CANNOTS) || hb_sentence_is(l, i - 1, "wont") ||
           (hb_sentence_is(l, i - 1, "not") && hb_sentence_is(l, i - 2, "does"));
}

/* "requires 24 GB of memory but only 16 GB are available" */
static bool is_but_only(const struct hb_sentence *l, int i)
{
    enum { FAR = 12 };
    return hb_sentence_is(l, i, "but") && hb_sentence_is(l, i + 1, "only") &&
           hb_sentence_behind(l, i, FAR, WANTS) >= 0 && hb_sentence_ahead(l, i, FAR, FREES) >= 0 &&
           (hb_sentence_has(l, MEMORY) || hb_sentence_has_pair(l, "scratch", "space"));
}

/* "your RAM was full", "RAM usage is maxed" */
static bool is_full(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"is",      "was",    "are",    "were", "gets", "got",
                                        "becomes", "caused", "causes", "runs", NULL};
    if (!hb_sentence_is(l, i, "full") && !hb_sentence_is(l, i, "filled") &&
        !hb_sentence_is(l, i, "maxed"))
        return false;
    bool told = hb_sentence_is_any(l, i - 1, verbs) || hb_sentence_is_any(l, i - 2, verbs);
    bool host = (hb_sentence_is(l, i, "filled") || hb_sentence_is(l, i, "maxed")) &&
                hb_sentence_behind(l, i, 3, HOST) >= 0; /* a device's may spill over */
    return (hb_sentence_is(l, i, "full") || host) && told &&
           hb_sentence_behind(l, i, 3, MEMORY) >= 0 && !hb_sentence_negates(l, i, 2);
}

/* "my GPU memory runs out when ..." */
static bool is_run_out(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"runs", "ran", "running", "run", NULL};
    enum { FAR = 3 };
    return hb_sentence_is_any(l, i, verbs) && hb_sentence_is(l, i + 1, "out") &&
           !hb_sentence_is(l, i + 2, "of") && hb_sentence_behind(l, i, FAR, MEMORY) >= 0;
}

/* "my CPU memory is used up", "eats up all RAM", "the GPU memory explodes" */
static bool is_used_up(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"used", "uses",  "using",  "eats",    "eating",
                                        "ate",  "fills", "filled", "filling", NULL};
    enum { FAR = 3 };
    if (hb_sentence_is(l, i, "explode") || hb_sentence_is(l, i, "explodes") ||
        hb_sentence_is(l, i, "exploded") || hb_sentence_is(l, i, "explosion"))
        return hb_sentence_behind(l, i, FAR, MEMORY) >= 0;
    return hb_sentence_is_any(l, i, verbs) && hb_sentence_is(l, i + 1, "up") &&
           !hb_sentence_is(l, i + 2, "to") &&
           (hb_sentence_behind(l, i, FAR, MEMORY) >= 0 ||
            hb_sentence_ahead(l, i + 1, FAR, MEMORY) >= 0);
}

/* "crashes", "shuts down" */
static bool is_end(const struct hb_sentence *l, int i)
{
    return l->bits[i] & ENDS || ((hb_sentence_is(l, i, "shuts") || hb_sentence_is(l, i, "shut")) &&
                                 hb_sentence_is(l, i + 1, "down"));
}

/* "memory usage keeps growing and the process dies", "it crashes because RAM usage climbs" */
static bool is_grown(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {
        "grow",    "reach",    "reaches", "reached",  "shoot",     "shoots",     "grows",
        "growing", "grew",     "climbs",  "climbing", "increases", "increasing", "increased",
        "rising",  "explodes", "spikes",  "leaks",    "leaking",   "jumps",      NULL};
    enum { FAR = 12, WIDE = 16 };
    if (!hb_sentence_is_any(l, i, verbs) || hb_sentence_behind(l, i, FAR, MEMORY) < 0)
        return false;
    for (int k = i + 1; k < l->count && k <= i + WIDE && l->word[k].kind != HB_WORD_END; k++)
        if (is_end(l, k) && !hb_sentence_negates(l, k, 3))
            return true;
    for (int k = i - 1; k >= 0 && k >= i - WIDE && l->word[k].kind != HB_WORD_END; k--)
        if (is_end(l, k) && !hb_sentence_negates(l, k, 3))
            return true;
    return false;
}

/* Python's "MemoryError" */
static bool is_memory_error(const struct hb_sentence *l, int i)
{
    return hb_sentence_is(l, i, "memory") && hb_sentence_is(l, i + 1, "error") &&
           hb_span_starts(l->word[i].span, "Memory") && !hb_sentence_is(l, i - 1, "of") &&
           l->word[i].span.end == l->word[i + 1].span.at;
}

/* Of the interpreter's own memory: a device's library says what it wanted, or has a stack behind.
 */
static bool has_memory_error(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (is_memory_error(l, i) && !hb_sentence_has(l, ALLOCS) &&
            !hb_sentence_has_word(l, "traceback"))
            return true;
    return false;
}

/* "No space left on device while creating shared memory segment", "unable to open shared memory
 * object": /dev/shm is full. */
static bool is_segment(const struct hb_sentence *l)
{
    bool segment = hb_sentence_has_word(l, "shm") || hb_sentence_has_word(l, "shmget") ||
                   hb_sentence_has_word(l, "psm") ||
                   (hb_sentence_has_pair(l, "shared", "memory") &&
                    (hb_sentence_has_word(l, "segment") || hb_sentence_has_word(l, "object") ||
                     hb_sentence_has(l, LINKS)));
    bool opened = hb_sentence_has_word(l, "allocate") || hb_sentence_has_pair(l, "unable", "to") ||
                  hb_sentence_has_pair(l, "while", "creating") ||
                  hb_sentence_has_pair(l, "failed", "to");
    bool files =
        hb_sentence_has_pair(l, "open", "files") || hb_sentence_has_pair(l, "file", "exists");
    bool small = hb_sentence_has_pair(l, "space", "left") &&
                 (hb_sentence_has_pair(l, "shared", "memory") || hb_span_has(l->span, "</torch_"));
    return small || (segment && !files && (hb_sentence_has_pair(l, "space", "left") || opened));
}

/* "vmem error" */
static bool is_chip_error(const struct hb_sentence *l, int i)
{
    return l->bits[i] & CHIP &&
           (hb_sentence_is(l, i + 1, "error") || hb_sentence_is(l, i + 1, "errors"));
}

/* "CUDA memory error", "Memory error at 14 GB", "I run into memory capacity issues", "256 give
 * memory errors", in prose */
static bool is_error_of_memory(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"get",  "gets",   "got",    "getting", "give",   "gives",
                                        "gave", "hit",    "throw",  "throws",  "raises", "causes",
                                        "into", "facing", "having", NULL};
    static const char *const nouns[] = {"issues", "problems", "errors", NULL};
    if (!(l->bits[i] & MEMORY))
        return false;
    bool error = hb_sentence_is(l, i, "memory") && hb_sentence_is(l, i + 1, "error") &&
                 *l->word[i].span.end == ' ';
    int noun = hb_sentence_is(l, i + 1, "capacity") ? i + 2 : i + 1;
    bool gets = hb_sentence_is_any(l, hb_sentence_is(l, i - 1, "a") ? i - 2 : i - 1, verbs);
    bool met = hb_sentence_is_any(l, noun, nouns) && (gets || hb_sentence_is(l, i - 2, "into"));
    return met || (error && (i == 0 || gets || l->bits[i - 1] & DEVICE));
}

bool hb_refusal_is(const struct hb_sentence *l, int i)
{
    if (hb_refusal_is_more_than(l, i) || (l->bits[i] & THING && is_segment(l)) ||
        (hb_sentence_is(l, i, "space") && is_segment(l)))
        return true;
    return hb_refusal_is_out_of(l, i) || hb_refusal_is_oom(l, i) || is_failed_allocation(l, i) ||
           is_too_little(l, i) || is_exceeded(l, i) || is_reached(l, i) || is_memory_error(l, i) ||
           is_error_of_memory(l, i) || is_no_fit(l, i) || is_but_only(l, i) ||
           is_more_shared(l, i) || is_full(l, i) || is_run_out(l, i) || is_used_up(l, i) ||
           is_grown(l, i) || is_memory_out(l, i) || is_stopped_of(l, i) || is_chip_error(l, i);
}

/* "Cannot allocate memory", the C library's word for ENOMEM: nothing follows that says for what. */
static bool is_errno(const struct hb_sentence *l)
{
    for (int i = 0; i + 2 < l->count; i++)
        if ((hb_sentence_is(l, i, "cannot") || hb_sentence_is(l, i, "cant")) &&
            hb_sentence_is(l, i + 1, "allocate") && hb_sentence_is(l, i + 2, "memory") &&
            (i + 3 >= l->count || l->word[i + 3].kind != HB_WORD_TEXT))
            return true;
    return false;
}

/* "even after utilizing host RAM, we still ...": what did not help. */
static bool is_conceded(const struct hb_sentence *l, int i)
{
    int end = i;
    while (end < l->count && l->word[end].kind == HB_WORD_TEXT)
        end++;
    for (int k = i - 1; k >= 0 && l->word[k].kind == HB_WORD_TEXT; k--)
        if (hb_sentence_is(l, k, "even") || hb_sentence_is(l, k, "despite"))
            return end < l->count && l->word[end].kind == HB_WORD_PAUSE;
    return false;
}

/* "32GB RAM", "64 GB of RAM" */
static bool is_size_of(const struct hb_sentence *l, int i)
{
    int k = hb_sentence_is(l, i - 1, "of") ? i - 2 : i - 1;
    return l->bits[i] & MEMORY && k >= 0 && l->word[k].has_unit;
}

/* A word of the host's, but not its equipment: "a 4070 with 32GB RAM". */
static bool names_host(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & HOST && !is_conceded(l, i) && !is_size_of(l, i) &&
            !(l->bits[i] & MEMORY && hb_sentence_is(l, i - 1, "high")))
            return true;
    return false;
}

/* A device is named, but not as in "oom on RAM (not gpu memory)". */
static bool is_of_device(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & DEVICE && !hb_sentence_negates(l, i, 1))
            return true;
    return false;
}

/* "your ComfyUI node", "this custom node": of a program's graph */
static bool is_of_graph(const struct hb_sentence *l, int i)
{
    static const char *const graphs[] = {"ui", NULL};
    return hb_sentence_is(l, i, "node") && hb_sentence_is_any(l, i - 1, graphs);
}

/* "my machine suddenly goes OOM", "the nodes had out of memory", not "step 5 OOM"; "this system
 * does not have enough memory" */
static bool is_machine_out(const struct hb_sentence *l)
{
    static const char *const words[] = {"machine", "node",   "nodes",  "worker", "workers",
                                        "host",    "system", "script", NULL};
    enum { FAR = 5 };
    for (int i = 0; i < l->count; i++) {
        bool out = hb_refusal_is_oom(l, i) || hb_refusal_is_out_of(l, i);
        bool little = hb_sentence_is(l, i, "enough") && is_too_little(l, i) &&
                      hb_sentence_ahead(l, i, 1, MEMORY) >= 0;
        int far = little ? FAR : out ? 3 : 0;
        for (int n = 1; n <= far; n++)
            if (hb_sentence_is_any(l, i - n, words) && !is_of_graph(l, i - n))
                return true;
    }
    return false;
}

/* "cudaHostAlloc failed", "cudaMallocHost", "out of CPU memory", "CPU memory exhaustion", "CPU out
 * of memory", "OOM error with CPU", whatever else is named */
static bool is_out_of_owner(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if ((hb_sentence_is(l, i, "cpu") || hb_sentence_is(l, i, "host") ||
             hb_sentence_is(l, i, "ram") || hb_sentence_is(l, i, "dataloader")) &&
            (hb_refusal_is_out_of(l, i + 1) || hb_refusal_is_oom(l, i + 1)))
            return true;
    static const char *const withs[] = {"with", "on", "in", NULL};
    for (int i = 0; i < l->count; i++)
        if (hb_sentence_is(l, i, "cpu") && hb_sentence_is_any(l, i - 1, withs) &&
            (hb_refusal_is_oom(l, i - 2) || hb_refusal_is_oom(l, i - 3)))
            return true;
    for (int i = 0; i + 1 < l->count; i++)
        if (((hb_sentence_is(l, i, "host") && l->bits[i + 1] & ALLOCS) ||
             (l->bits[i] & ALLOCS && hb_sentence_is(l, i + 1, "host"))) &&
            l->word[i].span.end == l->word[i + 1].span.at)
            return true;
    for (int i = 0; i + 1 < l->count; i++)
        if (l->bits[i] & OWNER && l->bits[i + 1] & MEMORY &&
            ((hb_sentence_is(l, i - 1, "of") && hb_sentence_is(l, i - 2, "out")) ||
             (i > 0 && l->bits[i - 1] & SHORT) || hb_sentence_is(l, i + 2, "exhaustion")))
            return true;
    return false;
}

/* "32 GB of memory for the job" */
static bool is_of_job(const struct hb_sentence *l)
{
    enum { NEAR = 3 };
    for (int i = 0; i < l->count; i++)
        if (hb_sentence_is_job(l, i) && hb_sentence_behind(l, i, NEAR, MEMORY) >= 0)
            return true;
    return false;
}

bool hb_refusal_is_of_host(const struct hb_sentence *l)
{
    if (is_segment(l) || is_out_of_owner(l) || (is_errno(l) && hb_sentence_has(l, LINKS)) ||
        hb_sentence_has_pair(l, "on", "host"))
        return true;
    if (hb_sentence_has(l, PINNED) || is_of_device(l))
        return hb_sentence_has(l, PINNED);
    if (is_machine_out(l) || is_of_job(l))
        return true;
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & OWNER && !is_conceded(l, i) &&
            (hb_sentence_ahead(l, i, 3, MEMORY) >= 0 || hb_sentence_is(l, i + 1, "allocator") ||
             (hb_sentence_is(l, i, "cpu") && i > 0 &&
              l->bits[i - 1] & ALLOCS) || /* alloc_cpu.cpp */
             (hb_sentence_is(l, i, "cpu") && hb_sentence_is(l, i + 1, "buffer"))))
            return true;
    return names_host(l) || hb_sentence_has_pair(l, "object", "store") ||
           hb_sentence_has_pair(l, "bad", "alloc") ||
           hb_sentence_has_pair(l, "bad", "allocation") ||
           (hb_sentence_has_word(l, "malloc") && hb_sentence_has_word(l, "pages")) ||
           hb_sentence_has_pair(l, "memory", "map") || hb_sentence_has_pair(l, "usm", "host") ||
           hb_sentence_has_pair(l, "heap", "space") || hb_sentence_has_pair(l, "off", "heap") ||
           is_errno(l) ||
           hb_sentence_has_pair(l, "you", "tried") || /* PyTorch's allocator of the host */
           has_memory_error(l);
}

/* "RAM", "CPU memory", "the machine's memory"; not "GPU RAM" */
static bool is_host_memory(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    static const char *const owners[] = {"cpu",     "system",   "main",   "host",
                                         "machine", "computer", "server", NULL};
    if (!(l->bits[i] & MEMORY) || (i > 0 && l->bits[i - 1] & DEVICE))
        return false;
    int whose = hb_sentence_next(l, i, FAR, owners); /* "the memory of my machine" */
    return hb_sentence_is(l, i, "ram") || (whose > 0 && hb_sentence_is(l, whose - 2, "of")) ||
           (!hb_sentence_is(l, i, "mem") && hb_sentence_is_any(l, i - 1, owners));
}

bool hb_refusal_names_host(const struct hb_sentence *l)
{
    for (int i = 0; i < l->count; i++)
        if (is_host_memory(l, i) || is_memory_error(l, i))
            return true;
    return false;
}

/* "loading the dataset takes up too much memory" */
static bool is_of_data(const struct hb_sentence *l)
{
    static const char *const sets[] = {"dataset", "datasets", "data", NULL};
    static const char *const loads[] = {"loading", NULL};
    enum { NEAR = 3 };
    for (int i = 0; i < l->count; i++)
        if (hb_sentence_is_any(l, i, sets) && hb_sentence_nearest(l, i, NEAR, loads) >= 0)
            return hb_sentence_has(l, MEMORY) && !hb_sentence_has(l, DEVICE);
    return false;
}

bool hb_refusal_fills_host(const struct hb_sentence *l)
{
    if (is_of_data(l))
        return true;
    enum { FAR = 8 };
    static const char *const verbs[] = {
        "grow",      "grows",      "growing",   "grew",      "explode", "explodes", "increase",
        "increases", "increasing", "increased", "spikes",    "leak",    "leaks",    "take",
        "takes",     "consume",    "consumes",  "consuming", "eats",    "ate",      "fills",
        "filled",    "keeps",      "full",      "consumed",  "hit",     "hits",     NULL};
    for (int i = 0; i < l->count; i++) {
        if (!is_host_memory(l, i))
            continue;
        int use = hb_sentence_behind(l, i, FAR, HOLDS | WANTS);
        if ((use >= 0 && !(l->bits[use] & ALLOCS)) || hb_sentence_nearest(l, i, FAR, verbs) >= 0)
            return true;
        if (!is_size_of(l, i) &&
            (hb_sentence_ahead(l, i, FAR, HOLDS) >= 0 || hb_sentence_next(l, i, FAR, verbs) >= 0))
            return true;
    }
    return false;
}

int hb_refusal_host_crash(const struct hb_sentence *l)
{
    static const char *const ends[] = {"crash", "crashes", "freeze", "freezes", "dead", NULL};
    for (int i = 0; i < l->count && hb_refusal_fills_host(l); i++)
        if (hb_sentence_is_any(l, i, ends) && !hb_sentence_negates(l, i, 3))
            return i;
    return -1;
}
