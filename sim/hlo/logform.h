/* Inside the log reader: the forms of messages, one table a family, and the reader's state that
 * their handlers write to. Only the log_*.c files include this. */
#ifndef HB_SIM_HLO_LOGFORM_H
#define HB_SIM_HLO_LOGFORM_H

#include "sim/hlo/log.h"
#include "sim/hlo/logtext.h"

struct hb_log_reader;

/* How a form bears on the message of its kind. */
enum hb_form_act {
    HB_FORM_OPENS, /* a new message begins */
    HB_FORM_ADDS,  /* counts only within a message that has begun not long ago */
    HB_FORM_JOINS  /* adds, or begins a message where none has, or where the figure is taken */
};

/* How the figure is found; a row that does not say means the first. */
enum hb_form_value {
    HB_VALUE_AFTER,  /* "InUse: 5" */
    HB_VALUE_BEFORE, /* "1.04 GiB is free" */
    HB_VALUE_NAME,   /* the word behind it is the message's name */
    HB_VALUE_NONE
};

/* Where a form was met: the segment's text before and behind the anchor. */
struct hb_form_place {
    struct hb_span before;
    struct hb_span after;
};

/* A figure of a message: behind these words, counted from the figure before. */
struct hb_form_figure {
    const char *words; /* "": right here */
    int fact;
};

enum { HB_FORM_FIGURES = 3 };

/* A fixed text that says "here". A row with a handler leaves all to it. */
struct hb_form {
    const char *anchor; /* three bytes or more */
    enum hb_log_kind kind;
    enum hb_form_act act;
    int fact; /* enum hb_log_fact; a handler may read something else in it */
    enum hb_form_value value;
    int64_t unit_bytes; /* of a figure without unit; 0: 1 */
    void (*handle)(struct hb_log_reader *r, const struct hb_form *form,
                   const struct hb_form_place *place);
    bool word;          /* no letter, digit, '_' or '.' stands before the anchor */
    const char *text;   /* for the handler; hb_form_request: the message's name */
    const char *unless; /* text that must not stand right before it */
    const char *needs;  /* text that must stand behind it on the line */
    /* For hb_form_request: of these the first must be there. None: what was asked, right behind. */
    struct hb_form_figure figures[HB_FORM_FIGURES];
};

struct hb_forms {
    const struct hb_form *rows;
    size_t count;
};

extern const struct hb_forms hb_forms_xla;
extern const struct hb_forms hb_forms_bfc;
extern const struct hb_forms hb_forms_torch;
extern const struct hb_forms hb_forms_other;
extern const struct hb_forms hb_forms_run;
extern const struct hb_forms hb_forms_program;
extern const struct hb_forms hb_forms_any;

/* Begins a message; what was open of that kind is put away first. */
struct hb_log_message *hb_form_open(struct hb_log_reader *r, enum hb_log_kind kind);
/* The open message of that kind, or null if none is, or the last word of it is long past. */
struct hb_log_message *hb_form_current(struct hb_log_reader *r, enum hb_log_kind kind);
/* The open message, or a new one. */
struct hb_log_message *hb_form_join(struct hb_log_reader *r, enum hb_log_kind kind);
/* Of a process that was ended, for what is not said: the open message of the host's memory, or a
 * new one of a signal. A handler of a form too. */
void hb_form_end(struct hb_log_reader *r, const struct hb_form *form,
                 const struct hb_form_place *place);
/* Sets a figure that is not yet set, or was rounded and is told exactly now. */
void hb_form_set(struct hb_log_message *m, int fact, struct hb_amount amount);
/* Adds to a figure; unset counts as 0. */
void hb_form_add(struct hb_log_message *m, int fact, int64_t bytes);
/* Sets a figure to the smaller of the two. */
void hb_form_lower(struct hb_log_message *m, int fact, struct hb_amount amount);
/* Sets a figure to the larger of the two. */
void hb_form_raise(struct hb_log_message *m, int fact, struct hb_amount amount);
/* A new item of the message; null beyond HB_LOG_ITEMS. */
struct hb_log_item *hb_form_item(struct hb_log_reader *r, struct hb_log_message *m);
/* The list of buffers that was opened last: TPU or BUFFERS; null if none is open. */
struct hb_log_message *hb_form_list(struct hb_log_reader *r);
/* Says that the segment may tell of a refusal: once it is read, and no form took of it,
 * hb_form_take_any looks whether it does. */
void hb_form_any_seen(struct hb_log_reader *r);
void hb_form_take_any(struct hb_log_reader *r, struct hb_span segment);
/* Sets what was asked in the open message of kind, where the segment tells a refusal of it. */
void hb_form_complete(struct hb_log_reader *r, enum hb_log_kind kind, struct hb_span segment);
/* Takes into a refusal's message the figures of a line behind it: "Required memory: 5 GiB". */
void hb_form_follow(struct hb_log_reader *r, struct hb_log_message *m, struct hb_span segment);
/* Room for these, the same at each call. */
void *hb_form_scratch(struct hb_log_reader *r, size_t size);
/* Says that the open message of kind now has a list of buffers. */
void hb_form_list_of(struct hb_log_reader *r, enum hb_log_kind kind);
/* Whether a message of kind has begun, or is kept. */
bool hb_form_is_met(const struct hb_log_reader *r, enum hb_log_kind kind);
int64_t hb_form_line(const struct hb_log_reader *r);
/* Whether it is the first that has words: a title, or all that there is. */
bool hb_form_is_first_line(const struct hb_log_reader *r);
struct hb_log *hb_form_log(struct hb_log_reader *r);

/* A handler: a request that was refused, with what the row's figures tell. A size beyond all
 * devices opens HB_LOG_CORRUPT. */
void hb_form_request(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place);
void hb_form_name(struct hb_log_message *m, const char *name);
/* Bytes of an array: "4,2048" and the name of its type; -1 where either is not known. */
int64_t hb_form_array_bytes(struct hb_span dims, const char *type);

#endif
