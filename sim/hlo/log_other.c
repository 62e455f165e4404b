/* What servers of models, other runtimes (TensorRT, llama.cpp, Paddle, ONNX Runtime, Theano, CuPy),
 * the host's allocators and its kernel say.
 * Source of the forms: vllm/v1/worker (cache blocks, free memory on startup), sglang's
 * model_runner, ggml-cuda.cu, TensorRT's builder, c10's CPUAllocator.cpp, numpy's _exceptions.py,
 * ray's memory monitor, Slurm's and Kubernetes' reports, the kernel's oom_kill.c; public issues. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"

/* vLLM: "(2.50 GiB KV cache is needed, which is larger than the available KV cache memory (1.20
 * GiB)": a figure before the words, one behind. */
static void take_kv_cache(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount_last(place->before, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "available KV cache memory (") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
}

/* "Free memory on device (5.1/23.6 GiB) on startup is less than desired GPU memory utilization
 * (0.9, 21.3 GiB)", newer: "on device cuda:0 (". */
static void take_startup(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_span desired = s;
    enum { GIB = 1 << 30 };
    struct hb_amount amount;
    if (!hb_span_find(&desired, "desired GPU memory utilization (") ||
        !hb_span_find(&desired, ", ") || !hb_span_amount(&desired, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (!hb_span_find(&s, "(") || !hb_span_amount(&s, GIB, &amount))
        return;
    hb_form_set(m, HB_FACT_FREE, amount);
    hb_span_skip(&s, "/");
    if (hb_span_amount(&s, GIB, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
}

/* "Tactic Device request: 41472MB Available: 40338MB.", "Skipping tactic 3 due to insufficient
 * memory on requested size of 4294967296 detected for tactic 0x4." */
static void take_tactic(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount))
        return;
    const struct hb_log_message *open = hb_form_current(r, form->kind);
    if (open && open->fact[HB_FACT_FREE] >= 0 && form->fact == HB_FACT_FREE)
        return; /* the second line of the same tactic */
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "vailable: ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
}

static void name_message(struct hb_log_message *m, const char *name)
{
    struct hb_span s = hb_span_of(name);
    hb_span_copy(&s, "", m->name, sizeof m->name);
}

/* The figure behind the anchor, of the runtime that the row names. */
static void take_runtime(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    name_message(m, form->text);
    hb_form_set(m, HB_FACT_ASKED, amount);
}

/* "allocating 144817.04 MiB on device 0: cudaMalloc failed: out of memory" */
static void take_ggml(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->before;
    struct hb_amount amount;
    if (!hb_span_find(&s, "allocating ") || !hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    name_message(m, form->text);
    hb_form_set(m, HB_FACT_ASKED, amount);
    int64_t device;
    if (hb_span_find(&s, "on device ") && hb_span_int(&s, &device))
        hb_form_set(m, HB_FACT_DEVICE, (struct hb_amount){device, 1});
}

/* "failed to allocate CUDA0 buffer of size 151851674624": the same request, exact. */
static void take_ggml_size(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t bytes;
    if (!hb_span_has(place->before, "failed to allocate ") || !hb_span_int(&s, &bytes) ||
        !hb_size_ok(bytes))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    int64_t gap = m->fact[HB_FACT_ASKED] - bytes;
    if (m->fact[HB_FACT_ASKED] >= 0 && (gap < 0 ? -gap : gap) > m->step[HB_FACT_ASKED])
        m = hb_form_open(r, form->kind);
    name_message(m, form->text);
    m->fact[HB_FACT_ASKED] = bytes;
    m->step[HB_FACT_ASKED] = 1;
}

/* Theano: "Error allocating 71323200 bytes of device memory (out of memory). Driver report 10526720
 * bytes free and 4294770688 bytes total" */
static void take_theano(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount) || !hb_span_has(s, "of device memory"))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    name_message(m, form->text);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "Driver report ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
    if (hb_span_find(&s, "and ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
}

/* Paddle: "Out of memory error on GPU 0. Cannot allocate 512.000244MB memory on GPU 0, 15.780823GB
 * memory has been allocated and available memory is only 5.062500MB." */
static void take_paddle(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_find(&s, "Cannot allocate ") || !hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    name_message(m, form->text);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "available memory is only ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
}

/* "Out of memory: Killed process 5 (python) total-vm:49978204kB, anon-rss:12918388kB, ..." */
static void take_killed(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t kib;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    if (m->fact[HB_FACT_RESIDENT] >= 0)
        m = hb_form_open(r, form->kind);
    if (hb_span_find(&s, "anon-rss:") && hb_span_int(&s, &kib) && hb_size_ok(hb_mul_sat(kib, 1024)))
        hb_form_set(m, HB_FACT_RESIDENT, (struct hb_amount){kib * 1024, 1024});
}

/* "Killed" alone in its line, or behind a shell's "line 3: 4711 ". */
static void take_killed_word(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    struct hb_span before = place->before;
    struct hb_span after = place->after;
    hb_span_skip(&before, " \t");
    hb_span_skip(&after, " \t\r");
    while (before.end > before.at && before.end[-1] == ' ')
        before.end--;
    bool digits = before.end > before.at && before.end[-1] >= '0' && before.end[-1] <= '9';
    if ((before.at < before.end || after.at < after.end) &&
        !(digits && hb_span_has(before, "line ")))
        return;
    hb_form_join(r, form->kind);
}

/* "Reason: OOMKilled", "OOMKilled=true"; docker says "OOMKilled": false of containers that live. */
static void take_container(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    hb_span_skip(&s, "\\\"'=: ");
    if (!hb_span_starts(s, "false"))
        hb_form_join(r, form->kind);
}

/* Ray: "Memory on the node (...) where the task (...) was running was 59.49GB / 62.58GB (0.95)". */
static void take_ray(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount used;
    struct hb_amount limit;
    if (!hb_span_find(&s, "was running was ") || !hb_span_amount(&s, 1, &used))
        return;
    hb_span_skip(&s, " /");
    if (!hb_span_amount(&s, 1, &limit))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    if (m->fact[HB_FACT_ASKED] >= 0)
        m = hb_form_open(r, form->kind);
    name_message(m, "node");
    hb_form_set(m, HB_FACT_ASKED, used);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
}

/* A host allocation that was refused: "you tried to allocate 278528000 bytes", "Unable to allocate
 * 12.3 GiB for an array with shape", "failed to allocate 1900.00 MiB of pinned memory". */
static void take_host_refusal(struct hb_log_reader *r, const struct hb_form *form,
                              const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount) || (form->text && !hb_span_has(s, form->text)))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    name_message(m, "allocation");
    hb_form_set(m, HB_FACT_ASKED, amount);
}

#define K(kind)    HB_LOG_##kind
#define OPENS      HB_FORM_OPENS
#define JOINS      HB_FORM_JOINS
#define FACT(name) HB_FACT_##name
#define NONE       HB_VALUE_NONE

static const struct hb_form rows[] = {
    {"No available memory for the cache blocks", K(SERVE), OPENS, .value = NONE},
    {"larger than the maximum number of tokens that can be", K(SERVE), OPENS, .value = NONE},
    {"KV cache is needed", K(SERVE), OPENS, .handle = take_kv_cache},
    {"Free memory on device", K(SERVE), OPENS, .handle = take_startup},
    {"Not enough memory. Please try to increase --mem-fraction-static", K(SERVE), OPENS,
     .value = NONE},

    {"Device request: ", K(TACTIC), OPENS, .fact = FACT(ASKED), .handle = take_tactic},
    {"due to insufficient memory on requested size of ", K(TACTIC), OPENS, .fact = FACT(FREE),
     .handle = take_tactic},
    {"Requested amount of GPU memory (", K(RUNTIME), OPENS, .handle = take_runtime,
     .text = "TensorRT"},
    {"Requested amount of memory (", K(RUNTIME), OPENS, .handle = take_runtime, .text = "TensorRT"},
    {"allocator error allocating ", K(RUNTIME), OPENS, .handle = take_runtime, .text = "TensorRT"},
    {"OutOfMemory (Requested size was ", K(RUNTIME), OPENS, .handle = take_runtime,
     .text = "TensorRT"},
    {"Error Code 2: OutOfMemory", K(PLAIN), OPENS, .value = NONE},
    {"Cuda Error in allocate: 2", K(PLAIN), OPENS, .value = NONE},
    {"uda Runtime (out of memory)", K(PLAIN), OPENS, .value = NONE},

    {"cudaMalloc failed: out of memory", K(RUNTIME), OPENS, .handle = take_ggml,
     .text = "llama.cpp"},
    {" buffer of size ", K(RUNTIME), JOINS, .handle = take_ggml_size, .text = "llama.cpp"},
    {"Error allocating ", K(RUNTIME), OPENS, .handle = take_theano, .text = "Theano"},
    {"Out of memory error on GPU", K(RUNTIME), OPENS, .handle = take_paddle, .text = "Paddle"},
    {"Memory not available to allocate buffer: ", K(RUNTIME), OPENS, .handle = take_runtime,
     .text = "MIGraphX"},
    {"allocate memory for requested buffer of size ", K(RUNTIME), OPENS, .handle = take_runtime,
     .text = "ONNX Runtime"},

    {"Killed process ", K(HOST), JOINS, .handle = take_killed},
    {"oom-kill", K(HOST), JOINS, .value = NONE},
    {"oom_kill event", K(HOST), JOINS, .value = NONE},
    {"OOMKilled", K(HOST), JOINS, .handle = take_container},
    {"Killed", K(HOST), JOINS, .handle = take_killed_word, .word = true},
    {": Out Of Memory", K(HOST), JOINS, .value = NONE},
    {"Memory cgroup out of memory", K(HOST), JOINS, .value = NONE},
    {"is killed by signal: Killed", K(HOST), JOINS, .value = NONE},
    {"exceeded memory limit", K(HOST), JOINS, .value = NONE},
    {"node running low on memory", K(HOST), JOINS, .value = NONE},
    {"node was low on resource: memory", K(HOST), JOINS, .value = NONE},
    {"ray-oom-prevention", K(HOST), JOINS, .value = NONE},
    {"Memory on the node", K(HOST), JOINS, .handle = take_ray},
    {"(exitcode: -9)", K(HOST), JOINS, .value = NONE},
    {"exitcode  : -9", K(HOST), JOINS, .value = NONE},
    {"Signal 9 (SIGKILL) received", K(HOST), JOINS, .value = NONE},
    {"you tried to allocate ", K(HOST), OPENS, .handle = take_host_refusal},
    {"Unable to allocate ", K(HOST), OPENS, .handle = take_host_refusal, .text = "for an array"},
    {"failed to allocate ", K(HOST), OPENS, .handle = take_host_refusal, .text = "pinned memory"},
};

const struct hb_forms hb_forms_other = {rows, sizeof rows / sizeof rows[0]};
