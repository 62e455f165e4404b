/* The log reader on any bytes: what it finds does not depend on the pieces that the text comes
 * in, no figure is out of range, and a story can be told of whatever it finds. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/hlo/log.h"
#include "sim/hlo/measured.h"
#include "sim/hlo/story.h"

struct feed {
    const uint8_t *bytes;
    size_t len;
    size_t piece;
};

static size_t give(void *context, char *text, size_t cap)
{
    struct feed *f = context;
    size_t some = f->len < cap ? f->len : cap;
    if (some > f->piece)
        some = f->piece;
    memcpy(text, f->bytes, some);
    f->bytes += some;
    f->len -= some;
    return some;
}

static struct hb_log *read_bytes(struct hb_arena *arena, const uint8_t *bytes, size_t len,
                                 size_t piece)
{
    struct feed f = {bytes, len, piece};
    struct hb_log *log = hb_arena_alloc(arena, 1, sizeof *log);
    hb_log_read(arena, (struct hb_log_source){give, &f}, log);
    return log;
}

static void check_message(const struct hb_log_message *m, int64_t lines)
{
    if (!m->times)
        return;
    if (m->line < 1 || m->line > lines + 1 || m->item_count > HB_LOG_ITEMS ||
        m->item_count > m->items_seen)
        abort();
    for (int i = 0; i < HB_FACT_COUNT; i++)
        if (m->fact[i] < -1 || (m->fact[i] >= 0 && !hb_size_ok(m->fact[i])))
            abort();
    for (int i = 0; i < m->item_count; i++)
        if (m->items[i].bytes < 0 || m->items[i].padding_bytes > m->items[i].bytes)
            abort();
}

static void check_same(const struct hb_log *a, const struct hb_log *b)
{
    for (int k = 0; k < HB_LOG_KIND_COUNT; k++)
        if (a->message[k].times != b->message[k].times)
            abort();
    if (a->lines != b->lines || a->bytes != b->bytes)
        abort();
}

/* What may stand in a log of which no story is told: a tuner, which may fail of what is not memory;
 * where nobody tells of himself, a mere word in the text of a change, and in a guide prose without
 * figures. */
static bool may_be_silent(const struct hb_log *log, enum hb_log_kind kind)
{
    bool told = log->mark[HB_MARK_NARRATED];
    bool guide = (log->evidence.teaches > 0 || log->mark[HB_MARK_DEFINES]) && !told &&
                 !log->mark[HB_MARK_PRINTED];
    bool word = log->mark[HB_MARK_CHANGE] && !told && log->message[kind].report == HB_REPORT_NONE;
    return kind == HB_LOG_TUNER || word ||
           (guide && hb_log_is_prose(kind) && hb_log_fact(log, kind, HB_FACT_ASKED) < 0);
}

static void check_silence(const struct hb_log *log)
{
    for (enum hb_log_kind k = 0; k < HB_LOG_KIND_COUNT; k++)
        if (hb_log_seen(log, k) && !may_be_silent(log, k))
            abort();
}

static void tell(struct hb_arena *arena, const struct hb_log *log)
{
    struct hb_story story;
    struct hb_measured measured;
    const char *lines[4];
    const char *reason;
    static const char *const zoo[] = {"llama3-8b", NULL};
    hb_measured_read(arena, log, HB_MEASURED_KIND_COUNT, &measured, &reason);
    if (!hb_story_tell(arena, log, &story)) {
        check_silence(log);
        return;
    }
    if (!story.title || !story.because ||
        hb_story_commands(arena, log, &story, (struct hb_story_model){NULL, zoo}, lines) < 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_log *log = read_bytes(arena, bytes, len, SIZE_MAX);
    for (int k = 0; k < HB_LOG_KIND_COUNT; k++)
        check_message(&log->message[k], log->lines);
    if (len % 4 == 1)
        check_same(log, read_bytes(arena, bytes, len, 1 + bytes[0]));
    tell(arena, log);
    return 0;
}
