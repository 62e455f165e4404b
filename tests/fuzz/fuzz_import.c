/* Files of other programs: what is refused has a message; what is taken is a configuration that
 * reads, or is refused with a message; and its comment is comment lines. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "models/import/import.h"
#include "models/schema.h"

static void check_comment(struct hb_arena *arena, const struct hb_import *import)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    hb_import_comment(&text, import);
    for (const char *line = text.text; *line; line = strchr(line, '\n') + 1)
        if (*line != '#' || !strchr(line, '\n'))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_spec spec;
    struct hb_import import;
    struct hb_node *root = NULL;
    hb_diag_init(&diag, arena);
    const char *text = hb_arena_strndup(arena, (const char *)bytes, len);
    struct hb_import_source source = {.arena = arena, .diag = &diag, .path = "-", .data_dir = "."};
    bool ok = hb_import_parse(arena, &diag, "fuzz", text, len, &root) &&
              hb_import_tree(&source, root, &import);
    if (ok) {
        check_comment(arena, &import);
        ok = hb_schema_from_node(arena, &diag, import.root, ".", &spec);
    }
    if (ok != (diag.errors == 0))
        abort();
    return 0;
}
