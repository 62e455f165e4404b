/* Mending cairo's SVG: see svg.h. The scanner knows tags, quoted attribute values and numbers,
 * which is all that cairo writes. */
#include "plots/svg.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void hb_svg_escape(struct hb_str *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&')
            hb_str_add(out, "&amp;");
        else if (c == '<')
            hb_str_add(out, "&lt;");
        else if (c == '>')
            hb_str_add(out, "&gt;");
        else if (c == '"')
            hb_str_add(out, "&quot;");
        else
            hb_str_addn(out, c < 0x20 && c != '\n' && c != '\t' ? "?" : text, 1);
    }
}

/* "12.50" as "12.5", "-0.00" as "0". */
static void print_number(char text[64], double value, int decimals)
{
    snprintf(text, 64, "%.*f", decimals, value);
    char *end = text + strlen(text) - 1;
    while (decimals > 0 && *end == '0')
        *end-- = '\0';
    if (*end == '.')
        *end = '\0';
    if (strcmp(text, "-0") == 0)
        memcpy(text, "0", 2);
}

static void add_number(struct hb_str *out, double value, int decimals)
{
    char text[64];
    print_number(text, value, decimals);
    hb_str_add(out, text);
}

void hb_svg_text(struct hb_str *out, const char *text, struct hb_box box, struct hb_font font,
                 double ascent)
{
    double x = font.turned ? box.x + font.size * ascent : box.x;
    double y = font.turned ? box.y + box.h : box.y + font.size * ascent;
    hb_str_add(out, "<text");
    if (font.turned)
        hb_str_addf(out, " transform=\"translate(%.2f %.2f) rotate(-90)\"", x, y);
    else
        hb_str_addf(out, " x=\"%.2f\" y=\"%.2f\"", x, y);
    hb_str_addf(out, " font-size=\"%.2f\" textLength=\"%.2f\" lengthAdjust=\"spacingAndGlyphs\"",
                font.size, font.turned ? box.h : box.w);
    hb_str_addf(out, "%s fill=\"#%06x\">", font.bold ? " font-weight=\"bold\"" : "",
                (unsigned)font.rgb);
    hb_svg_escape(out, text);
    hb_str_add(out, "</text>\n");
}

struct names {
    struct hb_arena *arena;
    const char **items;
    uint32_t count;
    uint32_t cap;
};

static uint32_t find_name(struct names *names, const char *text, size_t len)
{
    for (uint32_t i = names->count; i-- > 0;)
        if (strlen(names->items[i]) == len && memcmp(names->items[i], text, len) == 0)
            return i;
    names->items =
        hb_grow(names->arena, names->items, names->count, &names->cap, sizeof names->items[0]);
    names->items[names->count] = hb_arena_strndup(names->arena, text, len);
    return names->count++;
}

/* If an id begins at text (in id="...", "#..." or url(#...)), its length; else 0. */
static size_t id_length(const char *start, const char *text)
{
    size_t before = (size_t)(text - start);
    bool id = before >= 5 && memcmp(text - 5, " id=\"", 5) == 0;
    bool link = before >= 2 && (memcmp(text - 2, "\"#", 2) == 0 || memcmp(text - 2, "(#", 2) == 0);
    return id || link ? strcspn(text, "\")") : 0;
}

static bool number_begins(const char *start, const char *text)
{
    bool digit = isdigit((unsigned char)*text) || (*text == '-' && isdigit((unsigned char)text[1]));
    return digit && text > start && !isalnum((unsigned char)text[-1]) && text[-1] != '.' &&
           text[-1] != '-' && text[-1] != '#';
}

/* --- paths --- */

struct path {
    struct hb_str *out;
    int decimals;
    char x[64]; /* where the pen is, as written */
    char y[64];
    bool closed;
};

static const char *read_number(const char *at, int decimals, char text[64])
{
    char *end;
    double value = strtod(at, &end);
    print_number(text, value, decimals);
    return end;
}

/* A line along an axis names one coordinate. */
static void add_line(struct path *p, const char *x, const char *y)
{
    if (strcmp(y, p->y) == 0)
        hb_str_addf(p->out, "H%s", x);
    else if (strcmp(x, p->x) == 0)
        hb_str_addf(p->out, "V%s", y);
    else
        hb_str_addf(p->out, "L%s %s", x, y);
}

static const char *copy_curve(struct path *p, const char *at)
{
    char text[64];
    hb_str_add(p->out, "C");
    for (int i = 0; i < 6; i++) {
        at = read_number(at, p->decimals, text);
        hb_str_addf(p->out, "%s%s", i ? " " : "", text);
        memcpy(i % 2 ? p->y : p->x, text, sizeof text);
    }
    return at;
}

static const char *copy_segment(struct path *p, char command, const char *at)
{
    char x[64], y[64];
    at = read_number(at, p->decimals, x);
    at = read_number(at, p->decimals, y);
    bool last = *(at + strspn(at, " ")) == '"';
    if (command == 'L')
        add_line(p, x, y);
    else if (!last || !p->closed) /* cairo moves once more after it has closed a path */
        hb_str_addf(p->out, "M%s %s", x, y);
    memcpy(p->x, x, sizeof x);
    memcpy(p->y, y, sizeof y);
    p->closed = false;
    return at;
}

/* The value of a d attribute, shortened: that is most of a picture's bytes. */
static const char *copy_path(const char *at, const struct hb_svg_form *form, struct hb_str *out)
{
    struct path p = {.out = out, .decimals = form->decimals};
    while (*at && *at != '"') {
        char command = *at++;
        if (command == 'M' || command == 'L') {
            at = copy_segment(&p, command, at);
        } else if (command == 'C') {
            at = copy_curve(&p, at);
        } else if (command == 'Z') {
            hb_str_add(out, "Z");
            p.closed = true;
        }
    }
    return at;
}

static bool path_begins(const char *start, const char *at)
{
    return at - start >= 4 && memcmp(at - 4, " d=\"", 4) == 0 && *at == 'M';
}

/* Copies one id, number or letter; returns what is left of the document. */
static const char *copy_plain(const char *start, const char *at, struct names *names,
                              const struct hb_svg_form *form, struct hb_str *out)
{
    size_t len = id_length(start, at);
    if (len) {
        hb_str_addf(out, "%s%u", form->prefix, find_name(names, at, len));
        return at + len;
    }
    if (number_begins(start, at)) {
        len = strspn(at + 1, "0123456789.") + 1;
        if (memchr(at, '.', len))
            add_number(out, strtod(at, NULL), form->decimals);
        else
            hb_str_addn(out, at, len);
        return at + len;
    }
    hb_str_addn(out, at, 1);
    return at + 1;
}

/* --- style --- */

/* What a style need not say: it is so without it. */
static bool says_nothing(const char *at, size_t len)
{
    static const char *const initial[] = {
        "stroke:none",         "fill-opacity:1",       "stroke-opacity:1", "fill-rule:nonzero",
        "stroke-linecap:butt", "stroke-miterlimit:10", /* of rounded joins, which have no mitre */
    };
    for (size_t i = 0; i < sizeof initial / sizeof initial[0]; i++)
        if (strlen(initial[i]) == len && memcmp(at, initial[i], len) == 0)
            return true;
    return false;
}

/* "fill:rgb(100%,0%,50%)" as "fill:#ff0080"; false: it is no such colour. */
static bool copy_colour(const char *at, size_t len, struct hb_str *out)
{
    const char *value = memchr(at, ':', len);
    if (!value || strncmp(value, ":rgb(", 5) != 0)
        return false;
    hb_str_addn(out, at, (size_t)(value + 1 - at));
    hb_str_add(out, "#");
    value += 5;
    for (int i = 0; i < 3; i++) {
        char *end;
        hb_str_addf(out, "%02x", (unsigned)lround(strtod(value, &end) * 2.55));
        value = end + strspn(end, "%, ");
    }
    return true;
}

static void copy_declaration(const char *start, const char *at, size_t len, struct names *names,
                             const struct hb_svg_form *form, struct hb_str *out)
{
    if (copy_colour(at, len, out))
        return;
    for (const char *end = at + len; at < end;)
        at = copy_plain(start, at, names, form, out);
}

static const char *copy_style(const char *start, const char *at, struct names *names,
                              const struct hb_svg_form *form, struct hb_str *out)
{
    size_t before = out->len;
    while (*at && *at != '"') {
        size_t len = strcspn(at, ";\"");
        if (len > 0 && !says_nothing(at, len)) {
            hb_str_add(out, out->len > before ? ";" : "");
            copy_declaration(start, at, len, names, form, out);
        }
        at += len;
        at += strspn(at, "; ");
    }
    return at;
}

static bool style_begins(const char *start, const char *at)
{
    return at - start >= 8 && memcmp(at - 8, " style=\"", 8) == 0;
}

/* --- the document --- */

static const char *copy_piece(const char *start, const char *at, struct names *names,
                              const struct hb_svg_form *form, struct hb_str *out)
{
    if (path_begins(start, at))
        return copy_path(at, form, out);
    if (style_begins(start, at))
        return copy_style(start, at + strspn(at, " "), names, form, out);
    return copy_plain(start, at, names, form, out);
}

static void open_root(struct hb_str *out, const char *title, bool texts)
{
    hb_str_addf(out, "<svg role=\"img\"%s",
                texts ? " font-family=\"DejaVu Sans, Verdana, sans-serif\"" : "");
    hb_str_add(out, " aria-label=\"");
    hb_svg_escape(out, title);
    hb_str_add(out, "\"");
}

void hb_svg_tidy(struct hb_arena *arena, const struct hb_str *raw, const struct hb_str *texts,
                 const struct hb_svg_form *form, struct hb_str *out)
{
    struct names names = {.arena = arena};
    const char *root = strstr(raw->text, "<svg");
    const char *head_end = strchr(root, '>') + 1;
    hb_str_addn(out, raw->text, (size_t)(root - raw->text));
    open_root(out, form->title, texts->len > 0);
    hb_str_addn(out, root + 4, (size_t)(head_end - root) - 4);
    hb_str_add(out, "\n<title>");
    hb_svg_escape(out, form->title);
    hb_str_add(out, "</title>");
    const char *end = raw->text + raw->len;
    const char *tail = end;
    while (tail > head_end && memcmp(tail, "</svg>", 6) != 0)
        tail--;
    for (const char *at = head_end; at < tail;)
        at = copy_piece(raw->text, at, &names, form, out);
    hb_str_addn(out, texts->text, texts->len);
    hb_str_add(out, "</svg>\n");
}

const char *hb_svg_inline(const char *svg)
{
    const char *root = strstr(svg, "<svg");
    return root ? root : svg;
}
