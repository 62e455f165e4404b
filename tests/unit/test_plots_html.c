/* The report without a browser: well-formed, closed in itself, and saying the figures. */
#include "tests/unit/unit.h"
#include "tests/unit/pictures.h"
#include "tests/prop/seed.h"

#include "base/json.h"
#include "plots/html.h"

static const char *write_report(struct hb_arena *a, uint64_t seed, struct hb_html *report)
{
    struct hb_rng rng = hb_rng_seed(seed);
    struct hb_outcome *o = hb_arena_alloc(a, 1, sizeof *o);
    struct hb_fit_map *m = hb_arena_alloc(a, 1, sizeof *m);
    struct hb_pareto *p = hb_arena_alloc(a, 1, sizeof *p);
    struct hb_tornado *t = hb_arena_alloc(a, 1, sizeof *t);
    struct hb_str html;
    hb_str_init(&html, a);
    *o = picture_outcome(a, &rng);
    *m = picture_map(a, &rng);
    *p = picture_pareto(a, &rng);
    *t = picture_tornado(a, &rng);
    *report = (struct hb_html){.outcome = o,
                               .sweep = seed % 4 == 1 ? NULL : m,
                               .plan = seed % 4 == 2 ? NULL : p,
                               .plan_note = "cut <off>",
                               .cut_note = "after 1 s, <so>",
                               .flags = {{"MaxText", "--x=<1> & \"y\""}},
                               .flag_count = 1,
                               .advise = seed % 4 == 3 ? NULL : t,
                               .device = "nvidia-h100 \xC3\x97 8",
                               .yaml = "model: {name: </pre><script>alert(1)</script>}",
                               .version = "9.9",
                               .trust = "first\n\nsecond",
                               .theme = (enum hb_html_theme)(seed % 3)};
    hb_html_write(a, report, &html);
    return html.text;
}

static bool is_void(const char *name, size_t len)
{
    static const char *const names[] = {"meta", "link", "input", NULL};
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* Every element that is opened is closed in order; scripts and styles are passed over. */
static void check_nesting(const char *html)
{
    struct {
        const char *name;
        size_t len;
    } open[64];
    int depth = 0;
    for (const char *at = strchr(html, '<'); at; at = strchr(at, '<')) {
        const char *end = strchr(at, '>');
        assert_non_null(end);
        bool closing = at[1] == '/';
        const char *name = at + 1 + closing;
        size_t len = strcspn(name, " >/\n");
        at++;
        if (*name == '!' || end[-1] == '/' || is_void(name, len))
            continue;
        if (closing) {
            assert_true(depth > 0);
            depth--;
            if (len != open[depth].len || memcmp(name, open[depth].name, len) != 0)
                fail_msg("<%.*s> is closed by </%.*s>", (int)open[depth].len, open[depth].name,
                         (int)len, name);
            continue;
        }
        assert_true(depth < 64);
        open[depth].name = name;
        open[depth++].len = len;
        if (len == 6 && memcmp(name, "script", 6) == 0)
            at = strstr(end, "</script>");
        else if (len == 5 && memcmp(name, "style", 5) == 0)
            at = strstr(end, "</style>");
    }
    assert_int_equal(depth, 0);
}

static void check_links(struct hb_arena *a, const char *html)
{
    for (const char *at = strstr(html, "href=\"#"); at; at = strstr(at + 1, "href=\"#")) {
        size_t len = strcspn(at + 7, "\"");
        const char *id = hb_arena_printf(a, "id=\"%.*s\"", (int)len, at + 7);
        if (!strstr(html, id))
            fail_msg("no %s", id);
    }
    for (const char *at = strstr(html, " id=\""); at; at = strstr(at + 1, " id=\"")) {
        const char *id = hb_arena_strndup(a, at, strcspn(at + 5, "\"") + 6);
        if (strstr(at + 1, id))
            fail_msg("%s is there twice", id);
    }
}

/* Nothing is fetched: the only addresses are names of XML namespaces. */
static void check_closed(const char *html)
{
    static const char *const banned[] = {"src=",   "@import", "url(http",
                                         "fetch(", "XMLHttp", "import("};
    for (size_t i = 0; i < sizeof banned / sizeof banned[0]; i++)
        assert_null(strstr(html, banned[i]));
    for (const char *at = strstr(html, "://"); at; at = strstr(at + 1, "://"))
        assert_true(memcmp(at, "://www.w3.org/", 14) == 0);
}

static void check_hover_data(struct unit *u, const char *html)
{
    int count = 0;
    for (const char *at = strstr(html, "data-for="); at; at = strstr(at + 1, "data-for=")) {
        const char *json = strchr(at, '>') + 1;
        const char *end = strstr(json, "</script>");
        struct hb_node *root;
        if (at[9] != '"')
            continue; /* the script that reads them */
        assert_true(hb_json_parse(u->env.arena, &u->diag, (struct hb_loc){"hover", 1, 1}, json,
                                  (size_t)(end - json), &root));
        assert_non_null(hb_node_find(root, "cells"));
        count++;
    }
    assert_true(count >= 4);
}

static void reports_are_whole(void **state)
{
    (void)state;
    for (uint64_t seed = prop_cases(24); seed > 0; seed--) {
        struct unit u;
        struct hb_html report;
        unit_start(&u);
        const char *html = write_report(u.env.arena, seed, &report);
        check_nesting(html);
        check_links(u.env.arena, html);
        check_closed(html);
        check_hover_data(&u, html);
        assert_null(strstr(html, "<script>alert"));
        assert_non_null(strstr(html, "name: &lt;/pre&gt;&lt;script&gt;alert(1)"));
        assert_non_null(strstr(html, "<p>first</p>\n<p>second</p>"));
        assert_true((strstr(html, "id=\"fitmap\"") != NULL) == (report.sweep != NULL));
        assert_true((strstr(html, "id=\"levers\"") != NULL) == (report.advise != NULL));
        assert_non_null(strstr(html, "id=\"plan\""));
        assert_non_null(strstr(html, "<p class=\"note\">cut &lt;off&gt;</p>"));
        const char *cut = strstr(html, "<strong>Cut off:</strong> after 1 s, &lt;so&gt;</p>");
        assert_true(cut && cut < strstr(html, "</header>"));
        assert_true((strstr(html, "id=\"plan-pic\"") != NULL) == (report.plan != NULL));
        assert_true(strlen(html) < 1500000); /* maps of noise: no two neighbours alike */
        unit_end(&u);
    }
}

static void the_table_has_every_byte(void **state)
{
    (void)state;
    struct unit u;
    struct hb_html report;
    unit_start(&u);
    const char *html = write_report(u.env.arena, 8, &report);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        int64_t bytes = report.outcome->category_bytes[c];
        const char *cell = hb_arena_printf(u.env.arena, "%s</td><td class=\"n\">",
                                           hb_category_name((enum hb_category)c));
        const char *at = strstr(html, cell);
        assert_true((at != NULL) == (bytes > 0));
        if (at)
            assert_non_null(strstr(at, hb_arena_printf(u.env.arena, ">%lld<", (long long)bytes)));
    }
    unit_end(&u);
}

static void same_report_each_time(void **state)
{
    (void)state;
    struct unit u;
    struct hb_html report;
    unit_start(&u);
    assert_string_equal(write_report(u.env.arena, 3, &report),
                        write_report(u.env.arena, 3, &report));
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_whole),
        cmocka_unit_test(the_table_has_every_byte),
        cmocka_unit_test(same_report_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
