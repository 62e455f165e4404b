/* Communication times: see link.h. */
#include "hw/link.h"

#include <math.h>

/* A group cut at the borders of the scale-up domain. Members on one chip take a tensor in once,
 * over the links of all of them, and hand on to each other what they took. */
struct cut {
    double inside;  /* members in one domain */
    double domains; /* domains that it spans */
    double on_chip; /* members on one chip */
};

static struct cut cut_group(const struct hb_device *dev, struct hb_link_group group)
{
    int64_t room = dev->link_domain / group.stride;
    int64_t inside = room < 1 ? 1 : room > group.size ? group.size : room;
    int64_t near = dev->chip_devices / group.stride;
    int64_t on_chip = near < 1 ? 1 : near < inside ? near : inside;
    return (struct cut){(double)inside, ceil((double)group.size / (double)inside), (double)on_chip};
}

static int64_t to_ns(double seconds)
{
    double ns = seconds * 1e9;
    return ns < 0x1p60 ? (int64_t)llround(ns) : INT64_C(1) << 60;
}

/* Dimensions of the torus that the group lies along, and whether they close to rings. A slice is
 * taken as equal-sided, so a group of the whole slice has all dimensions, one of its square root
 * half of them. */
struct ring {
    double dims;
    double ways; /* 2 where a ring closes: both directions carry different halves */
    double side; /* devices along one dimension */
};

static struct ring find_ring(const struct hb_device *dev, double size, double total)
{
    double all = (double)dev->torus_dims;
    double part = total > 1 ? log(size) / log(total) : 1;
    double dims = fmax(1, fmin(all, floor(all * part + 0.5)));
    double side = fmax(2, round(pow(size, 1 / dims)));
    bool closed = dev->torus_wrap > 0 && fmod(side, (double)dev->torus_wrap) < 0.5;
    return (struct ring){dims, closed ? 2 : 1, side};
}

/* Rate at which one device takes in its part of an exchange with `inside` members. */
static double domain_rate(const struct hb_device *dev, double inside, double total)
{
    switch (dev->link_topology) {
    case HB_TOPOLOGY_NONE:
        return 0;
    case HB_TOPOLOGY_SWITCH:
        return (double)dev->link_count * dev->link_bytes_per_s;
    case HB_TOPOLOGY_MESH:
        return fmin(inside - 1, (double)dev->link_count) * dev->link_bytes_per_s;
    case HB_TOPOLOGY_TORUS: {
        struct ring ring = find_ring(dev, inside, total);
        return ring.dims * ring.ways * dev->link_bytes_per_s;
    }
    }
    return 0;
}

/* Steps that follow one another in a gather over the domain. */
static double domain_steps(const struct hb_device *dev, double inside, double total)
{
    switch (dev->link_topology) {
    case HB_TOPOLOGY_NONE:
        return 0;
    case HB_TOPOLOGY_MESH:
        return 1;
    case HB_TOPOLOGY_SWITCH:
        return inside - 1;
    case HB_TOPOLOGY_TORUS: {
        struct ring ring = find_ring(dev, inside, total);
        return ring.dims * (ring.side - 1) / ring.ways;
    }
    }
    return 0;
}

/* Bytes that each device takes in over the links of its domain, and over the network. */
struct traffic {
    double domain_bytes;
    double net_bytes;
    double passes; /* an all-reduce goes round twice */
};

/* NCCL and RCCL have rings alone for these two (NCCL, src/graph/tuning.cc: trees are for
 * all-reduces): each byte but a member's own enters each domain once. */
static bool goes_in_rings(const struct hb_device *dev, enum hb_collective what)
{
    bool one_way = what == HB_COLL_ALL_GATHER || what == HB_COLL_REDUCE_SCATTER;
    return one_way && dev->link_topology != HB_TOPOLOGY_TORUS;
}

static struct traffic plan_traffic(const struct hb_device *dev, enum hb_collective what,
                                   double payload, struct cut c)
{
    double size = c.inside * c.domains;
    /* part that leaves a domain */
    double out = goes_in_rings(dev, what) ? (size - 1) / size : (c.domains - 1) / c.domains;
    bool torus = dev->link_topology == HB_TOPOLOGY_TORUS;
    struct traffic t = {payload * (size - 1) / size, payload * out / c.inside, 1};
    switch (what) {
    case HB_COLL_ALL_GATHER:
    case HB_COLL_REDUCE_SCATTER:
        break;
    case HB_COLL_ALL_REDUCE:
        t.passes = 2;
        break;
    case HB_COLL_ALL_TO_ALL:
        /* A device sends all but its own part of payload / size. On a ring what passes over a link
         * is a quarter of a gather's. */
        t.domain_bytes = torus ? payload / 4 : payload / size * (c.inside - 1) / c.inside;
        t.net_bytes = payload / size * out;
        break;
    case HB_COLL_PERMUTE:
        t.domain_bytes = payload;
        t.net_bytes = c.domains > 1 ? payload : 0;
        break;
    }
    return t;
}

/* A permute goes to one neighbour: over one link of a mesh or a torus. */
static double permute_rate(const struct hb_device *dev)
{
    double links = dev->link_topology == HB_TOPOLOGY_SWITCH ? (double)dev->link_count : 1;
    return links * dev->link_bytes_per_s;
}

static bool reduces_in_switch(const struct hb_device *dev, enum hb_collective what, struct cut c)
{
    return what == HB_COLL_ALL_REDUCE && c.domains == 1 && c.inside >= (double)dev->reduce_gain_min;
}

static double chip_seconds(const struct hb_device *dev, enum hb_collective what, double payload,
                           struct cut c)
{
    if (what == HB_COLL_PERMUTE || c.on_chip <= 1 || !(dev->chip_bytes_per_s > 0))
        return 0;
    return payload * (c.on_chip - 1) / c.on_chip / dev->chip_bytes_per_s;
}

static double domain_seconds(const struct hb_device *dev, enum hb_collective what, double payload,
                             struct cut c, double total)
{
    if (c.inside <= 1)
        return 0;
    struct traffic t = plan_traffic(dev, what, payload, c);
    bool permute = what == HB_COLL_PERMUTE;
    double chips = permute ? c.inside : c.inside / c.on_chip;
    double rate = permute ? permute_rate(dev) : domain_rate(dev, chips, total) * c.on_chip;
    double gain = reduces_in_switch(dev, what, c) ? dev->reduce_gain : 1;
    double steps = permute ? 1 : domain_steps(dev, chips, total);
    double whole = permute ? payload * c.inside : payload;
    double far = chips > 1 ? t.domain_bytes / (rate * hb_curve_at(&dev->link_curve, whole)) : 0;
    return t.passes * (fmax(far / gain, chip_seconds(dev, what, payload, c)) +
                       steps * (double)dev->link_latency_ns * 1e-9);
}

static double net_seconds(const struct hb_device *dev, enum hb_collective what, double payload,
                          struct cut c)
{
    if (c.domains <= 1)
        return 0;
    struct traffic t = plan_traffic(dev, what, payload, c);
    double steps = what == HB_COLL_PERMUTE ? 1 : c.domains - 1;
    double near = goes_in_rings(dev, what) ? (c.inside - 1) * c.domains : 0; /* in domains */
    double share = what == HB_COLL_PERMUTE ? payload : payload / c.inside;
    double part = dev->net_efficiency * hb_curve_at(&dev->net_curve, share);
    return t.passes * (t.net_bytes / (dev->net_bytes_per_s * part) +
                       steps * (double)dev->net_latency_ns * 1e-9 +
                       near * (double)dev->link_latency_ns * 1e-9);
}

/* Links and network work at the same time on different parts: the slower one counts. */
int64_t hb_link_collective_ns(const struct hb_device *dev, enum hb_collective what,
                              double payload_bytes, struct hb_link_group group)
{
    if (group.size <= 1 || !(payload_bytes > 0))
        return 0;
    if (group.stride < 1 || dev->link_domain < 1)
        HB_BUG("a group with stride %lld in a domain of %lld", (long long)group.stride,
               (long long)dev->link_domain);
    struct cut c = cut_group(dev, group);
    double inside = domain_seconds(dev, what, payload_bytes, c, (double)group.total);
    double across = net_seconds(dev, what, payload_bytes, c);
    return to_ns((double)dev->collective_latency_ns * 1e-9 + fmax(inside, across));
}

int64_t hb_link_host_ns(const struct hb_device *dev, double bytes, bool up, bool both)
{
    if (!(bytes > 0))
        return 0;
    double rate = up ? dev->host_up_bytes_per_s : dev->host_down_bytes_per_s;
    rate *= dev->host_efficiency * (both ? dev->host_duplex : 1);
    return to_ns((double)dev->host_latency_ns * 1e-9 + bytes / rate);
}
