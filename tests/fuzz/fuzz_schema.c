/* The input's reader: what is refused has a message; what is accepted passes its own checks, can
 * be counted, and is the same after it was written and read again. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/yaml.h"
#include "models/params.h"
#include "models/schema.h"

static const char *text_of(struct hb_arena *arena, const struct hb_spec *spec, bool full)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_schema_emit_yaml(&s, spec, full);
    return s.text;
}

static bool read_text(struct hb_arena *arena, struct hb_diag *diag, const char *text, size_t len,
                      struct hb_spec *out_spec)
{
    struct hb_node *root = NULL;
    hb_diag_init(diag, arena);
    return hb_yaml_parse(arena, diag, "fuzz", text, len, &root) &&
           hb_schema_from_node(arena, diag, root, "", out_spec);
}

static void try_spec(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_diag diag;
    struct hb_params params;
    struct hb_spec again;
    hb_diag_init(&diag, arena);
    if (!hb_schema_check(arena, &diag, NULL, spec))
        abort();
    hb_params_count(spec, &params);
    if (params.total < 1 || params.active > params.total)
        abort();
    const char *wanted = text_of(arena, spec, true);
    const char *brief = text_of(arena, spec, false);
    if (!read_text(arena, &diag, brief, strlen(brief), &again))
        abort();
    if (strcmp(text_of(arena, &again, true), wanted) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_spec spec;
    const char *text = hb_arena_strndup(arena, (const char *)bytes, len);
    bool ok = read_text(arena, &diag, text, len, &spec);
    if (ok != (diag.errors == 0))
        abort();
    if (ok)
        try_spec(arena, &spec);
    return 0;
}
