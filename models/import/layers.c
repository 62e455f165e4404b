/* The layers of a foreign model as blocks: runs of one kind (dense, experts), cut into units where
 * their windows go round in turn, as the model zoo has them (gemma: five of 1024 and a full one).
 */
#include "models/import/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "models/schema_key.h"

static const struct hb_loc nowhere = {0};

enum { MOST_UNIT = 16, MOST_LAYERS = 100000 };

static void text(struct hb_foreign *f, struct hb_node *map, const char *key, const char *value)
{
    if (value)
        hb_node_put(map, key, nowhere, hb_node_scalar(f->arena, nowhere, value, false));
}

static void number(struct hb_foreign *f, struct hb_node *map, const char *key, int64_t value)
{
    if (value)
        text(f, map, key, hb_arena_printf(f->arena, "%" PRId64, value));
}

static void real(struct hb_foreign *f, struct hb_node *map, const char *key, double value)
{
    if (value > 0)
        text(f, map, key, hb_arena_printf(f->arena, "%.10g", value));
}

static void flag(struct hb_foreign *f, struct hb_node *map, const char *key, bool value)
{
    if (value)
        text(f, map, key, "true");
}

/* The least unit, at most MOST_UNIT, that windows from first on repeat with; count where none
 * does. */
static int64_t period(const struct hb_layer *each, int64_t first, int64_t count)
{
    for (int64_t unit = 1; unit <= MOST_UNIT && unit < count; unit++) {
        int64_t same = unit;
        while (same < count && each[first + same].window == each[first + same % unit].window)
            same++;
        if (same == count)
            return unit;
    }
    return count;
}

static struct hb_node *make_windows(struct hb_foreign *f, const struct hb_layer *each,
                                    int64_t first, int64_t unit)
{
    struct hb_node *list = hb_node_new(f->arena, HB_NODE_LIST, nowhere);
    for (int64_t i = 0; i < unit; i++)
        hb_node_append(list,
                       hb_node_scalar(f->arena, nowhere,
                                      hb_arena_printf(f->arena, "%" PRId64, each[first + i].window),
                                      false));
    return list;
}

static struct hb_node *make_attention(struct hb_foreign *f, const struct hb_shape *s)
{
    struct hb_node *a = hb_node_new(f->arena, HB_NODE_MAP, nowhere);
    text(f, a, "kind", s->kv_lora_rank ? "mla" : "gqa");
    number(f, a, "heads", s->heads);
    if (s->kv_lora_rank) {
        number(f, a, "q_lora_rank", s->q_lora_rank);
        number(f, a, "kv_lora_rank", s->kv_lora_rank);
        number(f, a, "qk_nope_head_dim", s->qk_nope_head_dim);
        number(f, a, "qk_rope_head_dim", s->qk_rope_head_dim);
        number(f, a, "v_head_dim", s->v_head_dim);
    } else {
        number(f, a, "kv_heads", s->kv_heads ? s->kv_heads : s->heads);
        number(f, a, "head_dim", s->head_dim);
    }
    if (s->no_rope)
        text(f, a, "rope", "false");
    text(f, a, "bias", s->bias);
    text(f, a, "qk_norm", s->qk_norm);
    flag(f, a, "sinks", s->sinks);
    flag(f, a, "fused_qkv", s->fused_qkv);
    real(f, a, "softcap", s->softcap);
    real(f, a, "dropout", s->attention_dropout);
    return a;
}

static struct hb_node *make_mlp(struct hb_foreign *f, const struct hb_shape *s, bool moe)
{
    struct hb_node *m = hb_node_new(f->arena, HB_NODE_MAP, nowhere);
    if (moe) {
        number(f, m, "experts", s->experts);
        number(f, m, "top_k", s->top_k);
        number(f, m, "d_ff", s->moe_d_ff);
        text(f, m, "kind", s->mlp);
        number(f, m, "shared_experts", s->shared_experts);
        number(f, m, "shared_d_ff", s->shared_d_ff);
        flag(f, m, "bias", s->mlp_bias);
        flag(f, m, "router_bias", s->router_bias);
        return m;
    }
    text(f, m, "kind", s->mlp);
    number(f, m, "d_ff", s->d_ff);
    flag(f, m, "bias", s->mlp_bias);
    return m;
}

/* Layers first to first + count, a multiple of unit. */
static void add_block(struct hb_foreign *f, const struct hb_shape *s, struct hb_node *blocks,
                      int64_t first, int64_t count, int64_t unit)
{
    bool moe = s->each && s->each[first].moe;
    struct hb_node *b = hb_node_new(f->arena, HB_NODE_MAP, nowhere);
    const char *stem = moe ? "moe" : "dense";
    const char *name = stem;
    bool taken = true;
    for (int n = 2; taken; n++) {
        taken = false;
        for (const struct hb_node *o = blocks->first; o; o = o->next)
            taken |= hb_str_same(hb_node_find(o, "name")->text, name);
        if (taken)
            name = hb_arena_printf(f->arena, "%s%d", stem, n);
    }
    text(f, b, "name", name);
    number(f, b, "repeat", count);
    if (unit > 1)
        number(f, b, "unit", unit);
    text(f, b, "norm", s->layernorm ? "layernorm" : "rmsnorm");
    flag(f, b, "post_norm", s->post_norm);
    real(f, b, "dropout", s->dropout);
    struct hb_node *attention = make_attention(f, s);
    if (s->each && unit > 1)
        hb_node_put(attention, "window", nowhere, make_windows(f, s->each, first, unit));
    else if (s->each)
        number(f, attention, "window", s->each[first].window);
    hb_node_put(b, "attention", nowhere, attention);
    hb_node_put(b, moe ? "moe" : "mlp", nowhere, make_mlp(f, s, moe));
    hb_node_append(blocks, b);
}

/* Dense layers and layers with experts that take turns in short runs: written as two groups, in
 * the order in which they first come. */
static void sort_kinds(struct hb_foreign *f, const struct hb_shape *s)
{
    int64_t changes = 0;
    for (int64_t i = 1; i < s->layers; i++)
        changes += s->each[i].moe != s->each[i - 1].moe;
    if (changes <= 2)
        return;
    struct hb_layer *sorted = hb_arena_alloc(f->arena, (size_t)s->layers, sizeof *sorted);
    int64_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < s->layers; i++)
            if ((s->each[i].moe == s->each[0].moe) == (pass == 0))
                sorted[n++] = s->each[i];
    memcpy(s->each, sorted, (size_t)s->layers * sizeof *sorted);
    hb_assume(f, "dense layers and layers with experts take turns; written as two groups, which "
                 "hold the same in sum");
}

static void add_blocks(struct hb_foreign *f, const struct hb_shape *s, struct hb_node *blocks)
{
    if (!s->each) {
        add_block(f, s, blocks, 0, s->layers, 1);
        return;
    }
    sort_kinds(f, s);
    for (int64_t at = 0; at < s->layers;) {
        int64_t end = at + 1;
        while (end < s->layers && s->each[end].moe == s->each[at].moe)
            end++;
        int64_t unit = period(s->each, at, end - at);
        int64_t whole = (end - at) / unit * unit;
        add_block(f, s, blocks, at, whole, unit);
        if (at + whole < end) {
            int64_t rest = end - at - whole;
            add_block(f, s, blocks, at + whole, rest, rest);
        }
        at = end;
    }
}

static bool check_shape(struct hb_foreign *f, const struct hb_shape *s, struct hb_loc at)
{
    const struct {
        int64_t value;
        const char *name;
    } needed[] = {{s->d_model, "width"},
                  {s->vocab, "vocabulary"},
                  {s->layers, "number of layers"},
                  {s->heads, "number of heads"},
                  {s->experts ? s->moe_d_ff : s->d_ff, "width of the MLP"}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].value < 1)
            return hb_error(f->diag, at, "the %s of the model is missing, or no positive number",
                            needed[i].name);
    return s->layers <= MOST_LAYERS ||
           hb_error(f->diag, at, "%" PRId64 " layers; allowed: at most %d", s->layers, MOST_LAYERS);
}

bool hb_put_model(struct hb_foreign *f, const struct hb_shape *s, struct hb_loc at)
{
    if (!check_shape(f, s, at))
        return false;
    struct hb_node *model = hb_node_new(f->arena, HB_NODE_MAP, nowhere);
    hb_node_put(f->out->root, "model", nowhere, model);
    text(f, model, "name", s->name);
    number(f, model, "d_model", s->d_model);
    number(f, model, "vocab", s->vocab);
    flag(f, model, "tied_embeddings", s->tied);
    number(f, model, "positions", s->positions);
    number(f, model, "mtp", s->mtp);
    struct hb_node *blocks = hb_node_new(f->arena, HB_NODE_LIST, nowhere);
    hb_node_put(model, "blocks", nowhere, blocks);
    add_blocks(f, s, blocks);
    return true;
}

void hb_put_in_blocks(struct hb_foreign *f, const char *section, const char *key, const char *value)
{
    struct hb_node *blocks = hb_node_find(hb_node_find(f->out->root, "model"), "blocks");
    for (struct hb_node *b = blocks ? blocks->first : NULL; b; b = b->next) {
        struct hb_node *map = section ? hb_node_find(b, section) : b;
        if (map)
            text(f, map, key, value);
    }
}

bool hb_put_card(struct hb_foreign *f, const char *zoo, struct hb_loc loc)
{
    struct hb_node *map = hb_node_new(f->arena, HB_NODE_MAP, loc);
    hb_node_put(map, "preset", loc, hb_node_scalar(f->arena, loc, zoo, false));
    hb_node_put(f->out->root, "model", loc, map);
    if (!hb_schema_apply_preset(f->arena, f->diag, f->out->root, f->data_dir))
        return false;
    hb_assume(f, "the model zoo's card %s", zoo);
    return true;
}
