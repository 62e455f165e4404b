/* See refusal.h. */
#include "models/refusal.h"

#include "base/arena.h"
#include "base/str.h"
#include "models/schema_key.h"

/* Of several blocks with one remat each would tell the same. */
static bool is_told(const struct hb_diag *diag, const char *text)
{
    for (int i = 0; i < diag->count; i++)
        if (hb_str_same(diag->entries[i].text, text))
            return true;
    return false;
}

static void tell(const struct hb_refusing *r, const struct hb_refusal *x)
{
    struct hb_arena *arena = r->diag->arena;
    const char *path = x->key;
    if (path[0] == '.')
        path = hb_arena_printf(arena, "model.blocks[%d]%s", r->block, x->key);
    const char *text = hb_arena_printf(arena, "%s%s: %s", r->before, path, x->text);
    if (!is_told(r->diag, text))
        hb_error(r->diag, r->root ? hb_schema_locate(r->root, path) : (struct hb_loc){0}, "%s",
                 text);
}

bool hb_refuse(const struct hb_refusing *r, const struct hb_refusal *all, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        if (all[i].there)
            tell(r, &all[i]);
        ok = ok && !all[i].there;
    }
    return ok;
}
