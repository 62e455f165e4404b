/* The page of `hbmsim serve` in a real browser: each control, drop, Back, keys, sizes, themes, the
 * accessibility tree, no complaint on the console. Skipped where there is no Chromium, or where the
 * program was built without its server. */
#include "tests/unit/unit.h"
#include "tests/unit/browser.h"

#include "base/file.h"
#include "cli/serve_http.h"

static struct browser browser;
static struct unit unit;
static char folder[] = "/tmp/hbmsim-serve-XXXXXX";
static pid_t server;
static const char *url;
static bool ready;

#define NEEDS_BROWSER()                                                                            \
    (void)state;                                                                                   \
    if (!ready)                                                                                    \
    skip()

static const char *eval(const char *expression)
{
    return browser_eval(&browser, expression);
}

static double eval_number(const char *expression)
{
    return strtod(eval(expression), NULL);
}

/* Waits until an expression holds; fails with what it was about. */
static void wait_for(const char *expression)
{
    for (int i = 0; i < 400; i++) {
        if (strcmp(eval(expression), "true") == 0)
            return;
        poll(NULL, 0, 50);
    }
    fail_msg("it never holds: %s (the page says: %s)", expression,
             eval("document.getElementById('trouble').textContent"));
}

static const char *text_of(const char *id)
{
    return eval(hb_arena_printf(unit.env.arena, "document.getElementById('%s').textContent", id));
}

static void click(const char *id)
{
    eval(hb_arena_printf(unit.env.arena, "document.getElementById('%s').click()", id));
}

/* As typing does: each letter is heard, then the end of it. */
static void type_into(const char *id, const char *value)
{
    eval(hb_arena_printf(unit.env.arena,
                         "(()=>{const n=document.getElementById('%s');n.value='%s';"
                         "for(const t of ['input','change'])"
                         "n.dispatchEvent(new Event(t,{bubbles:true}))})()",
                         id, value));
}

/* The whole page anew, at a state of its own. */
static void load(const char *state)
{
    browser_load(&browser, "about:blank");
    browser_load(&browser, hb_arena_printf(unit.env.arena, "%s%s", url, state));
    wait_for("!!document.documentElement.dataset.latency");
}

static void change(const char *id, const char *value)
{
    eval("delete document.documentElement.dataset.latency");
    type_into(id, value);
    wait_for("!!document.documentElement.dataset.latency");
}

/* The program at work; its first line is the address. */
static const char *start_server(void)
{
    int out[2];
    char line[256] = "";
    const char *build = getenv("HB_BUILD");
    const char *program =
        hb_arena_printf(unit.env.arena, "%s/hbmsim", build && *build ? build : "build/fast");
    if (pipe(out) != 0)
        return NULL;
    server = fork();
    if (server == 0) {
        dup2(out[1], 1);
        close(out[0]);
        execl(program, program, "serve", "examples/quickstart/model.yaml", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *from = fdopen(out[0], "r");
    if (!from || !fgets(line, sizeof line, from))
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return hb_arena_strdup(unit.env.arena, line);
}

static int start(void **state)
{
    (void)state;
    if (!browser_find() || !hb_serve_built()) {
        print_message("no Chromium or no server here: the page is not tried\n");
        return 0;
    }
    unit_start(&unit);
    if (!mkdtemp(folder))
        return -1;
    url = start_server();
    const char *profile = hb_arena_printf(unit.env.arena, "%s/profile", folder);
    if (!url || !browser_start(&browser, unit.env.arena, &unit.diag, profile))
        return -1;
    browser_open_page(&browser);
    browser_resize(&browser, 1200, 900);
    ready = true;
    return 0;
}

static int stop(void **state)
{
    int status = 0;
    (void)state;
    if (!ready)
        return 0;
    browser_stop(&browser);
    kill(server, SIGTERM);
    waitpid(server, &status, 0);
    const char *command = hb_arena_printf(unit.env.arena, "rm -rf '%s'", folder);
    status |= system(command);
    unit_end(&unit);
    return status;
}

/* ---- the form */

static void it_begins_with_the_file(void **state)
{
    NEEDS_BROWSER();
    load("");
    assert_string_equal(text_of("word"), "Fits");
    assert_non_null(strstr(text_of("sentence"), "55.41 GiB of 59.33 GiB"));
    assert_string_equal(text_of("what"), "llama3-8b on 8 \xC3\x97 nvidia-h100");
    assert_non_null(strstr(eval("location.hash"), "batch.global=32"));
    assert_true(eval_number("document.querySelectorAll('#timeline svg path').length") > 8);
    assert_true(eval_number("document.querySelectorAll('#tensors tbody tr').length") > 20);
}

static void a_change_shows_at_once(void **state)
{
    NEEDS_BROWSER();
    load("");
    change("key-batch-global", "64");
    assert_string_equal(text_of("word"), "Does not fit");
    assert_non_null(strstr(eval("location.hash"), "batch.global=64"));
    print_message("a change took %s ms\n", eval("document.documentElement.dataset.latency"));
    eval("delete document.documentElement.dataset.latency");
    eval("document.querySelector('[aria-label=\"halve batch.global\"]').click()");
    wait_for("!!document.documentElement.dataset.latency");
    assert_string_equal(text_of("word"), "Fits");
    eval("delete document.documentElement.dataset.latency");
    eval("history.back()");
    wait_for("!!document.documentElement.dataset.latency");
    assert_string_equal(text_of("word"), "Does not fit");
    assert_string_equal(eval("document.getElementById('key-batch-global').value"), "64");
    wait_for("document.getElementById('live').textContent.startsWith('does not fit')");
}

/* One value of each control, of every section: what comes is a result or a message, never a
 * complaint or a page that stands still. */
static void every_control_works(void **state)
{
    NEEDS_BROWSER();
    static const char turn[] =
        "(()=>{const n=[...document.querySelectorAll('#form [id^=key-]')][%d];"
        "if(!n)return 'end';delete document.documentElement.dataset.latency;"
        "const b=n.querySelector?.('input');"
        "if(b)b.checked=!b.checked;else if(n.options)n.selectedIndex="
        "(n.selectedIndex+1)%%n.options.length;else n.value=n.placeholder||'1';"
        "for(const t of ['input','change'])n.dispatchEvent(new Event(t,{bubbles:true}));"
        "n.closest('.row').querySelector('.reset').click();return n.id})()";
    load("");
    int count = 0;
    for (; count < 400; count++)
        if (strcmp(eval(hb_arena_printf(unit.env.arena, turn, count)), "end") == 0)
            break;
    assert_true(count > 90);
    wait_for("!!document.documentElement.dataset.latency||"
             "!document.getElementById('trouble').hidden");
    print_message("%d controls\n", count);
}

static void a_mistake_is_named(void **state)
{
    NEEDS_BROWSER();
    load("");
    type_into("key-batch-global", "13");
    wait_for("!document.getElementById('trouble').hidden");
    assert_non_null(strstr(text_of("trouble"), "batch.global"));
    assert_string_equal(eval("document.getElementById('key-batch-global').ariaInvalid"), "true");
    change("key-batch-global", "16");
    assert_string_equal(eval("document.getElementById('trouble').hidden"), "true");
    type_into("key-precision-fp8-gather", "true"); /* a name with a digit */
    wait_for("document.getElementById('key-precision-fp8-gather').ariaInvalid==='true'");
}

/* The file's mesh is `fsdp: rest`; a batch is said in one way. */
static void the_rest_follows_the_count(void **state)
{
    NEEDS_BROWSER();
    load("");
    change("key-mesh-tensor", "2");
    assert_string_equal(eval("document.getElementById('trouble').hidden"), "true");
    assert_non_null(strstr(eval("location.hash"), "mesh.fsdp=rest"));
    change("key-hardware-count", "16");
    assert_string_equal(eval("document.getElementById('key-mesh-fsdp').placeholder"), "8");
    change("key-batch-per-device", "2");
    assert_null(strstr(eval("location.hash"), "batch.global"));
    change("key-mesh-fsdp", "4");
    assert_null(strstr(eval("location.hash"), "hardware.count"));
    assert_string_equal(text_of("what"), "llama3-8b on 8 \xC3\x97 nvidia-h100");
}

static void tensors_are_kept_one_by_one(void **state)
{
    NEEDS_BROWSER();
    load("");
    change("tensor-mlp_up", "offload");
    assert_non_null(strstr(eval("location.hash"), "remat.policy=names"));
    assert_non_null(strstr(eval("location.hash"), "mlp_up"));
}

/* ---- the timeline */

static void hover(const char *id, double across, double down)
{
    struct hb_arena *a = unit.env.arena;
    eval(hb_arena_printf(a, "document.getElementById('%s').scrollIntoView({block:'center'})", id));
    const char *box =
        hb_arena_printf(a, "document.getElementById('%s').getBoundingClientRect()", id);
    browser_mouse(&browser, "mouseMoved",
                  eval_number(hb_arena_printf(a, "%s.left+%s.width*%g", box, box, across)),
                  eval_number(hb_arena_printf(a, "%s.top+%s.height*%g", box, box, down)));
}

static void the_timeline_tells_what_is_there(void **state)
{
    NEEDS_BROWSER();
    load("");
    hover("timeline", 0.5, 0.5);
    assert_string_equal(eval("document.getElementById('tip').hidden"), "false");
    assert_non_null(strstr(text_of("tip"), "logits: "));
    assert_non_null(strstr(text_of("tip"), "loss.chunks")); /* why */
    const char *before = text_of("moment");
    eval("document.getElementById('timeline').focus()");
    for (int i = 0; i < 10; i++)
        browser_key(&browser, "ArrowLeft");
    assert_string_not_equal(before, text_of("moment"));
    assert_true(eval_number("document.querySelectorAll('#moment tbody tr').length") > 5);
    before = eval("document.querySelector('#timeline path[style]').getAttribute('d')");
    click("zoom-in");
    assert_string_not_equal(
        before, eval("document.querySelectorAll('#timeline path')[8].getAttribute('d')"));
    click("zoom-all");
    click("by-address");
    assert_true(eval_number("document.querySelectorAll('#timeline rect').length") > 30);
    hover("timeline", 0.5, 0.4);
    assert_non_null(strstr(text_of("tip"), "ops "));
}

/* ---- the other views */

static void the_map_fills_in_and_leads_there(void **state)
{
    NEEDS_BROWSER();
    load("");
    click("tab-map");
    wait_for("document.getElementById('map-note').textContent.includes('a click on a cell')");
    assert_true(eval_number("document.querySelectorAll('.map button.own').length") > 0.5);
    assert_true(eval_number("document.querySelectorAll('.map button.best').length") > 0.5);
    eval("delete document.documentElement.dataset.latency");
    eval("document.querySelector('.map button[aria-label^=\"batch.global 16, batch.seq 4096\"]')"
         ".click()");
    wait_for("!!document.documentElement.dataset.latency");
    assert_non_null(strstr(eval("location.hash"), "batch.global=16"));
    assert_non_null(strstr(eval("location.hash"), "batch.seq=4096"));
    wait_for("document.querySelector('.map button.own')?.ariaLabel"
             ".startsWith('batch.global 16, batch.seq 4096')");
    type_into("map-y", "loss.chunks");
    wait_for("document.querySelector('.map caption')?.textContent.includes('loss.chunks')");
    wait_for("document.getElementById('map-note').textContent.includes('a click on a cell')");
}

/* Who leaves it before it is whole finds it whole when he comes back, not what was there when he
 * left. */
static void a_map_that_was_left_goes_on(void **state)
{
    NEEDS_BROWSER();
    load("");
    eval("['map','levers','map'].forEach(t=>document.getElementById(`tab-${t}`).click())");
    wait_for("document.getElementById('map-note').textContent.includes('a click on a cell')");
    assert_string_equal(eval("document.getElementById('map-stop').disabled"), "true");
    assert_true(eval_number("document.querySelectorAll('.map button.own').length") > 0.5);
}

/* The page's own Back leads to a configuration or nowhere; the link past the form leaves the
 * address alone, which is what can be sent. */
static void the_address_stays(void **state)
{
    NEEDS_BROWSER();
    load("#model.preset=llama3-8b&hardware.device=nvidia-h100&mesh.fsdp=8");
    assert_string_equal(eval("document.getElementById('undo').disabled"), "true");
    change("key-batch-global", "64");
    assert_string_equal(eval("document.getElementById('undo').disabled"), "false");
    const char *before = eval("location.hash");
    click("skip");
    assert_string_equal(eval("location.hash"), before);
    assert_string_equal(eval("document.activeElement.id"), "results");
    click("undo");
    wait_for("document.getElementById('key-batch-global').value===''");
    assert_string_equal(eval("document.getElementById('undo').disabled"), "true");
}

static void a_lever_is_tried(void **state)
{
    NEEDS_BROWSER();
    load("#~tab=levers&model.preset=llama3-8b&hardware.device=nvidia-h100&mesh.fsdp=8&"
         "batch.global=32");
    wait_for("!!document.querySelector('#levers table')");
    eval("delete document.documentElement.dataset.latency");
    eval("document.querySelector('[aria-label=\"try loss.chunks = 8\"]').click()");
    wait_for("!!document.documentElement.dataset.latency");
    assert_non_null(strstr(eval("location.hash"), "loss.chunks=8"));
}

static void a_plan_is_found_and_taken(void **state)
{
    NEEDS_BROWSER();
    load("#~tab=plan&model.preset=llama3-8b&hardware.device=nvidia-h100&mesh.fsdp=8&"
         "batch.global=32&plan.search.loss_chunks=[1,8]&plan.search.mesh=[]");
    type_into("plan-seconds", "20");
    click("plan-go");
    wait_for("document.getElementById('plan-note').textContent.startsWith('searching')");
    wait_for("!document.getElementById('plan-stop').disabled");
    poll(NULL, 0, 1500);
    click("plan-stop");
    wait_for("!document.getElementById('plan-go').disabled");
    if (strcmp(eval("!!document.querySelector('#plan button')"), "true") != 0) {
        assert_non_null(strstr(text_of("plan-note"), "stopped")); /* before there was one */
        return;
    }
    eval("delete document.documentElement.dataset.latency");
    eval("document.querySelector('#plan .card button').click()");
    wait_for("!!document.documentElement.dataset.latency");
    assert_string_equal(eval("document.getElementById('tab-memory').ariaSelected"), "true");
    assert_string_not_equal(text_of("word"), "Does not fit");
}

static void two_are_compared(void **state)
{
    NEEDS_BROWSER();
    load("");
    click("tab-compare");
    click("compare-pin");
    change("key-batch-global", "16");
    wait_for("document.getElementById('compare').textContent.includes('batch.global')");
    click("compare-now");
    wait_for("document.getElementById('key-batch-global').value==='32'");
    click("compare-clear");
    wait_for("document.getElementById('compare').textContent.includes('Keep a configuration')");
}

/* The file as a browser gives it to a page. */
static void drop(const char *name, const char *text)
{
    struct hb_str quoted;
    hb_str_init(&quoted, unit.env.arena);
    hb_json_quote(&quoted, text);
    eval(hb_arena_printf(unit.env.arena,
                         "(()=>{const d=new DataTransfer();d.items.add(new File([%s],'%s'));"
                         "for(const t of ['dragenter','dragover','drop'])dispatchEvent("
                         "new DragEvent(t,{dataTransfer:d,bubbles:true,cancelable:true}))})()",
                         quoted.text, name));
}

static void files_are_dropped(void **state)
{
    NEEDS_BROWSER();
    struct hb_text text;
    const char *reason;
    load("");
    assert_true(hb_file_load(unit.env.arena, HB_SOURCE_DIR "/examples/import/config.json",
                             HB_FILE_MAX_BYTES, &text, &reason));
    drop("config.json", text.text);
    wait_for("document.getElementById('file-note').textContent.includes('it is in the form now')");
    assert_non_null(strstr(text_of("file-note"), "Hugging Face"));
    assert_true(hb_file_load(unit.env.arena, HB_SOURCE_DIR "/tests/golden/logs/tpu-hbm.log",
                             HB_FILE_MAX_BYTES, &text, &reason));
    drop("crash.log", text.text);
    wait_for("document.getElementById('file-note').textContent.includes('explain')");
    drop("<b>.yaml", "model: {preset: llama3-8b}\nbatch: {global: 8}\nmesh: {fsdp: 8}\n");
    wait_for("document.getElementById('key-batch-global').value==='8'");
    drop("bad.yaml", "model: {preset: no-such-model}\n");
    wait_for("!document.getElementById('trouble').hidden");
    drop("secret.yaml", "include: /etc/passwd\nmodel: {preset: llama3-8b}\n");
    wait_for("document.getElementById('file-note').textContent.includes('reads no files')");
}

static void results_go_out(void **state)
{
    NEEDS_BROWSER();
    static const char *const buttons[] = {"emit-yaml", "emit-maxtext", "emit-levanter"};
    load("");
    click("tab-files");
    for (int i = 0; i < 3; i++) {
        eval("document.getElementById('file-text').replaceChildren()");
        click(buttons[i]);
        wait_for("(document.querySelector('#file-text pre')?.textContent.length??0)>100");
    }
    static const char *const pictures[] = {"picture-timeline", "picture-breakdown",
                                           "picture-addressmap"};
    for (int i = 0; i < 3; i++) {
        eval("document.getElementById('file-text').replaceChildren()");
        click(pictures[i]);
        wait_for("document.querySelector('#file-text img')?.naturalWidth>500");
    }
}

/* ---- the page as a whole */

static void nothing_overflows(void **state)
{
    NEEDS_BROWSER();
    static const int widths[] = {1900, 1200, 700, 360};
    static const char *const tabs[] = {"memory", "map", "levers", "plan", "compare", "files"};
    load("");
    for (int w = 0; w < 4; w++) {
        browser_resize(&browser, widths[w], 900);
        for (int t = 0; t < 6; t++) {
            click(hb_arena_printf(unit.env.arena, "tab-%s", tabs[t]));
            if (eval_number("document.documentElement.scrollWidth-innerWidth") > 0)
                fail_msg("at %d %s is %s wide", widths[w], tabs[t],
                         eval("document.documentElement.scrollWidth"));
        }
    }
    browser_resize(&browser, 1200, 900);
}

/* Each reason stands in the page whole, and no row is a tower of words. */
static void reasons_are_not_cut(void **state)
{
    NEEDS_BROWSER();
    static const int widths[] = {1900, 960, 700, 360};
    static const char check[] =
        "[...document.querySelectorAll('#%s td.why')].filter(n=>{const b=n.getBoundingClientRect();"
        "return b.height&&(b.right>innerWidth||n.closest('tr').offsetHeight>180)}).length";
    load("");
    for (int w = 0; w < 4; w++) {
        browser_resize(&browser, widths[w], 900);
        wait_for("document.querySelectorAll('#moment td.why').length>5");
        if (eval_number(hb_arena_printf(unit.env.arena, check, "moment")) > 0 ||
            eval_number(hb_arena_printf(unit.env.arena, check, "tensors")) > 0)
            fail_msg("at %d a reason is cut", widths[w]);
    }
    browser_resize(&browser, 1200, 900);
}

/* On a telephone the form is folded away until it is wanted. */
static void results_come_first_where_it_is_narrow(void **state)
{
    NEEDS_BROWSER();
    load("");
    assert_string_equal(eval("document.getElementById('fold').open"), "true");
    browser_resize(&browser, 360, 780);
    wait_for("!document.getElementById('fold').open");
    assert_true(eval_number("document.getElementById('breakdown').getBoundingClientRect().top") <
                600);
    assert_string_equal(text_of("fold-what"), "8 keys set");
    eval("document.querySelector('#fold>summary').click()");
    change("key-batch-global", "16");
    assert_string_equal(eval("document.getElementById('fold').open"), "true");
    browser_resize(&browser, 1200, 900);
    wait_for("document.getElementById('fold').open");
}

/* The budget has its name on the axis, where it touches no number; the line alone is on data. */
static void the_budget_is_named(void **state)
{
    NEEDS_BROWSER();
    static const char *const batches[] = {"32", "64", "256"};
    load("");
    for (int i = 0; i < 3; i++) {
        if (i)
            change("key-batch-global", batches[i]);
        assert_true(eval_number("document.querySelectorAll('#timeline text.budget').length") > 1);
        assert_string_equal(
            eval("(()=>{const all=[...document.querySelectorAll('#timeline text')],"
                 "s=document.getElementById('timeline').getBoundingClientRect();"
                 "const box=n=>n.getBoundingClientRect();"
                 "for(const n of all.filter(n=>n.classList.contains('budget'))){const b=box(n);"
                 "if(b.left<s.left||b.right>s.left+70)return 'outside: '+n.textContent;"
                 "for(const o of all){const c=box(o);if(o!==n&&!o.classList.contains('budget')&&"
                 "c.left<b.right&&c.right>b.left&&c.top<b.bottom&&c.bottom>b.top)"
                 "return n.textContent+' on '+o.textContent}}return 'clear'})()"),
            "clear");
    }
}

static void the_system_may_be_dark(void **state)
{
    NEEDS_BROWSER();
    load("");
    browser_call(&browser, "Emulation.setEmulatedMedia",
                 "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"dark\"}]}");
    wait_for("getComputedStyle(document.body).backgroundColor==='rgb(20, 23, 28)'");
    type_into("theme", "light");
    wait_for("getComputedStyle(document.body).backgroundColor==='rgb(255, 255, 255)'");
    type_into("theme", "auto");
    browser_call(&browser, "Emulation.setEmulatedMedia", "{\"features\":[]}");
}

/* What a screen reader is given: each control has a name, each view its tab. */
static void everything_has_a_name(void **state)
{
    NEEDS_BROWSER();
    static const char *const wanted[] = {"textbox", "combobox", "button", "tab", "checkbox"};
    int counts[5] = {0};
    load("");
    eval("document.querySelectorAll('details').forEach(d=>d.open=true)");
    browser_call(&browser, "Accessibility.enable", "{}");
    const struct hb_node *tree = browser_call(&browser, "Accessibility.getFullAXTree", "{}");
    for (const struct hb_node *n = hb_node_find(tree, "nodes")->first; n; n = n->next) {
        const char *role = browser_text(hb_node_find(n, "role"), "value");
        const char *name = browser_text(hb_node_find(n, "name"), "value");
        for (int i = 0; i < 5; i++) {
            if (strcmp(role, wanted[i]) != 0)
                continue;
            counts[i]++;
            if (!*name)
                fail_msg("a %s has no name", role);
        }
    }
    for (int i = 0; i < 5; i++)
        if (!counts[i])
            fail_msg("no %s in the tree", wanted[i]);
}

/* A page that nobody touches asks for nothing. */
static void idle_it_is_silent(void **state)
{
    NEEDS_BROWSER();
    load("");
    poll(NULL, 0, 1000);
    double before = eval_number("performance.getEntriesByType('resource').length");
    poll(NULL, 0, 1500);
    assert_true(eval_number("performance.getEntriesByType('resource').length") <= before);
}

static void no_complaints(void **state)
{
    NEEDS_BROWSER();
    if (browser.complaints)
        fail_msg("%d complaints, the last: %s", browser.complaints, browser.complaint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_with_the_file),
        cmocka_unit_test(a_change_shows_at_once),
        cmocka_unit_test(every_control_works),
        cmocka_unit_test(a_mistake_is_named),
        cmocka_unit_test(the_rest_follows_the_count),
        cmocka_unit_test(tensors_are_kept_one_by_one),
        cmocka_unit_test(the_timeline_tells_what_is_there),
        cmocka_unit_test(the_map_fills_in_and_leads_there),
        cmocka_unit_test(a_map_that_was_left_goes_on),
        cmocka_unit_test(the_address_stays),
        cmocka_unit_test(a_lever_is_tried),
        cmocka_unit_test(a_plan_is_found_and_taken),
        cmocka_unit_test(two_are_compared),
        cmocka_unit_test(files_are_dropped),
        cmocka_unit_test(results_go_out),
        cmocka_unit_test(nothing_overflows),
        cmocka_unit_test(reasons_are_not_cut),
        cmocka_unit_test(results_come_first_where_it_is_narrow),
        cmocka_unit_test(the_budget_is_named),
        cmocka_unit_test(the_system_may_be_dark),
        cmocka_unit_test(everything_has_a_name),
        cmocka_unit_test(idle_it_is_silent),
        cmocka_unit_test(no_complaints),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
