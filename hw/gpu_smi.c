/* NVML and AMD SMI: see gpu_smi.h. Prototypes and numbers as in nvml.h (pynvml 13) and amdsmi.h of
 * ROCm 6.2; the records of AMD SMI grew since, but begin with what is read here in all of them:
 * watts of the socket, microwatts of the cap, MHz of the clock. */
#include "hw/gpu_smi.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/dl.h"
#include "hw/libs.h"

enum {
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    AMD_INIT_GPUS = 2,
    AMD_CLOCK_GFX = 0,
    AMD_CLOCK_MEM = 4,
    RECORD_BYTES = 1024, /* more than any of AMD SMI's */
    PARTITION_BYTES = 64
};
/* NVML's reasons for lower clocks. */
static const unsigned long long power_reasons = 0x4 | 0x80;
static const unsigned long long heat_reasons = 0x20 | 0x40;

struct calls {
    int (*nv_init)(void);
    int (*nv_end)(void);
    int (*nv_device)(const char *bus, void **out_device);
    int (*nv_power)(void *device, unsigned *out_mw);
    int (*nv_limit)(void *device, unsigned *out_mw);
    int (*nv_clock)(void *device, int which, unsigned *out_mhz);
    int (*nv_reasons)(void *device, unsigned long long *out);
    int (*amd_init)(uint64_t what);
    int (*amd_end)(void);
    int (*amd_device)(uint64_t bus, void **out_device);
    int (*amd_power)(void *device, void *record);
    int (*amd_cap)(void *device, uint32_t sensor, void *record);
    int (*amd_clock)(void *device, int which, void *record);
    int (*amd_compute)(void *device, char *out, uint32_t room);
    int (*amd_memory)(void *device, char *out, uint32_t room);
};

struct hb_smi {
    struct hb_arena *arena;
    struct hb_dl *lib;
    struct calls calls;
    void *device;
    bool amd;
};

#define CALL(member) offsetof(struct calls, member)
static const struct hb_dl_bind nvml_table[] = {
    {"nvmlInit_v2", CALL(nv_init), false},
    {"nvmlShutdown", CALL(nv_end), false},
    {"nvmlDeviceGetHandleByPciBusId_v2", CALL(nv_device), false},
    {"nvmlDeviceGetPowerUsage", CALL(nv_power), false},
    {"nvmlDeviceGetEnforcedPowerLimit", CALL(nv_limit), false},
    {"nvmlDeviceGetClockInfo", CALL(nv_clock), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", CALL(nv_reasons), true},
    {0},
};
static const struct hb_dl_bind amd_table[] = {
    {"amdsmi_init", CALL(amd_init), false},
    {"amdsmi_shut_down", CALL(amd_end), false},
    {"amdsmi_get_processor_handle_from_bdf", CALL(amd_device), false},
    {"amdsmi_get_power_info", CALL(amd_power), false},
    {"amdsmi_get_power_cap_info", CALL(amd_cap), false},
    {"amdsmi_get_clock_info", CALL(amd_clock), false},
    {"amdsmi_get_gpu_compute_partition", CALL(amd_compute), true},
    {"amdsmi_get_gpu_memory_partition", CALL(amd_memory), true},
    {0},
};
static const char *const nvml_names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
static const char *const amd_names[] = {"libamd_smi.so.26", "libamd_smi.so.25", "libamd_smi.so.24",
                                        "libamd_smi.so", NULL};

/* Function in the lowest three bits; partitions of one device differ there: the first tells of all.
 */
static bool parse_bus(const char *bus, uint64_t *out)
{
    unsigned long part[3]; /* domain, bus, device */
    for (int i = 0; i < 3; i++) {
        char *end;
        part[i] = strtoul(bus, &end, 16);
        if (end == bus || (*end != ':' && *end != '.'))
            return false;
        bus = end + 1;
    }
    *out = (uint64_t)part[0] << 16 | (part[1] & 255u) << 8 | (part[2] & 31u) << 3;
    return true;
}

static int find_device(struct hb_smi *smi, const char *bus)
{
    uint64_t number;
    if (!smi->amd)
        return smi->calls.nv_device(bus, &smi->device);
    return parse_bus(bus, &number) ? smi->calls.amd_device(number, &smi->device) : -1;
}

static void end(struct hb_smi *smi)
{
    if (smi->amd)
        smi->calls.amd_end();
    else
        smi->calls.nv_end();
}

struct hb_smi *hb_smi_open(struct hb_arena *arena, const struct hb_libs *libs,
                           enum hb_vendor vendor, const char *bus, const char **out_reason)
{
    struct hb_smi *smi = hb_arena_alloc(arena, 1, sizeof *smi);
    *smi = (struct hb_smi){.arena = arena, .amd = vendor == HB_VENDOR_AMD};
    smi->lib = hb_dl_open(arena, smi->amd ? libs->folders : libs->given,
                          smi->amd ? amd_names : nvml_names, out_reason);
    if (!smi->lib)
        return NULL;
    int code = -1;
    if (hb_dl_bind(smi->lib, arena, smi->amd ? amd_table : nvml_table, &smi->calls, out_reason)) {
        code = smi->amd ? smi->calls.amd_init(AMD_INIT_GPUS) : smi->calls.nv_init();
        *out_reason = hb_arena_printf(arena, "%s does not start (%d)", hb_dl_name(smi->lib), code);
    }
    if (code == 0) {
        code = find_device(smi, bus);
        if (code == 0)
            return smi;
        end(smi);
        *out_reason = hb_arena_printf(arena, "%s does not know the device %s (%d)",
                                      hb_dl_name(smi->lib), bus, code);
    }
    hb_dl_close(smi->lib);
    return NULL;
}

static void read_nvml(const struct hb_smi *smi, struct hb_health *out)
{
    unsigned value;
    unsigned long long reasons;
    if (smi->calls.nv_power(smi->device, &value) == 0)
        out->watts = value / 1e3;
    if (smi->calls.nv_limit(smi->device, &value) == 0)
        out->limit_watts = value / 1e3;
    if (smi->calls.nv_clock(smi->device, NVML_CLOCK_SM, &value) == 0)
        out->clock_hz = value * 1e6;
    if (smi->calls.nv_clock(smi->device, NVML_CLOCK_MEM, &value) == 0)
        out->memory_hz = value * 1e6;
    if (smi->calls.nv_reasons && smi->calls.nv_reasons(smi->device, &reasons) == 0) {
        out->power_held = (reasons & power_reasons) != 0;
        out->heat_held = (reasons & heat_reasons) != 0;
    }
}

/* The first four bytes; all ones: not told. */
static double first_of(const void *record)
{
    uint32_t value;
    memcpy(&value, record, sizeof value);
    return value == UINT32_MAX ? 0 : value;
}

static void read_amd(const struct hb_smi *smi, struct hb_health *out)
{
    uint64_t record[RECORD_BYTES / sizeof(uint64_t)] = {0};
    if (smi->calls.amd_power(smi->device, record) == 0)
        out->watts = first_of(record);
    if (smi->calls.amd_cap(smi->device, 0, record) == 0 && record[0] != UINT64_MAX)
        out->limit_watts = (double)record[0] / 1e6;
    if (smi->calls.amd_clock(smi->device, AMD_CLOCK_GFX, record) == 0)
        out->clock_hz = first_of(record) * 1e6;
    if (smi->calls.amd_clock(smi->device, AMD_CLOCK_MEM, record) == 0)
        out->memory_hz = first_of(record) * 1e6;
    out->power_held = out->limit_watts > 0 && out->watts > 0.97 * out->limit_watts;
}

void hb_smi_read(struct hb_smi *smi, struct hb_health *out)
{
    *out = (struct hb_health){.watts = 0};
    if (smi->amd)
        read_amd(smi, out);
    else
        read_nvml(smi, out);
}

const char *hb_smi_partition(struct hb_smi *smi)
{
    char compute[PARTITION_BYTES] = "";
    char memory[PARTITION_BYTES] = "";
    if (!smi->calls.amd_compute || !smi->calls.amd_memory ||
        smi->calls.amd_compute(smi->device, compute, PARTITION_BYTES - 1) != 0 ||
        smi->calls.amd_memory(smi->device, memory, PARTITION_BYTES - 1) != 0)
        return "";
    return hb_arena_printf(smi->arena, "%s/%s", compute, memory);
}

void hb_smi_close(struct hb_smi *smi)
{
    if (!smi)
        return;
    end(smi);
    hb_dl_close(smi->lib);
}
