/* The parameter tree on one device: each leaf's share, its master copy, moments and EMA as
 * arguments and results of the step. Pure bookkeeping, exact to the byte but for index tables
 * (measured: all lab records, see tests/golden). */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/lowering.h"

/* Adafactor factors what has both trailing dimensions at least this large (lab program). */
enum { FACTORED_MIN = 128 };

bool hb_leaf_is_alike(const struct hb_leaf *a, const struct hb_leaf *b)
{
    bool same = a->rank == b->rank && a->end == b->end;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i].size == b->dim[i].size;
    return same;
}

static bool is_same(const struct hb_leaf *a, const struct hb_leaf *b)
{
    if (!hb_leaf_is_alike(a, b))
        return false;
    const char *of_a = strchr(a->name, '.'), *of_b = strchr(b->name, '.');
    return hb_str_same(of_a ? of_a : a->name, of_b ? of_b : b->name);
}

uint32_t hb_leaf_kind(const struct hb_lower *lo, const struct hb_leaf *weight)
{
    uint32_t kind = 0;
    while (kind < lo->kind_count && !is_same(&lo->leaves[lo->kinds[kind].first], weight))
        kind++;
    return kind;
}

static void join_kind(struct hb_lower *lo, uint32_t leaf)
{
    struct hb_leaf *l = &lo->leaves[leaf];
    l->kind = hb_leaf_kind(lo, l);
    if (l->kind == lo->kind_count) {
        lo->kinds = hb_grow(lo->arena, lo->kinds, lo->kind_count, &lo->kind_cap, sizeof *lo->kinds);
        lo->kinds[lo->kind_count++] = (struct hb_leaf_kind){.first = leaf};
    }
    struct hb_shape s = hb_leaf_shape(l, HB_DT_F32);
    int64_t *bytes = &lo->kinds[l->kind].bytes;
    *bytes = hb_add_sat(*bytes, hb_shape_plain_bytes(&s));
}

uint32_t hb_leaf_add(struct hb_lower *lo, struct hb_leaf leaf)
{
    for (int i = 0; i < 5; i++)
        leaf.host[i] = leaf.renewed[i] = HB_NONE;
    leaf.arg = leaf.master = leaf.ema = HB_NONE;
    leaf.moment[0] = leaf.moment[1] = HB_NONE;
    leaf.iterate[0] = leaf.iterate[1] = HB_NONE;
    leaf.whole = leaf.kept = leaf.nan_zero = leaf.momentum_copy = leaf.param_copy = leaf.cast =
        leaf.grad = leaf.grad_half = leaf.accum = leaf.gathered = leaf.transposed = HB_NONE;
    leaf.params = (double)leaf.copies;
    for (int i = 0; i < leaf.rank; i++)
        leaf.params *= (double)leaf.dim[i].size;
    for (int i = 0; i < 2; i++)
        if (leaf.stack[i])
            leaf.params *= (double)leaf.stack[i];
    lo->leaves = hb_grow(lo->arena, lo->leaves, lo->leaf_count, &lo->leaf_cap, sizeof leaf);
    lo->leaves[lo->leaf_count] = leaf;
    join_kind(lo, lo->leaf_count);
    return lo->leaf_count++;
}

static int64_t share(struct hb_split d, int64_t more_ways)
{
    int64_t ways = hb_mul_sat(d.ways, more_ways);
    return ways == 1 ? d.size : hb_div_up(d.size, ways);
}

struct hb_shape hb_leaf_layer_shape(const struct hb_leaf *l, enum hb_dtype dtype, bool gathered)
{
    struct hb_shape s = {.dtype = dtype, .rank = l->rank};
    for (int i = 0; i < HB_LEAF_RANK && i < l->rank; i++) {
        struct hb_split d = l->dim[i];
        if (gathered && i == l->gather_dim)
            d.ways /= l->fsdp_ways;
        if (gathered && i == 0 && l->expert_ways > 0)
            d.ways /= l->expert_ways;
        s.dim[i] = share(d, 1);
    }
    return s;
}

/* more_ways: a further split of the first dimension that divides (ZeRO-1 and 2). */
static struct hb_shape state_shape(const struct hb_leaf *l, enum hb_dtype dtype, int64_t more_ways)
{
    struct hb_shape s = {.dtype = dtype};
    for (int i = 0; i < 2; i++)
        if (l->stack[i]) {
            s.dim[s.rank++] = l->stack[i];
            s.slices = hb_mul_sat(s.slices ? s.slices : 1, l->stack[i]);
        }
    int split_at = -1;
    for (int i = 0; i < l->rank && split_at < 0 && more_ways > 1; i++)
        if (share(l->dim[i], 1) % more_ways == 0)
            split_at = i;
    for (int i = 0; i < l->rank; i++)
        s.dim[s.rank++] = share(l->dim[i], i == split_at ? more_ways : 1);
    return s;
}

struct hb_shape hb_leaf_shape(const struct hb_leaf *l, enum hb_dtype dtype)
{
    return state_shape(l, dtype, 1);
}

struct hb_shape hb_leaf_grad_shape(const struct hb_lower *lo, const struct hb_leaf *l,
                                   enum hb_dtype dtype)
{
    bool split = lo->spec->sharding.optimizer_over_data;
    return state_shape(l, dtype, split ? hb_ways(lo, HB_AX_DATA) : 1);
}

/* The shape as the program writes it, sizes unsplit: what adafactor looks at. */
static bool is_factored(const struct hb_leaf *l)
{
    int64_t whole[HB_LEAF_RANK + 2];
    int rank = 0;
    for (int i = 0; i < 2; i++)
        if (l->stack[i])
            whole[rank++] = l->stack[i];
    for (int i = 0; i < l->rank; i++)
        whole[rank++] = l->dim[i].size;
    return rank >= 2 && whole[rank - 1] >= FACTORED_MIN && whole[rank - 2] >= FACTORED_MIN;
}

static struct hb_shape drop_dim(struct hb_shape s, int at)
{
    for (int i = at; i + 1 < s.rank; i++)
        s.dim[i] = s.dim[i + 1];
    s.rank--;
    return s;
}

/* The tensors that the optimizer keeps for a leaf; returns how many (at most two). */
static int moment_shapes(const struct hb_lower *lo, const struct hb_leaf *l,
                         struct hb_shape shapes[2])
{
    const struct hb_optim *o = &lo->spec->optimizer;
    int64_t more = lo->spec->sharding.optimizer_over_data ? hb_ways(lo, HB_AX_DATA) : 1;
    if (o->name == HB_OPT_ADAFACTOR) {
        struct hb_shape full = state_shape(l, HB_DT_F32, more);
        bool factored = is_factored(l);
        shapes[0] = factored ? drop_dim(full, full.rank - 1) : full;
        shapes[1] = factored ? drop_dim(full, full.rank - 2)
                             : hb_shape_make(HB_DT_F32, (const int64_t[]){1, -1});
        return 2;
    }
    if (o->name == HB_OPT_MUON && o->others == HB_OTHERS_ADAMW && (l->end || !l->matrix)) {
        shapes[0] = shapes[1] = state_shape(l, lo->spec->precision.params, more);
        return 2;
    }
    for (int i = 0; i < o->moment_count; i++)
        shapes[i] = state_shape(l, o->moments[i], more);
    return o->moment_count;
}

static enum hb_space space_of(enum hb_place place)
{
    return place == HB_PLACE_PINNED_HOST ? HB_SPACE_HOST : HB_SPACE_HBM;
}

static void leaf_arguments(struct hb_lower *lo, struct hb_leaf *l)
{
    const struct hb_spec *s = lo->spec;
    l->arg = hb_argument(lo, l->name, HB_CAT_PARAMS, hb_leaf_shape(l, s->precision.params),
                         space_of(s->optimizer.params_offload));
    enum hb_space states = space_of(s->optimizer.offload);
    int64_t more = s->sharding.optimizer_over_data ? hb_ways(lo, HB_AX_DATA) : 1;
    if (s->precision.master)
        l->master = hb_argument(lo, hb_name(lo, l->name, ", f32 master"), HB_CAT_OPTIMIZER,
                                state_shape(l, HB_DT_F32, more), states);
    struct hb_shape shapes[2];
    static const char *const names[] = {", first moment", ", second moment"};
    int count = moment_shapes(lo, l, shapes);
    for (int i = 0; i < count && i < 2; i++)
        l->moment[i] =
            hb_argument(lo, hb_name(lo, l->name, names[i]), HB_CAT_OPTIMIZER, shapes[i], states);
    if (s->optimizer.ema != HB_PLACE_NONE)
        l->ema = hb_argument(lo, hb_name(lo, l->name, ", ema"), HB_CAT_EMA,
                             hb_leaf_shape(l, HB_DT_F32), space_of(s->optimizer.ema));
}

void hb_leaf_arguments(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (i != lo->head || i == lo->embed)
            leaf_arguments(lo, &lo->leaves[i]);
    if (lo->head != lo->embed)
        leaf_arguments(lo, &lo->leaves[lo->head]);
}

uint32_t *hb_leaf_state(struct hb_leaf *l, int state)
{
    uint32_t *states[HB_LEAF_STATES] = {&l->arg, &l->master, &l->moment[0], &l->moment[1], &l->ema};
    return states[state];
}

bool hb_leaf_on_host(const struct hb_lower *lo, struct hb_leaf *l, int state)
{
    uint32_t buf = *hb_leaf_state(l, state);
    return buf != HB_NONE && lo->p->bufs[buf].space == HB_SPACE_HOST;
}

int64_t hb_leaf_all_bytes(const struct hb_lower *lo, uint32_t leaf)
{
    return lo->kinds[lo->leaves[leaf].kind].bytes;
}

/* Runs of a block's layers under several policies count as one, so that the planner's parts of a
 * step do not depend on how the layers are shared out. */
void hb_leaf_weigh(struct hb_lower *lo, const struct hb_lower *whole)
{
    for (uint32_t k = 0; k < lo->kind_count; k++) {
        uint32_t of = hb_leaf_kind(whole, &lo->leaves[lo->kinds[k].first]);
        lo->kinds[k].bytes = of < whole->kind_count ? whole->kinds[of].bytes : 0;
    }
}

uint32_t hb_leaf_first(const struct hb_lower *lo, uint32_t leaf)
{
    return lo->kinds[lo->leaves[leaf].kind].first;
}
