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
    size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || n > len)
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
