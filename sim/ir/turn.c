/* Stacks that XLA:TPU copies as wholes because the backward pass wants them in another layout than
 * the forward loop wrote: for one slice of the last trip, which it takes out of the loop where
 * layers fetch what they made from the host; or, where they come from the host, each at once. Read
 * in the scheduled texts that the comments name. */
#include "sim/ir/turn.h"

#include "sim/ir/head.h"
#include "sim/ir/sequence.h"
#include "sim/ir/trip.h"

/* XLA:TPU lays the larger of a product's two dimensions along the lanes, which turns stacks between
 * the passes; not those of layers over tensor (phi4 over 16 and 32 with 2: none of nineteen). */
static bool turns_at_all(const struct hb_lower *lo)
{
    return lo->habits->rings;
}

static bool is_not_split(const struct hb_lower *lo)
{
    return turns_at_all(lo) && hb_ways(lo, HB_AX_TENSOR) == 1;
}

/* A residual of no fewer tokens a sequence than features lies turned in the forward loop (widths of
 * 4096 to 8192 over 64: 5120 tokens beside 5120 features, not 4096). */
bool hb_turn_residual(const struct hb_lower *lo)
{
    return is_not_split(lo) && lo->local.seq >= lo->spec->model.d_model;
}

/* The last trip wants it the other way round between gathers, too: without a data axis from 32768
 * tokens on (not 28672), with one where there are two sequences, or mlp_gate or attn_out goes to
 * the host (13B over 64 and 2: two of 5120 tokens). MaxText's with those between gathers, too. */
static bool many_turn(const struct hb_lower *lo, const struct hb_group *g)
{
    static const uint32_t sent = 1u << HB_TN_ATTN_OUT | 1u << HB_TN_MLP_GATE;
    bool wide = (g->layer.block->remat.offload & sent) != 0, data = hb_ways(lo, HB_AX_DATA) > 1;
    bool between = data || (hb_head_own_loss(lo) && !hb_in_rings(lo));
    bool many =
        (data && lo->local.batch > 1) || (between && wide) || (!data && lo->local.tokens >= 32768);
    return many && hb_turn_residual(lo);
}

/* The stack of what has this tag and is kept there: the last, of contexts not the kernel's own. */
static uint32_t find_stack(const struct hb_group *g, enum hb_tensor_name tag, enum hb_keep where)
{
    for (uint32_t v = g->layer.value_count; v-- > 0;)
        if ((g->layer.values[v].tags & 1u << tag) && g->body.saved->keep[v] == where)
            return g->body.stack[v];
    return HB_NONE;
}

static uint32_t kept_stack(const struct hb_group *g, enum hb_tensor_name tag)
{
    return find_stack(g, tag, HB_KEEP_DEVICE);
}

/* Between rings over fsdp alone, whose products take their part of the features of what the
 * residual holds: where the parts are whole lanes' groups they are taken as they lie, else (on v6e
 * always) it lies turned. The last trip has no loop around it. Where it makes gates or ups again it
 * wants layer inputs and attention outputs straight, or, in the first run of layers, whose gradient
 * no other loop carries on, and where attention outputs are not kept, turned for sequences no
 * shorter than a row; where it makes neither, turned in that run, and as they lie in others (every
 * stack of the 110 steps of laid-tpu); not of MaxText (llama3-8b over 8: none). */
static bool is_ring_turned(const struct hb_lower *lo, const struct hb_group *g)
{
    static const uint32_t wide = 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP;
    bool mlp = false;
    for (uint32_t v = 0; v < g->layer.value_count; v++)
        mlp = mlp || ((g->layer.values[v].tags & wide) && g->saved.remake[v]);
    bool first = g == lo->layers->groups && kept_stack(g, HB_TN_ATTN_OUT) == HB_NONE;
    bool turned = first && (!mlp || hb_turn_residual(lo));
    return (first || mlp) && hb_head_parts_lie(lo) == turned;
}

/* v5e: see hb_turn_early and hb_turn_group_sent. */
static bool is_v5e_order(const struct hb_lower *lo)
{
    return lo->chip->turned_early;
}

/* Where layers fetch what they made from the host XLA:TPU takes the last trip out of the backward
 * loop. It may want kept stacks the other way round: the whole is then copied for one slice, that
 * of layer inputs (8B over 16 with one sequence of 8192 and mlp_up on the host: a second
 * bf16[32,1,8192,4096]), that of kept attn_out, and, where attention contexts are kept, that of
 * these, beside tensor parallelism, too. Stacks of casts end before it, when that trip's are
 * sliced, and each stack with its copy; on v5e they stay to the end. So does the inner loop of an
 * outer block that is made again. Contexts first; HB_NONE where fewer. Both where the last trip
 * wants layer inputs the other way round beside a data axis (13B over 64 and 2, contexts kept, with
 * mlp_gate on the host); there a kept attention output's, too (two sequences). */
static void find_turned(const struct hb_lower *lo, const struct hb_group *g,
                        uint32_t out[HB_TURNED])
{
    bool rings = hb_in_rings(lo) && is_not_split(lo) && !hb_head_own_loss(lo);
    bool turns = rings ? is_ring_turned(lo, g) : many_turn(lo, g);
    bool takes = turns_at_all(lo) && hb_trip_taken(lo, g);
    out[0] = takes ? kept_stack(g, HB_TN_ATTN_CTX) : HB_NONE;
    out[1] = takes && turns ? kept_stack(g, HB_TN_LAYER_IN) : HB_NONE;
    out[2] = takes && turns ? kept_stack(g, HB_TN_ATTN_OUT) : HB_NONE;
}

/* Kept, and none of the stacks that are copied. */
static bool is_beside(const struct hb_group *g, uint32_t v, const uint32_t stacks[HB_TURNED])
{
    bool beside = g->body.saved->keep[v] == HB_KEEP_DEVICE;
    for (int i = 0; i < HB_TURNED; i++)
        beside = beside && g->body.stack[v] != stacks[i];
    return beside;
}

static uint32_t turned_copy(struct hb_lower *lo, const struct hb_group *g, uint32_t stack)
{
    return hb_temp(lo, hb_name(lo, g->layer.name, ".a stack in another layout"), HB_CAT_SAVED,
                   hb_buf_shape(lo, stack));
}

/* The trip reads the other stacks behind it (qwen2.5-14b, v5p, data 4 and fsdp 8, q on the host:
 * kept gates beside copy.315 of layer inputs). */
static void emit_turn(struct hb_lower *lo, const struct hb_group *g, uint32_t stack,
                      const uint32_t stacks[HB_TURNED])
{
    struct hb_emit e = {.name = "turn the last layer's slice", .kind = HB_OP_COPY};
    uint32_t turned = turned_copy(lo, g, stack);
    hb_emit_read(&e, stack);
    for (uint32_t v = 0; v < g->layer.value_count && e.read_count < HB_EMIT_REFS; v++)
        if (is_beside(g, v, stacks))
            hb_emit_read(&e, g->body.stack[v]);
    hb_emit_write(&e, turned);
    hb_emit(lo, &e);
}

static void copy_early(struct hb_lower *lo, struct hb_group *g, int count)
{
    uint32_t stacks[HB_TURNED];
    find_turned(lo, g, stacks);
    for (int i = 0; i < count; i++)
        if (stacks[i] != HB_NONE && g->turned[i] == HB_NONE) {
            g->turned[i] = turned_copy(lo, g, stacks[i]);
            hb_emit_simple(lo, HB_OP_COPY, "turn the last layer's slice", stacks[i], g->turned[i]);
        }
}

/* On v5e the copies come before the loss and lie beside the stacks until the layers have run
 * backwards (5120 features, one sequence of 32768 over 64): the scheduler that hides latencies
 * counts with a loop's body what is read behind the loop, not what is read in it alone. Where that
 * is too much sim/ir/again puts them behind. */
void hb_turn_early(struct hb_lower *lo, struct hb_group *g)
{
    if (is_v5e_order(lo))
        copy_early(lo, g, hb_in_chunks(lo) && !hb_head_rooms_at_once(lo) ? 1 : HB_TURNED);
}

/* On all of them where the order is post-order, in which that trip follows its loop at once: the
 * same scheduler then makes the copy before the loop (phi-4 over 64: copy.704). */
void hb_turn_begun(struct hb_lower *lo, struct hb_group *g)
{
    if (hb_sequence_gathers_taken(lo) & HB_GATHERS_POST)
        copy_early(lo, g, HB_TURNED);
}

static void read_beside(struct hb_lower *lo, const struct hb_group *g, const char *name,
                        uint32_t buf)
{
    struct hb_emit e = {.name = name, .kind = HB_OP_MARK};
    hb_emit_read(&e, buf);
    for (int i = 0; i < HB_TURNED; i++)
        hb_emit_read(&e, g->turned[i]);
    hb_emit(lo, &e);
}

void hb_turn_last(struct hb_lower *lo, const struct hb_group *g)
{
    uint32_t stacks[HB_TURNED];
    bool early = false;
    for (int i = 0; i < HB_TURNED; i++)
        early = early || g->turned[i] != HB_NONE;
    find_turned(lo, g, stacks);
    for (int i = 0; i < HB_TURNED; i++)
        if (stacks[i] != HB_NONE && g->turned[i] == HB_NONE)
            emit_turn(lo, g, stacks[i], stacks);
    for (uint32_t v = 0; early && v < g->layer.value_count; v++)
        if (is_beside(g, v, stacks))
            read_beside(lo, g, "beside a turned stack", g->body.stack[v]);
    for (uint32_t i = g->layer.first_leaf; early && i < g->layer.end_leaf; i++)
        read_beside(lo, g, "weights of the last trip", lo->leaves[i].cast);
}

/* Whether the host holds another stack of that size that one of these names asked for. */
static bool has_twin(const struct hb_lower *lo, const struct hb_group *g, uint32_t stack,
                     uint32_t tags)
{
    for (uint32_t v = 0; v < g->layer.value_count; v++)
        if (g->body.saved->keep[v] == HB_KEEP_HOST && (g->layer.values[v].tags & tags) &&
            lo->p->bufs[g->body.stack[v]].bytes == lo->p->bufs[stack].bytes)
            return true;
    return false;
}

static bool is_wanted_turned(const struct hb_lower *lo, enum hb_tensor_name name)
{
    bool lone = hb_ways(lo, HB_AX_TENSOR) > 1 && lo->local.batch == 1;
    if (name == HB_TN_MLP_GATE || name == HB_TN_MLP_UP)
        return lo->chip->mlp_turned && (hb_gathers_weights(lo) || lone);
    return name == HB_TN_ATTN_CTX || hb_turn_residual(lo);
}

/* What the backward pass wants the other way round of a stack on the host, it turns slice by slice,
 * unless the host has another stack of the same shape: there it comes whole, is turned and sent
 * back before the loop. Attention contexts (granite-8b, v5e, data 4 and fsdp 16:
 * bf16[36,2,16384,32,128] twice; not with k and v of 8 heads), layer inputs and attention outputs.
 * It hides behind what is long: on v5e a product of the head, on v5p and v6e all of the loss, or
 * what of it stands between the head's products (loss.c). Of a run that others follow after the
 * loss. On v6e, between gathers,
 * gates beside what is up or their product, and those that are up beside gates, and between rings
 * over fsdp beside tensor those of one sequence (over 16 and 8; not of two). */
void hb_turn_group_sent(struct hb_lower *lo, const struct hb_group *g)
{
    enum { TURNING = 5 };
    static const struct {
        enum hb_tensor_name name;
        uint32_t twins;
    } turning[TURNING] = {{HB_TN_ATTN_CTX, 1u << HB_TN_Q | 1u << HB_TN_K | 1u << HB_TN_V},
                          {HB_TN_LAYER_IN, 1u << HB_TN_ATTN_OUT},
                          {HB_TN_ATTN_OUT, 1u << HB_TN_LAYER_IN},
                          {HB_TN_MLP_GATE, 1u << HB_TN_MLP_UP | 1u << HB_TN_MLP_ACT},
                          {HB_TN_MLP_UP, 1u << HB_TN_MLP_GATE}};
    for (int i = 0; i < TURNING && turns_at_all(lo); i++) {
        uint32_t stack = find_stack(g, turning[i].name, HB_KEEP_HOST);
        if (stack == HB_NONE || !is_wanted_turned(lo, turning[i].name) ||
            !has_twin(lo, g, stack, turning[i].twins))
            continue;
        /* To XLA:TPU's rematerialization this is a copy within the host's memory (qwen3-14b over 4
         * and 8, v6e: bf16[40,4,8192,2176]{2,3,1,0:S(5)} before it; of four such steps above the
         * memory none makes anything again, of 28 others all). */
        struct hb_emit e = {.name = "turn a stack from the host", .kind = HB_OP_COPY};
        uint32_t both[] = {hb_temp(lo, hb_name(lo, g->layer.name, ".a stack from the host"),
                                   HB_CAT_SAVED, hb_buf_shape(lo, stack)),
                           turned_copy(lo, g, stack)};
        for (int k = 0; k < 2; k++) {
            lo->p->bufs[both[k]].unseen = true;
            hb_emit_write(&e, both[k]);
        }
        hb_emit(lo, &e);
    }
}

void hb_turn_sent(struct hb_lower *lo, enum hb_turn_at at, bool between)
{
    bool inside = is_v5e_order(lo) || between;
    enum hb_turn_at last = inside ? HB_TURN_IN_LOSS : HB_TURN_BEFORE_LOSS;
    const struct hb_stack_plan *all = lo->layers;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->groups[i].looped && all->groups[i].outer_stack == HB_NONE &&
            at == (i + 1 < all->count ? HB_TURN_BEHIND_LOSS : last))
            hb_turn_group_sent(lo, &all->groups[i]);
}
