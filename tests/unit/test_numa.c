/* hw/numa: lists of nodes as Linux writes them, the policy of this thread; and that calibration
 * takes pinned memory from the node that copies fastest, and leaves no policy behind. */
#include "tests/unit/unit.h"

#include <stdlib.h>

#include "base/str.h"
#include "hw/measure.h"
#include "hw/numa.h"
#include "hw/probe.h"

static void lists_of_nodes_are_read(void **state)
{
    (void)state;
    int nodes[HB_NUMA_MOST];
    assert_int_equal(hb_numa_parse("0\n", nodes), 1);
    assert_int_equal(nodes[0], 0);
    assert_int_equal(hb_numa_parse("0-1,8\n", nodes), 3);
    assert_int_equal(nodes[1], 1);
    assert_int_equal(nodes[2], 8);
    assert_int_equal(hb_numa_parse("63", nodes), 1);
    assert_int_equal(hb_numa_parse("0-63,0-63", nodes), HB_NUMA_MOST);
}

static void what_is_no_list_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "\n",   "-1\n", "a",  "0-",    "1-0",
                                      "0,,", "0-1-", "64",   "0x", "0 , 1", "99999999999999999999"};
    int nodes[HB_NUMA_MOST];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (hb_numa_parse(bad[i], nodes) != 0)
            fail_msg("'%s' is taken for a list of nodes", bad[i]);
}

/* Whatever this machine is: what it tells can be chosen, unless a sandbox forbids all of it, and
 * what it does not have cannot. */
static void this_machine_takes_its_own_nodes(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    int nodes[HB_NUMA_MOST];
    int count = hb_numa_nodes(u.env.arena, nodes);
    struct hb_numa_policy before;
    bool allowed = hb_numa_policy(&before);
    for (int i = 0; i < count && allowed; i++) {
        assert_true(hb_numa_prefer(nodes[i]));
        char *page = malloc(1 << 20);
        assert_non_null(page);
        memset(page, 1, 1 << 20);
        int got = hb_numa_of(page + (1 << 19));
        bool on = got < 0;
        for (int k = 0; k < count; k++)
            on = on || got == nodes[k];
        assert_true(on);
        free(page);
    }
    assert_int_equal(hb_numa_beside(u.env.arena, "ffff:FF:1f.7"), -1);
    assert_true(!allowed || hb_numa_restore(&before));
    unit_end(&u);
}

/* The processor's probe, on a host of three nodes: the second is the fastest, the third has no room
 * of its own. */
static struct {
    struct hb_probe_ops real;
    int prefers, wishes;
    bool forbidden;
    void *pinned[8];
    int node[8];
} host;

static bool prefer(struct hb_probe *p, int node)
{
    (void)p;
    host.wishes++;
    host.prefers = host.forbidden ? -1 : node;
    return !host.forbidden;
}

static int node_of(struct hb_probe *p, void *at)
{
    (void)p;
    for (int i = 0; i < 8; i++)
        if (host.pinned[i] == at)
            return host.node[i];
    return -1;
}

static bool take(struct hb_probe *p, int64_t bytes, bool pinned, void **out_at)
{
    bool got = host.real.host_alloc(p, bytes, pinned, out_at);
    for (int i = 0; i < 8 && got; i++)
        if (!host.pinned[i] || host.pinned[i] == *out_at) {
            host.pinned[i] = *out_at;
            host.node[i] = host.prefers == 5 ? 0 : host.prefers;
            break;
        }
    return got;
}

static void *copied;
static int copies; /* since the lane's first mark */

static bool copy(struct hb_probe *p, enum hb_lane lane, enum hb_copy way, uintptr_t at, void *to,
                 int64_t bytes)
{
    (void)lane;
    (void)at;
    (void)bytes;
    (void)p;
    copied = way == HB_COPY_WITHIN ? NULL : to;
    copies++;
    return true;
}

static bool mark(struct hb_probe *p, enum hb_lane lane, int which)
{
    copies = which == 0 ? 0 : copies;
    return host.real.mark(p, lane, which);
}

/* A copy takes a millisecond from node 4, two from elsewhere; all else its own time. */
static bool elapsed(struct hb_probe *p, enum hb_lane from, enum hb_lane lane, double *out_ns)
{
    if (lane == HB_LANE_COMPUTE)
        return host.real.elapsed(p, from, lane, out_ns);
    *out_ns = copies * (node_of(p, copied) == 4 ? 1e6 : 2e6);
    return true;
}

/* Small, so that what is not looked at is soon done. */
static bool memory(struct hb_probe *p, int64_t *out_free, int64_t *out_total)
{
    (void)p;
    *out_free = *out_total = 9 << 20;
    return true;
}

/* A millisecond passes whenever somebody looks. */
static int64_t ticks(void)
{
    static int64_t ns;
    return ns += 1000000;
}

static void calibrate(struct unit *u, bool forbidden, struct hb_measure_result *out)
{
    static const int nodes[] = {0, 4, 5};
    static struct hb_probe_ops ops;
    const struct hb_probe_wish wish = {.backend = "cpu"};
    const struct hb_measure_wish how = {.budget_ns = 2000000000, .date = "2026-01-01"};
    const char *reason = "";
    struct hb_probe *p = hb_probe_open(&u->env, &wish, &reason);
    assert_non_null(p);
    u->env.now_ns = ticks;
    memset(&host, 0, sizeof host);
    host.prefers = -1;
    host.forbidden = forbidden;
    host.real = ops = *p->ops;
    ops.host_prefer = prefer;
    ops.host_node = node_of;
    ops.host_alloc = take;
    ops.memory = memory;
    ops.copy = copy;
    ops.mark = mark;
    ops.elapsed = elapsed;
    p->ops = &ops;
    p->info.host_nodes = nodes;
    p->info.host_node_count = 3;
    p->info.host_node_beside = 4;
    hb_measure_run(&u->env, p, &how, out);
    p->ops = &host.real;
    hb_probe_close(p);
}

static void pinned_memory_is_of_the_fastest_node(void **state)
{
    (void)state;
    struct unit u;
    struct hb_measure_result out;
    unit_start(&u);
    calibrate(&u, false, &out);
    assert_non_null(strstr(out.remarks.text, "node 0: "));
    assert_non_null(strstr(out.remarks.text, "node 4 (beside the device): "));
    assert_null(strstr(out.remarks.text, "node 5: "));
    assert_non_null(strstr(out.remarks.text, "with node 4: bind"));
    assert_int_equal(host.prefers, -1);
    unit_end(&u);
}

static void what_cannot_be_placed_is_told(void **state)
{
    (void)state;
    struct unit u;
    struct hb_measure_result out;
    unit_start(&u);
    calibrate(&u, true, &out);
    assert_null(strstr(out.remarks.text, "node 0: "));
    assert_non_null(strstr(out.remarks.text, "cannot be placed"));
    assert_true(host.wishes >= 3);
    assert_int_equal(host.prefers, -1);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_nodes_are_read),
        cmocka_unit_test(what_is_no_list_is_none),
        cmocka_unit_test(this_machine_takes_its_own_nodes),
        cmocka_unit_test(pinned_memory_is_of_the_fastest_node),
        cmocka_unit_test(what_cannot_be_placed_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
