/* Counting reported verdicts: see validate_verdicts.h. A verdict is right where the predicted peak
 * is on the side of the budget that the report says; `may not fit` counts those among them that the
 * interval leaves open. */
#include "cli/validate_verdicts.h"

#include "base/size.h"
#include "base/str.h"

struct verdicts {
    uint32_t n;
    uint32_t failed;
    uint32_t right;
    uint32_t false_fits; /* said to fit, and it did not */
    uint32_t false_no;
    uint32_t open; /* tight, by the interval */
    uint32_t sure; /* of those that are not open, right */
};

/* Of one group, or of all with null. */
static struct verdicts count_verdicts(const struct hb_report *r, const char *group)
{
    struct verdicts v = {0};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        if (!c->verdict || (group && !hb_str_same(c->group, group)))
            continue;
        if (c->failed) {
            v.failed++;
            continue;
        }
        bool right = c->fits_predicted == c->fits_measured;
        bool open = c->word == HB_VERDICT_TIGHT;
        v.n++;
        v.right += right;
        v.false_fits += !right && c->fits_predicted;
        v.false_no += !right && !c->fits_predicted;
        v.open += open;
        v.sure += right && !open;
    }
    return v;
}

static void print_row(FILE *to, const char *name, const struct verdicts *v)
{
    fprintf(to, "%-34.34s %5u %6u %8u %16u %14u %13u\n", name, v->n, v->failed, v->right,
            v->false_fits, v->false_no, v->open);
}

static void print_wrong(const struct hb_report *r, FILE *to)
{
    char predicted[HB_SIZE_TEXT];
    char budget[HB_SIZE_TEXT];
    bool any = false;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        if (!c->verdict || c->failed || c->fits_predicted == c->fits_measured)
            continue;
        if (!any)
            fputs("\nwrong (record, reported, predicted of what there is)\n", to);
        any = true;
        fprintf(
            to, "  %-56s %-12s %12s of %s%s\n", c->id, c->fits_measured ? "fits" : "does not fit",
            hb_size_print(c->predicted_bytes, predicted), hb_size_print(c->budget_bytes, budget),
            c->word == HB_VERDICT_TIGHT ? ", may not fit" : "");
    }
}

static bool is_first_of_group(const struct hb_report *r, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (r->cases[i].verdict && hb_str_same(r->cases[i].group, r->cases[at].group))
            return false;
    return r->cases[at].verdict;
}

void hb_report_verdicts_text(const struct hb_report *r, FILE *to)
{
    struct verdicts all = count_verdicts(r, NULL);
    if (!all.n && !all.failed)
        return;
    fprintf(to, "\n%-34s %5s %6s %8s %16s %14s %13s\n", "reported verdicts", "n", "failed", "right",
            "fits, did not", "no, but fits", "may not fit");
    for (uint32_t i = 0; i < r->count; i++) {
        struct verdicts v = {0};
        if (!is_first_of_group(r, i))
            continue;
        v = count_verdicts(r, r->cases[i].group);
        print_row(to, *r->cases[i].group ? r->cases[i].group : "(no group)", &v);
    }
    print_row(to, "all verdicts", &all);
    fprintf(to, "of %u that the interval does not leave open %u are right\n", all.n - all.open,
            all.sure);
    print_wrong(r, to);
}

void hb_report_verdicts_json(const struct hb_report *r, struct hb_json *j)
{
    struct verdicts v = count_verdicts(r, NULL);
    hb_json_key(j, "verdicts");
    if (!v.n && !v.failed) {
        hb_json_null(j);
        return;
    }
    hb_json_object(j);
    hb_json_put_int(j, "n", v.n);
    hb_json_put_int(j, "failed", v.failed);
    hb_json_put_int(j, "right", v.right);
    hb_json_put_int(j, "false_fits", v.false_fits);
    hb_json_put_int(j, "false_no", v.false_no);
    hb_json_put_int(j, "tight", v.open);
    hb_json_object_end(j);
}
