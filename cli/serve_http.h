/* The server of `hbmsim serve`: HTTP on this machine alone, in one process and one thread, which
 * answers from memory and forks for whatever is computed (serve_job.h).
 *
 * Who may ask: a path must begin with the token, Host and Origin must be this server's. */
#ifndef HB_CLI_SERVE_HTTP_H
#define HB_CLI_SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>

struct hb_env;

/* Jobs at one time, and connections. */
enum { HB_SERVE_JOBS = 24, HB_SERVE_CONNECTIONS = 128, HB_SERVE_TOKEN = 32 };

struct hb_serve {
    struct hb_env *env;
    int64_t port;       /* 0: any */
    const char *start;  /* what the page begins with, as JSON */
    const char *device; /* see serve_gate.h */
    char token[HB_SERVE_TOKEN + 1];
};

/* Whether the program was built with the library that this needs. */
bool hb_serve_built(void);
/* Prints the address to env->out and serves until SIGINT, SIGTERM or SIGHUP. False, with an error:
 * the port cannot be had. */
bool hb_serve_run(const struct hb_serve *serve);

#endif
