/* libhbmsim: will this training step fit in the accelerator's memory, what is the fastest
 * configuration that does, what would free the bytes that lack?
 *
 * Each function reads a configuration from memory, does what the command of its name does, and
 * gives back what that command prints with --json: the very bytes. Nothing is printed, no file is
 * written, the process is not ended, no signal is touched, the environment is not looked at.
 *
 * Threads: any number of calls at once, in any threads; there is no state between them. Plans use
 * GLPK: of a build of it without thread-local storage (--disable-reentrant) one call at a time
 * uses it, the others wait. A thread that uses GLPK itself loses its problems in hbmsim_plan, which
 * ends with glp_free_env.
 *
 *     struct hbmsim_input in = {.text = yaml, .text_bytes = strlen(yaml)};
 *     struct hbmsim_result *r;
 *     if (hbmsim_simulate(&in, NULL, &r) > HBMSIM_NO)
 *         fputs(hbmsim_messages(r), stderr);
 *     else
 *         printf("%lld bytes: %s\n", (long long)hbmsim_peak_bytes(r), hbmsim_verdict(r));
 *     hbmsim_free(r);
 *
 * Compile with `cc x.c $(pkg-config --cflags --libs hbmsim)`. */
#ifndef HBMSIM_H
#define HBMSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HBMSIM_API __attribute__((visibility("default")))
#else
#define HBMSIM_API
#endif

/* As the commands' exit statuses. */
enum hbmsim_status {
    HBMSIM_YES = 0,     /* it fits; a plan was found */
    HBMSIM_NO = 1,      /* answered, and the answer is no */
    HBMSIM_INPUT = 2,   /* the input is wrong: hbmsim_messages says where and what */
    HBMSIM_MACHINE = 3, /* no memory, no data files, or a fault of ours: hbmsim_messages */
};

/* YAML, JSON or another program's configuration (Hugging Face, MaxText, ...). Zero what is not
 * used. The texts are read during the call only. */
struct hbmsim_input {
    const char *text;
    size_t text_bytes;
    const char *name;     /* in messages; files that it includes are looked for beside it. Null:
                             "model.yaml" */
    const char *data_dir; /* with models/zoo and hw/db; null: where they were installed */
};

struct hbmsim_result;

/* Options are words as the command takes them, "--set=batch.global=64", "--seconds=10", "--full",
 * ended by null; null for none. `hbmsim help COMMAND` tells what they do; those that name files,
 * programs or processes are refused:
 *   simulate  --set --confidence --full --orders --rank --strict
 *   plan      --set --confidence --full --objective --budget --margin --seconds --thorough --prices
 *   sweep     --set --confidence --x --y --facet
 *   advise    --set
 *   import    --set
 *   plot      --kind --format (svg) --theme --size --scale --font --text
 *
 * The status. *out has text or messages, and is to be freed whatever the status; it is null only
 * where there was no memory at all for it (HBMSIM_MACHINE). */
HBMSIM_API int hbmsim_simulate(const struct hbmsim_input *in, const char *const *options,
                               struct hbmsim_result **out);
HBMSIM_API int hbmsim_plan(const struct hbmsim_input *in, const char *const *options,
                           struct hbmsim_result **out);
HBMSIM_API int hbmsim_sweep(const struct hbmsim_input *in, const char *const *options,
                            struct hbmsim_result **out);
HBMSIM_API int hbmsim_advise(const struct hbmsim_input *in, const char *const *options,
                             struct hbmsim_result **out);
/* Another program's configuration as one of hbmsim: key `configuration`, with what was understood,
 * assumed, not expressed. */
HBMSIM_API int hbmsim_import(const struct hbmsim_input *in, const char *const *options,
                             struct hbmsim_result **out);
/* in is the JSON of another result: its picture. */
HBMSIM_API int hbmsim_plot(const struct hbmsim_input *in, const char *const *options,
                           struct hbmsim_result **out);

/* Of a result, which may be null. Texts live until it is freed. */

/* The JSON (or picture), terminated; "" where there is none. bytes may be null. */
HBMSIM_API const char *hbmsim_text(const struct hbmsim_result *r, size_t *bytes);
/* A line for each error or warning, "model.yaml:3:5: error: ..."; "" where there are none. */
HBMSIM_API const char *hbmsim_messages(const struct hbmsim_result *r);
/* Of what was simulated, or of the plan; -1 where there is none. */
HBMSIM_API int64_t hbmsim_peak_bytes(const struct hbmsim_result *r);
HBMSIM_API double hbmsim_step_seconds(const struct hbmsim_result *r);
/* "fits", "tight", "does not fit"; "" where there is none. */
HBMSIM_API const char *hbmsim_verdict(const struct hbmsim_result *r);
HBMSIM_API void hbmsim_free(struct hbmsim_result *r);

/* As `hbmsim --version` prints it. */
HBMSIM_API const char *hbmsim_version(void);

#ifdef __cplusplus
}
#endif

#endif
