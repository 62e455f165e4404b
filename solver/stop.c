/* The end of a search before it is done: see stop.h. */
#include "solver/stop.h"

#include "base/size.h"

/* Between two looks at who may ask. */
static const int64_t look_ns = 20000000;

void hb_stop_start(struct hb_stop *stop, int64_t most_ns)
{
    stop->until_ns = most_ns > 0 ? hb_add_sat(stop->now_ns(), most_ns) : 0;
    stop->asked_ns = 0;
    stop->stopped = false;
}

bool hb_stop_now(struct hb_stop *stop)
{
    if (!stop || stop->stopped)
        return stop != NULL;
    int64_t now_ns = stop->now_ns();
    stop->stopped = stop->until_ns && now_ns > stop->until_ns;
    if (!stop->stopped && stop->is_asked && now_ns - stop->asked_ns > look_ns) {
        stop->asked_ns = now_ns;
        stop->stopped = stop->is_asked();
    }
    return stop->stopped;
}
