/* Running a script and reading what it says: see script.h. */
#include "cli/script.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/child.h"
#include "base/env.h"
#include "base/json.h"
#include "base/str.h"

/* Of an answer: it is one line of a few KiB. */
enum { MOST_ANSWER = 1 << 16, MOST_WORD = 100, MOST_REASON = 600 };

/* A stranger's words on one line: at most so long, nothing that a terminal obeys. */
static const char *tame_text(struct hb_arena *arena, const char *text, size_t most)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (const char *c = text; *c && s.len < most; c++)
        if ((unsigned char)*c >= ' ' && *c != 127)
            hb_str_addn(&s, c, 1);
        else if (s.len && s.text[s.len - 1] != ' ')
            hb_str_add(&s, " ");
    return s.text;
}

/* The last line that it wrote to stderr, for one that ended without an answer. */
static const char *find_last_words(struct hb_arena *arena, const struct hb_child *child)
{
    const char *text = child->err.text;
    size_t len = child->err.len;
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    size_t from = len;
    while (from && text[from - 1] != '\n')
        from--;
    if (from == len)
        return "";
    return hb_arena_printf(
        arena, ": %s",
        tame_text(arena, hb_arena_strndup(arena, text + from, len - from), MOST_REASON));
}

static bool fail(struct hb_script *s, const char *reason)
{
    s->end = HB_SCRIPT_FAILED;
    s->reason = reason;
    return false;
}

/* Why there is no answer to read. False: there is none. */
static bool check_end(struct hb_env *env, const struct hb_script_ask *ask,
                      const struct hb_child *child, struct hb_script *s)
{
    struct hb_arena *arena = env->arena;
    const char *python = ask->argv[0];
    switch (child->end) {
    case HB_CHILD_DONE:
        return true;
    case HB_CHILD_ABSENT:
        if (child->status == ENOENT)
            return fail(s, hb_arena_printf(arena,
                                           "'%s' is not there: install Python 3, then %s; or name "
                                           "another one with --python",
                                           python, ask->install));
        return fail(
            s, hb_arena_printf(arena, "'%s' cannot be run: %s", python, strerror(child->status)));
    case HB_CHILD_SIGNAL:
        return fail(s, hb_arena_printf(arena, "%s was killed by signal %d%s", ask->name,
                                       child->status, s->last_words));
    case HB_CHILD_LATE:
        return fail(s, hb_arena_printf(
                           arena, "%s was stopped after %lld s; a longer time can be given with %s",
                           ask->name, (long long)(ask->most_ns / 1000000000), ask->longer));
    case HB_CHILD_LONG:
        return fail(
            s, hb_arena_printf(arena, "'%s' printed more than an answer: it was stopped", python));
    case HB_CHILD_INTERRUPTED:
        s->end = HB_SCRIPT_INTERRUPTED;
        s->signal = child->status;
        s->reason = "interrupted";
        return false;
    }
    return false;
}

static bool parse(struct hb_env *env, const struct hb_child *child, struct hb_node **out)
{
    struct hb_diag quiet;
    struct hb_loc start = {"the answer", 1, 1};
    hb_diag_init(&quiet, env->arena);
    return hb_json_parse(env->arena, &quiet, start, child->out.text, child->out.len, out) &&
           (*out)->kind == HB_NODE_MAP;
}

bool hb_script_run(struct hb_env *env, const struct hb_script_ask *ask, struct hb_script *out)
{
    struct hb_child child;
    struct hb_child_ask run = {.argv = ask->argv,
                               .input = ask->input,
                               .most_ns = ask->most_ns,
                               .most_bytes = MOST_ANSWER,
                               .now_ns = env->now_ns};
    *out = (struct hb_script){.end = HB_SCRIPT_ANSWERED};
    hb_child_run(env->arena, &run, &child);
    out->seconds = (double)child.took_ns * 1e-9;
    out->last_words = find_last_words(env->arena, &child);
    if (!check_end(env, ask, &child, out))
        return false;
    out->status = child.status;
    return parse(env, &child, &out->answer) ||
           fail(out, hb_arena_printf(env->arena, "'%s' gave no answer (status %d)%s", ask->argv[0],
                                     child.status, out->last_words));
}

const char *hb_script_error(struct hb_env *env, const struct hb_script *script)
{
    const struct hb_node *error = hb_node_find(script->answer, "error");
    return error && error->kind == HB_NODE_SCALAR ? tame_text(env->arena, error->text, MOST_REASON)
                                                  : NULL;
}

const char *hb_script_word(struct hb_env *env, const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    return node && node->kind == HB_NODE_SCALAR ? tame_text(env->arena, node->text, MOST_WORD) : "";
}

const struct hb_node *hb_script_words(struct hb_env *env, const struct hb_node *map,
                                      const char *key)
{
    const struct hb_node *from = hb_node_find(map, key);
    struct hb_loc nowhere = {0};
    struct hb_node *to = hb_node_new(env->arena, HB_NODE_MAP, nowhere);
    for (const struct hb_node *n = from && from->kind == HB_NODE_MAP ? from->first : NULL; n;
         n = n->next)
        if (n->kind == HB_NODE_SCALAR)
            hb_node_put(to, tame_text(env->arena, n->key, MOST_WORD), nowhere,
                        hb_node_scalar(env->arena, nowhere,
                                       tame_text(env->arena, n->text, MOST_WORD), true));
    return to;
}
