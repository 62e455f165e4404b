/* A golden file with a line of each case: HB_UPDATE=1 (make golden-update) takes what is found now
 * as right; HB_FIRST: no further than the first that differs. */
#ifndef HB_TESTS_UNIT_TOLD_H
#define HB_TESTS_UNIT_TOLD_H

#include "tests/unit/unit.h"

struct told {
    FILE *file;
    bool update, first;
    int moved; /* lines that differ */
};

static inline uint64_t told_mix(uint64_t sum, int64_t value)
{
    return (sum ^ (uint64_t)value) * UINT64_C(0x100000001b3);
}

static inline struct told told_open(const char *path)
{
    struct told t = {.update = getenv("HB_UPDATE"), .first = getenv("HB_FIRST")};
    t.file = fopen(path, t.update ? "w" : "r");
    assert_non_null(t.file);
    return t;
}

static inline bool told_goes_on(const struct told *t)
{
    return !(t->moved && t->first);
}

static inline void told_line(struct told *t, const char *is)
{
    char was[200] = "";
    if (t->update) {
        fputs(is, t->file);
    } else if (!fgets(was, sizeof was, t->file) || strcmp(was, is) != 0) {
        t->moved++;
        print_message("# was %s# is  %s", was, is);
    }
}

static inline void told_close(struct told *t)
{
    assert_int_equal(fclose(t->file), 0);
    assert_int_equal(t->moved, 0);
}

#endif
