/* A line that says in any words that memory was refused, and that no form knows: what was asked
 * and what there was are looked for around the words that such sentences have in common.
 * Lines that a form of another table took are left alone, and so is advice ("if you run out of
 * memory, try ..."). */
#include "sim/hlo/logform.h"

static bool has_one(struct hb_span s, const char *const *words)
{
    for (; *words; words++)
        if (hb_span_has(s, *words))
            return true;
    return false;
}

/* Whether the text tells what to do, or what might be, and not what was. */
static bool is_advice(struct hb_span s)
{
    static const char *const words[] = {
        "f you ",    "to avoid",  "o prevent",  "ay run out", "ay cause", "might ",        "ow to ",
        "could be ", "o be safe", "n case of ", "help with",  "No such",  "not a failure", NULL};
    return has_one(s, words);
}

/* What is said behind the words is the refusal's own advice. */
static void take_any(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    if (!is_advice(place->before))
        hb_form_any_seen(r);
    (void)form;
}

/* Whether it is about the host's memory: the C library's and the C++ library's words for it, and
 * those that name it. */
static bool is_host(struct hb_span s)
{
    static const char *const devices[] = {"CUDA", "cuda",   "GPU",    "VRAM",
                                          "rmm/", "Vulkan", "OpenCL", NULL};
    static const char *const words[] = {"annot allocate memory",
                                        "bad_alloc",
                                        "host memory",
                                        "Host memory",
                                        "system memory",
                                        "pinned memory",
                                        "CPU memory",
                                        "cpu memory",
                                        " RAM",
                                        "heap space",
                                        "GC overhead",
                                        "/dev/shm",
                                        "mmap",
                                        "HOST_MEMORY",
                                        "Host Memory",
                                        "emory map failed",
                                        "illed out of memory",
                                        "HostMemory",
                                        "Errno 12",
                                        "posix_memalign",
                                        NULL};
    return has_one(s, words) && !has_one(s, devices);
}

/* Whether a limit of the runtime or the device refused, not what was left. */
static bool is_limit(struct hb_span s)
{
    static const char *const words[] = {"pool size exceeded", "max size of memory object",
                                        "limit exceeded", "exceeds the limit", NULL};
    return has_one(s, words);
}

enum { LEAST = 1024 };

/* An amount that can be meant: no count of things, no side of a shape. */
static bool take_amount(struct hb_span *s, struct hb_amount *out)
{
    struct hb_span rest = *s;
    hb_span_skip(&rest, "(=:");
    if (!hb_span_amount(&rest, 1, out) || (out->bytes > 0 && out->bytes < LEAST))
        return false;
    if (rest.at < rest.end && (*rest.at == 'x' || *rest.at == '*' || *rest.at == 'X'))
        return false;
    *s = rest;
    return true;
}

/* The first amount behind any of the words; those that say most come first. */
static bool amount_behind(struct hb_span s, const char *const *words, struct hb_amount *out)
{
    for (; *words; words++)
        for (struct hb_span at = s; hb_span_find(&at, *words);)
            if (take_amount(&at, out))
                return true;
    return false;
}

/* A petabyte or more. */
static bool absurd_behind(struct hb_span s, const char *const *words)
{
    const int64_t most = INT64_C(1) << 50;
    struct hb_amount amount;
    for (const char *const *word = words; *word; word++)
        for (struct hb_span at = s; hb_span_find(&at, *word);)
            if (hb_span_is_absurd(at))
                return true;
    return amount_behind(s, words, &amount) && amount.bytes >= most;
}

static bool amount_before(struct hb_span s, const char *const *words, struct hb_amount *out)
{
    for (; *words; words++)
        for (struct hb_span at = s; hb_span_find(&at, *words);) {
            struct hb_span before = {s.at, at.at - hb_span_of(*words).end + hb_span_of(*words).at};
            if (hb_span_amount_last(before, out) && (!out->bytes || out->bytes >= LEAST))
                return true;
        }
    return false;
}

/* "torch.Size([2, 80, 256, 256]), torch.float16" */
static bool tensor_of_torch(struct hb_span s, struct hb_amount *out)
{
    char type[HB_LOG_WORD_CAP];
    if (!hb_span_find(&s, "torch.Size(["))
        return false;
    struct hb_span dims = s;
    if (!hb_span_find(&s, "torch."))
        return false;
    hb_span_copy(&s, " ,)'\"", type, sizeof type);
    int64_t bytes = hb_form_array_bytes(dims, type);
    *out = (struct hb_amount){bytes, 1};
    return bytes >= 0;
}

void hb_form_take_any(struct hb_log_reader *r, struct hb_span s)
{
    static const char *const asked_words[] = {"ried to allocate ",
                                              "rying to allocate ",
                                              "llocate ",
                                              "llocating ",
                                              "llocation of ",
                                              "llocate tensor with ",
                                              "llocate memory ",
                                              "o mmap ",
                                              "equested ",
                                              "equested",
                                              "equired ",
                                              "equired",
                                              "size of ",
                                              "Upstream ",
                                              "size ",
                                              "size",
                                              "eeds ",
                                              "eed ",
                                              NULL};
    static const char *const free_words[] = {
        "vailable ", "vailable",  "free ", "free",
        "limit is ", "limit of ", "limit", "supported by device is ",
        NULL};
    /* without a figure it could be anything that was refused */
    static const char *const things[] = {"emory", "MEMORY",     "ensor",     "uffer",
                                         "GPU",   "OUT_OF_RES", "pool size", NULL};
    static const char *const free_ends[] = {"free", "available", "left", "remaining", NULL};
    struct hb_amount amount;
    if (is_host(s)) {
        struct hb_log_message *m = hb_form_join(r, HB_LOG_HOST);
        if (m->fact[HB_FACT_ASKED] < 0 && amount_behind(s, asked_words, &amount)) {
            hb_form_name(m, HB_LOG_REFUSED);
            hb_form_set(m, HB_FACT_ASKED, amount);
        }
        return;
    }
    if (absurd_behind(s, asked_words)) {
        hb_form_open(r, HB_LOG_CORRUPT);
        return;
    }
    bool told = amount_behind(s, asked_words, &amount) || tensor_of_torch(s, &amount);
    if (!told && !has_one(s, things))
        return;
    struct hb_log_message *m = hb_form_open(r, HB_LOG_ANY);
    if (is_limit(s))
        hb_form_name(m, HB_LOG_LIMIT);
    if (told)
        hb_form_set(m, HB_FACT_ASKED, amount);
    if (amount_before(s, free_ends, &amount) || amount_behind(s, free_words, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
}

#define ANY(words)                                                                                 \
    {                                                                                              \
        words, HB_LOG_ANY, HB_FORM_ADDS, .handle = take_any                                        \
    }

static const struct hb_form rows[] = {
    ANY("ut of memory"),
    ANY("ut Of Memory"),
    ANY("UT OF MEMORY"),
    ANY("utOfMemory"),
    ANY("UT_OF_MEMORY"),
    ANY("utOfDeviceMemory"),
    ANY("UT_OF_DEVICE_MEMORY"),
    ANY("UT_OF_HOST_MEMORY"),
    ANY("nsufficient memory"),
    ANY("nsufficient Memory"),
    ANY("nsufficient GPU memory"),
    ANY("ot enough memory"),
    ANY("ot enough GPU memory"),
    ANY("ot enough device memory"),
    ANY("annot allocate"),
    ANY("ut of CUDA memory"),
    ANY("ailed to allocate"),
    ANY("ail to allocate"),
    ANY("ailed to alloc "),
    ANY("nable to allocate"),
    ANY("ould not allocate"),
    ANY("an't allocate"),
    ANY("llocation failed"),
    ANY("lloc failed"),
    ANY("memory allocation of size"),
    ANY("ALLOC_FAILED"),
    ANY("bad_alloc"),
    ANY("emory exhausted"),
    ANY("emory size limit exceeded"),
    ANY("emory limit exceeded"),
    ANY("osix_memalign"),
    ANY("AllocationFailed"),
    ANY("Java heap space"),
    ANY("ay not have enough"),
    ANY("bject Allocation Failure"),
    ANY("llocation Failure"),
    ANY("llocation failure"),
    ANY("max size of memory object"),
    ANY("out of GPU resources"),
    ANY("UT_OF_RESOURCES"),
    ANY("emory map failed"),
    ANY("llocate failed"),
    ANY("llocation of size"),
    ANY("ut of Host Memory"),
    ANY("pool size exceeded"),
};

const struct hb_forms hb_forms_any = {rows, sizeof rows / sizeof rows[0]};
