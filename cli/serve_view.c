/* What the page shows of a configuration: see serve_view.h. */
#include "cli/serve_view.h"

#include "base/arena.h"
#include "base/env.h"
#include "base/json_write.h"
#include "cli/head.h"
#include "cli/show.h"
#include "plots/outcome.h"

static void open_list(struct hb_json *j, const char *key)
{
    hb_json_key(j, key);
    hb_json_array(j);
}

static void put_ops(struct hb_json *j, const struct hb_program *p)
{
    open_list(j, "ops");
    for (uint32_t i = 0; i < p->op_count; i++) {
        hb_json_array(j);
        hb_json_text(j, p->ops[i].name);
        hb_json_text(j, hb_phase_name(p->ops[i].phase));
        hb_json_text(j, hb_stream_name(p->ops[i].stream));
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
}

static void put_positions(struct hb_json *j, const struct hb_outcome *o)
{
    open_list(j, "positions");
    for (uint32_t i = 0; i < o->sample_count; i++)
        hb_json_int(j, o->positions[i]);
    hb_json_array_end(j);
}

static void put_notes(struct hb_json *j, struct hb_arena *arena, const struct hb_program *p,
                      const struct hb_outcome *o)
{
    open_list(j, "notes");
    for (uint32_t i = 0; i < o->buffer_count; i++) {
        hb_json_array(j);
        hb_json_text(j, hb_show_shape(arena, &p->bufs[o->buffers[i].buf]));
        hb_json_text(j, o->buffers[i].why);
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
}

void hb_view_write(struct hb_env *env, FILE *out, const struct hb_result *r)
{
    struct hb_str text;
    struct hb_outcome outcome;
    struct hb_head head = hb_head_of(env, r->spec);
    hb_str_init(&text, env->arena);
    hb_outcome_make(env->arena, r, &outcome);
    struct hb_json j = hb_json_begin(&text, out, false);
    hb_json_object(&j);
    hb_json_key(&j, "result");
    hb_show_json(&j, env->arena, r, true, NULL, &head);
    put_ops(&j, &r->program);
    put_positions(&j, &outcome);
    put_notes(&j, env->arena, &r->program, &outcome);
    hb_json_object_end(&j);
    hb_json_end(&j);
}
