/* plan --verify: the plan is compiled; one that does not fit teaches the search (solver/lessons.h),
 * which goes on, until what is shown was compiled and fits. */
#ifndef HB_CLI_PLAN_VERIFY_H
#define HB_CLI_PLAN_VERIFY_H

#include <stdio.h>

#include "cli/compiled.h"
#include "cli/show_plan.h"

enum { HB_VERIFY_MOST = 5, HB_VERIFY_CEILING = 100 };

/* What --verify and its companions say. */
struct hb_verify_ask {
    bool asked;
    const char *python;
    const char *keep; /* where records go, of all rounds; null: nowhere */
    int64_t seconds;  /* for one compilation */
    int64_t most;     /* compilations */
};

/* One plan that was compiled. */
struct hb_verify_round {
    const char *plan; /* its name */
    const char *kind; /* what resembles it */
    int64_t predicted_bytes;
    struct hb_compiled compiled;
};

enum hb_verify_end {
    HB_VERIFY_LEARNT,      /* the last one does not fit: search on */
    HB_VERIFY_FITS,        /* the plan was compiled and fits */
    HB_VERIFY_ENOUGH,      /* as many as were asked for, none fits */
    HB_VERIFY_INTERRUPTED, /* the last plan was not compiled to its end */
    HB_VERIFY_REFUSED,     /* likewise: compiled.reason of the last round */
    HB_VERIFY_FAILED,      /* likewise */
};

struct hb_verified {
    struct hb_verify_round rounds[HB_VERIFY_CEILING];
    struct hb_lesson lessons[HB_VERIFY_CEILING];
    uint32_t count; /* of rounds; and of lessons but for the last round */
    enum hb_verify_end end;
    double seconds; /* of all compilations */
};

/* Compiles the plan of the answer (found, and run) as one round more. After HB_VERIFY_LEARNT the
 * lessons are one more, too. False: an error is in the diag. */
bool hb_plan_verify(struct hb_env *env, const struct hb_verify_ask *verify,
                    const struct hb_plan_answer *a, struct hb_verified *v);

void hb_verified_text(struct hb_env *env, FILE *out, const struct hb_plan_answer *a);
/* As the value of a key. */
void hb_verified_json(struct hb_json *j, const struct hb_verified *v);

#endif
