/* What each sample amounts to: cause, figures, what helps first; guesses of buffers; commands. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/str.h"
#include "sim/hlo/logfile.h"
#include "sim/hlo/measured.h"
#include "sim/hlo/story.h"

static struct unit unit;

static int start(void **state)
{
    (void)state;
    unit_start(&unit);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&unit);
    return 0;
}

static struct hb_log *read_sample(const char *name)
{
    struct hb_log *log = hb_arena_alloc(unit.env.arena, 1, sizeof *log);
    const char *path = hb_arena_printf(unit.env.arena, "tests/golden/logs/%s.log", name);
    assert_true(hb_logfile_read(unit.env.arena, &unit.diag, path, log));
    return log;
}

static size_t give_text(void *context, char *text, size_t cap)
{
    const char **at = context;
    size_t len = strlen(*at) < cap ? strlen(*at) : cap;
    memcpy(text, *at, len);
    *at += len;
    return len;
}

static struct hb_log *read_text(const char *text)
{
    struct hb_log *log = hb_arena_alloc(unit.env.arena, 1, sizeof *log);
    hb_log_read(unit.env.arena, (struct hb_log_source){give_text, &text}, log);
    return log;
}

static struct hb_story *tell(const struct hb_log *log)
{
    struct hb_story *story = hb_arena_alloc(unit.env.arena, 1, sizeof *story);
    assert_true(hb_story_tell(unit.env.arena, log, story));
    return story;
}

#define GIB(x)  ((int64_t)((x)*0x1p30 + 0.5))
#define NO_KNOB HB_KNOB_COUNT

static const struct {
    const char *sample;
    enum hb_cause cause;
    int64_t wanted;
    int64_t over;
    enum hb_knob first;
    enum hb_log_framework framework;
} tales[] = {
    {"tpu-e1000", HB_CAUSE_SIZE, GIB(28.58), GIB(28.58) - GIB(15.75), HB_KNOB_BATCH, HB_FW_LOG_JAX},
    {"tpu-hbm", HB_CAUSE_SIZE, GIB(63.80), GIB(33.05), HB_KNOB_FLASH, HB_FW_LOG_JAX},
    {"tpu-padding", HB_CAUSE_PADDING, GIB(41.74), GIB(25.74), HB_KNOB_PADDING, HB_FW_LOG_JAX},
    {"tpu-program", HB_CAUSE_SIZE, GIB(29.49), GIB(29.49) - 154811761, HB_KNOB_BATCH,
     HB_FW_LOG_JAX},
    {"tpu-other", HB_CAUSE_SIZE, GIB(34.82) + GIB(174.10), GIB(34.82) + GIB(174.10) - GIB(95.74),
     HB_KNOB_BATCH, HB_FW_LOG_JAX},
    {"ocean-gpu", HB_CAUSE_SIZE, 51712165888, 51712165888 - (31804391424 - 21894366976),
     HB_KNOB_DUMP, HB_FW_LOG_JAX},
    {"ocean-tpu", HB_CAUSE_SIZE, GIB(215.17), GIB(183.92), HB_KNOB_DUMP, HB_FW_LOG_JAX},
    {"rocm-buffers", HB_CAUSE_SIZE, 165425291480, -1, HB_KNOB_FEWER, HB_FW_LOG_JAX},
    {"gemma-logits", HB_CAUSE_GIANT, 2110783616, -1, HB_KNOB_LOSS_CHUNKS, HB_FW_LOG_JAX},
    {"maxtext", HB_CAUSE_NONE, GIB(59.8), -1, HB_KNOB_BATCH, HB_FW_LOG_MAXTEXT},
    {"maxtext-estimated", HB_CAUSE_NONE, GIB(59.8), -1, HB_KNOB_BATCH, HB_FW_LOG_JAX},
    {"jax-autotuner", HB_CAUSE_SIZE, 272 << 20, -1, HB_KNOB_TUNER, HB_FW_LOG_JAX},
    {"multihost-load", HB_CAUSE_REPLICATION, GIB(62.62), -1, HB_KNOB_CALLBACK, HB_FW_LOG_JAX},
    {"multihost-tpu", HB_CAUSE_REPLICATION, GIB(32.55), GIB(32.55) - GIB(31.25), HB_KNOB_CALLBACK,
     HB_FW_LOG_JAX},
    {"torch-fragmented", HB_CAUSE_FRAGMENTATION, GIB(2), GIB(2) - GIB(1.04), HB_KNOB_SEGMENTS,
     HB_FW_LOG_TORCH},
    {"torch-1x", HB_CAUSE_SIZE, 786 << 20, (786 << 20) - 605154181, HB_KNOB_REMAT,
     HB_FW_LOG_MEGATRON},
    {"torch-hip", HB_CAUSE_FRAGMENTATION, GIB(6.64), GIB(6.64) - GIB(6.22), HB_KNOB_SEGMENTS,
     HB_FW_LOG_TORCH},
    {"torch-shared", HB_CAUSE_OTHERS, GIB(1.16), GIB(1.16) - 494602813, HB_KNOB_OTHERS,
     HB_FW_LOG_TORCH},
    {"torch-limit", HB_CAUSE_LIMIT, 2 << 20, -1, HB_KNOB_LIMIT, HB_FW_LOG_TORCH},
    {"torch-driver", HB_CAUSE_LIMIT, 2 << 20, -1, HB_KNOB_LIMIT, HB_FW_LOG_TORCH},
    {"torch-giant", HB_CAUSE_CORRUPT, GIB(130206.04), GIB(130206.04) - GIB(16.57), HB_KNOB_DRIVER,
     HB_FW_LOG_TORCH},
    {"torch-exabyte", HB_CAUSE_CORRUPT, -1, -1, HB_KNOB_ORDER, HB_FW_LOG_TORCH},
    {"torch-summary", HB_CAUSE_LIMIT, GIB(6.18), -1, HB_KNOB_LIMIT, HB_FW_LOG_TORCH},
    {"nccl", HB_CAUSE_COMMUNICATOR, 6291456, -1, HB_KNOB_SMALLER_POOL, HB_FW_LOG_TORCH},
    {"megatron", HB_CAUSE_NONE, 18331205632, -1, HB_KNOB_SEGMENTS, HB_FW_LOG_MEGATRON},
    {"torchtitan", HB_CAUSE_NONE, GIB(49.66), -1, NO_KNOB, HB_FW_LOG_TORCHTITAN},
    {"deepspeed", HB_CAUSE_NONE, GIB(6.39), -1, NO_KNOB, HB_FW_LOG_DEEPSPEED},
    {"hip", HB_CAUSE_UNKNOWN, -1, -1, HB_KNOB_BATCH, HB_FW_LOG_COUNT},
    {"cuda-async", HB_CAUSE_SIZE, 281923031072, 281923031072 - 18801229824, HB_KNOB_DUMP,
     HB_FW_LOG_JAX},
    {"tf-graph", HB_CAUSE_FRAGMENTATION, 536870912, -1, HB_KNOB_SEGMENTS, HB_FW_LOG_TENSORFLOW},
    {"jax-memory-stats", HB_CAUSE_NONE, 2353927680, -1, NO_KNOB, HB_FW_LOG_JAX},
    {"memory-analysis", HB_CAUSE_NONE, 10200547328, -1, HB_KNOB_BATCH, HB_FW_LOG_JAX},
    {"synthetic-bfc-fragmented", HB_CAUSE_FRAGMENTATION, GIB(4), -1, HB_KNOB_SEGMENTS,
     HB_FW_LOG_JAX},
    {"synthetic-bfc-new", HB_CAUSE_SIZE, GIB(12), GIB(2.5), HB_KNOB_FRACTION, HB_FW_LOG_JAX},
    {"synthetic-escaped", HB_CAUSE_STATE, GIB(17.62), GIB(2.14), HB_KNOB_FSDP, HB_FW_LOG_JAX},
};

static void each_sample_has_its_story(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tales / sizeof tales[0]; i++) {
        const struct hb_story *s = tell(read_sample(tales[i].sample));
        enum hb_knob first = s->knob_count ? s->knobs[0].knob : NO_KNOB;
        if (s->cause != tales[i].cause || first != tales[i].first ||
            s->framework != tales[i].framework)
            fail_msg("%s: cause %s, first knob %s, framework %d", tales[i].sample,
                     hb_cause_key(s->cause), first == NO_KNOB ? "none" : hb_knob_key(first),
                     (int)s->framework);
        if (s->wanted_bytes != tales[i].wanted || s->over_bytes != tales[i].over)
            fail_msg("%s: wanted %lld, over %lld", tales[i].sample, (long long)s->wanted_bytes,
                     (long long)s->over_bytes);
        assert_non_null(s->title);
        assert_non_null(s->because);
    }
}

static void no_sample_is_left_out(void **state)
{
    (void)state;
    const char *const *name = hb_file_list(unit.env.arena, "tests/golden/logs", ".log");
    size_t samples = 0;
    for (; *name; name++)
        samples += !hb_str_same(*name, "nothing");
    assert_int_equal(samples, sizeof tales / sizeof tales[0]);
    struct hb_story story;
    assert_false(hb_story_tell(unit.env.arena, read_sample("nothing"), &story));
}

static bool has_note(const struct hb_story *s, const char *words)
{
    for (int i = 0; i < s->note_count; i++)
        if (strstr(s->notes[i], words))
            return true;
    return false;
}

/* Several messages of one log make one story. */
static void messages_are_joined(void **state)
{
    (void)state;
    const struct hb_story *s = tell(read_sample("ocean-gpu"));
    assert_int_equal(s->state_bytes, 21894366976);
    assert_int_equal(s->transient_bytes, 7049476096);
    assert_true(has_note(s, "a single allocation of 6.57 GiB and 256 bytes"));
    assert_true(has_note(s, "recomputing brought it from 61.39 GiB (6 % of what was missing) to "
                            "58.50 GiB, still 47.86 GiB too much"));
    assert_true(has_note(s, "all temporaries of a program in one piece"));
    s = tell(read_sample("cuda-async"));
    assert_true(has_note(s, "jit_train_step"));
    assert_true(has_note(s, "f32[64,96,6144]"));
}

/* A line broken at a width: by a window, which looks at no words, or at blanks. */
static const char *break_lines(const char *text, size_t width, bool at_blanks)
{
    struct hb_str out;
    hb_str_init(&out, unit.env.arena);
    while (*text) {
        size_t len = strlen(text), cut = len < width ? len : width;
        while (at_blanks && cut < len && cut > 1 && text[cut] != ' ')
            cut--;
        hb_str_addf(&out, "%.*s\n", (int)cut, text);
        text += cut + (at_blanks && text[cut] == ' ');
    }
    return out.text;
}

static void widths_of_windows_do_not_matter(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 23.65 "
        "GiB total capacity; 20.10 GiB already allocated; 1.20 GiB free; 21.00 GiB reserved in "
        "total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total "
        "capacity of 63.29 GiB of which 1.82 GiB is free. Including non-PyTorch memory, this "
        "process has 61.46 GiB memory in use. Of the allocated memory 58.97 GiB is allocated by "
        "PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
        "allocate 2110783616 bytes.",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program: "
        "Attempting to reserve 3.95G at the bottom of memory. That was not possible. There are "
        "1.92G free, 0B reserved, and 1.92G reservable.",
        "2024-01-01 10:00:00.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:479] "
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 18.44GiB (rounded to "
        "19805393664)requested by op",
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.85 GB, other allocations: "
        "290.48 MB, max allowed: 18.13 GB). Tried to allocate 512.00 MB on private pool.",
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total "
        "capacity; 58.10 GiB already allocated; 58.10 GiB current active; 1.20 GiB free; 58.90 GiB "
        "reserved in total by PyTorch)",
        "ValueError: To serve at least one request with the models's max seq len (131072), (24.00 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (7.66 GiB).",
    };
    enum { NARROW = 40, WIDE = 130 };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct hb_story *whole = tell(read_text(texts[i]));
        for (size_t k = 2 * NARROW; k < 2 * WIDE; k++) {
            const struct hb_story *s = tell(read_text(break_lines(texts[i], k / 2, k % 2)));
            if (s->wanted_bytes != whole->wanted_bytes || s->cause != whole->cause ||
                s->available_bytes != whole->available_bytes)
                fail_msg("text %zu, width %zu: %lld of %lld", i, k / 2, (long long)s->wanted_bytes,
                         (long long)s->available_bytes);
        }
    }
}

static void replication_is_bytes_times_processes(void **state)
{
    (void)state;
    const struct hb_story *s = tell(read_sample("multihost-load"));
    assert_non_null(strstr(s->because, "1001.9 MiB x 64 processes"));
    s = tell(read_sample("multihost-tpu"));
    assert_non_null(strstr(s->because, "2.03 GiB x 16 processes"));
    assert_int_equal(s->knobs[0].frees_bytes, GIB(32.55) - GIB(32.55) / 16);
    s = tell(read_text("x = process_allgather(y)\n")); /* no failure */
    assert_int_equal(s->cause, HB_CAUSE_NONE);
}

static void buffers_alike_are_grouped(void **state)
{
    (void)state;
    const struct hb_story *s = tell(read_sample("tpu-hbm"));
    assert_int_equal(s->group_count, 1);
    assert_int_equal(s->groups[0].count, 2);
    assert_int_equal(s->groups[0].bytes, GIB(4));
    assert_int_equal(s->groups[0].what, HB_WHAT_SCORES);
    assert_int_equal(s->knobs[0].frees_bytes, GIB(4));
    s = tell(read_sample("gemma-logits"));
    assert_int_equal(s->group_count, 4);
    assert_int_equal(s->groups[0].what, HB_WHAT_LOGITS);
    assert_int_equal(s->groups[2].what, HB_WHAT_ARGUMENT);
}

static void torch_figures_are_completed(void **state)
{
    (void)state;
    const struct hb_story *s = tell(read_sample("torch-fragmented"));
    assert_int_equal(s->part_count, 4);
    assert_string_equal(s->parts[2].name, "beside PyTorch: context, libraries, communicators");
    assert_int_equal(s->parts[2].bytes, GIB(78.10) - GIB(70.12) - GIB(6.50));
    /* in a container the process itself goes by a foreign number */
    s = tell(read_text("CUDA out of memory. Tried to allocate 1.25 GiB. GPU 1 has a total capacity "
                       "of 93.02 GiB of which 1.18 GiB is free. Process 2752205 has 91.82 GiB "
                       "memory in use. Of the allocated memory 90.63 GiB is allocated by PyTorch, "
                       "and 120.54 MiB is reserved by PyTorch but unallocated."));
    assert_int_equal(s->cause, HB_CAUSE_SIZE);
    assert_int_equal(s->knobs[0].knob, HB_KNOB_BATCH);
}

static void what_a_buffer_is_is_guessed(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        const char *shape;
        const char *type;
        enum hb_what what;
    } cases[] = {
        {"jit(step)/jvp(T)/layers/attn/dot_general", "bf16[8,16,4096,4096]", "", HB_WHAT_SCORES},
        {"jit(step)/jvp(T)/layers/attn/dot_general", "bf16[8,4096,128]", "", HB_WHAT_ACTIVATION},
        {"jit(step)/jvp(T)/lm_head/dot_general", "f32[4,2048,128256]", "", HB_WHAT_LOGITS},
        {"jit(step)/loss/one_hot", "f32[4,2048,32000]", "", HB_WHAT_ONEHOT},
        {"jit(step)/all_gather", "bf16[4096,14336]", "", HB_WHAT_GATHERED},
        {"jit(step)/jvp(T)/moe/dispatch", "bf16[64,512,4096]", "", HB_WHAT_MOE},
        {"jit(step)/adamw/mul", "f32[4096,14336]", "", HB_WHAT_OPTIMIZER},
        {"jit(step)/while/body/dynamic_update_slice", "bf16[32,4,8192,4096]", "", HB_WHAT_SAVED},
        {"jit(roll)/halo/concatenate", "f64[3056,12272]", "", HB_WHAT_HALO},
        {"jit(step)/transpose(jvp(T))/mul", "f32[4,8192,4096]", "", HB_WHAT_ACTIVATION},
        {"", "f32[4096]", "argument", HB_WHAT_ARGUMENT},
        {"", "", "", HB_WHAT_OTHER},
        {"x", "(f32[5104,257152], s8[4194304])", "", HB_WHAT_LOGITS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_log_item item = {0};
        snprintf(item.op, sizeof item.op, "%s", cases[i].op);
        snprintf(item.shape, sizeof item.shape, "%s", cases[i].shape);
        snprintf(item.type, sizeof item.type, "%s", cases[i].type);
        if (hb_what_of(&item) != cases[i].what)
            fail_msg("%s %s: %s", cases[i].op, cases[i].shape, hb_what_key(hb_what_of(&item)));
    }
}

static void shapes_are_read(void **state)
{
    (void)state;
    struct hb_what_shape s = hb_what_shape("s32[8388608,8,4]{2,1,0:T(8,128)}");
    assert_int_equal(s.rank, 3);
    assert_int_equal(s.dim[0], 8388608);
    assert_int_equal(s.dim[2], 4);
    assert_int_equal(hb_what_shape("f32[]").rank, 0);
    assert_int_equal(hb_what_shape("none").rank, 0);
    assert_int_equal(hb_what_shape("f32[1,2,3,4,5,6,7,8,9,10]").rank, HB_WHAT_RANK);
    assert_int_equal(hb_what_shape("f32[128,256").rank, 2);
}

static const char *commands_of(const struct hb_log *log, const char *path)
{
    static const char *const zoo[] = {"llama2-7b", "llama3-8b", "deepseek-v3", "qwen2.5-7b", NULL};
    const char *lines[4];
    struct hb_str s;
    hb_str_init(&s, unit.env.arena);
    int count = hb_story_commands(unit.env.arena, log, tell(log),
                                  (struct hb_story_model){path, zoo}, lines);
    assert_in_range(count, 1, 4);
    for (int i = 0; i < count; i++)
        hb_str_addf(&s, "%s\n", lines[i]);
    return s.text;
}

static void commands_say_what_the_log_says(void **state)
{
    (void)state;
    assert_string_equal(
        commands_of(read_sample("maxtext"), NULL),
        "printf 'hbmsim: 1\\nmodel: {preset: llama3-8b}\\n' >step.yaml\n"
        "hbmsim simulate step.yaml --set mesh.fsdp=8 --set hardware.count=8 --set batch.global=32 "
        "--set batch.seq=8192 --set remat.policy=full\n"
        "hbmsim simulate step.yaml --set mesh.fsdp=8 --set hardware.count=8 --set batch.global=32 "
        "--set batch.seq=8192 --set remat.policy=full --set 'batch.accumulate=2'\n"
        "hbmsim advise step.yaml --set mesh.fsdp=8 --set hardware.count=8 --set batch.global=32 "
        "--set batch.seq=8192 --set remat.policy=full\n");
    assert_string_equal(commands_of(read_sample("multihost-tpu"), "my.yaml"),
                        "hbmsim simulate my.yaml --set compiler=xla-tpu --set "
                        "hardware.device=tpu-v6e --set load.method=device_put --set "
                        "load.processes=16\n"
                        "hbmsim simulate my.yaml --set compiler=xla-tpu --set "
                        "hardware.device=tpu-v6e --set load.method=callback --set "
                        "load.processes=16\n");
    /* Of 79.15 GiB PyTorch cannot have the 1.48 GiB that stand beside it. */
    assert_non_null(strstr(commands_of(read_sample("torch-fragmented"), "my.yaml"),
                           "simulate my.yaml --set compiler=torch --set hardware.hbm=83397"));
}

static void models_are_known_by_many_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"meta-llama/Meta-Llama-3-8B-Instruct", "llama3-8b"},
        {"meta-llama/Llama-2-7b-chat-hf", "llama2-7b"},
        {"Qwen/Qwen2.5-7B", "qwen2.5-7b"},
        {"deepseek3-671b", "deepseek-v3"},
        {"my-own-model", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct hb_log *log = read_text(hb_arena_printf(
            unit.env.arena,
            "--model_name_or_path %s\nCUDA out of memory. Tried to allocate 2.00 GiB.\n",
            names[i][0]));
        const char *lines = commands_of(log, NULL);
        const char *preset =
            names[i][1] ? hb_arena_printf(unit.env.arena, "{preset: %s}", names[i][1]) : "preset";
        assert_int_equal(strstr(lines, preset) != NULL, names[i][1] != NULL);
    }
}

static void knobs_are_complete(void **state)
{
    (void)state;
    for (int i = 0; i < HB_KNOB_COUNT; i++) {
        assert_true(hb_knob_key((enum hb_knob)i)[0]);
        assert_true(hb_knob_title((enum hb_knob)i)[0]);
    }
    assert_string_equal(hb_knob_words(HB_KNOB_REMAT, HB_FW_LOG_MAXTEXT), "remat_policy: full");
    assert_string_equal(hb_knob_words(HB_KNOB_DONATE, HB_FW_LOG_MAXTEXT),
                        hb_knob_words(HB_KNOB_DONATE, HB_FW_LOG_JAX));
    assert_null(hb_knob_words(HB_KNOB_PADDING, HB_FW_LOG_TORCH));
    assert_null(hb_knob_set(HB_KNOB_PADDING));
}

static const struct {
    const char *sample;
    enum hb_measured_kind kind;
    int64_t peak;
    int fits;
} records[] = {
    {"memory-analysis", HB_MEASURED_XLA_TOTAL, 10200547328, -1},
    {"tpu-e1000", HB_MEASURED_XLA_TOTAL, GIB(28.58), 0},
    {"tpu-hbm", HB_MEASURED_XLA_TOTAL, GIB(63.80), 0},
    {"gemma-logits", HB_MEASURED_XLA_TOTAL, GIB(7.88), 0},
    {"maxtext", HB_MEASURED_XLA_TOTAL, GIB(59.8), -1},
    {"torch-fragmented", HB_MEASURED_MAX_ALLOCATED, GIB(70.12) + GIB(2), 0},
    {"torch-summary", HB_MEASURED_MAX_ALLOCATED, GIB(1.04) + GIB(6.18), 0},
    {"megatron", HB_MEASURED_MAX_ALLOCATED, 13218414080, 1},
    {"torchtitan", HB_MEASURED_MAX_RESERVED, GIB(49.66), 1},
    {"ocean-gpu", HB_MEASURED_RUNTIME_PEAK, 21894366976 + 51712165888, 0},
    {"jax-memory-stats", HB_MEASURED_RUNTIME_PEAK, 2353927680, 1},
};

static void records_have_what_was_measured(void **state)
{
    (void)state;
    const char *reason;
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct hb_measured m;
        assert_true(hb_measured_read(unit.env.arena, read_sample(records[i].sample),
                                     HB_MEASURED_KIND_COUNT, &m, &reason));
        if (m.kind != records[i].kind || m.peak_bytes != records[i].peak ||
            m.fits != records[i].fits)
            fail_msg("%s: %s %lld fits %d", records[i].sample, hb_measured_kind_key(m.kind),
                     (long long)m.peak_bytes, m.fits);
    }
}

static void records_can_be_asked_for_a_kind(void **state)
{
    (void)state;
    struct hb_measured m;
    const char *reason = NULL;
    const struct hb_log *log = read_sample("megatron");
    assert_true(hb_measured_read(unit.env.arena, log, HB_MEASURED_MAX_RESERVED, &m, &reason));
    assert_int_equal(m.peak_bytes, 18331205632);
    assert_false(hb_measured_read(unit.env.arena, log, HB_MEASURED_XLA_TOTAL, &m, &reason));
    assert_string_equal(reason, "the log has no figure of the kind asked for");
    log = read_sample("multihost-load");
    assert_false(hb_measured_read(unit.env.arena, log, HB_MEASURED_KIND_COUNT, &m, &reason));
    assert_non_null(strstr(reason, "not of the step"));
    log = read_sample("cuda-async");
    assert_false(hb_measured_read(unit.env.arena, log, HB_MEASURED_KIND_COUNT, &m, &reason));
    assert_non_null(strstr(reason, "not what stood beside it"));
    log = read_sample("nothing");
    assert_false(hb_measured_read(unit.env.arena, log, HB_MEASURED_KIND_COUNT, &m, &reason));
}

static void files_that_cannot_be_read_are_errors(void **state)
{
    (void)state;
    struct hb_log log;
    assert_false(hb_logfile_read(unit.env.arena, &unit.diag, "tests/golden", &log));
    assert_false(hb_logfile_read(unit.env.arena, &unit.diag, "no/such.log", &log));
    assert_int_equal(unit.diag.errors, 2);
    assert_string_equal(unit.diag.entries[0].text, "cannot be read: Is a directory");
    assert_string_equal(unit.diag.entries[1].text, "cannot be read: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_has_its_story),
        cmocka_unit_test(no_sample_is_left_out),
        cmocka_unit_test(messages_are_joined),
        cmocka_unit_test(widths_of_windows_do_not_matter),
        cmocka_unit_test(replication_is_bytes_times_processes),
        cmocka_unit_test(buffers_alike_are_grouped),
        cmocka_unit_test(torch_figures_are_completed),
        cmocka_unit_test(what_a_buffer_is_is_guessed),
        cmocka_unit_test(shapes_are_read),
        cmocka_unit_test(commands_say_what_the_log_says),
        cmocka_unit_test(models_are_known_by_many_names),
        cmocka_unit_test(knobs_are_complete),
        cmocka_unit_test(records_have_what_was_measured),
        cmocka_unit_test(records_can_be_asked_for_a_kind),
        cmocka_unit_test(files_that_cannot_be_read_are_errors),
    };
    return cmocka_run_group_tests_name("story", tests, start, end);
}
