/* NVML or AMD SMI: a device that draws 650 of 700 W at 1400 MHz, and is held back by its power. */
#include "tests/standin/standin.h"

#ifdef STANDIN_CUDA

int nvmlInit_v2(void)
{
    return standin_trouble("nosmi") ? 9 : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    MAY_FAIL();
    *device = (void *)&standin_trouble;
    return strcmp(bus, "0000:c1:00.0") != 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    (void)device;
    MAY_FAIL();
    *mw = 650000;
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw)
{
    (void)device;
    MAY_FAIL();
    *mw = 700000;
    return 0;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    MAY_FAIL();
    *mhz = which == 1 ? 1400 : 2000;
    return which != 1 && which != 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    MAY_FAIL();
    *reasons = 4;
    return 0;
}

#else

int amdsmi_init(uint64_t what)
{
    return what != 2 || standin_trouble("nosmi");
}

int amdsmi_shut_down(void)
{
    return 0;
}

int amdsmi_get_processor_handle_from_bdf(uint64_t bus, void **device)
{
    MAY_FAIL();
    *device = (void *)&standin_trouble;
    return bus != 0xc1 << 8;
}

int amdsmi_get_power_info(void *device, void *record)
{
    static const uint32_t watts[] = {690, 0};
    (void)device;
    MAY_FAIL();
    memcpy(record, watts, sizeof watts);
    return 0;
}

int amdsmi_get_power_cap_info(void *device, uint32_t sensor, void *record)
{
    static const uint64_t cap[] = {700000000, 0, 0, 0, 0};
    (void)device;
    MAY_FAIL();
    memcpy(record, cap, sizeof cap);
    return sensor != 0;
}

int amdsmi_get_clock_info(void *device, int which, void *record)
{
    const uint32_t clock[] = {which == 0 ? 1400 : 2000, 0, 0, 0};
    (void)device;
    MAY_FAIL();
    memcpy(record, clock, sizeof clock);
    return which != 0 && which != 4;
}

int amdsmi_get_gpu_compute_partition(void *device, char *out, uint32_t room)
{
    (void)device;
    MAY_FAIL();
    snprintf(out, room, "%s", standin_trouble("partition") ? "CPX" : "SPX");
    return 0;
}

int amdsmi_get_gpu_memory_partition(void *device, char *out, uint32_t room)
{
    (void)device;
    MAY_FAIL();
    snprintf(out, room, "%s", standin_trouble("partition") ? "NPS4" : "NPS1");
    return 0;
}
#endif
