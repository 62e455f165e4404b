/* The small readers of base: sizes, and the nearest spelling of a word. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

/* What is read as a size is one that the program may add up. */
static void try_size(const char *text)
{
    char shown[HB_SIZE_TEXT];
    int64_t bytes = -1;
    if (!hb_size_parse(text, &bytes)) {
        if (bytes != -1)
            abort();
        return;
    }
    if (bytes < 0 || strlen(hb_size_print(bytes, shown)) >= HB_SIZE_TEXT)
        abort();
}

/* A word of the list is nearest to itself. */
static void try_nearest(const char *text)
{
    const char *const words[] = {"simulate", text, "plan", NULL};
    const char *near = hb_str_nearest(text, words);
    if (strlen(text) <= 64 && (!near || strcmp(near, text) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    const char *text = hb_arena_strndup(arena, (const char *)bytes, len);
    try_size(text);
    try_nearest(text);
    return 0;
}
