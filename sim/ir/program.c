/* Building and checking programs of buffers: see program.h. */
#include "sim/ir/program.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"

void hb_program_init(struct hb_program *p, struct hb_arena *arena, const char *name,
                     enum hb_compiler compiler)
{
    *p = (struct hb_program){
        .arena = arena, .name = name, .compiler = compiler, .open_loop = HB_NONE};
}

void hb_program_reserve(struct hb_program *p, uint32_t bufs)
{
    p->ops = hb_arena_raw(p->arena, p->op_cap = bufs, sizeof *p->ops);
    p->bufs = hb_arena_raw(p->arena, p->buf_cap = bufs, sizeof *p->bufs);
    p->refs = hb_arena_raw(p->arena, p->ref_cap = 2 * bufs, sizeof *p->refs);
}

uint32_t hb_program_new_buf(struct hb_program *p)
{
    p->bufs = hb_grow(p->arena, p->bufs, p->buf_count, &p->buf_cap, sizeof *p->bufs);
    return p->buf_count++;
}

uint32_t hb_program_add_buf(struct hb_program *p, struct hb_buf buf)
{
    uint32_t at = hb_program_new_buf(p);
    p->bufs[at] = buf;
    return at;
}

static inline void add_refs(struct hb_program *p, const uint32_t *bufs, uint32_t count)
{
    while (p->ref_count + count > p->ref_cap)
        p->refs = hb_grow(p->arena, p->refs, p->ref_cap, &p->ref_cap, sizeof *p->refs);
    for (uint32_t i = 0; i < count; i++) {
        if (bufs[i] >= p->buf_count)
            HB_BUG("reference to buffer %u of %u", bufs[i], p->buf_count);
        p->refs[p->ref_count++] = bufs[i];
    }
}

struct hb_op *hb_program_new_op(struct hb_program *p)
{
    p->ops = hb_grow(p->arena, p->ops, p->op_count, &p->op_cap, sizeof *p->ops);
    return &p->ops[p->op_count];
}

uint32_t hb_program_put_op(struct hb_program *p, const struct hb_op *op, const uint32_t *reads,
                           const uint32_t *writes)
{
    struct hb_op *own = hb_program_new_op(p);
    if (op != own)
        *own = *op;
    own->refs_at = p->ref_count;
    own->loop = p->open_loop;
    add_refs(p, reads, op->read_count);
    add_refs(p, writes, op->write_count);
    return p->op_count++;
}

uint32_t hb_program_add_op(struct hb_program *p, struct hb_op op)
{
    const uint32_t none = op.read_count = op.write_count = 0;
    return hb_program_put_op(p, &op, &none, &none);
}

static void add_ref(struct hb_program *p, uint32_t buf)
{
    if (!p->op_count)
        HB_BUG("reference to buffer %u without op", buf);
    add_refs(p, &buf, 1);
}

void hb_program_read(struct hb_program *p, uint32_t buf)
{
    add_ref(p, buf);
    struct hb_op *op = &p->ops[p->op_count - 1];
    if (op->write_count)
        HB_BUG("op '%s': read after a write", op->name);
    op->read_count++;
}

void hb_program_write(struct hb_program *p, uint32_t buf)
{
    add_ref(p, buf);
    p->ops[p->op_count - 1].write_count++;
}

uint32_t hb_program_open_loop(struct hb_program *p, const char *name, int64_t trips)
{
    p->loops = hb_grow(p->arena, p->loops, p->loop_count, &p->loop_cap, sizeof *p->loops);
    p->loops[p->loop_count] = (struct hb_loop){.name = name,
                                               .first_op = p->op_count,
                                               .end_op = p->op_count,
                                               .parent = p->open_loop,
                                               .trips = trips};
    p->open_loop = p->loop_count;
    return p->loop_count++;
}

void hb_program_close_loop(struct hb_program *p, uint32_t loop)
{
    if (p->open_loop != loop)
        HB_BUG("loop %u closed while %u is open", loop, p->open_loop);
    p->loops[loop].end_op = p->op_count;
    p->open_loop = p->loops[loop].parent;
}

uint32_t hb_program_root(const struct hb_program *p, uint32_t buf)
{
    while (p->bufs[buf].alias_of != HB_NONE)
        buf = p->bufs[buf].alias_of;
    return buf;
}

uint32_t *hb_program_roots(struct hb_arena *arena, const struct hb_program *p)
{
    uint32_t *roots = hb_arena_alloc(arena, p->buf_count, sizeof *roots);
    for (uint32_t i = 0; i < p->buf_count; i++)
        roots[i] = p->bufs[i].alias_of == HB_NONE ? i : roots[p->bufs[i].alias_of];
    return roots;
}

int64_t hb_program_times(const struct hb_program *p, const struct hb_op *op)
{
    int64_t times = 1;
    for (uint32_t l = op->loop; l != HB_NONE; l = p->loops[l].parent)
        times = hb_mul_sat(times, p->loops[l].trips);
    return times;
}

bool hb_op_is_work(const struct hb_op *op)
{
    return op->stream == HB_STREAM_COMPUTE && op->kind != HB_OP_MARK && op->kind != HB_OP_DONE;
}

static const char *const category_names[] = {
#define HB_ENUM(name, text) text,
    HB_CATEGORIES(HB_ENUM)
#undef HB_ENUM
};

static const char *const phase_names[] = {
#define HB_ENUM(name, text) text,
    HB_PHASES(HB_ENUM)
#undef HB_ENUM
};

static const char *const op_kind_names[] = {
#define HB_ENUM(name, text) text,
    HB_OP_KINDS(HB_ENUM)
#undef HB_ENUM
};

static const char *const stream_names[] = {"compute",  "device-to-host", "host-to-device",
                                           "data",     "fsdp",           "tensor",
                                           "sequence", "expert",         "pipeline"};

_Static_assert(sizeof stream_names / sizeof stream_names[0] == HB_STREAM_COUNT, "a name a stream");

const char *hb_category_name(enum hb_category category)
{
    return category_names[category];
}

const char *hb_phase_name(enum hb_phase phase)
{
    return phase_names[phase];
}

const char *hb_op_kind_name(enum hb_op_kind kind)
{
    return op_kind_names[kind];
}

const char *hb_stream_name(enum hb_stream stream)
{
    return stream_names[stream];
}
