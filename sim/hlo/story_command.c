/* Ready command lines: what the log tells of the run, as `hbmsim` options. Names of models are
 * compared without case, punctuation and the words that publishers add. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/hlo/story.h"

/* Letters and digits of the last part of a path, in lower case. */
static void squeeze(const char *name, char *out, size_t cap)
{
    const char *slash = strrchr(name, '/');
    size_t len = 0;
    for (const char *at = slash ? slash + 1 : name; *at && len + 1 < cap; at++)
        if (isalnum((unsigned char)*at))
            out[len++] = (char)tolower((unsigned char)*at);
    out[len] = '\0';
}

/* Models that go by another name than in the zoo. */
static const struct {
    const char *squeezed;
    const char *zoo;
} aliases[] = {
    {"deepseek3671b", "deepseek-v3"},
    {"deepseek2236b", "deepseek-v2"},
    {"deepseek216b", "deepseek-v2-lite"},
};

static const char *const endings[] = {"instruct", "chat", "base", "hf", "it", "pt", "v01", "v03"};

static bool strip_ending(char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t more = strlen(endings[i]);
        if (len <= more || strcmp(name + len - more, endings[i]) != 0)
            continue;
        name[len - more] = '\0';
        return true;
    }
    return false;
}

static void strip_words(char *name)
{
    static const char publisher[] = "meta";
    while (strip_ending(name))
        continue;
    if (strncmp(name, publisher, strlen(publisher)) == 0)
        memmove(name, name + strlen(publisher), strlen(name) - strlen(publisher) + 1);
}

static const char *find_preset(const char *model, const char *const *zoo)
{
    char wanted[HB_LOG_WORD_CAP];
    char known[HB_LOG_WORD_CAP];
    squeeze(model, wanted, sizeof wanted);
    strip_words(wanted);
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(aliases[i].squeezed, wanted) == 0)
            return aliases[i].zoo;
    for (; zoo && *zoo && wanted[0]; zoo++) {
        squeeze(*zoo, known, sizeof known);
        if (strcmp(known, wanted) == 0)
            return *zoo;
    }
    return NULL;
}

/* 0 where the log does not say, or says no whole number: "4.0" is one. */
static int64_t number_of(const struct hb_log *log, enum hb_log_setting setting)
{
    char *end;
    double value = strtod(log->setting[setting], &end);
    bool whole = value >= 1 && value < 1e9 && value == (double)(int64_t)value;
    return log->setting[setting][0] && whole && !*end ? (int64_t)value : 0;
}

static void add_set(struct hb_str *s, const char *key, int64_t value)
{
    if (value > 0)
        hb_str_addf(s, " --set %s=%lld", key, (long long)value);
}

/* Whether PyTorch ran it. */
static bool is_of_torch(const struct hb_story *story)
{
    return story->compiler && hb_str_same(story->compiler, "torch");
}

static const struct axis {
    enum hb_log_setting setting;
    const char *key;
} axes[] = {
    {HB_SET_DATA, "mesh.data"},     {HB_SET_FSDP, "mesh.fsdp"},
    {HB_SET_TENSOR, "mesh.tensor"}, {HB_SET_SEQUENCE, "mesh.sequence"},
    {HB_SET_EXPERT, "mesh.expert"}, {HB_SET_PIPELINE, "mesh.pipeline"},
};

/* The mesh that the log tells; what it leaves of the devices goes to fsdp or, of Megatron, to data,
 * so that the product is right. */
static void add_mesh(struct hb_str *s, const struct hb_log *log, const struct hb_story *story)
{
    int64_t devices = number_of(log, HB_SET_DEVICES);
    int64_t product = 1;
    bool megatron = is_of_torch(story) && story->framework == HB_FW_LOG_MEGATRON;
    enum hb_log_setting rest = megatron ? HB_SET_DATA : HB_SET_FSDP;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        int64_t width = number_of(log, axes[i].setting);
        product = hb_mul_sat(product, width > 1 ? width : 1);
    }
    int64_t left = devices && devices % product == 0 ? devices / product : 1;
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        int64_t width = number_of(log, axes[i].setting);
        width = width > 1 ? width : 1;
        if (axes[i].setting == rest)
            width *= left;
        add_set(s, axes[i].key, width > 1 ? width : 0);
    }
    add_set(s, "hardware.count", devices);
}

static void add_batch(struct hb_str *s, const struct hb_log *log)
{
    int64_t global = number_of(log, HB_SET_GLOBAL_BATCH);
    bool maxtext = log->framework[HB_FW_LOG_MAXTEXT] > 0;
    if (!global && maxtext)
        global = number_of(log, HB_SET_DEVICE_BATCH) * number_of(log, HB_SET_DEVICES);
    add_set(s, "batch.global", global);
    add_set(s, "batch.seq", number_of(log, HB_SET_SEQ));
    add_set(s, "batch.accumulate", number_of(log, HB_SET_ACCUMULATE));
    if (strcmp(log->setting[HB_SET_REMAT], "full") == 0)
        hb_str_add(s, " --set remat.policy=full");
}

static void add_hardware(struct hb_str *s, const struct hb_story *story)
{
    int64_t usable_bytes = story->capacity_bytes - story->beside_bytes;
    if (story->compiler)
        hb_str_addf(s, " --set compiler=%s", story->compiler);
    if (is_of_torch(story) && story->framework == HB_FW_LOG_MEGATRON)
        hb_str_add(s, " --set runtime.framework=megatron");
    if (story->device)
        hb_str_addf(s, " --set hardware.device=%s", story->device);
    else if (usable_bytes > 0)
        hb_str_addf(s, " --set hardware.hbm=%lld", (long long)usable_bytes);
}

static const char *build_sets(struct hb_arena *arena, const struct hb_log *log,
                              const struct hb_story *story, bool with_run)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    if (with_run) {
        add_mesh(&s, log, story);
        add_batch(&s, log);
    }
    add_hardware(&s, story);
    return s.text;
}

/* The first knob that hbmsim's input has; an axis of the mesh alone would not agree with the
 * number of devices. */
static const char *first_set(const struct hb_story *story)
{
    for (int i = 0; i < story->knob_count; i++) {
        const char *set = hb_story_set(story, story->knobs[i].knob);
        if (set && strncmp(set, "mesh.", strlen("mesh.")) != 0)
            return set;
    }
    return NULL;
}

/* Where the story is about the load of the state, the command is about it too. */
static const char *load_sets(struct hb_arena *arena, const struct hb_log *log, const char *method)
{
    int64_t processes = number_of(log, HB_SET_PROCESSES);
    return processes ? hb_arena_printf(arena, " --set load.method=%s --set load.processes=%lld",
                                       method, (long long)processes)
                     : hb_arena_printf(arena, " --set load.method=%s", method);
}

int hb_story_commands(struct hb_arena *arena, const struct hb_log *log,
                      const struct hb_story *story, struct hb_story_model model,
                      const char *out_lines[4])
{
    const char *preset = model.path ? NULL : find_preset(log->setting[HB_SET_MODEL], model.zoo);
    const char *sets = build_sets(arena, log, story, preset != NULL);
    const char *file = model.path ? model.path : preset ? "step.yaml" : "model.yaml";
    const char *knob = first_set(story);
    bool load = story->cause == HB_CAUSE_REPLICATION;
    int count = 0;
    if (preset)
        out_lines[count++] = hb_arena_printf(
            arena, "printf 'hbmsim: 1\\nmodel: {preset: %s}\\n' >step.yaml", preset);
    out_lines[count++] = hb_arena_printf(arena, "hbmsim simulate %s%s%s", file, sets,
                                         load ? load_sets(arena, log, "device_put") : "");
    if (load)
        out_lines[count++] = hb_arena_printf(arena, "hbmsim simulate %s%s%s", file, sets,
                                             load_sets(arena, log, "callback"));
    if (load)
        return count;
    if (knob)
        out_lines[count++] =
            hb_arena_printf(arena, "hbmsim simulate %s%s --set '%s'", file, sets, knob);
    out_lines[count++] = hb_arena_printf(arena, "hbmsim advise %s%s", file, sets);
    return count;
}
