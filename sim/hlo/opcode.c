/* The table of opcode.h, and the suffixes of asynchronous short forms. */
#include "sim/hlo/opcode.h"

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

static bool ends_with(struct hb_hlo_span name, const char *suffix)
{
    size_t len = strlen(suffix);
    return name.len > len && memcmp(name.at + name.len - len, suffix, len) == 0;
}

enum hb_hlo_op hb_hlo_op_find(struct hb_hlo_span name)
{
    enum hb_hlo_op op = name.len ? find_exact(name) : HB_HLO_OP_UNKNOWN;
    if (op != HB_HLO_OP_UNKNOWN)
        return op;
    if (ends_with(name, "-start"))
        return HB_HLO_OP_ASYNC_START;
    if (ends_with(name, "-update"))
        return HB_HLO_OP_ASYNC_UPDATE;
    return ends_with(name, "-done") ? HB_HLO_OP_ASYNC_DONE : HB_HLO_OP_UNKNOWN;
}

const char *hb_hlo_op_name(enum hb_hlo_op op)
{
    return ops[op].name;
}

bool hb_hlo_op_has(enum hb_hlo_op op, int trait)
{
    return (ops[op].traits & trait) != 0;
}
