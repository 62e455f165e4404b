/* See gpu_rtc.h. PTX is refused by a driver older than NVRTC (error 222), a cubin is not, within
 * one major version; so PTX is for devices that are newer than NVRTC alone. */
#include "hw/gpu_rtc.h"

#include <limits.h>

#include "base/arena.h"
#include "hw/gpu_kernels.h"

enum { MOST_ARCHS = 256, MOST_LOG = 1 << 20 };

/* The newest capability that this NVRTC knows and the device has; where it does not tell, the
 * device's own. */
static int find_capability(const struct hb_rtc_calls *rtc, int wanted)
{
    int archs[MOST_ARCHS];
    int count = 0;
    if (!rtc->arch_count || !rtc->archs || rtc->arch_count(&count) != 0 || count < 1 ||
        count > MOST_ARCHS || rtc->archs(archs) != 0)
        return wanted;
    int best = 0;
    for (int i = 0; i < count; i++)
        if (archs[i] <= wanted && archs[i] > best)
            best = archs[i];
    return best ? best : wanted;
}

struct form {
    const char *option; /* "": none */
    const char *name;
    bool own;
};

static struct form choose_form(struct hb_arena *arena, const struct hb_rtc_calls *rtc,
                               const struct hb_rtc_target *target)
{
    if (!target->capability)
        return (struct form){
            *target->arch ? hb_arena_printf(arena, "--offload-arch=%s", target->arch) : "",
            *target->arch ? target->arch : "the open device", false};
    int known = find_capability(rtc, target->capability);
    bool own = known == target->capability && rtc->own_size && rtc->own;
    const char *name = hb_arena_printf(arena, own ? "sm_%d" : "compute_%d", known);
    return (struct form){hb_arena_printf(arena, "--gpu-architecture=%s", name),
                         own ? name : hb_arena_printf(arena, "PTX of %s", name), own};
}

static const char *read_log(struct hb_arena *arena, const struct hb_rtc_calls *rtc, void *program)
{
    size_t bytes = 0;
    if (rtc->log_size(program, &bytes) != 0 || bytes < 2 || bytes > MOST_LOG)
        return "it tells nothing";
    char *log = hb_arena_alloc(arena, bytes + 1, 1);
    return rtc->log(program, log) == 0 && *log ? hb_arena_printf(arena, "%.400s", log)
                                               : "it tells nothing";
}

static bool read_code(struct hb_arena *arena, const struct hb_rtc_calls *rtc, void *program,
                      bool own, const char **out_bytes)
{
    size_t bytes = 0;
    int code = own ? rtc->own_size(program, &bytes) : rtc->code_size(program, &bytes);
    if (code != 0 || bytes < 1 || bytes > INT_MAX)
        return false;
    char *image = hb_arena_alloc(arena, bytes + 1, 1);
    *out_bytes = image;
    return (own ? rtc->own(program, image) : rtc->code(program, image)) == 0;
}

bool hb_rtc_build(struct hb_arena *arena, const struct hb_rtc_calls *rtc,
                  const struct hb_rtc_target *target, struct hb_rtc_image *out_image,
                  const char **out_reason)
{
    void *program = NULL;
    struct form form = choose_form(arena, rtc, target);
    if (rtc->create(&program, hb_gpu_kernels(arena), "hbmsim.c", 0, NULL, NULL) != 0) {
        *out_reason = "the run-time compiler cannot start";
        return false;
    }
    bool built = rtc->compile(program, *form.option ? 1 : 0, &form.option) == 0 &&
                 read_code(arena, rtc, program, form.own, &out_image->bytes);
    if (!built)
        *out_reason = hb_arena_printf(arena, "cannot compile the kernels (%s): %s", form.name,
                                      read_log(arena, rtc, program));
    out_image->form = form.name;
    rtc->destroy(&program);
    return built;
}
