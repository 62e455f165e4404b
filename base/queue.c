#include "base/queue.h"

#include "base/str.h"

static bool before(const struct hb_queue_entry *a, const struct hb_queue_entry *b)
{
    if (a->value < b->value || a->value > b->value)
        return a->value < b->value;
    return a->order < b->order;
}

static void swap(struct hb_queue_entry *a, struct hb_queue_entry *b)
{
    struct hb_queue_entry kept = *a;
    *a = *b;
    *b = kept;
}

void hb_queue_add(struct hb_queue *q, struct hb_queue_entry added)
{
    q->heap = hb_grow(q->arena, q->heap, q->count, &q->cap, sizeof *q->heap);
    uint32_t at = q->count++;
    q->heap[at] = added;
    for (; at > 0 && before(&q->heap[at], &q->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&q->heap[at], &q->heap[(at - 1) / 2]);
}

void hb_queue_put(struct hb_queue *q, double value, int kind, uint32_t index)
{
    hb_queue_add(q, (struct hb_queue_entry){value, q->puts++, kind, index});
}

bool hb_queue_take(struct hb_queue *q, struct hb_queue_entry *out)
{
    if (q->count == 0)
        return false;
    *out = q->heap[0];
    q->heap[0] = q->heap[--q->count];
    for (uint32_t at = 0, least; 2 * at + 1 < q->count; at = least) {
        least = 2 * at + 1;
        if (least + 1 < q->count && before(&q->heap[least + 1], &q->heap[least]))
            least++;
        if (!before(&q->heap[least], &q->heap[at]))
            break;
        swap(&q->heap[at], &q->heap[least]);
    }
    return true;
}
