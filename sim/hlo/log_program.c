/* What kind of program wrote the log, by its vocabulary: what trains, what runs a model, serves or
 * loads one. A stem counts where a word of an identifier or of prose begins with it ("inference",
 * "run_inference.py", "FluxInferencePipeline"); phrases count wherever they stand. */
#include <string.h>

#include "sim/hlo/logform.h"

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_letter(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* Whether a word begins with one of the letters right before the anchor. */
static bool begins_word(const struct hb_form *form, struct hb_span before)
{
    const char *first = before.end - 1;
    if (first < before.at || !*first || !strchr(form->text, *first))
        return false;
    return first == before.at || !is_letter(first[-1]) ||
           (is_lower(first[-1]) && !is_lower(*first));
}

static void take_mark(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    hb_form_log(r)->mark[form->fact]++;
    (void)place;
}

/* "Reason:       Error" */
static void take_behind(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    hb_span_skip(&s, " ");
    if (hb_span_starts(s, form->text))
        take_mark(r, form, place);
}

/* "surfaces as a *misleading* `std::bad_alloc`" */
static void take_denial(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    hb_form_log(r)->denied_line = hb_form_line(r);
    (void)form;
    (void)place;
}

static void take_stem(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    if (begins_word(form, place->before))
        take_mark(r, form, place);
}

static void take_word(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    bool ends = (place->after.at == place->after.end || !is_lower(*place->after.at)) &&
                !hb_span_starts(place->after, "_len"); /* of a forecast, "pred_len" */
    static const char *const parts[] = {" memory", " card", " board", " ram", " RAM", " driver"};
    bool device = HB_SPAN_STARTS_ANY(place->after, parts); /* "video memory" */
    if (ends && !device && begins_word(form, place->before))
        take_mark(r, form, place);
}

/* "in saving", "when saving" */
static bool is_then(struct hb_span before)
{
    static const char *const words[] = {" in ", "when ", "while ", "during "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (hb_span_starts(hb_span_last(before, (ptrdiff_t)strlen(words[i])), words[i]))
            return true;
    }
    return false;
}

/* "loading model weights", "load the checkpoint", "Failed to load the pipeline", "when loading
 * T5-11B", "when loading 'gemma_2b'", not "when loading the data" */
static void take_load(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    static const char *const things[] = {"odel", "eight", "heckpoint", "afetensor", "state_dict"};
    enum { NEAR = 32 };
    struct hb_span after = hb_span_first(place->after, NEAR), before = place->before;
    before.end -= before.end > before.at;       /* the word's first letter */
    bool done = hb_span_starts(after, "ed ") || /* "unloading all loaded models" */
                hb_span_has(hb_span_last(before, 5), "only ");
    bool called = after.end - after.at > 4 &&
                  ((after.at[4] >= 'A' && after.at[4] <= 'Z') || strchr("'`\"", after.at[4]));
    bool named = hb_span_starts(after, "ing ") && called && is_then(before);
    if (!done && begins_word(form, place->before) && (named || HB_SPAN_HAS_ANY(after, things)))
        take_mark(r, form, place);
}

/* "saving the final checkpoint", "save_model", "model save": what is done, no option of it. */
static void take_save(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    static const char *const things[] = {"heckpoint", "ckpt", "odel", "state", "eights"};
    enum { NEAR = 24 };
    struct hb_span before = hb_span_last(place->before, NEAR);
    struct hb_span after = hb_span_first(place->after, NEAR);
    static const char *const outputs[] = {"prediction", "result", "output", "image"};
    /* "saved", which went well; a key of a configuration */
    static const char *const ends[] = {"d ", "_steps", "_total", "_strategy", "\":"};
    bool option = HB_SPAN_HAS_ANY(after, outputs) || HB_SPAN_STARTS_ANY(after, ends) ||
                  hb_span_has(before, "--");
    bool saves =
        is_then(before) || HB_SPAN_HAS_ANY(after, things) || HB_SPAN_HAS_ANY(before, things);
    if (saves && !option)
        take_mark(r, form, place);
}

/* "resume from CKPT", "when loading from checkpoint": what is loaded for all at once, no option. */
static void take_resume(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    static const char *const things[] = {"heckpoint", "ckpt", "CKPT", "ZeRO", "raining"};
    static const char *const verbs[] = {"e ", "ed ", "ing "}; /* words end so */
    enum { NEAR = 48 };
    struct hb_span after = hb_span_first(place->after, NEAR);
    if (hb_span_starts(hb_span_last(place->before, 2), "_")) /* --actual_resume: first weights */
        return;
    if (HB_SPAN_STARTS_ANY(after, verbs) && HB_SPAN_HAS_ANY(after, things))
        take_stem(r, form, place);
}

/* "decrease `gpu_memory_utilization`", "mem-fraction-static should be lowered": somebody's advice.
 */
static bool lowers(struct hb_span s)
{
    static const char *const verbs[] = {"educ", "ecreas", "owered", "ower ", "owering"};
    return HB_SPAN_HAS_ANY(s, verbs);
}

static void take_share(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    enum { NEAR = 96 };
    struct hb_span before = hb_span_last(place->before, NEAR);
    struct hb_span after = hb_span_first(place->after, NEAR);
    if (hb_span_has(before, "ncreas"))
        return;
    if (lowers(before) || (lowers(after) && !hb_span_has(after, " or ")))
        take_mark(r, form, place);
}

/* ".../logits/W/Adam/Assign": TensorFlow's name of an optimizer's state that is made. */
static void take_slot(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    static const char *const made[] = {"/Assign", "/Initializer"};
    struct hb_span s = place->after;
    hb_span_skip(&s, "_123456789");
    if (HB_SPAN_STARTS_ANY(s, made))
        take_mark(r, form, place);
}

/* "many processes run on the first GPU", "GPU0 has so much process", "processes of other GPUs
 * appear on GPU0": what each rank leaves on the first device. */
static void take_crowd(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    static const char *const firsts[] = {"GPU0",  "GPU 0", "gpu0",      "gpu 0",
                                         "GPU:0", "uda:0", "first GPU", "first gpu"};
    static const char *const many[] = {"any ", "much ", "all ", "very ", "xtra ", "each ", "ther "};
    enum { NEAR = 24, FAR = 48 };
    struct hb_span before = hb_span_last(place->before, NEAR);
    struct hb_span after = hb_span_first(place->after, FAR);
    bool first = HB_SPAN_HAS_ANY(before, firsts) || HB_SPAN_HAS_ANY(after, firsts);
    if (first && (HB_SPAN_HAS_ANY(before, many) || hb_span_has(after, "ther GPU")))
        take_mark(r, form, place);
}

/* "it fails on the GPU": whose memory is refused */
static void take_place(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    static const char *const fails[] = {"fail", "crash", "dies", "stops"};
    enum { NEAR = 24 };
    for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
        struct hb_span rest = hb_span_last(place->before, NEAR);
        if (hb_span_find(&rest, fails[i]) && hb_span_has(rest, " on ")) {
            take_mark(r, form, place);
            return;
        }
    }
}

/* "CUDA_VISIBLE_DEVICES=0,1" */
static void take_devices(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t first;
    hb_span_skip(&s, "=\"' ");
    if (hb_span_int(&s, &first) && hb_span_starts(s, ","))
        take_mark(r, form, place);
}

/* "device_map='cuda:0'" */
static void take_map(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    static const char *const devices[] = {"cuda:", "npu:", "xpu:"};
    struct hb_span s = place->after;
    hb_span_skip(&s, "=:\"' ");
    if (HB_SPAN_STARTS_ANY(s, devices))
        take_mark(r, form, place);
}

/* "sufficient reserved but unallocated memory", not PyTorch's own "If reserved but ..." */
static void take_reserved(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    static const char *const words[] = {"ufficient", "ignificant", "arge", "uge", "uch ", "ot of"};
    enum { NEAR = 24 };
    if (HB_SPAN_HAS_ANY(hb_span_last(place->before, NEAR), words))
        take_mark(r, form, place);
}

/* "std::bad_alloc: cudaErrorMemoryAllocation", "bad_alloc: CUDA error at: ../include/rmm" */
static void take_bad_alloc(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    static const char *const apis[] = {"cuda", "CUDA", "hip", "HIP"};
    enum { NEAR = 24 };
    if (HB_SPAN_HAS_ANY(hb_span_first(place->after, NEAR), apis))
        take_mark(r, form, place);
}

/* "full-vocab fp32 logits", "materialize the logits" */
static void take_logits(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    static const char *const words[] = {"full", "whole", "entire", "aterializ", "vocab", "fp32"};
    enum { NEAR = 32 };
    if (HB_SPAN_HAS_ANY(hb_span_last(place->before, NEAR), words))
        take_mark(r, form, place);
}

/* "I tried", not "PART I OF": of himself */
static void take_self(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    if (place->after.at < place->after.end && is_lower(*place->after.at))
        take_mark(r, form, place);
}

/* "python3 tools/train_net.py", a frame in "train.py", "python eval.py": what was run, by its name.
 */
static void take_script(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    static const char *const trains[] = {"train", "finetune", "pretrain"};
    static const char *const runs[] = {"eval",    "test",     "demo",  "infer",
                                       "predict", "generate", "sample"};
    enum { NEAR = 64 };
    struct hb_span before = hb_span_last(place->before, NEAR), name = before;
    while (name.at < name.end && strchr("/\\ \"'", name.end[-1]) == NULL)
        name.end--;
    name = (struct hb_span){name.end, before.end};
    struct hb_span command = {before.at, name.at};
    bool train = HB_SPAN_STARTS_ANY(name, trains), run = HB_SPAN_STARTS_ANY(name, runs);
    bool main = hb_span_has(command, "python") || hb_span_has(command, "File \"");
    if (train && main && !hb_span_has(name, "trainer"))
        hb_form_log(r)->mark[HB_MARK_STEP_NAMED]++;
    if (run && !hb_span_has(name, "train") && hb_span_has(command, "python") &&
        !hb_span_has(command, "packages"))
        hb_form_log(r)->mark[HB_MARK_RUN_NAMED]++;
    (void)form;
}

#define ROW(words, what, letters, handler)                                                         \
    {                                                                                              \
        words, HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_##what, .text = (letters),              \
                                           .handle = (handler)                                     \
    }
#define SIGN(words, what)         ROW(words, what, NULL, take_mark)
#define STEM(letters, rest, what) ROW(rest, what, letters, take_stem)
#define WORD(letters, rest, what) ROW(rest, what, letters, take_word)
#define SELF(words)                                                                                \
    {                                                                                              \
        words, HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_NARRATED, .handle = take_mark,          \
                                           .word = true                                            \
    }

static const struct hb_form rows[] = {
    /* what is written beside a change of a program's source */
    SIGN("his PR ", CHANGE),
    SIGN("  File \"", PRINTED), /* a frame of a stack */
    /* somebody who tells of himself */
    {"I ", HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_NARRATED, .handle = take_self, .word = true},
    SELF("I'm "),
    SELF("I've"),
    SELF("i am "),
    SELF("i try"),
    SELF("i use"),
    SELF("i hav"),
    SELF("my "),
    SELF("My "),
    /* who else ends processes, and why: a deadline, a probe that failed, somebody's hand, a rule of
     * the system, a container's other reason, a crash */
    SIGN("TIMEOUT", ENDED_BY),
    SIGN("imeout", ENDED_BY),
    SIGN("imed out", ENDED_BY),
    SIGN("eadline", ENDED_BY),
    SIGN("TIME LIMIT", ENDED_BY),
    SIGN("ime limit", ENDED_BY),
    SIGN("iveness", ENDED_BY),
    SIGN("robe failed", ENDED_BY),
    SIGN("kill -9", ENDED_BY),
    SIGN("kill -KILL", ENDED_BY),
    SIGN("pkill", ENDED_BY),
    SIGN("ocker kill", ENDED_BY),
    SIGN("ocker stop", ENDED_BY),
    SIGN("scancel", ENDED_BY),
    SIGN("in handle_abort", ENDED_BY), /* gunicorn's worker at its deadline */
    SIGN("excessive cpu", ENDED_BY),
    SIGN("atekeeper", ENDED_BY),
    SIGN("ntivirus", ENDED_BY),
    SIGN("code signature", ENDED_BY),
    SIGN("Unknown               Unknown", ENDED_BY), /* a frame of Fortran's */
    ROW("Reason:", ENDED_BY, "Error", take_behind),
    ROW("misleading", ENDED_BY, NULL, take_denial),
    ROW("spurious", ENDED_BY, NULL, take_denial),
    ROW("masquerad", ENDED_BY, NULL, take_denial),
    ROW(".py", STEP_NAMED, NULL, take_script),
    SIGN("jit(train", STEP_NAMED),
    SIGN("jit_train", STEP_NAMED),
    SIGN("in decorate_context", NO_GRADS),
    SIGN("jit(generate", RUN_NAMED),
    SIGN("jit_generate", RUN_NAMED),
    SIGN("jit(decode", RUN_NAMED),
    SIGN("jit(sample", RUN_NAMED),
    STEM("sS", "erving", SERVES),
    WORD("sS", "erve", SERVES),
    STEM("vV", "llm", SERVES),
    SIGN("vLLM", SERVES),
    SIGN("VLLM", SERVES),
    STEM("mM", "indie", SERVES),
    SIGN("NPURayWorker", SERVES),
    SIGN("sglang", SERVES),
    SIGN("SGLang", SERVES),
    SIGN("ServerArgs(", SERVES),
    SIGN("cumem_allocator", SERVES),
    SIGN("text_generation_", SERVES),
    SIGN("text-generation-inference", SERVES),
    SIGN("lmdeploy", SERVES),
    SIGN("TensorRT-LLM", SERVES),
    SIGN("TRT-LLM", SERVES),
    SIGN("tensorrt_llm", SERVES),
    SIGN("TGI", SERVES),
    SIGN("multiproc_executor", SERVES),
    SIGN("EngineCore", SERVES),
    SIGN("model_runner.py", SERVES),
    SIGN("max_batch_", SERVES),
    SIGN("max batch total", SERVES),
    SIGN("max-batch-", SERVES),
    SIGN("max_model_len", SERVES),
    SIGN("max_num_seqs", SERVES),
    SIGN("max-model-len", SERVES),
    SIGN("gpu-memory-utilization", SERVES),
    SIGN("gpu_memory_utilization", SERVES),
    SIGN("mem-fraction-static", SERVES),
    ROW("gpu-memory-utilization", SHARE, NULL, take_share),
    ROW("gpu_memory_utilization", SHARE, NULL, take_share),
    ROW("mem-fraction-static", SHARE, NULL, take_share),
    ROW("mem_fraction_static", SHARE, NULL, take_share),
    ROW("oad", LOADS, "lL", take_load),
    ROW("saving", SAVES, NULL, take_save),
    ROW("save", SAVES, NULL, take_save),
    ROW("esum", SAVES, "rR", take_resume),
    ROW("estor", SAVES, "rR", take_resume),
    SIGN("because of fragmentation", PIECES),
    SIGN("due to memory fragmentation", PIECES),
    SIGN("suffers fragmentation", PIECES),
    SIGN("_state_dict_utils", GATHERS),
    SIGN("state_dict() call", GATHERS), /* "... after returning from ..." */
    SIGN("optim_state_dict", GATHERS),
    SIGN("\u4fdd\u5b58\u6a21\u578b", SAVES), /* "save the model" in Chinese */
    SIGN("\u4ece\u68c0\u67e5\u70b9", SAVES), /* "from the checkpoint" */
    SIGN("convert_checkpoint", LOADS),
    SIGN("emory to run this model", LOADS),
    SIGN("odel loading", LOADS),
    SIGN("from_pretrained(", LOADS),
    SIGN("from_preset(", LOADS),
    SIGN("pipe.to(", LOADS),
    SIGN("module._apply(fn)", LOADS),
    SIGN("_apply(lambda t: t.cuda(device", PLACES),
    SIGN("_apply(convert)", LOADS),
    SIGN(", in convert", LOADS),
    SIGN("odel failed to load", LOADS),
    SIGN("are dispatched on the CPU", LOADS),
    SIGN("are dispatched on the CPU", NO_GRADS), /* before anything is trained */
    SIGN("weights offloaded to the disk", LOADS),
    SIGN("weights offloaded to the disk", NO_GRADS),
    SIGN("to dispatch this model", LOADS),
    SIGN("to dispatch this model", NO_GRADS),
    SIGN("scaled_dot_product_attention", SCORES),
    SIGN("scores = ", SCORES),
    SIGN("k.transpose(-", SCORES),
    SIGN("attention_mask", SCORES),
    SIGN("cross_entropy", LOGITS),
    SIGN("logits", LOGITS),
    ROW("logits", WHOLE_LOGITS, NULL, take_logits),
    ROW("bad_alloc", DEVICE_ALLOC, NULL, take_bad_alloc),
    ROW("VISIBLE_DEVICES", MANY, NULL, take_devices),
    ROW("device_map", ONE, NULL, take_map),
    ROW("GPU", OF_DEVICE, NULL, take_place),
    ROW("reserved but un", PIECES, NULL, take_reserved),
    ROW("rocess", HELD, NULL, take_crowd),
    SIGN("olds GPU memory", HELD),
    SIGN("sure the GPU is free", HELD),
    SIGN("nproc_per_node", MANY),
    SIGN("use `NO_SHARD`", UNSHARDED),
    WORD("iI", "mage", IMAGES),
    SIGN("SDXL", IMAGES),
    STEM("cC", "omfy", IMAGES),
    WORD("vV", "ideo", IMAGES),
    STEM("uU", "net", IMAGES),
    SIGN("inkowski", IMAGES), /* sparse convolutions */
    SIGN("esolution", INPUTS),
    SIGN("ong audio", INPUTS),
    SIGN("ong sequence", INPUTS),
    WORD("iI", "mages", INPUTS),
    SIGN("Could not find any implementation", NO_ENGINE),
    SIGN("nternal error: plugin node", NO_ENGINE),
    SIGN(".backward(", BACKWARD),
    SIGN("run_backward(", BACKWARD),
    SIGN("optimizer.step()", UPDATES),
    SIGN("_optimizer_step", UPDATES),
    SIGN("torch/optim/adam", UPDATES),
    SIGN("exp_avg", UPDATES),
    SIGN("initialize_optimizer_states", UPDATES),
    ROW("/Adam", UPDATES, NULL, take_slot),
    SIGN("optimizer state init", UPDATES),
    SIGN("during the step", UPDATES),
    SIGN("\u521d\u59cb\u5316optimizer", UPDATES), /* "initialize", "states of the optimizer" */
    SIGN("GPU", DEVICE),
    SIGN("gpu", DEVICE),
    SIGN("CUDA", DEVICE),
    SIGN("cuda", DEVICE),
    SIGN("VRAM", DEVICE),
    SIGN("vram", DEVICE),
    SIGN("TPU", DEVICE),
    SIGN("NPU", DEVICE),
    SIGN("XPU", DEVICE),
    SIGN("HBM", DEVICE),
    SIGN("orch", DEVICE),
    SIGN("VIDIA", DEVICE),
    SIGN("vidia", DEVICE),
    SIGN("ensor", DEVICE),
    SIGN("FSDP", DEVICE),
    SIGN("XLA", DEVICE),
    SIGN("\u663e\u5b58", DEVICE), /* "memory of a card", "card" in Chinese */
    SIGN("\u663e\u5361", DEVICE),
    SIGN("kIOGPU", METAL),
    SIGN("MPS backend", METAL),
    SIGN("TPU device", TPU),
    SIGN("TPU backend", TPU),
    SIGN("TPU_", TPU),
    SIGN("libtpu", TPU),
    SIGN("_HBM0)", TPU),
    SIGN("_HBM1)", TPU),
    SIGN("device=TPU", TPU),
    SIGN("XLA:TPU", TPU),
};

const struct hb_forms hb_forms_program = {rows, sizeof rows / sizeof rows[0]};
