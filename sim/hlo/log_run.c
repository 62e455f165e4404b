/* What a log tells of the run: framework, device, model, batch, mesh. First word counts.
 * Source of the forms: MaxText's "Config param name: value", Megatron-LM's dotted list of
 * arguments, names of devices as jax and torch print them. */
#include <string.h>

#include "sim/hlo/logform.h"

/* Less is no memory that a job was given. */
#define LEAST_LIMIT ((int64_t)1 << 20)

static void take_framework(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    hb_form_log(r)->framework[form->fact]++;
    (void)place;
}

/* The word behind the anchor, behind dots and signs of assignment. */
static void take_setting(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    char *text = hb_form_log(r)->setting[form->fact];
    struct hb_span s = place->after;
    if (text[0])
        return;
    hb_span_skip(&s, " \t.:='\"\\()");
    hb_span_copy(&s, " \t,;'\"\\()", text, HB_LOG_WORD_CAP);
}

static void take_number(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    char *text = hb_form_log(r)->setting[form->fact];
    struct hb_span s = place->after;
    int64_t number;
    hb_span_skip(&s, " \t.:='\"\\()");
    struct hb_span digits = s;
    if (!text[0] && hb_span_int(&s, &number) && number > 0 && s.at - digits.at < 12) {
        digits.end = s.at;
        hb_span_copy(&digits, "", text, HB_LOG_WORD_CAP);
    }
}

/* "gradient_checkpointing: true", "--gradient_checkpointing \\": what PyTorch's trainers call it.
 */
static void take_checkpointing(struct hb_log_reader *r, const struct hb_form *form,
                               const struct hb_form_place *place)
{
    static const char *const ons[] = {"_enable()", "unsloth", "full", "true",
                                      "True",      "\\",      "--",   "\r"};
    char *text = hb_form_log(r)->setting[form->fact];
    struct hb_span s = place->after;
    bool flag = hb_span_has(place->before, "--");
    hb_span_skip(&s, " :=\"'");
    bool on = s.at == s.end || HB_SPAN_STARTS_ANY(s, ons);
    if (!text[0] && on && (flag || s.at > place->after.at))
        memcpy(text, "full", sizeof "full");
}

/* TensorFlow: "Created TensorFlow device (/device:GPU:0 with 10413 MB memory)", "freeMemory:
 * 31.41GiB": what its pool may hold. */
static void take_pool(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount pool;
    if (!hb_form_log(r)->pool_bytes && hb_span_amount(&s, 1, &pool) && pool.bytes >= LEAST_LIMIT)
        hb_form_log(r)->pool_bytes = pool.bytes;
    (void)form;
}

/* dmesg: "amdgpu: VRAM: 98304M 0x0000008000000000 - ...", "98304M of VRAM memory ready". */
static void take_card(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount card;
    if (!hb_form_log(r)->card_bytes &&
        (hb_span_amount(&s, 1, &card) || hb_span_amount_last(place->before, &card)))
        hb_form_log(r)->card_bytes = card.bytes;
    (void)form;
}

/* nvidia-smi: "|  15514MiB / 16130MiB |    100%      Default |". */
static void take_smi(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    struct hb_log *log = hb_form_log(r);
    struct hb_span used_text = {place->before.at, place->after.at - (sizeof " / " - 1)};
    struct hb_span s = place->after;
    struct hb_amount used;
    struct hb_amount all;
    if (log->device_bytes || !hb_span_amount_last(used_text, &used) ||
        !hb_span_amount(&s, 1, &all) || used.bytes > all.bytes)
        return;
    log->device_used_bytes = used.bytes;
    log->device_bytes = all.bytes;
    (void)form;
}

static void set_limit(struct hb_log *log, struct hb_span s)
{
    struct hb_amount limit;
    hb_span_skip(&s, " \t:=\"'");
    if (!log->limit_bytes && hb_span_amount(&s, 1, &limit) && limit.bytes >= LEAST_LIMIT)
        log->limit_bytes = limit.bytes;
}

/* Kubernetes: "Limits:", and "memory: 30Mi" in that line or one of the next. */
static void take_limits(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    hb_form_log(r)->limits_line = hb_form_line(r);
    if (hb_span_find(&s, "emory"))
        set_limit(hb_form_log(r), s);
    (void)form;
}

static void take_limit_of_list(struct hb_log_reader *r, const struct hb_form *form,
                               const struct hb_form_place *place)
{
    enum { LINES = 3 };
    struct hb_log *log = hb_form_log(r);
    if (log->limits_line && hb_form_line(r) <= log->limits_line + LINES)
        set_limit(log, place->after);
    (void)form;
}

/* "15Mi memory limit", "memory limit of 2Gi", "--mem=64G"; "30 instead of 50Mi" was not set */
static void take_limit(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span before = place->before;
    struct hb_span s = place->after;
    struct hb_amount limit;
    while (before.end > before.at && (before.end[-1] == 'm' || before.end[-1] == ' '))
        before.end--;
    if (form->value == HB_VALUE_BEFORE && hb_span_amount_last(before, &limit) &&
        limit.bytes >= LEAST_LIMIT && !hb_form_log(r)->limit_bytes &&
        !hb_span_has(before, "instead of"))
        hb_form_log(r)->limit_bytes = limit.bytes;
    enum { LINES = 8 };
    struct hb_log *log = hb_form_log(r);
    bool advised = hb_span_has(before, "ncreas") || hb_span_has(before, "aise ") ||
                   (log->raised_line && hb_form_line(r) <= log->raised_line + LINES);
    if (advised) /* "increasing it to 16G, --mem=16G, helps", "Raise the request: --mem=64G" */
        return;
    hb_span_skip(&s, " ");
    if (hb_span_starts(s, "of ") || hb_span_starts(s, "is ")) /* "to": what is set then */
        s.at += sizeof "of " - 1;
    int64_t set = log->limit_bytes;
    if (*form->anchor == '-' && !hb_form_is_met(r, HB_LOG_HOST)) /* the last command was ended */
        log->limit_bytes = 0;
    set_limit(log, s);
    log->limit_bytes = log->limit_bytes ? log->limit_bytes : set;
}

/* Behind what was ended: "consider increasing the memory limit, for instance:", what follows was
 * not set. */
static void take_raise(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    enum { NEAR = 48 };
    if (hb_form_is_met(r, HB_LOG_HOST) && hb_span_has(hb_span_first(place->after, NEAR), "emory"))
        hb_form_log(r)->raised_line = hb_form_line(r);
    (void)form;
}

/* "exceeding the 1Gi limit" */
static void take_limit_before(struct hb_log_reader *r, const struct hb_form *form,
                              const struct hb_form_place *place)
{
    struct hb_amount limit;
    if (!hb_form_log(r)->limit_bytes && hb_span_amount_last(place->before, &limit) &&
        limit.bytes >= LEAST_LIMIT)
        hb_form_log(r)->limit_bytes = limit.bytes;
    (void)form;
}

/* Names of hw's table, by what jax and torch print of the device. */
#define DEVICES(X)                                                                                 \
    X("A100-SXM4-80GB", "nvidia-a100-80gb")                                                        \
    X("A100 80GB", "nvidia-a100-80gb")                                                             \
    X("A100-SXM-80GB", "nvidia-a100-80gb")                                                         \
    X("A100-SXM4-40GB", "nvidia-a100-40gb")                                                        \
    X("A100-PCIE-40GB", "nvidia-a100-40gb")                                                        \
    X("H100 NVL", "nvidia-h100-nvl")                                                               \
    X("H100 PCIe", "nvidia-h100-pcie")                                                             \
    X("NVIDIA H100 80GB", "nvidia-h100")                                                           \
    X("NVIDIA H200", "nvidia-h200")                                                                \
    X("NVIDIA B200", "nvidia-b200")                                                                \
    X("NVIDIA GB200", "nvidia-gb200")                                                              \
    X("NVIDIA L40S", "nvidia-l40s")                                                                \
    X("GeForce RTX 4090", "nvidia-rtx4090")                                                        \
    X("GeForce RTX 5090", "nvidia-rtx5090")                                                        \
    X("Instinct MI300X", "amd-mi300x")                                                             \
    X("Instinct MI300A", "amd-mi300a")                                                             \
    X("Instinct MI325X", "amd-mi325x")                                                             \
    X("Instinct MI250X", "amd-mi250x")                                                             \
    X("Instinct MI210", "amd-mi210")                                                               \
    X("TPU v4", "tpu-v4")                                                                          \
    X("TPU v5 lite", "tpu-v5e")                                                                    \
    X("TPU v5e", "tpu-v5e")                                                                        \
    X("TPU v5p", "tpu-v5p")                                                                        \
    X("TPU v6 lite", "tpu-v6e")                                                                    \
    X("TPU v6e", "tpu-v6e")                                                                        \
    X("TPU7x", "tpu-v7")

static void take_device(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    char *text = hb_form_log(r)->setting[HB_SET_DEVICE];
    if (text[0])
        return;
    struct hb_span name = hb_span_of(form->text);
    hb_span_copy(&name, "", text, HB_LOG_WORD_CAP);
    (void)place;
}

/* "v5litepod-8": a slice, by its chips. */
static void take_slice(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    if (s.at < s.end && *s.at >= '1' && *s.at <= '9')
        take_device(r, form, place);
}

/* Between "batch" and its number: "batch_size_per_gpu is set to 1", "batch\u8bbe\u4e3a1". */
static void skip_to_number(struct hb_span *s)
{
    static const char *const words[] = {
        "already", "setting", "size",  "sz",   "per",   "gpu",  "device", "rank", "to",
        "is",      "of",      "was",   "set",  "as",    "at",   "in",     "a",    "and",
        "has",     "been",    "micro", "down", "epoch", "only", "had",    "be",   "on"};
    const char *at = NULL;
    while (at != s->at) {
        at = s->at;
        while (s->at < s->end && (*s->at & 0x80))
            s->at++;
        hb_span_skip(s, " \t_-:='\"`()|");
        if (hb_span_starts(*s, "/ ")) /* a label in two languages */
            s->at++;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (hb_span_starts(*s, words[i]))
                s->at += strlen(words[i]);
    }
}

/* "per_device_train_batch_size 1", "micro batch size of 4"; no step of an epoch: "batch 95/3568".
 */
static void take_batch(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    enum { NEAR = 20, MOST = 1 << 20 };
    static const char *const tests[] = {"eval", "val_", "test", "infer", "token"};
    static const char *const devices[] = {"micro", "device", "gpu"};
    static const char *const vain[] = {"egardless of", "o matter"}; /* nor would one do */
    struct hb_log *log = hb_form_log(r);
    struct hb_span before = hb_span_last(place->before, NEAR), s = place->after;
    int64_t batch;
    skip_to_number(&s);
    struct hb_span name = {place->after.at, s.at};
    struct hb_span number = s;
    bool one = hb_span_has(hb_span_first(place->after, NEAR), " of one ") ||
               (HB_SPAN_HAS_ANY(before, vain) && !hb_span_int(&number, &batch));
    if (one && !HB_SPAN_HAS_ANY(before, tests)) {
        log->any_batch = log->any_batch ? log->any_batch : 1;
        return;
    }
    bool device = HB_SPAN_HAS_ANY(before, devices) || HB_SPAN_HAS_ANY(name, devices);
    if (HB_SPAN_HAS_ANY(before, tests) || name.at == name.end || !hb_span_int(&s, &batch) ||
        batch <= 0 || batch > MOST ||
        (s.end - s.at > 1 && strchr("/%._", *s.at) && s.at[1] >= '0' && s.at[1] <= '9'))
        return;
    int64_t before_that;
    if (hb_span_starts(s, " instead of ")) { /* "to 1 instead of 2": with 1 it went well */
        s.at += sizeof " instead of " - 1;
        batch = hb_span_int(&s, &before_that) && before_that > 0 && before_that <= MOST
                    ? before_that
                    : batch;
    }
    int64_t *to = device ? &log->device_batch : &log->any_batch;
    *to = batch > *to ? batch : *to;
    (void)form;
}

/* "bs=1", "bs1" */
static void take_short_batch(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    static const char *const signs[] = {"=", " =", ":"};
    struct hb_form_place at = *place;
    if (hb_span_starts(at.after, "z"))
        at.after.at++;
    if (HB_SPAN_STARTS_ANY(at.after, signs))
        take_batch(r, form, &at);
    else if (hb_span_starts(at.after, "1 "))
        hb_form_log(r)->any_batch = hb_form_log(r)->any_batch ? hb_form_log(r)->any_batch : 1;
}

#define ROW(words, what, handler)                                                                  \
    {                                                                                              \
        words, HB_LOG_PLAIN, HB_FORM_ADDS, .fact = (what), .handle = (handler)                     \
    }
#define MARK(words, name)   ROW(words, HB_FW_LOG_##name, take_framework)
#define WORD(words, name)   ROW(words, HB_SET_##name, take_setting)
#define NUMBER(words, name) ROW(words, HB_SET_##name, take_number)
#define DEVICE(printed, name)                                                                      \
    {printed, HB_LOG_PLAIN, HB_FORM_ADDS, .text = (name), .handle = take_device},

#define SLICE(printed, name)                                                                       \
    {                                                                                              \
        printed, HB_LOG_PLAIN, HB_FORM_ADDS, .text = (name), .handle = take_slice, .word = true    \
    }

static const struct hb_form rows[] = {
    MARK("MaxText", MAXTEXT),
    MARK("maxtext", MAXTEXT),
    MARK("Config param ", MAXTEXT),
    MARK("levanter", LEVANTER),
    MARK("torchtitan", TORCHTITAN),
    MARK("[titan]", TORCHTITAN),
    MARK("megatron", MEGATRON),
    MARK("memory (MB) | allocated", MEGATRON),
    MARK("Megatron", MEGATRON),
    MARK("deepspeed", DEEPSPEED),
    MARK("see_memory_usage", DEEPSPEED),
    MARK("DeepSpeed", DEEPSPEED),
    MARK("torchtune", TORCHTUNE),
    MARK("jaxlib", JAX),
    MARK("jax[", JAX),
    MARK("jax.", JAX),
    MARK("XlaRuntimeError", JAX),
    MARK("JaxRuntimeError", JAX),
    MARK("torch.", TORCH),
    MARK("PyTorch", TORCH),
    MARK("when calling `c", TORCH), /* a library, as PyTorch tells of it */
    MARK("tensorflow/core/", TENSORFLOW),
    MARK("tensorflow\\core\\", TENSORFLOW),
    MARK("ggml_", GGML),
    MARK("llama runner", GGML),
    MARK("llama_", GGML),
    MARK("gguf", GGML),
    MARK("GGUF", GGML),
    MARK("print_info: ", GGML),
    MARK("stored in buffer ", GGML),
    MARK("llama.cpp", GGML),
    MARK("llamacpp", GGML),
    MARK("whisper_", GGML),
    MARK("whisper.cpp", GGML),
    MARK("llama-server", GGML),
    MARK("ollama", GGML),
    MARK("TensorRT", TENSORRT),
    MARK("[TRT]", TENSORRT),
    MARK("[tunablegraph", TENSORRT),
    MARK("onnxruntime", ONNX),
    MARK("onnx runtime", ONNX),
    MARK("ONNX Runtime", ONNX),
    MARK("ONNXRuntime", ONNX),

    ROW("atch", 0, take_batch),
    ROW("ATCH", 0, take_batch),
    ROW("amples_per_gpu", 0, take_batch),
    ROW("mgs_per_gpu", 0, take_batch),
    ROW("AMPLES_PER_GPU", 0, take_batch),
    ROW("MS_PER_BATCH", 0, take_batch),
    {"bs", HB_LOG_PLAIN, HB_FORM_ADDS, .handle = take_short_batch, .word = true},
    {"train_bs", HB_LOG_PLAIN, HB_FORM_ADDS, .handle = take_short_batch},
    ROW("radient_checkpointing", HB_SET_REMAT, take_checkpointing),
    ROW("rad-checkpoint", HB_SET_REMAT, take_checkpointing),
    ROW("ctivation_checkpointing", HB_SET_REMAT, take_checkpointing),
    ROW("heckpoint_activations", HB_SET_REMAT, take_checkpointing),
    ROW("heckpoint-activations", HB_SET_REMAT, take_checkpointing),
    ROW("use_remat", HB_SET_REMAT, take_checkpointing),
    ROW("recompute_activations", HB_SET_REMAT, take_checkpointing),
    ROW("recompute-activations", HB_SET_REMAT, take_checkpointing),
    ROW("ecompute_granularity", HB_SET_REMAT, take_checkpointing),
    ROW("ecompute-granularity", HB_SET_REMAT, take_checkpointing),
    ROW("/device:GPU:0 with ", 0, take_pool),
    ROW("freeMemory: ", 0, take_pool),
    ROW("MiB / ", 0, take_smi),
    ROW("amdgpu: VRAM: ", 0, take_card),
    ROW(" of VRAM memory ready", 0, take_card),
    ROW("Limits:", 0, take_limits),
    ROW("imits\":", 0, take_limits),
    ROW("emory:", 0, take_limit_of_list),
    ROW(" limit", 0, take_limit_before),
    ROW("ncreas", 0, take_raise),
    ROW("--mem=", 0, take_limit),
    ROW("--mem ", 0, take_limit),
    ROW("--memory=", 0, take_limit),
    ROW("h_vmem=", 0, take_limit),
    ROW(" mem=", 0, take_limit),
    ROW(",mem=", 0, take_limit),
    ROW("request resource ", 0, take_limit),
    ROW("requested resource ", 0, take_limit),
    ROW("--memory-limit", 0, take_limit),
    ROW("emory.max", 0, take_limit), /* cgroup's files */
    ROW("emory.limit_in_bytes", 0, take_limit),
    {"emory limit", HB_LOG_PLAIN, HB_FORM_ADDS, .value = HB_VALUE_BEFORE, .handle = take_limit},

    WORD("Config param model_name: ", MODEL),
    WORD("model_name_or_path", MODEL),
    WORD("Config param remat_policy: ", REMAT),
    WORD("recompute_granularity .", REMAT),
    WORD("Config param per_device_batch_size: ", DEVICE_BATCH),
    NUMBER("micro_batch_size .", DEVICE_BATCH),
    NUMBER("Config param max_target_length: ", SEQ),
    NUMBER("seq_length .", SEQ),
    NUMBER("Config param global_batch_size_to_train_on: ", GLOBAL_BATCH),
    NUMBER("global_batch_size .", GLOBAL_BATCH),
    NUMBER("Config param gradient_accumulation_steps: ", ACCUMULATE),
    NUMBER("Config param ici_data_parallelism: ", DATA),
    NUMBER("Config param ici_fsdp_parallelism: ", FSDP),
    NUMBER("Config param ici_tensor_parallelism: ", TENSOR),
    NUMBER("Config param ici_context_parallelism: ", SEQUENCE),
    NUMBER("Config param ici_expert_parallelism: ", EXPERT),
    NUMBER("Config param ici_pipeline_parallelism: ", PIPELINE),
    NUMBER("tensor_model_parallel_size .", TENSOR),
    NUMBER("pipeline_model_parallel_size .", PIPELINE),
    NUMBER("context_parallel_size .", SEQUENCE),
    NUMBER("expert_model_parallel_size .", EXPERT),
    NUMBER("using world size: ", DEVICES),
    NUMBER("world_size .", DEVICES),
    NUMBER("Num_devices: ", DEVICES),
    NUMBER("process_count", PROCESSES),
    NUMBER("num_processes", PROCESSES),

    SLICE("v5litepod-", "tpu-v5e"),
    SLICE("v5e-", "tpu-v5e"),
    SLICE("v5p-", "tpu-v5p"),
    SLICE("v6e-", "tpu-v6e"),
    DEVICES(DEVICE)};

const struct hb_forms hb_forms_run = {rows, sizeof rows / sizeof rows[0]};
