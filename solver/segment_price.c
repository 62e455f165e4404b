/* What a configuration costs by the sums of a segment, and the floor that is below all policies:
 * see segment.h. */

#include "base/arena.h"
#include "base/diag.h"
#include "base/names.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/live.h"
#include "sim/graph/link.h"
#include "solver/segment.h"

/* --- the floor --- */

struct hb_remat hb_segment_floor_policy(void)
{
    uint32_t layer_tensors = (1u << HB_TN_ITER_IN) - 1;
    return (struct hb_remat){HB_POLICY_NAMES, layer_tensors & ~(1u << HB_TN_LAYER_IN), 0};
}

struct hb_spec hb_segment_under(struct hb_arena *arena, const struct hb_spec *spec,
                                struct hb_remat policy)
{
    struct hb_spec under = *spec;
    size_t count = (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = spec->model.blocks[i];
        if (hb_block_steps(&blocks[i]) > 1) /* the policy of one step is not searched */
            blocks[i].remat = policy;
    }
    under.model.blocks = blocks;
    return under;
}

bool hb_segment_lower_under(struct hb_arena *arena, const struct hb_spec *spec,
                            struct hb_remat policy, struct hb_program *out)
{
    struct hb_spec under = hb_segment_under(arena, spec, policy);
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    return hb_link_lower(arena, &diag, &under, out);
}

static bool lower_floor(struct hb_arena *arena, const struct hb_spec *spec, bool merged,
                        struct hb_program *out)
{
    struct hb_spec floor = *spec;
    floor.merged = merged;
    return hb_segment_lower_under(arena, &floor, hb_segment_floor_policy(), out);
}

bool hb_segment_lower_floor(struct hb_arena *arena, const struct hb_spec *spec,
                            struct hb_program *out)
{
    return lower_floor(arena, spec, false, out);
}

bool hb_segment_lower_merged(struct hb_arena *arena, const struct hb_spec *spec,
                             struct hb_program *out)
{
    return lower_floor(arena, spec, true, out);
}

/* A weight is gathered once in the backward pass whatever is recomputed: its
 * product with the gradient needs it. */
static bool is_first_weight_gather(const struct hb_program *p, uint32_t op)
{
    const struct hb_op *x = &p->ops[op];
    if (x->kind != HB_OP_ALL_GATHER || x->write_count != 1 || x->loop == HB_NONE ||
        p->bufs[hb_op_writes(p, x)[0]].category != HB_CAT_COMMUNICATION)
        return false;
    for (uint32_t i = p->loops[x->loop].first_op; i < op; i++)
        if (p->ops[i].kind == HB_OP_ALL_GATHER && hb_str_same(p->ops[i].name, x->name))
            return false;
    return true;
}

/* Of the ops of the forward pass. */
static struct hb_names forward_names(struct hb_arena *arena, const struct hb_program *p)
{
    struct hb_names n;
    hb_names_init(&n, arena, p->op_count);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].phase == HB_PHASE_FORWARD)
            hb_names_put(&n, p->ops[i].name, 0);
    return n;
}

/* A collective of the backward pass that reads what an op of the gradients has written, whatever
 * the name it shares with one of the forward pass: what is made again follows from values of the
 * forward pass alone. */
static bool moves_gradients(const struct hb_program *p, uint32_t index, const bool *is_gradient)
{
    const struct hb_op *op = &p->ops[index];
    if (hb_op_is_work(op) || op->kind == HB_OP_DONE || op->kind == HB_OP_MARK)
        return false;
    for (uint32_t r = 0; r < op->read_count; r++)
        if (is_gradient[p->refs[op->refs_at + r]])
            return true;
    return false;
}

/* What a policy may save or add: copies to and from stacks and the host, and in the
 * backward pass the ops of the forward pass. */
bool *hb_segment_optional_ops(struct hb_arena *arena, const struct hb_program *p)
{
    bool *optional = hb_arena_alloc(arena, p->op_count, sizeof *optional);
    bool *is_gradient = hb_arena_alloc(arena, p->buf_count, sizeof *is_gradient);
    struct hb_names names = forward_names(arena, p);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        bool copy = op->kind == HB_OP_COPY || op->kind == HB_OP_HOST_COPY;
        bool again =
            op->phase == HB_PHASE_BACKWARD && names.names[hb_names_place(&names, op->name, 0)];
        again = again && !is_first_weight_gather(p, i) && !moves_gradients(p, i, is_gradient);
        optional[i] = (op->loop != HB_NONE && copy) || again;
        for (uint32_t w = 0; w < op->write_count; w++)
            is_gradient[hb_op_writes(p, op)[w]] = op->phase == HB_PHASE_BACKWARD && !optional[i];
    }
    return optional;
}

static bool is_room(const struct hb_program *p, uint32_t buf)
{
    const struct hb_buf *b = &p->bufs[buf];
    return b->category == HB_CAT_WORKING && b->space == HB_SPACE_HBM && b->alias_of == HB_NONE;
}

static bool is_scratch(const struct hb_program *p, uint32_t buf)
{
    return is_room(p, buf) && hb_str_ends(p->bufs[buf].name, ", scratch");
}

/* An operand of a ragged product over all experts (spread.h): no policy keeps or moves it. */
static bool is_spread(const struct hb_program *p, uint32_t buf)
{
    static const char *const ends[] = {", by expert", ", gradient by expert",
                                       ", as rows of all experts", ", gradient as rows"};
    bool spread = false;
    if (!p->spreads || !is_room(p, buf))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0] && !spread; i++)
        spread = hb_str_ends(p->bufs[buf].name, ends[i]);
    return spread;
}

static int64_t op_scratch_bytes(const struct hb_program *p, const struct hb_op *op)
{
    int64_t sum = 0;
    for (uint32_t w = 0; w < op->write_count; w++) {
        uint32_t buf = hb_op_writes(p, op)[w];
        bool own = is_scratch(p, buf) || is_spread(p, buf);
        sum = own ? hb_add_sat(sum, p->bufs[buf].bytes) : sum;
    }
    return sum;
}

/* No outputs; no argument is a gradient. */
static int64_t gradients_around(const struct hb_program *p, const struct hb_live *live,
                                uint32_t count, const struct hb_loop *loop)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        if (b->category == HB_CAT_GRADIENTS && b->space == HB_SPACE_HBM &&
            live[i].start < (int64_t)loop->first_op && live[i].end >= (int64_t)loop->end_op &&
            live[i].end < (int64_t)p->op_count)
            sum = hb_add_sat(sum, live[i].bytes);
    }
    return sum;
}

static uint32_t outermost(const struct hb_program *p, uint32_t loop)
{
    while (loop != HB_NONE && p->loops[loop].parent != HB_NONE)
        loop = p->loops[loop].parent;
    return loop;
}

int64_t hb_segment_scratch_bytes(const struct hb_program *p, const struct hb_live *live,
                                 uint32_t live_count, const bool *optional, bool accumulates)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        int64_t own = optional[i] ? 0 : op_scratch_bytes(p, op);
        if (own == 0)
            continue;
        uint32_t loop = accumulates ? outermost(p, op->loop) : HB_NONE;
        if (loop != HB_NONE)
            own = hb_add_sat(own, gradients_around(p, live, live_count, &p->loops[loop]));
        most = hb_larger(most, own);
    }
    return most;
}

int64_t hb_segment_spread_bytes(const struct hb_program *p, const bool *optional)
{
    int64_t most = 0, largest = 0;
    if (!p->spreads)
        return 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output)
            largest = hb_larger(largest, p->bufs[i].bytes);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        int64_t sum = 0;
        for (uint32_t w = 0; w < op->write_count && !optional[i]; w++) {
            uint32_t buf = hb_op_writes(p, op)[w];
            if (p->bufs[buf].bytes > largest && is_spread(p, buf))
                sum = hb_add_sat(sum, p->bufs[buf].bytes);
        }
        most = hb_larger(most, sum);
    }
    return most;
}

/* --- pricing --- */

static const int64_t *states_of(const struct hb_segment *s, const struct hb_part *part, int kind,
                                uint32_t slot)
{
    return s->items[part->item].live[kind] + (size_t)slot * HB_PART_STATES * hb_segment_row(s) +
           hb_segment_at(s, part->steps);
}

/* What may lie in a group's outputs is taken off: without the groups more may be there than in any
 * turn. */
static int64_t live_in_slot(const struct hb_segment *s, const struct hb_part *parts, uint32_t count,
                            int kind, uint32_t slot)
{
    size_t state = hb_segment_row(s);
    int64_t base = s->live[kind][slot], high = count ? INT64_MIN : base;
    if (!s->slots[slot].turns) {
        for (uint32_t i = 0; i < count; i++)
            base += states_of(s, &parts[i], kind, slot)[HB_PART_OWN * state];
        return base;
    }
    for (uint32_t i = 0; i < count; i++)
        base += states_of(s, &parts[i], kind, slot)[HB_PART_BEFORE * state];
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_part *part = &parts[s->slots[slot].rising ? i : count - 1 - i];
        const int64_t *t = states_of(s, part, kind, slot);
        base -= t[HB_PART_BEFORE * state];
        high = base + t[HB_PART_OWN * state] > high ? base + t[HB_PART_OWN * state] : high;
        base += t[HB_PART_AFTER * state];
    }
    return high;
}

static int64_t fixed_of_parts(const struct hb_segment *s, const struct hb_part *parts,
                              uint32_t count, int kind)
{
    int64_t fixed = s->fixed[kind];
    for (uint32_t i = 0; i < count; i++)
        fixed += s->items[parts[i].item].fixed[kind][hb_segment_at(s, parts[i].steps)];
    return fixed;
}

static int64_t bytes_of_parts(const struct hb_segment *s, const struct hb_part *parts,
                              uint32_t count, int kind, uint32_t *out_slot)
{
    int64_t high = 0;
    *out_slot = 0;
    for (uint32_t i = 0; i < s->high_count[kind]; i++) {
        uint32_t q = s->high[kind][i];
        int64_t live = live_in_slot(s, parts, count, kind, q);
        *out_slot = live > high ? q : *out_slot;
        high = live > high ? live : high;
    }
    return fixed_of_parts(s, parts, count, kind) + high;
}

enum { COMPARED = 16 }; /* at once */

/* Of an item's tables in two slots those that count: of slots without turns its own bytes alone. */
static bool is_no_more(const struct hb_segment *s, uint32_t item, int kind, uint32_t slot,
                       uint32_t other)
{
    size_t row = hb_segment_row(s), first = s->slots[slot].turns ? 0 : HB_PART_OWN * row;
    size_t end = s->slots[slot].turns ? HB_PART_STATES * row : first + row;
    const int64_t *own = s->items[item].live[kind] + (size_t)slot * HB_PART_STATES * row;
    const int64_t *more = s->items[item].live[kind] + (size_t)other * HB_PART_STATES * row;
    uint64_t below = 0; /* its sign: some difference is below 0; of sizes, which are far from it */
    while (end - first >= COMPARED) { /* most steps first: there they differ most */
        end -= COMPARED;
        for (size_t i = 0; i < COMPARED; i++)
            below |= (uint64_t)more[end + i] - (uint64_t)own[end + i];
        if (below >> 63)
            return false;
    }
    for (size_t i = first; i < end; i++)
        below |= (uint64_t)more[i] - (uint64_t)own[i];
    return !(below >> 63);
}

/* What has to be found out of one kind's slots. */
struct highs {
    const struct hb_segment *s;
    int kind;
    uint32_t *high, count;
    uint32_t
        *counter; /* by slot: an item that has more in it than in the last it was held against */
};

/* A slot of one run's own has more of that run's item than most others: it is asked first. */
static bool is_below(const struct highs *h, uint32_t slot, uint32_t other)
{
    const struct hb_segment *s = h->s;
    const struct hb_slot *a = &s->slots[slot], *b = &s->slots[other];
    bool like = a->turns == b->turns && a->rising == b->rising;
    bool below = like && s->live[h->kind][slot] <= s->live[h->kind][other] &&
                 (s->item_count == 0 || is_no_more(s, h->counter[slot], h->kind, slot, other));
    for (uint32_t i = 0; i < s->item_count && below; i++)
        if (!is_no_more(s, i, h->kind, slot, other)) {
            h->counter[slot] = i;
            below = false;
        }
    return below;
}

/* Among those of the list that are not below it, or not at all. */
static void add_high(struct highs *h, uint32_t slot)
{
    uint32_t left = 0;
    for (uint32_t i = h->count; i-- > 0;) /* neighbours are alike */
        if (is_below(h, slot, h->high[i]))
            return;
    for (uint32_t i = 0; i < h->count; i++)
        if (!is_below(h, h->high[i], slot))
            h->high[left++] = h->high[i];
    h->high[left] = slot;
    h->count = left + 1;
}

void hb_segment_find_high(struct hb_arena *arena, struct hb_segment *s)
{
    for (int kind = 0; kind < (s->has_host ? HB_BYTES_KINDS : HB_BYTES_HOST); kind++) {
        struct highs h = {.s = s, .kind = kind};
        h.high = hb_arena_raw(arena, (size_t)s->slot_count + 1, sizeof *h.high);
        h.counter = hb_arena_alloc(arena, (size_t)s->slot_count + 1, sizeof *h.counter);
        for (uint32_t q = 0; q < s->slot_count; q++)
            add_high(&h, q);
        s->high[kind] = h.high;
        s->high_count[kind] = h.count;
    }
}

/* Whether the sum is longer than the other under no policy, whatever its steps. */
static bool is_bound_below(const struct hb_segment *s, int bound, int other)
{
    if (s->bound_ns[bound] > s->bound_ns[other])
        return false;
    for (uint32_t i = 0; i < s->item_count; i++) {
        const int64_t *own = s->items[i].bound_ns[bound], *more = s->items[i].bound_ns[other];
        for (int64_t n = s->max_steps; n >= s->least_steps && own; n--)
            if (own[n] > (more ? more[n] : 0))
                return false;
    }
    return true;
}

void hb_segment_find_bounds(struct hb_segment *s)
{
    s->bound_count = 0;
    for (int v = 0; v < HB_BOUNDS; v++) {
        uint32_t left = 0;
        bool below = false;
        for (uint32_t i = 0; i < s->bound_count && !below; i++)
            below = is_bound_below(s, v, s->bounds[i]);
        for (uint32_t i = 0; i < s->bound_count && !below; i++)
            if (!is_bound_below(s, s->bounds[i], v))
                s->bounds[left++] = s->bounds[i];
        if (below)
            continue;
        s->bounds[left] = (uint8_t)v;
        s->bound_count = left + 1;
    }
}

int64_t hb_segment_bound_ns(const struct hb_segment *s, const struct hb_part *parts, uint32_t count)
{
    int64_t most = 0;
    for (uint32_t k = 0; k < s->bound_count; k++) {
        int v = s->bounds[k];
        int64_t sum = s->bound_ns[v];
        for (uint32_t i = 0; i < count; i++) {
            const int64_t *by_steps = s->items[parts[i].item].bound_ns[v];
            sum += by_steps ? by_steps[parts[i].steps] : 0;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

void hb_segment_price(const struct hb_segment *s, const struct hb_part *parts, uint32_t count,
                      struct hb_price *out)
{
    uint32_t host_slot;
    out->live_bytes = bytes_of_parts(s, parts, count, HB_BYTES_DEVICE, &out->peak_slot);
    out->host_bytes = s->has_host ? bytes_of_parts(s, parts, count, HB_BYTES_HOST, &host_slot) : 0;
    out->bound_ns = hb_segment_bound_ns(s, parts, count);
}

bool hb_segment_fits(const struct hb_segment *s, const struct hb_part *parts, uint32_t count,
                     int64_t budget_bytes, uint32_t *slot, struct hb_price *out)
{
    int64_t fixed = fixed_of_parts(s, parts, count, HB_BYTES_DEVICE), most = fixed;
    uint32_t host_slot;
    if (fixed + live_in_slot(s, parts, count, HB_BYTES_DEVICE, *slot) > budget_bytes)
        return false;
    out->peak_slot = 0;
    for (uint32_t i = 0; i < s->high_count[HB_BYTES_DEVICE] && most <= budget_bytes; i++) {
        uint32_t q = s->high[HB_BYTES_DEVICE][i];
        int64_t live = fixed + live_in_slot(s, parts, count, HB_BYTES_DEVICE, q);
        out->peak_slot = live > most ? q : out->peak_slot;
        most = hb_larger(most, live);
    }
    if (most > budget_bytes) {
        *slot = out->peak_slot;
        return false;
    }
    out->live_bytes = most;
    out->host_bytes = s->has_host ? bytes_of_parts(s, parts, count, HB_BYTES_HOST, &host_slot) : 0;
    return true;
}

/* --- cuts of one block --- */

/* Of the parts before the two, whose bytes before and after their turns make the base: with those
 * before it is theirs alone that are after (rising), with those after it all are before. */
static void open_before(const struct hb_cuts_ask *ask, struct hb_segment_cuts *out)
{
    const struct hb_segment *s = ask->segment;
    const struct hb_slot *slot = &s->slots[out->slot];
    size_t state = hb_segment_row(s);
    int state_of_rest = !slot->turns ? HB_PART_OWN : slot->rising ? HB_PART_AFTER : HB_PART_BEFORE;
    int64_t now = s->live[HB_BYTES_DEVICE][out->slot];
    out->base_bytes = now;
    out->high_bytes = INT64_MIN / 2;
    for (uint32_t i = 0; i < ask->before_count; i++) {
        const int64_t *t = states_of(s, &ask->before[i], HB_BYTES_DEVICE, out->slot);
        out->base_bytes += t[(size_t)state_of_rest * state];
        now += slot->turns ? t[HB_PART_BEFORE * state] : 0;
    }
    for (uint32_t i = 0; i < ask->before_count && slot->turns; i++) {
        uint32_t at = slot->rising ? i : ask->before_count - 1 - i;
        const int64_t *t = states_of(s, &ask->before[at], HB_BYTES_DEVICE, out->slot);
        now -= t[HB_PART_BEFORE * state];
        out->high_bytes = hb_larger(out->high_bytes, now + t[HB_PART_OWN * state]);
        now += t[HB_PART_AFTER * state];
    }
    out->base_bytes += fixed_of_parts(s, ask->before, ask->before_count, HB_BYTES_DEVICE);
    out->high_bytes += fixed_of_parts(s, ask->before, ask->before_count, HB_BYTES_DEVICE);
}

void hb_segment_cuts_open(const struct hb_cuts_ask *ask, uint32_t slot, struct hb_segment_cuts *out)
{
    const struct hb_segment *s = ask->segment;
    const uint32_t items[] = {ask->one, ask->other};
    *out = (struct hb_segment_cuts){.segment = s, .slot = slot, .path_ns = s->bound_ns[0]};
    for (uint32_t i = 0; i < ask->before_count; i++) {
        const int64_t *by_steps = s->items[ask->before[i].item].bound_ns[0];
        out->path_ns += by_steps ? by_steps[ask->before[i].steps] : 0;
    }
    for (int k = 0; k < 2; k++) {
        const struct hb_item *item = &s->items[items[k]];
        out->ns[k] = item->bound_ns[0];
        out->fixed[k] = item->fixed[HB_BYTES_DEVICE];
        out->live[k] =
            item->live[HB_BYTES_DEVICE] + (size_t)slot * HB_PART_STATES * hb_segment_row(s);
    }
    open_before(ask, out);
}

int64_t hb_segment_cut_ns(const struct hb_segment_cuts *c, int32_t steps, int32_t rest)
{
    return c->path_ns + (c->ns[0] ? c->ns[0][steps] : 0) + (c->ns[1] ? c->ns[1][rest] : 0);
}

int64_t hb_segment_cut_bytes(const struct hb_segment_cuts *c, int32_t steps, int32_t rest)
{
    const struct hb_segment *s = c->segment;
    const struct hb_slot *slot = &s->slots[c->slot];
    size_t state = hb_segment_row(s), at = hb_segment_at(s, steps), left = hb_segment_at(s, rest);
    const int64_t *one = c->live[0] + at, *other = c->live[1] + left;
    int64_t base = c->base_bytes, fixed = c->fixed[0][at] + c->fixed[1][left];
    if (!slot->turns)
        return fixed + base + one[HB_PART_OWN * state] + other[HB_PART_OWN * state];
    int end = slot->rising ? HB_PART_BEFORE : HB_PART_AFTER; /* of the two, in the others' turns */
    int64_t beside = c->high_bytes + one[(size_t)end * state] + other[(size_t)end * state];
    const int64_t *first = slot->rising ? one : other, *second = slot->rising ? other : one;
    int64_t own = base + first[HB_PART_OWN * state] + second[HB_PART_BEFORE * state];
    int64_t then = base + first[HB_PART_AFTER * state] + second[HB_PART_OWN * state];
    return fixed + hb_larger(beside, hb_larger(own, then));
}

/* In the turns themselves a policy may need less than the floor's own, and when the
 * ends' buffers live may follow from the policy: only what the groups hold in the
 * slots of the ends counts. */
void hb_segment_floor(const struct hb_segment *s, const struct hb_spec *spec, struct hb_price *out)
{
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t count = s->item_count;
    int64_t high = 0, fixed = s->fixed[HB_BYTES_DEVICE];
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_block *b = &spec->model.blocks[s->items[i].block];
        parts[i] = (struct hb_part){i, hb_block_steps(b)};
        fixed += s->items[i].fixed[HB_BYTES_DEVICE][hb_segment_at(s, parts[i].steps)];
    }
    hb_segment_price(s, parts, count, out);
    for (uint32_t q = 0; q < s->slot_count; q++) {
        int64_t live = s->slots[q].turns ? 0
                                         : live_in_slot(s, parts, count, HB_BYTES_DEVICE, q) -
                                               s->live[HB_BYTES_DEVICE][q];
        high = live > high ? live : high;
    }
    out->live_bytes = fixed + high;
    out->host_bytes = 0;
}
