/* Where people have the libraries of a GPU: folders that they name, the wheels of their Python, a
 * conda environment, the toolkits' own places. Nothing is loaded here. */
#ifndef HB_HW_LIBS_H
#define HB_HW_LIBS_H

#include <stdint.h>

struct hb_arena;

struct hb_libs_ask {
    const char *const *given; /* by the user: no other place is looked in but for the driver's */
    uint32_t given_count;
    const char *python; /* a name in PATH or a path, which is asked for its wheels; null: none */
    const char *root;   /* stands before /usr/local and /opt; "" but in tests */
    int64_t (*now_ns)(void);
};

struct hb_libs {
    const char *const *given;   /* and the system's own places ("", as hw/dl.h has it) */
    const char *const *folders; /* given, or what was found and the system's; ended by null */
    int signal;                 /* that came while the Python was asked; 0: none */
};

void hb_libs_find(struct hb_arena *arena, const struct hb_libs_ask *ask, struct hb_libs *out);

#endif
