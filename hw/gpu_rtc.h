/* The run-time compiler of a GPU, NVRTC or hipRTC: kernels become the device's own code, or what
 * its driver compiles further where the compiler does not know the device. Needs no device. */
#ifndef HB_HW_GPU_RTC_H
#define HB_HW_GPU_RTC_H

#include <stdbool.h>
#include <stddef.h>

struct hb_arena;

/* Their functions. */
struct hb_rtc_calls {
    int (*version)(int *out_major, int *out_minor);
    int (*create)(void **out_program, const char *text, const char *name, int headers,
                  const char *const *header_texts, const char *const *header_names);
    int (*compile)(void *program, int options, const char *const *texts);
    int (*code_size)(void *program, size_t *out_bytes); /* PTX; HIP's code object */
    int (*code)(void *program, char *to);
    int (*own_size)(void *program, size_t *out_bytes); /* CUDA's cubin; null before NVRTC 11.1 */
    int (*own)(void *program, char *to);
    int (*arch_count)(int *out_count); /* of NVRTC since 11.2; else null */
    int (*archs)(int *out_archs);
    int (*log_size)(void *program, size_t *out_bytes);
    int (*log)(void *program, char *to);
    int (*destroy)(void **program);
};

/* What a device runs: CUDA's compute capability x 10, or AMD's target by name. */
struct hb_rtc_target {
    int capability; /* 0: AMD */
    const char
        *arch; /* "gfx942:sramecc+:xnack-"; "": not told, hipRTC takes the device that is open */
};

struct hb_rtc_image {
    const char *bytes;
    const char *form; /* "sm_90", "PTX of compute_90", "gfx942" */
};

/* Compiles the kernels. False: *out_reason is the compiler's log. */
bool hb_rtc_build(struct hb_arena *arena, const struct hb_rtc_calls *rtc,
                  const struct hb_rtc_target *target, struct hb_rtc_image *out_image,
                  const char **out_reason);

#endif
