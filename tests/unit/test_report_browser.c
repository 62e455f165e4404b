/* The report in a real browser: nothing overflows or overlaps, no picture is blank, no complaint
 * on the console; hover, keys, sorting and filtering work; the page is whole without script, in
 * the dark and on paper. Skipped where there is no Chromium. */
#include "tests/unit/unit.h"
#include "tests/unit/browser.h"

#include "cli/report_runs.h"
#include "hw/device.h"
#include "models/schema.h"
#include "plots/html.h"

static struct browser browser;
static struct unit unit;
static char folder[] = "/tmp/hbmsim-report-XXXXXX";
static const char *url;

static const char *const sets[] = {"plan={search: {loss_chunks: [1, 2, 4, 8]}}"};

/* The report of a real run, as the command makes it. */
static void make_report(struct hb_html *report)
{
    struct hb_arena *a = unit.env.arena;
    struct hb_schema_source source = {.arena = a,
                                      .diag = &unit.diag,
                                      .path = HB_SOURCE_DIR "/examples/quickstart/model.yaml",
                                      .sets = sets,
                                      .set_count = 1,
                                      .data_dir = HB_SOURCE_DIR};
    struct hb_spec *spec = hb_arena_alloc(a, 1, sizeof *spec);
    struct hb_device *device = hb_arena_alloc(a, 1, sizeof *device);
    struct hb_result *result = hb_arena_alloc(a, 1, sizeof *result);
    struct hb_outcome *outcome = hb_arena_alloc(a, 1, sizeof *outcome);
    unit.env.data_dir = HB_SOURCE_DIR;
    assert_true(hb_schema_read(&source, spec) &&
                hb_device_load(a, &unit.diag, HB_SOURCE_DIR, spec->hardware.device,
                               (struct hb_loc){0}, device) &&
                hb_result_run(a, &unit.diag, spec, device, result));
    hb_outcome_make(a, result, outcome);
    *report = (struct hb_html){.outcome = outcome,
                               .device = "nvidia-h100 \xC3\x97 8",
                               .yaml = "batch: {global: 8}",
                               .version = "1",
                               .trust = "As far as it goes."};
    hb_report_sweep(&unit.env, spec, report);
    hb_report_plan(&unit.env, spec, device, 1000, report);
    hb_report_levers(&unit.env, spec, device, report);
    assert_true(report->sweep && report->plan && report->advise && report->flag_count == 3);
}

static size_t write_page(const char *path)
{
    struct hb_html report;
    struct hb_str html;
    make_report(&report);
    hb_str_init(&html, unit.env.arena);
    hb_html_write(unit.env.arena, &report, &html);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(html.text, 1, html.len, file);
    fclose(file);
    return html.len;
}

static int start(void **state)
{
    (void)state;
    if (!browser_find()) {
        print_message("no Chromium here: the report is not tried in a browser\n");
        return 0;
    }
    unit_start(&unit);
    if (!mkdtemp(folder))
        return -1;
    const char *path = hb_arena_printf(unit.env.arena, "%s/report.html", folder);
    url = hb_arena_printf(unit.env.arena, "file://%s", path);
    print_message("report: %zu bytes\n", write_page(path));
    const char *profile = hb_arena_printf(unit.env.arena, "%s/profile", folder);
    if (!browser_start(&browser, unit.env.arena, &unit.diag, profile))
        return -1;
    browser_open_page(&browser);
    browser_resize(&browser, 1200, 900);
    browser_load(&browser, url);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (!browser_find())
        return 0;
    browser_stop(&browser);
    const char *command = hb_arena_printf(unit.env.arena, "rm -rf '%s'", folder);
    int status = system(command);
    unit_end(&unit);
    return status;
}

#define NEEDS_BROWSER()                                                                            \
    (void)state;                                                                                   \
    if (!browser_find())                                                                           \
    skip()

static const char *eval(const char *expression)
{
    return browser_eval(&browser, expression);
}

static double eval_number(const char *expression)
{
    return strtod(eval(expression), NULL);
}

static void nothing_overflows(void **state)
{
    NEEDS_BROWSER();
    static const int widths[] = {1200, 800, 500, 340};
    for (int i = 0; i < 4; i++) {
        browser_resize(&browser, widths[i], 900);
        if (eval_number("document.documentElement.scrollWidth - innerWidth") > 0)
            fail_msg("at %d the page is %s wide", widths[i],
                     eval("document.documentElement.scrollWidth"));
        /* what stands out at the right, unless something around it scrolls */
        const char *out =
            eval("[...document.querySelectorAll('main *,header *')].filter(e=>"
                 "!e.closest('.pic,.scroll,.long,pre')&&!e.matches('.thin svg "
                 "*')&&e.getBoundingClientRect().right>"
                 "innerWidth+1).map(e=>e.tagName+' '+e.textContent.slice(0,30)).join('; ')");
        if (*out)
            fail_msg("at %d these stand out: %s", widths[i], out);
    }
    browser_resize(&browser, 1200, 900);
}

static const char *find_bad_texts(const char *pictures)
{
    return eval(hb_arena_printf(
        unit.env.arena,
        "[...document.querySelectorAll('%s svg')].map(svg=>{"
        "const page=svg.getBoundingClientRect(),"
        "t=[...svg.querySelectorAll('text')].map(e=>[e.getBoundingClientRect(),"
        "e.textContent]),bad=[];"
        "t.forEach(([r,s],i)=>{"
        "if(r.left<page.left-1||r.right>page.right+1||r.top<page.top-2||r.bottom>"
        "page.bottom+2)bad.push('outside: '+s);"
        "for(let k=0;k<i;k++){const q=t[k][0];if(r.left<q.right-1&&q.left<r.right-1&&"
        "r.top<q.bottom-2&&q.top<r.bottom-2)bad.push(s+' over '+t[k][1]);}});"
        "return bad.slice(0,5).join(', ');}).filter(x=>x).join('; ')",
        pictures));
}

/* On a wide page, and on a phone, where each picture is there a second time. */
static void texts_of_pictures_stay_apart(void **state)
{
    NEEDS_BROWSER();
    const char *bad = find_bad_texts(".pic");
    if (*bad)
        fail_msg("%s", bad);
    assert_true(eval_number("document.querySelectorAll('.pic text').length") > 60);
    browser_resize(&browser, 400, 900);
    bad = find_bad_texts(".thin");
    const char *shown = eval("[...document.querySelectorAll('.pic,.thin')].map(e=>"
                             "e.getBoundingClientRect().width>0?e.className[0]:'').join('')");
    browser_resize(&browser, 1200, 900);
    if (*bad)
        fail_msg("at 400: %s", bad);
    assert_string_equal(shown, "tttttt");
}

/* A blank picture of this size is a PNG of a few kB. */
static void no_picture_is_blank(void **state)
{
    NEEDS_BROWSER();
    int count = (int)eval_number("document.querySelectorAll('.pic').length");
    assert_int_equal(count, 6);
    for (int i = 0; i < count; i++) {
        const char *clip = eval(hb_arena_printf(
            unit.env.arena,
            "(()=>{const r=document.querySelectorAll('.pic')[%d].getBoundingClientRect();"
            "return `\"x\":${r.left+scrollX},\"y\":${r.top+scrollY},\"width\":${r.width},"
            "\"height\":${r.height},\"scale\":1`})()",
            i));
        const struct hb_node *shot = browser_call(
            &browser, "Page.captureScreenshot",
            hb_arena_printf(unit.env.arena,
                            "{\"format\":\"png\",\"captureBeyondViewport\":true,\"clip\":{%s}}",
                            clip));
        size_t bytes = strlen(browser_text(shot, "data")) / 4 * 3;
        if (bytes < 8000)
            fail_msg("picture %d of %s is a PNG of %zu bytes", i, clip, bytes);
    }
}

/* Moves the mouse to a part of an element, from 0 to 1 both ways, and gives the text that shows. */
static const char *hover(const char *selector, double across, double down)
{
    struct hb_arena *a = unit.env.arena;
    eval(hb_arena_printf(a, "document.querySelector('%s').scrollIntoView({block:'center'})",
                         selector));
    const char *rect =
        hb_arena_printf(a, "document.querySelector('%s').getBoundingClientRect()", selector);
    double x = eval_number(hb_arena_printf(a, "%s.left+%s.width*%g", rect, rect, across));
    double y = eval_number(hb_arena_printf(a, "%s.top+%s.height*%g", rect, rect, down));
    browser_mouse(&browser, "mouseMoved", x, y);
    return eval("document.getElementById('tip').hidden?'':"
                "document.getElementById('tip').textContent");
}

static void hovering_tells_what_is_there(void **state)
{
    NEEDS_BROWSER();
    const char *step = hover("#timeline-pic svg", 0.5, 0.6);
    assert_non_null(strstr(step, "into the step: "));
    assert_non_null(strstr(step, "GiB"));
    assert_non_null(strstr(step, "at the peak: ")); /* tensors of the band that is pointed at */
    assert_non_null(strstr(step, "waits for the update")); /* and why they are there */
    const char *largest =
        "JSON.parse(document.querySelector('[data-for=heap-pic]').textContent).cells.reduce((a,b)=>"
        "a[2]*a[3]>b[2]*b[3]?a:b)";
    struct hb_arena *a = unit.env.arena;
    double across = eval_number(hb_arena_printf(a, "(c=>c[0]+c[2]/2)(%s)/1020", largest));
    double down = eval_number(hb_arena_printf(a, "(c=>c[1]+c[3]/2)(%s)/520", largest));
    assert_string_equal(hover("#heap-pic svg", across, down),
                        eval(hb_arena_printf(a, "%s[4]", largest)));
    assert_non_null(strstr(hover("#heap-pic svg", across, down), ", op "));
    assert_non_null(strstr(hover("#breakdown-pic svg", 0.3, 0.4), "iB"));
    assert_non_null(strstr(hover("#fitmap-pic svg", 0.2, 0.5), "leaves "));
    assert_string_equal(hover("#timeline-pic svg", 0.002, 0.002), "");
    double outside = eval_number("(()=>{const r=document.getElementById('tip')."
                                 "getBoundingClientRect();return r.right>innerWidth||r.left<0})()");
    assert_true(outside <= 0);
}

static void keys_walk_through_a_picture(void **state)
{
    NEEDS_BROWSER();
    eval("document.getElementById('timeline-pic').focus()");
    browser_key(&browser, "ArrowRight");
    const char *first = eval("document.getElementById('tip').textContent");
    assert_non_null(strstr(first, "into the step"));
    for (int i = 0; i < 5; i++)
        browser_key(&browser, "ArrowRight");
    assert_string_not_equal(first, eval("document.getElementById('tip').textContent"));
    browser_key(&browser, "Escape");
    assert_string_equal(eval("document.getElementById('tip').hidden"), "true");
}

/* As a person would: to the middle of it, down, up. */
static void click(const char *selector)
{
    struct hb_arena *a = unit.env.arena;
    hover(selector, 0.5, 0.5);
    const char *rect =
        hb_arena_printf(a, "document.querySelector('%s').getBoundingClientRect()", selector);
    double x = eval_number(hb_arena_printf(a, "%s.left+%s.width/2", rect, rect));
    double y = eval_number(hb_arena_printf(a, "%s.top+%s.height/2", rect, rect));
    browser_mouse(&browser, "mousePressed", x, y);
    browser_mouse(&browser, "mouseReleased", x, y);
}

static const char *sorted(const char *by)
{
    return eval(hb_arena_printf(
        unit.env.arena,
        "(()=>{const v=[...document.getElementById('tensors').tBodies[0].rows].map(r=>%s);"
        "return v.every((x,i)=>!i||v[i-1]<=x)?'up':v.every((x,i)=>!i||v[i-1]>=x)?'down':'no'})()",
        by));
}

static void tables_sort(void **state)
{
    NEEDS_BROWSER();
    static const char bytes[] = "parseFloat(r.cells[2].dataset.v)";
    int rows = (int)eval_number("document.getElementById('tensors').tBodies[0].rows.length");
    assert_true(rows > 20);
    assert_string_equal(sorted(bytes), "down");
    click("#tensors th:nth-child(3) button");
    assert_string_equal(sorted(bytes), "up");
    assert_string_equal(eval("document.querySelector('#tensors th:nth-child(3)').ariaSort"),
                        "ascending");
    click("#tensors th:nth-child(2) button");
    assert_string_equal(sorted("r.cells[1].textContent"), "up");
    assert_string_equal(eval("document.querySelector('#tensors th:nth-child(3)').ariaSort"),
                        "none");
    assert_int_equal((int)eval_number("document.getElementById('tensors').tBodies[0].rows.length"),
                     rows);
}

static void tables_filter(void **state)
{
    NEEDS_BROWSER();
    click("#filter");
    browser_call(&browser, "Input.insertText", "{\"text\":\"LOGITS\"}");
    const char *shown = "[...document.getElementById('tensors').tBodies[0].rows].filter(r=>"
                        "r.offsetHeight>0)";
    double count = eval_number(hb_arena_printf(unit.env.arena, "%s.length", shown));
    assert_true(count > 0 && count < 20);
    assert_string_equal(
        eval(hb_arena_printf(unit.env.arena, "%s.every(r=>/logits/i.test(r.textContent))", shown)),
        "true");
    assert_true(strtod(eval("document.getElementById('shown').textContent"), NULL) == count);
    browser_call(&browser, "Input.insertText", "{\"text\":\" nothing is called this\"}");
    assert_true(eval_number(hb_arena_printf(unit.env.arena, "%s.length", shown)) <= 0);
}

/* One picture of each is shown, on the page's ground and in the colours of the table beside it; and
 * what hovers is of that one. */
static void check_theme(void)
{
    assert_string_equal(
        eval("[...document.querySelectorAll('.pic')].every(p=>[...p.querySelectorAll('svg')]"
             ".filter(s=>s.getClientRects().length).length===1)"),
        "true");
    assert_string_equal(
        eval("(()=>{const svg=[...document.querySelectorAll('#breakdown-pic svg')].find(s=>"
             "s.getClientRects().length),fills=new Set([...svg.querySelectorAll('*')].map(n=>"
             "getComputedStyle(n).fill));return fills.has(getComputedStyle(document.body)"
             ".backgroundColor)&&[...document.querySelectorAll('#breakdown .swatch,.kind .swatch')]"
             ".slice(0,5).every(s=>fills.has(getComputedStyle(s).backgroundColor))})()"),
        "true");
    assert_non_null(strstr(hover("#breakdown-pic", 0.3, 0.4), "iB"));
}

static void the_system_may_be_dark(void **state)
{
    NEEDS_BROWSER();
    check_theme();
    const char *light = eval("getComputedStyle(document.body).backgroundColor");
    browser_call(&browser, "Emulation.setEmulatedMedia",
                 "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"dark\"}]}");
    const char *dark = eval("getComputedStyle(document.body).backgroundColor");
    assert_string_equal(light, "rgb(255, 255, 255)");
    assert_string_equal(dark, "rgb(20, 23, 28)");
    check_theme();
    browser_call(&browser, "Emulation.setEmulatedMedia", "{\"features\":[]}");
}

static void it_prints(void **state)
{
    NEEDS_BROWSER();
    browser_load(&browser, url);
    browser_call(&browser, "Emulation.setEmulatedMedia", "{\"media\":\"print\"}");
    assert_string_equal(eval("getComputedStyle(document.querySelector('nav')).display"), "none");
    assert_string_equal(eval("getComputedStyle(document.querySelector('.filter')).display"),
                        "none");
    assert_string_equal(eval("document.querySelector('.long').scrollHeight<="
                             "document.querySelector('.long').clientHeight+2"),
                        "true"); /* the whole table is on paper */
    browser_call(&browser, "Emulation.setEmulatedMedia", "{\"media\":\"\"}");
    const struct hb_node *pdf = browser_call(&browser, "Page.printToPDF", "{}");
    assert_true(strlen(browser_text(pdf, "data")) > 40000);
}

static void it_is_whole_without_script(void **state)
{
    NEEDS_BROWSER();
    browser_call(&browser, "Emulation.setScriptExecutionDisabled", "{\"value\":true}");
    browser_load(&browser, url);
    assert_true(eval_number("document.querySelectorAll('.pic svg').length") >= 6);
    assert_string_equal(eval("getComputedStyle(document.querySelector('.filter')).display"),
                        "none");
    assert_string_equal(eval("document.getElementById('tip').offsetHeight"), "0");
    assert_true(eval_number("document.getElementById('tensors').offsetHeight") > 200);
    browser_call(&browser, "Emulation.setScriptExecutionDisabled", "{\"value\":false}");
}

static void nobody_complained(void **state)
{
    NEEDS_BROWSER();
    if (browser.complaints)
        fail_msg("%d complaints, the last: %s", browser.complaints, browser.complaint);
    eval("console.error('one that must be heard')");
    assert_int_equal(browser.complaints, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_overflows),
        cmocka_unit_test(texts_of_pictures_stay_apart),
        cmocka_unit_test(no_picture_is_blank),
        cmocka_unit_test(hovering_tells_what_is_there),
        cmocka_unit_test(keys_walk_through_a_picture),
        cmocka_unit_test(tables_sort),
        cmocka_unit_test(tables_filter),
        cmocka_unit_test(the_system_may_be_dark),
        cmocka_unit_test(it_prints),
        cmocka_unit_test(it_is_whole_without_script),
        cmocka_unit_test(nobody_complained),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
