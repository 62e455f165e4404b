/* See logline.h. What begins a message and what it surely has once it is whole is a table; a line
 * that has the first and not the second was broken somewhere. */
#include "sim/hlo/logline.h"

#include <string.h>

static const struct {
    const char *begin;
    const char *whole[4]; /* any of them */
} messages[] = {
    {"out of memory. Tried", {"unallocated", "by PyTorch)", "cached)", "1EB"}},
    {"Out of memory while trying", {"allocate "}},
    {"Ran out of memory in", {"Exceeded", "HLO temporaries", "capacity by"}},
    {"xhausted: Out", {"allocate "}},
    {"ran out of memory trying to", {"allocate "}},
    {"OOM when allocating tensor with shape", {"["}},
    {"Attempting to reserve ", {"reservable", " free;", " free."}},
    {"Attempting to allocate ", {" free"}},
    {"Can't reduce memory use", {"only reduced to "}},
    {"DefaultCPUAllocator: ", {"bytes"}},
    {"o serve at least one request with", {" memory ("}},
    {"Out of memory: Killed process ", {"-rss", "oom_score"}},
    {"Free memory on device", {"utilization (0.", "utilization (1"}},
    {"Out of memory error on GPU", {"B."}},
    {"otal memory size:", {"Argument size: "}},
    {"otal estimated memory size:", {"Argument size: "}},
};

size_t hb_log_line_plain(char *line, size_t len)
{
    enum { ESC = 0x1b };
    const char *esc = memchr(line, ESC, len), *end = line + len;
    if (!esc)
        return len;
    char *to = line + (esc - line);
    for (const char *at = esc; at < end;) {
        if (*at != ESC || end - at < 2 || at[1] != '[') {
            *to++ = *at++;
            continue;
        }
        for (at += 2; at < end && (*at < '@' || *at > '~'); at++)
            continue;
        at += at < end;
    }
    return (size_t)(to - line);
}

/* Which message begins in the text and is not whole; -1: none. */
static int find_cut(struct hb_span text)
{
    enum { WHOLE = sizeof messages[0].whole / sizeof *messages[0].whole };
    for (int i = 0; i < (int)(sizeof messages / sizeof *messages); i++) {
        struct hb_span rest = text;
        bool whole = false;
        if (!hb_span_find(&rest, messages[i].begin))
            continue;
        for (int w = 0; w < WHOLE && messages[i].whole[w]; w++)
            whole = whole || hb_span_has(rest, messages[i].whole[w]);
        if (!whole)
            return i;
    }
    return -1;
}

bool hb_log_line_is_cut(struct hb_span line)
{
    return line.end - line.at < HB_LOG_JOINED_CAP / 2 && find_cut(line) >= 0;
}

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

void hb_log_line_begin(struct hb_log_joined *j, struct hb_span line)
{
    j->bordered = trim_border(&line);
    j->first_len = j->len = (size_t)(line.end - line.at);
    j->lines = 0;
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

bool hb_log_line_add(struct hb_log_joined *j, struct hb_span line)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (hb_span_has(line, messages[i].begin))
            return false;
    bool padded = line.end - line.at == (ptrdiff_t)j->first_len && line.end[-1] == ' ';
    bool goes_on = j->bordered || (!j->lines && padded); /* both as wide as the window */
    j->bordered = trim_border(&line);
    line.at = skip_prefix(j, line);
    if (!goes_on)
        hb_span_skip(&line, " \t");
    while (!j->bordered && line.end > line.at && (line.end[-1] == ' ' || line.end[-1] == '\r'))
        line.end--;
    size_t len = (size_t)(line.end - line.at);
    if (!len || len + 1 > HB_LOG_JOINED_CAP - j->len)
        return false;
    while (!goes_on && j->len && (j->text[j->len - 1] == ' ' || j->text[j->len - 1] == '\r'))
        j->len--;
    if (!goes_on)
        j->text[j->len++] = ' ';
    memcpy(j->text + j->len, line.at, len);
    j->len += len;
    j->lines++;
    return true;
}

bool hb_log_line_is_done(const struct hb_log_joined *j)
{
    return j->lines >= HB_LOG_JOINED_LINES ||
           find_cut((struct hb_span){j->text, j->text + j->len}) < 0;
}
