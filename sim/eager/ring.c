/* See ring.h. What a python name holds, and until when, follows _templated_ring_attention and its
 * backward pass. */
#include "sim/eager/ring.h"

#include "base/size.h"

/* The fifth step allocates as the fourth does. */
enum { MOST_STEPS = 5 };

static int64_t step_count(int64_t ways)
{
    return ways < MOST_STEPS ? ways : MOST_STEPS;
}

static void replace(struct hb_tape *t, uint32_t *name, uint32_t by)
{
    hb_tape_drop(t, *name);
    *name = by;
}

/* Keys and values on their way: gathered of all ranks at once, or from one rank to the next. */
struct travel {
    uint32_t k, v;     /* own ones, in one piece each */
    uint32_t gathered; /* of all ranks */
    uint32_t here;     /* received, in use */
    uint32_t next;     /* under way */
};

static struct travel start_travel(struct hb_tape *t, int64_t kv)
{
    struct travel r = {HB_NONE, HB_NONE, HB_NONE, HB_NONE, HB_NONE};
    r.k = hb_ops_work(t, "contiguous", "k in one piece", kv);
    r.v = hb_ops_work(t, "contiguous", "v in one piece", kv);
    return r;
}

/* What is sent: k and v in one. */
static uint32_t send(struct hb_tape *t, struct travel *r, const struct hb_ring_sizes *s)
{
    int64_t both = hb_tape_size(t, s->kv, 2, 1);
    uint32_t packed = hb_ops_work(t, "cat", "k and v to send", both);
    if (s->gathers && r->gathered == HB_NONE)
        r->gathered = hb_ops_work(t, "all-gather over sequence", "k and v of all ranks",
                                  hb_tape_size(t, both, s->ways, 1));
    else if (!s->gathers)
        r->next = hb_ops_work(t, "all-to-all over sequence", "k and v of the next rank", both);
    return packed;
}

/* What was received is used now, and what was before it no more. */
static void arrive(struct hb_tape *t, struct travel *r)
{
    hb_tape_drop(t, r->k);
    hb_tape_drop(t, r->v);
    r->k = r->v = HB_NONE;
}

static void end_travel(struct hb_tape *t, struct travel *r)
{
    arrive(t, r);
    hb_tape_drop(t, r->gathered);
    hb_tape_drop(t, r->here);
    hb_tape_drop(t, r->next);
}

/* --- forwards --- */

struct merge {
    uint32_t sum, lse;           /* so far, in f32 */
    uint32_t output, output_lse; /* of the kernel's last run */
};

/* half: of the late queries alone; their parts of the sums are put in place of the old ones. */
static void merge_step(struct hb_tape *t, struct merge *m, int64_t wide, int64_t each, bool half)
{
    int64_t whole = wide, whole_each = each;
    wide /= half ? 2 : 1;
    each /= half ? 2 : 1;
    uint32_t block = hb_ops_work(t, "to f32", "a step's output in f32", wide);
    if (m->sum == HB_NONE) {
        m->sum = block;
        m->lse = m->output_lse;
        hb_tape_hold(t, m->lse);
        return;
    }
    uint32_t less = hb_ops_work(t, "sub", "log-sum-exps' difference", each);
    uint32_t part = hb_ops_work(t, "sigmoid", "the step's part", each);
    hb_tape_drop(t, less);
    uint32_t apart = hb_ops_work(t, "sub", "outputs' difference", wide);
    uint32_t change = hb_ops_work(t, "mul", "change of the output", wide);
    hb_tape_drop(t, apart);
    hb_tape_drop(t, part);
    uint32_t sum = hb_ops_work(t, "sub", "merged output in f32", wide);
    hb_tape_drop(t, change);
    less = hb_ops_work(t, "sub", "log-sum-exps' difference", each);
    part = hb_ops_work(t, "logsigmoid", "the step's part", each);
    hb_tape_drop(t, less);
    uint32_t lse = hb_ops_work(t, "sub", "merged log-sum-exp", each);
    hb_tape_drop(t, part);
    if (half) {
        replace(t, &m->lse, hb_ops_work(t, "cat", "merged log-sum-exp", whole_each));
        replace(t, &m->sum, hb_ops_work(t, "cat", "merged output in f32", whole));
        hb_tape_drop(t, lse);
        hb_tape_drop(t, sum);
    } else {
        replace(t, &m->lse, lse);
        replace(t, &m->sum, sum);
    }
    hb_tape_drop(t, block);
}

static void run_kernel(struct hb_tape *t, struct merge *m, int64_t bytes, int64_t each)
{
    uint32_t output = hb_ops_work(t, "flash attention", "a step's output", bytes);
    uint32_t lse = hb_ops_work(t, "flash attention", "a step's log-sum-exp", each);
    replace(t, &m->output, output);
    replace(t, &m->output_lse, lse);
}

static void run_steps(struct hb_tape *t, const struct hb_ring_sizes *s, struct travel *r,
                      struct merge *m, int64_t each)
{
    int64_t steps = step_count(s->ways);
    for (int64_t i = 0; i < steps; i++) {
        uint32_t before = r->here;
        r->here = r->next;
        r->next = HB_NONE;
        if (i < steps - 1)
            hb_tape_drop(t, send(t, r, s));
        if (i > 0)
            arrive(t, r);
        hb_tape_drop(t, before);
        bool half = s->balanced && i > 0 && i == steps - 1;
        run_kernel(t, m, half ? s->q / 2 : s->q, half ? each / 2 : each);
        merge_step(t, m, hb_tape_size(t, s->q, 2, 1), each, half);
    }
}

bool hb_ring_copies(const struct hb_sdpa *a)
{
    return a->ways > 1 && a->balanced;
}

static struct hb_ring_sizes sizes_of(const struct hb_tape *t, const struct hb_sdpa *a)
{
    return (struct hb_ring_sizes){.q = hb_tape_bytes(t, t->values[a->q].storage),
                                  .kv = hb_tape_bytes(t, t->values[a->k].storage),
                                  .ways = a->ways,
                                  .gathers = a->gathers,
                                  .balanced = a->balanced};
}

void hb_ring_forward(struct hb_tape *t, const struct hb_sdpa *a, uint32_t *out_output,
                     uint32_t *out_lse)
{
    int64_t each = hb_tape_size(t, a->rows, a->heads, 4);
    bool again = a->kept && a->kept->again;
    struct hb_ring_sizes s = sizes_of(t, a);
    struct merge m = {HB_NONE, HB_NONE, HB_NONE, HB_NONE};
    struct travel r = {HB_NONE, HB_NONE, HB_NONE, HB_NONE, HB_NONE};
    if (!again) {
        r = start_travel(t, s.kv);
        run_steps(t, &s, &r, &m, each);
    }
    *out_output = hb_ops_make_or_take(
        t, a->kept, (struct hb_made){"to bf16", "attention output", s.q, HB_CAT_WORKING, 0});
    hb_tape_drop(t, m.sum);
    hb_tape_drop(t, m.output);
    hb_tape_drop(t, m.output_lse);
    hb_tape_drop(t, m.lse);
    *out_lse = hb_ops_make_or_take(
        t, a->kept, (struct hb_made){"clone", "attention's log-sum-exp", each, HB_CAT_WORKING, 0});
    end_travel(t, &r);
}

/* --- backwards --- */

struct sums {
    uint32_t q, k, v;  /* gradients in f32, so far */
    uint32_t own[3];   /* of the kernel's last run */
    uint32_t packed;   /* k's and v's, as sent ... */
    uint32_t received; /* ... and as they came */
    uint32_t sent;     /* k and v */
};

/* early: of the early keys alone; late: of the late queries. */
static void run_kernel_back(struct hb_tape *t, struct sums *g, const struct hb_ring_sizes *s,
                            bool early, bool late)
{
    static const char *const names[] = {"a step's gradient of q", "a step's gradient of k",
                                        "a step's gradient of v"};
    uint32_t out[3];
    for (int i = 0; i < 3; i++)
        out[i] = hb_ops_work(t, "flash attention, backward", names[i],
                             i == 0 ? s->q / (late ? 2 : 1) : s->kv / (early ? 2 : 1));
    for (int i = 0; i < 3; i++)
        replace(t, &g->own[i], out[i]);
}

/* The sums of k's and v's gradients go from rank to rank. */
static void send_sums(struct hb_tape *t, struct sums *g, int64_t wide)
{
    uint32_t packed = hb_ops_work(t, "cat", "gradients of k and v to send", 2 * wide);
    hb_tape_drop(t, g->packed);
    g->packed = packed;
    uint32_t received =
        hb_ops_work(t, "all-to-all over sequence", "gradients of k and v received", 2 * wide);
    replace(t, &g->received, received);
}

static void take_sums(struct hb_tape *t, struct sums *g, int64_t wide, bool early)
{
    replace(t, &g->packed, g->received); /* the name is taken */
    hb_tape_hold(t, g->received);
    for (int i = 0; i < 2; i++) {
        uint32_t *grad = i ? &g->v : &g->k;
        uint32_t sum = HB_NONE;
        if (early)
            sum = hb_ops_work(t, "cat", i ? "gradient of v in f32" : "gradient of k in f32", wide);
        else
            hb_tape_hold(t, sum = g->received);
        replace(t, grad, sum);
    }
}

static void back_steps(struct hb_tape *t, const struct hb_ring_sizes *s, struct travel *r,
                       struct sums *g)
{
    int64_t steps = step_count(s->ways), wide = hb_tape_size(t, s->kv, 2, 1);
    for (int64_t i = 0; i < steps; i++) {
        uint32_t before = r->here;
        r->here = r->next;
        r->next = HB_NONE;
        if (i < steps - 1)
            replace(t, &g->sent, send(t, r, s));
        if (i > 0)
            arrive(t, r);
        hb_tape_drop(t, before);
        bool late = s->balanced && i > 0 && i == steps - 1;
        bool early = s->balanced && i > 0 && !late;
        run_kernel_back(t, g, s, early, late);
        if (i > 0)
            take_sums(t, g, wide, early);
        send_sums(t, g, wide);
        if (late)
            replace(t, &g->q,
                    hb_ops_work(t, "cat", "gradient of q in f32", hb_tape_size(t, s->q, 2, 1)));
    }
}

void hb_ring_backward(struct hb_tape *t, const struct hb_ring_sizes *s, uint32_t out[3])
{
    int64_t wide_q = hb_tape_size(t, s->q, 2, 1), wide = hb_tape_size(t, s->kv, 2, 1);
    struct sums g = {.own = {HB_NONE, HB_NONE, HB_NONE},
                     .packed = HB_NONE,
                     .received = HB_NONE,
                     .sent = HB_NONE};
    g.q = hb_ops_work(t, "zeros", "gradient of q in f32", wide_q);
    g.k = hb_ops_work(t, "zeros", "gradient of k in f32", wide);
    g.v = hb_ops_work(t, "zeros", "gradient of v in f32", wide);
    struct travel r = start_travel(t, s->kv);
    back_steps(t, s, &r, &g);
    out[0] = hb_ops_work(t, "to bf16", "gradient of q", s->q);
    hb_tape_drop(t, g.q);
    out[1] = hb_ops_work(t, "to bf16", "gradient of k", s->kv);
    out[2] = hb_ops_work(t, "to bf16", "gradient of v", s->kv);
    const uint32_t rest[] = {g.packed, g.k, g.v, g.own[0], g.own[1], g.own[2], g.received, g.sent};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        hb_tape_drop(t, rest[i]);
    end_travel(t, &r);
}
