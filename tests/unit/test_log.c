/* The log reader: every form with its true figures, and text that was not meant for it: cut
 * anywhere, fed in pieces, in one line of hundreds of megabytes, with foreign bytes between. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/str.h"
#include "sim/hlo/log.h"

static struct hb_arena *arena;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

/* A text that is handed out in pieces. */
struct feed {
    const char *text;
    size_t len;
    size_t at;
    size_t piece; /* the most that is given at once */
};

static size_t give(void *context, char *text, size_t cap)
{
    struct feed *f = context;
    size_t left = f->len - f->at;
    size_t some = left < cap ? left : cap;
    if (some > f->piece)
        some = f->piece;
    memcpy(text, f->text + f->at, some);
    f->at += some;
    return some;
}

static struct hb_log *read_pieces(const char *text, size_t len, size_t piece)
{
    struct feed f = {text, len, 0, piece};
    struct hb_log *log = hb_arena_alloc(arena, 1, sizeof *log);
    hb_log_read(arena, (struct hb_log_source){give, &f}, log);
    return log;
}

static struct hb_log *read_text(const char *text)
{
    return read_pieces(text, strlen(text), SIZE_MAX);
}

static struct hb_text load_sample(const char *name)
{
    struct hb_text text;
    const char *reason;
    const char *path = hb_arena_printf(arena, "tests/golden/logs/%s.log", name);
    if (!hb_file_load(arena, path, HB_FILE_MAX_BYTES, &text, &reason))
        fail_msg("%s: %s", path, reason);
    return text;
}

static struct hb_log *read_sample(const char *name)
{
    struct hb_text text = load_sample(name);
    return read_pieces(text.text, text.len, SIZE_MAX);
}

#define GIB(x) ((int64_t)((x)*0x1p30 + 0.5))

/* The figures of the samples, as they stand in their texts. */
static const struct {
    const char *sample;
    enum hb_log_kind kind;
    enum hb_log_fact fact;
    int64_t bytes;
} figures[] = {
    {"tpu-e1000", HB_LOG_TPU, HB_FACT_NEEDED, GIB(28.58)},
    {"tpu-e1000", HB_LOG_TPU, HB_FACT_CAPACITY, GIB(15.75)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_NEEDED, GIB(63.80)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_CAPACITY, GIB(30.75)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_OVER, GIB(33.05)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_TOTAL, GIB(65.05)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_RESERVED, GIB(1.25)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_ARGUMENT, 0},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_TEMP, GIB(63.79)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_UNPADDED, GIB(63.58)},
    {"tpu-hbm", HB_LOG_TPU, HB_FACT_FRAGMENTATION, 221134193},
    {"tpu-padding", HB_LOG_TPU, HB_FACT_FRAGMENTATION, 308113572},
    {"tpu-padding", HB_LOG_TPU, HB_FACT_ARGUMENT, -1},
    {"tpu-program", HB_LOG_TPU_PROGRAM, HB_FACT_ASKED, GIB(29.49)},
    {"tpu-program", HB_LOG_TPU_PROGRAM, HB_FACT_FREE, 154811761},
    {"tpu-program", HB_LOG_TPU_BUFFER, HB_FACT_ASKED, 8 << 20},
    {"tpu-program", HB_LOG_TPU_BUFFER, HB_FACT_FREE, 6742344},
    {"tpu-other", HB_LOG_TPU, HB_FACT_TENSORCORE, GIB(34.82)},
    {"tpu-other", HB_LOG_TPU, HB_FACT_SPARSECORE, GIB(174.10)},
    {"tpu-other", HB_LOG_TPU, HB_FACT_CAPACITY, GIB(95.74)},
    {"tpu-other", HB_LOG_TPU_ALLOC, HB_FACT_ASKED, 107374182400},
    {"tpu-other", HB_LOG_TPU_ALLOC, HB_FACT_CAPACITY, 17179869184},
    {"tpu-other", HB_LOG_TPU_SCOPED, HB_FACT_NEEDED, 134217728},
    {"ocean-gpu", HB_LOG_REMAT, HB_FACT_TARGET, 11429599132},
    {"ocean-gpu", HB_LOG_REMAT, HB_FACT_REACHED, 62817533356},
    {"ocean-gpu", HB_LOG_REMAT, HB_FACT_ORIGINAL, 65919097928},
    {"ocean-gpu", HB_LOG_XLA_ALLOC, HB_FACT_ASKED, 51712165888},
    {"ocean-gpu", HB_LOG_BFC, HB_FACT_ASKED, 51712165888},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_ALLOCS, 41},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_IN_USE, 21894366976},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_PEAK, 28943843072},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_LARGEST, 7049475840},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_LIMIT, 31804391424},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_RESERVABLE, -1},
    {"ocean-gpu", HB_LOG_STATS, HB_FACT_POOL, 31804391424},
    {"ocean-tpu", HB_LOG_STATS, HB_FACT_ALLOCS, 44},
    {"ocean-tpu", HB_LOG_STATS, HB_FACT_IN_USE, GIB(2.648)},
    {"ocean-tpu", HB_LOG_STATS, HB_FACT_RESERVABLE, GIB(28.763)},
    {"ocean-tpu", HB_LOG_STATS, HB_FACT_POOL, -1},
    {"ocean-tpu", HB_LOG_TPU, HB_FACT_OVER, GIB(183.92)},
    {"rocm-buffers", HB_LOG_DRIVER, HB_FACT_ASKED, 165425291480},
    {"rocm-buffers", HB_LOG_XLA_ALLOC, HB_FACT_ASKED, 165425291480},
    {"rocm-buffers", HB_LOG_BUFFERS, HB_FACT_TOTAL, GIB(192.84)},
    {"rocm-buffers", HB_LOG_BUFFERS, HB_FACT_FRAGMENTATION, GIB(9.71)},
    {"rocm-buffers", HB_LOG_BUFFERS, HB_FACT_CONSTANT, 25190},
    {"gemma-logits", HB_LOG_BFC, HB_FACT_ASKED, 2110783744},
    {"gemma-logits", HB_LOG_XLA_ALLOC, HB_FACT_ASKED, 2110783616},
    {"gemma-logits", HB_LOG_BUFFERS, HB_FACT_FRAGMENTATION, 112},
    {"maxtext", HB_LOG_MAXTEXT, HB_FACT_TOTAL, GIB(59.8)},
    {"maxtext", HB_LOG_MAXTEXT, HB_FACT_OUTPUT, GIB(14.6)},
    {"maxtext", HB_LOG_MAXTEXT, HB_FACT_TEMP, GIB(45.1)},
    {"maxtext", HB_LOG_MAXTEXT, HB_FACT_ARGUMENT, GIB(14.6)},
    {"maxtext", HB_LOG_MAXTEXT, HB_FACT_HOST_TEMP, 0},
    {"maxtext-estimated", HB_LOG_MAXTEXT, HB_FACT_TOTAL, GIB(59.8)},
    {"maxtext-estimated", HB_LOG_MAXTEXT, HB_FACT_OUTPUT, GIB(14.6)},
    {"maxtext-estimated", HB_LOG_MAXTEXT, HB_FACT_TEMP, GIB(45.1)},
    {"maxtext-estimated", HB_LOG_MAXTEXT, HB_FACT_ARGUMENT, GIB(14.6)},
    {"maxtext-estimated", HB_LOG_MAXTEXT, HB_FACT_HOST_TEMP, 0},
    {"multihost-load", HB_LOG_XLA_ALLOC, HB_FACT_ASKED, GIB(62.62)},
    {"multihost-tpu", HB_LOG_TPU, HB_FACT_NEEDED, GIB(32.55)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_ASKED, GIB(2)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_CAPACITY, GIB(79.15)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_FREE, GIB(1.04)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_PROCESS, GIB(78.10)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_ALLOCATED, GIB(70.12)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_UNALLOCATED, GIB(6.50)},
    {"torch-fragmented", HB_LOG_TORCH, HB_FACT_DEVICE, 0},
    {"torch-1x", HB_LOG_TORCH, HB_FACT_ASKED, 786 << 20},
    {"torch-1x", HB_LOG_TORCH, HB_FACT_CAPACITY, GIB(31.74)},
    {"torch-1x", HB_LOG_TORCH, HB_FACT_ALLOCATED, GIB(28.82)},
    {"torch-1x", HB_LOG_TORCH, HB_FACT_RESERVED, GIB(29.97)},
    {"torch-hip", HB_LOG_TORCH, HB_FACT_UNALLOCATED, GIB(7.10)},
    {"torch-shared", HB_LOG_TORCH, HB_FACT_UNALLOCATED, GIB(1)},
    {"torch-shared", HB_LOG_TORCH, HB_FACT_OTHERS, GIB(14.26)},
    {"torch-limit", HB_LOG_TORCH, HB_FACT_ALLOWED, GIB(1.05)},
    {"torch-limit", HB_LOG_TORCH, HB_FACT_POOLS, 17 << 20},
    {"torch-giant", HB_LOG_TORCH, HB_FACT_ASKED, GIB(130206.04)},
    {"torch-summary", HB_LOG_TORCH_STATS, HB_FACT_PEAK_ALLOCATED, (int64_t)4877 << 20},
    {"torch-summary", HB_LOG_TORCH_STATS, HB_FACT_PEAK_RESERVED, (int64_t)12420 << 20},
    {"torch-summary", HB_LOG_TORCH_STATS, HB_FACT_OOMS, 1},
    {"torch-summary", HB_LOG_TORCH_STATS, HB_FACT_RETRIES, 1},
    {"nccl", HB_LOG_NCCL, HB_FACT_ASKED, 6291456},
    {"megatron", HB_LOG_TORCH_STATS, HB_FACT_PEAK_ALLOCATED, 13218414080},
    {"torchtitan", HB_LOG_TORCH_STATS, HB_FACT_PEAK_RESERVED, GIB(49.66)},
    {"deepspeed", HB_LOG_TORCH_STATS, HB_FACT_ALLOCATED, GIB(4.89)},
    {"deepspeed", HB_LOG_TORCH_STATS, HB_FACT_PEAK_ALLOCATED, GIB(5.55)},
    {"deepspeed", HB_LOG_TORCH_STATS, HB_FACT_RESERVED, GIB(6.39)},
    {"deepspeed", HB_LOG_TORCH_STATS, HB_FACT_PEAK_RESERVED, GIB(6.39)},
    {"cuda-async", HB_LOG_REMAT, HB_FACT_REACHED, 376197049916},
    {"cuda-async", HB_LOG_ASYNC, HB_FACT_ASKED, 281923031072},
    {"cuda-async", HB_LOG_ASYNC, HB_FACT_FREE, 18801229824},
    {"cuda-async", HB_LOG_ASYNC, HB_FACT_CAPACITY, 197890015232},
    {"tf-graph", HB_LOG_GRAPH, HB_FACT_ASKED, (int64_t)4 * 2048 * 128 * 128 * 4},
    {"tf-graph", HB_LOG_BFC_DUMP, HB_FACT_POOL, 1148427008},
    {"jax-memory-stats", HB_LOG_STATS, HB_FACT_LARGEST_FREE, 14555338240},
    {"jax-memory-stats", HB_LOG_STATS, HB_FACT_RESERVED, 66560},
    {"memory-analysis", HB_LOG_ANALYSIS, HB_FACT_TEMP, 6979321856},
    {"memory-analysis", HB_LOG_ANALYSIS, HB_FACT_TOTAL, 10200547328},
    {"memory-analysis", HB_LOG_ANALYSIS, HB_FACT_HOST_TEMP, 0},
    {"synthetic-bfc-fragmented", HB_LOG_BFC_DUMP, HB_FACT_FREE, GIB(6)},
    {"synthetic-bfc-fragmented", HB_LOG_BFC_DUMP, HB_FACT_LARGEST_FREE, GIB(3)},
    {"synthetic-bfc-fragmented", HB_LOG_BFC_DUMP, HB_FACT_BIN_FREE, GIB(6)},
    {"synthetic-bfc-fragmented", HB_LOG_BFC_DUMP, HB_FACT_FREE_CHUNKS, 3},
    {"synthetic-bfc-new", HB_LOG_BFC_DUMP, HB_FACT_FREE, GIB(9.5)},
    {"synthetic-bfc-new", HB_LOG_BFC_DUMP, HB_FACT_LARGEST_FREE, GIB(9.25)},
    {"synthetic-escaped", HB_LOG_TPU, HB_FACT_NEEDED, GIB(17.62)},
    {"synthetic-escaped", HB_LOG_TPU, HB_FACT_ARGUMENT, GIB(13)},
    {"synthetic-escaped", HB_LOG_TPU, HB_FACT_ALIAS, GIB(12.9)},
};

enum { FIGURES = sizeof figures / sizeof figures[0] };

static void samples_have_their_figures(void **state)
{
    (void)state;
    for (size_t i = 0; i < FIGURES; i++) {
        struct hb_log *log = read_sample(figures[i].sample);
        int64_t got = hb_log_fact(log, figures[i].kind, figures[i].fact);
        if (got != figures[i].bytes)
            fail_msg("%s: %s.%s is %lld, not %lld", figures[i].sample,
                     hb_log_kind_key(figures[i].kind), hb_log_fact_key(figures[i].fact),
                     (long long)got, (long long)figures[i].bytes);
    }
}

static void messages_without_figures_are_seen(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum hb_log_kind kind;
    } cases[] = {
        {"HIP driver error 'hipErrorOutOfMemory' (2)", HB_LOG_PLAIN},
        {"RuntimeError: CUDA error: out of memory", HB_LOG_PLAIN},
        {"RuntimeError: HIP error: out of memory", HB_LOG_PLAIN},
        {"x HIP_ERROR: out of memory y", HB_LOG_PLAIN},
        {"CUDA out of memory. Tried to allocate more than 1EB memory.", HB_LOG_TORCH_CORRUPT},
        {"n:1:2 [0] enqueue.cc:43 NCCL WARN Cuda failure 'out of memory'", HB_LOG_NCCL},
        {"n:1:2 [0] enqueue.cc:43 NCCL WARN Cuda failure 2 'out of memory'", HB_LOG_NCCL},
        {"n:1:2 [0] enqueue.cc:43 NCCL WARN HIP failure 'out of memory'", HB_LOG_NCCL},
        {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
         HB_LOG_LIBRARY},
        {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", HB_LOG_LIBRARY},
        {"rocblas_status_memory_error", HB_LOG_LIBRARY},
        {"Out of memory: Killed process 123 (python) total-vm:1kB", HB_LOG_HOST},
        {"DataLoader worker (pid 12) is killed by signal: Killed.", HB_LOG_HOST},
        {"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0", HB_LOG_HOST},
        {"Out of memory while trying to allocate lots", HB_LOG_ANY},
        {"Error out of memory at line 88 in file ops.cu", HB_LOG_ANY},
        {"the arena is full: Buffer allocation failed", HB_LOG_ANY},
        {"std::bad_alloc", HB_LOG_HOST},
        {"mmap: Cannot allocate memory", HB_LOG_HOST},
        {"Container killed, exit code 137", HB_LOG_HOST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_log *log = read_text(cases[i].text);
        assert_true(hb_log_seen(log, cases[i].kind));
        assert_int_equal(log->message[cases[i].kind].line, 1);
    }
}

/* What was asked and what there was, around words that no form knows. */
static void figures_stand_around_any_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t asked;
        int64_t free_bytes;
    } cases[] = {
        {"insufficient memory: requested 8192 bytes, available 4096 bytes", 8192, 4096},
        {"widget: could not allocate 2.00 GiB of device memory (512.00 MiB free)", 2147483648,
         536870912},
        {"OUT_OF_DEVICE_MEMORY: size=1048576", 1048576, -1},
        {"failed to allocate memory for torch.Size([2, 8]), torch.float16", 32, -1},
        {"not enough memory for a buffer of 4096x4096", -1, -1},
        {"out of memory at line 88", -1, -1},
        {"OutOfMemoryError: 3 GB free, 6GB requested", 6LL << 30, 3LL << 30},
        {"memory limit exceeded: needs 24 GiB (16 GiB at most)", 24LL << 30, 16LL << 30},
        {"cannot reserve 4096 MiB of memory: 2.5 GiB of 8 GiB are left", 4LL << 30, 5LL << 29},
        {"memory allocation failed, batch of 4096 samples and 2 GB/s", -1, -1},
        {"ran out of memory: 5 GiB + 3 GiB requested", -1, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_log *log = read_text(cases[i].text);
        enum hb_log_kind kind = cases[i].asked >= 0 ? HB_LOG_RUNTIME : HB_LOG_ANY;
        assert_true(hb_log_seen(log, kind));
        assert_int_equal(hb_log_fact(log, kind, HB_FACT_ASKED), cases[i].asked);
        assert_int_equal(hb_log_fact(log, kind, HB_FACT_FREE), cases[i].free_bytes);
    }
    assert_true(hb_log_seen(read_text("Allocation failed: size 4503599627370496000 of a tensor"),
                            HB_LOG_CORRUPT));
    /* A line that a form knows is no other refusal besides. */
    assert_false(
        hb_log_seen(read_text("Out of memory while trying to allocate 512 bytes."), HB_LOG_ANY));
}

/* Words of a message that are no message. */
static void other_text_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "Limit: 5\nInUse: many\n",
        "Cuda failure 'invalid resource handle'",
        "the model failed to allocate 3 workers",
        "CompiledMemoryStats(x)",
        "memory: 12.3\n",
        "Allocator (GPU_0_bfc) is happy",
        "program 5.00G arguments 3.00G reserved 2.00G",
        "Size: 5.00G\nShape: f32[2]\n",
        "If you see out of memory, try a smaller batch",
        "please leave some memory to avoid out of memory",
        "can no longer trigger an out-of-bounds memory read",
        "an out-of-memory log or a memory snapshot",
        "uses 256KB chunks of memory, so it can't detect anything",
        "Don't malloc megs of unused memory",
        "Fix possible memory leak when GlobalAlloc() fails",
        "much better on low-memory systems",
        "Allocation of 93763584 exceeds 10% of free system memory.",
        "Attempting to allocate 8.00M.",
        "Stats: \nAllocatorStats\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(read_text(texts[i])->kinds_seen, 0);
    assert_int_equal(read_sample("nothing")->kinds_seen, 0);
    assert_int_equal(read_sample("nothing")->lines, 3);
}

static void lists_have_their_entries(void **state)
{
    (void)state;
    const struct hb_log_message *m = &read_sample("rocm-buffers")->message[HB_LOG_BUFFERS];
    assert_int_equal(m->item_count, 3);
    assert_int_equal(m->items[1].bytes, GIB(38.10));
    assert_string_equal(m->items[1].shape, "f32[256,6321,6321]");
    assert_string_equal(m->items[1].source, "/opt/miniconda3/bin/colabfold_batch:8");
    assert_string_equal(m->items[2].label, "custom-call");
    m = &read_sample("tpu-padding")->message[HB_LOG_TPU];
    assert_int_equal(m->item_count, 1);
    assert_int_equal(m->items[0].padding_bytes, GIB(31));
    assert_string_equal(m->items[0].op, "slicewise_79/cic_update/FloorMod");
    assert_string_equal(m->items[0].label, "copy.40488");
    assert_string_equal(m->items[0].type, "HLO temp");
    m = &read_sample("gemma-logits")->message[HB_LOG_BUFFERS];
    assert_int_equal(m->item_count, 4);
    assert_string_equal(m->items[2].type, "argument");
    assert_string_equal(m->items[2].shape, "f16[2048,257152]");
    m = &read_sample("synthetic-escaped")->message[HB_LOG_TPU];
    assert_int_equal(m->item_count, 1);
    assert_string_equal(m->items[0].op, "jit(train_step)/jvp(Model)/lm_head/dot_general");
    assert_string_equal(m->items[0].source, "/w/model.py:88");
}

static void long_lists_are_counted_and_cut(void **state)
{
    (void)state;
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_add(&s, "BufferAssignment stats:\n parameter allocation: 1.00GiB\n"
                   " total allocation: 2.00GiB\nPeak buffers:\n");
    for (int i = 0; i < 1000; i++)
        hb_str_addf(&s, "\tBuffer %d:\n\t\tSize: %dB\n\t\tShape: f32[%d]\n", i, i, i);
    const struct hb_log_message *m = &read_text(s.text)->message[HB_LOG_BUFFERS];
    assert_int_equal(m->item_count, HB_LOG_ITEMS);
    assert_int_equal(m->items_seen, 1000);
    assert_string_equal(m->items[HB_LOG_ITEMS - 1].shape, "f32[47]");
}

/* What stands before a message, or around it, changes nothing. */
static void prefixes_do_not_matter(void **state)
{
    (void)state;
    static const char *const prefixes[] = {
        "2025-08-02 23:46:25.965629: W external/xla/xla/hlo.cc:3423] ",
        "W0000 00:00:1756998431.440298    5182 hlo_rematerialization.cc:3183] ",
        "[rank3]: ",
        "│   ",
        "\x1b[36m(worker pid=123, ip=10.0.0.1)\x1b[0m ",
        "{\"msg\": \"",
        "> > ",
    };
    static const char body[] =
        "Can't reduce memory use below 10.64GiB (11429599132 bytes) by rematerialization; only "
        "reduced to 58.50GiB (62817533356 bytes), down from 61.39GiB (65919097928 bytes) "
        "originally";
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        struct hb_log *log = read_text(hb_arena_printf(arena, "%s%s\"}\n", prefixes[i], body));
        assert_int_equal(hb_log_fact(log, HB_LOG_REMAT, HB_FACT_REACHED), 62817533356);
        assert_int_equal(hb_log_fact(log, HB_LOG_REMAT, HB_FACT_ORIGINAL), 65919097928);
    }
}

static bool is_same(const struct hb_log *a, const struct hb_log *b)
{
    for (int k = 0; k < HB_LOG_KIND_COUNT; k++) {
        const struct hb_log_message *x = &a->message[k];
        const struct hb_log_message *y = &b->message[k];
        if (x->times != y->times)
            return false;
        if (x->times && (memcmp(x->fact, y->fact, sizeof x->fact) != 0 || x->line != y->line ||
                         strcmp(x->name, y->name) != 0 || x->item_count != y->item_count))
            return false;
    }
    return a->lines == b->lines && memcmp(a->setting, b->setting, sizeof a->setting) == 0;
}

/* Names of all samples. */
static const char *const *sample_names(void)
{
    return hb_file_list(arena, "tests/golden/logs", ".log");
}

/* As terminals, pagers and loggers leave them: coloured, broken in words' places. */
static void broken_and_coloured_lines_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x\n\033[31m[rank3]:\033[0m torch.OutOfMemoryError: \033[1mCUDA out of memory.\033[0m "
        "Tried "
        "to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.04 GiB is free. "
        "Of the allocated memory 70.12 GiB is allocated by PyTorch, and 6.50 GiB is reserved by "
        "PyTorch but unallocated.\n",
        "x\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n[rank3]: 2.00 "
        "GiB. "
        "GPU 3 has a total capacity of 79.15 GiB of which 1.04 GiB is\r\n[rank3]: free. Of the "
        "allocated memory 70.12 GiB is allocated by PyTorch, and 6.50\n[rank3]: GiB is reserved by "
        "PyTorch but unallocated. \n[rank3]: done\n",
        "x\nCUDA out of memory. Tried to\n    allocate 2.00 GiB. GPU 3 has a total\n    capacity "
        "of "
        "79.15 GiB of which 1.04 GiB is free. Of the\n    allocated memory 70.12 GiB is allocated "
        "by "
        "PyTorch,\n    and 6.50 GiB is reserved by PyTorch but unallocated.",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct hb_log *log = read_text(texts[i]);
        const struct hb_log_message *m = &log->message[HB_LOG_TORCH];
        assert_int_equal(m->times, 1);
        assert_int_equal(m->line, 2);
        assert_int_equal(m->fact[HB_FACT_ASKED], GIB(2));
        assert_int_equal(m->fact[HB_FACT_CAPACITY], GIB(79.15));
        assert_int_equal(m->fact[HB_FACT_FREE], GIB(1.04));
        assert_int_equal(m->fact[HB_FACT_ALLOCATED], GIB(70.12));
    }
    const struct hb_log *log = read_text(
        "RESOURCE_EXHAUSTED: Out of memory while trying to\nallocate 51712165888 bytes.\n"
        "CUDA out of memory. Tried to allocate\nCUDA out of memory. Tried to allocate\n1.00 GiB\n\n"
        "Can't reduce memory use below -19.53GiB (-20970979328 bytes) by rematerialization; only "
        "reduced to 52.22GiB (56070242304 bytes)\n");
    assert_int_equal(hb_log_fact(log, HB_LOG_XLA_ALLOC, HB_FACT_ASKED), 51712165888);
    assert_int_equal(hb_log_fact(log, HB_LOG_TORCH, HB_FACT_ASKED), GIB(1));
    assert_int_equal(log->message[HB_LOG_TORCH].line, 4);
    assert_int_equal(hb_log_fact(log, HB_LOG_REMAT, HB_FACT_TARGET), -1);
    assert_int_equal(hb_log_fact(log, HB_LOG_REMAT, HB_FACT_REACHED), 56070242304);
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    for (const char *const *name = sample_names(); *name; name++) {
        struct hb_text text = load_sample(*name);
        struct hb_log *whole = read_pieces(text.text, text.len, SIZE_MAX);
        for (size_t piece = 1; piece < 200; piece = piece * 3 + 1)
            assert_true(is_same(whole, read_pieces(text.text, text.len, piece)));
    }
}

/* Under the sanitizers: nothing is read beyond the end, wherever that is. */
static void text_may_end_anywhere(void **state)
{
    (void)state;
    for (const char *const *name = sample_names(); *name; name++) {
        struct hb_text text = load_sample(*name);
        for (size_t len = 0; len < text.len; len++) {
            struct hb_arena_mark mark = hb_arena_mark(arena);
            char *cut = malloc(len + 1); /* its end is the end of what may be read */
            assert_non_null(cut);
            memcpy(cut, text.text, len);
            struct hb_log *log = read_pieces(cut, len, SIZE_MAX);
            assert_int_equal(log->bytes, (int64_t)len);
            free(cut);
            hb_arena_rewind(arena, mark);
        }
    }
}

/* NUL and other bytes between the lines, and a message that follows. */
static void foreign_bytes_are_passed_over(void **state)
{
    (void)state;
    struct hb_text text = load_sample("torch-fragmented");
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        hb_str_addn(&s, &byte, 1);
        hb_str_addn(&s, "\0\0\n\xff", 4);
    }
    hb_str_addn(&s, text.text, text.len);
    struct hb_log *log = read_pieces(s.text, s.len, 4096);
    assert_int_equal(hb_log_fact(log, HB_LOG_TORCH, HB_FACT_ALLOCATED), GIB(70.12));
    assert_int_equal(log->rank_count, 1);
}

/* A source of len bytes without a line break, message at the places given. */
struct stream {
    size_t len;
    size_t at;
    size_t places[4];
    const char *message;
};

static size_t give_stream(void *context, char *text, size_t cap)
{
    struct stream *s = context;
    size_t some = s->len - s->at < cap ? s->len - s->at : cap;
    size_t len = strlen(s->message);
    memset(text, 'x', some);
    for (int i = 0; i < 4; i++)
        for (size_t k = 0; k < len; k++)
            if (s->places[i] + k >= s->at && s->places[i] + k < s->at + some)
                text[s->places[i] + k - s->at] = s->message[k];
    s->at += some;
    return some;
}

/* Also across the borders of the reader's window. */
static void lines_may_have_any_length(void **state)
{
    (void)state;
    struct stream s = {.len = (size_t)96 << 20,
                       .message = "Out of memory while trying to allocate 51712165888 bytes."};
    s.places[0] = 0;
    s.places[1] = 1000003;
    s.places[2] = (size_t)50 << 20;
    s.places[3] = s.len - strlen(s.message);
    struct hb_log *log = hb_arena_alloc(arena, 1, sizeof *log);
    struct hb_arena *own = hb_arena_new();
    hb_log_read(own, (struct hb_log_source){give_stream, &s}, log);
    assert_int_equal(log->message[HB_LOG_XLA_ALLOC].times, 4);
    assert_int_equal(hb_log_fact(log, HB_LOG_XLA_ALLOC, HB_FACT_ASKED), 51712165888);
    assert_int_equal(log->lines, 1);
    assert_true(hb_arena_held_bytes(own) < (size_t)1 << 20);
    hb_arena_free(own);
}

static void borders_of_the_window_do_not_matter(void **state)
{
    (void)state;
    static const char message[] = "Out of memory while trying to allocate 51712165888 bytes.";
    enum { WINDOW = 1 << 16, AHEAD = 4096 };
    static const size_t borders[] = {WINDOW - AHEAD, WINDOW, 2 * (WINDOW - AHEAD)};
    for (size_t b = 0; b < sizeof borders / sizeof borders[0]; b++)
        for (size_t back = 0; back <= sizeof message + 2; back++) {
            struct hb_arena_mark mark = hb_arena_mark(arena);
            struct stream s = {.len = 200000, .message = message};
            for (int i = 0; i < 4; i++)
                s.places[i] = borders[b] + 2 - back;
            struct hb_log *log = hb_arena_alloc(arena, 1, sizeof *log);
            hb_log_read(arena, (struct hb_log_source){give_stream, &s}, log);
            assert_int_equal(log->message[HB_LOG_XLA_ALLOC].times, 1);
            hb_arena_rewind(arena, mark);
        }
}

static void which_of_several_is_kept(void **state)
{
    (void)state;
    struct hb_log *log = read_text(
        "only reduced to 1.00GiB\n" /* nothing has begun */
        "Can't reduce memory use below 1.00GiB by rematerialization; only reduced to 4.00GiB\n"
        "Can't reduce memory use below 1.00GiB by rematerialization; only reduced to 9.00GiB\n"
        "Can't reduce memory use below 1.00GiB by rematerialization; only reduced to 2.00GiB\n"
        "Out of memory while trying to allocate 5 bytes.\n"
        "Out of memory while trying to allocate 3 bytes.\n"
        "CUDA out of memory. Tried to allocate 1.00 GiB.\n"
        "CUDA out of memory. Tried to allocate 7.00 GiB.\n");
    assert_int_equal(log->message[HB_LOG_REMAT].times, 3);
    assert_int_equal(log->message[HB_LOG_REMAT].line, 3);
    assert_int_equal(hb_log_fact(log, HB_LOG_REMAT, HB_FACT_REACHED), GIB(9));
    assert_int_equal(hb_log_fact(log, HB_LOG_XLA_ALLOC, HB_FACT_ASKED), 3);
    assert_int_equal(hb_log_fact(log, HB_LOG_TORCH, HB_FACT_ASKED), GIB(1));
    log = read_text("Out of memory while trying to allocate 5 bytes. [executable_name='jit_f']\n"
                    "Out of memory while trying to allocate 5 bytes.\n");
    assert_string_equal(log->message[HB_LOG_XLA_ALLOC].name, "jit_f");
}

static void a_request_is_taken_exactly_where_told(void **state)
{
    (void)state;
    assert_int_equal(hb_log_asked(read_sample("cuda-async"), HB_LOG_XLA_ALLOC), 281923031072);
    assert_int_equal(hb_log_asked(read_sample("gemma-logits"), HB_LOG_XLA_ALLOC), 2110783616);
    assert_int_equal(hb_log_asked(read_sample("multihost-load"), HB_LOG_XLA_ALLOC), GIB(62.62));
    assert_int_equal(hb_log_asked(read_sample("nothing"), HB_LOG_XLA_ALLOC), -1);
}

/* What stands behind a line's end is found; the line is where the sentence begins. */
static void wrapped_sentences_are_read(void **state)
{
    (void)state;
    static const char text[] =
        "Hello.\n"
        "We moved it to the card of a colleague, which is older than ours by several%s"
        "years, and now it stops as soon as it begins: out of memory. Memory on the%s"
        "node was 31.20GB / 32.00GB (0.975), which exceeds the memory usage threshold%s"
        "of 0.95, and the task that it killed was ours, as the log of the driver says.\n";
    static const char *const ends[] = {" ", "\n", " \n", "\r\n"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = ends[i];
        struct hb_log *log = read_text(hb_arena_printf(arena, text, end, end, end));
        assert_int_equal(log->lines, i ? 5 : 2);
        assert_int_equal(log->message[HB_LOG_ANY].line, 2);
        assert_int_equal(hb_log_fact(log, HB_LOG_ANY, HB_FACT_CAPACITY), GIB(32));
    }
}

static void settings_of_the_run_are_read(void **state)
{
    (void)state;
    struct hb_log *log = read_sample("maxtext");
    assert_string_equal(log->setting[HB_SET_MODEL], "llama3-8b");
    assert_string_equal(log->setting[HB_SET_SEQ], "8192");
    assert_string_equal(log->setting[HB_SET_DEVICES], "8");
    assert_string_equal(log->setting[HB_SET_FSDP], "8");
    assert_true(log->framework[HB_FW_LOG_MAXTEXT] > 0);
    log = read_text("  tensor_model_parallel_size ...................... 4\n"
                    "using world size: 64, data-parallel size: 8\n"
                    "[rank0]: Megatron on NVIDIA H100 80GB HBM3\n"
                    "  tensor_model_parallel_size ...................... 8\n");
    assert_string_equal(log->setting[HB_SET_TENSOR], "4");
    assert_string_equal(log->setting[HB_SET_DEVICES], "64");
    assert_string_equal(log->setting[HB_SET_DEVICE], "nvidia-h100");
}

static void ranks_are_counted(void **state)
{
    (void)state;
    struct hb_log *log = read_text("[rank0]: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
                                   "[rank7]: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
                                   "[default7]:CUDA out of memory. Tried to allocate 1.00 GiB.\n"
                                   "[rank99999]: CUDA out of memory. Tried to allocate 1.00 GiB.\n"
                                   "[rank5]: all is well\n");
    assert_int_equal(log->rank_count, 2);
    assert_int_equal(log->message[HB_LOG_TORCH].times, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_have_their_figures),
        cmocka_unit_test(messages_without_figures_are_seen),
        cmocka_unit_test(figures_stand_around_any_words),
        cmocka_unit_test(other_text_is_passed_over),
        cmocka_unit_test(lists_have_their_entries),
        cmocka_unit_test(long_lists_are_counted_and_cut),
        cmocka_unit_test(prefixes_do_not_matter),
        cmocka_unit_test(broken_and_coloured_lines_are_read),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(text_may_end_anywhere),
        cmocka_unit_test(foreign_bytes_are_passed_over),
        cmocka_unit_test(lines_may_have_any_length),
        cmocka_unit_test(borders_of_the_window_do_not_matter),
        cmocka_unit_test(which_of_several_is_kept),
        cmocka_unit_test(a_request_is_taken_exactly_where_told),
        cmocka_unit_test(wrapped_sentences_are_read),
        cmocka_unit_test(settings_of_the_run_are_read),
        cmocka_unit_test(ranks_are_counted),
    };
    return cmocka_run_group_tests_name("log", tests, start, end);
}
