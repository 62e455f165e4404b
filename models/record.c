/* Measured records: see record.h. */
#include "models/record.h"

#include <string.h>

#include "base/diag.h"
#include "models/schema.h"

enum { HOLD_OUT_PARTS = 3 };

static const uint64_t fnv_offset = 14695981039346656037ULL;
static const uint64_t fnv_prime = 1099511628211ULL;

bool hb_record_held_out(const char *id)
{
    uint64_t hash = fnv_offset;
    for (; *id; id++)
        hash = (hash ^ (unsigned char)*id) * fnv_prime;
    return (hash >> 32) % HOLD_OUT_PARTS == 0;
}

static const char *read_text(const struct hb_node *node, const char *key)
{
    const struct hb_node *n = hb_node_find(node, key);
    return n && n->kind == HB_NODE_SCALAR && !hb_node_is_null(n) ? n->text : "";
}

static bool read_bytes(struct hb_diag *diag, const struct hb_node *measured, const char *key,
                       int64_t *out)
{
    const struct hb_node *n = hb_node_find(measured, key);
    *out = -1;
    if (!n || hb_node_is_null(n))
        return true;
    if (!hb_node_int(n, out) || *out < 0)
        return hb_error(diag, n->loc, "measured.%s: a whole number of bytes is wanted", key);
    return true;
}

static bool read_figures(struct hb_diag *diag, const struct hb_node *m, struct hb_record *out)
{
    const struct hb_node *fits = hb_node_find(m, "fits");
    bool ran;
    out->fits = fits && hb_node_bool(fits, &ran) ? ran : -1;
    const struct hb_node *seconds = hb_node_find(m, "step_seconds");
    out->step_seconds = 0;
    if (seconds && !hb_node_is_null(seconds) &&
        (!hb_node_real(seconds, &out->step_seconds) || out->step_seconds < 0))
        return hb_error(diag, seconds->loc, "measured.step_seconds: a number of seconds is wanted");
    return read_bytes(diag, m, "argument_bytes", &out->argument_bytes) &&
           read_bytes(diag, m, "output_bytes", &out->output_bytes) &&
           read_bytes(diag, m, "alias_bytes", &out->alias_bytes) &&
           read_bytes(diag, m, "temp_bytes", &out->temp_bytes) &&
           read_bytes(diag, m, "host_bytes", &out->host_bytes) &&
           read_bytes(diag, m, "peak_bytes", &out->peak_bytes);
}

bool hb_record_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *node,
                    const char *data_dir, struct hb_record *out)
{
    *out = (struct hb_record){.id = read_text(node, "id"), .group = read_text(node, "group")};
    if (!*out->id)
        return hb_error(diag, node->loc, "a measured record needs an 'id'");
    const struct hb_node *measured = hb_node_find(node, "measured");
    const struct hb_node *config = hb_node_find(node, "config");
    if (!measured || measured->kind != HB_NODE_MAP)
        return hb_error(diag, node->loc, "record '%s' has no 'measured' map", out->id);
    if (!config || config->kind != HB_NODE_MAP)
        return hb_error(diag, node->loc, "record '%s' has no 'config' map", out->id);
    out->kind = read_text(measured, "kind");
    out->rematerialised = strstr(read_text(node, "note"), "rematerialised by itself") != NULL;
    if (!read_figures(diag, measured, out))
        return false;
    if (out->peak_bytes < 0 && out->step_seconds <= 0)
        return hb_error(diag, measured->loc,
                        "record '%s' has neither measured.peak_bytes nor measured.step_seconds",
                        out->id);
    return hb_schema_from_node(arena, diag, config, data_dir, &out->spec);
}
