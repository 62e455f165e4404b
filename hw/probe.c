/* Choosing a back end: see probe.h. */
#include "hw/probe.h"

#include <unistd.h>

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

static void list_names(struct hb_env *env, const struct hb_libs *libs, const char *const *names,
                       struct hb_str *to)
{
    bool found = false;
    bool system = false;
    for (int i = 0; names && names[i]; i++)
        for (int f = 0; libs->folders[f]; f++) {
            const char *path = hb_arena_printf(env->arena, "%s/%s", libs->folders[f], names[i]);
            system |= !*libs->folders[f];
            if (!*libs->folders[f] || access(path, F_OK) != 0)
                continue;
            hb_str_addf(to, "  %s\n", path);
            found = true;
        }
    if (names && !found)
        hb_str_addf(to, "  %s: in none of the folders%s\n", names[0],
                    system ? "; the system may know it" : "");
}

static void list_kind(struct hb_env *env, const struct hb_gpu_kind *kind,
                      const struct hb_libs *libs, struct hb_str *to)
{
    hb_str_addf(to, "%s: libraries of one version, those that fit the driver first\n",
                kind->backend);
    if (kind->driver_names)
        hb_str_addf(to, "  %s: where the system has it\n", kind->driver_names[0]);
    for (const struct hb_gpu_family *f = kind->families; f->major >= 0; f++) {
        const char *const *const lists[] = {f->runtime, f->rtc, f->blas, f->lt};
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
            if (lists[i])
                list_names(env, libs, lists[i], to);
    }
}

void hb_probe_list(struct hb_env *env, const struct hb_probe_wish *wish, struct hb_str *to)
{
    static const struct hb_gpu_kind *const kinds[] = {&hb_gpu_cuda, &hb_gpu_hip};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!wish->backend || hb_str_same(wish->backend, kinds[i]->backend))
            list_kind(env, kinds[i], wish->libs, to);
    hb_str_add(to, "folders:\n");
    for (int f = 0; wish->libs->folders[f]; f++)
        hb_str_addf(to, "  %s\n",
                    *wish->libs->folders[f] ? wish->libs->folders[f] : "where the system looks");
}

void hb_probe_close(struct hb_probe *p)
{
    p->ops->close(p);
}
