/* Figures: see logfigures.h. */
#include "sim/hlo/logfigures.h"

#include "base/size.h"

/* Bytes of less are no refused request. */
enum { LEAST = 1024 };

/* What an amount is, by the words beside it. */
static int rank_of(int bits)
{
    return bits & (WANTS | FREES | HOLDS) ? 3
           : bits & (LIMITS | TOTALS)     ? 2
           : bits & WANTED                ? 1
                                          : 0;
}

/* "could not be allocated", "failed to get allocated" */
static int bits_at(const struct hb_sentence *l, int i)
{
    enum { FAR = 7 };
    bool passive = hb_sentence_is(l, i, "allocated") &&
                   (hb_sentence_is(l, i - 1, "be") || hb_sentence_is(l, i - 1, "get"));
    bool given = false;
    for (int k = i + 2; k <= i + FAR; k++) /* "allocating 32 GB of memory for the job" */
        given = given || (l->bits[i] & ALLOCS && l->word[i + 1 < l->count ? i + 1 : i].has_unit &&
                          hb_sentence_is_job(l, k));
    return l->taken[i] ? 0 : passive ? WANTS : given ? LIMITS : l->bits[i];
}

/* The word before amount i that says most, the nearest of equals; over pauses where it may; -1. */
static int meaning_before(const struct hb_sentence *l, int i, bool over_pauses)
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
static int meaning_behind(const struct hb_sentence *l, int i)
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
static bool is_share(const struct hb_sentence *l, int i)
{
    int before = i - 1;
    while (before >= 0 && (hb_sentence_is(l, before, "of") || hb_sentence_is(l, before, "out")))
        before--;
    if (before < 0 || l->word[before].kind != HB_WORD_NUMBER)
        return false;
    struct hb_span between = {l->word[before].span.end, l->word[i].span.at};
    return before < i - 1 || hb_span_has(between, "/");
}

/* The amount of which i is a share; -1: none. "2.5 GiB of 8 GiB are left" is said of the first. */
static int share_of(const struct hb_sentence *l, int i)
{
    int k = i + 1;
    while (k < l->count && (hb_sentence_is(l, k, "of") || hb_sentence_is(l, k, "out")))
        k++;
    bool number = k < l->count && l->word[k].kind == HB_WORD_NUMBER && l->word[k].has_unit;
    return number && is_share(l, k) ? k : -1;
}

bool hb_figures_is_most(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    bool over = hb_sentence_is(l, i - 1, "over") ||
                (hb_sentence_is(l, i - 1, "than") && hb_sentence_is(l, i - 2, "more"));
    int verb = hb_sentence_behind(l, i, FAR, ALLOCS);
    return l->word[i].has_unit && over && verb >= 0 &&
           (l->bits[verb - 1 < 0 ? 0 : verb - 1] & CANNOTS ||
            (hb_sentence_is(l, verb - 1, "to") && l->bits[verb - 2 < 0 ? 0 : verb - 2] & CANNOTS));
}

/* "increasing the allocation to 200 GB": what somebody set. */
static bool is_set(const struct hb_sentence *l, int i)
{
    enum { FAR = 8 };
    static const char *const sets[] = {"increase", "increased", "increasing", "raise", "raised",
                                       "raising",  "set",       "setting",    NULL};
    return hb_sentence_is(l, i - 1, "to") && hb_sentence_nearest(l, i, FAR, sets) >= 0;
}

/* "I have 24G": what somebody says of a machine. */
static bool is_owned(const struct hb_sentence *l, int i)
{
    return hb_sentence_is(l, i - 1, "have") &&
           (hb_sentence_is(l, i - 2, "i") || hb_sentence_is(l, i - 2, "we"));
}

/* "around 18 GiB", "~10Gb", "between 250 and 400 MB": what somebody reckons, no machine's figure.
 */
static bool is_reckoned(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    int k = i - 1;
    while (k >= 0 && l->bits[k] & LEADS && !(l->bits[k] & RECKONS))
        k--;
    bool first = i > 0 && (hb_sentence_is(l, i - 1, "between") || hb_sentence_is(l, i - 1, "and"));
    for (int n = i; first && n > 0 && n >= i - FAR; n--)
        if (hb_sentence_is(l, n - 1, "between"))
            return true;
    if (hb_sentence_is(l, i - 1, "over") && hb_sentence_behind(l, i, FAR, HOLDS) >= 0)
        return true; /* "RAM reaches over 12 GB" */
    const char *at = l->word[i].span.at;
    bool range = i > 0 && l->word[i - 1].kind == HB_WORD_NUMBER && at[-1] == '-'; /* "13-14 GB" */
    if (hb_figures_is_most(l, i) || range || is_owned(l, i) || is_set(l, i))
        return true;
    bool about = at > l->span.at && at[-1] == '~';
    bool reckons = k >= 0 && l->bits[k] & RECKONS;
    int want = reckons ? k - 1 : about ? i - 1 : -1; /* "needed around 4 GB", "need ~4 GB" */
    return (reckons || about) && !(want >= 0 && l->bits[want] & WANTS);
}

/* "RMM_POOL_SIZE=": a variable of a shell's environment */
static bool is_variable(struct hb_span s)
{
    bool joined = false;
    for (; s.at < s.end && ((*s.at >= 'A' && *s.at <= 'Z') || *s.at == '_'); s.at++)
        joined = joined || *s.at == '_';
    return joined && hb_span_starts(s, "=");
}

/* "--shm-size=10gb", "RMM_POOL_SIZE=12GB": what somebody sets. */
static bool is_option(const struct hb_sentence *l, int i)
{
    struct hb_span s = {l->span.at, l->word[i].span.at};
    const char *at = s.end;
    while (at > s.at && at[-1] != ' ' && at[-1] != '`' && at[-1] != '"' && at[-1] != '\'')
        at--;
    s.at = at;
    return hb_span_starts(s, "--") || is_variable(s);
}

/* Where the word stands that tells what amount i is; -1: nowhere. */
static int meaning_of(const struct hb_sentence *l, int i)
{
    int left = meaning_before(l, i, false);
    if (left > 0 && l->bits[left] & HOLDS && hb_sentence_is(l, left - 1, "not"))
        return -1; /* "it did not reach the limit of 512MiB" */
    int other = share_of(l, i);
    int right = meaning_behind(l, other < 0 ? i : other);
    int left_rank = left < 0 ? 0 : rank_of(bits_at(l, left));
    int right_rank = right < 0 ? 0 : rank_of(bits_at(l, right));
    if (left_rank >= 2 || left_rank >= right_rank)
        return left >= 0 ? left : meaning_before(l, i, true);
    return right;
}

static bool has_amount_before(const struct hb_sentence *l, int i)
{
    for (int k = i - 1; k >= 0 && l->word[k].kind != HB_WORD_END; k--)
        if (l->word[k].has_unit)
            return true;
    return false;
}

/* "requires 564 bytes of scratch space, but only 475 is available": of the unit before. */
static bool is_rest(const struct hb_sentence *l, int i, int told)
{
    enum { NEAR = 2 };
    return told > i && told <= i + NEAR && l->bits[told] & FREES &&
           hb_sentence_is(l, i - 1, "only") && has_amount_before(l, i);
}

/* "size=(600000,1000)", "16384 * 12 tokens": the first dimension of an array, or a factor. */
static bool is_dimension(const struct hb_sentence *l, int i)
{
    const char *at = l->word[i].span.at;
    struct hb_span rest = {l->word[i].span.end, l->span.end};
    bool opened = at > l->span.at && (at[-1] == '(' || at[-1] == '[');
    bool first = opened && hb_span_starts(rest, ",");
    int64_t other;
    hb_span_skip(&rest, " ");
    bool factor = hb_span_starts(rest, "*") || hb_span_starts(rest, "x ");
    rest.at += factor;
    hb_span_skip(&rest, " ");
    return !l->word[i].has_unit && (first || (factor && hb_span_int(&rest, &other)));
}

/* A number without unit is one of bytes only right behind a word that says so. */
static bool is_bytes(const struct hb_sentence *l, int i, int told)
{
    const struct hb_word *word = &l->word[i];
    if (word->amount.bytes < 0 || (word->amount.bytes > 0 && word->amount.bytes < LEAST))
        return false;
    if (!word->has_unit && hb_sentence_has_word(l, "pages")) /* "avail:0, expect:1783" of them */
        return false;
    if (word->has_unit || is_rest(l, i, told))
        return true;
    if (told < 0 || told > i || is_dimension(l, i))
        return false;
    for (int k = i - 1; k >= told; k--) { /* "allocate pinned memory of size: 2304" */
        if (k == told || l->bits[k] & WANTED)
            return true;
        if (!(l->bits[k] & (LEADS | LIMITS)) && l->word[k].kind != HB_WORD_PAUSE)
            return false;
    }
    return false;
}

static struct hb_amount *place_of(struct hb_figures *f, int bits)
{
    return bits & FREES              ? &f->free
           : bits & (WANTS | WANTED) ? &f->wanted
           : bits & HOLDS            ? &f->held
           : bits & LIMITS           ? &f->limit
           : bits & TOTALS           ? &f->total
                                     : NULL;
}

/* Sums are not taken apart. */
static bool is_summed(const struct hb_sentence *l, int i)
{
    struct hb_span s = {l->word[i].span.end, l->span.end};
    struct hb_span before = {l->span.at, l->word[i].span.at};
    hb_span_skip(&s, " ");
    while (before.end > before.at && before.end[-1] == ' ')
        before.end--;
    return hb_span_starts(s, "+") || (before.end > before.at && before.end[-1] == '+');
}

/* "not enough memory for the buffer, 63.52GB > 55.54GB": wanted, and what there is. */
static void read_more(const struct hb_sentence *l, struct hb_figures *f)
{
    for (int i = 0; i + 2 < l->count && f->wanted.bytes < 0; i++) {
        const struct hb_word *wanted = &l->word[i], *there = &l->word[i + 2];
        bool more = l->word[i + 1].kind == HB_WORD_PAUSE && *l->word[i + 1].span.at == '>';
        if (!more || !wanted->has_unit || !there->has_unit ||
            wanted->amount.bytes <= there->amount.bytes)
            continue;
        f->wanted = wanted->amount;
        f->free = there->amount;
    }
}

/* "exceeded memory limit (52917772 > 20971520)"; Slurm counts in KiB. */
static void read_comparison(const struct hb_sentence *l, struct hb_figures *f)
{
    int64_t unit = hb_sentence_has_word(l, "slurmstepd") ? 1024 : 1;
    for (int i = 0; i + 1 < l->count && f->wanted.bytes < 0; i++) {
        int k = i + 1 < l->count && l->word[i + 1].kind == HB_WORD_PAUSE ? i + 2 : i + 1;
        if (k >= l->count || *l->word[k - 1].span.at != '>' ||
            hb_sentence_behind(l, i, 6, LIMITS) < 0)
            continue;
        int64_t used = l->word[i].amount.bytes;
        int64_t most = l->word[k].amount.bytes;
        if (used < LEAST || most < LEAST || l->word[i].has_unit || l->word[k].has_unit)
            continue;
        f->wanted = (struct hb_amount){hb_mul_sat(used, unit), unit};
        f->limit = (struct hb_amount){hb_mul_sat(most, unit), unit};
    }
}

/* "not enough space: expected 318080, got 314240" */
static void read_expected(const struct hb_sentence *l, struct hb_figures *f)
{
    for (int i = 0; i + 4 < l->count && f->wanted.bytes < 0; i++) {
        struct hb_amount wanted = l->word[i + 1].amount;
        struct hb_amount got = l->word[i + 4].amount;
        if (!hb_sentence_is(l, i, "expected") || !hb_sentence_is(l, i + 3, "got") ||
            wanted.bytes < LEAST || got.bytes < 0)
            continue;
        f->wanted = wanted;
        f->free = got;
    }
}

/* "limit_bytes=64MB ... sets the limit to ~120MB": which of them refused is not known. */
static bool limits_differ(const struct hb_sentence *l)
{
    int64_t first = -1;
    for (int i = 0; i < l->count; i++) {
        if (!l->word[i].has_unit || hb_sentence_behind(l, i, 2, LIMITS) < 0 ||
            hb_sentence_is(l, i - 1, "by")) /* "exceeded the limit by 5 MB" */
            continue;
        if (first >= 0 && l->word[i].amount.bytes != first)
            return true;
        first = l->word[i].amount.bytes;
    }
    return false;
}

/* "mem 38427376kb exceeded limit 33554432kb": the first is what was held. */
static bool exceeds(const struct hb_sentence *l, int i)
{
    return l->word[i].has_unit && i + 1 < l->count && l->bits[i + 1] & EXCEEDS &&
           hb_sentence_ahead(l, i + 1, 3, LIMITS) >= 0;
}

/* "alloc failed for span:128 (1792.00 MiB chunk)": the piece of memory that was refused. */
static bool is_piece(const struct hb_sentence *l, int i)
{
    enum { FAR = 10 };
    int alloc = hb_sentence_behind(l, i, FAR, ALLOCS);
    return l->word[i].has_unit && i + 1 < l->count && l->bits[i + 1] == THING && alloc >= 0 &&
           hb_sentence_ahead(l, alloc, 3, FAILS) >= 0;
}

/* What a number is that no word tells; NULL: it is not known. */
static struct hb_amount *untold_place_of(const struct hb_sentence *l, int i, struct hb_figures *f)
{
    return exceeds(l, i) ? &f->held : f->wanted.bytes < 0 && is_piece(l, i) ? &f->wanted : NULL;
}

struct hb_figures hb_figures_read(struct hb_sentence *l)
{
    struct hb_amount none = {-1, 1};
    struct hb_figures f = {none, none, none, none, none};
    struct hb_amount *last = NULL; /* what the number before was */
    read_comparison(l, &f);
    read_expected(l, &f);
    read_more(l, &f);
    for (int i = 0; i < l->count; i++) {
        if (l->word[i].kind != HB_WORD_NUMBER || l->word[i].amount.bytes < 0 || is_reckoned(l, i) ||
            is_option(l, i))
            continue;
        int told = meaning_of(l, i);
        bool share = is_share(l, i);
        bool of_wanted = last == &f.wanted; /* a share: "7.2 GB wanted of 4.2 GB" */
        last = NULL;
        struct hb_amount *untold = told < 0 ? untold_place_of(l, i, &f) : NULL;
        if (untold) {
            *untold = l->word[i].amount;
            continue;
        }
        if (!is_bytes(l, i, told) || is_summed(l, i) || (told < 0 && !share))
            continue;
        struct hb_amount *part = of_wanted && f.free.bytes < 0 ? &f.limit : &f.total;
        struct hb_amount *to = share ? part : place_of(&f, bits_at(l, told));
        last = to;
        if (!share)
            l->taken[told] = true;
        bool nothing = to == &f.wanted && !l->word[i].amount.bytes; /* nobody asks for nothing */
        if (to && to->bytes < 0 && !nothing)
            *to = l->word[i].amount;
    }
    if (limits_differ(l))
        f.limit = none;
    return f;
}
