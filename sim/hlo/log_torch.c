/* What PyTorch and the trainers on top of it say, NCCL and RCCL, the drivers, TensorFlow's graph
 * executor and the host's kernel.
 * Source of the forms: c10/cuda/CUDACachingAllocator.cpp (wordings of torch 1.x, 2.1 with its
 * "capacty", 2.4, 2.9), torch/cuda/memory.py (memory_summary, memory_stats), nccl's
 * src/include/alloc.h, Megatron-LM's report_memory, torchtitan's step line, DeepSpeed's
 * see_memory_usage; logs in public issues. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"

/* The word that ends the span: "CUDA" of "torch.OutOfMemoryError: CUDA ". */
static void copy_last_word(struct hb_span s, char *text, size_t cap)
{
    while (s.end > s.at && s.end[-1] == ' ')
        s.end--;
    struct hb_span word = {s.end, s.end};
    while (word.at > s.at && word.at[-1] >= 'A' && word.at[-1] <= 'Z')
        word.at--;
    hb_span_copy(&word, "", text, cap);
}

/* A size of an exabyte is a count that was read from where no count was: collectives that went
 * out of step, or a corrupted message. */
static void take_torch(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (hb_span_starts(s, "more than 1EB")) {
        hb_form_open(r, HB_LOG_TORCH_CORRUPT);
        return;
    }
    if (!hb_span_amount(&s, 1, &amount)) {
        if (hb_span_is_absurd(s))
            hb_form_open(r, HB_LOG_CORRUPT);
        return;
    }
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    copy_last_word(place->before, m->name, sizeof m->name);
}

/* "Tried to allocate 2.00 GiB. GPU 0 has ...", the first sentence cut off or in a line before. */
static void take_tried(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    enum { NEAR = 16 }; /* not where a column of a printed log stands between */
    struct hb_span s = place->after;
    struct hb_amount amount;
    struct hb_log_message *m = hb_form_current(r, form->kind);
    bool behind = m && m->fact[HB_FACT_ASKED] < 0;
    const struct hb_log_message *said = hb_form_current(r, HB_LOG_PLAIN); /* in the line before */
    bool known = behind || hb_span_has(s, "total capac") || hb_span_has(s, "by PyTorch") ||
                 (said && said->line == hb_form_line(r) - 1);
    if (hb_span_has(hb_span_last(place->before, NEAR), "out of memory") ||
        hb_span_has(place->before, "with size larger than") || !hb_span_amount(&s, 1, &amount) ||
        !known)
        return;
    hb_form_set(behind ? m : hb_form_open(r, form->kind), HB_FACT_ASKED, amount);
}

/* "MPS backend out of memory (MPS allocated: 15.05 GB, other allocations: 11.91 GB, max allowed:
 * 27.20 GB). Tried to allocate 1.16 GB on private pool." What may be used is the capacity here. */
static void take_mps(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount held;
    struct hb_amount other;
    struct hb_amount most;
    struct hb_amount asked;
    if (!hb_span_find(&s, "MPS allocated: ") || !hb_span_amount(&s, 1, &held))
        return;
    bool others = hb_span_find(&s, "other allocations: ") && hb_span_amount(&s, 1, &other);
    bool limited = hb_span_find(&s, "max allowed: ") && hb_span_amount(&s, 1, &most);
    bool told = hb_span_find(&s, "Tried to allocate ") && hb_span_amount(&s, 1, &asked);
    struct hb_log_message *m = hb_form_open(r, form->kind);
    memcpy(m->name, "MPS", sizeof "MPS");
    if (told)
        hb_form_set(m, HB_FACT_ASKED, asked);
    hb_form_set(m, HB_FACT_ALLOCATED, held);
    hb_form_set(m, HB_FACT_RESERVED, held);
    if (!limited || !others)
        return;
    int64_t taken = hb_add_sat(held.bytes, other.bytes);
    hb_form_set(m, HB_FACT_PROCESS, (struct hb_amount){taken, held.step_bytes});
    hb_form_set(m, HB_FACT_CAPACITY, most);
    hb_form_set(m, HB_FACT_FREE,
                (struct hb_amount){most.bytes > taken ? most.bytes - taken : 0, most.step_bytes});
}

/* Intel: "Current platform can NOT allocate memory block with size larger than 4GB! Tried to
 * allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; ...)" */
static void take_largest(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount most;
    struct hb_amount asked;
    if (!hb_span_amount(&s, 1, &most))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    memcpy(m->name, "XPU", sizeof "XPU");
    hb_form_set(m, HB_FACT_ALLOWED, most);
    if (hb_span_find(&s, "Tried to allocate ") && hb_span_amount(&s, 1, &asked))
        hb_form_set(m, HB_FACT_ASKED, asked);
}

/* Apple's: "Invalid buffer size: 17.62 GB", one tensor above what Metal gives at once. */
static void take_invalid(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount asked;
    if (!hb_span_amount(&s, 1, &asked) || asked.step_bytes <= 1)
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    memcpy(m->name, "MPS", sizeof "MPS");
    hb_form_set(m, HB_FACT_ASKED, asked);
}

/* PyTorch on cudaMallocAsync: "Allocation on device 0 would exceed allowed memory. (out of
 * memory)", its figures behind it, one a line. */
static void take_exceed(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->before;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    int64_t device;
    if (hb_span_find(&s, "on device ") && hb_span_int(&s, &device))
        hb_form_set(m, HB_FACT_DEVICE, (struct hb_amount){device, 1});
}

/* "GPU 0 has a total capacity of 79.15 GiB" */
static void take_capacity(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind); /* its first sentence may be cut off */
    hb_form_set(m, HB_FACT_CAPACITY, amount);
    if (hb_span_amount_last(place->before, &amount))
        hb_form_set(m, HB_FACT_DEVICE, amount);
}

/* "Process 19239 has 14.26 GiB memory in use." */
static void take_process(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_current(r, form->kind);
    int64_t number;
    struct hb_amount amount;
    if (m && hb_span_int(&s, &number) && hb_span_starts(s, " has ") && hb_span_find(&s, " has ") &&
        hb_span_amount(&s, 1, &amount) && hb_span_starts(s, " memory in use")) {
        hb_form_add(m, HB_FACT_OTHERS, amount.bytes);
        hb_form_lower(m, HB_FACT_LEAST_OTHER, amount);
        hb_form_raise(m, HB_FACT_MOST_OTHER, amount);
    }
}

static int peak_of(int fact)
{
    return fact == HB_FACT_ALLOCATED  ? HB_FACT_PEAK_ALLOCATED
           : fact == HB_FACT_ACTIVE   ? HB_FACT_PEAK_ACTIVE
           : fact == HB_FACT_RESERVED ? HB_FACT_PEAK_RESERVED
                                      : -1;
}

/* "| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |" */
static void take_summary_row(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    hb_span_skip(&s, " ");
    if (!hb_span_starts(s, "|"))
        return;
    hb_span_skip(&s, "| ");
    struct hb_log_message *m = hb_form_join(r, form->kind); /* its head may be cut off */
    if (hb_span_amount(&s, 1, &amount))
        hb_form_set(m, form->fact, amount);
    hb_span_skip(&s, "| ");
    if (peak_of(form->fact) >= 0 && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, peak_of(form->fact), amount);
}

/* torchtitan: "memory: 49.66GiB(52.28%)", the peak of reserved memory and its share of the
 * device. */
static void take_titan(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount peak;
    struct hb_amount percent;
    if (!hb_span_amount(&s, 1, &peak) || !hb_span_starts(s, "("))
        return;
    s.at++;
    if (!hb_span_amount(&s, 1000, &percent) || !hb_span_starts(s, "%)") || percent.bytes <= 0)
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_PEAK_RESERVED, peak);
    double capacity = (double)peak.bytes * 100e3 / (double)percent.bytes;
    double blur = capacity / (double)percent.bytes * 10;
    if (capacity < 0x1p60)
        hb_form_set(m, HB_FACT_CAPACITY,
                    (struct hb_amount){(int64_t)capacity, 1 + peak.step_bytes + (int64_t)blur});
}

/* DeepSpeed: "MA 4.96 GB         Max_MA 5.09 GB         CA 6.39 GB         Max_CA 6 GB" */
static void take_deepspeed(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_span before = place->before;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_PEAK_ALLOCATED, amount);
    if (hb_span_amount_last(before, &amount))
        hb_form_set(m, HB_FACT_ALLOCATED, amount);
    if (hb_span_find(&s, " CA ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_RESERVED, amount);
    if (hb_span_find(&s, "Max_CA ") && hb_span_amount(&s, 1, &amount))
        hb_form_raise(m, HB_FACT_PEAK_RESERVED, amount);
    /* The peak is rounded to whole GB: what is reserved now may be more. */
    int64_t now = m->fact[HB_FACT_RESERVED];
    if (now > m->fact[HB_FACT_PEAK_RESERVED])
        hb_form_raise(m, HB_FACT_PEAK_RESERVED, (struct hb_amount){now, m->step[HB_FACT_RESERVED]});
}

/* "Cuda failure 'out of memory'", "Cuda failure 2 'out of memory'" */
static void take_nccl(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    hb_span_skip(&s, " 0123456789:");
    if (hb_span_starts(s, "'out of memory'") || hb_span_starts(s, "out of memory"))
        hb_form_open(r, form->kind);
}

/* "Failed to launch CUDA kernel: fusion_29 with ...: CUDA_ERROR_OUT_OF_MEMORY": what a launch takes
 * stands beside the pool. */
static void take_launch(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    if (hb_span_has(place->after, "OUT_OF_MEMORY"))
        hb_form_open(r, form->kind);
}

/* "failed to allocate 154.06GiB (165425291480 bytes) from device: HIP_ERROR_OutOfMemory" */
static void take_driver(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount) || !hb_span_has(s, "from device"))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    if (m->fact[HB_FACT_ASKED] >= 0)
        m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "from device: "))
        hb_span_copy(&s, " ,'\"\\", m->name, sizeof m->name);
}

/* "OOM when allocating tensor with shape[4,2048,128,128] and type float on ..." */
static void take_graph(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    char shape[HB_LOG_WORD_CAP];
    char type[HB_LOG_WORD_CAP];
    hb_span_skip(&s, " [");
    struct hb_span dims = s;
    hb_span_copy(&s, "]", shape, sizeof shape);
    if (shape[0] >= 'a') /* "with shape when training" */
        return;
    bool typed = hb_span_find(&s, "and type "); /* old: the shape only, mostly of floats */
    hb_span_copy(&s, " ,.'`\"\\", type, sizeof type);
    int64_t bytes = hb_form_array_bytes(dims, typed ? type : "float");
    const int64_t least = 1024;
    if (typed && bytes < 0)
        return;
    if (!typed && bytes < least) /* "shape[]" */
        bytes = -1;
    bool host = hb_span_has(s, "device:CPU") || hb_span_has(s, "host_bfc");
    struct hb_log_message *m = hb_form_open(r, host ? HB_LOG_HOST : form->kind);
    hb_form_name(m, host ? HB_LOG_REFUSED : shape);
    if (bytes >= 0)
        hb_form_set(m, HB_FACT_ASKED, (struct hb_amount){bytes, typed ? 1 : bytes});
}

#define K(kind)    HB_LOG_##kind
#define OPENS      HB_FORM_OPENS
#define ADDS       HB_FORM_ADDS
#define JOINS      HB_FORM_JOINS
#define FACT(name) HB_FACT_##name
#define BEFORE     HB_VALUE_BEFORE
#define NONE       HB_VALUE_NONE

enum { MIB = 1 << 20 };

/* "... 62.19 MiB free", where the message is cut off. */
static void take_cut_free(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    struct hb_span all = {place->before.at, place->before.end + 1}; /* with the unit's B */
    struct hb_log_message *m = hb_form_current(r, form->kind);
    struct hb_amount amount;
    if (m && hb_span_has(place->before, "already allocated") && hb_span_amount_last(all, &amount))
        hb_form_set(m, form->fact, amount);
}

static const struct hb_form rows[] = {
    {"out of memory. Tried to allocate ", K(TORCH), OPENS, .handle = take_torch},
    {"out of memory. tried to allocate ", K(TORCH), OPENS, .handle = take_torch},
    {"Tried to allocate ", K(TORCH), OPENS, .handle = take_tried},
    {"\"tried to allocate ", K(TORCH), OPENS, .handle = take_tried}, /* quoted by somebody */
    {"MPS backend out of memory ", K(TORCH), OPENS, .handle = take_mps},
    {"nvalid buffer size: ", K(TORCH), OPENS, .handle = take_invalid},
    {"block with size larger than ", K(TORCH), OPENS, .handle = take_largest},
    {" would exceed allowed memory", K(TORCH), OPENS, .handle = take_exceed},
    {"Currently allocated", K(TORCH), ADDS, .fact = FACT(ALLOCATED), .word = true},
    {"Requested", K(TORCH), ADDS, .fact = FACT(ASKED), .word = true},
    {"Device limit", K(TORCH), ADDS, .fact = FACT(CAPACITY), .word = true},
    {"Free (according to CUDA):", K(TORCH), ADDS, .fact = FACT(FREE)},
    {"Free (according to HIP):", K(TORCH), ADDS, .fact = FACT(FREE)},
    {" has a total capacity of ", K(TORCH), ADDS, .handle = take_capacity},
    {" has a total capacty of ", K(TORCH), ADDS, .handle = take_capacity},
    {" of which ", K(TORCH), ADDS, .fact = FACT(FREE)},
    {"is free", K(TORCH), ADDS, .fact = FACT(FREE), .value = BEFORE},
    {"this process has ", K(TORCH), ADDS, .fact = FACT(PROCESS)},
    {"Process ", K(TORCH), ADDS, .handle = take_process},
    {"allowed;", K(TORCH), ADDS, .fact = FACT(ALLOWED), .value = BEFORE},
    {"is allocated by PyTorch", K(TORCH), ADDS, .fact = FACT(ALLOCATED), .value = BEFORE},
    {"allocated in private pools", K(TORCH), ADDS, .fact = FACT(POOLS), .value = BEFORE},
    {"is reserved by PyTorch but unallocated", K(TORCH), ADDS, .fact = FACT(UNALLOCATED),
     .value = BEFORE},
    {"(GPU ", K(TORCH), ADDS, .fact = FACT(DEVICE)},
    {"reserved in total by pytorch", K(TORCH), ADDS, .fact = FACT(RESERVED), .value = BEFORE},
    {"(NPU ", K(TORCH), ADDS, .fact = FACT(DEVICE)},
    {"(XPU ", K(TORCH), ADDS, .fact = FACT(DEVICE)},
    {"total capacity;", K(TORCH), JOINS, .fact = FACT(CAPACITY), .value = BEFORE},
    {"total capacity", K(TORCH), ADDS, .fact = FACT(CAPACITY), .value = BEFORE}, /* cut off there */
    {"already allocated;", K(TORCH), ADDS, .fact = FACT(ALLOCATED), .value = BEFORE},
    {"free;", K(TORCH), ADDS, .fact = FACT(FREE), .value = BEFORE},
    {"free,", K(TORCH), ADDS, .fact = FACT(FREE), .value = BEFORE},
    {"B free", K(TORCH), ADDS, .fact = FACT(FREE), .handle = take_cut_free},
    /* torch 1.0: what is cached beside what is allocated */
    {"cached)", K(TORCH), ADDS, .fact = FACT(UNALLOCATED), .value = BEFORE},
    {"reserved in total by PyTorch", K(TORCH), ADDS, .fact = FACT(RESERVED), .value = BEFORE},

    {" memory summary, device ID ", K(TORCH_STATS), OPENS, .fact = FACT(DEVICE)},
    {"OOMs: ", K(TORCH_STATS), ADDS, .fact = FACT(OOMS)},
    {"Malloc retries: ", K(TORCH_STATS), ADDS, .fact = FACT(RETRIES)},
    {"Allocated memory ", K(TORCH_STATS), ADDS, .fact = FACT(ALLOCATED),
     .handle = take_summary_row},
    {"Active memory ", K(TORCH_STATS), ADDS, .fact = FACT(ACTIVE), .handle = take_summary_row},
    {"Requested memory ", K(TORCH_STATS), ADDS, .fact = FACT(REQUESTED),
     .handle = take_summary_row},
    {"GPU reserved memory ", K(TORCH_STATS), ADDS, .fact = FACT(RESERVED),
     .handle = take_summary_row},
    {"Non-releasable memory ", K(TORCH_STATS), ADDS, .fact = FACT(UNRELEASABLE),
     .handle = take_summary_row},
    {"allocated_bytes.all.current", K(TORCH_STATS), JOINS, .fact = FACT(ALLOCATED), .word = true},
    {"allocated_bytes.all.peak", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_ALLOCATED), .word = true},
    {"active_bytes.all.current", K(TORCH_STATS), JOINS, .fact = FACT(ACTIVE), .word = true},
    {"active_bytes.all.peak", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_ACTIVE), .word = true},
    {"reserved_bytes.all.current", K(TORCH_STATS), JOINS, .fact = FACT(RESERVED), .word = true},
    {"reserved_bytes.all.peak", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_RESERVED), .word = true},
    {"inactive_split_bytes.all.current", K(TORCH_STATS), ADDS, .fact = FACT(UNRELEASABLE),
     .word = true},
    {"num_alloc_retries", K(TORCH_STATS), ADDS, .fact = FACT(RETRIES), .word = true},
    {"num_ooms", K(TORCH_STATS), ADDS, .fact = FACT(OOMS), .word = true},
    {"MaxMemAllocated", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_ALLOCATED)}, /* DeepSpeed-Chat */
    {"max_memory_allocated", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_ALLOCATED)},
    {"max_memory_reserved", K(TORCH_STATS), JOINS, .fact = FACT(PEAK_RESERVED)},
    {"memory (MB) | allocated: ", K(TORCH_STATS), OPENS, .fact = FACT(ALLOCATED),
     .unit_bytes = MIB},
    {"| max allocated: ", K(TORCH_STATS), ADDS, .fact = FACT(PEAK_ALLOCATED), .unit_bytes = MIB},
    {"| reserved: ", K(TORCH_STATS), ADDS, .fact = FACT(RESERVED), .unit_bytes = MIB},
    {"| max reserved: ", K(TORCH_STATS), ADDS, .fact = FACT(PEAK_RESERVED), .unit_bytes = MIB},
    {"memory: ", K(TORCH_STATS), OPENS, .handle = take_titan, .word = true},
    {"Max_MA ", K(TORCH_STATS), OPENS, .handle = take_deepspeed},

    {"Cuda failure ", K(NCCL), OPENS, .handle = take_nccl},
    {"HIP failure ", K(NCCL), OPENS, .handle = take_nccl},
    {"ailed to CUDA calloc async", K(NCCL), JOINS, .value = NONE},

    {"failed to allocate ", K(DRIVER), OPENS, .handle = take_driver},
    {"failed to alloc ", K(DRIVER), OPENS, .handle = hb_form_request, .needs = "unified memory"},
    /* what TensorFlow found when it began */
    {"Total memory: ", K(DRIVER), JOINS, .fact = FACT(CAPACITY), .word = true},
    {"Free memory: ", K(DRIVER), JOINS, .fact = FACT(FREE), .word = true},
    {"totalMemory: ", K(DRIVER), JOINS, .fact = FACT(CAPACITY), .word = true},
    {"freeMemory: ", K(DRIVER), JOINS, .fact = FACT(FREE), .word = true},

    {"et module function:CUDA_ERROR_OUT_OF_MEMORY", K(LIBRARY), OPENS, .value = NONE},
    {"ailed to launch CUDA kernel", K(LIBRARY), OPENS, .handle = take_launch},
    {"reate cublas handle", K(LIBRARY), OPENS, .value = NONE}, /* it is refused for little else */
    {"rocblas_status_memory_error", K(LIBRARY), OPENS, .value = NONE},

    {"OOM when allocating tensor with shape", K(GRAPH), OPENS, .handle = take_graph},
    {"OOM when allocating tensor of shape", K(GRAPH), OPENS, .handle = take_graph},
};

const struct hb_forms hb_forms_torch = {rows, sizeof rows / sizeof rows[0]};
