/* The files of pictures: same bytes each time, whole, of the size asked, without dates; and the
 * work of plots/svg and of the fallback of fonts. */
#include "tests/unit/unit.h"
#include "tests/unit/pictures.h"

#include <time.h>

#include "plots/svg.h"

static struct hb_str draw_file(struct hb_arena *a, enum hb_picture_kind kind, enum hb_format format,
                               const struct hb_look *look)
{
    struct hb_rng rng = hb_rng_seed(77 + (uint64_t)kind);
    struct hb_picture p = picture_random(a, &rng, kind);
    struct hb_str bytes;
    hb_str_init(&bytes, a);
    hb_canvas_finish(hb_picture_draw(a, &p, look, format), &bytes);
    return bytes;
}

static bool holds(const struct hb_str *s, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i + len <= s->len; i++)
        if (memcmp(s->text + i, text, len) == 0)
            return true;
    return false;
}

/* Other pictures are drawn in between, so that nothing counted over the process can show. */
static void same_bytes_each_time(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 480, .height = 320, .scale = 1};
    for (int kind = 0; kind < HB_PICTURE_COUNT; kind++)
        for (int format = 0; format < HB_FORMAT_NONE; format++) {
            struct hb_str first =
                draw_file(a, (enum hb_picture_kind)kind, (enum hb_format)format, &look);
            draw_file(a, HB_PICTURE_FIT, HB_FORMAT_SVG, &look);
            struct hb_str again =
                draw_file(a, (enum hb_picture_kind)kind, (enum hb_format)format, &look);
            assert_true(first.len > 500);
            assert_int_equal(first.len, again.len);
            assert_memory_equal(first.text, again.text, first.len);
        }
    hb_arena_free(a);
}

static void themes_differ(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 480, .height = 320, .theme = HB_THEME_LIGHT};
    struct hb_str light = draw_file(a, HB_PICTURE_TIMELINE, HB_FORMAT_SVG, &look);
    look.theme = HB_THEME_DARK;
    struct hb_str dark = draw_file(a, HB_PICTURE_TIMELINE, HB_FORMAT_SVG, &look);
    assert_true(holds(&light, "fill:#ffffff"));
    assert_true(strcmp(light.text, dark.text) != 0);
    hb_arena_free(a);
}

static uint32_t big_endian(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void png_has_the_size_asked(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 300, .height = 200, .scale = 2.5};
    struct hb_str png = draw_file(a, HB_PICTURE_FIT, HB_FORMAT_PNG, &look);
    assert_memory_equal(png.text, "\x89PNG\r\n\x1a\n", 8);
    assert_int_equal(big_endian(png.text + 16), 750);
    assert_int_equal(big_endian(png.text + 20), 500);
    assert_false(holds(&png, "tIME") || holds(&png, "tEXt"));
    hb_arena_free(a);
}

static void pdf_has_no_date_of_its_own(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 300, .height = 200};
    struct hb_str pdf = draw_file(a, HB_PICTURE_LOAD, HB_FORMAT_PDF, &look);
    assert_memory_equal(pdf.text, "%PDF-", 5);
    assert_true(holds(&pdf, "%%EOF"));
    assert_true(holds(&pdf, "[ 0 0 300 200 ]"));
    const char *date = "/CreationDate (";
    int dates = 0;
    for (size_t i = 0; i + 40 < pdf.len; i++)
        if (memcmp(pdf.text + i, date, strlen(date)) == 0) {
            assert_memory_equal(pdf.text + i + strlen(date), "20000101000000Z", 15);
            dates++;
        }
    assert_true(dates <= 1);
    assert_false(holds(&pdf, "/ModDate"));
    hb_arena_free(a);
}

/* Every id is there once, begins with the prefix, and every reference has its id. */
static void svg_ids_are_the_pages_own(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 400, .height = 300, .id_prefix = "zz"};
    struct hb_str svg = draw_file(a, HB_PICTURE_TIMELINE, HB_FORMAT_SVG, &look);
    int ids = 0;
    for (const char *at = strstr(svg.text, " id=\""); at; at = strstr(at + 1, " id=\"")) {
        ids++;
        assert_memory_equal(at + 5, "zz", 2);
        const char *id = hb_arena_strndup(a, at, strcspn(at + 5, "\"") + 6);
        assert_null(strstr(at + 1, id));
    }
    assert_true(ids > 3);
    for (const char *at = strstr(svg.text, "#zz"); at; at = strstr(at + 1, "#zz")) {
        const char *id = hb_arena_printf(a, " id=\"%.*s\"", (int)strcspn(at + 1, "\")"), at + 1);
        assert_non_null(strstr(svg.text, id));
    }
    assert_null(strstr(svg.text, "surface"));
    hb_arena_free(a);
}

static void svg_numbers_are_short(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_str raw, texts, out;
    hb_str_init(&raw, a);
    hb_str_init(&texts, a);
    hb_str_init(&out, a);
    hb_str_add(&raw, "<?xml version=\"1.0\"?>\n<svg width=\"10px\" version=\"1.1\">"
                     "<g id=\"surface7\"><path d=\"M 1.234567 -0.000001 L 12.500000 3 L 12.5 7 "
                     "L 4.25 7 C 1 2 3 4 5.125 6 Z M 1.234567 -0.000001 \" "
                     "fill=\"rgb(33.333333%,0%,100%)\"/><use xlink:href=\"#glyph0-1\"/></g></svg>");
    hb_svg_text(&texts, "a<b", (struct hb_box){1, 2, 30, 10}, (struct hb_font){.size = 10}, 0.9);
    struct hb_svg_form form = {"p", "t & u", 2};
    hb_svg_tidy(a, &raw, &texts, &form, &out);
    assert_non_null(strstr(out.text, " d=\"M1.23 0L12.5 3V7H4.25C1 2 3 4 5.12 6Z\""));
    assert_non_null(strstr(out.text, "rgb(33.33%,0%,100%)"));
    assert_non_null(strstr(out.text, "<g id=\"p0\">"));
    assert_non_null(strstr(out.text, "#p1\""));
    assert_non_null(strstr(out.text, "<title>t &amp; u</title>"));
    assert_non_null(strstr(out.text, "version=\"1.1\""));
    assert_non_null(strstr(out.text, ">a&lt;b</text>\n</svg>"));
    assert_true(hb_str_starts(hb_svg_inline(out.text), "<svg"));
    hb_arena_free(a);
}

static void live_text_stays_text(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 960, .height = 560, .live_text = true};
    struct hb_str live = draw_file(a, HB_PICTURE_LOAD, HB_FORMAT_SVG, &look);
    look.live_text = false;
    struct hb_str drawn = draw_file(a, HB_PICTURE_LOAD, HB_FORMAT_SVG, &look);
    assert_non_null(strstr(live.text, ">processes</text>"));
    assert_null(strstr(drawn.text, "<text"));
    assert_true(live.len < drawn.len);
    hb_arena_free(a);
}

static double width_of(struct hb_draw *d, const char *text, double size)
{
    return hb_draw_text_width(d, text, (struct hb_font){.size = size});
}

/* Widths are linear in size and the same in all formats; a letter that no font has still takes
 * room, and bytes that are no text count as '?'. */
static void text_is_measured(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    double widths[HB_FORMAT_COUNT];
    for (int format = 0; format < HB_FORMAT_COUNT; format++) {
        struct hb_str none;
        hb_str_init(&none, a);
        struct hb_draw *d = hb_draw_new(
            a, &(struct hb_draw_setup){
                   .format = (enum hb_format)format, .width = 100, .height = 100, .scale = 3});
        widths[format] = width_of(d, "peak 76.8 GiB", 12);
        assert_true(fabs(width_of(d, "peak 76.8 GiB", 24) - 2 * widths[format]) < 0.01);
        assert_true(width_of(d, "\xE6\xBC\xA2", 12) > 3);      /* a Chinese letter */
        assert_true(width_of(d, "\xF3\xB0\x80\x80x", 12) > 6); /* of no font */
        assert_true(fabs(width_of(d, "a\xFF", 12) - width_of(d, "a?", 12)) < 1e-9);
        assert_true(fabs(width_of(d, "a\nb", 12) - width_of(d, "a?b", 12)) < 1e-9);
        assert_true(width_of(d, "", 12) == 0);
        hb_draw_text(d, "\xE6\xBC\xA2 \xFF ok", (struct hb_box){10, 10, 50, 20},
                     (struct hb_font){.size = 10, .turned = true});
        hb_draw_finish(d, &none);
    }
    for (int format = 1; format < HB_FORMAT_COUNT; format++)
        assert_true(widths[format] == widths[0]);
    hb_arena_free(a);
}

static void a_font_that_is_not_there_is_replaced(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_look look = {.width = 400, .height = 300, .font = "No Such Family 123"};
    struct hb_str svg = draw_file(a, HB_PICTURE_LOAD, HB_FORMAT_SVG, &look);
    assert_true(svg.len > 1000);
    hb_arena_free(a);
}

/* A map of 100 x 100 in every format within 200 ms, on the machine of the one who asks; under
 * the sanitizers it is only drawn. */
static void a_large_map_is_fast(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    struct hb_fit_map m = {.name = "", .budget_bytes = INT64_C(80) << 30, .facet_count = 1};
    struct hb_fit_axis *axes[2] = {&m.x, &m.y};
    for (int i = 0; i < 2; i++) {
        axes[i]->key = i ? "batch.seq" : "batch.global";
        axes[i]->count = 100;
        axes[i]->text = hb_arena_alloc(a, 100, sizeof(char *));
        axes[i]->value = hb_arena_alloc(a, 100, sizeof(double));
        for (int k = 0; k < 100; k++) {
            axes[i]->value[k] = 8 * (k + 1);
            axes[i]->text[k] = hb_arena_printf(a, "%d", 8 * (k + 1));
        }
        axes[i]->raw = axes[i]->text;
    }
    m.cells = hb_arena_alloc(a, 10000, sizeof *m.cells);
    for (int i = 0; i < 10000; i++)
        m.cells[i].peak_bytes = (INT64_C(30) << 20) * (1 + i % 100) * (1 + i / 100);
    m.best = 4321;
    struct hb_picture p = {.kind = HB_PICTURE_FIT, .fit = m};
    for (int format = 0; format < HB_FORMAT_COUNT; format++) {
        struct hb_look look = {.width = 960, .height = 560, .scale = 2};
        struct hb_str bytes;
        hb_str_init(&bytes, a);
        clock_t start = clock();
        hb_canvas_finish(hb_picture_draw(a, &p, &look, (enum hb_format)format), &bytes);
        double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
        print_message("100 x 100 as %s: %.0f ms, %zu bytes\n",
                      hb_format_name((enum hb_format)format), ms, bytes.len);
#ifdef NDEBUG
        assert_true(ms < 200);
#endif
    }
    hb_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_each_time),
        cmocka_unit_test(themes_differ),
        cmocka_unit_test(png_has_the_size_asked),
        cmocka_unit_test(pdf_has_no_date_of_its_own),
        cmocka_unit_test(svg_ids_are_the_pages_own),
        cmocka_unit_test(svg_numbers_are_short),
        cmocka_unit_test(live_text_stays_text),
        cmocka_unit_test(text_is_measured),
        cmocka_unit_test(a_font_that_is_not_there_is_replaced),
        cmocka_unit_test(a_large_map_is_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
