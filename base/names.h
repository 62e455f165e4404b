/* A set of names, each with a number: by hash, in room for as many as were said. What belongs to a
 * name lies in its owner's arrays at the place that is given here. */
#ifndef HB_BASE_NAMES_H
#define HB_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct hb_arena;

struct hb_names {
    const char **names; /* by place; null: free */
    uint32_t *numbers;
    size_t room; /* places: a power of two */
};

void hb_names_init(struct hb_names *n, struct hb_arena *arena, size_t most);
/* Where it is, or would be: there names[place] is null, and setting it and the number puts it in.
 * The text stays where it is. */
size_t hb_names_place(const struct hb_names *n, const char *name, uint32_t number);
/* The same, and it is in. */
size_t hb_names_put(struct hb_names *n, const char *name, uint32_t number);

#endif
