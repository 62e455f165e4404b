/* Source of truth for device_put: JAX, jax/_src/dispatch.py (a host array put to a sharding that
 * spans processes is first passed to multihost_utils.assert_equal) and
 * jax/experimental/multihost_utils.py (assert_equal: process_allgather(tiled=True), which puts the
 * array on each local device, joins all of them replicated, and copies the result to the host;
 * there it is compared with a host array of the same size). One process: no comparison. A report
 * of 62.62 GiB asked for on each device, for an embedding of 128256 x 2048 f32 (0.978 GiB) and 64
 * processes, is that product to the digit. */
#include "sim/engine/load.h"

#include "base/diag.h"
#include "base/size.h"

static int64_t largest_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t product(int64_t a, int64_t b, int64_t c)
{
    return hb_mul_sat(hb_mul_sat(a, b), c);
}

/* Elements of the largest weight of one layer. */
static int64_t largest_of_layer(const struct hb_model *model, const struct hb_block *block)
{
    const struct hb_attention *a = &block->attention;
    int64_t d = model->d_model, most = 0;
    int64_t q = hb_mul_sat(a->heads, a->head_dim);
    if (a->kind == HB_ATTN_MLA) {
        int64_t up = hb_add_sat(a->qk_nope_head_dim, a->v_head_dim);
        int64_t qk = hb_add_sat(a->qk_nope_head_dim, a->qk_rope_head_dim);
        most = product(a->kv_lora_rank, a->heads, up);
        most = largest_of(most, product(a->q_lora_rank ? a->q_lora_rank : d, a->heads, qk));
        most = largest_of(most, product(d, a->heads, a->v_head_dim));
    } else {
        if (a->fused_qkv)
            q = hb_add_sat(q, product(2, a->kv_heads, a->head_dim));
        most = hb_mul_sat(d, q);
    }
    int64_t width = hb_mul_sat(block->mlp.d_ff, block->mlp.fused ? 2 : 1);
    if (block->moe.experts)
        width = largest_of(hb_mul_sat(block->moe.experts, block->moe.d_ff), block->moe.shared_d_ff);
    return largest_of(most, hb_mul_sat(d, width));
}

/* Elements of the model's largest array: stacked layers are one array. */
static int64_t largest_array(const struct hb_spec *spec)
{
    const struct hb_model *m = &spec->model;
    int64_t most = hb_mul_sat(largest_of(m->vocab, m->positions), m->d_model);
    for (int i = 0; i < m->block_count; i++) {
        const struct hb_block *block = &m->blocks[i];
        int64_t stacked = spec->stack.form == HB_FORM_LOOP ? 1 : hb_block_steps(block);
        most = largest_of(most, hb_mul_sat(stacked, largest_of_layer(m, block)));
    }
    return most;
}

struct hb_load_plan hb_load_plan_make(const struct hb_spec *spec, const struct hb_program *step)
{
    int bits = hb_dtype_bits(spec->precision.params);
    int64_t item_bytes = bits < 8 ? 1 : bits / 8, params = 0;
    struct hb_load_plan plan = {.array_bytes = spec->load.largest_array,
                                .item_bytes = item_bytes,
                                .devices = spec->hardware.count,
                                .compiler = step->compiler};
    if (!plan.array_bytes)
        plan.array_bytes = hb_mul_sat(largest_array(spec), item_bytes);
    for (uint32_t i = 0; i < step->buf_count; i++) {
        const struct hb_buf *b = &step->bufs[i];
        if (!b->argument || b->space != HB_SPACE_HBM || b->category == HB_CAT_INPUTS)
            continue;
        if (b->category != HB_CAT_PARAMS) {
            plan.states_bytes = hb_add_sat(plan.states_bytes, b->bytes);
            continue;
        }
        params = hb_add_sat(params, b->bytes);
        plan.part_bytes = largest_of(plan.part_bytes, b->bytes);
    }
    if (plan.part_bytes > plan.array_bytes)
        plan.part_bytes = plan.array_bytes;
    plan.others_bytes = params - plan.part_bytes;
    return plan;
}

/* ---- the program ---- */

struct builder {
    struct hb_program *p;
    bool too_large;
};

static uint32_t add_buf(struct builder *b, const char *name, int64_t bytes,
                        enum hb_category category, enum hb_space space)
{
    b->too_large = b->too_large || !hb_size_ok(bytes);
    bytes = b->too_large ? 0 : bytes;
    return hb_program_add_buf(b->p, (struct hb_buf){.name = name,
                                                    .why = "",
                                                    .bytes = bytes,
                                                    .plain_bytes = bytes,
                                                    .dtype = HB_DT_U8,
                                                    .category = category,
                                                    .space = space,
                                                    .alias_of = HB_NONE});
}

/* beside: a second operand, or HB_NONE. */
static void add_op(struct builder *b, enum hb_op_kind kind, const char *name, uint32_t read,
                   uint32_t beside, uint32_t write)
{
    struct hb_op op = {
        .name = name, .kind = kind, .phase = HB_PHASE_LOAD, .start = HB_NONE, .batch = 1};
    hb_program_add_op(b->p, op);
    if (read != HB_NONE)
        hb_program_read(b->p, read);
    if (beside != HB_NONE)
        hb_program_read(b->p, beside);
    hb_program_write(b->p, write);
}

/* Each process's array on each of its devices, all processes' together, and the same on the host
 * beside what is expected. */
static void compare_processes(struct builder *b, const struct hb_load_plan *plan, uint32_t host,
                              int64_t processes)
{
    int64_t all_bytes = hb_mul_sat(plan->array_bytes, processes);
    uint32_t own = add_buf(b, "array of this process, to be compared", plan->array_bytes,
                           HB_CAT_PARAMS, HB_SPACE_HBM);
    uint32_t all = add_buf(b, "array of every process, gathered", all_bytes, HB_CAT_COMMUNICATION,
                           HB_SPACE_HBM);
    uint32_t got =
        add_buf(b, "gathered arrays, on the host", all_bytes, HB_CAT_COMMUNICATION, HB_SPACE_HOST);
    uint32_t expected =
        add_buf(b, "array once for every process", all_bytes, HB_CAT_WORKING, HB_SPACE_HOST);
    uint32_t equal = add_buf(b, "comparison, a byte an element", all_bytes / plan->item_bytes,
                             HB_CAT_WORKING, HB_SPACE_HOST);
    b->p->bufs[own].why = "device_put over processes verifies that all hold the same value";
    b->p->bufs[all].why = "process_allgather joins the arrays of all processes on every device";
    b->p->bufs[got].why = "process_allgather hands back a host array";
    b->p->bufs[expected].why = "assert_equal repeats the array for each process to compare with";
    add_op(b, HB_OP_HOST_COPY, "put the array on each device", host, HB_NONE, own);
    add_op(b, HB_OP_ALL_GATHER, "gather the arrays of all processes", own, HB_NONE, all);
    add_op(b, HB_OP_HOST_COPY, "copy the gathered arrays to the host", all, HB_NONE, got);
    add_op(b, HB_OP_COPY, "repeat the array for each process", host, HB_NONE, expected);
    add_op(b, HB_OP_REDUCE, "compare", got, expected, equal);
}

static void put_replicated(struct builder *b, const struct hb_load_plan *plan, uint32_t host,
                           uint32_t part)
{
    uint32_t whole =
        add_buf(b, "array, replicated", plan->array_bytes, HB_CAT_PARAMS, HB_SPACE_HBM);
    b->p->bufs[whole].why = "device_put to a replicated sharding: each device holds the array";
    add_op(b, HB_OP_HOST_COPY, "put the array on each device", host, HB_NONE, whole);
    add_op(b, HB_OP_COPY, "split the array", whole, HB_NONE, part);
}

static uint32_t read_array(struct builder *b, const struct hb_load_plan *plan,
                           enum hb_load_method method, int64_t processes)
{
    bool parts = method == HB_LOAD_SHARDED;
    int64_t devices = hb_div_up(plan->devices, processes);
    int64_t bytes = parts ? hb_mul_sat(plan->part_bytes, devices) : plan->array_bytes;
    bytes = bytes < plan->array_bytes ? bytes : plan->array_bytes;
    uint32_t host = add_buf(b, parts ? "parts of the array for this host" : "array, on the host",
                            bytes, HB_CAT_PARAMS, HB_SPACE_HOST);
    add_op(b, HB_OP_OTHER, "read the array", HB_NONE, HB_NONE, host);
    return host;
}

bool hb_load_program(struct hb_arena *arena, struct hb_diag *diag, const struct hb_load_plan *plan,
                     enum hb_load_method method, int64_t processes, struct hb_program *out)
{
    struct builder b = {.p = out};
    hb_program_init(out, arena, "load", plan->compiler);
    uint32_t others =
        add_buf(&b, "parameters loaded before", plan->others_bytes, HB_CAT_PARAMS, HB_SPACE_HBM);
    out->bufs[others].argument = true;
    uint32_t host = read_array(&b, plan, method, processes);
    uint32_t part =
        add_buf(&b, "array, this device's part", plan->part_bytes, HB_CAT_PARAMS, HB_SPACE_HBM);
    uint32_t states = add_buf(&b, "optimizer states and averages", plan->states_bytes,
                              HB_CAT_OPTIMIZER, HB_SPACE_HBM);
    if (method == HB_LOAD_DEVICE_PUT && processes > 1)
        compare_processes(&b, plan, host, processes);
    if (method == HB_LOAD_DEVICE_PUT)
        put_replicated(&b, plan, host, part);
    else
        add_op(&b, HB_OP_HOST_COPY, "put a part on each device", host, HB_NONE, part);
    add_op(&b, HB_OP_OTHER, "make the optimizer's states", part, HB_NONE, states);
    add_op(&b, HB_OP_MARK, "the first step begins", states, others, part);
    if (b.too_large)
        return hb_error(diag, (struct hb_loc){0},
                        "load: %lld processes x %lld bytes leave the range of sizes",
                        (long long)processes, (long long)plan->array_bytes);
    return true;
}
