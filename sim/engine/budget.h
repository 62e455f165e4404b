/* What a device and its host leave to a program: the device's memory less what its profile
 * reserves; of that the share a runtime gives; of torch no more than what
 * stands beside its allocator leaves. */
#ifndef HB_SIM_ENGINE_BUDGET_H
#define HB_SIM_ENGINE_BUDGET_H

#include <stdint.h>

#include "hw/device.h"
#include "models/spec.h"

struct hb_arena;

struct hb_budget {
    int64_t bytes;        /* what a program may use */
    int64_t device_bytes; /* of which: the device's memory less what is reserved */
    double fraction;      /* of device_bytes that the runtime gives to programs */
    int64_t beside_bytes; /* context, libraries, communicators: not in the allocator's figures; 0
                             where the fraction leaves room for them */
    bool of_torch;        /* whose fraction it is */
    int64_t host_bytes;   /* of host memory, for one device; INT64_MAX: not known */
    int64_t host_reserve_bytes; /* what a host's system keeps beside it, for one device */
    int64_t host_devices;       /* devices of this job that share a host's memory */
};

void hb_budget_make(const struct hb_spec *spec, const struct hb_device *device,
                    struct hb_budget *out);
/* The device's memory less what is reserved. */
int64_t hb_budget_device_bytes(const struct hb_spec *spec, const struct hb_device *device);
/* What a compiler finds of it, or torch's allocator (hardware.memory_bytes). */
int64_t hb_budget_found_bytes(const struct hb_spec *spec, const struct hb_device *device);
/* Why it is less than the device's: "0.75 of 79.11 GiB ..."; "" where there is no more to say than
 * the device's profile does, or where the input gives the bytes. */
const char *hb_budget_words(struct hb_arena *arena, const struct hb_budget *budget);

/* What is kept of a host's memory; "" where nothing is. */
const char *hb_budget_host_words(struct hb_arena *arena, const struct hb_budget *budget);
/* What must be said to JAX for it to pin own_bytes for each device; "": nothing. */
const char *hb_budget_pool_words(struct hb_arena *arena, const struct hb_spec *spec,
                                 const struct hb_budget *budget, int64_t own_bytes);

#endif
