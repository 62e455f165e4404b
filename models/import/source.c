/* Taking keys of a foreign tree and writing ours: see source.h. */
#include "models/import/source.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"

static const struct hb_loc nowhere = {0};

void hb_note(struct hb_foreign *f, struct hb_notes *notes, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (uint32_t i = 0; i < notes->count; i++)
        if (hb_str_same(notes->items[i], line))
            return;
    notes->items = hb_grow(f->arena, notes->items, notes->count, &notes->cap, sizeof *notes->items);
    notes->items[notes->count++] = hb_arena_strdup(f->arena, line);
}

static bool was_taken(const struct hb_foreign *f, const struct hb_node *node)
{
    for (uint32_t i = 0; i < f->taken_count; i++)
        if (f->taken[i] == node)
            return true;
    return false;
}

void hb_quiet(struct hb_foreign *f, const struct hb_node *node)
{
    if (was_taken(f, node))
        return;
    f->taken =
        hb_grow(f->arena, f->taken, f->taken_count, &f->taken_cap, sizeof(const struct hb_node *));
    f->taken[f->taken_count++] = node;
}

const struct hb_node *hb_take(struct hb_foreign *f, const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    if (!node)
        return NULL;
    if (!was_taken(f, node) && node->kind != HB_NODE_MAP)
        hb_note(f, &f->out->understood, "%s", key);
    hb_quiet(f, node);
    bool none = hb_node_is_null(node) ||
                (node->kind == HB_NODE_SCALAR && !node->quoted && hb_str_same(node->text, "None"));
    return none ? NULL : node;
}

const struct hb_node *hb_take_any(struct hb_foreign *f, const struct hb_node *map,
                                  const char *names)
{
    char name[128];
    for (const char *at = names; *at;) {
        size_t len = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        const struct hb_node *node = hb_take(f, map, name);
        if (node)
            return node;
        at += len + (at[len] == '|');
    }
    return NULL;
}

bool hb_number(const struct hb_node *node, double *out_value)
{
    char digits[64];
    size_t len = 0;
    if (!node || node->kind != HB_NODE_SCALAR || !node->text[0])
        return false;
    for (const char *c = node->text; *c; c++) {
        if (*c == '_')
            continue;
        if (len + 1 >= sizeof digits || !strchr("0123456789+-.eE", *c))
            return false;
        digits[len++] = *c;
    }
    digits[len] = '\0';
    char *end = digits;
    errno = 0;
    double value = strtod(digits, &end);
    if (end == digits || *end || errno)
        return false;
    *out_value = value;
    return true;
}

int64_t hb_clipped(double value)
{
    return (int64_t)fmax(-0x1p53, fmin(value, 0x1p53));
}

static void fail_type(struct hb_foreign *f, const struct hb_node *node, const char *wanted)
{
    /* As --flag, or --key $NAME where nothing says the name, leave it. */
    if (node->kind == HB_NODE_SCALAR && hb_str_same(node->text, "true"))
        hb_error(f->diag, node->loc,
                 "%s: no value stands where %s is wanted, or a name that the file does not set; "
                 "add %s=N to the command",
                 node->key, wanted, node->key);
    else
        hb_error(f->diag, node->loc, "%s: %s stands where %s is wanted", node->key,
                 hb_node_show(f->arena, node), wanted);
}

int64_t hb_take_int(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    int64_t absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    double value = 0;
    if (!node)
        return absent;
    bool whole =
        hb_number(node, &value) && fabs(value) <= 0x1p53 && !(fabs(value - trunc(value)) > 0);
    if (!whole) {
        fail_type(f, node, "a whole number");
        return absent;
    }
    return (int64_t)value;
}

double hb_take_real(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    double absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    double value = absent;
    if (node && !hb_number(node, &value))
        fail_type(f, node, "a number");
    return value;
}

bool hb_take_bool(struct hb_foreign *f, const struct hb_node *map, const char *names, bool absent)
{
    static const char *const yes[] = {"true", "True", "TRUE", "1", "yes", "on"};
    static const char *const no[] = {"false", "False", "FALSE", "0", "no", "off"};
    const struct hb_node *node = hb_take_any(f, map, names);
    if (!node)
        return absent;
    for (size_t i = 0; node->kind == HB_NODE_SCALAR && i < sizeof yes / sizeof yes[0]; i++) {
        if (hb_str_same(node->text, yes[i]))
            return true;
        if (hb_str_same(node->text, no[i]))
            return false;
    }
    fail_type(f, node, "true or false");
    return absent;
}

const char *hb_take_text(struct hb_foreign *f, const struct hb_node *map, const char *names,
                         const char *absent)
{
    const struct hb_node *node = hb_take_any(f, map, names);
    if (!node)
        return absent;
    if (node->kind == HB_NODE_SCALAR)
        return node->text;
    fail_type(f, node, "a word");
    return absent;
}

/* ---- writing */

/* The map that holds the last word of path, and that word. */
static struct hb_node *holder(struct hb_foreign *f, const char *path, const char **out_key)
{
    struct hb_node *map = f->out->root;
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        const char *key = hb_arena_strndup(f->arena, path, (size_t)(dot - path));
        struct hb_node *child = hb_node_find(map, key);
        if (!child) {
            child = hb_node_new(f->arena, HB_NODE_MAP, map->loc);
            hb_node_put(map, key, map->loc, child);
        }
        map = child;
        path = dot + 1;
    }
    *out_key = hb_arena_strdup(f->arena, path);
    return map;
}

/* What of torchtitan's and Megatron's keys says one of ours: an error is told where that stands. */
static const struct {
    const char *ours, *theirs;
} said_by[] = {
    {"mesh.data", "data_parallel_replicate_degree"},
    {"mesh.fsdp", "data_parallel_shard_degree|data_parallel_degree|use_megatron_fsdp"},
    {"mesh.tensor", "tensor_parallel_degree|tensor_model_parallel_size"},
    {"mesh.sequence", "context_parallel_degree|context_parallel_size"},
    {"mesh.expert", "expert_parallel_degree|expert_model_parallel_size"},
    {"mesh.pipeline", "pipeline_parallel_degree|pipeline_model_parallel_size"},
    {"hardware.count", "world_size|NGPU|ngpu"},
    {"pipeline.schedule", "pipeline_parallel_schedule"},
    {"pipeline.microbatches", "pipeline_parallel_microbatch_size|num_pp_microbatches"},
    {"sharding.expert_tensor", "expert_tensor_parallel_degree|expert_tensor_parallel_size"},
    {"batch.global", "global_batch_size|local_batch_size"},
    {"batch.seq", "seq_len|seq_length"},
    {"precision.fp8", "converters|fp8_format|fp8"},
    {"optimizer.offload", "enable_cpu_offload|optimizer_cpu_offload"},
    {"optimizer.in_backward", "early_step_in_backward"},
    {"remat.save", "selective_ac_option"},
    {"remat.modules", "recompute_modules"},
    {"loss.chunks", "num_chunks"},
    {"runtime.compile", "enable"},
};

/* Of the key that was read for ours; where there is none, the file. */
static struct hb_loc find_place(const struct hb_foreign *f, const char *ours)
{
    char names[96];
    for (size_t i = 0; i < sizeof said_by / sizeof said_by[0]; i++) {
        snprintf(names, sizeof names, "|%s|", said_by[i].theirs);
        for (uint32_t k = 0; k < f->taken_count && hb_str_same(said_by[i].ours, ours); k++) {
            const char *key = hb_arena_printf(f->arena, "|%s|", f->taken[k]->key);
            if (strstr(names, key))
                return f->taken[k]->loc;
        }
    }
    return f->out->root->loc;
}

static void put_node(struct hb_foreign *f, const char *path, struct hb_node *node)
{
    const char *key;
    struct hb_node *map = holder(f, path, &key);
    node->loc = find_place(f, path);
    hb_node_put(map, key, node->loc, node);
}

void hb_put(struct hb_foreign *f, const char *path, const char *text)
{
    put_node(f, path, hb_node_scalar(f->arena, nowhere, hb_arena_strdup(f->arena, text), false));
}

void hb_put_int(struct hb_foreign *f, const char *path, int64_t value)
{
    hb_put(f, path, hb_arena_printf(f->arena, "%" PRId64, value));
}

void hb_put_real(struct hb_foreign *f, const char *path, double value)
{
    char text[HB_REAL_TEXT];
    hb_put(f, path, hb_real_print(value, text));
}

void hb_put_bool(struct hb_foreign *f, const char *path, bool value)
{
    hb_put(f, path, value ? "true" : "false");
}

void hb_put_words(struct hb_foreign *f, const char *path, const char *const *words, int count)
{
    struct hb_node *list = hb_node_new(f->arena, HB_NODE_LIST, nowhere);
    for (int i = 0; i < count; i++)
        hb_node_append(list, hb_node_scalar(f->arena, nowhere, words[i], false));
    put_node(f, path, list);
}

/* ---- what is left over */

static bool is_quiet(const char *key, const char *const *quiet)
{
    for (; *quiet; quiet++) {
        size_t len = strlen(*quiet);
        if ((*quiet)[len - 1] == '*' ? strncmp(key, *quiet, len - 1) == 0
                                     : hb_str_same(key, *quiet))
            return true;
    }
    return false;
}

void hb_tell_rest(struct hb_foreign *f, const struct hb_node *map, const char *where,
                  const char *const *quiet)
{
    if (!map || map->kind != HB_NODE_MAP)
        return;
    for (const struct hb_node *node = map->first; node; node = node->next) {
        if (was_taken(f, node) || is_quiet(node->key, quiet) || hb_node_is_null(node))
            continue;
        struct hb_node shown = *node;
        hb_missing(f, "%s%s: %s", where, node->key, hb_node_show(f->arena, &shown));
    }
}
