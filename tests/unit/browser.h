/* A headless Chromium over its DevTools pipe: messages of JSON, each ended by a NUL byte, on file
 * descriptors 3 (to it) and 4 (from it). Include it after tests/unit/unit.h. */
#ifndef HB_TESTS_BROWSER_H
#define HB_TESTS_BROWSER_H

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/json.h"
#include "base/json_write.h"

struct browser {
    struct hb_arena *arena;
    struct hb_diag *diag;
    pid_t pid;
    int to;
    int from;
    char *held; /* what came in and is no whole message yet */
    size_t held_len, held_cap;
    int id;
    const char *session; /* null: the browser itself */
    int complaints;      /* exceptions, errors on the console or in the log */
    const char *complaint;
    int loads; /* pages loaded */
};

enum { BROWSER_WAIT_MS = 30000 };

static const char *const browser_places[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                                             "/usr/bin/google-chrome", NULL};

static inline const char *browser_find(void)
{
    for (int i = 0; browser_places[i]; i++)
        if (access(browser_places[i], X_OK) == 0)
            return browser_places[i];
    return NULL;
}

static inline void browser_exec(const char *program, const char *profile, int in, int out)
{
    char folder[512];
    int quiet = open("/dev/null", O_RDWR);
    setpgid(0, 0); /* with all that it starts, to be ended together */
    snprintf(folder, sizeof folder, "--user-data-dir=%s", profile);
    dup2(quiet, 0);
    dup2(quiet, 1);
    dup2(quiet, 2);
    in = fcntl(in, F_DUPFD, 10); /* clear of the places that they go to */
    out = fcntl(out, F_DUPFD, 10);
    dup2(in, 3);
    dup2(out, 4);
    execl(program, program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
          "--disable-dev-shm-usage", "--disable-extensions", "--remote-debugging-pipe", folder,
          (char *)NULL);
    _exit(127);
}

static inline bool browser_start(struct browser *b, struct hb_arena *arena, struct hb_diag *diag,
                                 const char *profile)
{
    int in[2], out[2];
    memset(b, 0, sizeof *b);
    b->arena = arena;
    b->diag = diag;
    if (pipe(in) != 0 || pipe(out) != 0)
        return false;
    b->pid = fork();
    if (b->pid == 0)
        browser_exec(browser_find(), profile, in[0], out[1]);
    close(in[0]);
    close(out[1]);
    b->to = in[1];
    b->from = out[0];
    signal(SIGPIPE, SIG_IGN);
    return b->pid > 0;
}

static inline void browser_stop(struct browser *b)
{
    int status;
    close(b->to);
    close(b->from);
    kill(b->pid, SIGTERM);
    for (int i = 0; i < 50 && waitpid(b->pid, &status, WNOHANG) == 0; i++)
        poll(NULL, 0, 100);
    kill(-b->pid, SIGKILL);
    for (int i = 0; i < 50 && kill(-b->pid, 0) == 0; i++) /* until none writes to the profile */
        poll(NULL, 0, 100);
    free(b->held);
}

/* The next message, or null after the time that a browser may take. */
static inline const struct hb_node *browser_read(struct browser *b)
{
    for (;;) {
        char *end = b->held_len ? memchr(b->held, '\0', b->held_len) : NULL;
        if (end) {
            struct hb_node *root = NULL;
            size_t len = (size_t)(end - b->held);
            struct hb_loc start = {"browser", 1, 1};
            char *text = hb_arena_strndup(b->arena, b->held, len);
            memmove(b->held, end + 1, b->held_len - len - 1);
            b->held_len -= len + 1;
            return hb_json_parse(b->arena, b->diag, start, text, len, &root) ? root : NULL;
        }
        struct pollfd ready = {.fd = b->from, .events = POLLIN};
        if (poll(&ready, 1, BROWSER_WAIT_MS) <= 0)
            return NULL;
        if (b->held_cap - b->held_len < 65536) {
            b->held_cap = 2 * b->held_cap + 131072;
            b->held = realloc(b->held, b->held_cap);
        }
        ssize_t got = read(b->from, b->held + b->held_len, b->held_cap - b->held_len);
        if (got <= 0)
            return NULL;
        b->held_len += (size_t)got;
    }
}

static inline const char *browser_text(const struct hb_node *node, const char *key)
{
    const struct hb_node *found = node ? hb_node_find(node, key) : NULL;
    return found && found->kind == HB_NODE_SCALAR ? found->text : "";
}

static inline void browser_hear(struct browser *b, const struct hb_node *message)
{
    const char *method = browser_text(message, "method");
    const struct hb_node *params = hb_node_find(message, "params");
    bool log = strcmp(method, "Log.entryAdded") == 0 &&
               strcmp(browser_text(hb_node_find(params, "entry"), "level"), "error") == 0;
    bool console = strcmp(method, "Runtime.consoleAPICalled") == 0;
    b->loads += strcmp(method, "Page.loadEventFired") == 0;
    if (!log && !console && strcmp(method, "Runtime.exceptionThrown") != 0)
        return;
    struct hb_str text;
    hb_str_init(&text, b->arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_node(&j, message);
    hb_json_end(&j);
    b->complaints++;
    b->complaint = text.text;
}

static inline void browser_send(struct browser *b, const char *method, const char *params)
{
    const char *session =
        b->session ? hb_arena_printf(b->arena, ",\"sessionId\":\"%s\"", b->session) : "";
    const char *text = hb_arena_printf(b->arena, "{\"id\":%d,\"method\":\"%s\",\"params\":%s%s}",
                                       ++b->id, method, params, session);
    size_t len = strlen(text) + 1;
    for (size_t done = 0; done < len;) {
        ssize_t put = write(b->to, text + done, len - done);
        if (put <= 0)
            fail_msg("the browser has gone");
        done += (size_t)put;
    }
}

/* Sends and waits for the answer, whose result is returned; what comes in between is heard. */
static inline const struct hb_node *browser_call(struct browser *b, const char *method,
                                                 const char *params)
{
    browser_send(b, method, params);
    for (const struct hb_node *message; (message = browser_read(b));) {
        int64_t id;
        if (!hb_node_int(hb_node_find(message, "id"), &id) || id != b->id) {
            browser_hear(b, message);
            continue;
        }
        const struct hb_node *error = hb_node_find(message, "error");
        if (error)
            fail_msg("%s: %s", method, browser_text(error, "message"));
        return hb_node_find(message, "result");
    }
    fail_msg("%s: no answer", method);
    return NULL;
}

/* The value of an expression, as text. */
static inline const char *browser_eval(struct browser *b, const char *expression)
{
    struct hb_str params;
    hb_str_init(&params, b->arena);
    hb_str_add(&params, "{\"returnByValue\":true,\"expression\":");
    hb_json_quote(&params, hb_arena_printf(b->arena, "String(%s)", expression));
    hb_str_add(&params, "}");
    const struct hb_node *result = browser_call(b, "Runtime.evaluate", params.text);
    if (hb_node_find(result, "exceptionDetails"))
        fail_msg("%s: %s", expression,
                 browser_text(hb_node_find(hb_node_find(result, "exceptionDetails"), "exception"),
                              "description"));
    return browser_text(hb_node_find(result, "result"), "value");
}

/* A page of its own, with its events on. */
static inline void browser_open_page(struct browser *b)
{
    const struct hb_node *target =
        browser_call(b, "Target.createTarget", "{\"url\":\"about:blank\"}");
    const struct hb_node *session =
        browser_call(b, "Target.attachToTarget",
                     hb_arena_printf(b->arena, "{\"targetId\":\"%s\",\"flatten\":true}",
                                     browser_text(target, "targetId")));
    b->session = browser_text(session, "sessionId");
    browser_call(b, "Page.enable", "{}");
    browser_call(b, "Runtime.enable", "{}");
    browser_call(b, "Log.enable", "{}");
}

static inline void browser_load(struct browser *b, const char *url)
{
    int loads = b->loads;
    browser_call(b, "Page.navigate", hb_arena_printf(b->arena, "{\"url\":\"%s\"}", url));
    while (b->loads == loads) {
        const struct hb_node *message = browser_read(b);
        if (!message)
            fail_msg("%s does not load", url);
        browser_hear(b, message);
    }
}

static inline void browser_resize(struct browser *b, int width, int height)
{
    browser_call(b, "Emulation.setDeviceMetricsOverride",
                 hb_arena_printf(b->arena,
                                 "{\"width\":%d,\"height\":%d,\"deviceScaleFactor\":1,"
                                 "\"mobile\":false}",
                                 width, height));
}

static inline void browser_mouse(struct browser *b, const char *type, double x, double y)
{
    browser_call(b, "Input.dispatchMouseEvent",
                 hb_arena_printf(b->arena,
                                 "{\"type\":\"%s\",\"x\":%.1f,\"y\":%.1f,\"button\":\"%s\","
                                 "\"clickCount\":1}",
                                 type, x, y, strcmp(type, "mouseMoved") ? "left" : "none"));
}

static inline void browser_key(struct browser *b, const char *key)
{
    static const char *const types[] = {"rawKeyDown", "keyUp"};
    for (int i = 0; i < 2; i++)
        browser_call(b, "Input.dispatchKeyEvent",
                     hb_arena_printf(b->arena, "{\"type\":\"%s\",\"key\":\"%s\",\"code\":\"%s\"}",
                                     types[i], key, key));
}

#endif
