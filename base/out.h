/* Where a result goes: standard output, or a file that appears whole or not at all. What is
 * written is gathered in memory; hb_out_close puts it in a temporary file beside the target and
 * renames it. Whatever goes wrong on the way ends the program (hb_die) and leaves no trace. */
#ifndef HB_BASE_OUT_H
#define HB_BASE_OUT_H

#include <stdio.h>

struct hb_env;
struct hb_out;

/* path null or "-": env->out itself. Dies now rather than after the work where path plainly
 * cannot be written (a directory, no such folder, no permission). */
struct hb_out *hb_out_open(struct hb_env *env, const char *path);
/* Write here, with stdio. */
FILE *hb_out_file(struct hb_out *out);
/* Makes the result appear (on standard output, hb_out_finish does). A symbolic link is followed, a
 * file's permissions are kept, and what is no regular file (/dev/stdout, a pipe) is written
 * directly. A temporary file that a killed run left beside it is removed, with a warning. */
void hb_out_close(struct hb_out *out);
/* Forgets what was gathered; the target stays as it was. */
void hb_out_drop(struct hb_out *out);

/* Puts a screen between env->out, a terminal, and what is printed to it, so that no name from an
 * input steers the terminal. */
void hb_out_to_screen(struct hb_env *env);
/* The end of a command: flushes and closes env->out, prints the messages of env->diag after it,
 * and dies if any output was lost; without a message where its reader went away
 * (hbmsim ... | head), which the exit status tells. */
void hb_out_finish(struct hb_env *env);

#endif
