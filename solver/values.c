/* Lists of values: see values.h. */
#include "solver/values.h"

void hb_values_add(struct hb_values *v, int64_t value)
{
    for (int i = 0; i < v->count; i++)
        if (v->list[i] == value)
            return;
    if (v->count < HB_VALUES_MOST)
        v->list[v->count++] = value;
}

struct hb_values hb_values_listed(const int64_t *list, int count, int64_t own)
{
    struct hb_values v = {.count = 0};
    for (int i = 0; i < count; i++)
        hb_values_add(&v, list[i]);
    if (!count)
        hb_values_add(&v, own);
    return v;
}
