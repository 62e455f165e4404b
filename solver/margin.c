/* Margins: see margin.h. Bytes and per cent lower the budget of the peak; a confident one asks for
 * more of each configuration, its interval's upper end. */
#include "solver/margin.h"

#include <stdlib.h>

#include "base/env.h"
#include "base/size.h"
#include "base/str.h"

static bool read_percent(const char *text, double *out)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || !hb_str_same(end, "%") || !(value >= 0 && value < 100))
        return false;
    *out = value / 100;
    return true;
}

/* "confident", "none", "2GiB", "5%". False: something else. */
static bool parse_margin(const char *text, struct hb_margin *out)
{
    struct hb_margin m = {HB_MARGIN_CONFIDENT, 0, 0};
    if (hb_str_same(text, "none"))
        m.kind = HB_MARGIN_NONE;
    else if (read_percent(text, &m.part))
        m.kind = HB_MARGIN_PERCENT;
    else if (hb_size_parse(text, &m.bytes))
        m.kind = HB_MARGIN_BYTES;
    else if (!hb_str_same(text, "confident"))
        return false;
    *out = m;
    return true;
}

const char *hb_margin_name(enum hb_margin_kind kind)
{
    static const char *const names[] = {"confident", "none", "bytes", "percent"};
    return names[kind];
}

bool hb_margin_apply(struct hb_plan_ask *ask, struct hb_margin *out)
{
    const char *text = ask->spec->plan.margin;
    if (!parse_margin(text, out))
        return hb_error(ask->env->diag, (struct hb_loc){0},
                        "plan.margin: '%s'; allowed: confident, none, bytes as 2GiB, or a part of "
                        "the budget as 5%%",
                        text);
    ask->whole_bytes = ask->budget_bytes;
    if (out->kind == HB_MARGIN_CONFIDENT)
        ask->confidence = ask->spec->plan.confidence;
    int64_t free_bytes = out->bytes;
    if (out->kind == HB_MARGIN_PERCENT)
        free_bytes = (int64_t)((double)ask->whole_bytes * out->part);
    ask->budget_bytes = free_bytes < ask->whole_bytes ? ask->whole_bytes - free_bytes : 0;
    return true;
}

bool hb_margin_prefers_room(const struct hb_plan_ask *ask, const struct hb_margin *margin)
{
    return ask->spec->plan.prefer == HB_PREFER_ROOM && margin->kind != HB_MARGIN_NONE;
}

/* What a margin costs is not worth more than about as much as the plan itself. */
enum { MARGIN_RUNS = 1000, MARGIN_PRICED = 2000000 };

struct hb_plan_ask hb_margin_without(const struct hb_plan_ask *ask, const struct hb_plan *plan)
{
    struct hb_plan_ask again = *ask;
    again.budget_bytes = ask->whole_bytes;
    again.confidence = 0;
    again.most_alternatives = 0;
    again.lp_stem = NULL;
    again.polish = false;
    again.value_only = true;
    again.most_runs = MARGIN_RUNS;
    again.most_priced = MARGIN_PRICED;
    again.like = plan;
    again.above = NULL;
    return again;
}
