/* The grammar of refusals in anybody's words: whether a line says that memory was refused, whose
 * memory it was, and what its amounts mean ("needed", "free", "at most", "held") by the words
 * beside them. Lines that a form of another table took are left alone, and so is advice ("if you
 * run out of memory, try ..."). A figure whose meaning no word tells is left out. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"
#include "sim/hlo/logmeaning.h"
#include "sim/hlo/logword.h"

enum { WORDS = 512, LEAST = 1024 };

/* A line, taken apart. */
struct line {
    struct hb_span span;
    struct hb_word word[WORDS];
    int bits[WORDS];
    bool taken[WORDS]; /* a word that told an amount's meaning tells no other's */
    int count;
};

static void read_line(struct hb_span s, struct line *line)
{
    line->span = s;
    line->count = hb_words_of(s, line->word, WORDS);
    for (int i = 0; i < line->count; i++) {
        bool text = line->word[i].kind == HB_WORD_TEXT;
        line->bits[i] = text ? hb_meaning_of(line->word[i].text) : 0;
        line->taken[i] = false;
    }
}

static bool is_word(const struct line *l, int i, const char *text)
{
    return i >= 0 && i < l->count && l->word[i].kind == HB_WORD_TEXT &&
           strcmp(l->word[i].text, text) == 0;
}

/* The first word with any of the bits among the next `far` behind i, in the same sentence; -1. */
static int ahead(const struct line *l, int i, int far, int bits)
{
    for (int k = i + 1; k <= i + far && k < l->count && l->word[k].kind != HB_WORD_END; k++)
        if (l->bits[k] & bits)
            return k;
    return -1;
}

static int behind(const struct line *l, int i, int far, int bits)
{
    for (int k = i - 1; k >= i - far && k >= 0 && l->word[k].kind != HB_WORD_END; k--)
        if (l->bits[k] & bits)
            return k;
    return -1;
}

static bool has(const struct line *l, int bits)
{
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & bits)
            return true;
    return false;
}

static bool has_pair(const struct line *l, const char *first, const char *second)
{
    for (int i = 0; i + 1 < l->count; i++)
        if (is_word(l, i, first) && is_word(l, i + 1, second))
            return true;
    return false;
}

static bool has_word(const struct line *l, const char *text)
{
    for (int i = 0; i < l->count; i++)
        if (is_word(l, i, text))
            return true;
    return false;
}

/* "not", and what ends in it. */
static bool is_not(const struct line *l, int i)
{
    static const char *const words[] = {"not", "no", "doesnt", "dont", "isnt", "didnt"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (is_word(l, i, words[k]))
            return true;
    return false;
}

static bool not_before(const struct line *l, int i, int far)
{
    for (int k = i - 1; k >= 0 && k >= i - far && l->word[k].kind != HB_WORD_END; k--)
        if (is_not(l, k))
            return true;
    return false;
}

static bool is_resource(const struct line *l, int i)
{
    return is_word(l, i, "resources") || is_word(l, i, "resource");
}

/* "an out-of-memory log": it says nothing of what happened, but for "out-of-memory error". */
static bool is_adjective(const struct line *l, int i, int memory)
{
    static const char *const nouns[] = {"exception", "when",    "while", "during", "at",
                                        "killer",    "handler", "kill",  "kills",  "oom"};
    if (memory + 1 >= l->count || l->word[memory + 1].kind != HB_WORD_TEXT ||
        l->bits[memory + 1] & FAILS || is_word(l, memory + 1, "errors") ||
        (i > 0 && l->bits[i - 1] & DEVICE))
        return false;
    for (size_t k = 0; k < sizeof nouns / sizeof *nouns; k++)
        if (is_word(l, memory + 1, nouns[k]))
            return false;
    return true;
}

/* "out of [GPU] memory", "CUDAout of memory", "outofmemory" */
static bool is_out_of(const struct line *l, int i)
{
    if (is_word(l, i, "outofmemory"))
        return true;
    if (!(is_word(l, i, "out") || is_word(l, i, "aout")) || !is_word(l, i + 1, "of"))
        return false;
    int memory = ahead(l, i + 1, 3, MEMORY);
    for (int k = i + 2; k < memory; k++) /* no "out of bounds memory read" */
        if (!(l->bits[k] & (DEVICE | HOST | OWNER | LEADS)) && !is_word(l, k, "video") &&
            !is_word(l, k, "shared") && !is_word(l, k, "available") && !is_word(l, k, "free"))
            memory = -1;
    if (memory >= 0)
        return *l->word[i].span.end != '-' || !is_adjective(l, i, memory);
    return is_resource(l, i + 2) ||
           (i + 2 < l->count && l->bits[i + 2] & DEVICE && is_resource(l, i + 3));
}

static bool is_oom(const struct line *l, int i)
{
    static const char *const others[] = {"score", "adj", "reaper", "prevention", "handler", "safe"};
    if (!is_word(l, i, "oom") && !is_word(l, i, "ooms") && !is_word(l, i, "oomed"))
        return false;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (is_word(l, i + 1, others[k]))
            return false;
    return true;
}

/* "could not [be] allocate[d]", not "does not allocate" */
static bool could_not(const struct line *l, int i)
{
    for (int k = i - 1; k > 0 && k >= i - 3 && l->word[k].kind != HB_WORD_END; k--)
        if (is_word(l, k, "not"))
            return is_word(l, k - 1, "could") || is_word(l, k - 1, "can") ||
                   is_word(l, k - 1, "was") || is_word(l, k - 1, "were") ||
                   is_word(l, k - 1, "is") || is_word(l, k + 1, "able");
    return false;
}

/* "failed to allocate ...", "allocation of ... failed", "bad_alloc" */
static bool is_failed_allocation(const struct line *l, int i)
{
    enum { FAR = 6 };
    if (!(l->bits[i] & ALLOCS) && !(is_word(l, i, "map") && is_word(l, i - 1, "memory")))
        return false;
    if (is_word(l, i - 1, "bad"))
        return true;
    return behind(l, i, FAR, FAILS | CANNOTS) >= 0 || ahead(l, i, FAR + 4, FAILS) >= 0 ||
           could_not(l, i);
}

/* "leaves no GPU memory for the cache", "there is no memory left" */
static bool is_none_left(const struct line *l, int i)
{
    int memory = ahead(l, i, 2, MEMORY);
    bool named = memory == i + 1 || (memory == i + 2 && l->bits[i + 1] & (DEVICE | HOST | OWNER));
    return named && (is_word(l, memory + 1, "for") || is_word(l, memory + 1, "left"));
}

/* "insufficient memory", "not enough GPU memory", "no available memory" */
static bool is_too_little(const struct line *l, int i)
{
    enum { FAR = 5 };
    bool enough = is_word(l, i, "enough") || is_word(l, i, "sufficient") || l->bits[i] & FREES;
    if (is_word(l, i, "low") && !is_word(l, i + 1, "on"))
        return false;
    if (is_word(l, i, "no") && is_none_left(l, i))
        return true;
    bool little = l->bits[i] & SHORT || (enough && not_before(l, i, l->bits[i] & FREES ? 1 : 3));
    return little && (ahead(l, i, FAR, MEMORY) >= 0 || behind(l, i, FAR, MEMORY) >= 0);
}

/* "memory exhausted", "exceeding memory limits"; "exceeds 10% of free memory" only warns */
static bool is_exceeded(const struct line *l, int i)
{
    enum { FAR = 4 };
    if (!(l->bits[i] & EXCEEDS))
        return false;
    for (int k = i; k < l->count && k <= i + FAR; k++)
        if (l->word[k].kind == HB_WORD_NUMBER && l->word[k].text[0] == '%')
            return false;
    return ahead(l, i, FAR, MEMORY) >= 0 || behind(l, i, FAR, MEMORY) >= 0 ||
           (behind(l, i, FAR, THING) >= 0 && behind(l, i, FAR, LIMITS | WANTED) >= 0);
}

/* "alloc size : 301990400 is more than total mem size", "greater than the maximum buffer size" */
static bool is_more_than(const struct line *l, int i)
{
    enum { FAR = 5 };
    bool more = is_word(l, i, "more") || is_word(l, i, "larger") || is_word(l, i, "greater");
    if (!more || !is_word(l, i + 1, "than") || !has(l, ALLOCS | WANTS))
        return false;
    return ahead(l, i, FAR, LIMITS | TOTALS | FREES) >= 0 && ahead(l, i, FAR + 3, THING) >= 0;
}

/* "does not fit into memory", "too large to fit in GPU memory" */
static bool is_no_fit(const struct line *l, int i)
{
    enum { FAR = 5 };
    if ((!is_word(l, i, "fit") && !is_word(l, i, "fits")) || ahead(l, i, FAR, MEMORY | DEVICE) < 0)
        return false;
    bool large = is_word(l, i - 3, "too") && is_word(l, i - 1, "to");
    return large || could_not(l, i) || is_word(l, i - 1, "doesnt") || is_word(l, i - 1, "cannot") ||
           is_word(l, i - 1, "wont") || (is_word(l, i - 1, "not") && is_word(l, i - 2, "does"));
}

/* "requires 24 GB of memory but only 16 GB are available" */
static bool is_but_only(const struct line *l, int i)
{
    enum { FAR = 12 };
    return is_word(l, i, "but") && is_word(l, i + 1, "only") && behind(l, i, FAR, WANTS) >= 0 &&
           ahead(l, i, FAR, FREES) >= 0 && has(l, MEMORY);
}

/* Python's "MemoryError" */
static bool is_memory_error(const struct line *l, int i)
{
    return is_word(l, i, "memory") && is_word(l, i + 1, "error") &&
           hb_span_starts(l->word[i].span, "Memory") &&
           l->word[i].span.end == l->word[i + 1].span.at;
}

static bool is_refusal(const struct line *l, int i)
{
    if (is_more_than(l, i))
        return true;
    return is_out_of(l, i) || is_oom(l, i) || is_failed_allocation(l, i) || is_too_little(l, i) ||
           is_exceeded(l, i) || is_memory_error(l, i) || is_no_fit(l, i) || is_but_only(l, i);
}

/* Whether the text tells what to do, or what might be, and not what was. */
static bool is_advice(const struct line *l, int i)
{
    static const char *const coming[] = {"run", "cause", "lead", "result", "be"};
    if (behind(l, i, WORDS, ADVISES) >= 0)
        return true;
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--) {
        bool may = is_word(l, k, "may") || is_word(l, k, "could") || is_word(l, k, "can");
        for (size_t c = 0; may && c < sizeof coming / sizeof *coming; c++)
            if (is_word(l, k + 1, coming[c]))
                return true;
        if ((is_word(l, k, "how") && is_word(l, k + 1, "to")) ||
            (is_word(l, k, "in") && is_word(l, k + 1, "case")) ||
            (is_word(l, k, "check") && is_word(l, k + 1, "for")))
            return true;
    }
    return false;
}

/* "the process got killed", by whom nobody says */
static bool is_ended(const struct line *l, int i)
{
    static const char *const verbs[] = {"got", "gets", "getting", "was", "is", "been", "being"};
    static const char *const things[] = {"process", "script", "program", "training", "it", "job"};
    bool passive = false;
    bool named = false;
    for (size_t k = 0; k < sizeof verbs / sizeof *verbs; k++)
        passive = passive || is_word(l, i - 1, verbs[k]) || is_word(l, i - 2, verbs[k]);
    for (size_t k = 0; k < sizeof things / sizeof *things; k++)
        for (int n = 2; n <= 4; n++)
            named = named || is_word(l, i - n, things[k]);
    return is_word(l, i, "killed") && passive && named && !has(l, DEVICE);
}

/* "signal 9", "SIGKILL", "exit code 137", "OOMKilled": whoever ended the process, it was the
 * memory that a host or a container gives in all but few cases. */
static bool is_kill(const struct line *l, int i)
{
    enum { FAR = 3 };
    static const char *const codes[] = {"exit", "code", "status", "exitcode", "exited", "returned"};
    const struct hb_word *word = &l->word[i];
    if (is_word(l, i, "sigkill"))
        return ahead(l, i, FAR, ENDS) >= 0 || behind(l, i, 8, ENDS) >= 0 ||
               is_word(l, i - 1, "signals") || is_word(l, i - 1, "signal") ||
               is_word(l, i + 1, "received") || (i > 0 && strcmp(l->word[i - 1].text, "9") == 0);
    if (is_word(l, i, "killed") && i > 0 && *word->span.at == 'K') /* a shell's word, quoted */
        return true;
    if (is_ended(l, i))
        return true;
    if (is_word(l, i, "oom") && is_word(l, i + 2, "false")) /* "OOMKilled": false */
        return false;
    if (is_word(l, i, "oom"))
        return is_word(l, i + 1, "kill") || is_word(l, i + 1, "killed") ||
               is_word(l, i + 1, "killer") || is_word(l, i + 1, "killing");
    if (l->bits[i] & ENDS && has_word(l, "srun"))
        return true;
    if (l->bits[i] & ENDS && !has(l, DEVICE) &&
        (ahead(l, i, FAR + 3, MEMORY) >= 0 || behind(l, i, FAR + 3, MEMORY) >= 0))
        return true;
    if (word->kind != HB_WORD_NUMBER)
        return false;
    bool nine = strcmp(word->text, "9") == 0 || strcmp(word->text, "-9") == 0;
    for (int k = i - 1; k >= 0 && k >= i - FAR && l->word[k].kind != HB_WORD_END; k--) {
        if (nine && is_word(l, k, "signal"))
            return true;
        bool told = strcmp(word->text, "137") == 0 || strcmp(word->text, "-9") == 0;
        for (size_t c = 0; told && c < sizeof codes / sizeof *codes; c++)
            if (is_word(l, k, codes[c]))
                return true;
    }
    return false;
}

/* "Cannot allocate memory", the C library's word for ENOMEM: nothing follows that says for what. */
static bool is_errno(const struct line *l)
{
    for (int i = 0; i + 2 < l->count; i++)
        if (is_word(l, i, "cannot") && is_word(l, i + 1, "allocate") &&
            is_word(l, i + 2, "memory") &&
            (i + 3 >= l->count || l->word[i + 3].kind != HB_WORD_TEXT))
            return true;
    return false;
}

/* Whether it is about the host's memory: by name, or in the words that the C library and the C++
 * library have for it. */
static bool is_host(const struct line *l)
{
    if (has(l, PINNED) || has(l, DEVICE))
        return has(l, PINNED);
    for (int i = 0; i < l->count; i++)
        if (l->bits[i] & OWNER && (ahead(l, i, 2, MEMORY) >= 0 || is_word(l, i + 1, "allocator")))
            return true;
    return has(l, HOST) || has_pair(l, "bad", "alloc") || has_pair(l, "bad", "allocation") ||
           has_pair(l, "memory", "map") || has_pair(l, "heap", "space") || is_errno(l) ||
           (l->count == 2 && is_memory_error(l, 0));
}

/* What an amount is, by the words beside it. */
static int rank_of(int bits)
{
    return bits & (WANTS | FREES | HOLDS) ? 3
           : bits & (LIMITS | TOTALS)     ? 2
           : bits & WANTED                ? 1
                                          : 0;
}

/* "could not be allocated" */
static int bits_at(const struct line *l, int i)
{
    bool passive = is_word(l, i, "allocated") && is_word(l, i - 1, "be");
    return l->taken[i] ? 0 : passive ? WANTS : l->bits[i];
}

/* The word before amount i that says most, the nearest of equals; over pauses where it may; -1. */
static int meaning_before(const struct line *l, int i, bool over_pauses)
{
    enum { FAR = 10 };
    int best = -1;
    for (int k = i - 1; k >= 0 && k >= i - FAR; k--) {
        const struct hb_word *word = &l->word[k];
        bool keyed = k > 0 && l->word[k - 1].keys; /* another figure: "used: 0, size: 5" */
        if (word->kind == HB_WORD_END ||
            (word->kind == HB_WORD_NUMBER && (word->has_unit || keyed)))
            break;
        if (!over_pauses && (word->kind == HB_WORD_PAUSE || l->bits[k] & PAUSES))
            break;
        int bits = bits_at(l, k);
        if (rank_of(bits) > (best < 0 ? 0 : rank_of(bits_at(l, best))))
            best = k;
    }
    return best;
}

/* The same behind it; a word that is the next amount's is not this one's. */
static int meaning_behind(const struct line *l, int i)
{
    int best = -1;
    int k = i + 1;
    for (; k < l->count; k++) {
        const struct hb_word *word = &l->word[k];
        if (word->kind == HB_WORD_END || word->kind == HB_WORD_PAUSE || l->bits[k] & PAUSES ||
            word->kind == HB_WORD_NUMBER || word->keys)
            break;
        if (rank_of(bits_at(l, k)) > (best < 0 ? 0 : rank_of(bits_at(l, best))))
            best = k;
    }
    bool open = k < l->count && (l->word[k].kind == HB_WORD_NUMBER || l->word[k].keys);
    return open && best != i + 1 ? -1 : best;
}

/* "7.2 GB of 4.2 GB", "59.5GB / 62.6GB": the second is what there is of the first. */
static bool is_share(const struct line *l, int i)
{
    int before = i - 1;
    while (before >= 0 && (is_word(l, before, "of") || is_word(l, before, "out")))
        before--;
    if (before < 0 || l->word[before].kind != HB_WORD_NUMBER)
        return false;
    struct hb_span between = {l->word[before].span.end, l->word[i].span.at};
    return before < i - 1 || hb_span_has(between, "/");
}

/* The amount of which i is a share; -1: none. "2.5 GiB of 8 GiB are left" is said of the first. */
static int share_of(const struct line *l, int i)
{
    int k = i + 1;
    while (k < l->count && (is_word(l, k, "of") || is_word(l, k, "out")))
        k++;
    bool number = k < l->count && l->word[k].kind == HB_WORD_NUMBER && l->word[k].has_unit;
    return number && is_share(l, k) ? k : -1;
}

/* "a card with 24 GB VRAM", "4 x 16 GB GPUs": what a machine has, unless "needs" or the like stands
 * right before it. */
static bool is_equipment(const struct line *l, int i, int told)
{
    int k = i - 1;
    while (k > told && (l->bits[k] & LEADS))
        k--;
    return i + 1 < l->count && l->bits[i + 1] & (DEVICE | MEMORY) && !(l->bits[i + 1] & CHIP) &&
           !l->word[i + 1].keys && k != told;
}

/* Where the word stands that tells what amount i is; -1: nowhere. */
static int meaning_of(const struct line *l, int i)
{
    int left = meaning_before(l, i, false);
    if (is_equipment(l, i, left))
        return -1;
    int other = share_of(l, i);
    int right = meaning_behind(l, other < 0 ? i : other);
    int left_rank = left < 0 ? 0 : rank_of(bits_at(l, left));
    int right_rank = right < 0 ? 0 : rank_of(bits_at(l, right));
    if (left_rank >= 2 || left_rank >= right_rank)
        return left >= 0 ? left : meaning_before(l, i, true);
    return right;
}

/* A number without unit is one of bytes only right behind a word that says so. */
static bool is_bytes(const struct line *l, int i, int told)
{
    const struct hb_word *word = &l->word[i];
    if (word->amount.bytes < 0 || (word->amount.bytes > 0 && word->amount.bytes < LEAST))
        return false;
    if (word->has_unit)
        return true;
    if (told < 0 || told > i || (i + 1 < l->count && l->bits[i + 1] & COUNTS))
        return false;
    for (int k = told + 1; k < i; k++)
        if (!(l->bits[k] & (LEADS | LIMITS | WANTED)) && l->word[k].kind != HB_WORD_PAUSE)
            return false;
    return true;
}

struct figures {
    struct hb_amount wanted; /* bytes -1: not told */
    struct hb_amount free;
    struct hb_amount limit;
    struct hb_amount total;
    struct hb_amount held;
};

static struct hb_amount *place_of(struct figures *f, int bits)
{
    return bits & FREES              ? &f->free
           : bits & (WANTS | WANTED) ? &f->wanted
           : bits & HOLDS            ? &f->held
           : bits & LIMITS           ? &f->limit
           : bits & TOTALS           ? &f->total
                                     : NULL;
}

/* Sums are not taken apart. */
static bool is_summed(const struct line *l, int i)
{
    struct hb_span s = {l->word[i].span.end, l->span.end};
    struct hb_span before = {l->span.at, l->word[i].span.at};
    hb_span_skip(&s, " ");
    while (before.end > before.at && before.end[-1] == ' ')
        before.end--;
    return hb_span_starts(s, "+") || (before.end > before.at && before.end[-1] == '+');
}

/* "exceeded memory limit (52917772 > 20971520)"; Slurm counts in KiB. */
static void read_comparison(const struct line *l, struct figures *f)
{
    int64_t unit = has_word(l, "slurmstepd") ? 1024 : 1;
    for (int i = 0; i + 1 < l->count && f->wanted.bytes < 0; i++) {
        int k = i + 1 < l->count && l->word[i + 1].kind == HB_WORD_PAUSE ? i + 2 : i + 1;
        if (k >= l->count || *l->word[k - 1].span.at != '>' || behind(l, i, 6, LIMITS) < 0)
            continue;
        int64_t used = l->word[i].amount.bytes;
        int64_t most = l->word[k].amount.bytes;
        if (used < LEAST || most < LEAST || l->word[i].has_unit || l->word[k].has_unit)
            continue;
        f->wanted = (struct hb_amount){hb_mul_sat(used, unit), unit};
        f->limit = (struct hb_amount){hb_mul_sat(most, unit), unit};
    }
}

static struct figures read_figures(struct line *l)
{
    struct hb_amount none = {-1, 1};
    struct figures f = {none, none, none, none, none};
    read_comparison(l, &f);
    for (int i = 0; i < l->count; i++) {
        if (l->word[i].kind != HB_WORD_NUMBER || l->word[i].amount.bytes < 0)
            continue;
        int told = meaning_of(l, i);
        bool share = is_share(l, i);
        if (!is_bytes(l, i, told) || is_summed(l, i) || (told < 0 && !share))
            continue;
        struct hb_amount *part = f.free.bytes >= 0 ? &f.total : &f.limit;
        struct hb_amount *to = share ? part : place_of(&f, bits_at(l, told));
        if (!share)
            l->taken[told] = true;
        bool nothing = to == &f.wanted && !l->word[i].amount.bytes; /* nobody asks for nothing */
        if (to && to->bytes < 0 && !nothing)
            *to = l->word[i].amount;
    }
    return f;
}

/* A petabyte or more, behind a word that says that it was asked for. */
static bool is_absurd(const struct line *l, const struct figures *f)
{
    const int64_t most = INT64_C(1) << 50;
    if (f->wanted.bytes >= most)
        return true;
    for (int i = 0; i < l->count; i++)
        if (l->word[i].kind == HB_WORD_NUMBER && l->word[i].amount.bytes < 0 &&
            hb_span_is_absurd(l->word[i].span) && behind(l, i, 4, WANTS | WANTED) >= 0)
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

static void take_host(struct hb_log_reader *r, const struct line *l, const struct figures *f)
{
    struct hb_log_message *m = hb_form_join(r, HB_LOG_HOST);
    bool held = f->wanted.bytes < 0;
    if (m->fact[HB_FACT_ASKED] >= 0 || (held && f->held.bytes < 0))
        return;
    if (!held)
        hb_form_name(m, HB_LOG_REFUSED);
    set_known(m, HB_FACT_ASKED, held ? f->held : f->wanted);
    set_known(m, HB_FACT_CAPACITY, f->limit.bytes >= 0 ? f->limit : f->free);
    (void)l;
}

/* A kernel's blocks, threads and memories have sizes of kilobytes. */
#define CHIP_BYTES ((int64_t)1 << 28)

static bool is_of_chip(const struct line *l, const struct figures *f)
{
    bool out = has_pair(l, "of", "resource") || has_pair(l, "of", "resources");
    bool shared = out && (has_pair(l, "shared", "memory") || has_word(l, "triton"));
    bool limited = has_pair(l, "shared", "memory") && (f->limit.bytes >= 0 || f->free.bytes >= 0);
    bool little = (shared || limited) && f->wanted.bytes < CHIP_BYTES;
    return (has(l, CHIP) || little) && !has(l, HOST);
}

static void take_chip(struct hb_log_reader *r, const struct line *l, const struct figures *f)
{
    struct hb_log_message *m = hb_form_open(r, HB_LOG_TPU_SCOPED);
    hb_form_name(m, has_pair(l, "shared", "memory") ? "shared memory" : "on-chip memory");
    set_known(m, HB_FACT_NEEDED, f->wanted.bytes >= 0 ? f->wanted : f->held);
    set_known(m, HB_FACT_CAPACITY,
              f->limit.bytes >= 0  ? f->limit
              : f->free.bytes >= 0 ? f->free
                                   : f->total);
}

/* Whether a limit of the runtime or the device refused, not what was left. */
static bool is_limit(const struct line *l)
{
    for (int i = 0; i < l->count; i++)
        if ((l->bits[i] & EXCEEDS &&
             (behind(l, i, 3, LIMITS) >= 0 || ahead(l, i, 4, LIMITS) >= 0)) ||
            (is_more_than(l, i) && ahead(l, i, 4, LIMITS) >= 0))
            return true;
    return false;
}

/* A server's cache: "5 GiB KV cache is needed, which is larger than the available ...", or "no
 * memory for the KV cache" */
static bool is_of_cache(const struct line *l)
{
    bool little = false;
    for (int i = 0; i < l->count; i++)
        little = little || is_more_than(l, i) || (is_word(l, i, "no") && is_none_left(l, i));
    return little && has_pair(l, "kv", "cache");
}

static bool is_of_tactic(const struct line *l)
{
    return (has_word(l, "tactic") || has_word(l, "tactics")) && has(l, SHORT);
}

/* Whether a library is named beside the refusal, not somewhere in the sentence. */
static bool is_refused_of(const struct line *l, int library)
{
    enum { FAR = 6 };
    for (int i = 0; i < l->count; i++)
        if (is_refusal(l, i) && (l->bits[i] & library || behind(l, i, FAR, library) >= 0 ||
                                 ahead(l, i, FAR, library) >= 0))
            return true;
    return false;
}

/* With figures a request of a runtime; without, the word of a device's driver, or of anybody. */
static void take_device(struct hb_log_reader *r, const struct line *l, const struct figures *f)
{
    enum hb_log_kind kind = is_of_cache(l)              ? HB_LOG_SERVE
                            : is_of_tactic(l)           ? HB_LOG_TACTIC
                            : is_refused_of(l, LINKS)   ? HB_LOG_NCCL
                            : is_refused_of(l, KERNELS) ? HB_LOG_LIBRARY
                            : f->wanted.bytes >= 0      ? HB_LOG_RUNTIME
                            : has(l, DEVICE)            ? HB_LOG_PLAIN
                                                        : HB_LOG_ANY;
    struct hb_log_message *m = hb_form_open(r, kind);
    if (is_limit(l))
        hb_form_name(m, HB_LOG_LIMIT);
    set_known(m, HB_FACT_ASKED, f->wanted);
    set_known(m, HB_FACT_FREE, f->free.bytes >= 0 ? f->free : f->limit);
    set_known(m, HB_FACT_CAPACITY, f->total);
}

static bool is_warning_only(const struct line *l)
{
    return has_pair(l, "no", "such") || (hb_span_has(l->span, "not a failure"));
}

static bool has_oom(const struct line *l)
{
    for (int i = 0; i < l->count; i++)
        if (is_oom(l, i))
            return true;
    return false;
}

/* Languages whose words this grammar does not part: "not enough memory". */
static bool is_foreign_refusal(struct hb_span s)
{
    static const char *const words[] = {
        "\u663e\u5b58\u4e0d", /* a device's memory, in Chinese */
        "\u663e\u5b58\u6ea2\u51fa",
        "\u7206\u663e\u5b58",
        "\u5185\u5b58\u4e0d\u8db3", /* memory, in Chinese and Japanese */
        "\u5185\u5b58\u6ea2\u51fa",
        "\u30e1\u30e2\u30ea\u4e0d\u8db3",
        "\u30e1\u30e2\u30ea\u30fc\u4e0d\u8db3",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hb_span_has(s, words[i]))
            return true;
    return false;
}

static bool says_refused(const struct line *l)
{
    for (int i = 0; i < l->count; i++)
        if (is_refusal(l, i) && !is_advice(l, i))
            return true;
    return false;
}

void hb_form_complete(struct hb_log_reader *r, enum hb_log_kind kind, struct hb_span segment)
{
    struct line *l = hb_form_scratch(r, sizeof *l);
    struct hb_log_message *m = hb_form_current(r, kind);
    read_line(segment, l);
    if (m && says_refused(l))
        set_known(m, HB_FACT_ASKED, read_figures(l).wanted);
}

/* Of a list of figures, "Required memory: 5 GiB", those that a key tells. */
static struct figures read_keyed(struct line *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->word[i].kind == HB_WORD_NUMBER && !(i > 0 && l->word[i - 1].keys))
            l->word[i].amount.bytes = -1;
    for (int i = 0; i < l->count; i++)
        if ((l->bits[i] & (WANTS | WANTED)) == WANTED)
            l->bits[i] &= ~WANTED; /* "file size = 2 GiB" */
    return read_figures(l);
}

void hb_form_follow(struct hb_log_reader *r, struct hb_log_message *m, struct hb_span segment)
{
    struct line *l = hb_form_scratch(r, sizeof *l);
    read_line(segment, l);
    struct figures f = read_keyed(l);
    set_known(m, HB_FACT_ASKED, f.wanted);
    set_known(m, HB_FACT_FREE, f.free);
    set_known(m, HB_FACT_CAPACITY, f.total);
}

void hb_form_take_any(struct hb_log_reader *r, struct hb_span s)
{
    struct line *l = hb_form_scratch(r, sizeof *l);
    struct hb_amount tensor;
    bool killed = false;
    read_line(s, l);
    for (int i = 0; i < l->count; i++)
        killed = killed || (is_kill(l, i) && !is_advice(l, i));
    bool foreign = is_foreign_refusal(s);
    if ((!killed && !foreign && !says_refused(l)) || is_warning_only(l))
        return;
    struct figures f = read_figures(l);
    if (f.wanted.bytes < 0 && tensor_of_torch(s, &tensor))
        f.wanted = tensor;
    if (killed || is_host(l))
        take_host(r, l, &f);
    else if (is_absurd(l, &f))
        hb_form_open(r, HB_LOG_CORRUPT);
    else if (is_of_chip(l, &f))
        take_chip(r, l, &f);
    else if (f.wanted.bytes >= 0 || foreign || has(l, THING) || has_word(l, "resources") ||
             has_oom(l))
        take_device(r, l, &f);
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
    ANY("\u5b58\u4e0d"), ANY("\u5b58\u6ea2"), ANY("\u7206\u663e"), ANY("\u4e0d\u8db3"),
    ANY(" fit"),         ANY("LIMIT"),        ANY("illed"),        ANY("VMEM"),
    ANY("vmem"),         ANY("Oom"),          ANY("emory"),        ANY("EMORY"),
    ANY("lloc"),         ANY("LLOC"),         ANY("OOM"),          ANY("oom"),
    ANY("xhaust"),       ANY("XHAUST"),       ANY("IGKILL"),       ANY("137"),
    ANY("ignal"),        ANY("ut of "),       ANY("UT_OF_"),       ANY("VRAM"),
    ANY("eap space"),    ANY("code -9"),      ANY("code: -9"),     ANY("utOfRes"),
    ANY("ool size"),     ANY("status -9"),    ANY("code  : -9"),   ANY("code = -9"),
};

const struct hb_forms hb_forms_any = {rows, sizeof rows / sizeof rows[0]};
