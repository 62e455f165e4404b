/* Rounds of compilations, and their table: see plan_verify.h. */
#include "cli/plan_verify.h"

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/utf8.h"
#include "cli/keep.h"

static enum hb_verify_end end_of(const struct hb_verify_ask *verify, const struct hb_plan_answer *a,
                                 const struct hb_verified *v)
{
    const struct hb_compiled *c = &v->rounds[v->count - 1].compiled;
    switch (c->end) {
    case HB_COMPILED:
        if (c->total_bytes <= a->ask->whole_bytes)
            return HB_VERIFY_FITS;
        return (int64_t)v->count < verify->most ? HB_VERIFY_LEARNT : HB_VERIFY_ENOUGH;
    case HB_COMPILE_REFUSED:
        return HB_VERIFY_REFUSED;
    case HB_COMPILE_FAILED:
        return HB_VERIFY_FAILED;
    case HB_COMPILE_INTERRUPTED:
        return HB_VERIFY_INTERRUPTED;
    }
    return HB_VERIFY_FAILED;
}

bool hb_plan_verify(struct hb_env *env, const struct hb_verify_ask *verify,
                    const struct hb_plan_answer *a, struct hb_verified *v)
{
    const struct hb_cell *cell = &a->plan->space.cells[hb_show_chosen(a)->cell];
    struct hb_verify_round *round = &v->rounds[v->count];
    struct hb_compile_ask ask = {
        .python = verify->python, .seconds = verify->seconds, .spec = a->spec};
    *round = (struct hb_verify_round){
        .plan = hb_show_plan_name(env, hb_show_chosen_plan(a), hb_show_chosen(a)),
        .kind = hb_cell_kind_name(env->arena, cell),
        .predicted_bytes = a->result->memory.peak_bytes};
    if (env->err_is_terminal)
        hb_utf8_say(env->err, "hbmsim plan: compiling %s\n", round->plan);
    hb_compile(env, &ask, &round->compiled);
    v->seconds += round->compiled.seconds;
    v->lessons[v->count] = (struct hb_lesson){hb_cell_kind(cell),
                                              round->compiled.total_bytes - round->predicted_bytes};
    v->count++;
    v->end = end_of(verify, a, v);
    return round->compiled.end != HB_COMPILED || !verify->keep ||
           hb_keep_record(env, verify->keep, NULL, a->spec, a->ask->whole_bytes, &round->compiled);
}

/* --- text and JSON --- */

static void show_rounds(struct hb_env *env, FILE *out, const struct hb_plan_answer *a)
{
    const struct hb_verified *v = a->verified;
    char more[HB_SIZE_TEXT];
    for (uint32_t i = 0; i < v->count; i++) {
        const struct hb_verify_round *r = &v->rounds[i];
        if (r->compiled.end != HB_COMPILED)
            continue;
        fprintf(out, "  %u  %s\n     %s\n", i + 1, r->plan,
                hb_compiled_line(env, &r->compiled, a->ask->whole_bytes, r->predicted_bytes));
        if (r->compiled.total_bytes > a->ask->whole_bytes)
            fprintf(out, "     does not fit: what resembles it counts %s more (%s)\n",
                    hb_size_print(v->lessons[i].more_bytes, more), r->kind);
    }
}

void hb_verified_text(struct hb_env *env, FILE *out, const struct hb_plan_answer *a)
{
    const struct hb_verified *v = a->verified;
    const struct hb_verify_round *last = &v->rounds[v->count - 1];
    bool fits = v->end == HB_VERIFY_FITS;
    const char *colour = fits ? "\033[1;32m" : "\033[1;31m";
    const char *why = v->end == HB_VERIFY_INTERRUPTED ? "interrupted"
                      : !a->plan->found               ? "nothing is left that may fit"
                                                      : "--verify-most";
    fprintf(out, "\n%s%s%s: ", env->colour ? colour : "", fits ? "VERIFIED" : "NOT VERIFIED",
            env->colour ? "\033[0m" : "");
    if (fits)
        fprintf(out, "%s",
                hb_compiled_line(env, &last->compiled, a->ask->whole_bytes, last->predicted_bytes));
    else
        fprintf(out, "%s", why);
    fprintf(out, "; %u compilation%s, %.0f s\n", v->count, v->count == 1 ? "" : "s", v->seconds);
    if (v->count > 1 || !fits)
        show_rounds(env, out, a);
}

static void put_bytes(struct hb_json *j, const char *key, int64_t bytes)
{
    hb_json_key(j, key);
    if (bytes > 0)
        hb_json_int(j, bytes);
    else
        hb_json_null(j);
}

static void put_round(struct hb_json *j, const struct hb_verify_round *r)
{
    hb_json_object(j);
    hb_json_put_text(j, "plan_name", r->plan);
    hb_json_put_text(j, "resembles", r->kind);
    put_bytes(j, "predicted_bytes", r->predicted_bytes);
    put_bytes(j, "compiled_bytes", r->compiled.total_bytes);
    hb_json_put_real(j, "seconds", r->compiled.seconds);
    hb_json_object_end(j);
}

void hb_verified_json(struct hb_json *j, const struct hb_verified *v)
{
    const struct hb_compiled *last = &v->rounds[v->count - 1].compiled;
    hb_json_object(j);
    hb_json_put_bool(j, "fits", v->end == HB_VERIFY_FITS);
    hb_json_put_text(j, "by", last->by);
    hb_json_put_text(j, "topology", last->topology);
    put_bytes(j, "compiled_bytes", last->total_bytes);
    hb_json_put_int(j, "rounds", v->count);
    hb_json_put_real(j, "seconds", v->seconds);
    hb_json_key(j, "tried");
    hb_json_array(j);
    for (uint32_t i = 0; i < v->count; i++)
        put_round(j, &v->rounds[i]);
    hb_json_array_end(j);
    hb_json_object_end(j);
}
