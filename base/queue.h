/* A queue by value: what is least comes first. */
#ifndef HB_BASE_QUEUE_H
#define HB_BASE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;

struct hb_queue_entry {
    double value;
    uint64_t order; /* of equal values the least comes first */
    int kind;       /* the caller's */
    uint32_t index; /* the caller's */
};

struct hb_queue {
    struct hb_arena *arena;
    struct hb_queue_entry *heap;
    uint32_t count, cap;
    uint64_t puts;
};

void hb_queue_add(struct hb_queue *q, struct hb_queue_entry added);
/* Behind its equals that were put so. */
void hb_queue_put(struct hb_queue *q, double value, int kind, uint32_t index);
/* False: it is empty. */
bool hb_queue_take(struct hb_queue *q, struct hb_queue_entry *out);

#endif
