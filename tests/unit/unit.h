/* What the unit tests share: cmocka, a struct hb_env that writes to memory and has a clock that
 * the test sets, and a child process for what must end the program. Include it first. */
#ifndef HB_TESTS_UNIT_H
#define HB_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"

struct unit {
    struct hb_env env;
    struct hb_diag diag;
    char *out_text; /* valid after flushed_out */
    char *err_text;
    size_t out_len;
    size_t err_len;
};

static int64_t unit_clock_ns;

static inline int64_t unit_now_ns(void)
{
    return unit_clock_ns;
}

/* In the test's stack frame: memory streams keep pointers into it. */
static inline void unit_start(struct unit *u)
{
    memset(u, 0, sizeof *u);
    unit_clock_ns = 0;
    u->env.arena = hb_arena_new();
    u->env.diag = &u->diag;
    u->env.out = open_memstream(&u->out_text, &u->out_len);
    u->env.err = open_memstream(&u->err_text, &u->err_len);
    u->env.data_dir = ".";
    u->env.trace = "";
    u->env.version = "0";
    u->env.now_ns = unit_now_ns;
    u->env.width = 80;
    hb_diag_init(&u->diag, u->env.arena);
}

static inline const char *unit_out(struct unit *u)
{
    fflush(u->env.out);
    return u->out_text;
}

static inline const char *unit_err(struct unit *u)
{
    fflush(u->env.err);
    return u->err_text;
}

static inline void unit_end(struct unit *u)
{
    fclose(u->env.out);
    fclose(u->env.err);
    free(u->out_text);
    free(u->err_text);
    hb_arena_free(u->env.arena);
}

/* Each text with a unit of its own. */
static inline void unit_each_text(struct unit *u, const char *const *texts, size_t count,
                                  void (*check)(const char *text))
{
    for (size_t i = 0; i < count; i++) {
        unit_start(u);
        check(texts[i]);
        unit_end(u);
    }
}

/* Runs work in a child; its exit status (-1: a signal), and what it said on stderr in text. */
static inline int unit_child(void (*work)(const void *), const void *arg, char *text, size_t room)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0)
        return -2;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        work(arg);
        _exit(0);
    }
    close(ends[1]);
    /* What has no room is read as well: a child that counts coverage says much at its end. */
    size_t len = 0;
    char rest[512];
    for (ssize_t got = 1; got > 0;) {
        bool full = len + 1 >= room;
        got = read(ends[0], full ? rest : text + len, full ? sizeof rest : room - 1 - len);
        len += got > 0 && !full ? (size_t)got : 0;
    }
    text[len] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
