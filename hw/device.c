/* Device profiles: see device.h. The table of fields is the format: reader, writer, `devices` and
 * the tests walk it. */
#include "hw/device.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "base/yaml.h"

#define AT(member)      offsetof(struct hb_device, member)
#define RATE_AT(rate)   (AT(peak_flops) + HB_RATE_##rate * sizeof(double))
#define MATMUL_AT(rate) (AT(matmul_curve) + HB_RATE_##rate * sizeof(struct hb_curve))

#define MOST_BYTES 0x1p50 /* 1 PiB: above any device or host */
#define MOST_RATE  1e19   /* operations or bytes a second */
#define MOST_COUNT 1e9
#define MOST_NS    1e9 /* a second */
#define MOST_PART  2.  /* boost clocks and reductions in the switch go above 1 */

/* key, type, place, smallest, largest, required, first of its group, meaning */
static const struct hb_field fields[] = {
    {"hbm_bytes", HB_FIELD_BYTES, AT(hbm_bytes), 1, MOST_BYTES, true, true, "device memory"},
    {"reserve_bytes", HB_FIELD_BYTES, AT(reserve_bytes), 0, MOST_BYTES, true, false,
     "of it no program can have"},
    {"allocator_slack", HB_FIELD_PART, AT(allocator_slack), 0, 1, false, false,
     "taken on top of what a program holds"},
    {"hbm_bytes_per_s", HB_FIELD_RATE, AT(hbm_bytes_per_s), 1, MOST_RATE, true, false,
     "peak rate of device memory"},
    {"cache_bytes", HB_FIELD_BYTES, AT(cache_bytes), 0, MOST_BYTES, false, false,
     "last cache level"},
    {"onchip_bytes", HB_FIELD_BYTES, AT(onchip_bytes), 0, MOST_BYTES, false, false,
     "scratch memory that programs place themselves"},
    {"align_bytes", HB_FIELD_BYTES, AT(align_bytes), 1, 0x1p30, false, false,
     "spacing of arguments"},
    {"slot_bytes", HB_FIELD_BYTES, AT(slot_bytes), 1, 0x1p30, false, false,
     "spacing of temporaries"},
    {"page_bytes", HB_FIELD_BYTES, AT(page_bytes), 1, 0x1p40, false, false,
     "what the driver hands out"},
    {"tile_sublanes", HB_FIELD_COUNT_, AT(tile_sublanes), 1, 4096, false, false,
     "padding of the second minor dimension"},
    {"tile_lanes", HB_FIELD_COUNT_, AT(tile_lanes), 1, 4096, false, false,
     "padding of the minor dimension"},

    {"cores", HB_FIELD_COUNT_, AT(cores), 0, MOST_COUNT, false, true, "compute units"},
    {"clock_hz", HB_FIELD_RATE, AT(clock_hz), 0, 1e12, false, false, "boost clock"},
    {"mxu_dim", HB_FIELD_COUNT_, AT(mxu_dim), 0, 65536, false, false,
     "operands are padded to this side"},
    {"peak_f64_flops", HB_FIELD_RATE, RATE_AT(F64), 0, MOST_RATE, false, false, "matrix rate, f64"},
    {"peak_f32_flops", HB_FIELD_RATE, RATE_AT(F32), 0, MOST_RATE, true, false, "matrix rate, f32"},
    {"peak_tf32_flops", HB_FIELD_RATE, RATE_AT(TF32), 0, MOST_RATE, false, false,
     "matrix rate, tf32"},
    {"peak_bf16_flops", HB_FIELD_RATE, RATE_AT(BF16), 1, MOST_RATE, true, false,
     "matrix rate, bf16"},
    {"peak_f16_flops", HB_FIELD_RATE, RATE_AT(F16), 0, MOST_RATE, false, false, "matrix rate, f16"},
    {"peak_fp8_flops", HB_FIELD_RATE, RATE_AT(FP8), 0, MOST_RATE, false, false,
     "matrix rate, 8 bit floating point"},
    {"peak_fp4_flops", HB_FIELD_RATE, RATE_AT(FP4), 0, MOST_RATE, false, false,
     "matrix rate, 4 bit floating point"},
    {"peak_int8_flops", HB_FIELD_RATE, RATE_AT(INT8), 0, MOST_RATE, false, false,
     "matrix rate, int8"},
    {"vector_f32_flops", HB_FIELD_RATE, AT(vector_flops), 0, MOST_RATE, true, false,
     "f32 rate outside the matrix unit"},
    {"op_latency_ns", HB_FIELD_NS, AT(op_latency_ns), 0, MOST_NS, false, false,
     "idle between dependent operations"},
    {"product_burst", HB_FIELD_PART, AT(product_burst), 0, 3, false, false,
     "a large product's first moments, against what its curve says it keeps up"},
    {"softmax_part", HB_FIELD_PART, AT(softmax_part), 0, 2, false, false,
     "part of the memory rate that a softmax reaches"},
    {"norm_part", HB_FIELD_PART, AT(norm_part), 0, 2, false, false, "that a norm reaches"},
    {"adam_part", HB_FIELD_PART, AT(adam_part), 0, 2, false, false,
     "that an update by Adam reaches"},

    {"link_kind", HB_FIELD_LINK, AT(link_kind), 0, 0, false, true, "scale-up link"},
    {"link_topology", HB_FIELD_TOPOLOGY, AT(link_topology), 0, 0, false, false,
     "how it joins devices"},
    {"link_domain", HB_FIELD_COUNT_, AT(link_domain), 1, MOST_COUNT, false, false,
     "devices so joined"},
    {"link_count", HB_FIELD_COUNT_, AT(link_count), 0, 4096, false, false, "links of one device"},
    {"link_bytes_per_s", HB_FIELD_RATE, AT(link_bytes_per_s), 0, MOST_RATE, false, false,
     "one link, one direction"},
    {"link_latency_ns", HB_FIELD_NS, AT(link_latency_ns), 0, MOST_NS, false, false,
     "each step of a collective"},
    {"collective_latency_ns", HB_FIELD_NS, AT(collective_latency_ns), 0, MOST_NS, false, false,
     "once per collective"},
    {"overlap_slowdown", HB_FIELD_PART, AT(overlap_slowdown), 0, 1, false, false,
     "computing slows by this part beside collectives"},
    {"reduce_gain", HB_FIELD_PART, AT(reduce_gain), 1, 4, false, false,
     "all-reduce with reduction in the switch"},
    {"reduce_gain_min", HB_FIELD_COUNT_, AT(reduce_gain_min), 1, MOST_COUNT, false, false,
     "from so many devices on"},
    {"torus_dims", HB_FIELD_COUNT_, AT(torus_dims), 0, 6, false, false, "dimensions of the torus"},
    {"torus_wrap", HB_FIELD_COUNT_, AT(torus_wrap), 0, 4096, false, false,
     "axes of a multiple of this close"},
    {"chip_devices", HB_FIELD_COUNT_, AT(chip_devices), 1, 64, false, false,
     "devices that share a chip's links"},
    {"chip_bytes_per_s", HB_FIELD_RATE, AT(chip_bytes_per_s), 0, MOST_RATE, false, false,
     "between them, one direction"},

    {"host_devices", HB_FIELD_COUNT_, AT(host_devices), 1, 4096, false, true,
     "devices of one host"},
    {"net_bytes_per_s", HB_FIELD_RATE, AT(net_bytes_per_s), 0, MOST_RATE, false, false,
     "network, per device and direction"},
    {"net_latency_ns", HB_FIELD_NS, AT(net_latency_ns), 0, MOST_NS, false, false,
     "each step over the network"},
    {"net_efficiency", HB_FIELD_PART, AT(net_efficiency), 0.01, 1, false, false,
     "part of it that large collectives reach"},
    {"net_curve", HB_FIELD_CURVE, AT(net_curve), 1e-6, MOST_PART, false, false,
     "part of that, by bytes of a device's share"},

    {"host_up_bytes_per_s", HB_FIELD_RATE, AT(host_up_bytes_per_s), 1, MOST_RATE, false, true,
     "host to device"},
    {"host_down_bytes_per_s", HB_FIELD_RATE, AT(host_down_bytes_per_s), 1, MOST_RATE, false, false,
     "device to host"},
    {"host_efficiency", HB_FIELD_PART, AT(host_efficiency), 0.01, 1, false, false,
     "part of these that pinned copies reach"},
    {"host_duplex", HB_FIELD_PART, AT(host_duplex), 0.01, 1, false, false,
     "part of the sum of both at once"},
    {"host_shared", HB_FIELD_PART, AT(host_shared), 0.01, 1, false, false,
     "part of a device's rate while all of the host copy"},
    {"host_latency_ns", HB_FIELD_NS, AT(host_latency_ns), 0, MOST_NS, false, false, "each copy"},
    {"host_memory_bytes", HB_FIELD_BYTES, AT(host_memory_bytes), 0, MOST_BYTES, false, false,
     "host memory per device"},

    {"context_bytes", HB_FIELD_BYTES, AT(context_bytes), 0, MOST_BYTES, false, true,
     "taken by the driver's context (torch)"},
    {"library_bytes", HB_FIELD_BYTES, AT(library_bytes), 0, MOST_BYTES, false, false,
     "taken by libraries (torch)"},
    {"collective_bytes", HB_FIELD_BYTES, AT(collective_bytes), 0, MOST_BYTES, false, false,
     "taken by communicators (torch)"},

    {"matmul_curve_f32", HB_FIELD_CURVE, MATMUL_AT(F32), 1e-6, MOST_PART, false, true,
     "part of the f32 peak, by cube root of m n k"},
    {"matmul_curve_tf32", HB_FIELD_CURVE, MATMUL_AT(TF32), 1e-6, MOST_PART, false, false,
     "part of the tf32 peak"},
    {"matmul_curve_bf16", HB_FIELD_CURVE, MATMUL_AT(BF16), 1e-6, MOST_PART, false, false,
     "part of the bf16 peak"},
    {"matmul_curve_f16", HB_FIELD_CURVE, MATMUL_AT(F16), 1e-6, MOST_PART, false, false,
     "part of the f16 peak"},
    {"matmul_curve_fp8", HB_FIELD_CURVE, MATMUL_AT(FP8), 1e-6, MOST_PART, false, false,
     "part of the fp8 peak"},
    {"matmul_curve_fp4", HB_FIELD_CURVE, MATMUL_AT(FP4), 1e-6, MOST_PART, false, false,
     "the same for 4 bit floats"},
    {"matmul_curve_int8", HB_FIELD_CURVE, MATMUL_AT(INT8), 1e-6, MOST_PART, false, false,
     "the same for int8"},
    {"grouped_curve", HB_FIELD_CURVE, AT(grouped_curve), 1e-6, MOST_PART, false, false,
     "of the bf16 peak, experts' products"},
    {"attention_forward_curve", HB_FIELD_CURVE, AT(attention_forward_curve), 1e-6, MOST_PART, false,
     false, "part of the bf16 peak, by sequence length"},
    {"attention_backward_curve", HB_FIELD_CURVE, AT(attention_backward_curve), 1e-6, MOST_PART,
     false, false, "the same, backward"},
    {"sdpa_forward_curve", HB_FIELD_CURVE, AT(sdpa_forward_curve), 1e-6, MOST_PART, false, false,
     "the same of torch's own kernel"},
    {"sdpa_backward_curve", HB_FIELD_CURVE, AT(sdpa_backward_curve), 1e-6, MOST_PART, false, false,
     "the same of torch's own kernel, backward"},
    {"attention_width64", HB_FIELD_PART, AT(attention_width64), 0.01, 1, false, false,
     "part of these at heads 64 wide"},
    {"hbm_curve", HB_FIELD_CURVE, AT(hbm_curve), 1e-6, MOST_PART, false, false,
     "part of the memory rate, by bytes moved"},
    {"link_curve", HB_FIELD_CURVE, AT(link_curve), 1e-6, MOST_PART, false, false,
     "part of the link rate, by bytes of the collective"},
};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

const struct hb_field *hb_device_fields(int *out_count)
{
    *out_count = FIELD_COUNT;
    return fields;
}

/* Words of the enums, in their order. */
static const char *const vendor_words[] = {"nvidia", "amd", "google", "host", NULL};
static const char *const kind_words[] = {"gpu", "tpu", "cpu", NULL};
static const char *const link_words[] = {"none", "nvlink", "xgmi", "ici", "pcie", NULL};
static const char *const topology_words[] = {"none", "switch", "mesh", "torus", NULL};
static const char *const rate_words[] = {
#define HB_ENUM(name, text) text,
    HB_RATES(HB_ENUM)
#undef HB_ENUM
        NULL,
};
_Static_assert(sizeof rate_words / sizeof rate_words[0] == HB_RATE_COUNT + 1, "a word a rate");

const char *hb_rate_name(enum hb_rate rate)
{
    return rate_words[rate];
}

const char *hb_vendor_name(enum hb_vendor vendor)
{
    return vendor_words[vendor];
}

const char *hb_kind_name(enum hb_device_kind kind)
{
    return kind_words[kind];
}

bool hb_device_kind_parse(const char *word, enum hb_device_kind *out_kind)
{
    for (int i = 0; kind_words[i]; i++)
        if (hb_str_same(kind_words[i], word)) {
            *out_kind = (enum hb_device_kind)i;
            return true;
        }
    return false;
}

const char *hb_link_kind_name(enum hb_link_kind kind)
{
    return link_words[kind];
}

const char *hb_topology_name(enum hb_topology topology)
{
    return topology_words[topology];
}

void hb_device_init(struct hb_arena *arena, struct hb_device *dev)
{
    *dev = (struct hb_device){
        .name = "",
        .title = "",
        .align_bytes = 1,
        .slot_bytes = 1,
        .page_bytes = 1,
        .tile_sublanes = 1,
        .tile_lanes = 1,
        .link_domain = 1,
        .reduce_gain = 1,
        .reduce_gain_min = 1,
        .chip_devices = 1,
        .host_devices = 1,
        .net_efficiency = 1,
        .attention_width64 = 1,
        .host_up_bytes_per_s = 1e9,
        .host_down_bytes_per_s = 1e9,
        .host_efficiency = 1,
        .host_duplex = 1,
        .host_shared = 1,
    };
    dev->facts = hb_arena_alloc(arena, FIELD_COUNT, sizeof *dev->facts);
}

/* ---- use ---- */

int64_t hb_device_usable_bytes(const struct hb_device *dev)
{
    int64_t rest = dev->hbm_bytes - dev->reserve_bytes;
    if (!(dev->allocator_slack > 0))
        return rest;
    return (int64_t)floor((double)rest / (1 + dev->allocator_slack));
}

bool hb_device_reserve_is_fitted(const struct hb_device *dev)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (hb_str_same(fields[i].key, "reserve_bytes"))
            return dev->facts && dev->facts[i].source &&
                   hb_str_starts(dev->facts[i].source, HB_DEVICE_FIT_SOURCE);
    return false;
}

double hb_curve_at(const struct hb_curve *curve, double x)
{
    if (!curve->count)
        return 1;
    if (!(x > curve->x[0]))
        return curve->y[0];
    for (int i = 1; i < curve->count; i++)
        if (x < curve->x[i]) {
            double part = log2(x / curve->x[i - 1]) / log2(curve->x[i] / curve->x[i - 1]);
            return curve->y[i - 1] + part * (curve->y[i] - curve->y[i - 1]);
        }
    return curve->y[curve->count - 1];
}

static const struct hb_curve *matmul_curve(const struct hb_device *dev, enum hb_rate rate)
{
    const struct hb_curve *own = &dev->matmul_curve[rate];
    return own->count ? own : &dev->matmul_curve[HB_RATE_BF16];
}

double hb_device_matmul_flops(const struct hb_device *dev, enum hb_rate rate, double m, double n,
                              double k)
{
    return dev->peak_flops[rate] * hb_curve_at(matmul_curve(dev, rate), cbrt(m * n * k));
}

double hb_device_most_matmul_part(const struct hb_device *dev, enum hb_rate rate)
{
    const struct hb_curve *curve = matmul_curve(dev, rate);
    double most = curve->count ? 0 : 1;
    for (int i = 0; i < curve->count; i++)
        most = curve->y[i] > most ? curve->y[i] : most;
    return most;
}

double hb_device_grouped_part(const struct hb_device *dev, double m, double n, double k)
{
    double side = cbrt(m * n * k);
    if (!dev->grouped_curve.count)
        return 1;
    return hb_curve_at(&dev->grouped_curve, side) /
           hb_curve_at(&dev->matmul_curve[HB_RATE_BF16], side);
}

double hb_device_hbm_rate(const struct hb_device *dev, double bytes)
{
    return dev->hbm_bytes_per_s * hb_curve_at(&dev->hbm_curve, bytes);
}

/* ---- reading ---- */

struct reader {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const struct hb_node *root;
    const struct hb_node *sources;
    bool *source_used; /* by child of sources */
    struct hb_device *dev;
    bool ok;
};

static bool complain(struct reader *r, const struct hb_node *at, const char *key, const char *want)
{
    r->ok = false;
    return hb_error(r->diag, at->loc, "%s: found %s; wanted is %s", key, hb_node_show(r->arena, at),
                    want);
}

static bool read_word(struct reader *r, const struct hb_node *node, const char *key,
                      const char *const *words, int *out_index)
{
    if (node->kind == HB_NODE_SCALAR)
        for (int i = 0; words[i]; i++)
            if (hb_str_same(node->text, words[i])) {
                *out_index = i;
                return true;
            }
    struct hb_str want;
    hb_str_init(&want, r->arena);
    hb_str_add(&want, "one of");
    for (int i = 0; words[i]; i++)
        hb_str_addf(&want, " %s", words[i]);
    return complain(r, node, key, want.text);
}

static const char *limits_text(struct reader *r, const struct hb_field *f, const char *what)
{
    return hb_arena_printf(r->arena, "%s from %.6g to %.6g", what, f->low, f->high);
}

static bool in_limits(const struct hb_field *f, double value)
{
    return value >= f->low && value <= f->high;
}

static bool read_whole(struct reader *r, const struct hb_node *node, const struct hb_field *f,
                       int64_t *out)
{
    int64_t value;
    bool bytes = f->type == HB_FIELD_BYTES;
    bool plain = node->kind == HB_NODE_SCALAR && !node->quoted;
    bool read = hb_node_int(node, &value) ||
                (bytes && plain && strstr(node->text, "iB") && hb_size_parse(node->text, &value));
    if (!read || !in_limits(f, (double)value))
        return complain(
            r, node, f->key,
            limits_text(r, f, bytes ? "bytes (a whole number, or like 80GiB)" : "a whole number"));
    *out = value;
    return true;
}

static bool read_real(struct reader *r, const struct hb_node *node, const struct hb_field *f,
                      double *out)
{
    double value;
    if (!hb_node_real(node, &value) || !in_limits(f, value))
        return complain(r, node, f->key, limits_text(r, f, "a number"));
    *out = value;
    return true;
}

static bool read_point(struct reader *r, const struct hb_node *pair, const struct hb_field *f,
                       struct hb_curve *curve)
{
    double x = 0;
    double y = 0;
    bool two = pair->kind == HB_NODE_LIST && pair->count == 2 && hb_node_real(pair->first, &x) &&
               hb_node_real(pair->last, &y);
    if (!two || !(x > 0) || !in_limits(f, y))
        return complain(r, pair, f->key,
                        limits_text(r, f, "a point [size, part], size above 0, part"));
    if (curve->count && !(x > curve->x[curve->count - 1]))
        return complain(r, pair->first, f->key, "a size above that of the point before");
    curve->x[curve->count] = x;
    curve->y[curve->count++] = y;
    return true;
}

static bool read_curve(struct reader *r, const struct hb_node *node, const struct hb_field *f,
                       struct hb_curve *out)
{
    if (node->kind != HB_NODE_LIST || !node->count || node->count > HB_CURVE_POINTS)
        return complain(r, node, f->key, "a list of 1 to 32 points [size, part]");
    struct hb_curve curve = {0};
    for (const struct hb_node *pair = node->first; pair; pair = pair->next)
        if (!read_point(r, pair, f, &curve))
            return false;
    *out = curve;
    return true;
}

static bool read_value(struct reader *r, const struct hb_node *node, const struct hb_field *f)
{
    void *to = (char *)r->dev + f->offset;
    int word = 0;
    bool ok = false;
    switch (f->type) {
    case HB_FIELD_BYTES:
    case HB_FIELD_COUNT_:
    case HB_FIELD_NS:
        return read_whole(r, node, f, to);
    case HB_FIELD_RATE:
    case HB_FIELD_PART:
        return read_real(r, node, f, to);
    case HB_FIELD_LINK:
        ok = read_word(r, node, f->key, link_words, &word);
        r->dev->link_kind = (enum hb_link_kind)word;
        return ok;
    case HB_FIELD_TOPOLOGY:
        ok = read_word(r, node, f->key, topology_words, &word);
        r->dev->link_topology = (enum hb_topology)word;
        return ok;
    case HB_FIELD_CURVE:
        return read_curve(r, node, f, to);
    }
    return false;
}

/* The text of a source that the file declares; marks it as used. */
static const char *find_source(struct reader *r, const struct hb_node *name, const char *key)
{
    int at = 0;
    if (name->kind == HB_NODE_SCALAR)
        for (const struct hb_node *s = r->sources ? r->sources->first : NULL; s; s = s->next, at++)
            if (hb_str_same(s->key, name->text)) {
                r->source_used[at] = true;
                return s->kind == HB_NODE_SCALAR ? s->text : "";
            }
    complain(r, name, key, "the name of a source that 'sources' declares");
    return NULL;
}

static void read_field(struct reader *r, const struct hb_node *node, int index)
{
    const struct hb_field *f = &fields[index];
    if (node->kind != HB_NODE_LIST || node->count < 2 || node->count > 3) {
        complain(r, node, f->key, "[value, source] or [value, source, \"note\"]");
        return;
    }
    const struct hb_node *source = node->first->next;
    const struct hb_node *note = source->next;
    if (note && note->kind != HB_NODE_SCALAR)
        complain(r, note, f->key, "a note, one text");
    read_value(r, node->first, f);
    r->dev->facts[index] = (struct hb_fact){
        .loc = node->key_loc,
        .source = find_source(r, source, f->key),
        .note = note && note->kind == HB_NODE_SCALAR ? note->text : "",
    };
}

/* Keys beside the numbers. */
static const char *const head_keys[] = {"hbmsim_device", "name",    "title",    "vendor",
                                        "kind",          "sources", "measured", NULL};

static bool is_head_key(const char *key)
{
    for (int i = 0; head_keys[i]; i++)
        if (hb_str_same(key, head_keys[i]))
            return true;
    return false;
}

static int find_field(const char *key)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        if (hb_str_same(fields[i].key, key))
            return i;
    return -1;
}

static void report_unknown(struct reader *r, const struct hb_node *node)
{
    const char *words[FIELD_COUNT + sizeof head_keys / sizeof head_keys[0]];
    int count = 0;
    for (int i = 0; i < FIELD_COUNT; i++)
        words[count++] = fields[i].key;
    for (int i = 0; head_keys[i]; i++)
        words[count++] = head_keys[i];
    words[count] = NULL;
    const char *near = hb_str_nearest(node->key, words);
    r->ok = false;
    hb_error(r->diag, node->key_loc, "%s: no key of a device profile%s%s%s", node->key,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static const char *read_text(struct reader *r, const struct hb_node *map, const char *key)
{
    const struct hb_node *node = hb_node_find(map, key);
    if (node && node->kind == HB_NODE_SCALAR && node->text[0])
        return node->text;
    r->ok = false;
    if (node)
        complain(r, node, key, "a text");
    else
        hb_error(r->diag, map->loc, "%s: missing; wanted is a text", key);
    return "";
}

static void read_head_word(struct reader *r, const char *key, const char *const *words, int *out)
{
    const struct hb_node *node = hb_node_find(r->root, key);
    if (node) {
        read_word(r, node, key, words, out);
        return;
    }
    r->ok = false;
    hb_error(r->diag, r->root->loc, "%s: missing", key);
}

static void read_measured(struct reader *r)
{
    static const char *const words[] = {"date", "driver", "clocks", "spread", "power", NULL};
    const char **to[] = {&r->dev->measured_date, &r->dev->measured_driver, &r->dev->measured_clocks,
                         &r->dev->measured_spread, &r->dev->measured_power};
    enum { OPTIONAL = 4 }; /* from there on: older files lack them */
    const struct hb_node *map = hb_node_find(r->root, "measured");
    if (!map)
        return;
    if (map->kind != HB_NODE_MAP) {
        complain(r, map, "measured", "a map of date, driver, clocks, spread");
        return;
    }
    for (int i = 0; words[i]; i++)
        if (i < OPTIONAL || hb_node_find(map, words[i]))
            *to[i] = read_text(r, map, words[i]);
    for (const struct hb_node *node = map->first; node; node = node->next) {
        int word;
        const struct hb_node name = {.kind = HB_NODE_SCALAR, .text = node->key, .loc = node->loc};
        read_word(r, &name, "measured", words, &word);
    }
}

static void read_head(struct reader *r)
{
    int64_t version;
    const struct hb_node *node = hb_node_find(r->root, "hbmsim_device");
    if (!node || !hb_node_int(node, &version) || version != 1) {
        r->ok = false;
        hb_error(r->diag, node ? node->loc : r->root->loc,
                 "hbmsim_device: this is no device profile of format 1");
    }
    int vendor = 0;
    int kind = 0;
    r->dev->name = read_text(r, r->root, "name");
    r->dev->title = read_text(r, r->root, "title");
    read_head_word(r, "vendor", vendor_words, &vendor);
    read_head_word(r, "kind", kind_words, &kind);
    r->dev->vendor = (enum hb_vendor)vendor;
    r->dev->kind = (enum hb_device_kind)kind;
    read_measured(r);
}

static void read_sources(struct reader *r)
{
    const struct hb_node *map = hb_node_find(r->root, "sources");
    if (!map || map->kind != HB_NODE_MAP) {
        r->ok = false;
        hb_error(r->diag, map ? map->loc : r->root->loc,
                 "sources: wanted is a map of names to documents");
        return;
    }
    r->sources = map;
    r->source_used = hb_arena_alloc(r->arena, map->count + 1, sizeof *r->source_used);
    for (const struct hb_node *s = map->first; s; s = s->next)
        if (s->kind != HB_NODE_SCALAR || !s->text[0])
            complain(r, s, s->key, "the name of a document");
}

static void check_used(struct reader *r)
{
    int at = 0;
    for (const struct hb_node *s = r->sources ? r->sources->first : NULL; s; s = s->next, at++)
        if (!r->source_used[at]) {
            r->ok = false;
            hb_error(r->diag, s->key_loc, "sources.%s: no number has this source", s->key);
        }
}

static void check_whole(struct reader *r)
{
    struct hb_device *dev = r->dev;
    for (int i = 0; i < FIELD_COUNT; i++)
        if (fields[i].required && !hb_node_find(r->root, fields[i].key)) {
            r->ok = false;
            hb_error(r->diag, r->root->loc, "%s: missing (%s)", fields[i].key, fields[i].meaning);
        }
    if (!r->ok)
        return;
    if (dev->reserve_bytes >= dev->hbm_bytes)
        r->ok = hb_error(r->diag, hb_node_find(r->root, "reserve_bytes")->loc,
                         "reserve_bytes: leaves nothing of hbm_bytes");
    bool linked = dev->link_topology != HB_TOPOLOGY_NONE;
    if (linked && (!dev->link_count || !(dev->link_bytes_per_s > 0)))
        r->ok = hb_error(r->diag, hb_node_find(r->root, "link_topology")->loc,
                         "link_topology: needs link_count and link_bytes_per_s above 0");
    if (!linked && dev->link_domain > 1)
        r->ok = hb_error(r->diag, hb_node_find(r->root, "link_domain")->loc,
                         "link_domain: above 1, but link_topology is none");
    if ((dev->link_topology == HB_TOPOLOGY_TORUS) != (dev->torus_dims > 0))
        r->ok = hb_error(r->diag, r->root->loc,
                         "torus_dims: above 0 where link_topology is torus, and only there");
}

static bool read_tree(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *root,
                      struct hb_device *out_dev)
{
    struct hb_device dev;
    struct reader r = {.arena = arena, .diag = diag, .root = root, .dev = &dev, .ok = true};
    if (root->kind != HB_NODE_MAP)
        return complain(&r, root, "device profile", "a map of keys");
    hb_device_init(arena, &dev);
    read_sources(&r);
    read_head(&r);
    for (const struct hb_node *node = root->first; node; node = node->next) {
        int index = find_field(node->key);
        if (index >= 0)
            read_field(&r, node, index);
        else if (!is_head_key(node->key))
            report_unknown(&r, node);
    }
    check_used(&r);
    check_whole(&r);
    if (r.ok)
        *out_dev = dev;
    return r.ok;
}

bool hb_device_parse(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     const char *text, size_t len, struct hb_device *out_dev)
{
    struct hb_node *root;
    return hb_yaml_parse(arena, diag, path, text, len, &root) &&
           read_tree(arena, diag, root, out_dev);
}

const char *const *hb_device_list(struct hb_arena *arena, const char *data_dir, int *out_count)
{
    const char *const *names =
        hb_file_list(arena, hb_arena_printf(arena, "%s/hw/db/", data_dir), ".yaml");
    int count = 0;
    while (names[count])
        count++;
    if (out_count)
        *out_count = count;
    return names;
}

bool hb_device_load(struct hb_arena *arena, struct hb_diag *diag, const char *data_dir,
                    const char *name, struct hb_loc loc, struct hb_device *out_dev)
{
    const char *path = name;
    if (!hb_device_is_path(name)) {
        if (!hb_device_list(arena, data_dir, NULL)[0])
            hb_die("cannot read the device profiles in %s/hw/db; HBMSIM_DATA can name another "
                   "place",
                   data_dir);
        const char *near = NULL;
        const char *whole = hb_device_resolve(arena, data_dir, name, &near);
        if (!whole)
            return hb_error(diag, loc, "there is no device '%s'%s%s%s", name,
                            near ? "; did you mean '" : "; 'hbmsim devices' lists them",
                            near ? near : "", near ? "'?" : "");
        path = hb_arena_printf(arena, "%s/hw/db/%s.yaml", data_dir, whole);
    }
    struct hb_node *root;
    return hb_yaml_read_file(arena, diag, path, &root) && read_tree(arena, diag, root, out_dev);
}
