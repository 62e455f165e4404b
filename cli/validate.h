/* The report of `validate`: cases gathered over files, printed as text or JSON. */
#ifndef HB_CLI_VALIDATE_H
#define HB_CLI_VALIDATE_H

#include <stdio.h>

#include "base/node.h"
#include "cli/head.h"
#include "sim/engine/pairs.h"
#include "sim/engine/validate.h"

struct hb_report {
    struct hb_arena *arena;
    struct hb_case *cases;
    uint32_t count, cap;
    uint32_t worst;                      /* how many of the worst to list */
    const struct hb_node *compiler_list; /* [[bytes, shape, name], ...]; null: not there */
    const char *explanation;             /* of one case; null until hb_report_explain */
    bool intervals;                      /* asked for by what cases are like */
    const struct hb_pairs *pairs;        /* null: not asked for */
    const char *first_date;              /* of the records that have one; null: none has */
    const char *last_date;
    uint32_t named;       /* records whose configuration could be read, */
    const char *compiler; /* what all of them have; null: there are several */
    const char *device;
};

void hb_report_add(struct hb_report *r, const struct hb_case *c);
/* Of one group, or of all with null. */
struct hb_stats hb_report_stats(struct hb_arena *scratch, const struct hb_report *r,
                                const char *group, bool usual);
/* Both sides' tensors at the peak, largest first, side by side. */
void hb_report_explain(struct hb_report *r, const struct hb_case *c,
                       const struct hb_program *program, const struct hb_memory *memory);
/* Takes the compiler and the device of a record into account. */
void hb_report_name(struct hb_report *r, const struct hb_spec *spec);
/* Takes the record's "date" into account. */
void hb_report_date(struct hb_report *r, const struct hb_node *record);
/* The calibration table of the cases: sim/engine/interval_table.c. */
void hb_report_calibration(const struct hb_report *r, FILE *to);
/* By what cases are like: how many there are, how often the truth is within, how wide it is. */
void hb_report_intervals_text(const struct hb_report *r, FILE *to);
void hb_report_text(const struct hb_report *r, FILE *to);
void hb_report_json(const struct hb_report *r, const struct hb_head *head, FILE *to);

#endif
