/* Which libraries work together with this driver: see probe_gpu.h. NVIDIA's libraries run on a
 * driver of their major version or a newer one; an older driver may refuse what they make. HIP's
 * runtime is itself of the family: once one is loaded no other is tried, since two of them in one
 * process do not know of each other's memory. */
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "hw/probe_gpu.h"

static bool bind_driver(struct hb_gpu *gpu, const char *const *folders, const char *const *names,
                        const char **out_reason)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    gpu->driver_lib = hb_dl_open(arena, folders, names, out_reason);
    return gpu->driver_lib &&
           hb_dl_bind(gpu->driver_lib, arena, gpu->kind->driver_table, &gpu->calls, out_reason);
}

static bool start(struct hb_gpu *gpu, int wished, const char **out_reason)
{
    if (hb_gpu_start(gpu, wished))
        return true;
    *out_reason = gpu->probe.error;
    return false;
}

/* The compiler and the libraries for products; HIP's runtime after them, so that nothing of a
 * family that lacks something else is in the process yet. */
static bool load(struct hb_gpu *gpu, const struct hb_gpu_family *family, const char **out_reason)
{
    struct hb_arena *arena = gpu->probe.env->arena;
    gpu->rtc_lib = hb_dl_open(arena, gpu->libs->folders, family->rtc, out_reason);
    return gpu->rtc_lib &&
           hb_dl_bind(gpu->rtc_lib, arena, gpu->kind->rtc_table, &gpu->rtc, out_reason) &&
           hb_blas_load(gpu, family, out_reason) &&
           (!family->runtime || bind_driver(gpu, gpu->libs->folders, family->runtime, out_reason));
}

static bool load_kernels(struct hb_gpu *gpu, const char **out_reason)
{
    struct hb_rtc_image image;
    if (!hb_rtc_build(gpu->probe.env->arena, &gpu->rtc, &gpu->target, &image, out_reason)) {
        *out_reason =
            hb_arena_printf(gpu->probe.env->arena, "%s %s", hb_dl_name(gpu->rtc_lib), *out_reason);
        return false;
    }
    gpu->form = image.form;
    int code = gpu->calls.module_load(&gpu->module, image.bytes);
    for (int i = 0; i < HB_KERNEL_COUNT && code == 0; i++)
        code = gpu->calls.module_function(&gpu->function[i], gpu->module,
                                          hb_gpu_kernel_name((enum hb_kernel)i));
    if (code == 0)
        return true;
    *out_reason = hb_arena_printf(
        gpu->probe.env->arena, "the driver does not take the kernels of %s (%s): %s (%d)",
        hb_dl_name(gpu->rtc_lib), image.form, gpu->kind->error_text(gpu, code), code);
    return false;
}

/* What libraries take is told by free memory before and after; our workspace is not theirs. */
static bool start_products(struct hb_gpu *gpu, const char **out_reason)
{
    struct hb_probe_info *info = &gpu->probe.info;
    size_t before = 0;
    size_t after = 0;
    size_t total;
    bool told = gpu->calls.mem_info(&before, &total) == 0;
    if (!hb_blas_start(gpu, out_reason))
        return false;
    if (told && gpu->calls.mem_info(&after, &total) == 0 && before > after)
        info->library_bytes = (int64_t)(before - after) - info->own_bytes;
    if (info->library_bytes < 0)
        info->library_bytes = 0;
    return true;
}

static void tell_versions(struct hb_gpu *gpu)
{
    int major = 0;
    int minor = 0;
    gpu->rtc.version(&major, &minor);
    gpu->probe.info.driver = hb_arena_printf(
        gpu->probe.env->arena, "%s driver %d, %s %d.%d (%s)%s", gpu->kind->backend, gpu->version,
        hb_dl_name(gpu->rtc_lib), major, minor, gpu->form, hb_blas_versions(gpu));
    if (!*gpu->probe.info.arch)
        gpu->probe.info.arch = gpu->form;
}

static bool try_family(struct hb_gpu *gpu, const struct hb_gpu_family *family, int wished,
                       const char **out_reason)
{
    return load(gpu, family, out_reason) && (gpu->entered || start(gpu, wished, out_reason)) &&
           load_kernels(gpu, out_reason) && start_products(gpu, out_reason);
}

void hb_gpu_drop_family(struct hb_gpu *gpu)
{
    hb_blas_stop(gpu);
    if (gpu->module)
        gpu->calls.module_unload(gpu->module);
    gpu->module = NULL;
    hb_blas_unload(gpu);
    hb_dl_close(gpu->rtc_lib);
    gpu->rtc_lib = NULL;
    gpu->probe.info.library_bytes = 0;
}

/* Those of the driver's age and older ones, newest first; then those without a version; then newer
 * ones, the oldest of which fits best. */
static int rank(const struct hb_gpu_family *family, int driver)
{
    if (driver == 0)
        return 0;
    return family->major == 0        ? 1000
           : family->major <= driver ? driver - family->major
                                     : 1000 + family->major;
}

static const struct hb_gpu_family *next_family(const struct hb_gpu *gpu, int driver,
                                               const struct hb_gpu_family *last)
{
    const struct hb_gpu_family *best = NULL;
    for (const struct hb_gpu_family *f = gpu->kind->families; f->major >= 0; f++) {
        bool after = !last || rank(f, driver) > rank(last, driver) ||
                     (rank(f, driver) == rank(last, driver) && f > last);
        if (after && (!best || rank(f, driver) < rank(best, driver)))
            best = f;
    }
    return best;
}

/* HIP's is in the process, maybe as the compiler, which ROCm 5.2 keeps in it. */
static bool has_runtime(const struct hb_gpu *gpu)
{
    return gpu->driver_lib ||
           (gpu->rtc_lib && hb_str_starts(hb_dl_name(gpu->rtc_lib), "libamdhip64"));
}

static void add_reason(struct hb_str *all, const struct hb_gpu_family *family, const char *why)
{
    hb_str_addf(all, "%s%s: %s", all->len ? "; " : "",
                family->major ? hb_arena_printf(all->arena, "version %d", family->major)
                              : "without a version",
                why);
}

static const char *what_is_wanted(struct hb_gpu *gpu)
{
    struct hb_str s;
    hb_str_init(&s, gpu->probe.env->arena);
    hb_str_add(&s, "there is none of");
    for (const struct hb_gpu_family *f = gpu->kind->families; f->major >= 0; f++)
        hb_str_addf(&s, "%s %s", f == gpu->kind->families ? "" : ",", f->rtc[0]);
    hb_str_add(&s, " in the usual places; --libs names another");
    return s.text;
}

bool hb_gpu_find_family(struct hb_gpu *gpu, int wished, const char **out_reason)
{
    struct hb_str all;
    bool apart = gpu->kind->driver_names != NULL;
    hb_str_init(&all, gpu->probe.env->arena);
    if (apart && (!bind_driver(gpu, gpu->libs->given, gpu->kind->driver_names, out_reason) ||
                  !start(gpu, wished, out_reason)))
        return false;
    int driver = apart ? gpu->version / gpu->kind->version_unit : 0;
    const struct hb_gpu_family *f = NULL;
    while ((f = next_family(gpu, driver, f)) != NULL) {
        const char *why = "";
        if (try_family(gpu, f, wished, &why)) {
            tell_versions(gpu);
            return true;
        }
        if (!apart && has_runtime(gpu)) { /* the last word */
            *out_reason = why;
            return false;
        }
        if (gpu->rtc_lib || strstr(why, "does not load"))
            add_reason(&all, f, why);
        hb_gpu_drop_family(gpu);
    }
    *out_reason = all.len ? all.text : what_is_wanted(gpu);
    return false;
}
