/* Time of communication: collectives over an axis of the mesh, and copies to and from the host.
 * A model of latency and rate (alpha, beta): `collective_latency + steps x link_latency +
 * bytes / rate`. Rings on a switch (NVLink), direct exchange on a mesh (xGMI), rings along the
 * dimensions of a torus (ICI), a network between domains. Sources: NCCL's own tuning model
 * (src/graph/tuning.cc) for the form on GPUs; "How to Scale Your Model" (2025), chapters TPUs and
 * Sharded matrices, for the torus. */
#ifndef HB_HW_LINK_H
#define HB_HW_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "hw/device.h"

enum hb_collective {
    HB_COLL_ALL_GATHER,
    HB_COLL_REDUCE_SCATTER,
    HB_COLL_ALL_REDUCE,
    HB_COLL_ALL_TO_ALL,
    HB_COLL_PERMUTE
};

/* How the devices of a group lie among all. Devices are numbered so that those of one domain are
 * consecutive; neighbours of the group are `stride` apart. */
struct hb_link_group {
    int64_t size;   /* devices that take part, >= 1 */
    int64_t stride; /* >= 1: product of the mesh axes inside this one */
    int64_t total;  /* devices of the program, >= size x stride; says how a torus is cut */
};

/* payload_bytes: the whole tensor, gathered, over the group (each device holds or ends with a part
 * of payload / size); for PERMUTE: what one device sends. Group of one: 0. */
int64_t hb_link_collective_ns(const struct hb_device *dev, enum hb_collective what,
                              double payload_bytes, struct hb_link_group group);
/* A copy between device and pinned host memory; both: copies run the other way at the same time. */
int64_t hb_link_host_ns(const struct hb_device *dev, double bytes, bool up, bool both);

#endif
