/* An append-only file of lines that outlives a kill: each line is written whole, and what a killed
 * writer left half-written at the end is cut off when the file is opened again. Each line but the
 * first ends with its checksum: one that was changed since is refused, not believed. */
#ifndef HB_SOLVER_JOURNAL_H
#define HB_SOLVER_JOURNAL_H

#include "base/json.h"

struct hb_journal;

/* The lines of path that have their end; *out_text is the file up to there, null where there is no
 * such file. False: it cannot be read, or a line was changed (an error says so). */
bool hb_journal_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     const char **out_text, struct hb_jsonl *out_lines);
/* For appending, made with its first line where it is not there. Dies where it cannot be written.
 */
struct hb_journal *hb_journal_open(struct hb_arena *arena, const char *path, const char *first);
/* A line with its end, a JSON object with members: its checksum becomes the last of them. */
void hb_journal_add(struct hb_journal *journal, const char *line, size_t len);
void hb_journal_close(struct hb_journal *journal);

#endif
