/* See knapsack.h. The budget is a share of what the layer would save beyond its inputs at 1. What
 * no product and no kernel makes is made again in any case; of the others those are kept that save
 * most multiplications, the largest first where that is equal. Read in torch 2.15 on fake tensors:
 * tests/golden/torch-budget.txt. */
#include "sim/eager/knapsack.h"

#include "base/arena.h"

enum { STEPS = 10000 }; /* into which the partitioner divides what is saved at 1 */

/* Results that take work to make: those of products in the order in which a layer makes them, but
 * for its last, which nothing saves at 1, and of its attention, with a sum for each head. */
enum { Q, K, V, OUT, GATE, UP, ATTENTION, ITEMS };
static const uint32_t tensors[ITEMS] = {[Q] = HB_TN_Q,
                                        [K] = HB_TN_K,
                                        [V] = HB_TN_V,
                                        [OUT] = HB_TN_ATTN_OUT,
                                        [GATE] = HB_TN_MLP_GATE,
                                        [UP] = HB_TN_MLP_UP,
                                        [ATTENTION] = HB_TN_ATTN_CTX};

struct item {
    double bytes, flops;
    int what, steps;
};

static struct item item_of(const struct hb_spec *s, const struct hb_block *b, int what,
                           double tokens, double width)
{
    const struct hb_attention *a = &b->attention;
    double head = (double)a->head_dim, d = (double)s->model.d_model, ff = (double)b->mlp.d_ff;
    double q = (double)a->heads * head, kv = (double)a->kv_heads * head;
    const double in[] = {[Q] = d, d, d, q, d, d}, out[] = {[Q] = q, kv, kv, d, ff, ff};
    if (what == ATTENTION)
        return (struct item){.what = what,
                             .bytes = tokens * (q * width + 4 * (double)a->heads),
                             .flops = 4 * tokens * (double)s->batch.seq * q};
    return (struct item){.what = what,
                         .bytes = tokens * out[what] * width,
                         .flops = 2 * tokens * in[what] * out[what]};
}

/* At 1: both products of the MLP and what it makes of them, both norms' results, q, k and v as
 * attention takes them, its output, under two names, with a sum for each head, and the projected
 * one. */
static double saved_bytes(const struct hb_spec *s, const struct hb_block *b, double tokens,
                          double width)
{
    const struct hb_attention *a = &b->attention;
    double heads = (double)a->heads, q = heads * (double)a->head_dim;
    double wide = 3 * (double)b->mlp.d_ff + 3 * (double)s->model.d_model + 5 * q;
    return tokens * (wide * width + 4 * heads);
}

/* In the order of their sizes, equal ones as they are made. */
static void sort_items(struct item *items)
{
    for (int i = 1; i < ITEMS; i++)
        for (int k = i; k > 0 && items[k].bytes > items[k - 1].bytes; k--) {
            struct item moved = items[k];
            items[k] = items[k - 1];
            items[k - 1] = moved;
        }
}

/* best[i][j]: multiplications that the first i of them save in j steps. */
static uint32_t pick(struct hb_arena *arena, const struct item *items, int room)
{
    size_t row = (size_t)room + 1;
    float *best = hb_arena_alloc(arena, row * (ITEMS + 1), sizeof *best);
    for (int i = 0; i < ITEMS; i++)
        for (int j = 0; j <= room; j++) {
            const float *before = best + row * (size_t)i;
            float with =
                j < items[i].steps ? 0 : before[j - items[i].steps] + (float)items[i].flops;
            best[row * (size_t)(i + 1) + (size_t)j] = with > before[j] ? with : before[j];
        }
    uint32_t kept = 0;
    for (int i = ITEMS, j = room; i > 0; i--) {
        size_t at = row * (size_t)i + (size_t)j;
        if (best[at] <= best[at - row])
            continue;
        kept |= 1u << tensors[items[i - 1].what];
        j -= items[i - 1].steps;
    }
    return kept;
}

static uint32_t keep(struct hb_arena *arena, const struct hb_spec *s, const struct hb_block *b,
                     double tokens, double width)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct item items[ITEMS];
    double all = saved_bytes(s, b, tokens, width);
    for (int i = 0; i < ITEMS; i++) {
        items[i] = item_of(s, b, i, tokens, width);
        items[i].steps = (int)(items[i].bytes / all * STEPS + 0.5);
    }
    sort_items(items);
    uint32_t kept = pick(arena, items, (int)(s->remat.budget * STEPS + 0.5));
    hb_arena_rewind(arena, mark);
    return kept;
}

struct hb_remat hb_knapsack_remat(struct hb_arena *arena, const struct hb_spec *s,
                                  const struct hb_block *b, int64_t tokens, int64_t width)
{
    struct hb_remat r = b->remat;
    if (s->remat.budget >= 1 || r.policy != HB_POLICY_NONE)
        return r;
    r.save = keep(arena, s, b, (double)tokens, (double)width);
    r.policy = r.save ? HB_POLICY_NAMES : HB_POLICY_FULL;
    return r;
}

bool hb_knapsack_has_names(const struct hb_spec *s, const struct hb_remat *r)
{
    return s->remat.budget < 1 || hb_remat_is_own(r);
}

bool hb_knapsack_keeps(const struct hb_remat *r, int at)
{
    static const uint32_t products[] = {HB_TN_Q,        HB_TN_K,      HB_TN_V,       HB_TN_ATTN_OUT,
                                        HB_TN_MLP_GATE, HB_TN_MLP_UP, HB_TN_MLP_DOWN};
    return at < (int)(sizeof products / sizeof *products) && r->save >> products[at] & 1;
}

bool hb_knapsack_keeps_attention(const struct hb_remat *r)
{
    return r->save >> tensors[ATTENTION] & 1;
}
