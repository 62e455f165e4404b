/* One work that the page asks for, done by a process of its own: the commands of this program, on a
 * configuration that is its standard input. What it prints is what the page gets. */
#ifndef HB_CLI_SERVE_WORK_H
#define HB_CLI_SERVE_WORK_H

#include <stdbool.h>
#include <stddef.h>

struct hb_env;

enum { HB_WORK_ARGS = 12 };

struct hb_work {
    const char *name;
    const char *keys[HB_WORK_ARGS]; /* of the query */
    const char *values[HB_WORK_ARGS];
    int count;
    const char *device; /* see serve_gate.h */
};

/* The largest body that a work takes; 0: there is no such work. */
size_t hb_work_most_bytes(const char *name);
/* Standard input is the body, a file; env->out and env->err are whose who listens. The exit status
 * of the command. */
int hb_work_run(struct hb_env *env, const struct hb_work *work);

#endif
