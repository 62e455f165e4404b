/* Three kinds of trouble, three words:
 *   the input is wrong        hb_error: collected with file, line and column, exit status 2;
 *   the environment fails     hb_die:   one line on stderr, exit status 3;
 *   we are wrong              HB_BUG:   asks to be reported, exit status 3 (aborts in debug
 * builds).
 * In a call of the library (lib/call.c) the last two end that call, not the process. */
#ifndef HB_BASE_DIAG_H
#define HB_BASE_DIAG_H

#include <stdbool.h>
#include <stdio.h>

struct hb_arena;

/* A place in an input. line and column count from 1; 0: not known, left out of the message. */
struct hb_loc {
    const char *file; /* null: no file, as for the command line */
    int line;
    int column;
};

enum { HB_DIAG_MAX_ERRORS = 20 };

struct hb_diag_entry {
    struct hb_loc loc;
    const char *text;
    bool warning;
};

/* What went wrong so far. Plain record: readers may walk entries. */
struct hb_diag {
    struct hb_arena *arena; /* owns the texts */
    int count;              /* entries kept */
    int errors;             /* errors seen, those beyond the limit included */
    bool quiet;             /* whoever asks wants no words: errors are counted, nothing is kept */
    struct hb_diag_entry entries[HB_DIAG_MAX_ERRORS];
};

void hb_diag_init(struct hb_diag *diag, struct hb_arena *arena);
/* Records an error; returns false so that `return hb_error(...)` reads well. */
bool hb_error(struct hb_diag *diag, struct hb_loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__
/* clang-tidy does not see into diag.c: so that it knows what is returned. */
#define hb_error(...) (hb_error(__VA_ARGS__), false)
#endif
/* Records a remark that does not stop the run. */
void hb_warn(struct hb_diag *diag, struct hb_loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints `file:line:column: error: text` for each entry, and forgets them. */
void hb_diag_print(struct hb_diag *diag, FILE *err);

_Noreturn void hb_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same without a word. */
_Noreturn void hb_quit(void);
_Noreturn void hb_bug(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define HB_BUG(...) hb_bug(__FILE__, __LINE__, __VA_ARGS__)

#endif
