/* Text or not: see utf8.h. The character set is c-printable of YAML 1.1 (section 5.1), which is
 * what libyaml accepts; it reports what it refuses without a line, so it is asked here first. */
#include "base/utf8.h"

#include <string.h>

static const uint64_t ONES = 0x0101010101010101u;
static const uint64_t HIGHS = 0x8080808080808080u;

/* Eight printable ASCII bytes: none below space, none above '~'. */
static bool plain_word(const char *text)
{
    uint64_t w;
    memcpy(&w, text, sizeof w);
    return ((w | (w - ONES * 0x20) | (w + ONES)) & HIGHS) == 0;
}

/* Length of the sequence at text and its code; 0: malformed. */
static size_t decode_char(const unsigned char *text, size_t len, uint32_t *out_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = text[0];
    size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (n == 0 || c > 0xf4 || n > len)
        return 0;
    uint32_t code = n == 1 ? c : c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *out_code = code;
    return n;
}

static bool printable(uint32_t code)
{
    if (code < 0x20)
        return code == '\t' || code == '\n' || code == '\r';
    if (code < 0xa0)
        return code < 0x7f || code == 0x85;
    return code != 0xfffe && code != 0xffff && code != 0xfeff;
}

/* The place of text[at], counting characters. */
static struct hb_loc place_of(struct hb_loc start, const char *text, size_t at)
{
    struct hb_loc loc = start;
    for (size_t i = 0; i < at; i++) {
        if (text[i] == '\n') {
            loc.line++;
            loc.column = 1;
        } else if (((unsigned char)text[i] & 0xc0) != 0x80) {
            loc.column++;
        }
    }
    return loc;
}

bool hb_utf8_check(struct hb_diag *diag, struct hb_loc start, const char *text, size_t len)
{
    size_t at = 0;
    while (at < len) {
        uint32_t code = 0;
        if (len - at >= 8 && plain_word(text + at)) {
            at += 8;
            continue;
        }
        size_t n = decode_char((const unsigned char *)text + at, len - at, &code);
        if (n && printable(code)) {
            at += n;
            continue;
        }
        struct hb_loc loc = place_of(start, text, at);
        if (!n)
            return hb_error(diag, loc, "byte 0x%02x is not UTF-8; only text is read",
                            (unsigned char)text[at]);
        return hb_error(diag, loc, "character U+%04X is not text; only text is read", code);
    }
    return true;
}

int hb_utf8_put(uint32_t code, char *text)
{
    unsigned char *out = (unsigned char *)text;
    if (code < 0x80) {
        out[0] = (unsigned char)code;
        return 1;
    }
    int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (unsigned char)((0xf0u << (4 - n)) | code);
    return n;
}

/* Whether a code of colour begins that hbmsim writes itself, as ESC [ 1 ; 32 m. */
static bool begins_colour(const char *text, size_t len)
{
    enum { LONGEST = 8 };
    int value = 0;
    if (len < 3 || text[0] != '\033' || text[1] != '[')
        return false;
    for (size_t i = 2; i < len && i < LONGEST; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            value = 10 * value + (text[i] - '0');
            continue;
        }
        if (value > 2 && (value < 30 || value > 37))
            return false;
        if (text[i] == 'm')
            return true;
        if (text[i] != ';')
            return false;
        value = 0;
    }
    return false;
}

/* Of a code of colour all but its first byte could stand anywhere. */
void hb_utf8_show(FILE *to, const char *text, size_t len, bool colours)
{
    for (size_t at = 0; at < len;) {
        uint32_t code = 0;
        size_t n = decode_char((const unsigned char *)text + at, len - at, &code);
        bool shown = n && printable(code) && code != '\r' && code != 0x85;
        size_t count = n ? n : 1;
        shown = shown || (colours && begins_colour(text + at, len - at));
        if (shown)
            fwrite(text + at, 1, count, to);
        for (size_t i = 0; i < count && !shown; i++)
            fprintf(to, "\\x%02x", (unsigned char)text[at + i]);
        at += count;
    }
}

void hb_utf8_vsay(FILE *to, const char *fmt, va_list ap)
{
    char text[4096];
    int len = vsnprintf(text, sizeof text, fmt, ap);
    if (len > 0)
        hb_utf8_show(to, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1, false);
}

void hb_utf8_say(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hb_utf8_vsay(to, fmt, ap);
    va_end(ap);
}
