/* hbmsim compare: configurations side by side: the keys that differ, the peak by category and by
 * tensor, the time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/input.h"
#include "cli/show.h"
#include "models/schema.h"
#include "plots/picture.h"
#include "sim/engine/result.h"

struct options {
    struct hb_common common;
    struct hb_words files;
    struct hb_words vary;
    struct hb_draw_options draw;
    int64_t most;
};

enum { MOST_SIDES = 8, NAME_WIDTH = 44, VALUE_WIDTH = 22 };

/* One configuration. */
struct side {
    const char *name;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_result result;
};

/* A key, and its value in each configuration ("" where it has none). */
struct row {
    const char *key;
    const char *values[MOST_SIDES];
    int64_t bytes[MOST_SIDES];
};

struct rows {
    struct row *items;
    uint32_t count;
    uint32_t cap;
};

struct answer {
    struct hb_env *env;
    struct side *sides;
    int count;
    struct rows keys;    /* that differ */
    struct rows tensors; /* at some peak, by how much they differ */
};

static struct row *row_of(struct hb_arena *arena, struct rows *rows, const char *key)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (hb_str_same(rows->items[i].key, key))
            return &rows->items[i];
    rows->items = hb_grow(arena, rows->items, rows->count, &rows->cap, sizeof *rows->items);
    struct row *row = &rows->items[rows->count++];
    row->key = key;
    for (int s = 0; s < MOST_SIDES; s++)
        row->values[s] = "";
    return row;
}

/* ---- what differs */

static bool is_leaf(const struct hb_node *node)
{
    if (node->kind != HB_NODE_LIST)
        return node->kind == HB_NODE_SCALAR;
    for (const struct hb_node *n = node->first; n; n = n->next)
        if (n->kind != HB_NODE_SCALAR)
            return false;
    return true;
}

static const char *leaf_text(struct hb_arena *arena, const struct hb_node *node)
{
    struct hb_str text;
    if (node->kind == HB_NODE_SCALAR)
        return node->text;
    hb_str_init(&text, arena);
    hb_str_add(&text, "[");
    for (const struct hb_node *n = node->first; n; n = n->next)
        hb_str_addf(&text, "%s%s", n == node->first ? "" : ", ", n->text);
    hb_str_add(&text, "]");
    return text.text;
}

static void add_leaves(struct answer *a, int side, const char *path, const struct hb_node *node)
{
    struct hb_arena *arena = a->env->arena;
    if (is_leaf(node)) {
        row_of(arena, &a->keys, path)->values[side] = leaf_text(arena, node);
        return;
    }
    int index = 0;
    for (const struct hb_node *n = node->first; n; n = n->next, index++)
        add_leaves(a, side,
                   n->key ? hb_arena_printf(arena, "%s%s%s", path, *path ? "." : "", n->key)
                          : hb_arena_printf(arena, "%s[%d]", path, index),
                   n);
}

static bool has_leaf(const struct rows *rows, const char *key)
{
    bool has = false;
    for (uint32_t i = 0; i < rows->count && !has; i++)
        has = hb_str_same(rows->items[i].key, key);
    return has;
}

/* What is only the default of a section that another side has not (plan, load) is no difference. */
static void find_keys(struct answer *a)
{
    uint32_t kept = 0;
    struct answer said = {.env = a->env};
    for (int s = 0; s < a->count; s++) {
        add_leaves(a, s, "", hb_schema_emit(a->env->arena, &a->sides[s].spec, true));
        add_leaves(&said, s, "", hb_schema_emit(a->env->arena, &a->sides[s].spec, false));
    }
    for (uint32_t i = 0; i < a->keys.count; i++) {
        const struct row *row = &a->keys.items[i];
        bool differs = false, absent = false;
        for (int s = 0; s < a->count; s++) {
            differs |= !hb_str_same(row->values[s], row->values[0]);
            absent |= !row->values[s][0];
        }
        if (differs && (!absent || has_leaf(&said.keys, row->key)))
            a->keys.items[kept++] = a->keys.items[i];
    }
    a->keys.count = kept;
}

static int64_t spread(const struct row *row, int count)
{
    int64_t least = row->bytes[0];
    int64_t most = row->bytes[0];
    for (int s = 1; s < count; s++) {
        least = row->bytes[s] < least ? row->bytes[s] : least;
        most = row->bytes[s] > most ? row->bytes[s] : most;
    }
    return most - least;
}

/* Tensors of one name count together, as those of a stack's layers do. */
static void find_tensors(struct answer *a)
{
    struct rows *t = &a->tensors;
    for (int s = 0; s < a->count; s++) {
        const struct hb_result *r = &a->sides[s].result;
        for (uint32_t i = 0; i < r->memory.at_peak_count; i++) {
            const struct hb_buf *buf = &r->program.bufs[r->memory.at_peak[i].buf];
            row_of(a->env->arena, t, buf->name)->bytes[s] += r->memory.at_peak[i].bytes;
        }
    }
    for (uint32_t i = 1; i < t->count; i++) /* insertion: stable, and there are hundreds at most */
        for (uint32_t k = i;
             k > 0 && spread(&t->items[k], a->count) > spread(&t->items[k - 1], a->count); k--) {
            struct row swap = t->items[k];
            t->items[k] = t->items[k - 1];
            t->items[k - 1] = swap;
        }
    while (t->count && !spread(&t->items[t->count - 1], a->count))
        t->count--;
}

/* ---- reading */

static const char *side_name(struct hb_env *env, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t len = strlen(name);
    if (hb_str_same(name, "model.yaml") && slash && slash > path) {
        const char *start = slash;
        while (start > path && start[-1] != '/')
            start--;
        return hb_arena_strndup(env->arena, start, (size_t)(slash - start));
    }
    return hb_str_ends(name, ".yaml") ? hb_arena_strndup(env->arena, name, len - 5) : name;
}

static bool run_side(struct hb_env *env, const char *path, const struct hb_words *sets,
                     struct side *side)
{
    return hb_input_read(env, path, sets, &side->spec, &side->device) &&
           hb_result_run(env->arena, env->diag, &side->spec, &side->device, &side->result);
}

/* Each KEY=VALUE of "a=1 b=2" behind the common sets; blanks in brackets part nothing. */
static struct hb_words vary_sets(struct hb_env *env, const struct hb_words *common,
                                 const char *text)
{
    struct hb_words sets = {0};
    for (uint32_t i = 0; i < common->count; i++)
        hb_words_add(&sets, env->arena, common->items[i]);
    while (*(text += strspn(text, " "))) {
        const char *end = text;
        for (int depth = 0; *end && (*end != ' ' || depth > 0); end++)
            depth += (strchr("[{", *end) != NULL) - (strchr("]}", *end) != NULL);
        hb_words_add(&sets, env->arena, hb_arena_strndup(env->arena, text, (size_t)(end - text)));
        text = end;
    }
    return sets;
}

static bool read_sides(struct hb_env *env, const struct options *o, struct answer *a)
{
    uint32_t count = o->files.count + o->vary.count;
    bool ok = true;
    if (count < 2 || count > MOST_SIDES)
        return hb_error(env->diag, (struct hb_loc){0},
                        "%u configuration%s; allowed: 2 to %d files, or one with --vary KEY=VALUE "
                        "(--set is of all of them)",
                        count, count == 1 ? "" : "s", MOST_SIDES);
    if (o->vary.count && o->files.count > 1)
        return hb_error(env->diag, (struct hb_loc){0}, "--vary is of one file");
    a->sides = hb_arena_alloc(env->arena, count, sizeof *a->sides);
    for (uint32_t i = 0; i < o->files.count; i++) {
        struct side *side = &a->sides[a->count++];
        side->name = side_name(env, o->files.items[i]);
        ok &= run_side(env, o->files.items[i], &o->common.set, side);
    }
    for (uint32_t i = 0; i < o->vary.count; i++) {
        struct side *side = &a->sides[a->count++];
        struct hb_words sets = vary_sets(env, &o->common.set, o->vary.items[i]);
        side->name = o->vary.items[i];
        ok &= run_side(env, o->files.items[0], &sets, side);
    }
    return ok;
}

/* ---- text */

static void print_cells(FILE *to, const char *title, const char *const *cells, int count)
{
    fprintf(to, "  %-*s", NAME_WIDTH, title);
    if (strlen(title) > NAME_WIDTH)
        fprintf(to, "\n  %-*s", NAME_WIDTH, "");
    for (int s = 0; s < count; s++)
        fprintf(to, " %*s", VALUE_WIDTH, cells[s]);
    fputc('\n', to);
}

static void print_bytes(FILE *to, struct hb_arena *arena, const char *title, const int64_t *bytes,
                        int count)
{
    const char *cells[MOST_SIDES];
    for (int s = 0; s < count; s++) {
        char *text = hb_arena_alloc(arena, HB_SIZE_TEXT, 1);
        cells[s] = bytes[s] ? hb_size_print(bytes[s], text) : "-";
    }
    print_cells(to, title, cells, count);
}

static void print_head(FILE *to, const struct answer *a)
{
    const char *cells[MOST_SIDES];
    for (int s = 0; s < a->count; s++) {
        size_t len = strlen(a->sides[s].name);
        const char *name = a->sides[s].name;
        cells[s] = len <= VALUE_WIDTH ? name : hb_arena_printf(a->env->arena, "(%d)", s + 1);
        if (len > VALUE_WIDTH)
            fprintf(to, "(%d) is %s\n", s + 1, name);
    }
    print_cells(to, "", cells, a->count);
}

static void print_memory(FILE *to, const struct answer *a)
{
    struct hb_arena *arena = a->env->arena;
    const char *cells[MOST_SIDES];
    int64_t bytes[MOST_SIDES];
    for (int s = 0; s < a->count; s++)
        cells[s] = hb_verdict_name(a->sides[s].result.verdict);
    fputs("\nPeak\n", to);
    print_cells(to, "verdict", cells, a->count);
    for (int s = 0; s < a->count; s++)
        bytes[s] = a->sides[s].result.memory.peak_bytes;
    print_bytes(to, arena, "peak", bytes, a->count);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        bool any = false;
        for (int s = 0; s < a->count; s++) {
            bytes[s] = a->sides[s].result.memory.category_bytes[c];
            any |= bytes[s] != 0;
        }
        if (any)
            print_bytes(to, arena, hb_category_name((enum hb_category)c), bytes, a->count);
    }
}

static void print_time(FILE *to, const struct answer *a)
{
    struct hb_arena *arena = a->env->arena;
    const char *step[MOST_SIDES], *rate[MOST_SIDES], *mfu[MOST_SIDES];
    for (int s = 0; s < a->count; s++) {
        const struct hb_result *r = &a->sides[s].result;
        char *text = hb_arena_alloc(arena, HB_SIZE_TEXT, 1);
        step[s] = hb_time_print((int64_t)(r->step_seconds * 1e9), text);
        text = hb_arena_alloc(arena, HB_SIZE_TEXT, 1);
        rate[s] = hb_count_print(r->tokens_per_second, text);
        mfu[s] = hb_arena_printf(arena, "%.1f %%", r->mfu * 100);
    }
    fputs("\nTime\n", to);
    print_cells(to, "step", step, a->count);
    print_cells(to, "tokens a second", rate, a->count);
    print_cells(to, "MFU", mfu, a->count);
}

static void print_text(FILE *to, const struct answer *a, int64_t most)
{
    print_head(to, a);
    fputs(a->keys.count ? "Keys\n" : "No key differs.\n", to);
    for (uint32_t i = 0; i < a->keys.count; i++)
        print_cells(to, a->keys.items[i].key, a->keys.items[i].values, a->count);
    print_memory(to, a);
    if (a->tensors.count)
        fputs("\nTensors at the peak that differ most\n", to);
    for (uint32_t i = 0; i < a->tensors.count && i < most; i++)
        print_bytes(to, a->env->arena, a->tensors.items[i].key, a->tensors.items[i].bytes,
                    a->count);
    if (a->tensors.count > most)
        fprintf(to, "  %lld more\n", (long long)(a->tensors.count - most));
    print_time(to, a);
}

/* ---- JSON */

static void write_side(struct hb_json *j, const struct hb_env *env, const struct side *side)
{
    const struct hb_result *r = &side->result;
    struct hb_head head = hb_head_of(env, &side->spec);
    head.name = side->name;
    hb_json_object(j);
    hb_head_json(j, &head);
    hb_json_put_bool(j, "fits", r->fits);
    hb_json_put_text(j, "verdict", hb_verdict_name(r->verdict));
    hb_json_put_int(j, "peak_bytes", r->memory.peak_bytes);
    hb_json_put_int(j, "budget_bytes", r->budget_bytes);
    hb_show_categories_json(j, &r->memory);
    hb_json_put_real(j, "step_seconds", r->step_seconds);
    hb_json_put_real(j, "tokens_per_second", r->tokens_per_second);
    hb_json_put_real(j, "mfu", r->mfu);
    hb_json_object_end(j);
}

static void write_rows(struct hb_json *j, const char *title, const struct rows *rows, int count,
                       bool bytes)
{
    hb_json_key(j, title);
    hb_json_array(j);
    for (uint32_t i = 0; i < rows->count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, bytes ? "name" : "key", rows->items[i].key);
        hb_json_key(j, bytes ? "bytes" : "values");
        hb_json_array(j);
        for (int s = 0; s < count; s++)
            if (bytes)
                hb_json_int(j, rows->items[i].bytes[s]);
            else
                hb_json_text(j, rows->items[i].values[s]);
        hb_json_array_end(j);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static const char *same_text(const char *a, const char *b)
{
    return a && b && hb_str_same(a, b) ? a : NULL;
}

/* What all have in common; each has a head of its own. */
static struct hb_head find_head(const struct answer *a)
{
    struct hb_head all = hb_head_of(a->env, &a->sides[0].spec);
    all.configuration = NULL;
    for (int s = 1; s < a->count; s++) {
        struct hb_head other = hb_head_of(a->env, &a->sides[s].spec);
        all.name = same_text(all.name, other.name);
        all.compiler = same_text(all.compiler, other.compiler);
        all.device = same_text(all.device, other.device);
    }
    return all;
}

static void print_json(FILE *to, const struct answer *a)
{
    struct hb_str text;
    hb_str_init(&text, a->env->arena);
    struct hb_json j = hb_json_begin(&text, to, true);
    hb_json_object(&j);
    struct hb_head head = find_head(a);
    hb_head_json(&j, &head);
    hb_json_key(&j, "configurations");
    hb_json_array(&j);
    for (int s = 0; s < a->count; s++)
        write_side(&j, a->env, &a->sides[s]);
    hb_json_array_end(&j);
    write_rows(&j, "keys", &a->keys, a->count, false);
    write_rows(&j, "tensors", &a->tensors, a->count, true);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

/* ---- the command */

static void draw(struct hb_env *env, const struct options *o, const struct answer *a)
{
    struct hb_outcome *outcomes = hb_arena_alloc(env->arena, (size_t)a->count, sizeof *outcomes);
    struct hb_picture picture = {
        .kind = HB_PICTURE_BREAKDOWN, .outcomes = outcomes, .outcome_count = (uint32_t)a->count};
    for (int s = 0; s < a->count; s++) {
        hb_outcome_make(env->arena, &a->sides[s].result, &outcomes[s]);
        outcomes[s].name = a->sides[s].name;
    }
    hb_draw_picture(env, &picture, &o->draw);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct answer a = {.env = env};
    int status = hb_opt_parse(env, &hb_cmd_compare, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_draw_check(env, &o.draw) || !read_sides(env, &o, &a))
        return HB_EXIT_INPUT;
    find_keys(&a);
    find_tensors(&a);
    struct hb_out *out = hb_out_open(env, o.common.output);
    if (o.common.json)
        print_json(hb_out_file(out), &a);
    else
        print_text(hb_out_file(out), &a, o.most);
    hb_out_close(out);
    if (o.draw.path)
        draw(env, &o, &a);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERANDS, NULL, "configurations; one with --vary", NULL,
     offsetof(struct options, files), 0, 0},
    {"vary", 0, HB_OPT_WORDS, "\"KEY=VALUE ...\"",
     "the one file with these keys is one more configuration; may be repeated", NULL,
     offsetof(struct options, vary), 0, 0},
    {"most", 0, HB_OPT_INT, "N", "tensors to list", "10", offsetof(struct options, most), 0, 10000},
    HB_DRAW_OPTIONS(offsetof(struct options, draw)),
    {0},
};

const struct hb_cmd hb_cmd_compare = {
    .name = "compare",
    .run = run,
    .summary = "configurations side by side: keys, peak by category and tensor, time",
    .about = "Simulates each and prints what differs. `--set` holds for all of them.",
    .example = "hbmsim compare examples/quickstart/model.yaml --vary loss.chunks=8 \\\n"
               "      --vary \"remat.policy=none batch.global=16\"",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
