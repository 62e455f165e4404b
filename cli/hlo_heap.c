/* See hlo_heap.h. */
#include "cli/hlo_heap.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/hlo/opcode.h"

/* Parts of the last word of an op_name, or of an instruction's name; the first that is in it says.
 */
static const struct {
    const char *part;
    enum hb_shown_kind kind;
} words[] = {
    {"all-reduce", HB_SHOWN_COLLECTIVE},
    {"all-gather", HB_SHOWN_COLLECTIVE},
    {"all-to-all", HB_SHOWN_COLLECTIVE},
    {"reduce-scatter", HB_SHOWN_COLLECTIVE},
    {"collective", HB_SHOWN_COLLECTIVE},
    {"psum", HB_SHOWN_COLLECTIVE},
    {"dot", HB_SHOWN_PRODUCT},
    {"gemm", HB_SHOWN_PRODUCT},
    {"conv_general", HB_SHOWN_PRODUCT},
    {"convolution", HB_SHOWN_PRODUCT},
    {"cublas", HB_SHOWN_PRODUCT},
    {"flash", HB_SHOWN_PRODUCT},
    {"attention", HB_SHOWN_PRODUCT},
    {"dynamic", HB_SHOWN_SLICE},
    {"gather", HB_SHOWN_SLICE},
    {"scatter", HB_SHOWN_SLICE},
    {"slice", HB_SHOWN_SLICE},
    {"concatenate", HB_SHOWN_SLICE},
    {"pad", HB_SHOWN_SLICE},
    {"reduce", HB_SHOWN_REDUCTION},
    {"argmax", HB_SHOWN_REDUCTION},
    {"cumsum", HB_SHOWN_REDUCTION},
    {"sort", HB_SHOWN_REDUCTION},
    {"transpose", HB_SHOWN_LAYOUT},
    {"copy", HB_SHOWN_LAYOUT},
    {"reshape", HB_SHOWN_LAYOUT},
    {"convert", HB_SHOWN_LAYOUT},
    {"broadcast", HB_SHOWN_LAYOUT},
    {"bitcast", HB_SHOWN_LAYOUT},
    {"squeeze", HB_SHOWN_LAYOUT},
};

static enum hb_shown_kind kind_of(const struct hb_hlo_module *m, uint32_t inst, const char *said,
                                  const char *name)
{
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    const char *opcode = hb_hlo_op_name(op);
    const char *all[] = {opcode, name, *said ? said : name};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            /* of a fusion's name only what cannot be a part of it by chance */
            bool sure = words[i].kind == HB_SHOWN_PRODUCT || words[i].kind == HB_SHOWN_COLLECTIVE;
            if ((k != 1 || sure) && strstr(all[k], words[i].part))
                return words[i].kind;
        }
    bool plain = strstr(name, "loop") || strstr(name, "fusion");
    return *said || hb_hlo_op_has(op, 1) || plain ? HB_SHOWN_ELEMENT : HB_SHOWN_OTHER;
}

/* Steps of an op_name that say nothing of the model. */
static bool is_frame(const char *step, size_t len)
{
    static const char *const frames[] = {
        "jvp()", "transpose(jvp())",     "while", "body",     "cond", "closed_call", "checkpoint",
        "remat", "rematted_computation", "pjit",  "shard_map"};
    if (len > 4 && strncmp(step, "jit(", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        if (strlen(frames[i]) == len && strncmp(step, frames[i], len) == 0)
            return true;
    return false;
}

/* "layers_3/mlp/dot_general" of "jit(step)/transpose(jvp(Model))/layers_3/mlp/dot_general": the
 * last three steps that say something. */
static const char *short_name(struct hb_arena *arena, const char *op_name)
{
    enum { KEPT = 3 };
    const char *steps[KEPT] = {NULL};
    size_t lens[KEPT] = {0};
    int count = 0;
    struct hb_str s;
    hb_str_init(&s, arena);
    for (const char *at = op_name; *at;) {
        size_t len = strcspn(at, "/");
        if (!is_frame(at, len)) {
            memmove(steps, steps + 1, (KEPT - 1) * sizeof *steps);
            memmove(lens, lens + 1, (KEPT - 1) * sizeof *lens);
            steps[KEPT - 1] = at;
            lens[KEPT - 1] = len;
            count++;
        }
        at += len + (at[len] == '/');
    }
    for (int i = count < KEPT ? KEPT - count : 0; i < KEPT; i++)
        hb_str_addf(&s, "%s%.*s", s.len ? "/" : "", (int)lens[i], steps[i]);
    return s.text;
}

static const char *source_of(struct hb_arena *arena, const struct hb_hlo_module *m, uint32_t inst)
{
    struct hb_hlo_span file;
    int64_t line;
    if (!hb_hlo_source(m, inst, &file, &line))
        return "";
    const char *path = hb_arena_strndup(arena, file.at, file.len);
    const char *slash = strrchr(path, '/');
    return hb_arena_printf(arena, "%s:%lld", slash ? slash + 1 : path, (long long)line);
}

static void tell(struct hb_arena *arena, const struct hb_hlo_program *hp, struct hb_shown_buffer *b)
{
    const struct hb_hlo_module *m = hp->m;
    uint32_t inst = hb_hlo_report_inst(hp, b->buf);
    struct hb_hlo_span span = hb_hlo_metadata(m, inst, "op_name");
    const char *op_name = span.at ? hb_arena_strndup(arena, span.at, span.len) : "";
    const char *last = strrchr(op_name, '/'), *source = source_of(arena, m, inst);
    const char *words_of = short_name(arena, op_name);
    bool back = strstr(op_name, "transpose(") != NULL;
    b->kind = kind_of(m, inst, last ? last + 1 : op_name, b->name);
    b->label = hb_arena_printf(arena, "%s%s%s%s", source, *source && *words_of ? " " : "",
                               *words_of ? words_of
                               : *source ? ""
                                         : b->name,
                               back ? " (backward)" : "");
    b->why = hb_arena_printf(arena, "%s%s%s%s", b->name, *op_name ? "\n" : "", op_name,
                             *source ? hb_arena_printf(arena, "\n%s", source) : "");
}

struct hb_outcome hb_hlo_heap(struct hb_arena *arena, const struct hb_hlo_report *report)
{
    struct hb_outcome heap;
    struct hb_hlo_span name = report->hp.m->name;
    hb_outcome_make_heap(arena, &report->hp.program, &report->memory, &heap);
    heap.name = hb_arena_strndup(arena, name.at, name.len);
    for (uint32_t i = 0; i < heap.buffer_count; i++)
        tell(arena, &report->hp, &heap.buffers[i]);
    return heap;
}
