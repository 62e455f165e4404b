/* hw/device: every profile of the database holds what it should; the reader refuses what is wrong
 * and says where; what is written reads back the same. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/str.h"
#include "hw/device.h"

#define HEAD                                                                                       \
    "hbmsim_device: 1\nname: t\ntitle: \"T\"\nvendor: nvidia\nkind: gpu\nsources:\n  a: \"A\"\n"
#define NEEDED                                                                                     \
    "hbm_bytes: [80GiB, a]\nreserve_bytes: [1GiB, a]\nhbm_bytes_per_s: [1e12, a]\n"                \
    "peak_f32_flops: [1e13, a]\npeak_bf16_flops: [1e14, a]\nvector_f32_flops: [1e13, a]\n"

static bool parse(struct unit *u, const char *text, struct hb_device *dev)
{
    return hb_device_parse(u->env.arena, &u->diag, "t.yaml", text, strlen(text), dev);
}

static void the_database_is_whole(void **state)
{
    (void)state;
    static const char *const want[] = {
        "amd-mi210",    "amd-mi250x",  "amd-mi300a",       "amd-mi300x",       "amd-mi325x",
        "amd-mi350x",   "amd-mi355x",  "nvidia-a100-40gb", "nvidia-a100-80gb", "nvidia-b200",
        "nvidia-gb200", "nvidia-h100", "nvidia-h100-96gb", "nvidia-h100-nvl",  "nvidia-h100-pcie",
        "nvidia-h200",  "nvidia-l40s", "nvidia-rtx4090",   "nvidia-rtx5090",   "tpu-v4",
        "tpu-v5e",      "tpu-v5p",     "tpu-v6e",          "tpu-v7",
    };
    struct unit u;
    unit_start(&u);
    int count;
    const char *const *names = hb_device_list(u.env.arena, HB_SOURCE_DIR, &count);
    assert_int_equal(count, sizeof want / sizeof want[0]);
    for (int i = 0; i < count; i++)
        assert_string_equal(names[i], want[i]);
    unit_end(&u);
}

/* Laws that any device keeps: a smaller type is never slower in the matrix unit, usable memory is
 * most of the memory, on-chip rates above off-chip ones. */
static void check_laws(const struct hb_device *d)
{
    int64_t usable = hb_device_usable_bytes(d);
    assert_true(usable > d->hbm_bytes / 20 * 19 && usable <= d->hbm_bytes);
    const double *peak = d->peak_flops;
    assert_true(peak[HB_RATE_BF16] >= peak[HB_RATE_F32]);
    assert_true(peak[HB_RATE_FP8] == 0 || peak[HB_RATE_FP8] >= peak[HB_RATE_BF16]);
    assert_true(peak[HB_RATE_FP4] == 0 || peak[HB_RATE_FP4] >= peak[HB_RATE_FP8]);
    assert_true(d->host_up_bytes_per_s <= d->hbm_bytes_per_s);
    assert_true(d->link_topology == HB_TOPOLOGY_NONE || d->link_domain > 1);
    double half = hb_device_matmul_flops(d, HB_RATE_BF16, 8192, 8192, 8192) / peak[HB_RATE_BF16];
    assert_true(half > 0.4 && half < 1.05);
}

static void every_profile_loads_and_keeps_the_laws(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    int count;
    const char *const *names = hb_device_list(u.env.arena, HB_SOURCE_DIR, &count);
    for (int i = 0; i < count; i++) {
        struct hb_device d;
        bool ok =
            hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, names[i], (struct hb_loc){0}, &d);
        hb_diag_print(&u.diag, stderr);
        assert_true(ok);
        assert_string_equal(d.name, names[i]);
        check_laws(&d);
    }
    unit_end(&u);
}

static void figures_are_those_of_the_documents(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t usable;
        double bf16;
        double rate;
    } want[] = {
        {"nvidia-h100", INT64_C(84942979072), 989.4e12, 3352.32e9},
        {"nvidia-h100-96gb", INT64_C(102048422953), 989.4e12, 2400e9},
        {"amd-mi300x", (INT64_C(192) << 30) - (16 << 20), 1307.4e12, 5325e9},
        {"tpu-v5e", (INT64_C(63) << 30) / 4, 197e12, 819e9},
        {"tpu-v5p", INT64_C(102789304811), 459e12, 2765e9},
        {"tpu-v6e", INT64_C(33543694909), 918e12, 1638e9},
        {"tpu-v4", (INT64_C(123) << 30) / 4, 275e12, 1228e9},
        {"tpu-v7", INT64_C(101726300406), 1153.5e12, 3690e9},
    };
    struct unit u;
    unit_start(&u);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct hb_device d;
        assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, want[i].name,
                                   (struct hb_loc){0}, &d));
        assert_int_equal(hb_device_usable_bytes(&d), want[i].usable);
        assert_true(fabs(d.peak_flops[HB_RATE_BF16] - want[i].bf16) < 1);
        assert_true(fabs(d.hbm_bytes_per_s - want[i].rate) < 1);
    }
    unit_end(&u);
}

static void a_small_profile_reads(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d;
    assert_true(parse(&u, HEAD NEEDED "hbm_curve: [[[1024, 0.5], [4096, 1]], a, \"seen\"]\n", &d));
    assert_int_equal(hb_device_usable_bytes(&d), INT64_C(79) << 30);
    assert_int_equal(d.link_domain, 1);
    assert_true(fabs(hb_curve_at(&d.hbm_curve, 2048) - 0.75) < 1e-12);
    assert_true(fabs(hb_curve_at(&d.hbm_curve, 1) - 0.5) < 1e-12);
    assert_true(fabs(hb_curve_at(&d.hbm_curve, 1e9) - 1) < 1e-12);
    assert_true(fabs(hb_device_hbm_rate(&d, 1024) - 0.5e12) < 1);
    unit_end(&u);
}

static void mistakes_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {HEAD NEEDED "hbm_bites: [1, a]\n",
         "t.yaml:14:1: error: hbm_bites: no key of a device profile; did you mean 'hbm_bytes'?"},
        {HEAD NEEDED "cores: [1.5, a]\n", "t.yaml:14:9: error: cores: found '1.5'"},
        {HEAD NEEDED "cores: [-1, a]\n", "cores: found '-1'; wanted is a whole number from 0"},
        {HEAD NEEDED "cores: 4\n", "cores: found '4'; wanted is [value, source]"},
        {HEAD NEEDED "cores: [4, b]\n", "cores: found 'b'; wanted is the name of a source"},
        {HEAD NEEDED "cache_bytes: [1GB, a]\n", "cache_bytes: found '1GB'"},
        {HEAD NEEDED "net_efficiency: [1.2, a]\n", "net_efficiency: found '1.2'"},
        {HEAD NEEDED "hbm_curve: [[[4, 1], [2, 1]], a]\n", "a size above that of the point before"},
        {HEAD NEEDED "hbm_curve: [[[4, 3]], a]\n", "a point [size, part]"},
        {HEAD NEEDED "hbm_curve: [[], a]\n", "a list of 1 to 32 points"},
        {HEAD NEEDED "link_kind: [nvlnk, a]\n", "one of none nvlink xgmi ici pcie"},
        {HEAD NEEDED "link_topology: [switch, a]\n", "needs link_count and link_bytes_per_s"},
        {HEAD NEEDED "link_domain: [8, a]\n", "link_topology is none"},
        {HEAD NEEDED "torus_dims: [2, a]\n", "torus_dims: above 0 where link_topology is torus"},
        {HEAD "hbm_bytes: [1GiB, a]\n", "reserve_bytes: missing"},
        {HEAD NEEDED "measured: {date: x, driver: y, clocks: z, spred: w}\n", "spread: missing"},
        {"hbmsim_device: 2\n", "no device profile of format 1"},
        {"- 1\n", "device profile: found a list"},
        {"hbmsim_device: 1\nname: t\ntitle: T\nvendor: intel\nkind: gpu\nsources: {a: A, b: "
         "B}\n" NEEDED,
         "vendor: found 'intel'; wanted is one of nvidia amd google host"},
        {"hbmsim_device: 1\nname: t\ntitle: T\nvendor: amd\nkind: gpu\nsources: {a: A, b: "
         "B}\n" NEEDED,
         "sources.b: no number has this source"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct unit u;
        unit_start(&u);
        struct hb_device d = {.hbm_bytes = 7};
        assert_false(parse(&u, bad[i].text, &d));
        assert_int_equal(d.hbm_bytes, 7); /* untouched */
        hb_diag_print(&u.diag, u.env.err);
        if (!strstr(unit_err(&u), bad[i].says))
            fail_msg("case %zu: wanted '%s', got '%s'", i, bad[i].says, unit_err(&u));
        unit_end(&u);
    }
}

static void a_name_that_is_not_there_gets_the_nearest(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_device d;
    struct hb_loc loc = {"m.yaml", 14, 9};
    assert_false(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, "nvidia-h10", loc, &d));
    hb_diag_print(&u.diag, u.env.err);
    assert_non_null(strstr(unit_err(&u), "m.yaml:14:9: error: there is no device 'nvidia-h10'; "
                                         "did you mean 'nvidia-h100'?"));
    unit_end(&u);
}

static void short_names_mean_devices(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"h100", "nvidia-h100"},
                                           {"H100", "nvidia-h100"},
                                           {"mi300x", "amd-mi300x"},
                                           {"v5p", "tpu-v5p"},
                                           {"v5e", "tpu-v5e"},
                                           {"v6e", "tpu-v6e"},
                                           {"b200", "nvidia-b200"},
                                           {"trillium", "tpu-v6e"},
                                           {"a100", "nvidia-a100-80gb"},
                                           {"tpu-v5p", "tpu-v5p"},
                                           {"h200", "nvidia-h200"},
                                           {"v5litepod", "tpu-v5e"},
                                           {"a100-40gb", "nvidia-a100-40gb"}};
    struct unit u;
    unit_start(&u);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hb_device d;
        struct hb_loc loc = {0};
        assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, names[i][0], loc, &d));
        assert_string_equal(d.name, names[i][1]);
    }
    const char *near = NULL;
    assert_null(hb_device_resolve(u.env.arena, HB_SOURCE_DIR, "mi30x", &near));
    assert_string_equal(near, "amd-mi300x");
    assert_null(hb_device_resolve(u.env.arena, HB_SOURCE_DIR, "abacus-and-beads", &near));
    assert_null(near);
    unit_end(&u);
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    int count;
    const char *const *names = hb_device_list(u.env.arena, HB_SOURCE_DIR, &count);
    for (int i = 0; i < count; i++) {
        struct hb_device d;
        struct hb_device back;
        struct hb_str first;
        struct hb_str second;
        assert_true(
            hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, names[i], (struct hb_loc){0}, &d));
        d.measured_date = "2026-01-02";
        d.measured_driver = d.measured_clocks = d.measured_spread = "with \"quotes\"";
        hb_str_init(&first, u.env.arena);
        hb_str_init(&second, u.env.arena);
        hb_device_write(&d, &first);
        bool ok = parse(&u, first.text, &back);
        hb_diag_print(&u.diag, stderr);
        assert_true(ok);
        hb_device_write(&back, &second);
        assert_string_equal(first.text, second.text);
        assert_memory_equal(d.peak_flops, back.peak_flops, sizeof d.peak_flops);
        assert_memory_equal(d.matmul_curve, back.matmul_curve, sizeof d.matmul_curve);
        assert_int_equal(d.reserve_bytes, back.reserve_bytes);
    }
    unit_end(&u);
}

/* Each field of the table writes to a member of its own: no two overlap. */
static void fields_do_not_overlap(void **state)
{
    (void)state;
    int count;
    const struct hb_field *f = hb_device_fields(&count);
    unsigned char *seen = calloc(1, sizeof(struct hb_device));
    for (int i = 0; i < count; i++) {
        assert_true(f[i].offset < sizeof(struct hb_device));
        assert_int_equal(seen[f[i].offset], 0);
        seen[f[i].offset] = 1;
        assert_true(f[i].low <= f[i].high);
    }
    free(seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_database_is_whole),
        cmocka_unit_test(every_profile_loads_and_keeps_the_laws),
        cmocka_unit_test(figures_are_those_of_the_documents),
        cmocka_unit_test(a_small_profile_reads),
        cmocka_unit_test(mistakes_are_refused_with_their_place),
        cmocka_unit_test(a_name_that_is_not_there_gets_the_nearest),
        cmocka_unit_test(short_names_mean_devices),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(fields_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
