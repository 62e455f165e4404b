/* Reading inputs whole, and the questions about paths that includes ask.
 * Writing is elsewhere: nothing here changes the disk. */
#ifndef HB_BASE_FILE_H
#define HB_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct hb_arena;
struct hb_diag;

struct hb_text {
    const char *text; /* terminated; may hold NUL bytes before its end */
    size_t len;
};

/* The largest YAML, JSON or record file that is read. */
#define HB_FILE_MAX_BYTES ((size_t)64 << 20)

/* The content of path ("-": standard input). False: *out_reason says why not, as the end of a
 * sentence that begins with the file's name: "is a directory; a file is wanted". Where the machine
 * fails (no more descriptors, a disk's error), the run ends: it is no answer about this file. */
bool hb_file_load(struct hb_arena *arena, const char *path, size_t max_bytes,
                  struct hb_text *out_text, const char **out_reason);
/* An input of at most HB_FILE_MAX_BYTES; *out_name is what messages call it. False, with an error.
 */
bool hb_file_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                  struct hb_text *out_text, const char **out_name);
/* The first bytes of a file, at most so many; 0 of what is no regular file (a pipe's would be
 * lost). */
size_t hb_file_start(const char *path, char *out, size_t most);
/* The folder that holds path, with its slash: "a/b.yaml" gives "a/", "b.yaml" and "-" "". */
const char *hb_file_folder(struct hb_arena *arena, const char *path);
/* Whether path, symbolic links followed, lies in the tree of folder ("" is the current one).
 * False as well where either does not exist. */
bool hb_file_inside(const char *folder, const char *path);
/* Whether both paths lead to one existing file. */
bool hb_file_same(const char *a, const char *b);
/* What a write to path would change: the path whole, links followed, also one to a file that is
 * not there yet. Null: no file (a device, a pipe, no such folder); "-" is "-". */
const char *hb_file_target(struct hb_arena *arena, const char *path);
/* Whether path, links followed, is a file that ends: no pipe, on which a reader waits for ever. */
bool hb_file_regular(const char *path);
/* Names in a folder that end in suffix, without it, sorted, ended by null; empty if the folder
 * cannot be read (a fault of the machine ends the program). With a suffix those of regular files
 * alone. */
const char *const *hb_file_list(struct hb_arena *arena, const char *folder, const char *suffix);

#endif
