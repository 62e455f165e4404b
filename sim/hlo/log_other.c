/* What servers of models, other runtimes (TensorRT, llama.cpp, Paddle, ONNX Runtime, Theano, CuPy),
 * the host's allocators and its kernel say.
 * Source of the forms: vllm/v1/worker (cache blocks, free memory on startup), sglang's
 * model_runner, ggml-cuda.cu, TensorRT's builder, c10's CPUAllocator.cpp, numpy's _exceptions.py,
 * ray's memory monitor, Slurm's and Kubernetes' reports, the kernel's oom_kill.c; public issues. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"

/* "Free memory on device (5.1/23.6 GiB) on startup is less than desired GPU memory utilization
 * (0.9, 21.3 GiB)", newer: "on device cuda:0 (". */
static void take_startup(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_span desired = s;
    enum { GIB = 1 << 30 };
    struct hb_amount amount;
    if (!hb_span_find(&desired, "desired GPU memory utilization"))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    if (hb_span_starts(desired, " (") && hb_span_find(&desired, ", ") &&
        hb_span_amount(&desired, 1, &amount))
        hb_form_set(m, HB_FACT_ASKED, amount);
    if (!hb_span_find(&s, "(") || !hb_span_amount(&s, GIB, &amount))
        return;
    hb_form_set(m, HB_FACT_FREE, amount);
    hb_span_skip(&s, "/");
    if (hb_span_amount(&s, GIB, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
}

/* vLLM: "CUDA out of memory occurred when warming up sampler with 256 dummy requests." */
static void take_warm_up(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    if (!hb_span_starts(place->after, "{")) /* a source's text, before it is filled in */
        hb_form_name(hb_form_open(r, form->kind), HB_LOG_WARM_UP);
}

/* MLC: "The available single GPU memory is 4762.535 MB, which is less than the sum of model weight
 * size (4958.468 MB) and temporary buffer size (609.312 MB)." */
static void take_sum(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount there;
    struct hb_amount weights;
    struct hb_amount buffer;
    if (!hb_span_amount(&s, 1, &there) || !hb_span_find(&s, "(") ||
        !hb_span_amount(&s, 1, &weights) || !hb_span_find(&s, "(") ||
        !hb_span_amount(&s, 1, &buffer))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_FREE, there);
    hb_form_set(m, HB_FACT_ASKED,
                (struct hb_amount){hb_add_sat(weights.bytes, buffer.bytes), weights.step_bytes});
}

/* TensorFlow: the driver could not even begin on the device. */
static void take_context(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    hb_form_name(hb_form_open(r, form->kind), HB_LOG_CONTEXT);
    (void)place;
}

/* Named by the row: "Watchdog caught collective operation timeout", where a rank waited in vain. */
static void take_named(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_log_message *m = hb_form_current(r, form->kind);
    if (!m) {
        m = hb_form_open(r, form->kind);
        hb_form_name(m, form->text);
    }
    (void)place;
}

/* "Tactic Device request: 41472MB Available: 40338MB.", "Skipping tactic 3 due to insufficient
 * memory on requested size of 4294967296 detected for tactic 0x4." Some versions print MB there,
 * too: no device is short of so few bytes. */
static void take_tactic(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    const struct hb_log_message *open = hb_form_current(r, form->kind);
    if (open && open->fact[HB_FACT_FREE] >= 0) /* the second line of the same tactic */
        return;
    hb_form_request(r, form, place);
    struct hb_log_message *m = hb_form_current(r, form->kind);
    const int64_t unit = 1 << 20;
    if (m && m->fact[HB_FACT_ASKED] >= 0 && m->fact[HB_FACT_ASKED] < unit) {
        m->fact[HB_FACT_ASKED] *= unit;
        m->step[HB_FACT_ASKED] = unit;
    }
}

/* "Out of memory: Killed process 5 (python) total-vm:49978204kB, anon-rss:12918388kB, ..." */
static void take_killed(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount held;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    if (m->fact[HB_FACT_RESIDENT] >= 0)
        m = hb_form_open(r, form->kind);
    bool told = hb_span_find(&s, "anon-rss");
    hb_span_skip(&s, " :~");
    if (told && hb_span_amount(&s, 1024, &held))
        hb_form_set(m, HB_FACT_RESIDENT, held);
}

/* earlyoom: 'sending SIGTERM to process 5 uid 1000 "python3": badness 966, VmRSS 61 MiB' */
static void take_early(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    static const char *const reasons[] = {"badness ", "oom_score "};
    struct hb_span s = place->after;
    struct hb_amount held;
    if (!HB_SPAN_HAS_ANY(s, reasons))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    if (m->fact[HB_FACT_RESIDENT] >= 0)
        m = hb_form_open(r, form->kind);
    if (hb_span_find(&s, "VmRSS ") && hb_span_amount(&s, 1, &held))
        hb_form_set(m, HB_FACT_RESIDENT, held);
}

/* Spark of YARN: "2.1 GB of 2 GB physical memory used", in the line that tells that it was killed
 * or the one behind it. */
static void take_used(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span used = place->before, limit = place->before;
    struct hb_amount held, most;
    while (hb_span_find(&limit, " of "))
        used.end = limit.at - strlen(" of");
    struct hb_log_message *m = hb_form_current(r, form->kind);
    if (used.end == limit.end || !hb_span_amount_last(used, &held) ||
        !hb_span_amount(&limit, 1, &most) || held.bytes + held.step_bytes < most.bytes ||
        !(m || hb_span_has(used, "killed")))
        return;
    m = m ? m : hb_form_open(r, form->kind);
    if (m->fact[HB_FACT_ASKED] >= 0)
        return;
    hb_form_set(m, HB_FACT_ASKED, held);
    hb_form_set(m, HB_FACT_CAPACITY, most);
}

/* "Killed" alone in its line, also in bold, quoted or as "Killed: 9", or behind a shell's number of
 * the process, "line 3: 4711 ". */
static void take_killed_word(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    struct hb_span before = place->before;
    struct hb_span after = place->after;
    hb_span_skip(&before, " \t*`>");
    hb_span_skip(&after, " \t\r*`:9");
    while (before.end > before.at && before.end[-1] == ' ')
        before.end--;
    bool digits = before.end > before.at && before.end[-1] >= '0' && before.end[-1] <= '9';
    bool quoted = before.end > before.at && before.end[-1] == '"' && hb_span_starts(after, "\"");
    struct hb_span number = before;
    hb_span_skip(&number, "0123456789");
    bool job = digits && (hb_span_has(before, "line ") || number.at == number.end);
    if ((before.at < before.end || after.at < after.end) && !job && !quoted)
        return;
    hb_form_end(r, form, place);
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
    hb_form_name(m, "node");
    hb_form_set(m, HB_FACT_ASKED, used);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
}

/* Ray before 1.0: "More than 95% of the memory on node x is used (11.8 / 12.3 GB)." */
static void take_share(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    enum { GIB = 1 << 30 };
    struct hb_span s = place->after;
    struct hb_amount used;
    struct hb_amount limit;
    if (!hb_span_amount(&s, GIB, &used) || !hb_span_starts(s, " / "))
        return;
    hb_span_skip(&s, " /");
    if (!hb_span_amount(&s, 1, &limit))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, used);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
}

/* numpy before 1.18 tells the shape only: "Unable to allocate array with shape (9681, 9681) and
 * data type float64". */
static void take_array(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    char type[HB_LOG_WORD_CAP];
    hb_span_skip(&s, "(");
    struct hb_span dims = s;
    if (!hb_span_find(&s, "data type "))
        return;
    hb_span_copy(&s, " ,.'\"\\\r", type, sizeof type);
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_name(m, form->text);
    int64_t bytes = hb_form_array_bytes(dims, type);
    if (bytes >= 0)
        hb_form_set(m, HB_FACT_ASKED, (struct hb_amount){bytes, 1});
}

/* joblib's of a worker: "could be caused by a segmentation fault ... or by an excessive memory
 * usage" */
static void take_fault(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    bool memory = hb_span_has(place->after, "excessive memory usage causing");
    hb_form_join(r, memory && !hb_span_has(place->after, "SIGSEGV") ? HB_LOG_HOST : form->kind);
}

/* PyTorch's of a loader's worker, "(pid 103) exited unexpectedly", but "with exit code 1" it failed
 * by itself. */
static void take_worker(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t code = 0;
    bool told = hb_span_starts(s, " with exit code ");
    s.at += told ? sizeof " with exit code " - 1 : 0;
    if (!told || !hb_span_int(&s, &code) || code < 0 || code > 128)
        hb_form_end(r, form, place);
}

#define ONNX       "ONNX Runtime"
#define K(kind)    HB_LOG_##kind
#define OPENS      HB_FORM_OPENS
#define JOINS      HB_FORM_JOINS
#define FACT(name) HB_FACT_##name
#define NONE       HB_VALUE_NONE

static const struct hb_form rows[] = {
    {"Allocation on device", K(PLAIN), OPENS, .value = NONE}, /* PyTorch's, told by ComfyUI */
    {"odules are dispatched on the CPU", K(PLAIN), OPENS, .value = NONE}, /* Transformers' */
    {"had weights offloaded to the disk", K(PLAIN), OPENS, .value = NONE},
    {"offload_dir` to dispatch this model", K(PLAIN), OPENS, .value = NONE},
    {"No available memory for the cache blocks", K(SERVE), OPENS, .value = NONE},
    {"nsufficient space in device allocation", K(PLAIN), OPENS, .value = NONE}, /* ExLlama's */
    {"PagedKvCache must be large enough", K(SERVE), OPENS, .value = NONE},
    {"than the profiled value -", K(SERVE), OPENS, .value = NONE},
    {"tokens that can be stored in KV cache", K(SERVE), OPENS, .value = NONE},
    {"ree memory on device", K(SERVE), OPENS, .handle = take_startup},
    {"Not enough memory. Please try to increase --mem-fraction-static", K(SERVE), OPENS,
     .value = NONE},
    {"runs out of memory. Please set a smaller number for", K(SERVE), OPENS, .value = NONE},
    {"ot enough memory to handle ", K(SERVE), OPENS, .handle = take_warm_up},
    {"available single GPU memory is ", K(SERVE), OPENS, .handle = take_sum},
    {"out of memory occurred when warming up", K(SERVE), OPENS, .handle = take_warm_up},
    {"xecutor creation failed due to insufficient GPU memory", K(SERVE), OPENS, .value = NONE},
    {"component creation attempt (GiB): ", K(SERVE), HB_FORM_ADDS, .fact = FACT(FREE),
     .unit_bytes = 1 << 30},

    {"due to insufficient memory on requested size of ", K(TACTIC), OPENS, .handle = take_tactic},
    {"Tactic Device request: ", K(TACTIC), OPENS, .handle = take_tactic,
     .figures = {{"", FACT(ASKED)}, {"Available: ", FACT(FREE)}}},
    {"Error Code 2: OutOfMemory", K(PLAIN), OPENS, .value = NONE},

    {"allocating <= available failed, ", K(RUNTIME), OPENS, .handle = hb_form_request,
     .text = "Paddle", .figures = {{"", FACT(ASKED)}, {"> ", FACT(FREE)}}},
    {"ut of memory. Requested ", K(RUNTIME), OPENS, .handle = hb_form_request, .text = "CatBoost",
     .unit_bytes = 1 << 20, .needs = "Free ",
     .figures = {{"", FACT(ASKED)}, {"Free ", FACT(FREE)}}},
    {"Available memory of ", K(RUNTIME), OPENS, .handle = hb_form_request, .text = ONNX,
     .figures = {{"", FACT(FREE)}, {"requested bytes of ", FACT(ASKED)}}},
    {"Device memory : required :", K(RUNTIME), OPENS, .handle = hb_form_request, .text = "HIP",
     .figures = {{"", FACT(ASKED)}, {"free :", FACT(FREE)}, {"total :", FACT(CAPACITY)}}},
    {"- Free memory: ", K(RUNTIME), JOINS, .fact = FACT(FREE)},
    {"- Requested memory: ", K(RUNTIME), JOINS, .fact = FACT(ASKED)},
    {"out of resource: shared memory", K(TPU_SCOPED), OPENS, .handle = hb_form_request,
     .text = "shared memory",
     .needs = "limit: ", .figures = {{"equired: ", FACT(NEEDED)}, {"imit: ", FACT(CAPACITY)}}},
    {"oo many resources requested for launch", K(TPU_SCOPED), OPENS, .handle = take_named,
     .text = "shared memory"}, /* or registers */
    {"message=\"Allocation Failure", K(PLAIN), OPENS, .value = NONE},
    /* Neuron's compiler */
    {"llocated memory out of bound", K(TPU_SCOPED), OPENS, .value = NONE, .needs = "@SB"},
    {"llocated memory out of bound", K(TPU_SCOPED), OPENS, .value = NONE, .needs = "PSUM"},
    {"cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY", K(PLAIN), OPENS, .handle = take_context},

    {"Killed process ", K(HOST), JOINS, .handle = take_killed},
    /* a shell's word for it, in the languages of its users */
    {"Killed", K(HOST), JOINS, .handle = take_killed_word, .word = true},
    {"\u5df2\u6740\u6b7b", K(HOST), JOINS, .handle = take_killed_word},
    {"\u5df2\u780d\u6389", K(HOST), JOINS, .handle = take_killed_word},
    {"\u5f37\u5236\u7d42\u4e86", K(HOST), JOINS, .handle = take_killed_word},
    {"Get\u00f6tet", K(HOST), JOINS, .handle = take_killed_word},
    {"Processus arr\u00eat\u00e9", K(HOST), JOINS, .handle = take_killed_word},
    {"Terminado (killed)", K(HOST), JOINS, .handle = take_killed_word},
    {"\u0423\u0431\u0438\u0442\u043e", K(HOST), JOINS, .handle = take_killed_word},
    {": Out Of Memory", K(HOST), JOINS, .value = NONE},
    {"is killed by signal", K(HOST), JOINS, .value = NONE}, /* a fault is told by its own word */
    {") exited unexpectedly", K(HOST), JOINS, .handle = take_worker},
    {"ray-oom-prevention", K(HOST), JOINS, .value = NONE},
    {"Memory on the node", K(HOST), JOINS, .handle = take_ray},
    {" is used (", K(HOST), JOINS, .handle = take_share},
    /* YARN: "Container [pid=1,...] is running beyond virtual memory limits. Current usage: 106.2 MB
     * of 1 GB physical memory used; 5.8 GB of 2.1 GB virtual memory used. Killing container." */
    {"sending SIGTERM to process ", K(HOST), JOINS, .handle = take_early},
    {"sending SIGKILL to process ", K(HOST), JOINS, .handle = take_early},
    {" physical memory used", K(HOST), JOINS, .handle = take_used},
    {"beyond physical memory limits", K(HOST), OPENS, .handle = hb_form_request,
     .figures = {{"Current usage: ", FACT(ASKED)}, {"of ", FACT(CAPACITY)}}},
    {"beyond virtual memory limits", K(HOST), OPENS, .handle = hb_form_request,
     .figures = {{"physical memory used; ", FACT(ASKED)}, {"of ", FACT(CAPACITY)}}},
    {"beyond the 'PHYSICAL' memory limit", K(HOST), OPENS, .value = NONE},
    {"beyond the 'VIRTUAL' memory limit", K(HOST), OPENS, .value = NONE},
    {"memory: usage ", K(HOST), OPENS, .handle = hb_form_request, .needs = "failcnt",
     .figures = {{"", FACT(ASKED)}, {"limit ", FACT(CAPACITY)}}},
    {"% memory budget", K(HOST), JOINS, .value = NONE},
    {"Process memory: ", K(HOST), OPENS, .handle = hb_form_request, .text = HB_LOG_WORKER,
     .needs = "orker memory limit: ",
     .figures = {{"", FACT(ASKED)}, {"orker memory limit: ", FACT(CAPACITY)}}},
    {"insufficient shared memory", K(HOST), JOINS, .value = NONE},
    {"oomd killed ", K(HOST), JOINS, .value = NONE},
    {"SIGKILL: 9", K(HOST), JOINS, .value = NONE},
    {"signal: killed", K(HOST), JOINS, .handle = hb_form_end}, /* Go's */
    {"in object store because it is full", K(HOST), JOINS, .value = NONE},
    {"it is full. Object size is ", K(HOST), JOINS, .fact = FACT(ASKED)},
    {"otebook tried to allocate more memory than is available", K(HOST), JOINS, .value = NONE},
    {"aging file is too small", K(HOST), JOINS, .value = NONE},
    /* the systems' own numbers for it, whatever language their words are in */
    {"inError 1455", K(HOST), JOINS, .value = NONE},
    {"os error 1455", K(HOST), JOINS, .value = NONE},
    {"rror=1455", K(HOST), JOINS, .value = NONE},
    {"inError 8]", K(HOST), JOINS, .value = NONE},
    {"emory resources are available to process", K(HOST), JOINS, .value = NONE},
    {"[Errno 12]", K(HOST), JOINS, .value = NONE},
    {"os error 12)", K(HOST), JOINS, .value = NONE},
    {"ENOMEM", K(HOST), JOINS, .value = NONE, .word = true},
    {"0xC0000017", K(HOST), JOINS, .value = NONE},
    {"memory allocation of ", K(HOST), OPENS, .handle = hb_form_request, .text = HB_LOG_REFUSED,
     .needs = " bytes failed"},
    /* Paddle's allocator of the host */
    {"ail to alloc memory of ", K(HOST), OPENS, .handle = hb_form_request, .text = HB_LOG_REFUSED},
    {"requires more system memory (", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED, .figures = {{"", FACT(ASKED)}, {"available (", FACT(CAPACITY)}}},
    {"Unable to allocate ", K(HOST), OPENS, .handle = hb_form_request, .text = HB_LOG_REFUSED,
     .needs = " array with "},
    /* R, Go, Julia, Arrow, DuckDB, SGE */
    {"annot allocate vector of size ", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED},
    {"runtime: out of memory: cannot allocate ", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED},
    {"LoadError: OutOfMemoryError()", K(HOST), JOINS, .value = NONE},
    {"ERROR: OutOfMemoryError()", K(HOST), JOINS, .value = NONE},
    {"ArrowMemoryError: malloc of size ", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED},
    {"ailed to allocate data of size ", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED},
    {"mem job total ", K(HOST), OPENS, .handle = hb_form_request, .needs = " exceeded limit ",
     .figures = {{"", FACT(ASKED)}, {"exceeded limit ", FACT(CAPACITY)}}}, /* Torque */
    {"limit of h_vmem", K(HOST), JOINS, .value = NONE},
    {"limit \"h_vmem\"", K(HOST), JOINS, .value = NONE},
    {"ArrayMemoryError: Unable to allocate ", K(HOST), OPENS, .handle = hb_form_request,
     .text = HB_LOG_REFUSED},
    {"Unable to allocate array with shape ", K(HOST), OPENS, .handle = take_array,
     .text = HB_LOG_REFUSED},
    {"failed to allocate ", K(HOST), OPENS, .handle = hb_form_request, .text = HB_LOG_REFUSED,
     .needs = "pinned memory"},

    {"llegal memory access", K(FAULT), JOINS, .value = NONE},
    {"IllegalAddress", K(FAULT), JOINS, .value = NONE},
    {"ILLEGAL_ADDRESS", K(FAULT), JOINS, .value = NONE},
    {"llegal instruction was", K(FAULT), JOINS, .value = NONE},
    {"device-side assert triggered", K(FAULT), JOINS, .value = NONE},
    {"isaligned address", K(FAULT), JOINS, .value = NONE},
    {"nspecified launch failure", K(FAULT), JOINS, .value = NONE},
    {"ERROR_LAUNCH_FAILED", K(FAULT), JOINS, .value = NONE},
    {"STATUS_EXECUTION_FAILED", K(FAULT), JOINS, .value = NONE},
    {"emory access fault", K(FAULT), JOINS, .value = NONE},
    {"APERTURE_VIOLATION", K(FAULT), JOINS, .value = NONE},
    {"ncorrectable ECC", K(FAULT), JOINS, .value = NONE},
    {"DeviceLost", K(FAULT), JOINS, .value = NONE},
    {"DEVICE_LOST", K(FAULT), JOINS, .value = NONE},
    {"driver version is insufficient", K(FAULT), JOINS, .value = NONE},
    {"no kernel image is available", K(FAULT), JOINS, .value = NONE},
    {"egmentation fault", K(FAULT), JOINS, .handle = take_fault},
    {"SIGSEGV", K(FAULT), JOINS, .value = NONE},
    {"collective operation timeout", K(FAULT), JOINS, .text = HB_LOG_TIMEOUT, .handle = take_named},
    {"NCCL operations have failed or timed out", K(FAULT), JOINS, .text = HB_LOG_TIMEOUT,
     .handle = take_named},
    {"NCCL timeout", K(FAULT), JOINS, .text = HB_LOG_TIMEOUT, .handle = take_named},
    {"NCCL Timeout", K(FAULT), JOINS, .text = HB_LOG_TIMEOUT, .handle = take_named},
    {"imed out waiting ", K(FAULT), JOINS, .text = HB_LOG_TIMEOUT, .handle = take_named},
    /* the C library's, of a heap that was written over */
    {"malloc(): ", K(FAULT), JOINS, .value = NONE},
    {"free(): invalid", K(FAULT), JOINS, .value = NONE},
    {"double free or corruption", K(FAULT), JOINS, .value = NONE},
    {"orrupted size vs", K(FAULT), JOINS, .value = NONE},
    {"munmap_chunk(): ", K(FAULT), JOINS, .value = NONE},
};

const struct hb_forms hb_forms_other = {rows, sizeof rows / sizeof rows[0]};
