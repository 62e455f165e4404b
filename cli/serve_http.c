/* The server of `hbmsim serve`: see serve_http.h. Its loop waits for connections and for jobs with
 * one pselect; where there is neither it sleeps. */
#include "cli/serve_http.h"

#ifndef HB_HTTP

bool hb_serve_built(void)
{
    return false;
}

bool hb_serve_run(const struct hb_serve *serve)
{
    return serve == 0;
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/select.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "cli/serve_job.h"
#include "cli/serve_page.h"

enum { TIMEOUT_S = 30, CONNECTION_BYTES = 32 << 10, HOST_ROOM = 64, BLOCK_BYTES = 32 << 10 };
enum { MOST_PATH = 512, TICK_NS = 500000000 };

struct request;

struct server {
    const struct hb_serve *ask;
    struct MHD_Daemon *daemon;
    char hosts[2][HOST_ROOM]; /* "127.0.0.1:4000" and "localhost:4000" */
    struct request *jobs[HB_SERVE_JOBS];
    int next_number;
};

/* One request, from its first header to its last byte. */
struct request {
    struct server *server;
    struct hb_arena *arena;
    struct MHD_Connection *connection;
    struct hb_work work;
    size_t most_bytes;
    size_t got_bytes;
    FILE *body;       /* null: none is wanted */
    const char *file; /* that a GET wants; null: none */
    struct hb_job *job;
    bool suspended;
    bool refused; /* an answer is queued */
};

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/* ---- answers */

static enum MHD_Result send_response(struct MHD_Connection *c, unsigned status,
                                     struct MHD_Response *r, const char *type)
{
    MHD_add_response_header(r, "Content-Type", type);
    MHD_add_response_header(r, "Content-Security-Policy", policy);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "X-Frame-Options", "DENY");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(r, "Cache-Control", "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, "Allow", "GET, POST");
    enum MHD_Result done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *text,
                                 const char *type)
{
    return send_response(c, status,
                         MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                         MHD_RESPMEM_MUST_COPY),
                         type);
}

/* The body, if one comes, is not read. */
static enum MHD_Result refuse(struct request *q, unsigned status, const char *text)
{
    q->refused = true;
    return send_text(q->connection, status, text, "text/plain; charset=utf-8");
}

static enum MHD_Result send_file(struct request *q, const struct hb_page_file *file)
{
    struct hb_str text;
    hb_str_init(&text, q->arena);
    for (const char *const *line = file->lines; *line; line++)
        hb_str_add(&text, *line);
    return send_text(q->connection, MHD_HTTP_OK, text.text, file->type);
}

/* ---- who may ask */

/* In a time that does not tell how much of it is right. */
static bool same_token(const char *given, const char *token)
{
    unsigned char differs = 0;
    for (int i = 0; i < HB_SERVE_TOKEN; i++) {
        differs |= (unsigned char)(given[i] ^ token[i]);
        if (!given[i])
            return false;
    }
    return differs == 0;
}

static bool is_ours(const struct server *s, const char *host)
{
    return host && (strcasecmp(host, s->hosts[0]) == 0 || strcasecmp(host, s->hosts[1]) == 0);
}

/* Null: it may; else why not. */
static const char *check_sender(const struct server *s, struct MHD_Connection *c)
{
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
    const char *site = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Sec-Fetch-Site");
    if (!is_ours(s, host))
        return "Host is not this server.\n";
    if (origin && (strncasecmp(origin, "http://", 7) != 0 || !is_ours(s, origin + 7)))
        return "Origin is another site.\n";
    if (site && !hb_str_same(site, "same-origin") && !hb_str_same(site, "none"))
        return "the request comes from another site.\n";
    return NULL;
}

/* What follows the token, or null. */
static const char *path_behind_token(const struct server *s, const char *url)
{
    if (url[0] != '/' || !same_token(url + 1, s->ask->token))
        return NULL;
    const char *rest = url + 1 + HB_SERVE_TOKEN;
    return rest[0] == '/' ? rest + 1 : NULL;
}

/* ---- jobs */

static ssize_t read_frames(void *context, uint64_t at, char *out, size_t most)
{
    struct request *q = context;
    (void)at;
    size_t len = hb_job_take(q->job, out, most);
    if (len)
        return (ssize_t)len;
    if (q->job->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    q->suspended = true;
    MHD_suspend_connection(q->connection);
    return 0;
}

static struct request **free_place(struct server *s)
{
    for (int i = 0; i < HB_SERVE_JOBS; i++)
        if (!s->jobs[i])
            return &s->jobs[i];
    return NULL;
}

static enum MHD_Result start_job(struct request *q)
{
    struct server *s = q->server;
    struct request **place = free_place(s);
    if (!place)
        return refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE, "too much is being computed already.\n");
    q->job = hb_arena_raw(q->arena, 1, sizeof *q->job);
    *q->job = (struct hb_job){.number = ++s->next_number};
    fflush(q->body);
    if (!hb_job_start(q->job, s->ask->env, &q->work, fileno(q->body))) {
        q->job = NULL;
        return refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE, "this machine has no process left.\n");
    }
    *place = q;
    return send_response(
        q->connection, MHD_HTTP_OK,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_frames, q, NULL),
        "application/octet-stream");
}

static enum MHD_Result stop_job(struct request *q, const char *number)
{
    struct server *s = q->server;
    for (int i = 0; i < HB_SERVE_JOBS; i++) {
        char text[HOST_ROOM];
        if (!s->jobs[i])
            continue;
        snprintf(text, sizeof text, "%d", s->jobs[i]->job->number);
        if (hb_str_same(text, number))
            hb_job_stop(s->jobs[i]->job);
    }
    return send_text(q->connection, MHD_HTTP_OK, "stopped\n", "text/plain; charset=utf-8");
}

static void forget_request(struct request *q)
{
    struct server *s = q->server;
    for (int i = 0; i < HB_SERVE_JOBS; i++)
        if (s->jobs[i] == q)
            s->jobs[i] = NULL;
    if (q->job)
        hb_job_kill(q->job);
    if (q->body)
        fclose(q->body);
    hb_arena_free(q->arena);
}

/* ---- requests */

static enum MHD_Result add_argument(void *context, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    struct request *q = context;
    (void)kind;
    if (q->work.count == HB_WORK_ARGS)
        return MHD_NO;
    q->work.keys[q->work.count] = hb_arena_strdup(q->arena, key);
    q->work.values[q->work.count] = value ? hb_arena_strdup(q->arena, value) : NULL;
    q->work.count++;
    return MHD_YES;
}

static enum MHD_Result answer_get(struct request *q, const char *path)
{
    if (hb_str_same(path, "start.json"))
        return send_text(q->connection, MHD_HTTP_OK, q->server->ask->start,
                         "application/json; charset=utf-8");
    for (const struct hb_page_file *f = hb_page_files; f->name; f++)
        if (hb_str_same(path, f->name) || (!path[0] && hb_str_same(f->name, "page.html")))
            return send_file(q, f);
    return refuse(q, MHD_HTTP_NOT_FOUND, "there is nothing here.\n");
}

/* A work's body is about to come. */
static enum MHD_Result expect_body(struct request *q, const char *path)
{
    const char *length =
        MHD_lookup_connection_value(q->connection, MHD_HEADER_KIND, "Content-Length");
    q->most_bytes = hb_str_starts(path, "do/") ? hb_work_most_bytes(path + 3) : 0;
    if (!q->most_bytes)
        return refuse(q, MHD_HTTP_NOT_FOUND, "there is no such work.\n");
    if (length && (strlen(length) > 15 || strtoll(length, NULL, 10) > (long long)q->most_bytes))
        return refuse(q, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large.\n");
    q->work.name = hb_arena_strdup(q->arena, path + 3);
    q->work.device = q->server->ask->device;
    MHD_get_connection_values(q->connection, MHD_GET_ARGUMENT_KIND, add_argument, q);
    q->body = tmpfile();
    return q->body ? MHD_YES
                   : refuse(q, MHD_HTTP_SERVICE_UNAVAILABLE, "no temporary file can be made.\n");
}

static enum MHD_Result begin(struct request *q, const char *url, const char *method)
{
    const char *why = check_sender(q->server, q->connection);
    const char *path = path_behind_token(q->server, url);
    const char *job = MHD_lookup_connection_value(q->connection, MHD_GET_ARGUMENT_KIND, "job");
    if (why)
        return refuse(q, MHD_HTTP_FORBIDDEN, why);
    if (!path || strlen(path) > MOST_PATH)
        return refuse(q, MHD_HTTP_NOT_FOUND,
                      "there is nothing here: the address that hbmsim serve printed has a key.\n");
    if (hb_str_same(method, "GET")) { /* answered once its headers are read, so that the
                                         connection can stay */
        q->file = hb_arena_strdup(q->arena, path);
        return MHD_YES;
    }
    if (!hb_str_same(method, "POST"))
        return refuse(q, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or POST.\n");
    if (hb_str_same(path, "stop")) {
        q->refused = true;
        return stop_job(q, job ? job : "");
    }
    return expect_body(q, path);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *len, void **state)
{
    struct request *q = *state;
    (void)version;
    if (!q) {
        struct hb_arena *arena = hb_arena_new();
        q = hb_arena_alloc(arena, 1, sizeof *q);
        *q = (struct request){.server = context, .arena = arena, .connection = c};
        *state = q;
        return begin(q, url, method);
    }
    if (*len && q->body) {
        q->got_bytes += *len;
        if (q->got_bytes > q->most_bytes || fwrite(data, 1, *len, q->body) != *len)
            return MHD_NO; /* closes the connection */
    }
    if (*len) {
        *len = 0;
        return MHD_YES;
    }
    if (q->refused)
        return MHD_YES;
    return q->file ? answer_get(q, q->file) : start_job(q);
}

static void complete(void *context, struct MHD_Connection *c, void **state,
                     enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)c;
    (void)code;
    if (*state)
        forget_request(*state);
    *state = NULL;
}

/* ---- the loop */

static void wake(struct request *q)
{
    if (q->suspended && (q->job->ended || q->job->len > q->job->taken)) {
        q->suspended = false;
        MHD_resume_connection(q->connection);
    }
}

/* Whether any job runs. */
static bool collect_jobs(const struct server *s, fd_set *reads, int *most)
{
    bool any = false;
    for (int i = 0; i < HB_SERVE_JOBS; i++) {
        if (!s->jobs[i])
            continue;
        int fd = hb_job_waits(s->jobs[i]->job, reads);
        *most = fd > *most ? fd : *most;
        any |= !s->jobs[i]->job->ended;
    }
    return any;
}

static void serve_jobs(struct server *s, const fd_set *reads, bool late)
{
    for (int i = 0; i < HB_SERVE_JOBS; i++) {
        if (!s->jobs[i])
            continue;
        hb_job_read(s->jobs[i]->job, reads);
        if (late)
            hb_job_tick(s->jobs[i]->job);
        wake(s->jobs[i]);
    }
}

static void do_nothing(int number)
{
    (void)number;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* Signals that end the server come only while it waits; one that came has its handler reset. */
static void hold_signals(sigset_t *out_before)
{
    struct sigaction once = {.sa_handler = do_nothing, .sa_flags = (int)SA_RESETHAND};
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        sigaction(ends[i], &once, NULL);
        sigaddset(&held, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &held, out_before);
    sigdelset(out_before, SIGINT);
    sigdelset(out_before, SIGTERM);
    sigdelset(out_before, SIGHUP);
}

static bool signal_came(void)
{
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction now;
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            return true;
    }
    return false;
}

/* One round: false at the end. */
static bool turn(struct server *s, const sigset_t *open_signals)
{
    fd_set reads, writes, errors;
    MHD_socket most = 0;
    unsigned long long wait_ms = 0;
    struct timespec wait = {0, TICK_NS};
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_ZERO(&errors);
    MHD_get_fdset(s->daemon, &reads, &writes, &errors, &most);
    bool busy = collect_jobs(s, &reads, &most);
    bool timed = MHD_get_timeout(s->daemon, &wait_ms) == MHD_YES;
    if (timed && (!busy || wait_ms < TICK_NS / 1000000))
        wait = (struct timespec){(time_t)(wait_ms / 1000), (long)(wait_ms % 1000) * 1000000};
    int ready =
        pselect(most + 1, &reads, &writes, &errors, timed || busy ? &wait : NULL, open_signals);
    if (ready < 0) {
        if (errno != EINTR || signal_came())
            return false;
        return true;
    }
    serve_jobs(s, &reads, ready == 0);
    return MHD_run_from_select(s->daemon, &reads, &writes, &errors) == MHD_YES;
}

static bool open_daemon(struct server *s)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)s->ask->port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    s->daemon = MHD_start_daemon(
        MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&here, MHD_OPTION_CONNECTION_LIMIT, (unsigned)HB_SERVE_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_COMPLETED, complete, s, MHD_OPTION_END);
    return s->daemon != NULL;
}

static void close_daemon(struct server *s)
{
    for (int i = 0; i < HB_SERVE_JOBS; i++) {
        if (!s->jobs[i])
            continue;
        struct request *q = s->jobs[i];
        hb_job_kill(q->job);
        if (q->suspended)
            MHD_resume_connection(q->connection);
        q->suspended = false;
    }
    MHD_stop_daemon(s->daemon);
}

bool hb_serve_built(void)
{
    return true;
}

bool hb_serve_run(const struct hb_serve *ask)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    struct server s = {.ask = ask};
    sigset_t open_signals;
    if (!open_daemon(&s))
        return hb_error(ask->env->diag, (struct hb_loc){0},
                        "--port: %lld cannot be had: %s; 0 takes any", (long long)ask->port,
                        strerror(errno));
    unsigned port = MHD_get_daemon_info(s.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    for (int i = 0; i < 2; i++)
        snprintf(s.hosts[i], HOST_ROOM, "%s:%u", names[i], port);
    hold_signals(&open_signals);
    fprintf(ask->env->out, "http://%s/%s/\n", s.hosts[0], ask->token);
    fflush(ask->env->out);
    while (turn(&s, &open_signals))
        continue;
    close_daemon(&s);
    return true;
}

#endif
