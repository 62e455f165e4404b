/* Ranges of values, as they are written: see sweep.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/size.h"
#include "base/str.h"
#include "solver/sweep.h"

enum { MOST_VALUES = 10000 };

static bool fail_range(struct hb_diag *diag, const char *text)
{
    return hb_error(diag, (struct hb_loc){0},
                    "'%s' is no range; allowed: KEY=A..B*FACTOR, KEY=A..B+STEP, KEY=A,B,C", text);
}

static bool add_value(struct hb_arena *arena, struct hb_sweep_axis *axis, const char *value,
                      uint32_t *cap)
{
    axis->values = hb_grow(arena, axis->values, axis->count, cap, sizeof *axis->values);
    axis->values[axis->count++] = value;
    return axis->count <= MOST_VALUES;
}

static bool read_number(const char *text, const char *end, int64_t *out)
{
    char *stop = NULL;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    *out = value;
    return errno == 0 && stop == end && stop != text;
}

/* low..high with a factor or a step; the high end is taken in where it is met. */
static bool add_steps(struct hb_arena *arena, struct hb_sweep_axis *axis, const char *range)
{
    const char *dots = strstr(range, ".."), *sign = dots + 2;
    uint32_t cap = 0;
    int64_t low, high, by;
    sign += strcspn(sign, "*+");
    if (!*sign || !read_number(range, dots, &low) || !read_number(dots + 2, sign, &high) ||
        !read_number(sign + 1, sign + strlen(sign), &by))
        return false;
    bool factor = *sign == '*';
    if (low > high || (factor ? by < 2 || low < 1 : by < 1))
        return false;
    for (int64_t n = low; n <= high;) {
        if (!add_value(arena, axis, hb_arena_printf(arena, "%" PRId64, n), &cap))
            return false;
        if (!(factor ? hb_mul_i64(n, by, &n) : hb_add_i64(n, by, &n)))
            break;
    }
    return true;
}

static bool add_list(struct hb_arena *arena, struct hb_sweep_axis *axis, const char *list)
{
    uint32_t cap = 0;
    int depth = 0;
    for (const char *at = list, *start = list;; at++) {
        depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
        if ((*at != ',' || depth > 0) && *at)
            continue;
        if (at == start ||
            !add_value(arena, axis, hb_arena_strndup(arena, start, (size_t)(at - start)), &cap))
            return false;
        if (!*at)
            return true;
        start = at + 1;
    }
}

/* As the fit map tells them apart: numbers by value. */
static bool are_same(const char *a, const char *b)
{
    struct hb_node first = {.kind = HB_NODE_SCALAR, .text = a};
    struct hb_node second = {.kind = HB_NODE_SCALAR, .text = b};
    double one, other;
    if (hb_node_real(&first, &one) && hb_node_real(&second, &other))
        return one >= other && one <= other;
    return hb_str_same(a, b);
}

static bool check_values(struct hb_diag *diag, const struct hb_sweep_axis *axis, const char *text)
{
    for (uint32_t i = 0; i < axis->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (are_same(axis->values[i], axis->values[k]))
                return hb_error(diag, (struct hb_loc){0}, "'%s': the value %s is there twice", text,
                                axis->values[i]);
    return true;
}

bool hb_sweep_parse_axis(struct hb_arena *arena, struct hb_diag *diag, const char *text,
                         struct hb_sweep_axis *out)
{
    const char *equals = strchr(text, '=');
    *out = (struct hb_sweep_axis){0};
    if (!equals || equals == text || !equals[1])
        return fail_range(diag, text);
    out->key = hb_arena_strndup(arena, text, (size_t)(equals - text));
    bool steps = strstr(equals + 1, "..") != NULL;
    bool ok = steps ? add_steps(arena, out, equals + 1) : add_list(arena, out, equals + 1);
    return ok ? steps || check_values(diag, out, text) : fail_range(diag, text);
}

bool hb_sweep_count(struct hb_diag *diag, struct hb_sweep *sweep)
{
    int64_t cells = 1;
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        cells = hb_mul_sat(cells, sweep->axes[i].count);
        for (uint32_t k = 0; k < i; k++)
            if (hb_str_same(sweep->axes[i].key, sweep->axes[k].key))
                return hb_error(diag, (struct hb_loc){0}, "%s varies twice", sweep->axes[i].key);
    }
    if (cells > HB_SWEEP_MOST_CELLS)
        return hb_error(diag, (struct hb_loc){0},
                        "%" PRId64
                        " cells; allowed: at most %d (take fewer values, or sweep twice)",
                        cells, HB_SWEEP_MOST_CELLS);
    sweep->cell_count = (uint32_t)cells;
    return true;
}

bool hb_sweep_is_question(const char *key)
{
    return hb_str_same(key, "batch.seq") || hb_str_starts(key, "model.") ||
           hb_str_starts(key, "hardware.");
}

bool hb_sweep_has_ways(const struct hb_sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->axis_count; i++)
        if (!hb_sweep_is_question(sweep->axes[i].key))
            return true;
    return false;
}

const char *hb_sweep_value(const struct hb_sweep *sweep, uint32_t cell, uint32_t axis)
{
    for (uint32_t i = 0; i < axis; i++)
        cell /= sweep->axes[i].count;
    return sweep->axes[axis].values[cell % sweep->axes[axis].count];
}
