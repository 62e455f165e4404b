/* The whole simulator on configurations that are valid by construction: the input's bytes are the
 * decisions of the generator of tests/prop, then some keys of the schema's table take any value in
 * their range where the configuration stays valid. It is lowered, run, timed and judged, one of
 * 32 printed; the parts sum to the peak, no buffers overlap, what is written reads back, and
 * one law more that the input chooses holds. Steps of PyTorch's frameworks come from their own
 * generator.
 *
 *   byte 0 to 3: seed of what no byte decides; 4: law; 5: kind, and below SHOWN it is printed;
 *   last 12: keys; between: decisions
 *
 * At its end it says how many of its executions were full runs. */
#include "tests/fuzz/fuzz.h"

#include "base/env.h"
#include "base/json.h"
#include "base/mem_file.h"
#include "cli/show.h"
#include "tests/prop/config_laws.h"
#include "tests/prop/torch_config.h"

enum { HEAD = 6, TAIL = 12, KEYS_OF_TAIL = 3, DRAWS = 50, MOST_VALUE = 160 };
enum { SHOWN = 8 };         /* of 256 inputs: printing takes ten times as long as the run */
enum { ALL_KEYS_LAWS = 2 }; /* the parts sum to the peak, buffers never overlap */

static uint64_t executions, full_runs;

static void tell_runs(void)
{
    fprintf(stderr, "# %llu executions, %llu full runs (%.1f %%)\n", (unsigned long long)executions,
            (unsigned long long)full_runs,
            executions ? 100.0 * (double)full_runs / (double)executions : 0.0);
}

static _Noreturn void stop(struct hb_arena *arena, const struct hb_spec *spec, const char *why)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    hb_schema_emit_yaml(&text, spec, false);
    fprintf(stderr, "# %s\n%s", why, text.text);
    abort();
}

/* --- keys of the table --- */

static int64_t any_whole(const struct hb_key *key, uint8_t a, uint8_t b)
{
    double most = key->high < 0x1p53 ? key->high : 0x1p53;
    double value = b;
    switch (a % 5) {
    case 0:
        value = (double)(UINT64_C(1) << b % 53);
        break;
    case 1:
        value = most - b;
        break;
    case 2:
        value = key->low + b;
        break;
    case 3:
        value = 3 * (double)(UINT64_C(1) << b % 20);
        break;
    }
    value = value < key->low ? key->low : value;
    return (int64_t)(value > most ? most : value);
}

static const char *any_word(const struct hb_word *words, uint8_t which)
{
    int count = 0;
    while (words[count].text)
        count++;
    return words[which % count].text;
}

/* False: the table has no values for keys of this kind. */
static bool any_value(const struct hb_key *key, uint8_t a, uint8_t b, char *to)
{
    switch (key->kind) {
    case HB_KEY_AXIS:
        if (b == UINT8_MAX) {
            snprintf(to, MOST_VALUE, "rest");
            return true;
        }
        /* fall through */
    case HB_KEY_INT:
    case HB_KEY_RANK:
    case HB_KEY_ONE_INTS:
    case HB_KEY_SIZE:
        snprintf(to, MOST_VALUE, "%lld", (long long)any_whole(key, a, b));
        return true;
    case HB_KEY_REAL:
        snprintf(to, MOST_VALUE, "%.17g",
                 a & 1 ? (double)b / 16 : key->low + (key->high - key->low) * b / 255);
        return true;
    case HB_KEY_BOOL:
        snprintf(to, MOST_VALUE, "%s", a & 1 ? "true" : "false");
        return true;
    case HB_KEY_ENUM:
        snprintf(to, MOST_VALUE, "%s", any_word(key->words, a));
        return true;
    case HB_KEY_MASK:
        snprintf(to, MOST_VALUE, "[%s, %s]", any_word(key->words, a), any_word(key->words, b));
        return true;
    case HB_KEY_INTS:
    case HB_KEY_EVEN_INTS:
        snprintf(to, MOST_VALUE, "[%lld, %d]", (long long)any_whole(key, a, b), b);
        return true;
    case HB_KEY_TEXT:
    case HB_KEY_MOMENTS:
    case HB_KEY_MESHES:
    case HB_KEY_SECTION:
    case HB_KEY_BLOCKS:
    case HB_KEY_PER_BLOCK:
    case HB_KEY_KIND_COUNT:
        break;
    }
    return false;
}

/* One more set of the configuration, taken back where it is not valid with it. */
static bool turn_key(struct config *c, const uint8_t bytes[4], struct hb_spec *spec)
{
    const struct hb_section *s = hb_section((enum hb_section_id)(bytes[0] % HB_SEC_COUNT));
    const struct hb_key *key = &s->keys[bytes[1] % s->key_count];
    const char *item = strstr(s->path, "[]");
    char value[MOST_VALUE];
    struct hb_spec turned;
    const char *why;
    if (strstr(s->path, "NAME") || !any_value(key, bytes[2], bytes[3], value))
        return false;
    const char *path = s->path;
    if (item)
        path = hb_arena_printf(c->arena, "%.*s[0]%s", (int)(item - path), path, item + 2);
    put_text(c, hb_arena_printf(c->arena, "%s%s%s=%s", path, *path ? "." : "", key->name, value));
    if (read_sets(c->arena, c->sets, c->count, &turned, &why)) {
        *spec = turned;
        return true;
    }
    c->count--;
    return false;
}

/* --- configurations --- */

/* False: of so many draws none was valid. out_plain: no key was turned, so that every law holds. */
static bool draw_spec(struct hb_arena *arena, const uint8_t *bytes, size_t len, uint64_t seed,
                      struct hb_spec *out, bool *out_plain)
{
    struct config c = {.arena = arena, .rng = hb_rng_seed(seed)};
    const char *why;
    bool valid = false;
    *out_plain = true;
    if (len > HEAD + TAIL) {
        c.bytes = bytes + HEAD;
        c.byte_count = len - HEAD - TAIL;
    }
    for (int i = 0; i < DRAWS && !valid; i++) {
        draw_sets(&c);
        valid = read_sets(arena, c.sets, c.count, out, &why);
    }
    for (size_t i = 0; valid && len > HEAD + TAIL && i < KEYS_OF_TAIL; i++)
        if (turn_key(&c, bytes + len - TAIL + 4 * i, out))
            *out_plain = false;
    return valid;
}

/* Of frameworks of PyTorch; their generator takes the seed alone. */
static bool draw_torch(struct hb_arena *arena, const uint8_t *bytes, size_t len, uint64_t seed,
                       struct hb_spec *out)
{
    struct hb_rng rng = hb_rng_seed(seed);
    const char *text;
    for (size_t i = HEAD; i < len; i++)
        rng.state = (rng.state ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < DRAWS; i++)
        if (torch_draw(arena, &rng, out, &text))
            return true;
    return false;
}

/* --- running them --- */

static void show(struct hb_arena *arena, const struct hb_result *r)
{
    struct hb_env env = {.arena = arena, .width = 80, .version = "0", .trace = ""};
    struct hb_diag diag;
    struct hb_str text;
    struct hb_node *root;
    char *bytes;
    size_t len;
    FILE *file = hb_mem_open(&bytes, &len);
    hb_diag_init(&diag, arena);
    hb_str_init(&text, arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_show_json(&j, arena, r, true, NULL, NULL);
    hb_json_end(&j);
    if (!hb_json_parse(arena, &diag, (struct hb_loc){"shown", 1, 1}, text.text, text.len, &root))
        stop(arena, r->spec, "what is printed is no JSON");
    hb_show_text(&env, file, r);
    hb_show_trace(file, arena, r);
    fclose(file);
    free(bytes);
}

/* Two laws of what was run; of a plain configuration, run anew, one more. */
static void hold(struct hb_arena *arena, const struct hb_result *r, uint64_t seed, int more)
{
    struct subject s = {.arena = arena,
                        .rng = hb_rng_seed(~seed),
                        .r = {.spec = *r->spec, .p = r->program, .m = r->memory}};
    if (more >= 0 && !run_spec(arena, r->spec, &s.r))
        stop(arena, r->spec, "it cannot be lowered again");
    for (int i = 0; i < LAW_COUNT; i++) {
        const char *broken = i < ALL_KEYS_LAWS || i == more ? laws[i].hold(&s) : NULL;
        if (broken)
            stop(arena, r->spec, hb_arena_printf(arena, "%s: %s", laws[i].name, broken));
    }
}

/* False: refused, with a message. */
static bool run_whole(struct hb_arena *arena, const struct hb_spec *spec, bool shown,
                      struct hb_result *out)
{
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    if (!hb_result_run(arena, &diag, spec, find_device(spec->hardware.device), out)) {
        if (!diag.errors)
            stop(arena, spec, "refused without a word");
        return false;
    }
    full_runs++;
    if (shown)
        show(arena, out);
    int64_t peak = out->memory.peak_bytes;
    if (out->interval.low_bytes > peak || out->interval.high_bytes < peak || out->mfu > 1 ||
        !(out->step_seconds >= 0) || peak <= 0 || out->hfu > 1 || lacks_work(out))
        stop(arena, spec, "a result that cannot be");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint64_t seed = 0;
    if (len < HEAD)
        return 0;
    if (!executions++) {
        profiles = hb_arena_new();
        atexit(tell_runs);
    }
    for (int i = 0; i < 4; i++)
        seed = seed << 8 | bytes[i];
    struct hb_arena *arena = fuzz_arena();
    struct hb_spec spec;
    struct hb_result r;
    bool torch = bytes[5] % 4 == 0, plain = true;
    bool drawn = torch ? draw_torch(arena, bytes, len, seed, &spec)
                       : draw_spec(arena, bytes, len, seed, &spec, &plain);
    if (drawn && run_whole(arena, &spec, bytes[5] < SHOWN, &r) && !torch)
        hold(arena, &r, seed, plain ? bytes[4] % LAW_COUNT : -1);
    return 0;
}
