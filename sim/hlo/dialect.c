/* Rule 12 for the alignments; tables of tuples: the outputs of 489 TPU records (v5p and v6e differ
 * from v5e, v4 is like it). On TPU all is packed in order of time, and again sorted by size where
 * little would be left (hb_chip_repack_bytes). Three dumps of v7, whose tables take slots of their
 * own, come within 0.14 %. */
#include "sim/hlo/dialect.h"

#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "sim/hlo/module.h"

#define DIALECTS(X)                                                                                \
    X(CPU, "cpu", HB_HLO_CPU, HB_HEAP_SORTED, 64, 1, 8, 1)                                         \
    X(GPU, "gpu", HB_HLO_GPU, HB_HEAP_SORTED, 256, 1, 8, 1)                                        \
    X(V4, "tpu-v4", HB_HLO_TPU, HB_HEAP_IN_ORDER, 16384, 512, 4, 512)                              \
    X(V5E, "tpu-v5e", HB_HLO_TPU, HB_HEAP_IN_ORDER, 16384, 512, 4, 512)                            \
    X(V5P, "tpu-v5p", HB_HLO_TPU, HB_HEAP_IN_ORDER, 16384, 512, 4, 32)                             \
    X(V6E, "tpu-v6e", HB_HLO_TPU, HB_HEAP_IN_ORDER, 16384, 512, 4, 32)                             \
    X(V7, "tpu-v7", HB_HLO_TPU, HB_HEAP_IN_ORDER, 16384, 512, 4, 32)

enum {
#define HB_ENUM(id, name, backend, heap, align, leaf, pointer, table) id,
    DIALECTS(HB_ENUM)
#undef HB_ENUM
};

static const struct hb_hlo_dialect dialects[] = {
#define HB_ENUM(id, name, backend, heap, align, leaf, pointer, table)                              \
    {name, backend, heap, align, leaf, pointer, table},
    DIALECTS(HB_ENUM)
#undef HB_ENUM
};

static const char *const names[] = {
#define HB_ENUM(id, name, backend, heap, align, leaf, pointer, table) name,
    DIALECTS(HB_ENUM)
#undef HB_ENUM
        NULL};

const struct hb_hlo_dialect *hb_hlo_dialect_find(const char *name)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (hb_str_same(dialects[i].name, name))
            return &dialects[i];
    return hb_str_same(name, "tpu") ? &dialects[V5E] : NULL;
}

const char *const *hb_hlo_dialect_names(void)
{
    return names;
}

static bool begins(struct hb_hlo_span span, const char *word)
{
    size_t len = strlen(word);
    return span.len >= len && memcmp(span.at, word, len) == 0;
}

/* Above 0: GPU; below: CPU. GPU fusions are named by their emitter, its constants with
 * underscores, its collectives are asynchronous; CPU fusions are named by what is in them. */
static int weigh_inst(const struct hb_hlo_module *m, uint32_t inst)
{
    struct hb_hlo_span name = hb_hlo_name_of(m, inst);
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    if (op == HB_HLO_OP_CONSTANT)
        return begins(name, "constant_");
    if (op == HB_HLO_OP_ALL_REDUCE_START || op == HB_HLO_OP_ALL_GATHER_START ||
        op == HB_HLO_OP_COLLECTIVE_PERMUTE_START || op == HB_HLO_OP_ASYNC_START)
        return 4;
    if (op == HB_HLO_OP_ALL_REDUCE || op == HB_HLO_OP_ALL_GATHER ||
        op == HB_HLO_OP_COLLECTIVE_PERMUTE || op == HB_HLO_OP_DOT)
        return -1;
    if (op == HB_HLO_OP_CUSTOM_CALL) {
        struct hb_hlo_span target = hb_hlo_attr(m, inst, "custom_call_target");
        if (target.at && (hb_hlo_span_find(target, "__cu") || hb_hlo_span_find(target, "triton") ||
                          hb_hlo_span_find(target, "__cub$")))
            return 8;
        return target.at &&
                       (hb_hlo_span_find(target, "onednn") || hb_hlo_span_find(target, "__ynn"))
                   ? -8
                   : 0;
    }
    if (op != HB_HLO_OP_FUSION)
        return 0;
    if (begins(name, "ynn_") || begins(name, "onednn"))
        return -8;
    if (begins(name, "loop_") || begins(name, "input_") || begins(name, "gemm_fusion") ||
        m->insts[inst].fusion == HB_HLO_INPUT)
        return 4;
    return begins(name, "wrapped_") || begins(name, "fusion") ? 0 : -2;
}

/* The most cores that a sparse core call runs on: none before v5p, 2 on v6e and v7, 4 on v5p. */
static int count_sparse_cores(const struct hb_hlo_module *m)
{
    enum { MOST = 16 };
    int most = 0;
    for (uint32_t i = 0; i < m->inst_count; i++) {
        if (hb_hlo_op_of(m, i) != HB_HLO_OP_ASYNC_START)
            continue;
        struct hb_hlo_span config = hb_hlo_attr(m, i, "backend_config");
        const char *cores = config.at ? hb_hlo_span_find(config, "\"sparse_core_config\"") : NULL;
        if (!cores)
            continue;
        struct hb_hlo_span rest = {cores, (size_t)(config.at + config.len - cores)};
        int64_t ids[MOST];
        for (const char *at; (at = hb_hlo_span_find(rest, "\"core_ids\":["));) {
            rest.len -= (size_t)(at + 12 - rest.at);
            rest.at = at + 12;
            const char *close = memchr(rest.at, ']', rest.len);
            struct hb_hlo_span list = {rest.at, close ? (size_t)(close - rest.at) : 0};
            int count = (int)hb_hlo_numbers(list, ids, MOST);
            most = count > most ? count : most;
        }
        most = most ? most : 1;
    }
    return most;
}

/* ---- by the file's name ---- */

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has_word(const char *name, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at++)
        if ((at == name || !is_letter_or_digit(at[-1])) && !is_letter_or_digit(at[len]))
            return true;
    return false;
}

/* XLA writes module_0001.jit_step.cpu_after_optimizations.txt, and people the device's name. */
static int find_named(const char *file, bool tpu)
{
    static const struct {
        const char *word;
        int dialect;
        bool tpu;
    } words[] = {{"v4", V4, true},      {"v5e", V5E, true},     {"v5litepod", V5E, true},
                 {"v5p", V5P, true},    {"v6e", V6E, true},     {"v7", V7, true},
                 {"tpu7x", V7, true},   {"cpu", CPU, false},    {"gpu", GPU, false},
                 {"cuda", GPU, false},  {"rocm", GPU, false},   {"a100", GPU, false},
                 {"h100", GPU, false},  {"h200", GPU, false},   {"b200", GPU, false},
                 {"mi250", GPU, false}, {"mi300x", GPU, false}, {"mi325x", GPU, false}};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].tpu == tpu && has_word(slash ? slash + 1 : file, words[i].word))
            return words[i].dialect;
    return -1;
}

/* ---- by both ---- */

/* v7's bf16 lie in tiles of 16 rows. */
static bool has_tall_tiles(const struct hb_hlo_module *m)
{
    for (uint32_t i = 0; i < m->shapes.count; i++)
        if (hb_hlo_span_find(m->shapes.items[i].text, "T(16,128)(2,1)"))
            return true;
    return false;
}

const struct hb_hlo_dialect *hb_hlo_dialect_guess(const struct hb_hlo_module *m)
{
    enum { V6E_CORES = 2 };
    bool tiled = false;
    for (uint32_t i = 0; i < m->shapes.count && !tiled; i++)
        tiled = m->shapes.items[i].tiled;
    int cores = tiled ? count_sparse_cores(m) : 0, named = find_named(m->text.file, tiled);
    if (cores && cores != V6E_CORES)
        return &dialects[V5P];
    if (cores)
        return &dialects[has_tall_tiles(m) ? V7 : V6E];
    if (named >= 0)
        return &dialects[named];
    if (tiled)
        return &dialects[V5E];
    int64_t weight = 0;
    for (uint32_t i = 0; i < m->inst_count; i++)
        weight += weigh_inst(m, i);
    return &dialects[m->scheduled && weight < 0 ? CPU : GPU];
}
