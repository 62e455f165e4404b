/* See logline.h. What begins a message and what it surely has once it is whole is a table; a line
 * that has the first and not the second was broken somewhere: between words, or by a window's width
 * within one. The letters on both sides tell which, where together they are a word or a number. */
#include "sim/hlo/logline.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sim/hlo/logmeaning.h"

static const struct {
    const char *begin;
    const char *whole[4]; /* any of them */
} messages[] = {
    {"out of memory. Tried", {"unallocated", "by PyTorch)", "cached)", "1EB"}},
    {"Out of memory while trying", {"allocate "}},
    {"Ran out of memory in", {"Exceeded", "HLO temporaries", "capacity by"}},
    {"Scoped allocation with", {"limit "}},
    {"out of resource: shared memory,", {"imit: "}},
    {"xhausted: Out", {"allocate "}},
    {"ran out of memory trying to", {"allocate "}},
    {"iB. The caller", {"a failure"}},
    {"by_count=0. The caller", {"a failure"}},
    {"OOM when allocating tensor with shape", {"] and type ", "]"}},
    {"Attempting to reserve", {"reservable", " free;", " free."}},
    {"rror loading program", {"reservable", " free;", " free."}},
    {"Attempting to allocate", {" free"}},
    {"Can't reduce memory use", {"only reduced to "}},
    {"DefaultCPUAllocator:", {"bytes"}},
    {"alloc_buffer: allocating", {"failed"}},
    {"runtime: out of memory: cannot", {"block"}},
    {"o serve at least one request with", {" memory ("}},
    {"ut of memory: Killed process", {"anon-rss:", "oom_score"}},
    {"Free memory on device", {"desired GPU memory utilization ("}},
    {"Out of memory error on GPU", {"B."}},
    {"MPS backend out of memory", {"pool"}},
    {"ytes in memory 0x0x0_HBM", {"bytes available"}},
    {"EXHAUSTED: Could not allocate", {"bytes available", "."}},
    {"otal memory size:", {"Argument size: "}},
    {"otal estimated memory size:", {"Argument size: "}},
};

/* What stands for a character in HTML: "&gt;". Its length; 0: none. */
static size_t take_entity(struct hb_span s, char *out)
{
    static const char *const entities[] = {">&gt;", "<&lt;", "&&amp;", "\"&quot;", "'&#39;"};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (hb_span_starts(s, entities[i] + 1)) {
            *out = *entities[i];
            return strlen(entities[i] + 1);
        }
    return 0;
}

size_t hb_log_line_plain(char *line, size_t len)
{
    enum { ESC = 0x1b };
    if (!memchr(line, ESC, len) && !memchr(line, '&', len))
        return len;
    char *to = line, *end = line + len;
    for (const char *at = line; at < end; to++) {
        size_t entity = *at == '&' ? take_entity((struct hb_span){at, end}, to) : 0;
        if (entity) {
            at += entity;
        } else if (*at != ESC || end - at < 2 || at[1] != '[') {
            *to = *at++;
        } else {
            for (at += 2; at < end && (*at < '@' || *at > '~'); at++)
                continue;
            at += at < end;
            to--;
        }
    }
    return (size_t)(to - line);
}

static bool is_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static size_t span_length(struct hb_span s)
{
    return (size_t)(s.end - s.at);
}

/* ---- text that was cut to a width ---- */

enum { WIDTH_LEAST = 72, WIDTH_MOST = 250, FOLDS = 3, ALIKE = 3 };

/* A line's end within a text: no border's of a table. */
static bool is_within(char c)
{
    return isalnum((unsigned char)c) || strchr(" .,:;()[]<>_/\"'", c);
}

/* The first line of text; text goes behind it. */
static struct hb_span take_text_line(struct hb_span *text)
{
    struct hb_span line = *text;
    char *cut = memchr(text->at, '\n', (size_t)(text->end - text->at));
    line.end = cut ? cut : text->end;
    text->at = cut ? cut + 1 : text->end;
    line.end -= line.end > line.at && line.end[-1] == '\r';
    return line;
}

bool hb_log_is_folded(struct hb_span line, struct hb_span next, size_t width)
{
    return width && (size_t)(line.end - line.at) == width && next.end - next.at >= ALIKE &&
           is_within(line.end[-1]) && is_within(*next.at) && memcmp(line.at, next.at, ALIKE) != 0;
}

/* ---- what stands before a program's line ---- */

/* Behind what the pattern matches at the front of s; null: it does not. A # stands for digits, an @
 * for what is no blank, a blank for any number of them. */
static const char *match_front(struct hb_span s, const char *pattern)
{
    for (; *pattern; pattern++) {
        const char *first = s.at;
        if (*pattern == '#')
            hb_span_skip(&s, "0123456789");
        else if (*pattern == '@')
            while (s.at < s.end && *s.at != ' ' && *s.at != pattern[1])
                s.at++;
        else if (*pattern == ' ')
            hb_span_skip(&s, " ");
        else
            s.at += s.at < s.end && *s.at == *pattern;
        if (s.at == first && *pattern != '@')
            return NULL;
    }
    return s.at;
}

/* Whether a front that begins so may begin with a pattern's first character. */
static bool may_begin(char c, char pattern)
{
    return pattern == c || pattern == '@' || (pattern == '#' && isdigit((unsigned char)c));
}

struct hb_span hb_log_line_bare(struct hb_span line)
{
    static const char *const fronts[] = {
        "> ",          /* a quote */
        "{\"log\":\"", /* Docker's files */
        "[rank#]: ",   /* torchrun */
        "[rank#]:",
        "(@ pid=#, ip=@) ",       /* Ray */
        "#-#-#T#:#:#@ stdout @ ", /* Kubernetes */
        "#-#-#T#:#:#@ stderr @ ",
        "#-#-#T#:#:#@ ",
        "@ # #:#:# @ @[#]: ", /* journald */
        "@-# | ",             /* docker compose */
    };
    const char *front = line.at;
    while (front) {
        struct hb_span inner = {front, line.end};
        line.at = front;
        hb_span_skip(&inner, " ");
        front = NULL;
        char c = inner.at < inner.end ? *inner.at : '\0';
        for (size_t i = 0; i < sizeof fronts / sizeof *fronts && !front; i++)
            if (may_begin(c, *fronts[i]))
                front = match_front(inner, fronts[i]);
    }
    return line;
}

/* How far a text tells the message that begins in it. */
enum told {
    TOLD_WHOLE, /* to its end; or none begins */
    TOLD_PART,
    TOLD_NUMBER /* to a number, which may go on */
};

/* "1.9", "1.97", "1.97G": no more than that. */
static bool is_number(struct hb_span s)
{
    hb_span_skip(&s, " ");
    const char *first = s.at;
    hb_span_skip(&s, "0123456789.,");
    bool digits = s.at > first;
    hb_span_skip(&s, "KMGTiB");
    hb_span_skip(&s, " ");
    return digits && s.at == s.end;
}

/* "(rounded to 1980539" */
static bool has_open_bracket(struct hb_span s, int open)
{
    for (; s.at < s.end; s.at++)
        open += *s.at == '(' ? 1 : *s.at == ')' && open ? -1 : 0;
    return open > 0;
}

/* Behind words that end in a blank or a colon a figure is to come. */
static enum told told_behind(const char *words, struct hb_span behind)
{
    char last = words[strlen(words) - 1];
    if (has_open_bracket(behind, last == '('))
        return TOLD_PART;
    if (!strchr(" :", last))
        return TOLD_WHOLE;
    hb_span_skip(&behind, " ");
    return behind.at == behind.end ? TOLD_PART : is_number(behind) ? TOLD_NUMBER : TOLD_WHOLE;
}

static enum told find_told(struct hb_span text)
{
    enum { WHOLE = sizeof messages[0].whole / sizeof *messages[0].whole };
    enum told told = TOLD_WHOLE;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        struct hb_span rest = text;
        enum told one = TOLD_PART;
        if (!hb_span_find(&rest, messages[i].begin))
            continue;
        for (int w = 0; w < WHOLE && messages[i].whole[w] && one == TOLD_PART; w++) {
            struct hb_span behind = rest;
            if (hb_span_find(&behind, messages[i].whole[w]))
                one = told_behind(messages[i].whole[w], behind);
        }
        if (one == TOLD_PART)
            return TOLD_PART;
        told = one == TOLD_NUMBER ? one : told;
    }
    return told;
}

bool hb_log_line_is_cut(struct hb_span line)
{
    return line.end - line.at < HB_LOG_JOINED_CAP / 2 && find_told(line) != TOLD_WHOLE;
}

/* ---- whether a line ends within a word ---- */

/* A word of what messages begin with, any case. */
static bool is_first_word(const char *lower, size_t len)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const char *text = messages[i].begin;
        for (size_t k = strcspn(text, " "); text[k];
             k += strcspn(text + k, " "), k += text[k] == ' ')
            if (strncasecmp(text + k, lower, len) == 0 && !isalpha((unsigned char)text[k + len]))
                return true;
    }
    return false;
}

/* A word of messages: one that means something, a unit, or one of these. */
static bool is_word(const char *text, size_t len)
{
    static const char *const words[] = {
        "already", "and",     "are", "attempting", "float", "gb",    "gib",
        "in",      "is",      "kb",  "kib",        "mb",    "mib",   "on",
        "out",     "pytorch", "ran", "reservable", "rss",   "there", "utilization"};
    char lower[HB_MEANING_WORD];
    if (len >= sizeof lower)
        return false;
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    lower[len] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(lower, words[i]) == 0)
            return true;
    return hb_meaning_of(lower) != 0 || is_first_word(lower, len);
}

/* What stands on both sides of a line's end. */
enum seam { SEAM_OTHER, SEAM_WORDS, SEAM_WORD };

/* "allo" and "cate": a word together, and not two by themselves. */
static enum seam find_seam(struct hb_span a, struct hb_span b)
{
    char both[2 * HB_MEANING_WORD];
    struct hb_span tail = {a.end, a.end}, head = {b.at, b.at};
    while (tail.at > a.at && isalpha((unsigned char)tail.at[-1]))
        tail.at--;
    while (head.end < b.end && isalpha((unsigned char)*head.end))
        head.end++;
    size_t left = (size_t)(tail.end - tail.at), right = (size_t)(head.end - head.at);
    if (!left || !right || left + right > sizeof both)
        return SEAM_OTHER;
    memcpy(both, tail.at, left);
    memcpy(both + left, head.at, right);
    if (is_word(both, left) && is_word(both + left, right))
        return SEAM_WORDS;
    return is_word(both, left + right) ? SEAM_WORD : SEAM_OTHER;
}

/* "GiB (", "G" */
static bool is_unit(struct hb_span s)
{
    const char *first = s.at;
    hb_span_skip(&s, "KMGTib");
    hb_span_skip(&s, "Bytes");
    return s.at > first && (s.at == s.end || !isalnum((unsigned char)*s.at));
}

/* "1.9" and "7GiB", "21107" and "83616 bytes": what follows the digits is no date's or time's. */
static bool is_number_broken(struct hb_span a, struct hb_span b)
{
    bool dot = a.end > a.at && a.end[-1] == '.';
    const char *last = dot ? a.end - 1 : a.end;
    if (last == a.at || !isdigit((unsigned char)last[-1]))
        return false;
    if (!dot && b.at < b.end && *b.at == '.')
        b.at++;
    const char *first = b.at;
    hb_span_skip(&b, "0123456789.,");
    bool blank = b.at < b.end && *b.at == ' ';
    hb_span_skip(&b, " ");
    char next = b.at < b.end ? *b.at : ';';
    bool ends = is_of(next, "KMGTBb") || (!blank && is_of(next, ";)]kmg"));
    return b.at > first && isdigit((unsigned char)*first) && ends;
}

/* ---- text that was wrapped between words ---- */

enum { WRAP_LEAST = 60, WRAP_MOST = 130, HEAD = 4 };

static struct hb_span trim_end(struct hb_span line)
{
    while (line.end > line.at && is_of(line.end[-1], " \t"))
        line.end--;
    return line;
}

/* Several words. */
static bool is_text(struct hb_span line)
{
    hb_span_skip(&line, " \t");
    return memchr(line.at, ' ', (size_t)(line.end - line.at));
}

enum wrap { WRAP_NONE, WRAP_HERE, WRAP_EARLY };

/* Whether a sentence that ends at the line's end was broken there: what is next begins with a word,
 * no key and no head of its own, that had no room any more; early: it had. */
static enum wrap find_wrap(struct hb_span line, struct hb_span next, size_t width)
{
    struct hb_span word = next;
    while (word.at < word.end && !is_of(*word.at, " \r\n"))
        word.at++;
    size_t len = span_length(line), first = (size_t)(word.at - next.at);
    if (!first || !is_text(line) || *line.at == '#' || is_of(line.end[-1], ".:!?{;`(_") ||
        !(isalnum((unsigned char)*next.at) || is_of(*next.at, "\"'(`")) || word.at[-1] == ':' ||
        (isdigit((unsigned char)*next.at) && memchr(next.at, '-', first)) ||
        memchr(next.at, '=', first) ||
        (next.end - next.at >= HEAD && memcmp(line.at, next.at, HEAD) == 0))
        return WRAP_NONE;
    if (len == width && (find_seam(line, next) == SEAM_WORD || is_number_broken(line, next)))
        return WRAP_NONE; /* by a window */
    return len + 1 + first > width ? WRAP_HERE : WRAP_EARLY;
}

/* What the lines of a text are as wide as. */
struct extent {
    size_t longest; /* line that has ended */
    int times;      /* that one so long ends within a text */
    size_t told;    /* the longest without the blanks at its end, of several words */
    size_t widest;  /* with them */
};

static struct extent extent_of(struct hb_span text)
{
    struct extent e = {0, 0, 0, 0};
    while (text.at < text.end) {
        struct hb_span line = take_text_line(&text);
        struct hb_span told = trim_end(line);
        size_t len = span_length(line);
        e.told = span_length(told) > e.told && is_text(told) ? span_length(told) : e.told;
        e.widest = len > e.widest ? len : e.widest;
        if (text.at[-1] != '\n') /* the last may be cut */
            break;
        if (len && is_within(line.end[-1]))
            e.times = len > e.longest ? 1 : e.times + (len == e.longest);
        e.longest = len > e.longest ? len : e.longest;
    }
    return e;
}

static size_t fold_of(const struct extent *e)
{
    bool known = e->longest == 80 || e->longest == 100 || e->longest == 120;
    bool cut = e->longest >= WIDTH_LEAST && e->longest <= WIDTH_MOST && e->times >= FOLDS - known;
    return cut ? e->longest : 0;
}

/* More of its lines end where the next word had no room than before. */
static size_t wrap_of(struct hb_span text, const struct extent *e)
{
    int here = 0, early = 0, full = 0, ragged = 0;
    if (e->told < WRAP_LEAST || e->told > WRAP_MOST)
        return 0;
    while (text.at < text.end) {
        struct hb_span line = take_text_line(&text);
        enum wrap wrap = find_wrap(trim_end(line), text, e->told);
        bool begins = text.at < text.end && isupper((unsigned char)*text.at); /* maybe a sentence */
        full += span_length(line) == e->widest;
        ragged += wrap == WRAP_HERE && span_length(line) < e->widest;
        here += wrap == WRAP_HERE && !begins;
        early += wrap == WRAP_EARLY && !begins;
    }
    bool by_window = full > 1 && !ragged; /* all of one width: it looks at no words */
    return here > early && !by_window ? e->told : 0;
}

struct hb_log_widths hb_log_widths_of(struct hb_span text)
{
    struct extent e = extent_of(text);
    size_t fold = fold_of(&e);
    return (struct hb_log_widths){fold, fold ? 0 : wrap_of(text, &e)};
}

bool hb_log_is_wrapped(struct hb_span line, struct hb_span next, size_t width)
{
    return width && find_wrap(trim_end(line), next, width) == WRAP_HERE;
}

/* ---- messages of several lines ---- */

/* Without the border that a terminal's window drew: whether there was one. */
static bool trim_border(struct hb_span *s)
{
    static const char border[] = "\u2502"; /* a vertical line */
    size_t len = sizeof border - 1;
    if (s->end > s->at && s->end[-1] == '$')
        s->end--;
    bool found = (size_t)(s->end - s->at) >= len && memcmp(s->end - len, border, len) == 0;
    if (found)
        s->end -= len;
    return found;
}

void hb_log_line_begin(struct hb_log_joined *j, struct hb_span before, struct hb_span line)
{
    j->alike = before.end - before.at == line.end - line.at;
    j->bordered = trim_border(&line);
    j->first_len = j->len = (size_t)(line.end - line.at);
    j->lines = j->narrow = 0;
    memcpy(j->text, line.at, j->len);
}

/* Behind the last blank of what the line and the first line begin with alike. */
static const char *skip_prefix(const struct hb_log_joined *j, struct hb_span line)
{
    const char *behind = line.at;
    for (size_t i = 0; i < j->first_len && line.at + i < line.end && line.at[i] == j->text[i]; i++)
        if (line.at[i] == ' ')
            behind = line.at + i + 1;
    return behind;
}

/* Whether the line goes on where the text ends, with no blank between. */
static bool goes_on(const struct hb_log_joined *j, struct hb_span line)
{
    struct hb_span text = {j->text, j->text + j->len};
    enum seam seam = find_seam(text, line);
    bool by_window = j->alike && !j->narrow; /* but for the last, maybe */
    char last = text.end > text.at ? text.end[-1] : ' ',
         first = line.at < line.end ? *line.at : ' ';
    bool within = by_window && seam != SEAM_WORDS && isalpha((unsigned char)last) &&
                  isalpha((unsigned char)first);
    return is_of(last, "(_") || is_of(first, ")_:") || within || seam == SEAM_WORD ||
           is_number_broken(text, line);
}

/* Behind the text, without the prefix that it shares with the first line. */
static bool add_line(struct hb_log_joined *j, struct hb_span line)
{
    bool number = find_told((struct hb_span){j->text, j->text + j->len}) == TOLD_NUMBER;
    bool wide = line.end > line.at && line.end - line.at == (ptrdiff_t)j->first_len;
    bool padded = j->bordered || (!j->lines && wide && line.end[-1] == ' ');
    j->alike += wide;
    j->bordered = trim_border(&line);
    line.at = skip_prefix(j, line);
    bool on = padded || goes_on(j, line);
    j->narrow += !wide;
    if (!on)
        hb_span_skip(&line, " \t");
    while (!j->bordered && line.end > line.at && line.end[-1] == '\r')
        line.end--;
    while (!j->bordered && line.end - line.at > 1 && line.end[-1] == ' ' && line.end[-2] == ' ')
        line.end--; /* the last one tells that no word is broken */
    size_t len = (size_t)(line.end - line.at);
    bool ended = number && !on && !is_unit(line) && !hb_span_starts(line, "(");
    if (!len || len + 1 > HB_LOG_JOINED_CAP - j->len || ended)
        return false;
    while (!on && j->len && (j->text[j->len - 1] == ' ' || j->text[j->len - 1] == '\r'))
        j->len--;
    if (!on)
        j->text[j->len++] = ' ';
    memcpy(j->text + j->len, line.at, len);
    j->len += len;
    j->lines++;
    return true;
}

bool hb_log_line_add(struct hb_log_joined *j, struct hb_span line)
{
    struct hb_span text = {j->text, j->text + j->len};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (hb_span_has(line, messages[i].begin) && hb_span_has(text, messages[i].begin))
            return false;
    return add_line(j, line);
}

/* Whether one line's last letter and the other's first stand so in the words that a message begins
 * with, a blank between them or none: cheap, and true of few lines. */
static bool may_be_broken(char last, char first)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        const char *text = messages[i].begin;
        for (size_t k = 1; text[k]; k++)
            if (text[k] == first &&
                (text[k - 1] == last || (text[k - 1] == ' ' && k > 1 && text[k - 2] == last)))
                return true;
    }
    return false;
}

bool hb_log_line_begin_both(struct hb_log_joined *j, struct hb_span before, struct hb_span line)
{
    struct hb_span head = line, none = {NULL, NULL};
    const char *last = before.end;
    while (last > before.at && (last[-1] == ' ' || last[-1] == '\r'))
        last--;
    j->len = 0;
    if (last == before.at || before.end - before.at >= HB_LOG_JOINED_CAP / 2 ||
        line.end - line.at >= HB_LOG_JOINED_CAP / 2)
        return false;
    hb_log_line_begin(j, none, before);
    head.at = skip_prefix(j, line);
    hb_span_skip(&head, " \t");
    bool any = false;
    if (head.at < head.end && may_be_broken(last[-1], *head.at) && add_line(j, line)) {
        struct hb_span text = {j->text, j->text + j->len};
        for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
            any = any || (hb_span_has(text, messages[i].begin) &&
                          !hb_span_has(before, messages[i].begin) &&
                          !hb_span_has(line, messages[i].begin));
    }
    if (!any)
        j->len = 0;
    return any;
}

bool hb_log_line_is_done(const struct hb_log_joined *j)
{
    return j->lines >= HB_LOG_JOINED_LINES ||
           find_told((struct hb_span){j->text, j->text + j->len}) == TOLD_WHOLE;
}
