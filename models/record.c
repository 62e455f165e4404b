/* Measured records: see record.h. */
#include "models/record.h"

#include <string.h>

#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"
#include "models/schema.h"

enum { HOLD_OUT_PARTS = 3 };

bool hb_record_held_out(const char *id)
{
    return (hb_hash_bytes(HB_HASH_START, id, strlen(id)) >> 32) % HOLD_OUT_PARTS == 0;
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

static bool is_digits(const char *text, int count)
{
    for (int i = 0; i < count; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

/* Year and month of the first date in a text, "2024-12" as 202412; 0: there is none. */
static int find_month(const char *text)
{
    enum { YEAR = 4, MONTH = 2, TEN = 10 };
    for (; *text; text++) {
        if (!is_digits(text, YEAR) || text[YEAR] != '-' || !is_digits(text + YEAR + 1, MONTH))
            continue;
        int month = 0;
        for (int i = 0; i < YEAR + 1 + MONTH; i++)
            if (i != YEAR)
                month = month * TEN + (text[i] - '0');
        return month;
    }
    return 0;
}

/* When a record's torchtitan was: what its versions say, else the day of its source. 0: not said.
 */
static int find_age(const struct hb_node *node)
{
    enum { RELEASE_0_0 = 202503 };
    const struct hb_node *versions = hb_node_find(node, "versions");
    const struct hb_node *source = hb_node_find(node, "provenance");
    bool said = versions && versions->kind == HB_NODE_MAP;
    const char *text = said ? read_text(versions, "version") : "";
    int month = find_month(text);
    if (!month && strstr(text, "torchtitan 0.0."))
        month = RELEASE_0_0;
    if (!month && source && source->kind == HB_NODE_MAP)
        month = find_month(read_text(source, "date"));
    return month;
}

static bool says(const struct hb_node *config, const char *map, const char *key)
{
    const struct hb_node *m = hb_node_find(config, map);
    return m && m->kind == HB_NODE_MAP && hb_node_find(m, key);
}

/* What torchtitan did at a time and records do not say by a key. Embedding and head are units of
 * their own since 28 July 2025 (83e6941; torchao's full checkpointing of 2025-01: 28.07 GiB, -6.4 %
 * as today, -0.1 % with them in the root). Logits came from the model in f32, and had a name until
 * the next step's, up to June 2024 (e29b6b4: del pred). RMSNorm is one kernel since torch 2.9, of
 * October 2025; fake tensors, which are of no date, still have its single operations. */
static void set_age(const struct hb_node *node, const struct hb_node *config, struct hb_spec *spec)
{
    enum { FUSED = 202510, APART = 202508, LET_GO = 202406 };
    int month = find_age(node);
    if (month < FUSED && !says(config, "runtime", "fused_norm"))
        spec->runtime.fused_norm = false;
    if (!month || spec->runtime.framework != HB_FW_TORCHTITAN)
        return;
    if (month < APART && !says(config, "runtime", "wrap"))
        spec->runtime.wrap_root = true;
    if (month < LET_GO && !says(config, "loss", "held") && spec->loss.kernel == HB_LOSS_EAGER)
        spec->loss.held = HB_HELD_F32;
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
    out->verdict = hb_str_same(out->kind, "verdict");
    if (out->verdict && out->fits < 0)
        return hb_error(diag, measured->loc,
                        "record '%s', a verdict, needs measured.fits: true or false", out->id);
    if (out->peak_bytes < 0 && out->step_seconds <= 0 && !out->verdict)
        return hb_error(diag, measured->loc,
                        "record '%s' has neither measured.peak_bytes nor measured.step_seconds",
                        out->id);
    if (!hb_schema_from_node(arena, diag, config, data_dir, &out->spec))
        return false;
    if (out->spec.compiler == HB_TORCH)
        set_age(node, config, &out->spec);
    return true;
}
