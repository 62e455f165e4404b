/* Lines of a log made whole before they are read: colours taken out, and messages that a terminal
 * or a pager broke over several lines put together again. */
#ifndef HB_SIM_HLO_LOGLINE_H
#define HB_SIM_HLO_LOGLINE_H

#include "sim/hlo/logtext.h"

enum {
    HB_LOG_JOINED_CAP = 2048, /* of a message put together; */
    HB_LOG_JOINED_LINES = 16  /* lines that follow the first at most */
};

struct hb_log_joined {
    char text[HB_LOG_JOINED_CAP];
    size_t len;       /* 0: none is open */
    size_t first_len; /* of the first line in it */
    int lines;        /* that follow it */
    int alike;        /* lines beside the first that are as wide, the one before it among them */
    int narrow;       /* of those that follow not as wide */
    bool bordered;    /* the last line ended at a terminal's border: the next goes on in its word */
};

/* Takes escape sequences (ESC [ ... letter) out of a line; its length then. */
size_t hb_log_line_plain(char *line, size_t len);
/* Of a text: the width that it was cut to, by its longest lines, or, where it was to none, the one
 * at which its sentences were broken between words; 0: at none. */
struct hb_log_widths {
    size_t fold;
    size_t wrap;
};
struct hb_log_widths hb_log_widths_of(struct hb_span text);
/* Whether a line so cut goes on in what is next. */
bool hb_log_is_folded(struct hb_span line, struct hb_span next, size_t width);
bool hb_log_is_wrapped(struct hb_span line, struct hb_span next, size_t width);
/* Without what schedulers and launchers put before a program's line. */
struct hb_span hb_log_line_bare(struct hb_span line);
/* Whether a message begins in the line that is known to go on, and does not. */
bool hb_log_line_is_cut(struct hb_span line);
/* before: the line before, which may be empty. */
void hb_log_line_begin(struct hb_log_joined *j, struct hb_span before, struct hb_span line);
/* The same with the line before, where the words that a message begins with are broken between
 * them. False: they are not, and nothing is open. */
bool hb_log_line_begin_both(struct hb_log_joined *j, struct hb_span before, struct hb_span line);
/* Adds the next line, without the prefix that it shares with the first. False: it does not belong
 * to the message. */
bool hb_log_line_add(struct hb_log_joined *j, struct hb_span line);
/* Whether nothing more is to be added. */
bool hb_log_line_is_done(const struct hb_log_joined *j);

#endif
