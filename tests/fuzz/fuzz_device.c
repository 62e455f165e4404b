/* Device profiles: one of the database with some numbers of the format's table turned to any value
 * in their range, sometimes then bytes of its text. What is refused has a message; what is read is
 * the same after it was written and read again; and a small step runs on it, or is refused with a
 * message.
 *
 *   byte 0: profile; 1: how many numbers, and from 208 on bytes of the text too; 4 each: field,
 * value; the rest, 3 each: place, byte
 *
 * At its end it says how many of its executions ran the step. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/result.h"

enum { HEAD = 2, FIELD_BYTES = 4, FLIP_BYTES = 3, FLIPS_FROM = 208 };

static uint64_t executions, full_runs;

static void tell_runs(void)
{
    fprintf(stderr, "# %llu executions, %llu full runs (%.1f %%)\n", (unsigned long long)executions,
            (unsigned long long)full_runs,
            executions ? 100.0 * (double)full_runs / (double)executions : 0.0);
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "# %s\n", why);
    abort();
}

static double any_value(const struct hb_field *f, uint8_t a, uint8_t b)
{
    double value = ldexp(1 + (double)b / 256, a % 64 - 12);
    if (a >= 192)
        value = a & 1 ? f->low : f->high;
    if (a >= 240)
        value = f->low + (f->high - f->low) * b / 255;
    return fmin(fmax(value, f->low), f->high);
}

static void turn_curve(const struct hb_field *f, struct hb_curve *curve, uint8_t a, uint8_t b)
{
    int i = a % HB_CURVE_POINTS;
    if (i >= curve->count)
        curve->count = b % 4 ? curve->count : 0;
    else
        curve->y[i] = any_value(f, (uint8_t)(a ^ b), b);
}

static void turn_field(struct hb_device *dev, const uint8_t bytes[FIELD_BYTES])
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    const struct hb_field *f = &fields[bytes[0] % count];
    char *at = (char *)dev + f->offset;
    double value = any_value(f, bytes[2], bytes[3]);
    switch (f->type) {
    case HB_FIELD_BYTES:
    case HB_FIELD_COUNT_:
    case HB_FIELD_NS:
        *(int64_t *)at = value < 0x1p62 ? (int64_t)value : INT64_C(1) << 62;
        break;
    case HB_FIELD_RATE:
    case HB_FIELD_PART:
        *(double *)at = value;
        break;
    case HB_FIELD_CURVE:
        turn_curve(f, (struct hb_curve *)at, bytes[1], bytes[3]);
        break;
    case HB_FIELD_LINK:
    case HB_FIELD_TOPOLOGY:
        break;
    }
}

static const char *text_of(struct hb_arena *arena, const struct hb_device *dev)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_device_write(dev, &s);
    return s.text;
}

static bool read_text(struct hb_arena *arena, const char *text, struct hb_device *out)
{
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    bool ok = hb_device_parse(arena, &diag, "fuzz", text, strlen(text), out);
    if (ok != (diag.errors == 0))
        stop("read with errors, or refused without one");
    return ok;
}

static void run_step(struct hb_arena *arena, const struct hb_device *dev)
{
    static const char *const sets[] = {
        "model.d_model=512",
        "model.vocab=1000",
        "model.blocks=[{repeat: 2, attention: {heads: 8, head_dim: 64}, mlp: {d_ff: 1024}}]",
        "batch.global=8",
        "batch.seq=1024",
        "mesh.fsdp=4",
        "hardware.count=4",
        NULL};
    struct hb_diag diag;
    struct hb_spec spec;
    struct hb_result r;
    hb_diag_init(&diag, arena);
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, (struct hb_loc){0});
    const char *device =
        dev->kind == HB_KIND_TPU ? "hardware.device=tpu-v5p" : "hardware.device=nvidia-h100";
    bool ok = hb_schema_set(arena, &diag, root, device);
    for (int i = 0; sets[i]; i++)
        ok = ok && hb_schema_set(arena, &diag, root, sets[i]);
    if (!ok || !hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, &spec) ||
        !hb_spec_supported(&diag, NULL, &spec))
        stop(diag.entries[0].text);
    bool ran = hb_result_run(arena, &diag, &spec, dev, &r);
    if (ran != (diag.errors == 0))
        stop("run with errors, or refused without one");
    if (!ran)
        return;
    full_runs++;
    if (r.timing.step_ns <= 0 || !(r.step_seconds > 0) || r.memory.peak_bytes <= 0)
        stop("a step without time or memory");
    if (r.mfu > 1)
        stop("MFU above 1");
}

/* The database's profiles, read once. */
static struct hb_device profile_of(uint8_t which)
{
    static struct hb_arena *arena;
    static struct hb_device *profiles;
    static int count;
    if (!profiles) {
        struct hb_diag diag;
        arena = hb_arena_new();
        const char *const *names = hb_device_list(arena, HB_SOURCE_DIR, &count);
        hb_diag_init(&diag, arena);
        profiles = hb_arena_alloc(arena, (size_t)count + 1, sizeof *profiles);
        for (int i = 0; i < count; i++)
            if (!hb_device_load(arena, &diag, HB_SOURCE_DIR, names[i], (struct hb_loc){0},
                                &profiles[i]))
                stop("a profile of the database is not read");
    }
    if (!count)
        stop("no profile in the database");
    return profiles[which % count];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < HEAD)
        return 0;
    if (!executions++)
        atexit(tell_runs);
    struct hb_arena *arena = fuzz_arena();
    struct hb_device dev = profile_of(bytes[0]);
    const uint8_t *at = bytes + HEAD, *end = bytes + len;
    for (int i = bytes[1] % 8; i > 0 && end - at >= FIELD_BYTES; i--, at += FIELD_BYTES)
        turn_field(&dev, at);
    char *text = hb_arena_strdup(arena, text_of(arena, &dev));
    size_t room = strlen(text);
    for (; bytes[1] >= FLIPS_FROM && end - at >= FLIP_BYTES; at += FLIP_BYTES)
        text[(size_t)(at[0] << 8 | at[1]) % room] = (char)(at[2] ? at[2] : ' ');
    struct hb_device read, again;
    if (read_text(arena, text, &read)) {
        const char *written = text_of(arena, &read);
        if (!read_text(arena, written, &again) || strcmp(text_of(arena, &again), written) != 0)
            stop("written and read, another profile");
        run_step(arena, &read);
    }
    return 0;
}
