/* The table of opcode.h, and the suffixes of asynchronous short forms. */
#include "sim/hlo/opcode.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned char len;
    unsigned char traits;
} ops[] = {
#define HB_ENUM(name, text, traits) {text, sizeof text - 1, traits},
    HB_HLO_OPS(HB_ENUM)
#undef HB_ENUM
};
_Static_assert(sizeof ops / sizeof *ops == HB_HLO_OP_COUNT, "one row an operation");

static enum hb_hlo_op find_exact(struct hb_hlo_span name)
{
    for (int i = 0; i < HB_HLO_OP_UNKNOWN; i++)
        if (ops[i].len == name.len && memcmp(ops[i].name, name.at, name.len) == 0)
            return (enum hb_hlo_op)i;
    return HB_HLO_OP_UNKNOWN;
}

/* The table's row of what is left of a name without its suffix, and another one behind it. */
static enum hb_hlo_op find_half(struct hb_hlo_span name, const char *suffix, const char *other)
{
    char text[64];
    size_t len = strlen(suffix), more = strlen(other);
    if (name.len <= len || name.len - len + more >= sizeof text ||
        memcmp(name.at + name.len - len, suffix, len) != 0)
        return HB_HLO_OP_UNKNOWN;
    snprintf(text, sizeof text, "%.*s%s", (int)(name.len - len), name.at, other);
    return find_exact((struct hb_hlo_span){text, name.len - len + more});
}

enum hb_hlo_op hb_hlo_op_find(struct hb_hlo_span name)
{
    static const struct {
        const char *suffix;
        enum hb_hlo_op op;
    } halves[] = {{"-start", HB_HLO_OP_ASYNC_START},
                  {"-update", HB_HLO_OP_ASYNC_UPDATE},
                  {"-done", HB_HLO_OP_ASYNC_DONE}};
    enum hb_hlo_op op = name.len ? find_exact(name) : HB_HLO_OP_UNKNOWN;
    for (size_t i = 0; op == HB_HLO_OP_UNKNOWN && i < sizeof halves / sizeof *halves; i++)
        if (find_half(name, halves[i].suffix, "") != HB_HLO_OP_UNKNOWN &&
            find_half(name, halves[i].suffix, "-done") == HB_HLO_OP_UNKNOWN)
            op = halves[i].op;
    return op;
}

const char *hb_hlo_op_name(enum hb_hlo_op op)
{
    return ops[op].name;
}

bool hb_hlo_op_has(enum hb_hlo_op op, int trait)
{
    return (ops[op].traits & trait) != 0;
}
