/* hw/link: collectives against the arithmetic of the published models, and laws on all devices. */
#include "tests/unit/unit.h"

#include <math.h>

#include "hw/link.h"

static const enum hb_collective kinds[] = {HB_COLL_ALL_GATHER, HB_COLL_REDUCE_SCATTER,
                                           HB_COLL_ALL_REDUCE, HB_COLL_ALL_TO_ALL, HB_COLL_PERMUTE};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct hb_device load(struct unit *u, const char *name)
{
    struct hb_device d;
    assert_true(
        hb_device_load(u->env.arena, &u->diag, HB_SOURCE_DIR, name, (struct hb_loc){0}, &d));
    return d;
}

static struct hb_link_group whole(int64_t size)
{
    return (struct hb_link_group){size, 1, size};
}

/* Published: 8 x H200 all-reduce of 4 GiB at 473.1 GB/s bus rate with the switch reducing, 15.88
 * ms; the ring alone reaches 365 GB/s. */
static void nvlink_all_reduce_is_near_the_published_rate(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "nvidia-h200");
    double payload = 4 * 0x1p30;
    double ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, payload, whole(8));
    double bus = payload * 2 * 7 / 8 / ns;
    assert_true(bus > 473.1 * 0.97 && bus < 473.1 * 1.03);
    d.reduce_gain = 1;
    ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, payload, whole(8));
    bus = payload * 2 * 7 / 8 / ns;
    assert_true(bus > 365 * 0.97 && bus < 365 * 1.03);
    /* Small payload, published 40 us for 32 KiB: latency alone. */
    ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, 32768, whole(8));
    assert_true(ns > 35e3 && ns < 45e3);
    unit_end(&u);
}

/* Published: 4 nodes x 8 H200, all-reduce of 4 GiB in 22.05 ms over 400 Gbit/s a device. */
static void all_reduce_over_nodes_is_near_the_published_time(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "nvidia-h200");
    double ms = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, 4 * 0x1p30, whole(32)) * 1e-6;
    assert_true(ms > 18 && ms < 26);
    unit_end(&u);
}

/* Published beside it, by payload: bus rates of 64.4 to 362.0 GB/s. */
static void small_payloads_use_little_of_the_network(void **state)
{
    (void)state;
    static const struct {
        double mib, bus;
    } published[] = {{16, 64.43},   {32, 91.19},  {64, 156.74},  {128, 197.94},
                     {256, 229.09}, {512, 326.9}, {1024, 361.99}};
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "nvidia-h200");
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        double payload = published[i].mib * 0x1p20;
        double ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, payload, whole(32));
        assert_true(fabs(payload * 2 * 31 / 32 / ns / published[i].bus - 1) < 0.1);
    }
    unit_end(&u);
}

/* NCCL, src/graph/tuning.cc, rings: n - 1 steps, of which one less than there are nodes over the
 * network; a ring's bus rate is that of the network, by doc/PERFORMANCE.md of nccl-tests the bytes
 * are (n - 1) / n of the payload. Two hosts gather nearly twice what a tree would send. */
static void gathers_over_hosts_go_in_rings(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "nvidia-h100");
    d.net_curve.count = 0;
    double net = d.net_bytes_per_s * d.net_efficiency, payload = 64 * 0x1p30;
    for (int64_t size = 16; size <= 256; size *= 2) {
        double s =
            (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, payload, whole(size)) * 1e-9;
        double bytes = payload * (double)(size - 1) / (double)size / 8;
        assert_true(fabs(s / (bytes / net) - 1) < 0.01);
        double back =
            (double)hb_link_collective_ns(&d, HB_COLL_REDUCE_SCATTER, payload, whole(size)) * 1e-9;
        assert_true(back >= s && back <= s);
    }
    double us = (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 1, whole(64)) * 1e-3;
    assert_true(fabs(us - 14 - 56 * 1.9 - 7 * 4) < 0.1);
    unit_end(&u);
}

/* Published: 8 x MI300X all-reduce of 4 GiB at 312.9 GB/s, two of them at 47.7 GB/s. */
static void mesh_uses_a_link_to_each_peer(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "amd-mi300x");
    double payload = 4 * 0x1p30;
    double ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, payload, whole(8));
    double bus = payload * 2 * 7 / 8 / ns;
    assert_true(bus > 312.9 * 0.97 && bus < 312.9 * 1.03);
    ns = (double)hb_link_collective_ns(&d, HB_COLL_ALL_REDUCE, payload, whole(2));
    bus = payload / ns;
    assert_true(bus > 47.7 * 0.9 && bus < 47.7 * 1.1);
    unit_end(&u);
}

/* "How to Scale Your Model", question 2 of its sharding chapter: 8 MiB gathered over one ring of 4
 * of a v4 slice at 9e10 both ways takes 23 us when each axis holds the quarter, and an axis of 4
 * without wraparound (v5e) twice its ring time. */
static void torus_rings_follow_the_book(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "tpu-v4");
    d.link_curve.count = 0; /* the book takes the whole rate */
    d.link_latency_ns = 0;
    struct hb_link_group group = {4, 1, 64};
    double payload = 2 * 1024. * 4096.;
    double us = (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, payload, group) * 1e-3;
    assert_true(fabs(us - payload * 3 / 4 / 9e10 * 1e6) < 0.01);
    /* All three dimensions: three times the rate. */
    double all = (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, payload, whole(64)) * 1e-3;
    assert_true(fabs(all - payload * 63 / 64 / 2.7e11 * 1e6) < 0.01);
    struct hb_device e = load(&u, "tpu-v5e");
    e.link_curve.count = 0;
    e.link_latency_ns = 0;
    struct hb_link_group line = {4, 1, 16};
    double open = (double)hb_link_collective_ns(&e, HB_COLL_ALL_GATHER, payload, line) * 1e-3;
    assert_true(fabs(open - payload * 3 / 4 / 4.5e10 * 1e6) < 0.01);
    struct hb_link_group ring = {16, 1, 256};
    double closed = (double)hb_link_collective_ns(&e, HB_COLL_ALL_GATHER, payload, ring) * 1e-3;
    assert_true(fabs(closed - payload * 15 / 16 / 9e10 * 1e6) < 0.01);
    unit_end(&u);
}

static void strides_decide_what_crosses_the_network(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "nvidia-h100");
    struct hb_link_group inner = {8, 1, 64};
    struct hb_link_group outer = {8, 8, 64};
    int64_t in = hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 1e9, inner);
    int64_t out = hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 1e9, outer);
    assert_true(out > 5 * in);
    /* Every member has a NIC of its own. */
    double want = 1e9 * 7 / 8 / (50e9 * d.net_efficiency) * 1e9;
    assert_true(fabs((double)out - want) < 0.01 * want);
    unit_end(&u);
}

static void check_device(const struct hb_device *d)
{
    for (int k = 0; k < KINDS; k++) {
        int64_t last = 0;
        assert_int_equal(hb_link_collective_ns(d, kinds[k], 1e6, whole(1)), 0);
        assert_int_equal(hb_link_collective_ns(d, kinds[k], 0, whole(8)), 0);
        for (double bytes = 1024; bytes < 1e11; bytes *= 4) {
            int64_t ns = hb_link_collective_ns(d, kinds[k], bytes, whole(16));
            assert_true(ns >= last); /* more bytes never take less time */
            last = ns;
        }
        assert_true(last > 0);
    }
    int64_t gather = hb_link_collective_ns(d, HB_COLL_ALL_GATHER, 1e9, whole(4));
    int64_t scatter = hb_link_collective_ns(d, HB_COLL_REDUCE_SCATTER, 1e9, whole(4));
    int64_t reduce = hb_link_collective_ns(d, HB_COLL_ALL_REDUCE, 1e9, whole(4));
    assert_int_equal(gather, scatter);
    assert_true(reduce <= gather + scatter + 1 && reduce > gather); /* 1: rounding */
    assert_true(hb_link_host_ns(d, 1e9, true, true) >= hb_link_host_ns(d, 1e9, true, false));
    assert_int_equal(hb_link_host_ns(d, 0, true, false), 0);
}

static void laws_hold_on_every_device(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    int count;
    const char *const *names = hb_device_list(u.env.arena, HB_SOURCE_DIR, &count);
    for (int i = 0; i < count; i++) {
        struct hb_device d = load(&u, names[i]);
        check_device(&d);
    }
    unit_end(&u);
}

/* TPU7x: 256 devices on 128 chips take a tensor in once a chip, over the links of both; what goes
 * along an axis with one device a chip has its own half of them. */
static void devices_of_a_chip_share_what_they_take_in(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "tpu-v7"), apart = d;
    assert_int_equal(d.chip_devices, 2);
    apart.chip_devices = 1;
    struct hb_link_group both = {256, 1, 256}, one = {128, 2, 256}, pair = {2, 1, 256};
    double near = (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 1e10, both);
    double far = (double)hb_link_collective_ns(&apart, HB_COLL_ALL_GATHER, 1e10, both);
    assert_true(fabs(far / near - 2) < 0.02);
    assert_int_equal(hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 1e10, one),
                     hb_link_collective_ns(&apart, HB_COLL_ALL_GATHER, 1e10, one));
    /* Two on one chip: half of it crosses between the dies. */
    double ms = (double)hb_link_collective_ns(&d, HB_COLL_ALL_GATHER, 5.4e9, pair) * 1e-6;
    assert_true(fabs(ms - 5) < 0.01);
    unit_end(&u);
}

static void faster_links_are_never_slower(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d = load(&u, "tpu-v5p");
    for (int64_t size = 2; size <= 256; size *= 2)
        for (int k = 0; k < KINDS; k++) {
            struct hb_device fast = d;
            fast.link_bytes_per_s *= 2;
            fast.net_bytes_per_s *= 2;
            struct hb_link_group group = {size, 1, 256};
            assert_true(hb_link_collective_ns(&fast, kinds[k], 1e8, group) <=
                        hb_link_collective_ns(&d, kinds[k], 1e8, group));
        }
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvlink_all_reduce_is_near_the_published_rate),
        cmocka_unit_test(all_reduce_over_nodes_is_near_the_published_time),
        cmocka_unit_test(small_payloads_use_little_of_the_network),
        cmocka_unit_test(gathers_over_hosts_go_in_rings),
        cmocka_unit_test(mesh_uses_a_link_to_each_peer),
        cmocka_unit_test(torus_rings_follow_the_book),
        cmocka_unit_test(strides_decide_what_crosses_the_network),
        cmocka_unit_test(laws_hold_on_every_device),
        cmocka_unit_test(devices_of_a_chip_share_what_they_take_in),
        cmocka_unit_test(faster_links_are_never_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
