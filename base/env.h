/* What a command may touch of the world: memory, messages, outputs, the places of its data.
 * Made once in cli/main.c; tests make their own. No module reads the environment itself. */
#ifndef HB_BASE_ENV_H
#define HB_BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

struct hb_arena;

/* An input that a caller of the library gives as text, under the name that messages have. */
struct hb_given {
    const char *name; /* null: none */
    const char *text; /* terminated */
    size_t len;
};

/* What is printed to a terminal is gathered first and shown by hb_out_finish. */
struct hb_screen {
    FILE *to; /* null: env->out is no terminal */
    char *text;
    size_t len;
};

struct hb_env {
    struct hb_arena *arena; /* lives as long as the command */
    struct hb_diag *diag;
    FILE *out;
    struct hb_screen screen;
    FILE *err;
    struct hb_given given;
    const char *data_dir;    /* holds models/zoo and hw/db: the source tree, or share/hbmsim */
    const char *version;     /* of hbmsim */
    const char *trace;       /* HBM_TRACE: comma list of alloc, event, plan; "" for none */
    int64_t (*now_ns)(void); /* monotonic clock */
    int width;               /* columns of the terminal; 80 where out is none */
    bool guest;              /* in a process of somebody else, whose signals are not ours */
    bool out_is_terminal;
    bool err_is_terminal;
    bool unicode; /* the locale's character set is UTF-8 */
    bool colour;  /* out is a terminal and NO_COLOR is not set */
};

#endif
