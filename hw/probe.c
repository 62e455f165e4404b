/* Choosing a back end: see probe.h. */
#include "hw/probe.h"

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "hw/probe_cpu.h"
#include "hw/probe_gpu.h"

int hb_rate_bytes(enum hb_rate rate)
{
    static const int bytes[HB_RATE_COUNT] = {
        [HB_RATE_F64] = 8, [HB_RATE_F32] = 4, [HB_RATE_TF32] = 4, [HB_RATE_BF16] = 2,
        [HB_RATE_F16] = 2, [HB_RATE_FP8] = 1, [HB_RATE_FP4] = 1,  [HB_RATE_INT8] = 1,
    };
    return bytes[rate];
}

static struct hb_probe *open_any(struct hb_env *env, const struct hb_probe_wish *wish,
                                 const char **out_reason)
{
    const char *cuda = "";
    const char *hip = "";
    struct hb_probe *p = hb_gpu_open(env, &hb_gpu_cuda, wish, &cuda);
    if (!p)
        p = hb_gpu_open(env, &hb_gpu_hip, wish, &hip);
    if (!p)
        *out_reason = hb_arena_printf(env->arena,
                                      "no device was found; for CUDA: %s; for HIP: %s; "
                                      "--backend cpu measures this machine's processor",
                                      cuda, hip);
    return p;
}

struct hb_probe *hb_probe_open(struct hb_env *env, const struct hb_probe_wish *wish,
                               const char **out_reason)
{
    if (!wish->backend)
        return open_any(env, wish, out_reason);
    if (hb_str_same(wish->backend, hb_gpu_cuda.backend))
        return hb_gpu_open(env, &hb_gpu_cuda, wish, out_reason);
    if (hb_str_same(wish->backend, hb_gpu_hip.backend))
        return hb_gpu_open(env, &hb_gpu_hip, wish, out_reason);
    return hb_cpu_open(env, out_reason);
}

void hb_probe_close(struct hb_probe *p)
{
    p->ops->close(p);
}
