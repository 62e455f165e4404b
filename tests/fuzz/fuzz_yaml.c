/* The YAML reader and writer: what is refused has a message, and what is read and written is read
 * again as the same document. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/yaml.h"

/* libyaml reads no key of more than 1,024 bytes, escapes included, but JSON has them. */
enum { LONG_KEY = 100 };

static bool has_long_key(const struct hb_node *node)
{
    for (const struct hb_node *child = node->first; child; child = child->next)
        if ((child->key && strlen(child->key) > LONG_KEY) || has_long_key(child))
            return true;
    return false;
}

static void try_writing(struct hb_arena *arena, const struct hb_node *root)
{
    struct hb_diag diag;
    struct hb_str once;
    struct hb_str twice;
    struct hb_node *again = NULL;
    hb_diag_init(&diag, arena);
    hb_str_init(&once, arena);
    hb_str_init(&twice, arena);
    hb_yaml_write(&once, root);
    if (!hb_yaml_parse(arena, &diag, "again", once.text, once.len, &again))
        abort();
    hb_yaml_write(&twice, again);
    if (strcmp(once.text, twice.text) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_node *root = NULL;
    hb_diag_init(&diag, arena);
    const char *text = hb_arena_strndup(arena, (const char *)bytes, len);
    bool ok = hb_yaml_parse(arena, &diag, "fuzz", text, len, &root);
    if (ok != (diag.errors == 0) || ok != (root != NULL))
        abort();
    if (ok && !has_long_key(root))
        try_writing(arena, root);
    return 0;
}
