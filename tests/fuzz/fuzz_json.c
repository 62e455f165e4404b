/* The JSON reader and writer: what is refused has a message, and what is read and written is read
 * again as the same document. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"

/* The writer opens fewer brackets than the reader: its own documents are flat. */
enum { WRITER_DEPTH = 62 };

static int depth_of(const struct hb_node *node)
{
    int most = 0;
    for (const struct hb_node *child = node->first; child; child = child->next) {
        int depth = depth_of(child);
        most = depth > most ? depth : most;
    }
    return most + 1;
}

static void write_tree(struct hb_str *out, const struct hb_node *root)
{
    struct hb_json j = hb_json_begin(out, NULL, true);
    hb_json_node(&j, root);
    hb_json_end(&j);
}

static void try_writing(struct hb_arena *arena, const struct hb_node *root)
{
    struct hb_diag diag;
    struct hb_str once;
    struct hb_str twice;
    struct hb_node *again = NULL;
    struct hb_loc start = {"again", 1, 1};
    hb_diag_init(&diag, arena);
    hb_str_init(&once, arena);
    hb_str_init(&twice, arena);
    write_tree(&once, root);
    if (!hb_json_parse(arena, &diag, start, once.text, once.len, &again))
        abort();
    write_tree(&twice, again);
    if (strcmp(once.text, twice.text) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_node *root = NULL;
    struct hb_loc start = {"fuzz", 1, 1};
    hb_diag_init(&diag, arena);
    const char *text = hb_arena_strndup(arena, (const char *)bytes, len);
    bool ok = hb_json_parse(arena, &diag, start, text, len, &root);
    if (ok != (diag.errors == 0) || ok != (root != NULL))
        abort();
    if (ok && depth_of(root) < WRITER_DEPTH)
        try_writing(arena, root);
    return 0;
}
