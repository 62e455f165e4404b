/* Times are those that XLA takes for an H100 when it schedules, read in its own log
 * (TF_CPP_VMODULE=latency_hiding_scheduler=2: what is ready when; 26 steps of tests/golden) and in
 * its sources (sol_gpu_cost_model.cc, sol_latency_estimator.cc), not what the device takes. */
#include "sim/ir/tail.h"

#include <math.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/hide.h"
#include "sim/ir/order.h"
#include "sim/ir/weight.h"

static const double MEMORY_BYTES_PER_US = 3.32e6; /* loop_add_subtract_fusion, f32[6,1024,22016] */
static const double BLOCK_BYTES_PER_US = 63.4e3;  /* 32 at 1.98 GHz */
static const double DOT_FLOPS_PER_US = 403e6;     /* f32 operands: gemm_fusion_dot.67, d 4096 ... */
static const double MIXED_FLOPS_PER_US = 12.2e6;  /* ... bf16 ones and an f32 result: .65 */
static const double NARROW_FLOPS_PER_US = 740e6;  /* ... all bf16: llama3-3b, 58, 59, 60 */
static const double HOST_CALL_US = 12, HOST_SUM_US = 27; /* of what is small */
static const double FALLBACK_US = 5000; /* where the model has no answer: all-reduce-start.10 */

/* sol_gpu_cost_model.cc for H100: 55.56 GB/s, 13.34, 68.89 and 100 us, each times 0.45; heads of
 * packets 2.5 %, chunks of 4 MiB (collective_utils.h). */
static const double NIC_BYTES_PER_US = 25e3 / 1.025;
static const double CHUNK_BYTES = 4 << 20, CHUNK_US = 6, ROUND_US = 31, LAUNCH_US = 45;

/* Passes over a tensor of the residual's size, bytes a feature: norm's means, its backward pass. */
enum { MEAN_BYTES = 4, NORM_BYTES = 11, SUMMED_NORM_BYTES = 14 };

enum sum_kind { SUM_ALL, SUM_SCATTER, GATHER, EXCHANGE };

/* Inside of a host, of 2, 4 and 8 devices: what XLA measured (collective_interpolator.cc) of 1 MiB,
 * 2, 4 ... 1024, in 1e3 bytes a us (by its log of collectives alone, sol_latency_estimator=10). */
enum { RATES = 11, LEAST_RATED = 1 << 20 };
static const double host_rates[][3][RATES] = {
    [SUM_ALL] = {{50, 48, 97, 115, 166, 179, 203, 216, 227, 232, 242},
                 {24, 35, 71, 99, 110, 154, 170, 182, 189, 193, 198},
                 {20, 37, 61, 80, 115, 149, 177, 200, 213, 221, 227}},
    [SUM_SCATTER] = {{67, 68, 132, 196, 247, 266, 304, 330, 347, 366, 390},
                     {36, 93, 99, 153, 240, 271, 299, 332, 347, 360, 371},
                     {51, 61, 118, 141, 194, 251, 307, 326, 348, 359, 368}},
    [GATHER] = {{60, 82, 137, 209, 278, 348, 417, 454, 489, 512, 538},
                {51, 73, 99, 148, 240, 296, 343, 383, 403, 423, 434},
                {34, 66, 89, 129, 204, 259, 314, 344, 368, 386, 393}},
    [EXCHANGE] = {{29, 43, 75, 177, 211, 318, 396, 436, 519, 559, 624},
                  {31, 59, 79, 107, 191, 247, 289, 375, 400, 422, 450},
                  {19, 84, 112, 118, 159, 253, 307, 325, 354, 368, 384}}};

struct group {
    int64_t size, stride; /* devices, and how far one is from the next */
};

/* A leaf's gradient, in the order in which it is made. */
struct grad {
    double elements;       /* on this device */
    struct hb_shape shape; /* of a layer's */
    double bytes;          /* each */
    bool turned;           /* its stack lies so in the loops */
    bool stacked;          /* and needs zeros */
    bool matrix;
    bool over_all;  /* each device has another part */
    uint32_t op;    /* that makes it, or its loop; HB_NONE: the layers' */
    uint32_t leaf;  /* of the whole's */
    uint32_t zeros; /* op */
};

struct tail {
    const struct hb_lower *lo;
    struct hb_hide h;
    bool experts;                /* split over an axis of their own */
    bool adds;                   /* a microbatch: its gradients are added to those before */
    bool split;                  /* the residual, over the tensor axis */
    bool narrow;                 /* the head's products */
    double tokens, width, words; /* on this device; words of the head's part */
    struct group batch, fsdp, data, tensor, all, norm;
    struct group parts; /* of a weight */
    struct grad *grads;
    uint32_t count;
    uint32_t forward, softmax, head, again, head_sum, back, loss, loop, table; /* ops */
    uint32_t value; /* the loop over chunks that adds up the loss; HB_NONE */
    bool joins;     /* the last norm's gradient is summed with squares */
};

/* --- times --- */

static double pass_us(double bytes)
{
    return fmax(bytes / MEMORY_BYTES_PER_US, 0.1);
}

static double round_us(double bytes)
{
    return bytes / NIC_BYTES_PER_US + ceil(bytes / CHUNK_BYTES) * CHUNK_US + ROUND_US;
}

/* The mean of the sizes around, weighted by the inverse of the square of how far they are. */
static double host_rate(enum sum_kind kind, int devices, double bytes)
{
    const double *rates = host_rates[kind][devices];
    double least = LEAST_RATED, at = fmin(bytes, ldexp(least, RATES - 1));
    int k = 0;
    while (k + 2 < RATES && ldexp(least, k + 1) <= at)
        k++;
    double below = at - ldexp(least, k), above = ldexp(least, k + 1) - at;
    double one = 1 / (below * below + 1), two = 1 / (above * above + 1);
    return 1e3 * (rates[k] * one + rates[k + 1] * two) / (one + two);
}

/* RingLatency, AllToAllLatency: a group of whole hosts has all their devices, another one on each
 * host that it touches; what is moved in memory, by the log of llama2-7b over fsdp 16, 32 and 64,
 * with data 2 and tensor 4, and of 8 layers over data 4 and 32 (twelve collectives of 15 MB to
 * 1 GB, within 0.3 %; f32[4096,32000] scattered over 32: 3325.46 us, over 16: 3171.79). */
static double latency_us(const struct tail *t, enum sum_kind kind, double bytes, struct group g)
{
    if (g.size <= 1)
        return 0;
    int times = kind == SUM_ALL ? 2 : 1;
    if (g.size * g.stride <= HB_HOST_DEVICES) {
        double us = bytes / host_rate(kind, g.size <= 2 ? 0 : g.size <= 4 ? 1 : 2, bytes);
        return fmax(us, kind == SUM_ALL ? HOST_SUM_US : HOST_CALL_US);
    }
    bool whole = g.stride == 1 && g.size % HB_HOST_DEVICES == 0;
    int64_t hosts = whole ? g.size / HB_HOST_DEVICES : g.size, groups = t->all.size / g.size;
    if (groups > HB_HOST_DEVICES || HB_HOST_DEVICES % groups != 0)
        return FALLBACK_US;
    int64_t own_devices = HB_HOST_DEVICES / groups;
    double devices = (double)(hosts * own_devices), own = (double)own_devices;
    double passes = kind == SUM_ALL ? 1 : kind == EXCHANGE ? 2 : 3 - 1 / (double)g.size;
    double moved_us = pass_us(passes * bytes) + LAUNCH_US;
    if (kind == EXCHANGE)
        return own * (double)(hosts - 1) * round_us(bytes / (devices - 1)) + moved_us;
    return times * round_us(bytes / devices) * (devices - 1) / own + moved_us;
}

/* --- verbs --- */

static uint32_t add(struct tail *t, double cost_us, uint32_t read)
{
    uint32_t op = hb_hide_add(&t->h, HB_HIDE_OP, cost_us);
    hb_hide_read(&t->h, read);
    return op;
}

static uint32_t add_two(struct tail *t, double cost_us, uint32_t read, uint32_t other)
{
    uint32_t op = add(t, cost_us, read);
    hb_hide_read(&t->h, other);
    return op;
}

/* Of what an op makes, or the same in another shape: that takes no time, but who made it is ready a
 * us later (XLA's log: bitcast.635.0 between a head's product and input_scatter_fusion.2). */
static uint32_t add_part(struct tail *t, uint32_t of)
{
    return add(t, 0, of);
}

static uint32_t send(struct tail *t, enum sum_kind kind, uint32_t from, double bytes,
                     struct group g)
{
    return hb_hide_send(&t->h, from, latency_us(t, kind, bytes, g));
}

static double head_us(const struct tail *t, double flops_per_us)
{
    return 2 * t->tokens * t->width * t->words / flops_per_us;
}

/* --- the loss --- */

/* Labels are taken off by one block for so many of them, which reads no faster than a part of the
 * memory's rate (1663 us of f32[1,4096,128256], 2694 of [1,2048,256000]; 3931 of [2,4096,201088]
 * and 5005 of [4,2048,256000], as fast as it writes). */
static double label_us(const struct tail *t, double values)
{
    enum { LABELS = 128 };
    double rate = fmin(ceil(t->tokens / LABELS) * BLOCK_BYTES_PER_US, MEMORY_BYTES_PER_US);
    return pass_us(values) + values / rate;
}

static uint32_t gather_head(struct tail *t, uint32_t cast)
{
    return send(t, GATHER, cast, 2 * t->width * t->words, t->fsdp);
}

/* Zeros of one shape are one fusion. As many layers: a plan's runs
 * count as one, and first runs of two blocks may be of one length. */
static bool is_alike(const struct grad *a, const struct grad *b)
{
    return a == b || (a->elements == b->elements && hb_shape_same_dims(&a->shape, &b->shape));
}

/* For a microbatch the first is made and the others are copied from it, which takes next to no time
 * (qwen8b, tensor 2, 4 microbatches: loop_broadcast_fusion.7, copy.77). */
static uint32_t add_zeros(struct tail *t, uint32_t *out)
{
    static const double COPY_US = 0.1;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        struct grad *g = &t->grads[i];
        uint32_t first = 0;
        double sum = 0;
        while (!is_alike(&t->grads[first], g))
            first++;
        for (uint32_t k = first; k < t->count; k++)
            sum += is_alike(&t->grads[k], g) && (k == i || !t->adds) ? g->bytes * g->elements : 0;
        if (first < i && !t->adds)
            g->zeros = t->grads[first].zeros;
        else if (g->stacked)
            g->zeros = out[count++] = add(t, first < i ? COPY_US : pass_us(sum), HB_NONE);
    }
    return count;
}

/* The largest logit, the sum of exponentials, the label's own; then the gradient of all. Returns
 * what the loss is made of. */
static uint32_t add_softmax(struct tail *t, uint32_t logits)
{
    double values = t->tokens * t->words * 4, rows = t->tokens * 4;
    uint32_t most = send(t, SUM_ALL, add(t, pass_us(values), logits), rows, t->tensor);
    uint32_t finite = add(t, 0.1, most);
    uint32_t sums =
        send(t, SUM_ALL, add_two(t, pass_us(values), logits, finite), 2 * rows, t->tensor);
    uint32_t both = add_two(t, 1, sums, logits);
    t->softmax = add_two(t, pass_us(2.14 * values), logits, add_part(t, both));
    hb_hide_read(&t->h, finite);
    return add_part(t, both);
}

/* Back through the last norm, of g; values: what the loss is made of. */
static void add_norm_back(struct tail *t, uint32_t g, uint32_t values)
{
    double residual = t->width * (double)hb_mul_sat(t->lo->local.batch, t->lo->local.resid_seq);
    uint32_t mean = add(t, 0.1, add(t, pass_us(residual * MEAN_BYTES), g));
    uint32_t norm = add_two(t, pass_us(residual * NORM_BYTES), g, mean);
    t->back = add_part(t, norm);
    bool apart = t->split || t->norm.size <= 1; /* of other devices than the norm's gradient */
    uint32_t sum = add(t, apart && t->value != HB_NONE ? 0 : 1, values);
    if (apart)
        add_part(t, send(t, SUM_ALL, sum, 4, t->batch));
    t->loss = add(t, 1, add(t, 1, add_part(t, norm)));
    if (!apart)
        hb_hide_read(&t->h, sum);
}

/* In chunks: a loop that goes back through the head, and one that adds up the loss alone. */
static void add_chunks(struct tail *t)
{
    double rows = t->tokens * t->width * 2;
    double own = t->width * t->words * 2 / (double)t->fsdp.size;
    t->forward = hb_hide_add(&t->h, HB_HIDE_LOOP, 2);
    uint32_t x = add(t, 0.1, add(t, pass_us(rows), t->forward));
    x = add(t, pass_us(3 * rows), x);
    if (t->split)
        x = send(t, GATHER, x, rows, t->tensor);
    uint32_t cast = add(t, pass_us(3 * own), HB_NONE);
    const uint32_t reads[] = {x, cast, add(t, pass_us(own), HB_NONE),
                              add(t, pass_us(rows), HB_NONE)};
    uint32_t loops[2];
    for (int i = 0; i < 2; i++) {
        loops[i] = hb_hide_add(&t->h, HB_HIDE_LOOP, 2);
        for (int k = 0; k < 4; k++)
            hb_hide_read(&t->h, reads[k]);
    }
    t->head = t->again = t->softmax = loops[0];
    t->value = loops[1];
    add_norm_back(t, add_part(t, loops[0]), loops[1]);
}

static void add_loss(struct tail *t)
{
    double values = t->tokens * t->words, wide = t->tokens * t->width * 4;
    t->forward = hb_hide_add(&t->h, HB_HIDE_LOOP, 2);
    uint32_t x = add(t, pass_us(wide), t->forward);
    uint32_t cast = add(t, pass_us(t->width * t->words * 3 / (double)t->fsdp.size), HB_NONE);
    uint32_t w = gather_head(t, cast);
    double dot_us = head_us(t, t->narrow ? NARROW_FLOPS_PER_US : DOT_FLOPS_PER_US);
    uint32_t logits = add_two(t, t->narrow ? dot_us : head_us(t, MIXED_FLOPS_PER_US), x, w);
    uint32_t both = add_softmax(t, logits);
    uint32_t dlogits = add(t, label_us(t, values * 4), t->softmax);
    t->again = t->h.count;
    if (!t->narrow || t->tensor.size > 1)
        w = gather_head(t, cast);
    uint32_t g = add_two(t, dot_us, add_part(t, dlogits), w);
    if (t->narrow)
        g = send(t, t->split ? SUM_SCATTER : SUM_ALL, g, wide / 2, t->tensor);
    else
        g = send(t, SUM_ALL, g, wide, t->tensor);
    add_norm_back(t, g, both);
    t->head = add_two(t, dot_us, add_part(t, dlogits), x);
}

/* --- gradients and updates --- */

/* Over fsdp, each device its part, then over who has the same one. */
static uint32_t sum_both(struct tail *t, uint32_t from, double bytes)
{
    uint32_t part = send(t, SUM_SCATTER, from, bytes, t->fsdp);
    return send(t, SUM_ALL, part, bytes / (double)t->fsdp.size, t->data);
}

static uint32_t sum_head(struct tail *t)
{
    if (t->value != HB_NONE) {
        double own = t->width * t->words / (double)t->fsdp.size;
        return send(t, SUM_ALL, add_part(t, t->head), own * (t->narrow ? 2 : 4), t->data);
    }
    double bytes = t->width * t->words * (double)hb_dtype_bits(t->lo->spec->loss.dot) / 8;
    t->head_sum = t->h.count;
    return sum_both(t, t->head, bytes);
}

/* Rows for the table's gradient: as they are, where it is whole; of all devices, where another axis
 * over the batch stands beside fsdp; else of each device's features, by an exchange. */
static uint32_t send_rows(struct tail *t, bool whole, bool words)
{
    double rows = t->tokens * t->width * 2;
    if (!whole && t->batch.size > t->fsdp.size)
        return send(t, GATHER, t->loop, rows * (double)t->batch.size, t->batch);
    bool apart = t->split && !(whole && words);
    uint32_t x = apart ? send(t, GATHER, t->loop, rows, t->tensor) : t->loop;
    return whole ? x : send(t, EXCHANGE, add(t, pass_us(2 * rows), x), rows, t->fsdp);
}

/* XLA sums a whole table's gradient over all who have tokens of it, and takes a part. It sums in
 * two steps, parts over fsdp first, only if it finds another sum over those groups beside it
 * (AllReduceSplitter): the head's, which is in another computation where the loss is in chunks, a
 * norm's or Adafactor's means (24 of 24 dumps over data and fsdp). Nor does it where experts
 * split the batch (12 of 12), nor of a head's gradient that one device adds for all (llama3-3b,
 * data 16 and fsdp 4, bf16: all-reduce-start.4). */
static bool is_sum_whole(const struct tail *t, uint32_t head)
{
    return t->experts || head != HB_NONE || t->value != HB_NONE;
}

/* The table's gradient: each device scatters into its features, of its words or of all; with more
 * tokens than words, or another axis over the batch, whole and summed. Into zeros, or, where a tied
 * weight is in the compute dtype, into the head's gradient (granite8b over data 2 and fsdp 32, all
 * bf16: the scatter reads all-gather.19 of it; cast first where the product is f32). */
static uint32_t add_table(struct tail *t, uint32_t head)
{
    const struct hb_lower *lo = t->lo;
    bool more = t->tokens > (double)lo->spec->model.vocab || t->fsdp.size == 1;
    bool whole = more || hb_order_rows_stay(lo), words = hb_order_words(lo) > lo->local.vocab;
    double own = t->width * t->words * 2 / (whole ? 1 : (double)t->fsdp.size);
    double all = own * (double)hb_order_words(lo) / t->words;
    if (head != HB_NONE && (whole || words))
        head = send(t, GATHER, head, all, words ? t->tensor : t->fsdp);
    t->table = add(t, pass_us(head == HB_NONE ? all : 2 * all), head);
    uint32_t x = send_rows(t, whole, words);
    x = add_two(t, pass_us(t->tokens * t->width * 2 + 2 * all), x, t->table);
    bool once = whole && is_sum_whole(t, head);
    if (once && words && t->split)
        return send(t, SUM_ALL, x, all, t->all);
    if (words)
        x = send(t, SUM_SCATTER, x, all, t->tensor);
    if (!whole)
        return t->batch.size > t->fsdp.size ? send(t, SUM_ALL, x, own, t->data) : x;
    return once ? send(t, SUM_ALL, x, own, t->batch) : sum_both(t, x, own);
}

static bool is_over_all(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape s = hb_leaf_shape(l, HB_DT_F32);
    double parts = l->params * 4 / (double)hb_shape_plain_bytes(&s);
    return 2 * parts > (double)hb_habits_devices(lo->spec);
}

static struct grad make_grad(const struct hb_lower *lo, uint32_t i)
{
    const struct hb_leaf *l = &lo->leaves[i];
    struct hb_leaf one = *l;
    one.stack[0] = one.stack[1] = 0;
    return (struct grad){.elements = (double)hb_leaf_all_bytes(lo, i) / 4,
                         .shape = hb_leaf_shape(&one, HB_DT_F32),
                         .bytes = (double)hb_dtype_bits(hb_weight_grad_dtype(lo)) / 8,
                         .turned = hb_weight_is_turned(lo, l),
                         .stacked = l->stack[0] > 0,
                         .matrix = l->rank > 1,
                         .over_all = is_over_all(lo, l),
                         .op = HB_NONE,
                         .leaf = i};
}

/* The layers', then those of the ends. A plan's runs of layers count as one, so that the end of a
 * step is one of its mesh, its batch and its model. */
static void list_grads(struct tail *t, const struct hb_lower *whole)
{
    const uint32_t ends[] = {whole->norm, whole->embed, whole->head};
    t->grads = hb_arena_alloc(whole->arena, (size_t)whole->leaf_count + 1, sizeof *t->grads);
    for (uint32_t i = 0; i < whole->leaf_count; i++)
        if (!whole->leaves[i].end && i != whole->norm && hb_leaf_first(whole, i) == i)
            t->grads[t->count++] = make_grad(whole, i);
    for (int i = 0; i < 3; i++)
        if (i < 2 || ends[i] != ends[1])
            t->grads[t->count++] = make_grad(whole, ends[i]);
}

static void sum_grads(struct tail *t)
{
    bool one = t->lo->head == t->lo->embed; /* weight for both */
    uint32_t last = t->count - 1;
    uint32_t norm = t->joins ? HB_NONE : send(t, SUM_ALL, t->loss, t->width * 4, t->norm);
    bool into = one && hb_weight_grad_dtype(t->lo) == t->lo->compute;
    double own = t->width * t->words / (double)t->fsdp.size;
    uint32_t head = into ? sum_head(t) : HB_NONE;
    if (into && !hb_order_dot_narrow(t->lo))
        head = add(t, pass_us(6 * own), head);
    uint32_t table = add_table(t, head);
    head = into ? head : sum_head(t);
    if (one && !into)
        table = add_two(t, 0.1, table, head);
    if (!t->joins)
        add(t, 1, norm); /* the loss itself */
    for (uint32_t i = 0; i < t->count; i++)
        t->grads[i].op = t->loop;
    t->grads[last].op = one ? table : head;
    if (!one) {
        t->grads[last].bytes = (double)hb_dtype_bits(t->lo->spec->loss.dot) / 8;
        t->grads[--last].op = table;
        t->grads[last].bytes = 2; /* as it is scattered */
    }
    t->grads[last - 1].op = norm;
}

static uint32_t square(struct tail *t, const struct grad *g)
{
    return add(t, 0.1, add(t, pass_us(g->bytes * g->elements), g->op));
}

/* The squares of what lies in parts on all devices and the last norm's gradient are one sum
 * (mistral7b, fsdp 128: f32[4106]; not mistral24b, data 4 and fsdp 4: f32[5121] and f32[9], nor
 * with whole rows beside tensor parallelism). */
static uint32_t join_norm(struct tail *t, uint32_t *squares)
{
    uint32_t from = add(t, 1, t->loss), norm = t->count;
    for (uint32_t i = 0; i < t->count; i++) {
        if (squares[i] == HB_NONE)
            norm = i;
        else if (t->grads[i].over_all)
            hb_hide_read(&t->h, squares[i]);
    }
    uint32_t joint = send(t, SUM_ALL, from, t->width * 4, t->norm);
    t->grads[norm].op = joint;
    squares[norm] = square(t, &t->grads[norm]);
    return joint;
}

/* The norm of all, which updates wait for. */
static uint32_t add_norm(struct tail *t)
{
    uint32_t *squares = hb_arena_raw(t->h.arena, t->count, sizeof *squares);
    for (uint32_t i = 0; i < t->count; i++)
        squares[i] = t->grads[i].op == HB_NONE ? HB_NONE : square(t, &t->grads[i]);
    uint32_t joint = t->joins ? join_norm(t, squares) : HB_NONE, all = add(t, 1, HB_NONE);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->grads[i].matrix)
            hb_hide_read(&t->h, squares[i]);
    uint32_t total = add(t, 0.1, send(t, SUM_ALL, all, 4 * t->count, t->parts));
    hb_hide_read(&t->h, joint);
    for (uint32_t i = 0; i < t->count; i++)
        hb_hide_read(&t->h, squares[i]);
    return total;
}

/* Values of a gradient's rows or columns, along what its device has whole. */
static double mean_bytes(const struct grad *g)
{
    double longest = 1;
    for (int i = 0; i < g->shape.rank; i++)
        longest = fmax(longest, (double)g->shape.dim[i]);
    return 4 * longest;
}

/* Of rows and of columns, each a pass; of a stack that lies turned over its f32 copy. */
static uint32_t add_two_means(struct tail *t, const struct grad *g, uint32_t norm)
{
    if (g->op == HB_NONE)
        return t->loss;
    bool turned = g->turned;
    double first_us = pass_us(g->elements * (turned ? g->bytes + 4 : g->bytes));
    uint32_t first = add_two(t, first_us, g->op, norm);
    return add_two(t, pass_us(g->elements * (turned ? 8 : g->bytes)), first, g->op);
}

/* Adafactor's means, then those of the updates, each a sum over a weight's parts; the last norm's
 * gradient is one with the first, where that goes over the same devices and waits for no norm
 * (gemma-2b over fsdp 16: f32[1225728], 967,680 + 256,000 + 2048). */
static uint32_t add_means(struct tail *t, uint32_t norm)
{
    double bytes = 0;
    uint32_t *ops = hb_arena_raw(t->h.arena, t->count, sizeof *ops);
    for (uint32_t i = 0; i < t->count; i++) {
        bytes += mean_bytes(&t->grads[i]);
        ops[i] = add_two_means(t, &t->grads[i], norm);
    }
    uint32_t all = add(t, pass_us(2 * bytes), HB_NONE);
    for (uint32_t i = 0; i < t->count; i++)
        hb_hide_read(&t->h, ops[i]);
    uint32_t means = send(t, SUM_ALL, all, bytes, t->parts);
    for (uint32_t i = 0; i < t->count; i++) {
        struct grad *g = &t->grads[i];
        g->op = g->op == HB_NONE ? means : g->op;
        ops[i] = add_two(t, pass_us(g->bytes * g->elements), g->op, means);
    }
    uint32_t updates = add(t, 1, HB_NONE);
    for (uint32_t i = 0; i < t->count; i++)
        hb_hide_read(&t->h, ops[i]);
    return send(t, SUM_ALL, updates, 4 * t->count, t->parts);
}

/* Read and written; of one with a master that is, and the weight made of it (llama2-13b over data
 * 4 and fsdp 8: loop_add_convert_subtract_fusion.2, 28 bytes an element, 2989 us). */
static double weight_bytes(const struct hb_spec *s)
{
    double bytes = (double)hb_dtype_bits(s->precision.params) / 8;
    return s->precision.master ? 2 * (double)hb_dtype_bits(HB_DT_F32) / 8 + bytes : 2 * bytes;
}

/* An update reads its gradient, reads and writes weight and states; of a stack that lies turned the
 * states are an op of their own. A microbatch's gradient is added to those before. */
static void add_updates(struct tail *t, uint32_t norm)
{
    const struct hb_spec *s = t->lo->spec;
    uint32_t moments = (uint32_t)s->optimizer.moment_count; /* and the gradient, the weight */
    double weight = weight_bytes(s), states = 0;
    for (int i = 0; i < s->optimizer.moment_count; i++)
        states += 2.0 * hb_dtype_bits(s->optimizer.moments[i]) / 8;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct grad *g = &t->grads[i];
        bool apart = g->turned && !t->adds;
        double bytes = t->adds ? 12 : g->bytes + states + (apart ? 0 : weight);
        uint32_t first = add_two(t, pass_us(g->elements * bytes), g->op, norm);
        t->h.ops[first].given = 1u + !apart + moments;
        if (!apart)
            continue;
        uint32_t second = add(t, pass_us(g->elements * (weight + states / 2)), first);
        t->h.ops[second].given = 1;
    }
}

/* --- what follows --- */

static bool is_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    return lo->habits->gathers_timed && !hb_habits_ordered(s) && s->stack.form != HB_FORM_LOOP &&
           s->mesh[HB_AX_PIPELINE] == 1 && s->mesh[HB_AX_SEQUENCE] == 1 && !lo->batch_whole;
}

static enum hb_zeros_at place_of(const struct tail *t, uint32_t zeros)
{
    const struct hb_hide_op *ops = t->h.ops;
    if (t->value != HB_NONE && ops[zeros].place > ops[t->forward].place)
        return HB_ZEROS_FIRST;
    if (ops[zeros].place > ops[t->softmax].place)
        return HB_ZEROS_BEFORE_LOSS;
    return ops[zeros].place > ops[t->head].place ? HB_ZEROS_BESIDE_HEAD : HB_ZEROS_LATE;
}

/* Vectors of no size to speak of as late as can be. */
static void place_zeros(const struct tail *t, struct hb_lower *lo, const struct hb_lower *whole)
{
    for (uint32_t k = 0; k < lo->kind_count; k++)
        lo->kinds[k].zeros_at = HB_ZEROS_LATE;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct grad *g = &t->grads[i];
        uint32_t kind = hb_leaf_kind(lo, &whole->leaves[g->leaf]);
        if (g->matrix && kind < lo->kind_count)
            lo->kinds[kind].zeros_at = (int)place_of(t, g->zeros);
    }
}

static void set_groups(struct tail *t, const struct hb_lower *lo)
{
    int64_t ways[HB_AX_COUNT];
    for (int i = 0; i < HB_AX_COUNT; i++)
        ways[i] = hb_ways(lo, (enum hb_axis)i);
    int64_t inner = hb_mul_sat(ways[HB_AX_TENSOR], ways[HB_AX_EXPERT]);
    int64_t beside = hb_mul_sat(ways[HB_AX_DATA], ways[HB_AX_EXPERT]);
    t->experts = ways[HB_AX_EXPERT] > 1;
    t->tensor = (struct group){ways[HB_AX_TENSOR], 1};
    t->fsdp = (struct group){ways[HB_AX_FSDP], inner};
    t->data = (struct group){beside,
                             t->experts ? ways[HB_AX_TENSOR] : hb_mul_sat(inner, ways[HB_AX_FSDP])};
    t->batch = (struct group){hb_mul_sat(beside, ways[HB_AX_FSDP]), ways[HB_AX_TENSOR]};
    t->all = (struct group){hb_habits_devices(lo->spec), 1};
    t->parts = t->experts ? t->fsdp : (struct group){hb_mul_sat(inner, ways[HB_AX_FSDP]), 1};
    /* The last norm's gradient: of tokens that are on no other device. */
    t->norm = lo->local.resid_seq < lo->local.seq ? t->all : t->batch;
}

static void build(struct tail *t, uint32_t *out_zeros)
{
    if (hb_in_chunks(t->lo))
        add_chunks(t);
    else
        add_loss(t);
    uint32_t count = add_zeros(t, out_zeros);
    t->loop = hb_hide_add(&t->h, HB_HIDE_LOOP, 2);
    hb_hide_read(&t->h, t->back);
    for (uint32_t i = 0; i < count; i++)
        hb_hide_read(&t->h, out_zeros[i]);
    bool over_all = t->norm.size == t->all.size;
    bool factored = t->lo->spec->optimizer.name == HB_OPT_ADAFACTOR && !t->adds;
    bool waits = hb_updates_wait(t->lo) && !t->adds;
    t->joins = (waits || factored) && over_all;
    sum_grads(t);
    uint32_t norm = waits ? add_norm(t) : HB_NONE;
    add_updates(t, factored ? add_means(t, norm) : norm);
}

void hb_tail_find(struct hb_lower *lo, const struct hb_lower *whole)
{
    lo->tail.known = is_known(lo);
    if (!lo->tail.known)
        return;
    struct tail t = {.lo = lo,
                     .adds = hb_accumulates(lo),
                     .split = lo->local.resid_seq < lo->local.seq,
                     .narrow = hb_order_dot_narrow(lo),
                     .tokens = (double)lo->local.tokens,
                     .width = (double)lo->spec->model.d_model,
                     .words = (double)lo->local.vocab,
                     .value = HB_NONE};
    set_groups(&t, lo);
    hb_hide_init(&t.h, lo->arena);
    list_grads(&t, whole);
    uint32_t *zeros = hb_arena_raw(lo->arena, (size_t)t.count + 1, sizeof *zeros);
    build(&t, zeros);
    hb_hide_run(&t.h);
    const struct hb_hide_op *ops = t.h.ops;
    bool sums = ops[t.head_sum].kind == HB_HIDE_START;
    place_zeros(&t, lo, whole);
    bool early = ops[t.table].place > ops[t.loop].place;
    lo->tail.table = early ? (int)place_of(&t, t.table) : -1;
    lo->tail.value_late = t.value != HB_NONE && ops[t.value].place < ops[t.loop].place;
    lo->tail.gather_early = ops[t.again].place > ops[t.softmax].place;
    lo->tail.head_waits = ops[t.head].place < ops[t.loop].place;
    lo->tail.sum_waits = !lo->tail.head_waits && sums && ops[t.head_sum].place < ops[t.loop].place;
}
