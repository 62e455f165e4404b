/* The decision: see cause.h. What counts as a giant in a program (half of the memory) follows the
 * advice in docs/errors/error_1000 of openxla/xla. */
#include "sim/hlo/cause.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/logtext.h"

/* Shares of the capacity, in percent. */
enum {
    PIECES_PERCENT = 5,  /* free memory of less lies in pieces wherever a pool is full */
    ROOM_PERCENT = 2,    /* ... and on a device */
    IDLE_PERCENT = 8,    /* idle memory of less is what any allocator has */
    FULL_PERCENT = 90,   /* tensors that fill the device so are too many */
    OTHERS_PERCENT = 10, /* of less that others hold more would have been asked for next */
    LOST_PERCENT = 25,   /* contexts and libraries take less */
    TENSOR_PERCENT = 20, /* one tensor of more is a giant */
    STATE_PERCENT = 60
};

/* Contexts and a desktop take so much of a small device, too. */
#define DESKTOP_BYTES ((int64_t)2 << 30)

/* Whoever cannot get so little stands before full memory. */
#define LITTLE_BYTES ((int64_t)64 << 20)

static int64_t share_of(int64_t capacity, int percent)
{
    return capacity > 0 ? capacity / 100 * percent : 0;
}

/* What a part of a memory held must be to be the cause: more than a share, and enough. */
static bool would_do(const struct hb_ledger *l, int64_t part, int percent)
{
    int64_t room = l->room > 0 ? l->room : 0;
    return l->capacity > 0 && part > share_of(l->capacity, percent) && part >= l->asked - room;
}

/* More was free than was asked, and not the crumbs of a full memory. */
static bool has_room(const struct hb_ledger *l)
{
    int percent = l->one_piece ? PIECES_PERCENT : ROOM_PERCENT;
    return l->asked >= 0 && l->room >= l->asked + l->blur &&
           l->room > share_of(l->capacity, percent);
}

/* What was refused though it was there; HB_REASON_COUNT: nothing. */
static enum hb_reason reason_refused(const struct hb_ledger *l)
{
    bool room = has_room(l);
    if (l->capacity > 0 && l->card / 2 > l->capacity)
        return HB_REASON_CARD;
    if (l->asked >= HB_ABSURD_BYTES)
        return HB_REASON_ABSURD;
    if (l->limited || l->share)
        return l->limited ? HB_REASON_LIMITED : HB_REASON_SERVER;
    if (room && l->one_piece && l->piece < l->asked)
        return l->piece >= 0 ? HB_REASON_PIECE : HB_REASON_PIECES;
    if (l->allowed >= 0)
        return l->room >= 0 && !l->reckoned ? HB_REASON_SHARE : HB_REASON_LARGEST;
    if (room && !l->one_piece)
        return l->reckoned ? HB_REASON_RECKONED : HB_REASON_ROOM;
    return HB_REASON_COUNT;
}

/* What is not the program's; HB_REASON_COUNT: nothing. */
static enum hb_reason reason_outside(const struct hb_ledger *l)
{
    bool full = l->capacity > 0 && l->live > share_of(l->capacity, FULL_PERCENT);
    enum hb_reason refused = reason_refused(l);
    if (refused != HB_REASON_COUNT)
        return refused;
    if (l->context)
        return HB_REASON_CONTEXT;
    if (l->pieces && l->asked < 0 && l->live < 0)
        return HB_REASON_SAID;
    if (l->lost > DESKTOP_BYTES && would_do(l, l->lost, LOST_PERCENT))
        return HB_REASON_LOST;
    if (l->asked >= 0 && l->idle >= l->asked && !full &&
        l->idle > share_of(l->capacity, IDLE_PERCENT))
        return HB_REASON_IDLE;
    if (would_do(l, l->others, l->fresh ? 0 : OTHERS_PERCENT))
        return HB_REASON_OTHERS;
    return l->copies > 0 ? HB_REASON_COPIES : HB_REASON_COUNT;
}

/* Most of the request, and of no device more than half. */
static bool is_giant(const struct hb_ledger *l)
{
    int64_t whole = l->capacity > 0 && l->capacity < l->asked ? l->capacity : l->asked;
    return l->asked >= LITTLE_BYTES && l->buffer > whole / 2;
}

/* All that a program keeps was refused. */
static bool is_program(const struct hb_ledger *l)
{
    return l->named && !l->tensor;
}

/* Padding is a quarter of the request (of the largest buffer, where none is told), or all that is
 * too much. */
static bool is_padded(const struct hb_ledger *l, int64_t over)
{
    int64_t whole = l->asked >= 0 ? l->asked : l->buffer;
    return l->padding > 0 && (l->padding > whole / 4 || (over > 0 && l->padding >= over));
}

/* A part of the program; HB_REASON_COUNT: none stands out. */
static enum hb_reason reason_inside(const struct hb_ledger *l)
{
    int64_t over = l->capacity > 0 && l->asked > l->capacity ? l->asked - l->capacity : -1;
    int64_t most = l->capacity > 0 ? l->capacity : HB_LARGEST_BYTES;
    int64_t whole = l->capacity > 0 ? l->capacity : l->total;
    if (l->tensor && l->asked > most)
        return HB_REASON_ABOVE;
    if (is_padded(l, over))
        return HB_REASON_PADDING;
    if (is_giant(l))
        return is_program(l) ? HB_REASON_HALF : HB_REASON_BUFFER;
    if (over > 0 && l->packing >= over)
        return HB_REASON_PACKING;
    if (whole > 0 && l->arguments > share_of(whole, STATE_PERCENT))
        return HB_REASON_ARGUMENTS;
    if (l->total > 0 && l->outputs > l->total / 2)
        return HB_REASON_OUTPUTS;
    if (l->loads && l->asked >= 0)
        return HB_REASON_LOADS;
    if (l->updates)
        return HB_REASON_UPDATES;
    if (l->tensor && l->asked > most / 100 * TENSOR_PERCENT)
        return l->capacity > 0 ? HB_REASON_TENSOR : HB_REASON_LARGE;
    return HB_REASON_COUNT;
}

/* What is known of a plain want of memory. */
static enum hb_reason reason_of_size(const struct hb_ledger *l)
{
    if (l->asked < 0 && l->live < 0 && !l->named)
        return HB_REASON_NOTHING;
    if (is_program(l))
        return HB_REASON_PROGRAM;
    if (l->one_piece && l->capacity > 0 && l->asked > l->capacity)
        return HB_REASON_POOL;
    if (l->live >= 0 && l->capacity > 0)
        return HB_REASON_LIVE;
    return l->asked >= 0 && l->asked < LITTLE_BYTES && l->room < 0 ? HB_REASON_LITTLE
                                                                   : HB_REASON_HELD;
}

struct hb_ledger hb_ledger_untold(void)
{
#define HB_UNTOLD(name) .name = -1,
    return (struct hb_ledger){HB_LEDGER(HB_UNTOLD)};
#undef HB_UNTOLD
}

enum hb_reason hb_ledger_reason(const struct hb_ledger *ledger)
{
    enum hb_reason reason = reason_outside(ledger);
    if (reason == HB_REASON_COUNT)
        reason = reason_inside(ledger);
    return reason == HB_REASON_COUNT ? reason_of_size(ledger) : reason;
}

enum hb_cause hb_reason_cause(enum hb_reason reason)
{
#define HB_ENUM(name, cause, text) HB_CAUSE_##cause,
    static const enum hb_cause causes[] = { HB_REASONS(HB_ENUM) };
#undef HB_ENUM
    return causes[reason];
}

/* "84 %", of what the reason names. */
static const char *print_share(struct hb_arena *arena, const struct hb_ledger *l,
                               enum hb_reason reason)
{
    int64_t part = reason == HB_REASON_ARGUMENTS ? l->arguments
                   : reason == HB_REASON_OUTPUTS ? l->outputs
                   : reason == HB_REASON_TENSOR  ? l->asked
                                                 : l->live;
    int64_t whole = reason == HB_REASON_OUTPUTS || l->capacity <= 0 ? l->total : l->capacity;
    double percent = whole > 0 && part > 0 ? 100.0 * (double)part / (double)whole : 0;
    return hb_arena_printf(arena, "%d %%", percent > 9999 ? 9999 : (int)(percent + 0.5));
}

/* What stands for "{name}". */
static const char *print_figure(struct hb_arena *arena, const struct hb_ledger *l,
                                enum hb_reason reason, struct hb_span name)
{
    static const struct {
        const char *name;
        size_t offset;
    } figures[] = {
#define HB_FIGURE(figure) {#figure "}", offsetof(struct hb_ledger, figure)},
        HB_LEDGER(HB_FIGURE)
#undef HB_FIGURE
    };
    if (hb_span_starts(name, "part}"))
        return print_share(arena, l, reason);
    if (hb_span_starts(name, "whole}"))
        return l->capacity > 0 ? "the memory" : "all";
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        char text[HB_SIZE_TEXT];
        int64_t bytes;
        memcpy(&bytes, (const char *)l + figures[i].offset, sizeof bytes);
        if (hb_span_starts(name, figures[i].name))
            return hb_arena_strdup(arena, hb_size_print(bytes, text));
    }
    return "";
}

const char *hb_reason_text(struct hb_arena *arena, const struct hb_ledger *ledger,
                           enum hb_reason reason)
{
#define HB_ENUM(name, cause, text) text,
    static const char *const texts[] = { HB_REASONS(HB_ENUM) };
#undef HB_ENUM
    struct hb_span rest = {texts[reason], texts[reason] + strlen(texts[reason])};
    struct hb_str s;
    hb_str_init(&s, arena);
    while (rest.at < rest.end) {
        const char *start = rest.at;
        bool named = hb_span_find(&rest, "{");
        const char *stop = named ? rest.at - 1 : rest.end;
        hb_str_addf(&s, "%.*s", (int)(stop - start), start);
        if (!named)
            break;
        hb_str_add(&s, print_figure(arena, ledger, reason, rest));
        hb_span_find(&rest, "}");
    }
    return s.text;
}
