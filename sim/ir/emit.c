/* The verbs of the lowering: buffers and ops added to the program. See lowering.h. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/ir/lowering.h"

/* Where it stays: a step has thousands. */
static uint32_t put_buf(struct hb_lower *lo, const char *name, enum hb_category category,
                        const struct hb_shape *shape, enum hb_tiling tiling)
{
    uint32_t at = hb_program_new_buf(lo->p);
    struct hb_buf *b = &lo->p->bufs[at];
    *b = (struct hb_buf){.name = name,
                         .why = "",
                         .bytes = hb_shape_bytes(shape, tiling),
                         .plain_bytes = hb_shape_plain_bytes(shape),
                         .slices = shape->slices,
                         .rank = shape->rank,
                         .dtype = shape->dtype,
                         .tiling = tiling,
                         .category = category,
                         .alias_of = HB_NONE};
    for (int i = 0; i < shape->rank; i++)
        b->dim[i] = shape->dim[i];
    if (!hb_size_ok(b->bytes)) {
        if (!lo->too_large)
            hb_error(lo->diag, (struct hb_loc){0}, "the size of '%s' exceeds 2^61 bytes", name);
        lo->too_large = true;
        b->bytes = b->plain_bytes = 0;
    }
    return at;
}

uint32_t hb_temp_tiled(struct hb_lower *lo, const char *name, enum hb_category category,
                       struct hb_shape shape, enum hb_tiling tiling)
{
    return put_buf(lo, name, category, &shape, tiling);
}

uint32_t hb_temp(struct hb_lower *lo, const char *name, enum hb_category category,
                 struct hb_shape shape)
{
    return put_buf(lo, name, category, &shape, lo->habits->tiling);
}

uint32_t hb_temp_in_place(struct hb_lower *lo, const char *name, enum hb_category category,
                          uint32_t place)
{
    if (place == HB_NONE)
        HB_BUG("'%s' in place of nothing", name);
    uint32_t at = hb_program_add_buf(lo->p, lo->p->bufs[place]);
    struct hb_buf *b = &lo->p->bufs[at];
    b->name = name;
    b->category = category;
    b->alias_of = place;
    b->argument = b->output = false;
    return at;
}

uint32_t hb_argument(struct hb_lower *lo, const char *name, enum hb_category category,
                     struct hb_shape shape, enum hb_space space)
{
    uint32_t at = put_buf(lo, name, category, &shape, lo->habits->tiling);
    lo->p->bufs[at].space = space;
    lo->p->bufs[at].argument = true;
    return at;
}

void hb_emit_read(struct hb_emit *e, uint32_t buf)
{
    if (buf == HB_NONE)
        return;
    if (e->read_count == HB_EMIT_REFS)
        HB_BUG("op '%s' reads too much", e->name);
    e->read[e->read_count++] = buf;
}

void hb_emit_write(struct hb_emit *e, uint32_t buf)
{
    if (buf == HB_NONE)
        return;
    if (e->write_count == HB_EMIT_REFS)
        HB_BUG("op '%s' writes too much", e->name);
    e->write[e->write_count++] = buf;
}

/* Of a stack, an op inside a loop touches one slice. */
static double touched_bytes(const struct hb_lower *lo, uint32_t buf)
{
    const struct hb_buf *b = &lo->p->bufs[buf];
    bool one_slice = b->slices > 1 && lo->p->open_loop != HB_NONE;
    return one_slice ? (double)b->bytes / (double)b->slices : (double)b->bytes;
}

/* What an op moves through memory if it says nothing better: each operand and result once. */
static double operand_bytes(const struct hb_lower *lo, const struct hb_op *op,
                            const uint32_t *reads, const uint32_t *writes)
{
    double bytes = 0;
    for (uint32_t i = 0; i < op->read_count; i++)
        bytes += touched_bytes(lo, reads[i]);
    for (uint32_t i = 0; i < op->write_count; i++)
        bytes += touched_bytes(lo, writes[i]);
    return bytes;
}

uint32_t hb_emit(struct hb_lower *lo, const struct hb_emit *e)
{
    struct hb_op *op = hb_program_new_op(lo->p);
    *op = (struct hb_op){.name = e->name,
                         .kind = e->kind,
                         .stream = e->stream,
                         .phase = lo->phase,
                         .start = HB_NONE,
                         .dtype = lo->compute,
                         .flops = e->flops,
                         .moved_bytes = e->moved_bytes,
                         .sent_bytes = e->sent_bytes,
                         .axis = e->axis,
                         .group = e->group,
                         .over_data = e->over_data,
                         .rows = e->rows,
                         .cols = e->cols,
                         .depth = e->depth,
                         .batch = e->batch > 0 ? e->batch : 1,
                         .adjoint = e->adjoint,
                         .read_count = e->read_count,
                         .write_count = e->write_count};
    if (!(op->moved_bytes > 0))
        op->moved_bytes = operand_bytes(lo, op, e->read, e->write);
    return hb_program_put_op(lo->p, op, e->read, e->write);
}

/* With nothing else to say of it: most are, without the room for many operands. */
static uint32_t emit_plain(struct hb_lower *lo, enum hb_op_kind kind, const char *name,
                           const uint32_t *reads, uint32_t read_count, uint32_t write)
{
    struct hb_op *op = hb_program_new_op(lo->p);
    *op = (struct hb_op){.name = name,
                         .kind = kind,
                         .phase = lo->phase,
                         .start = HB_NONE,
                         .dtype = lo->compute,
                         .batch = 1,
                         .read_count = read_count,
                         .write_count = write != HB_NONE};
    op->moved_bytes = operand_bytes(lo, op, reads, &write);
    return hb_program_put_op(lo->p, op, reads, &write);
}

uint32_t hb_emit_simple(struct hb_lower *lo, enum hb_op_kind kind, const char *name, uint32_t read,
                        uint32_t write)
{
    return emit_plain(lo, kind, name, &read, read != HB_NONE, write);
}

uint32_t hb_emit_sum(struct hb_lower *lo, const char *name, uint32_t a, uint32_t b, uint32_t write)
{
    uint32_t reads[2], count = 0;
    if (a != HB_NONE)
        reads[count++] = a;
    if (b != HB_NONE)
        reads[count++] = b;
    return emit_plain(lo, HB_OP_ELEMENTWISE, name, reads, count, write);
}

uint32_t hb_emit_mark(struct hb_lower *lo, const char *name, uint32_t read, uint32_t write)
{
    return hb_emit_simple(lo, HB_OP_MARK, name, read, write);
}

double hb_payload_bytes(enum hb_op_kind kind, int64_t bytes, int64_t group)
{
    return kind == HB_OP_ALL_TO_ALL ? (double)bytes * (double)group : (double)bytes;
}

uint32_t hb_emit_collective(struct hb_lower *lo, enum hb_op_kind kind, enum hb_axis axis,
                            const char *name, uint32_t read, uint32_t write)
{
    struct hb_emit e = {.name = name,
                        .kind = kind,
                        .stream = HB_STREAM_COLLECTIVE + (unsigned)axis,
                        .axis = axis,
                        .group = hb_ways(lo, axis)};
    hb_emit_read(&e, read);
    hb_emit_write(&e, write);
    int64_t in = read == HB_NONE ? 0 : lo->p->bufs[read].plain_bytes;
    int64_t out = write == HB_NONE ? 0 : lo->p->bufs[write].plain_bytes;
    e.sent_bytes = hb_payload_bytes(kind, in > out ? in : out, e.group);
    return hb_emit(lo, &e);
}

uint32_t hb_emit_grad_sum(struct hb_lower *lo, const char *name, uint32_t full, uint32_t sum)
{
    uint32_t op = hb_emit_collective(lo, HB_OP_REDUCE_SCATTER, HB_AX_FSDP, name, full, sum);
    lo->p->ops[op].over_data = true;
    return op;
}

uint32_t *hb_none_list(struct hb_lower *lo, uint32_t count)
{
    uint32_t *list = hb_arena_raw(lo->arena, count, sizeof *list);
    for (uint32_t i = 0; i < count; i++)
        list[i] = HB_NONE;
    return list;
}

struct hb_shape hb_buf_shape(const struct hb_lower *lo, uint32_t buf)
{
    const struct hb_buf *b = &lo->p->bufs[buf];
    struct hb_shape s = {.rank = b->rank, .dtype = b->dtype};
    for (int i = 0; i < b->rank; i++)
        s.dim[i] = b->dim[i];
    return s;
}

const char *hb_name_of(struct hb_lower *lo, const char *const *parts, uint32_t count)
{
    size_t lengths[HB_NAME_PARTS], room = 1;
    for (uint32_t i = 0; i < count; i++)
        room += lengths[i] = strlen(parts[i]);
    char *text = hb_arena_raw(lo->arena, room, 1), *end = text;
    for (uint32_t i = 0; i < count; end += lengths[i++])
        memcpy(end, parts[i], lengths[i]);
    *end = '\0';
    return text;
}

const char *hb_name(struct hb_lower *lo, const char *a, const char *b)
{
    return hb_name_of(lo, (const char *const[]){a, b}, 2);
}

int64_t hb_ways(const struct hb_lower *lo, enum hb_axis axis)
{
    return lo->spec->mesh[axis];
}

int64_t hb_fsdp_ways(const struct hb_lower *lo, bool expert)
{
    const struct hb_sharding *sh = &lo->spec->sharding;
    int64_t ways = hb_ways(lo, HB_AX_FSDP);
    if (sh->states_over_sequence)
        ways *= hb_ways(lo, HB_AX_SEQUENCE);
    if (sh->dense_over_expert && !expert)
        ways *= hb_ways(lo, HB_AX_EXPERT);
    return ways;
}

int64_t hb_logit_bytes(const struct hb_lower *lo, int64_t width)
{
    return hb_mul_sat(width, hb_mul_sat(lo->local.tokens, lo->local.vocab));
}

bool hb_sends(const struct hb_lower *lo, int block)
{
    const struct hb_remat *r = &lo->spec->model.blocks[block].remat;
    return r->policy == HB_POLICY_NAMES && r->offload != 0 && !hb_in_blocks(lo);
}

bool hb_in_blocks(const struct hb_lower *lo)
{
    return lo->spec->stack.form == HB_FORM_NESTED && lo->spec->remat.outer;
}

bool hb_offloads(const struct hb_lower *lo)
{
    return hb_sends(lo, hb_first_run(lo));
}

bool hb_alone(const struct hb_lower *lo)
{
    return lo->local.batch_ways == 1 && hb_ways(lo, HB_AX_TENSOR) == 1 &&
           hb_ways(lo, HB_AX_SEQUENCE) == 1 && hb_ways(lo, HB_AX_PIPELINE) == 1;
}

bool hb_gathers_labels(const struct hb_lower *lo)
{
    return !lo->spec->loss.onehot;
}

bool hb_updates_wait(const struct hb_lower *lo)
{
    return lo->spec->optimizer.clip || hb_accumulates(lo);
}

bool hb_updates_together(const struct hb_lower *lo)
{
    return hb_updates_wait(lo) || lo->spec->optimizer.name == HB_OPT_MUON;
}
