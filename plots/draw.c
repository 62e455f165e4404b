/* Cairo's surfaces behind plain calls: see draw.h. Text is set glyph by glyph with metrics that
 * are not hinted, so that a label is as wide in a PNG as in an SVG. cairo 1.16 counts the ids of
 * SVG surfaces over the whole process and dates a PDF: plots/svg.c and the fixed date mend that. */
#include "plots/draw.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/owned.h"
#include "plots/svg.h"
#include "plots/trace.h"

/* Tried in this order; fontconfig puts the system's sans where a family is not installed, and
 * cairo a font of its own where there is no font at all. */
static const char *const fallbacks[] = {HB_DRAW_FONT, "Noto Sans", "Noto Sans CJK SC",
                                        "sans-serif"};

/* Fontconfig keeps what cairo's cache of fonts holds behind offsets instead of pointers, which the
 * leak checker cannot follow: it lasts as long as the process. */
#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

static const double pi = 3.14159265358979323846;

enum { FONT_COUNT = 1 + sizeof fallbacks / sizeof fallbacks[0], SIZE_CACHE = 24 };

struct sized_font {
    cairo_scaled_font_t *font;
    double size;
    int family;
    bool bold;
};

struct hb_draw {
    struct hb_arena *arena;
    struct hb_draw_setup setup;
    cairo_surface_t *surface;
    cairo_t *cr;
    struct hb_str bytes;
    struct hb_str texts; /* SVG with live text: the elements, in order */
    struct hb_owned owned;
    cairo_font_face_t *faces[FONT_COUNT][2];
    struct sized_font cache[SIZE_CACHE];
    int cache_next;
};

static cairo_status_t take_bytes(void *closure, const unsigned char *data, unsigned int length)
{
    if (!hb_str_reserve(closure, length))
        return CAIRO_STATUS_NO_MEMORY;
    hb_str_addn(closure, (const char *)data, length);
    return CAIRO_STATUS_SUCCESS;
}

static void check_cairo(const struct hb_draw *d, cairo_status_t status)
{
    (void)d;
    if (status == CAIRO_STATUS_NO_MEMORY)
        hb_die("out of memory while drawing");
    if (status != CAIRO_STATUS_SUCCESS)
        HB_BUG("cairo: %s", cairo_status_to_string(status));
}

static cairo_surface_t *make_pdf(struct hb_draw *d)
{
    const struct hb_draw_setup *s = &d->setup;
    cairo_surface_t *surface =
        cairo_pdf_surface_create_for_stream(take_bytes, &d->bytes, s->width, s->height);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, s->title);
    cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
    return surface;
}

static cairo_surface_t *make_surface(struct hb_draw *d)
{
    const struct hb_draw_setup *s = &d->setup;
    cairo_surface_t *surface = NULL;
    switch (s->format) {
    case HB_FORMAT_SVG:
        surface = cairo_svg_surface_create_for_stream(take_bytes, &d->bytes, s->width, s->height);
        cairo_svg_surface_set_document_unit(surface, CAIRO_SVG_UNIT_PX);
        break;
    case HB_FORMAT_PDF:
        surface = make_pdf(d);
        break;
    case HB_FORMAT_PNG:
        surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)lround(s->width * s->scale),
                                             (int)lround(s->height * s->scale));
        break;
    case HB_FORMAT_NONE:
    case HB_FORMAT_COUNT:
        surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1, 1);
        break;
    }
    return surface;
}

static void make_faces(struct hb_draw *d)
{
    for (int i = 0; i < FONT_COUNT; i++)
        for (int bold = 0; bold < 2; bold++) {
            const char *family = i == 0 ? d->setup.font : fallbacks[i - 1];
            d->faces[i][bold] = cairo_toy_font_face_create(family, CAIRO_FONT_SLANT_NORMAL,
                                                           bold ? CAIRO_FONT_WEIGHT_BOLD
                                                                : CAIRO_FONT_WEIGHT_NORMAL);
        }
}

/* What is cairo's; what was not made yet is null. */
static void free_cairo(void *draw)
{
    struct hb_draw *d = draw;
    cairo_destroy(d->cr);
    cairo_surface_destroy(d->surface);
    for (int i = 0; i < SIZE_CACHE; i++)
        if (d->cache[i].font)
            cairo_scaled_font_destroy(d->cache[i].font);
    for (int i = 0; i < FONT_COUNT; i++)
        for (int bold = 0; bold < 2; bold++)
            cairo_font_face_destroy(d->faces[i][bold]);
}

struct hb_draw *hb_draw_new(struct hb_arena *arena, const struct hb_draw_setup *setup)
{
    struct hb_draw *d = hb_arena_alloc(arena, 1, sizeof *d);
    d->arena = arena;
    d->setup = *setup;
    d->setup.font = setup->font ? setup->font : HB_DRAW_FONT;
    d->setup.title = setup->title ? setup->title : "";
    d->setup.id_prefix = setup->id_prefix ? setup->id_prefix : "g";
    d->setup.scale = setup->scale > 0 ? setup->scale : 1;
    hb_str_init(&d->bytes, arena);
    hb_str_init(&d->texts, arena);
    hb_own(&d->owned, free_cairo, d);
    d->surface = make_surface(d);
    check_cairo(d, cairo_surface_status(d->surface));
    d->cr = cairo_create(d->surface);
    if (setup->format == HB_FORMAT_PNG)
        cairo_scale(d->cr, d->setup.scale, d->setup.scale);
    cairo_set_line_join(d->cr, CAIRO_LINE_JOIN_ROUND);
    make_faces(d);
    hb_draw_box(d, (struct hb_box){0, 0, setup->width, setup->height}, setup->back);
    return d;
}

void hb_draw_finish(struct hb_draw *d, struct hb_str *out)
{
    enum hb_format format = d->setup.format;
    check_cairo(d, cairo_status(d->cr));
    cairo_destroy(d->cr);
    d->cr = NULL;
    if (format == HB_FORMAT_PNG)
        check_cairo(d, cairo_surface_write_to_png_stream(d->surface, take_bytes, &d->bytes));
    cairo_surface_finish(d->surface);
    check_cairo(d, cairo_surface_status(d->surface));
    hb_disown(&d->owned);
    free_cairo(d);
    struct hb_svg_form form = {d->setup.id_prefix, d->setup.title, d->setup.live_text ? 1 : 2};
    if (format == HB_FORMAT_SVG)
        hb_svg_tidy(d->arena, &d->bytes, &d->texts, &form, out);
    else if (format != HB_FORMAT_NONE)
        hb_str_addn(out, d->bytes.text, d->bytes.len);
}

static void set_colour(struct hb_draw *d, uint32_t rgb, double alpha)
{
    double r = ((rgb >> 16) & 0xFF) / 255.0;
    double g = ((rgb >> 8) & 0xFF) / 255.0;
    double b = (rgb & 0xFF) / 255.0;
    if (alpha < 1)
        cairo_set_source_rgba(d->cr, r, g, b, alpha);
    else
        cairo_set_source_rgb(d->cr, r, g, b);
}

static void set_pen(struct hb_draw *d, struct hb_pen pen)
{
    double dash[2] = {pen.width * 4, pen.width * 2.5};
    set_colour(d, pen.rgb, 1);
    cairo_set_line_width(d->cr, pen.width);
    cairo_set_dash(d->cr, dash, pen.dashed ? 2 : 0, 0);
}

static void path_box(struct hb_draw *d, struct hb_box box)
{
    cairo_rectangle(d->cr, box.x, box.y, box.w, box.h);
}

void hb_draw_add_box(struct hb_draw *d, struct hb_box box)
{
    struct hb_point corners[4] = {{box.x, box.y},
                                  {box.x + box.w, box.y},
                                  {box.x + box.w, box.y + box.h},
                                  {box.x, box.y + box.h}};
    path_box(d, box);
    hb_trace_area(d->setup.trace, corners, 4);
}

void hb_draw_add_area(struct hb_draw *d, const struct hb_point *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        cairo_line_to(d->cr, points[i].x, points[i].y);
    cairo_close_path(d->cr);
    hb_trace_area(d->setup.trace, points, count);
}

void hb_draw_fill(struct hb_draw *d, uint32_t rgb, double alpha)
{
    set_colour(d, rgb, alpha);
    cairo_fill(d->cr);
    hb_trace_fill(d->setup.trace, rgb, alpha);
}

void hb_draw_box(struct hb_draw *d, struct hb_box box, uint32_t rgb)
{
    hb_draw_add_box(d, box);
    hb_draw_fill(d, rgb, 1);
}

void hb_draw_frame(struct hb_draw *d, struct hb_box box, struct hb_pen pen)
{
    struct hb_point corners[5] = {{box.x, box.y},
                                  {box.x + box.w, box.y},
                                  {box.x + box.w, box.y + box.h},
                                  {box.x, box.y + box.h},
                                  {box.x, box.y}};
    set_pen(d, pen);
    path_box(d, box);
    cairo_stroke(d->cr);
    for (int i = 0; i < 4; i++)
        hb_trace_line(d->setup.trace, corners[i], corners[i + 1], pen);
}

void hb_draw_line(struct hb_draw *d, struct hb_point a, struct hb_point b, struct hb_pen pen)
{
    struct hb_point ends[2] = {a, b};
    hb_draw_path(d, ends, 2, pen);
}

void hb_draw_path(struct hb_draw *d, const struct hb_point *points, uint32_t count,
                  struct hb_pen pen)
{
    set_pen(d, pen);
    for (uint32_t i = 0; i < count; i++)
        cairo_line_to(d->cr, points[i].x, points[i].y);
    cairo_stroke(d->cr);
    for (uint32_t i = 0; i + 1 < count; i++)
        hb_trace_line(d->setup.trace, points[i], points[i + 1], pen);
}

void hb_draw_segments(struct hb_draw *d, const struct hb_point *points, uint32_t count,
                      struct hb_pen pen)
{
    set_pen(d, pen);
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        cairo_move_to(d->cr, points[i].x, points[i].y);
        cairo_line_to(d->cr, points[i + 1].x, points[i + 1].y);
        hb_trace_line(d->setup.trace, points[i], points[i + 1], pen);
    }
    cairo_stroke(d->cr);
}

void hb_draw_hatch(struct hb_draw *d, struct hb_box box, double gap, struct hb_pen pen)
{
    cairo_save(d->cr);
    path_box(d, box);
    cairo_clip(d->cr);
    set_pen(d, pen);
    int count = (int)ceil((box.w + box.h) / gap);
    for (int i = 0; i < count; i++) {
        double x = box.x - box.h + i * gap;
        cairo_move_to(d->cr, x, box.y + box.h);
        cairo_line_to(d->cr, x + box.h, box.y);
    }
    cairo_stroke(d->cr);
    cairo_restore(d->cr); /* within an outer clip, which stays */
    hb_trace_box(d->setup.trace, HB_TRACED_HATCH, box, pen.rgb, NULL);
}

/* Corners of each mark, in halves of its width; a disc has none. */
static const struct hb_point corners[HB_MARK_COUNT][4] = {
    [HB_MARK_SQUARE] = {{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
    [HB_MARK_DIAMOND] = {{0, -1.2}, {1.2, 0}, {0, 1.2}, {-1.2, 0}},
    [HB_MARK_TRIANGLE] = {{0, -1.15}, {1.1, 0.85}, {-1.1, 0.85}, {-1.1, 0.85}},
};

static void paint_mark(struct hb_draw *d, struct hb_point at, double reach, uint32_t rgb,
                       uint32_t edge)
{
    struct hb_box box = {at.x - reach, at.y - reach, 2 * reach, 2 * reach};
    cairo_close_path(d->cr);
    set_colour(d, rgb, 1);
    cairo_fill_preserve(d->cr);
    set_pen(d, (struct hb_pen){edge, 0.8, false});
    cairo_stroke(d->cr);
    hb_trace_box(d->setup.trace, HB_TRACED_MARK, box, rgb, NULL);
}

void hb_draw_mark(struct hb_draw *d, struct hb_point at, enum hb_mark mark, double radius,
                  uint32_t rgb, uint32_t edge)
{
    cairo_new_path(d->cr);
    if (mark == HB_MARK_DISC)
        cairo_arc(d->cr, at.x, at.y, radius, 0, 2 * pi);
    else
        for (int i = 0; i < 4; i++)
            cairo_line_to(d->cr, at.x + corners[mark][i].x * radius,
                          at.y + corners[mark][i].y * radius);
    paint_mark(d, at, radius, rgb, edge);
}

void hb_draw_star(struct hb_draw *d, struct hb_point at, double radius, uint32_t rgb, uint32_t edge)
{
    cairo_new_path(d->cr);
    for (int i = 0; i < 10; i++) {
        double reach = i % 2 ? radius * 0.45 : radius;
        cairo_line_to(d->cr, at.x + reach * sin(i * pi / 5), at.y - reach * cos(i * pi / 5));
    }
    paint_mark(d, at, radius, rgb, edge);
}

void hb_draw_clip(struct hb_draw *d, struct hb_box box)
{
    cairo_save(d->cr);
    path_box(d, box);
    cairo_clip(d->cr);
    hb_trace_clip(d->setup.trace, &box);
}

void hb_draw_unclip(struct hb_draw *d)
{
    cairo_restore(d->cr);
    hb_trace_clip(d->setup.trace, NULL);
}

static cairo_scaled_font_t *make_scaled(cairo_font_face_t *face, double size)
{
    cairo_matrix_t em;
    cairo_matrix_t page;
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_matrix_init_scale(&em, size, size);
    cairo_matrix_init_identity(&page);
    cairo_scaled_font_t *font = cairo_scaled_font_create(face, &em, &page, options);
    cairo_font_options_destroy(options);
    return font;
}

static cairo_scaled_font_t *find_font(struct hb_draw *d, int family, double size, bool bold)
{
    for (int i = 0; i < SIZE_CACHE; i++) {
        const struct sized_font *f = &d->cache[i];
        if (f->font && f->size == size && f->family == family && f->bold == bold)
            return f->font;
    }
    struct sized_font *f = &d->cache[d->cache_next++ % SIZE_CACHE];
    if (f->font)
        cairo_scaled_font_destroy(f->font);
    *f = (struct sized_font){make_scaled(d->faces[family][bold], size), size, family, bold};
    check_cairo(d, cairo_scaled_font_status(f->font));
    return f->font;
}

/* A stretch of glyphs from one font; its x positions count from the text's start. */
struct run {
    int family;
    cairo_glyph_t *glyphs;
    int count;
    double advance;
};

static bool shape_run(cairo_scaled_font_t *font, const char *text, int len, struct run *out)
{
    out->glyphs = NULL;
    out->count = 0;
    cairo_status_t status = cairo_scaled_font_text_to_glyphs(font, 0, 0, text, len, &out->glyphs,
                                                             &out->count, NULL, NULL, NULL);
    if (status != CAIRO_STATUS_SUCCESS)
        return false;
    cairo_text_extents_t extents;
    cairo_scaled_font_glyph_extents(font, out->glyphs, out->count, &extents);
    out->advance = extents.x_advance;
    return true;
}

static bool has_all_glyphs(const struct run *run)
{
    for (int i = 0; i < run->count; i++)
        if (run->glyphs[i].index == 0)
            return false;
    return true;
}

/* Bytes of the UTF-8 letter at text, at least 1; text was made valid by clean_text. */
static int letter_bytes(const char *text)
{
    int n = 1;
    while (((unsigned char)text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

typedef void run_fn(struct hb_draw *d, const struct run *run, void *closure);

/* Letter by letter, each from the first font that has it; from the first font if none has. */
static void walk_letters(struct hb_draw *d, const char *text, struct hb_font f, run_fn *fn,
                         void *closure)
{
    for (int n; *text; text += n) {
        struct run run = {0};
        n = letter_bytes(text);
        for (int family = 0; family <= FONT_COUNT; family++) {
            cairo_glyph_free(run.glyphs);
            run.family = family % FONT_COUNT;
            cairo_scaled_font_t *font = find_font(d, run.family, f.size, f.bold);
            if (!shape_run(font, text, n, &run))
                HB_BUG("cannot set a letter of %d bytes", n);
            if (has_all_glyphs(&run))
                break;
        }
        fn(d, &run, closure);
        cairo_glyph_free(run.glyphs);
    }
}

static void walk_runs(struct hb_draw *d, const char *text, struct hb_font f, run_fn *fn,
                      void *closure)
{
    struct run run = {0};
    if (!*text)
        return;
    bool shaped = shape_run(find_font(d, 0, f.size, f.bold), text, (int)strlen(text), &run);
    if (shaped && has_all_glyphs(&run))
        fn(d, &run, closure);
    else
        walk_letters(d, text, f, fn, closure);
    cairo_glyph_free(run.glyphs);
}

/* Bytes of a well-formed letter at text, or 0. Cairo refuses the rest of a text after a bad one. */
static int good_letter(const unsigned char *t)
{
    int n = t[0] < 0x80 ? 1 : t[0] >= 0xC2 && t[0] < 0xE0 ? 2 : t[0] < 0xF0 ? 3 : 4;
    if (t[0] >= 0x80 && (t[0] < 0xC2 || t[0] > 0xF4))
        return 0;
    for (int i = 1; i < n; i++)
        if ((t[i] & 0xC0) != 0x80)
            return 0;
    bool low = (t[0] == 0xE0 && t[1] < 0xA0) || (t[0] == 0xF0 && t[1] < 0x90);
    bool high = (t[0] == 0xED && t[1] > 0x9F) || (t[0] == 0xF4 && t[1] > 0x8F);
    return low || high ? 0 : n;
}

/* The text itself if it is clean; else a copy with '?' for bad bytes and control characters. */
static const char *clean_text(struct hb_draw *d, const char *text)
{
    const char *bad = text;
    while (*bad && (unsigned char)*bad >= 0x20 && good_letter((const unsigned char *)bad))
        bad += good_letter((const unsigned char *)bad);
    if (!*bad)
        return text;
    char *copy = hb_arena_strdup(d->arena, text);
    for (unsigned char *c = (unsigned char *)copy; *c;) {
        int n = *c < 0x20 ? 0 : good_letter(c);
        if (n == 0)
            *c = '?';
        c += n ? n : 1;
    }
    return copy;
}

static void add_advance(struct hb_draw *d, const struct run *run, void *closure)
{
    (void)d;
    *(double *)closure += run->advance;
}

double hb_draw_text_width(struct hb_draw *d, const char *text, struct hb_font font)
{
    double width = 0;
    walk_runs(d, clean_text(d, text), font, add_advance, &width);
    return width;
}

/* Of DejaVu Sans: ascent 0.928, descent 0.236 of the em (its hhea table); other fonts' accents
 * may reach a little beyond. */
static const double ascent = 0.928;
static const double descent = 0.236;

double hb_draw_line_height(const struct hb_draw *d, double size)
{
    (void)d;
    return size * (ascent + descent);
}

struct setting {
    struct hb_point at;
    struct hb_font font;
};

static void show_run(struct hb_draw *d, const struct run *run, void *closure)
{
    struct setting *s = closure;
    for (int i = 0; i < run->count; i++) {
        run->glyphs[i].x += s->at.x;
        run->glyphs[i].y += s->at.y;
    }
    cairo_set_scaled_font(d->cr, find_font(d, run->family, s->font.size, s->font.bold));
    cairo_show_glyphs(d->cr, run->glyphs, run->count);
    s->at.x += run->advance;
}

/* Turned text is drawn in a turned page; cairo makes the scaled font anew for it. */
static void show_turned(struct hb_draw *d, const char *text, struct hb_point at,
                        struct hb_font font)
{
    cairo_save(d->cr);
    cairo_translate(d->cr, at.x, at.y);
    cairo_rotate(d->cr, -pi / 2);
    struct setting s = {{0, 0}, font};
    walk_runs(d, text, font, show_run, &s);
    cairo_restore(d->cr);
}

void hb_draw_text(struct hb_draw *d, const char *text, struct hb_box box, struct hb_font font)
{
    text = clean_text(d, text);
    hb_trace_box(d->setup.trace, HB_TRACED_TEXT, box, font.rgb, text);
    if (d->setup.format == HB_FORMAT_NONE)
        return;
    if (d->setup.live_text && d->setup.format == HB_FORMAT_SVG) {
        hb_svg_text(&d->texts, text, box, font, ascent);
        return;
    }
    set_colour(d, font.rgb, 1);
    if (font.turned) {
        show_turned(d, text, (struct hb_point){box.x + font.size * ascent, box.y + box.h}, font);
        return;
    }
    struct setting s = {{box.x, box.y + font.size * ascent}, font};
    walk_runs(d, text, font, show_run, &s);
}

static const char *const format_names[] = {
#define HB_ENUM(name, text) text,
    HB_FORMATS(HB_ENUM)
#undef HB_ENUM
};

const char *hb_format_name(enum hb_format format)
{
    return format_names[format];
}
