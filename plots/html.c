/* Writing the report: see html.h. */
#include "plots/html.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "plots/addressmap.h"
#include "plots/breakdown.h"
#include "plots/fit.h"
#include "plots/html_hover.h"
#include "plots/stepview.h"
#include "plots/svg.h"

enum { PAGE_WIDTH = 1020, NARROW_WIDTH = 380, NARROW_EM = 10, MOST_TENSORS = 250 };

struct page {
    struct hb_arena *arena;
    const struct hb_html *r;
    struct hb_str *out;
    bool hinted; /* how to read single values is said once */
};

static void put(struct page *p, const char *html)
{
    hb_str_add(p->out, html);
}

static void put_text(struct page *p, const char *text)
{
    hb_svg_escape(p->out, text);
}

static const char *bytes_text(struct page *p, int64_t bytes)
{
    char text[HB_TICK_TEXT];
    return hb_arena_strdup(p->arena, hb_unit_print(HB_UNIT_BYTES, (double)bytes, text));
}

static const char *seconds_text(struct page *p, double seconds)
{
    char text[HB_TICK_TEXT];
    return hb_arena_strdup(p->arena, hb_unit_print(HB_UNIT_SECONDS, seconds, text));
}

static void open_section(struct page *p, const char *id, const char *title)
{
    hb_str_addf(p->out, "<section id=\"%s\"><h2>%s</h2>\n", id, title);
}

static void close_section(struct page *p)
{
    put(p, "</section>\n");
}

/* JSON into a script element: no '<' of it may end the element. */
static void put_json(struct page *p, const struct hb_str *json)
{
    for (size_t i = 0; i < json->len; i++) {
        if (json->text[i] == '<')
            hb_str_add(p->out, "\\u003c");
        else
            hb_str_addn(p->out, &json->text[i], 1);
    }
}

/* A picture of the page: drawn for a wide page and again for a phone, where style shows the one. */
struct figure {
    const char *id;
    const char *prefix; /* of the ids inside of the wide one; of the narrow one: upper case */
    const char *title;
    double height; /* on the wide page ... */
    double narrow; /* ... and on the narrow one */
    void (*draw)(struct hb_canvas *c, const void *what);
    const void *what;
    bool timeline;
};

static struct hb_canvas *draw_figure(const struct page *p, const struct figure *figure, bool narrow,
                                     enum hb_theme theme)
{
    const char prefix[] = {(char)(figure->prefix[0] - (narrow ? 'a' - 'A' : 0)),
                           theme == HB_THEME_DARK ? 'd' : 'l', '\0'};
    struct hb_look look = {.theme = theme,
                           .width = narrow ? NARROW_WIDTH : PAGE_WIDTH,
                           .height = narrow ? figure->narrow : figure->height,
                           .em = narrow ? NARROW_EM : 0,
                           .id_prefix = hb_arena_strdup(p->arena, prefix),
                           .live_text = true};
    struct hb_canvas *c = hb_canvas_new(p->arena, &look, HB_FORMAT_SVG, figure->title);
    figure->draw(c, figure->what);
    return c;
}

static enum hb_theme first_theme(const struct page *p)
{
    return p->r->theme == HB_HTML_DARK ? HB_THEME_DARK : HB_THEME_LIGHT;
}

static void put_svg(struct page *p, struct hb_canvas *c)
{
    struct hb_str svg;
    hb_str_init(&svg, p->arena);
    hb_canvas_finish(c, &svg);
    put(p, hb_svg_inline(svg.text));
}

/* In both themes where the reader's system chooses, of which style shows one. */
static struct hb_canvas *put_themes(struct page *p, const struct figure *figure, bool narrow)
{
    struct hb_canvas *first = draw_figure(p, figure, narrow, first_theme(p));
    if (p->r->theme != HB_HTML_AUTO) {
        put_svg(p, first);
        return first;
    }
    put(p, "<div class=\"lit\">");
    put_svg(p, first);
    put(p, "</div><div class=\"dim\">");
    put_svg(p, draw_figure(p, figure, narrow, HB_THEME_DARK));
    put(p, "</div>");
    return first;
}

/* The picture with its hover data, as a figure that can take the keyboard's focus. */
static void put_picture(struct page *p, const struct figure *figure)
{
    struct hb_str json;
    hb_str_init(&json, p->arena);
    hb_str_addf(p->out,
                "<figure><div class=\"pic\" id=\"%s-pic\" tabindex=\"0\" role=\"group\" "
                "aria-label=\"",
                figure->id);
    put_text(p, figure->title);
    put(p, "; left and right arrow keys tell its parts\">\n");
    struct hb_canvas *c = put_themes(p, figure, false);
    put(p, "</div><div class=\"thin\">");
    put_themes(p, figure, true);
    put(p, "</div>");
    if (!p->hinted)
        put(p, "<figcaption class=\"hint\">Point at a picture, or focus it and use the arrow keys, "
               "to read single values.</figcaption>");
    p->hinted = true;
    put(p, "</figure>\n");
    hb_html_hover(c, figure->timeline ? p->r->outcome : NULL, &json);
    hb_str_addf(p->out, "<script type=\"application/json\" data-for=\"%s-pic\">", figure->id);
    put_json(p, &json);
    put(p, "</script>\n");
}

static void put_figure(struct page *p, const char *name, const char *value)
{
    put(p, "<div><dt>");
    put(p, name);
    put(p, "</dt><dd>");
    put_text(p, value);
    put(p, "</dd></div>\n");
}

static void put_figures(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    char text[HB_TICK_TEXT];
    put(p, "<dl class=\"figures\">\n");
    put_figure(p, "peak of a device", bytes_text(p, o->peak_bytes));
    if (o->high_bytes > 0)
        put_figure(p,
                   hb_arena_printf(p->arena, "%.3g %% of %lld records like this",
                                   100 * o->confidence, (long long)o->records),
                   hb_arena_printf(p->arena, "%s to %s", bytes_text(p, o->low_bytes),
                                   bytes_text(p, o->high_bytes)));
    if (o->budget_bytes > 0) {
        int64_t left = o->budget_bytes - o->peak_bytes;
        put_figure(p, "budget", bytes_text(p, o->budget_bytes));
        put_figure(p, left < 0 ? "lacking" : "free", bytes_text(p, left < 0 ? -left : left));
    }
    if (o->step_seconds > 0)
        put_figure(p, "step time", seconds_text(p, o->step_seconds));
    if (o->tokens_per_second > 0)
        put_figure(p, "tokens a second", hb_arena_printf(p->arena, "%.0f", o->tokens_per_second));
    if (o->mfu > 0)
        put_figure(p, "MFU", hb_unit_print(HB_UNIT_PERCENT, o->mfu * 100, text));
    put_figure(p, "arguments", bytes_text(p, o->argument_bytes));
    put_figure(p, "temporaries", bytes_text(p, o->temp_bytes));
    if (o->host_bytes > 0)
        put_figure(p, "host memory", bytes_text(p, o->host_bytes));
    put(p, "</dl>\n");
}

/* What a plan would make of it, in a sentence. */
static void put_faster(struct page *p)
{
    const struct hb_pareto *plan = p->r->plan;
    const struct hb_outcome *o = p->r->outcome;
    if (!plan || plan->plan == HB_NONE || o->step_seconds <= 0)
        return;
    double change = 100 * (plan->points[plan->plan].step_seconds / o->step_seconds - 1);
    hb_str_addf(p->out, "<p>The <a href=\"#plan\">plan</a> fits and takes %s a step, ",
                seconds_text(p, plan->points[plan->plan].step_seconds));
    if (fabs(change) < 0.05)
        put(p, "as long as this.</p>\n");
    else
        hb_str_addf(p->out, "%.1f %% %s.</p>\n", fabs(change), change < 0 ? "less" : "more");
}

static void put_header(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    const char *verdict = hb_outcome_verdict(p->arena, o);
    put(p, "<header><p class=\"sub\">");
    put_text(p, o->name);
    if (*p->r->device) {
        put(p, *o->name ? " \xC2\xB7 " : "");
        put_text(p, p->r->device);
    }
    static const char *const classes[] = {"", " tight", " no"};
    static const char *const words[] = {"fits", "may not fit", "does not fit"};
    enum hb_verdict word = hb_outcome_word(o);
    hb_str_addf(p->out, "</p>\n<p><span class=\"badge%s\">%s</span></p><h1>", classes[word],
                o->budget_bytes == 0 ? "no budget" : words[word]);
    put_text(p, verdict);
    put(p, "</h1>\n");
    if (*o->peak_at) {
        put(p, "<p class=\"sub\">Highest in: ");
        put_text(p, o->peak_at);
        put(p, "</p>\n");
    }
    if (p->r->cut_note) {
        put(p, "<p class=\"cut\"><strong>Cut off:</strong> ");
        put_text(p, p->r->cut_note);
        put(p, "</p>\n");
    }
    put_faster(p);
    put_figures(p);
    put(p, "</header>\n");
}

static void put_link(struct page *p, const char *id, const char *text, bool there)
{
    if (there)
        hb_str_addf(p->out, "<li><a href=\"#%s\">%s</a></li>", id, text);
}

static void put_nav(struct page *p)
{
    const struct hb_html *r = p->r;
    put(p, "<nav aria-label=\"sections\"><ul>");
    put_link(p, "breakdown", "Breakdown", true);
    put_link(p, "timeline", "Timeline", r->outcome->sample_count > 0);
    put_link(p, "heap", "Heap", r->outcome->buffer_count > 0);
    put_link(p, "fitmap", "Fit map", r->sweep || r->sweep_note);
    put_link(p, "plan", "Plan", r->plan || r->plan_note);
    put_link(p, "levers", "Levers", r->advise || r->levers_note);
    put_link(p, "all", "Tensors", r->outcome->tensor_count > 0);
    put_link(p, "yaml", "Configuration", *r->yaml != '\0');
    put_link(p, "trust", "Trust", true);
    put(p, "</ul></nav>\n");
}

static void put_swatch(struct page *p, enum hb_category category)
{
    hb_str_addf(p->out, "<span class=\"swatch\" style=\"background:var(--c%d)\"></span>",
                (int)category);
}

static void put_categories(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    put(p, "<div class=\"scroll\"><table><thead><tr><th>category</th><th class=\"n\">at the peak"
           "</th><th class=\"n\">bytes</th><th class=\"n\">share</th></tr></thead><tbody>\n");
    for (int i = HB_CATEGORY_COUNT - 1; i >= 0; i--) {
        enum hb_category category = hb_stack_order[i];
        int64_t bytes = o->category_bytes[category];
        if (bytes == 0)
            continue;
        put(p, "<tr><td class=\"kind\">");
        put_swatch(p, category);
        hb_str_addf(p->out,
                    "%s</td><td class=\"n\">%s</td><td class=\"n\">%lld</td>"
                    "<td class=\"n\">%.1f %%</td></tr>\n",
                    hb_category_name(category), bytes_text(p, bytes), (long long)bytes,
                    o->peak_bytes > 0 ? 100.0 * (double)bytes / (double)o->peak_bytes : 0);
    }
    hb_str_addf(p->out,
                "</tbody><tfoot><tr><th>peak</th><th class=\"n\">%s</th>"
                "<th class=\"n\">%lld</th><th class=\"n\">100 %%</th></tr></tfoot>"
                "</table></div>\n",
                bytes_text(p, o->peak_bytes), (long long)o->peak_bytes);
}

static void draw_breakdown(struct hb_canvas *c, const void *what)
{
    hb_breakdown_draw(c, what, 1);
}

static void put_breakdown(struct page *p)
{
    struct hb_outcome one = *p->r->outcome;
    open_section(p, "breakdown", "What stands at the peak");
    one.name = ""; /* the page says it */
    put_picture(p, &(struct figure){.id = "breakdown",
                                    .prefix = "b",
                                    .title = hb_breakdown_title(p->arena, &one, 1),
                                    .height = 200,
                                    .narrow = 225,
                                    .draw = draw_breakdown,
                                    .what = &one});
    put_categories(p);
    close_section(p);
}

static void draw_timeline(struct hb_canvas *c, const void *what)
{
    hb_stepview_draw(c, what);
}

static void put_timeline_section(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    if (o->sample_count == 0)
        return;
    open_section(p, "timeline", "Memory over the step");
    put_picture(p, &(struct figure){.id = "timeline",
                                    .prefix = "t",
                                    .title = hb_stepview_title(p->arena, o),
                                    .height = 600,
                                    .narrow = 520,
                                    .draw = draw_timeline,
                                    .what = o,
                                    .timeline = true});
    close_section(p);
}

static void draw_heap(struct hb_canvas *c, const void *what)
{
    hb_addressmap_draw(c, what);
}

static void put_heap(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    if (o->buffer_count == 0)
        return;
    open_section(p, "heap", "Where temporaries lie");
    put_picture(p, &(struct figure){.id = "heap",
                                    .prefix = "h",
                                    .title = hb_addressmap_title(p->arena, o),
                                    .height = 520,
                                    .narrow = 420,
                                    .draw = draw_heap,
                                    .what = o});
    close_section(p);
}

static void put_note(struct page *p, const char *text)
{
    if (!text)
        return;
    put(p, "<p class=\"note\">");
    put_text(p, text);
    put(p, "</p>\n");
}

static void draw_fit(struct hb_canvas *c, const void *what)
{
    hb_fit_draw(c, what);
}

static void put_sweep(struct page *p)
{
    const struct hb_fit_map *m = p->r->sweep;
    if (!m && !p->r->sweep_note)
        return;
    open_section(p, "fitmap", "What else fits");
    put_note(p, p->r->sweep_note);
    if (!m) {
        close_section(p);
        return;
    }
    put_picture(p, &(struct figure){.id = "fitmap",
                                    .prefix = "f",
                                    .title = hb_fit_finding(p->arena, m, hb_fit_main_facet(m)),
                                    .height = 600,
                                    .narrow = m->facet_count > 1 ? 600 : 380,
                                    .draw = draw_fit,
                                    .what = m});
    close_section(p);
}

/* The plan, or others that are named. */
static bool has_ranked(const struct hb_pareto *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->points[i].rank != HB_RANK_OTHER)
            return true;
    return false;
}

static void put_alternatives(struct page *p, const struct hb_pareto *plan)
{
    put(p, "<div class=\"scroll\"><table><thead><tr><th></th><th>configuration</th>"
           "<th class=\"n\">step time</th><th class=\"n\">peak</th></tr></thead><tbody>\n");
    uint32_t number = 0; /* as in the picture */
    for (int rank = HB_RANK_PLAN; rank >= HB_RANK_RUNNER_UP; rank--)
        for (uint32_t i = 0; i < plan->count; i++) {
            const struct hb_pareto_point *q = &plan->points[i];
            if ((int)q->rank != rank)
                continue;
            if (rank == HB_RANK_PLAN)
                put(p, "<tr><td class=\"kind\">plan</td><td class=\"text\">");
            else
                hb_str_addf(p->out, "<tr><td class=\"kind\">%u</td><td class=\"text\">", ++number);
            put_text(p, q->name);
            hb_str_addf(p->out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
                        seconds_text(p, q->step_seconds), bytes_text(p, q->peak_bytes));
        }
    put(p, "</tbody></table></div>\n");
}

static void put_flags(struct page *p)
{
    if (p->r->flag_count)
        put(p, "<h3>To paste</h3>\n");
    for (uint32_t i = 0; i < p->r->flag_count; i++) {
        put(p, i ? "<details><summary>" : "<details open><summary>");
        put_text(p, p->r->flags[i].title);
        put(p, "</summary><pre tabindex=\"0\">");
        put_text(p, p->r->flags[i].text);
        put(p, "</pre></details>\n");
    }
}

static void draw_plan(struct hb_canvas *c, const void *what)
{
    hb_pareto_draw(c, what);
}

static void put_plan(struct page *p)
{
    const struct hb_pareto *plan = p->r->plan;
    if (!plan && !p->r->plan_note)
        return;
    open_section(p, "plan", "The plan and its alternatives");
    put_note(p, p->r->plan_note);
    if (plan) {
        put_picture(p, &(struct figure){.id = "plan",
                                        .prefix = "p",
                                        .title = hb_pareto_title(p->arena, plan),
                                        .height = 560,
                                        .narrow = 480,
                                        .draw = draw_plan,
                                        .what = plan});
        if (has_ranked(plan))
            put_alternatives(p, plan);
    }
    put_flags(p);
    close_section(p);
}

static void put_lever(struct page *p, const struct hb_lever *lever, bool idle)
{
    put(p, "<tr><td class=\"name\">");
    put_text(p, lever->name);
    if (idle)
        put(p, "</td><td class=\"n\">\xE2\x80\x93</td><td class=\"n\">\xE2\x80\x93</td>"
               "<td class=\"text\">nothing here: ");
    else
        hb_str_addf(p->out,
                    "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"text\">",
                    bytes_text(p, lever->freed_bytes), seconds_text(p, lever->cost_seconds));
    put_text(p, lever->why);
    put(p, "</td></tr>\n");
}

static void draw_levers(struct hb_canvas *c, const void *what)
{
    hb_tornado_draw(c, what);
}

static void put_lever_table(struct page *p, const struct hb_tornado *t)
{
    uint32_t rows = t->count < 40 ? t->count : 40;
    put_picture(p, &(struct figure){.id = "levers",
                                    .prefix = "l",
                                    .title = hb_tornado_title(p->arena, t),
                                    .height = 150 + 26.0 * rows,
                                    .narrow = 150 + 20.0 * rows,
                                    .draw = draw_levers,
                                    .what = t});
    put(p, "<div class=\"scroll\"><table><thead><tr><th>lever</th><th class=\"n\">frees</th>"
           "<th class=\"n\">costs</th><th>why</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < t->count + t->idle_count; i++)
        put_lever(p, &t->levers[i], i >= t->count);
    put(p, "</tbody></table></div>\n");
}

static void put_levers(struct page *p)
{
    const struct hb_tornado *t = p->r->advise;
    if (!t && !p->r->levers_note)
        return;
    open_section(p, "levers", "Levers");
    put_note(p, p->r->levers_note);
    if (t)
        put_lever_table(p, t);
    close_section(p);
}
static void put_tensor(struct page *p, const struct hb_shown_tensor *t, bool why)
{
    int64_t peak = p->r->outcome->peak_bytes;
    put(p, "<tr><td class=\"name\">");
    put_text(p, t->name);
    put(p, "</td><td class=\"kind\">");
    put_swatch(p, t->category);
    hb_str_addf(p->out, "%s</td><td class=\"n\" data-v=\"%lld\">%s</td>",
                hb_category_name(t->category), (long long)t->bytes, bytes_text(p, t->bytes));
    hb_str_addf(p->out, "<td class=\"n\" data-v=\"%lld\">%.1f %%</td>", (long long)t->bytes,
                peak > 0 ? 100.0 * (double)t->bytes / (double)peak : 0);
    if (why) {
        put(p, "<td class=\"text\">");
        put_text(p, t->why);
        put(p, "</td>");
    }
    put(p, "</tr>\n");
}

static void put_all_tensors(struct page *p)
{
    const struct hb_outcome *o = p->r->outcome;
    uint32_t shown = o->tensor_count < MOST_TENSORS ? o->tensor_count : MOST_TENSORS;
    int64_t rest = 0;
    bool why = false; /* a column that would be empty is left out */
    if (o->tensor_count == 0)
        return;
    for (uint32_t i = shown; i < o->tensor_count; i++)
        rest += o->tensors[i].bytes;
    for (uint32_t i = 0; i < shown; i++)
        why = why || *o->tensors[i].why;
    open_section(p, "all", "Tensors at the peak");
    hb_str_addf(p->out,
                "<p class=\"filter\"><label for=\"filter\">Only rows with </label>"
                "<input id=\"filter\" type=\"search\"> <output id=\"shown\" for=\"filter\">"
                "%u of %u</output></p>\n",
                shown, shown);
    put(p, "<div class=\"long\" tabindex=\"0\" role=\"region\" aria-label=\"tensors at the peak\">"
           "<table class=\"sortable\" id=\"tensors\"><thead><tr>"
           "<th aria-sort=\"none\"><button type=\"button\">tensor</button></th>"
           "<th aria-sort=\"none\"><button type=\"button\">category</button></th>"
           "<th class=\"n\" aria-sort=\"descending\"><button type=\"button\">bytes</button></th>"
           "<th class=\"n\" aria-sort=\"none\"><button type=\"button\">of the peak</button></th>");
    put(p, why ? "<th aria-sort=\"none\"><button type=\"button\">why</button></th>" : "");
    put(p, "</tr></thead><tbody>\n");
    for (uint32_t i = 0; i < shown; i++)
        put_tensor(p, &o->tensors[i], why);
    put(p, "</tbody></table></div>\n");
    if (o->tensor_count > shown)
        hb_str_addf(p->out, "<p>and %u smaller ones, together %s</p>\n", o->tensor_count - shown,
                    bytes_text(p, rest));
    close_section(p);
}

/* Paragraphs are parted by empty lines. */
static void put_paragraphs(struct page *p, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t len = end ? (size_t)(end - text) : strlen(text);
        put(p, "<p>");
        put_text(p, hb_arena_strndup(p->arena, text, len));
        put(p, "</p>\n");
        text += len;
        text += strspn(text, "\n");
    }
}

static void put_foot(struct page *p)
{
    if (*p->r->yaml) {
        open_section(p, "yaml", "The configuration");
        put(p, "<pre tabindex=\"0\">");
        put_text(p, p->r->yaml);
        put(p, "</pre>\n");
        if (p->r->filled && *p->r->filled)
            put_note(p, hb_arena_printf(p->arena, "Filled in, as the input leaves it open: %s",
                                        p->r->filled));
        close_section(p);
    }
    open_section(p, "trust", "How far to trust it");
    put_paragraphs(p, p->r->trust);
    close_section(p);
    put(p, "</main>\n<footer>hbmsim ");
    put_text(p, p->r->version);
    put(p, "</footer>\n");
}

static void put_lines(struct page *p, const char *const *lines)
{
    for (; *lines; lines++) {
        put(p, *lines);
        put(p, "\n");
    }
}

static void put_category_inks(struct page *p, const char *of, enum hb_theme theme)
{
    put(p, of);
    for (int i = 0; i < HB_CATEGORY_COUNT; i++)
        hb_str_addf(p->out, "--c%d:#%06x;", i,
                    (unsigned)hb_ink_category(theme, (enum hb_category)i));
    put(p, "}");
}

static void put_style(struct page *p)
{
    put(p, "<style>\n");
    put_category_inks(p, ":root{", HB_THEME_LIGHT);
    put_category_inks(p, ".dark{", HB_THEME_DARK);
    put_category_inks(p, "@media screen and (prefers-color-scheme:dark){.auto{", HB_THEME_DARK);
    put(p, "}\n");
    put_lines(p, hb_html_style);
    put(p, "</style>");
}

static void put_head(struct page *p)
{
    static const char *const themes[] = {"auto", "light", "dark"};
    hb_str_addf(p->out,
                "<!DOCTYPE html>\n<html lang=\"en\" class=\"%s\">\n<head>"
                "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                "content=\"width=device-width,initial-scale=1\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; script-src '%s'; img-src data:; base-uri 'none'; "
                "form-action 'none'\">\n<title>",
                themes[p->r->theme], hb_html_script_hash);
    put_text(p, p->r->outcome->name);
    put(p, *p->r->outcome->name ? ": " : "");
    put_text(p, hb_outcome_verdict(p->arena, p->r->outcome));
    put(p, "</title>\n<link rel=\"icon\" href=\"data:,\">\n");
    put_style(p);
    put(p, "</head>\n<body>\n<a class=\"skip\" href=\"#main\">to the content</a>\n");
}

void hb_html_write(struct hb_arena *arena, const struct hb_html *report, struct hb_str *out)
{
    struct page p = {arena, report, out, false};
    put_head(&p);
    put_header(&p);
    put_nav(&p);
    put(&p, "<main id=\"main\">\n");
    put_breakdown(&p);
    put_timeline_section(&p);
    put_heap(&p);
    put_sweep(&p);
    put_plan(&p);
    put_levers(&p);
    put_all_tensors(&p);
    put_foot(&p);
    put(&p, "<div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div>\n<script>\n");
    put_lines(&p, hb_html_script);
    put(&p, "</script>\n</body></html>\n");
}
