/* Latency hiding, as XLA's scheduler does it (xla/service/latency_hiding_scheduler.cc): ops are put
 * in order from the last to the first. An op may stand once all that read it do; of those, in
 * turn: what waits for a collective, or a loop that has some; what stalls least; the start that
 * others wait for; what stands behind more time of collectives; what fits the time to be filled
 * best; what sets free more.
 *
 *     time ->   product  start ........... done  update
 *                        |-- 2.2 ms, filled --|            one collective at a time
 */
#ifndef HB_SIM_IR_HIDE_H
#define HB_SIM_IR_HIDE_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;

enum hb_hide_kind { HB_HIDE_OP, HB_HIDE_START, HB_HIDE_DONE, HB_HIDE_LOOP };

struct hb_hide_op {
    enum hb_hide_kind kind;
    double cost_us;
    double latency_us;        /* of a done: after its start */
    double depth_us;          /* collectives before it, the longest way */
    double ready_us;          /* counted from the end */
    uint32_t given;           /* what it alone reads and no op makes: weights, states */
    uint32_t waiting;         /* readers that do not stand yet */
    uint32_t first_read, end; /* into reads */
    uint32_t place;           /* 0: the last */
    bool late;                /* ready after what was going on */
};

struct hb_hide {
    struct hb_arena *arena;
    struct hb_hide_op *ops; /* each behind those that it reads */
    uint32_t count, cap;
    uint32_t *reads;
    uint32_t read_count, read_cap;
};

void hb_hide_init(struct hb_hide *h, struct hb_arena *arena);
uint32_t hb_hide_add(struct hb_hide *h, enum hb_hide_kind kind, double cost_us);
/* The last op reads that one; HB_NONE: none. */
void hb_hide_read(struct hb_hide *h, uint32_t op);
/* A collective of what that op made; returns what waits for it; the op where it takes no time. */
uint32_t hb_hide_send(struct hb_hide *h, uint32_t op, double latency_us);
/* Fills in each op's place. */
void hb_hide_run(struct hb_hide *h);

#endif
