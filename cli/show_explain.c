/* Why a tensor is alive at the peak: see show.h. */
#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/show.h"
#include "sim/engine/live.h"
#include "sim/graph/link.h"
#include "sim/engine/why.h"
#include "sim/hlo/schedule.h"

enum { MOST_SHOWN = 20 };

/* What the program says of one buffer's memory. */
struct facts {
    uint32_t root;
    const struct hb_live *live; /* null: nothing uses it */
    uint32_t first_write;       /* op, of the buffer itself; HB_NONE */
    uint32_t last_touch;        /* op, of the memory, its waits included; HB_NONE */
    uint32_t tenant;            /* whom the peak counts for this memory; HB_NONE: not alive */
    bool argument, output;      /* any that shares the memory */
};

struct page {
    const struct hb_env *env;
    FILE *out;
    const struct hb_result *r;
};

static bool has_text(const char *name, const char *text)
{
    size_t len = strlen(text);
    for (; *name || !len; name++) {
        size_t i = 0;
        while (i < len && tolower((unsigned char)name[i]) == tolower((unsigned char)text[i]))
            i++;
        if (i == len)
            return true;
    }
    return false;
}

static bool refers(const struct hb_program *p, const struct hb_op *op, uint32_t root)
{
    for (uint32_t i = 0; i < op->read_count + op->write_count; i++)
        if (hb_program_root(p, p->refs[op->refs_at + i]) == root)
            return true;
    return false;
}

static void find_touches(const struct hb_program *p, uint32_t buf, struct facts *f)
{
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        const uint32_t *written = p->refs + op->refs_at + op->read_count;
        for (uint32_t w = 0; w < op->write_count && f->first_write == HB_NONE; w++)
            if (written[w] == buf)
                f->first_write = i;
        bool ends = op->kind == HB_OP_DONE && refers(p, &p->ops[op->start], f->root);
        if (ends || refers(p, op, f->root))
            f->last_touch = i;
    }
}

static struct facts find_facts(const struct hb_result *r, uint32_t buf)
{
    const struct hb_program *p = &r->program;
    struct facts f = {.root = hb_program_root(p, buf),
                      .first_write = HB_NONE,
                      .last_touch = HB_NONE,
                      .tenant = HB_NONE};
    for (uint32_t i = 0; i < r->memory.live_count; i++)
        if (r->memory.live[i].buf == f.root)
            f.live = &r->memory.live[i];
    for (uint32_t i = 0; i < r->memory.at_peak_count; i++)
        if (hb_program_root(p, r->memory.at_peak[i].buf) == f.root)
            f.tenant = r->memory.at_peak[i].buf;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        if (hb_program_root(p, i) != f.root)
            continue;
        f.argument = f.argument || p->bufs[i].argument;
        f.output = f.output || p->bufs[i].output;
    }
    find_touches(p, buf, &f);
    return f;
}

static const char *place_of(const struct page *g, uint32_t op)
{
    return hb_show_place(g->env->arena, &g->r->program, (int32_t)op);
}

/* The largest loop that its life covers and that the touch lies in, or HB_NONE. */
static uint32_t widening_loop(const struct hb_program *p, const struct facts *f)
{
    uint32_t found = HB_NONE;
    uint32_t loop = f->last_touch == HB_NONE ? HB_NONE : p->ops[f->last_touch].loop;
    for (; loop != HB_NONE; loop = p->loops[loop].parent)
        if (f->live->end == (int32_t)p->loops[loop].end_op - 1 &&
            f->live->end > (int32_t)f->last_touch)
            found = loop;
    return found;
}

static void show_life(const struct page *g, const struct facts *f)
{
    const struct hb_program *p = &g->r->program;
    if (f->argument) {
        fprintf(g->out, "  alive     all through the step: an argument%s\n",
                f->output ? ", updated in place and handed back" : "");
        return;
    }
    if (f->output) {
        fputs("  alive     all through the step: the compiler keeps room for an output\n", g->out);
        return;
    }
    fprintf(g->out, "  alive     from op %d to op %d", f->live->start + 1, f->live->end + 1);
    uint32_t loop = widening_loop(p, f);
    if (loop != HB_NONE)
        fprintf(g->out, ": to the end of %s, since the next trip needs it", p->loops[loop].name);
    fputc('\n', g->out);
    if (f->last_touch != HB_NONE)
        fprintf(g->out, "  last use  %s\n", place_of(g, f->last_touch));
}

static void show_presence(const struct page *g, uint32_t buf, const struct facts *f)
{
    const struct hb_program *p = &g->r->program;
    int32_t peak = g->r->memory.peak_op;
    if (f->tenant == buf)
        fprintf(g->out, "  at peak   yes, at %s\n", hb_show_place(g->env->arena, p, peak));
    else if (f->tenant != HB_NONE)
        fprintf(g->out, "  at peak   its memory is, as '%s'\n", p->bufs[f->tenant].name);
    else if (p->bufs[f->root].space != HB_SPACE_HBM)
        fprintf(g->out, "  at peak   no: it is in %s memory\n",
                p->bufs[f->root].space == HB_SPACE_HOST ? "host" : "on-chip");
    else
        fprintf(g->out, "  at peak   no: %s op %d, where the peak is\n",
                f->live->start > peak ? "it is made after" : "it is over before", peak + 1);
}

static void show_tensor(const struct page *g, uint32_t i)
{
    const struct hb_program *p = &g->r->program;
    const struct hb_buf *b = &p->bufs[i];
    const struct facts f = find_facts(g->r, i);
    char bytes[HB_SIZE_TEXT], plain[HB_SIZE_TEXT];
    fprintf(g->out, "%s  %s\n", b->name, hb_show_shape(g->env->arena, b));
    fprintf(g->out, "  size      %s", hb_size_print(b->bytes, bytes));
    if (b->bytes != b->plain_bytes)
        fprintf(g->out, " (%s without padding)", hb_size_print(b->plain_bytes, plain));
    fprintf(g->out, ", counted as %s\n", hb_category_name(b->category));
    fprintf(g->out, "  why       %s\n", hb_why(b));
    if (f.root != i)
        fprintf(g->out, "  lies in   the memory of '%s'\n", p->bufs[f.root].name);
    if (f.first_write != HB_NONE)
        fprintf(g->out, "  made by   %s\n", place_of(g, f.first_write));
    if (!f.live) {
        fputs("  alive     never: nothing uses it\n\n", g->out);
        return;
    }
    show_life(g, &f);
    show_presence(g, i, &f);
    fputc('\n', g->out);
}

static bool report_missing(const struct page *g, const char *text)
{
    const struct hb_program *p = &g->r->program;
    const char **names =
        hb_arena_alloc(g->env->arena, (size_t)p->buf_count + 1, sizeof(const char *));
    for (uint32_t i = 0; i < p->buf_count; i++)
        names[i] = p->bufs[i].name;
    const char *near = hb_str_nearest(text, names);
    if (!near && g->r->memory.at_peak_count)
        return hb_error(g->env->diag, (struct hb_loc){0},
                        "no tensor has '%s' in its name; the largest at the peak is '%s'", text,
                        p->bufs[g->r->memory.at_peak[0].buf].name);
    return hb_error(g->env->diag, (struct hb_loc){0}, "no tensor has '%s' in its name%s%s%s", text,
                    near ? "; nearest: '" : "", near ? near : "", near ? "'" : "");
}

/* What lives until when follows from the order of the ops. */
static void show_order(const struct page *g)
{
    struct hb_step_orders o;
    char least[HB_SIZE_TEXT], other[HB_SIZE_TEXT];
    hb_step_orders_find(g->env->arena, &g->r->program, &o);
    fprintf(g->out, "Of XLA's three orders %s needs least, by its estimate %s at once",
            hb_hlo_order_title(o.choice.least),
            hb_size_print(o.choice.bytes[o.choice.least], least));
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++)
        if (kind != (int)o.choice.least)
            fprintf(g->out, "; %s %s", hb_hlo_order_title((enum hb_order_kind)kind),
                    hb_size_print(o.choice.bytes[kind], other));
    fputs(".\n", g->out);
}

bool hb_show_explain(const struct hb_env *env, FILE *out, const struct hb_result *r,
                     const char *text)
{
    struct page g = {env, out, r};
    const struct hb_program *p = &r->program;
    bool *at_peak = hb_arena_alloc(env->arena, p->buf_count, sizeof *at_peak);
    uint32_t matches = 0, present = 0, shown = 0;
    int64_t present_bytes = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        matches += has_text(p->bufs[i].name, text);
    if (!matches)
        return report_missing(&g, text);
    for (uint32_t i = 0; i < r->memory.at_peak_count; i++) {
        uint32_t buf = r->memory.at_peak[i].buf;
        if (!has_text(p->bufs[buf].name, text))
            continue;
        at_peak[buf] = true;
        present++;
        present_bytes += r->memory.at_peak[i].bytes;
        if (shown++ < MOST_SHOWN)
            show_tensor(&g, buf);
    }
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (!at_peak[i] && has_text(p->bufs[i].name, text) && shown++ < MOST_SHOWN)
            show_tensor(&g, i);
    char size[HB_SIZE_TEXT];
    if (shown > MOST_SHOWN)
        fprintf(out, "... and %u more.\n", shown - MOST_SHOWN);
    fprintf(out, "%u tensor%s; at the peak %u, with %s (%lld bytes).\n", matches,
            matches == 1 ? "" : "s", present, hb_size_print(present_bytes, size),
            (long long)present_bytes);
    if (r->spec->compiler != HB_TORCH)
        show_order(&g);
    return true;
}
