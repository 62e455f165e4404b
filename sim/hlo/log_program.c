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

static void take_stem(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    if (begins_word(form, place->before))
        take_mark(r, form, place);
}

/* "... worked fine, but": whatever went well is not what failed; not "fine-tuning". */
static bool goes_well(struct hb_span after)
{
    static const char *const words[] = {" fine,",  " fine.",  " fine but",   " ok,",
                                        " ok.",    " ok but", " successful", "no problem,",
                                        " is ok ", " OK,",    " well, but",  " well but"};
    enum { NEAR = 56 };
    return HB_SPAN_HAS_ANY(hb_span_first(after, NEAR), words);
}

/* "the memory is enough for training": that went well. */
static bool is_enough(struct hb_span before)
{
    static const char *const words[] = {"enough for ", "sufficient for "};
    enum { NEAR = 20 };
    return HB_SPAN_HAS_ANY(hb_span_last(before, NEAR), words) &&
           !hb_span_has(hb_span_last(before, NEAR), "not ");
}

/* "training", but not where each module of PyTorch asks whether it is: "training=self.training". */
static void take_training(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    if (!hb_span_starts(place->after, "=self.") && !goes_well(place->after) &&
        !is_enough(place->before))
        take_stem(r, form, place);
}

/* A device, not a part of a machine's name: "gke-x3-gpu-n1". */
static void take_device(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    if (!hb_span_starts(hb_span_last(place->before, 1), "-") || !hb_span_starts(place->after, "-"))
        take_mark(r, form, place);
}

static void take_word(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    bool ends = (place->after.at == place->after.end || !is_lower(*place->after.at)) &&
                !hb_span_starts(place->after, "_len"); /* of a forecast, "pred_len" */
    static const char *const parts[] = {" memory", " card", " board", " ram", " RAM", " driver"};
    bool device = false; /* "video memory" */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        device = device || hb_span_starts(place->after, parts[i]);
    if (ends && !device && begins_word(form, place->before))
        take_mark(r, form, place);
}

/* "train", not "the train code, it is ok". */
static void take_train(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    if (!goes_well(place->after))
        take_word(r, form, place);
}

/* "reinforcement learning", "when learning", not the field's name. */
static void take_learning(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    static const char *const fields[] = {"eep ", "eep-", "eep_", "achine ", "achine-"};
    enum { NEAR = 9 };
    if (!HB_SPAN_HAS_ANY(hb_span_last(place->before, NEAR), fields))
        take_word(r, form, place);
}

/* "batch size", "full_batch", not the layer that normalizes one. */
static void take_batch(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    static const char *const layers[] = {"_norm", "Norm", " norm"};
    if (!HB_SPAN_HAS_ANY(hb_span_first(place->after, 5), layers))
        take_stem(r, form, place);
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
 * T5-11B", not "when loading the data" */
static void take_load(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    static const char *const things[] = {"odel", "eight", "heckpoint", "afetensor", "state_dict"};
    enum { NEAR = 32 };
    struct hb_span after = hb_span_first(place->after, NEAR), before = place->before;
    before.end -= before.end > before.at;       /* the word's first letter */
    bool done = hb_span_starts(after, "ed ") || /* "unloading all loaded models" */
                hb_span_has(hb_span_last(before, 5), "only ");
    bool named = hb_span_starts(after, "ing ") && after.end - after.at > 4 && after.at[4] >= 'A' &&
                 after.at[4] <= 'Z' && is_then(before);
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
    bool option = HB_SPAN_HAS_ANY(after, outputs) ||
                  hb_span_starts(after, "d ") /* "saved": that went well */ ||
                  hb_span_starts(after, "_steps") || hb_span_starts(after, "_total") ||
                  hb_span_starts(after, "_strategy") || hb_span_has(before, "--");
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
    bool word = false;
    if (hb_span_starts(hb_span_last(place->before, 2), "_")) /* --actual_resume: first weights */
        return;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        word = word || hb_span_starts(after, verbs[i]);
    if (word && HB_SPAN_HAS_ANY(after, things))
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

/* "huge amounts of RAM", not "16 GB of RAM", "a GPU RAM": what there is of it says nothing. */
static void take_ram(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    static const char *const words[] = {" ", "of", "free", "system", "GPU", "gpu"};
    struct hb_span s = place->before;
    const char *end = NULL;
    s.end -= s.end > s.at; /* the word's first letter */
    bool device = false;
    while (end != s.end) {
        end = s.end;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (hb_span_starts(hb_span_last(s, (ptrdiff_t)strlen(words[i])), words[i])) {
                s.end -= strlen(words[i]);
                device = device || words[i][0] == 'g' || words[i][0] == 'G';
            }
    }
    bool has = s.end > s.at && (s.end[-1] == 'B' || s.end[-1] == 'G' || s.end[-1] == 'b');
    bool high = hb_span_starts(hb_span_last(place->before, 6), "high ");
    if (!has && !device && !high)
        take_word(r, form, place);
}

/* Not where it "overflows", the phrase for any lack of memory. */
static void take_chinese_ram(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    if (!hb_span_starts(place->after, "\u6ea2\u51fa"))
        take_mark(r, form, place);
}

/* ".../logits/W/Adam/Assign": TensorFlow's name of an optimizer's state that is made. */
static void take_slot(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    hb_span_skip(&s, "_123456789");
    if (hb_span_starts(s, "/Assign") || hb_span_starts(s, "/Initializer"))
        take_mark(r, form, place);
}

/* A notebook's "----> 1 y = model.predict(x)": the cell's own line comes first. */
static void take_call(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    static const char *const calls[] = {"predict",    "generate(",   "pipe(",   "pipeline(",
                                        "transcribe", ".inference(", ".infer(", "sample("};
    struct hb_span dashes = place->before;
    struct hb_span s = place->after;
    int64_t line;
    hb_span_skip(&dashes, " -[0;32m\033");
    if (dashes.at < dashes.end || !hb_span_int(&s, &line) || hb_form_log(r)->mark[form->fact]++)
        return;
    if (HB_SPAN_HAS_ANY(s, calls))
        hb_form_log(r)->mark[HB_MARK_RUN_CALLED]++;
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
    struct hb_span s = place->after;
    hb_span_skip(&s, "=:\"' ");
    if (hb_span_starts(s, "cuda:") || hb_span_starts(s, "npu:") || hb_span_starts(s, "xpu:"))
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

#define ROW(words, what, letters, handler)                                                         \
    {                                                                                              \
        words, HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_##what, .text = (letters),              \
                                           .handle = (handler)                                     \
    }
#define SIGN(words, what)         ROW(words, what, NULL, take_mark)
#define STEM(letters, rest, what) ROW(rest, what, letters, take_stem)
#define WORD(letters, rest, what) ROW(rest, what, letters, take_word)

static const struct hb_form rows[] = {
    STEM("iI", "nferenc", GENERATES),
    WORD("iI", "nfer", GENERATES),
    WORD("gG", "enerate", GENERATES),
    WORD("gG", "eneration", GENERATES),
    WORD("gG", "enerating", GENERATES),
    WORD("pP", "redict", GENERATES),
    WORD("dD", "etect", GENERATES),
    WORD("pP", "redictor", GENERATES),
    WORD("pP", "redicting", GENERATES),
    WORD("sS", "ampling", GENERATES),
    WORD("pP", "rediction", GENERATES),
    STEM("tT", "ranscri", GENERATES),
    STEM("dD", "iariz", GENERATES),
    STEM("dD", "iffus", GENERATES),
    STEM("dD", "enois", GENERATES),
    STEM("uU", "pscal", GENERATES),
    STEM("pP", "refill", GENERATES),
    STEM("pP", "rompt", GENERATES),
    STEM("cC", "hat", GENERATES),
    WORD("dD", "emo", GENERATES),
    STEM("sS", "ummariz", GENERATES),
    STEM("gG", "radio", GENERATES),
    STEM("hH", "ires", GENERATES),
    STEM("hH", "ighres", GENERATES),
    STEM("tT", "ranslat", GENERATES),
    STEM("gG", "guf", GENERATES),
    SIGN("GGUF", GENERATES),
    SIGN("I2V", GENERATES),
    SIGN("i2v", GENERATES),
    SIGN("T2V", GENERATES),
    SIGN("t2v", GENERATES),
    WORD("sS", "peech", GENERATES),
    WORD("vV", "oice", GENERATES),
    WORD("cC", "hatbot", GENERATES),
    SIGN("image to ", GENERATES),
    SIGN("vram state", GENERATES),
    SIGN("context length", GENERATES),
    SIGN("context window", GENERATES),
    SIGN("context size", GENERATES),
    WORD("bB", "pw", GENERATES),
    SIGN("p2p", GENERATES),
    WORD("pP", "red", GENERATES),
    SIGN("app.py", GENERATES),
    STEM("oO", "llama", GENERATES),
    STEM("cC", "omfy", GENERATES),
    STEM("wW", "hisper", GENERATES),
    WORD("vV", "ideo", GENERATES),
    WORD("vV", "ideos", GENERATES),
    WORD("sS", "erver", GENERATES),
    STEM("dD", "eploy", GENERATES),
    STEM("qQ", "uantiz", GENERATES),
    STEM("wW", "orkflow", GENERATES),
    WORD("oO", "cr", GENERATES),
    SIGN("OCR", GENERATES),
    WORD("vV", "ae", GENERATES),
    SIGN("VAE", GENERATES),
    SIGN("_ctx", GENERATES),
    STEM("fF", "ooocus", GENERATES),
    STEM("iI", "nvokeai", GENERATES),
    SIGN("nvokeAI", GENERATES),
    WORD("tT", "ts", GENERATES),
    WORD("T", "TS", GENERATES),
    SIGN("egment-anything", GENERATES),
    SIGN("egment_anything", GENERATES),
    SIGN("AutomaticMask", GENERATES),
    SIGN("PPStructure", GENERATES),
    SIGN("-render", GENERATES),
    SIGN("render.py", GENERATES),
    SIGN("render_only", GENERATES),
    STEM("iI", "npaint", GENERATES),
    STEM("wW", "aifu", GENERATES),
    STEM("eE", "srgan", GENERATES),
    STEM("bB", "enchmark", GENERATES),
    STEM("bB", "asecall", GENERATES),
    STEM("rR", "erank", GENERATES),
    WORD("dD", "ecode", GENERATES),
    WORD("dD", "ecoding", GENERATES),
    SIGN("model.encode(", GENERATES),
    SIGN("SentenceTransformer", NAMES),
    SIGN("mbedding of ", NAMES),
    SIGN("mbedding it", NAMES),
    SIGN("mbedding documents", NAMES),
    SIGN("mbed documents", NAMES),
    SIGN("mbeddings of ", NAMES),
    SIGN("sentence_transformers", NAMES),
    STEM("rR", "estorat", GENERATES),
    STEM("sS", "ynthesi", GENERATES),
    STEM("sS", "uper-res", GENERATES),
    STEM("sS", "uper_res", GENERATES),
    STEM("kK", "obold", GENERATES),
    STEM("oO", "obabooga", GENERATES),
    STEM("eE", "xllama", GENERATES),
    STEM("aA", "lphafold", GENERATES),
    SIGN("VectorStore", GENERATES),
    STEM("dD", "emucs", GENERATES),
    SIGN("LAMMPS", GENERATES),
    SIGN("lammps", GENERATES),
    WORD("fF", "olding", GENERATES),
    STEM("cC", "olabfold", GENERATES),
    SIGN("ColabFold", GENERATES),
    WORD("rR", "esidues", GENERATES),
    STEM("pP", "rotein", GENERATES),
    STEM("fF", "aceswap", GENERATES),
    STEM("lL", "ipsync", GENERATES),
    STEM("aA", "nimat", GENERATES),
    WORD("cC", "ompletions", GENERATES),
    SIGN("Node Type:", GENERATES),
    SIGN("tokens/s", GENERATES),
    SIGN("torch::jit", GENERATES),
    SIGN(".toTensor()", GENERATES),
    SIGN("tok/s", GENERATES),
    SIGN("xecutionProvider", GENERATES),
    SIGN("execution_provider", GENERATES),
    SIGN("during embedding", GENERATES),
    WORD("lL", "lm", NAMES),
    SIGN("LLM", NAMES),
    STEM("fF", "lux", NAMES),
    STEM("hH", "unyuan", NAMES),
    SIGN("SDXL", NAMES),
    STEM("lL", "lama", NAMES),
    STEM("qQ", "wen", NAMES),
    STEM("gG", "emma", NAMES),
    STEM("mM", "istral", NAMES),
    STEM("mM", "ixtral", NAMES),
    STEM("vV", "icuna", NAMES),
    STEM("cC", "hatglm", NAMES),
    STEM("iI", "nternlm", NAMES),
    STEM("bB", "aichuan", NAMES),
    STEM("dD", "eepseek", NAMES),
    STEM("cC", "ommand-r", NAMES),
    STEM("cC", "ogv", NAMES),
    STEM("cC", "odellama", NAMES),
    STEM("wW", "izard", NAMES),
    STEM("fF", "alcon", NAMES),
    STEM("sS", "tarcoder", NAMES),
    STEM("mM", "inicpm", NAMES),
    STEM("mM", "ochi", NAMES),
    STEM("wW", "an2", NAMES),
    STEM("lL", "tx", NAMES),
    SIGN("LLaVA", NAMES),
    SIGN("llava", NAMES),
    SIGN("InternVL", NAMES),
    SIGN("-Instruct", NAMES),
    SIGN("-instruct", NAMES),
    SIGN("-Chat", NAMES),
    SIGN(" app ", GENERATES),
    SIGN("eb-UI", GENERATES),
    SIGN("eb UI", GENERATES),
    SIGN("to image", GENERATES),
    SIGN("to speech", GENERATES),
    SIGN("txt2", GENERATES),
    SIGN("img2", GENERATES),
    SIGN("text2", GENERATES),
    SIGN("KSampler", GENERATES),
    SIGN("SamplerCustom", GENERATES),
    SIGN("--sample ", GENERATES),
    SIGN("test.py", GENERATES),
    SIGN("test code", GENERATES),
    SIGN("to evaluate", GENERATES),
    SIGN("in decorate_context", GENERATES), /* gradients are off */
    SIGN("jit(decode", GENERATES),
    SIGN("jit(sample", GENERATES),
    SIGN("pipeline(", GENERATES),
    SIGN("unloading all loaded models", GENERATES),
    SIGN("\u751f\u6210\u56fe", GENERATES), /* "generate a picture", "infer" in Chinese */
    SIGN("\u58f0\u97f3", GENERATES),       /* "voice", "speech" */
    SIGN("\u8bed\u97f3", GENERATES),
    SIGN("\u63a8\u7406", GENERATES),
    SIGN("\u63a8\u8ad6", GENERATES), /* "infer" in Japanese and Korean, "deploy" in Chinese */
    SIGN("\ucd94\ub860", GENERATES),
    SIGN("\u90e8\u7f72", GENERATES),
    STEM("sS", "erving", SERVES),
    WORD("sS", "erve", SERVES),
    STEM("vV", "llm", SERVES),
    SIGN("vLLM", SERVES),
    SIGN("VLLM", SERVES),
    STEM("mM", "indie", SERVES),
    SIGN("MindIE", SERVES),
    SIGN("NPURayWorker", SERVES),
    SIGN("sglang", SERVES),
    SIGN("SGLang", SERVES),
    SIGN("cumem_allocator", SERVES),
    SIGN("text_generation_", SERVES),
    SIGN("text-generation-inference", SERVES),
    SIGN("turbomind", SERVES),
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
    SIGN("max_num_batched", SERVES),
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
    ROW("AM", RAM, "R", take_ram),
    ROW("am", RAM, "r", take_ram),
    SIGN("system memory", RAM),
    ROW("\u5185\u5b58", RAM, NULL, take_chinese_ram), /* "main memory" in Chinese */
    SIGN("main memory", RAM),
    STEM("kK", "ubelet", RAM), /* it ends pods for the host's memory alone */
    SIGN("host memory", RAM),
    SIGN("CPU memory", RAM),
    SIGN("CPU Memory", RAM),
    SIGN("machine memory", RAM),
    STEM("sS", "wapfile", RAM),
    SIGN("GPU", DEVICE),
    ROW("gpu", DEVICE, NULL, take_device),
    SIGN("Gpu", DEVICE),
    SIGN("CUDA", DEVICE),
    SIGN("cuda", DEVICE),
    SIGN("Cuda", DEVICE),
    SIGN("VRAM", DEVICE),
    SIGN("vram", DEVICE),
    SIGN("HBM", DEVICE),
    SIGN("hbm", DEVICE),
    SIGN("TPU", DEVICE),
    SIGN("tpu", DEVICE),
    SIGN("MPS", DEVICE),
    SIGN("Metal", DEVICE),
    SIGN("NPU", DEVICE),
    SIGN("XPU", DEVICE),
    SIGN("HIP", DEVICE),
    SIGN("\u663e\u5b58", DEVICE),
    SIGN("because of fragmentation", PIECES),
    SIGN("due to fragmentation", PIECES),
    SIGN("due to memory fragmentation", PIECES),
    SIGN("suffers fragmentation", PIECES),
    SIGN("suffers from fragmentation", PIECES),
    SIGN("_state_dict_utils", GATHERS),
    SIGN("state_dict() call", GATHERS), /* "... after returning from ..." */
    SIGN("optim_state_dict", GATHERS),
    SIGN("\u4fdd\u5b58\u6a21\u578b", SAVES), /* "save the model" in Chinese */
    SIGN("\u4ece\u68c0\u67e5\u70b9", SAVES), /* "from the checkpoint" */
    SIGN("set_module_tensor_to_device", LOADS),
    SIGN("convert_checkpoint", LOADS),
    SIGN("emory to run this model", LOADS),
    SIGN("odel loading", LOADS),
    SIGN("eights loading", LOADS),
    SIGN("from_pretrained(", LOADS),
    SIGN("from_preset(", LOADS),
    SIGN("pipe.to(", LOADS),
    SIGN("whisper_model_load:", LOADS),
    SIGN("paddle.load(", LOADS),
    SIGN("module._apply(fn)", LOADS),
    SIGN("_apply(lambda t: t.cuda(device", PLACES),
    SIGN("_apply(convert)", PLACES),
    SIGN("_apply(convert)", LOADS),
    SIGN(", in convert", LOADS),
    SIGN("odel failed to load", LOADS),
    SIGN("scaled_dot_product_attention", SCORES),
    SIGN("scores = ", SCORES),
    SIGN("q @ k", SCORES),
    SIGN("k.transpose(-", SCORES),
    SIGN("baddbmm(", SCORES),
    SIGN("attn_weights", SCORES),
    SIGN("attention_probs", SCORES),
    SIGN("attention_mask", SCORES),
    SIGN("cross_entropy", LOGITS),
    SIGN("logits", LOGITS),
    ROW("logits", WHOLE_LOGITS, NULL, take_logits),
    ROW("-> ", CALLS, NULL, take_call),
    SIGN("hen inference", RUN_CALLED),
    SIGN("hen I inference", RUN_CALLED),
    SIGN("hile inferenc", RUN_CALLED),
    SIGN("emory during inference", RUN_CALLED),
    SIGN("emory at inference", RUN_CALLED),
    SIGN("emory in inference", RUN_CALLED),
    SIGN("emory when testing", RUN_CALLED),
    SIGN("emory during testing", RUN_CALLED),
    SIGN("emory in test", RUN_CALLED),
    ROW("bad_alloc", DEVICE_ALLOC, NULL, take_bad_alloc),
    ROW("VISIBLE_DEVICES", MANY, NULL, take_devices),
    ROW("device_map", ONE, NULL, take_map),
    ROW("reserved but un", PIECES, NULL, take_reserved),
    ROW("rocess", HELD, NULL, take_crowd),
    SIGN("ombie process", HELD),
    SIGN("rocess holding", HELD),
    SIGN("olding GPU memory", HELD),
    SIGN("olds GPU memory", HELD),
    SIGN("olding the GPU memory", HELD),
    SIGN("sure the GPU is free", HELD),
    SIGN("nproc_per_node", MANY),
    SIGN("nproc-per-node", MANY),
    SIGN("--num_processes", MANY),
    SIGN("--num_gpus", MANY),
    SIGN("nnodes", MANY),
    SIGN("use `NO_SHARD`", UNSHARDED),
    SIGN("ShardingStrategy.NO_SHARD", UNSHARDED),
    SIGN("log_softmax", LOGITS),
    SIGN("log_probs", LOGITS),
    STEM("yY", "olo", IMAGES),
    WORD("iI", "mage", IMAGES),
    SIGN("YOLO", IMAGES),
    SIGN("imgsz", IMAGES),
    STEM("rR", "esnet", IMAGES),
    STEM("uU", "net", IMAGES),
    SIGN("etectron2", IMAGES),
    STEM("mM", "mdet", IMAGES),
    STEM("sS", "egmentation", IMAGES),
    SIGN("MONAI", IMAGES),
    STEM("vV", "oxel", IMAGES),
    SIGN("grid_sample", IMAGES),
    SIGN("rasterize", IMAGES),
    SIGN("torch_geometric", IMAGES),
    STEM("uU", "pscal", IMAGES),
    SIGN("inkowski", IMAGES), /* sparse convolutions */
    SIGN("minkunet", IMAGES),
    SIGN("oint cloud", IMAGES),
    SIGN("spconv", IMAGES),
    SIGN("rnn-t", IMAGES), /* frames of sound */
    SIGN("RNN-T", IMAGES),
    STEM("tT", "ransducer", IMAGES),
    STEM("sS", "pectrogram", IMAGES),
    SIGN("ampling rate", IMAGES),
    SIGN("edge_index", IMAGES),
    SIGN("num_nodes", IMAGES),
    SIGN("conv2d(", IMAGES),
    SIGN("conv3d(", IMAGES),
    SIGN("interpolate(", IMAGES),
    {"rain", HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_LEARNS, .text = "tT", .handle = take_train,
     .unless = "ctx_t"}, /* llama.cpp's name of a length */
    WORD("pP", "retrain", LEARNS),
    STEM("rR", "etrain", LEARNS),
    STEM("tT", "rainer", LEARNS),
    {"raining", HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_LEARNS, .text = "tT",
     .handle = take_training, .unless = "self.t"},
    STEM("fF", "inetun", LEARNS),
    STEM("tT", "extual inversion", LEARNS),
    STEM("fF", "ine-tun", LEARNS),
    STEM("fF", "ine tun", LEARNS),
    STEM("fF", "ine-Tun", LEARNS),
    STEM("fF", "ine Tun", LEARNS),
    STEM("fF", "ineTun", LEARNS),
    STEM("pP", "retraining", LEARNS),
    STEM("eE", "poch", LEARNS),
    WORD("gG", "radient", LEARNS),
    ROW("earning", LEARNS, "lL", take_learning),
    ROW("atch", HINTS, "bB", take_batch),
    SIGN("samples_per_gpu", LEARNS),  /* OpenMMLab's batch of training */
    STEM("sS", "ubdivisions", HINTS), /* darknet's parts of a batch */
    SIGN("esolution", INPUTS),
    SIGN("mage size", INPUTS),
    SIGN("width: ", INPUTS),
    SIGN("ong audio", INPUTS),
    SIGN("ong video", INPUTS),
    SIGN("onger audio", INPUTS),
    SIGN("onger video", INPUTS),
    SIGN("mage_size", INPUTS),
    SIGN("mg_size", INPUTS),
    SIGN("nput size", INPUTS),
    SIGN("ox size", INPUTS),
    SIGN("crop size", INPUTS),
    SIGN("tile size", INPUTS),
    SIGN("equence length", INPUTS),
    SIGN("ong sequence", INPUTS),
    WORD("iI", "mages", INPUTS),
    WORD("lL", "oss", LEARNS),
    WORD("rR", "ollout", LEARNS),
    WORD("gG", "rpo", LEARNS),
    WORD("pP", "po", LEARNS),
    {"ft", HB_LOG_PLAIN, HB_FORM_ADDS, .fact = HB_MARK_LEARNS, .text = "sS", .handle = take_word,
     .unless = ".s"}, /* a file's ending */
    STEM("G", "RPO", LEARNS),
    STEM("P", "PO", LEARNS), /* not "SUPPORTED" */
    SIGN("SFT", LEARNS),
    STEM("D", "PO", LEARNS),
    STEM("zZ", "ero2", LEARNS),
    STEM("zZ", "ero3", LEARNS),
    SIGN("ZeRO-", LEARNS),
    SIGN("learning_rate", LEARNS),
    SIGN("I trained", LEARNS),
    SIGN("We trained", LEARNS),
    SIGN(" we trained", LEARNS),
    SIGN("micro_batch", LEARNS),
    SIGN("per_device_batch", LEARNS),
    SIGN("fsdp", LEARNS),
    SIGN("FSDP", LEARNS),
    SIGN("\u8bad\u7ec3",
         LEARNS), /* "train", "fine-tune" in Chinese, "learn" in Japanese and Korean */
    SIGN("\u5fae\u8c03", LEARNS),
    SIGN("\u5b66\u7fd2", LEARNS),
    SIGN("\ud559\uc2b5", LEARNS),
    SIGN(".fit(", LEARNS),
    STEM("dD", "reambooth", LEARNS),
    SIGN("sd-scripts", LEARNS),
    STEM("qQ", "lora", LEARNS),
    STEM("aA", "xolotl", LEARNS),
    STEM("gG", "alore", LEARNS),
    SIGN("stage3_", LEARNS),
    SIGN("per_device_train", TRAINS),
    SIGN("nstruction tuning", TRAINS),
    SIGN("nstruction Tuning", TRAINS),
    SIGN("parameter tuning", TRAINS),
    STEM("mM", "bs", TRAINS), /* "mbs4": sequences of a microbatch */
    SIGN("training_loop", TRAINS),
    SIGN("Could not find any implementation", NO_ENGINE),
    SIGN("could not be created", NO_ENGINE),
    SIGN("ngine building failed", NO_ENGINE),
    SIGN("nternal error: plugin node", NO_ENGINE),
    SIGN("jit(train", TRAINS),
    SIGN("train_step", TRAINS),
    SIGN("jit_train", TRAINS),
    SIGN(".backward(", TRAINS),
    SIGN("run_backward(", TRAINS),
    SIGN(".backward(", BACKWARD),
    SIGN("run_backward(", BACKWARD),
    SIGN("optimizer.step()", UPDATES),
    SIGN("_optimizer_step", UPDATES),
    SIGN("torch/optim/adam", UPDATES),
    SIGN("_multi_tensor_", UPDATES),
    SIGN("exp_avg", UPDATES),
    SIGN("initialize_optimizer_states", UPDATES),
    ROW("/Adam", UPDATES, NULL, take_slot),
    ROW("/Momentum", UPDATES, NULL, take_slot),
    ROW("/RMSProp", UPDATES, NULL, take_slot),
    ROW("/Adagrad", UPDATES, NULL, take_slot),
    SIGN("torch/optim/optimizer.py", UPDATES),
    SIGN("optimizer state init", UPDATES),
    SIGN("during the step", UPDATES),
    SIGN("during optimizer step", UPDATES),
    SIGN("\u521d\u59cb\u5316optimizer", UPDATES), /* "initialize", "states of the optimizer" */
    SIGN("\u4f18\u5316\u5668\u72b6\u6001", UPDATES),
    SIGN("optimizer", TRAINS),
    SIGN("transpose(jvp", TRAINS),
    SIGN("kIOGPU", METAL),
    SIGN("IOGPUMetal", METAL),
    SIGN("ggml_metal", METAL),
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
