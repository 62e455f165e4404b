/* See snapshot.h. Bytes in use change when a free is requested; the block goes back to its pool
 * when that is completed (torch/cuda/_memory_viz.py). The history is a ring of the last events:
 * what was there before it is told from what is there at its end and what it gave back. */
#include "sim/hlo/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/pickle.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/heap_cuda.h"

enum { NONE = -1, MOST_DEVICES = 1024, MOST_POOLS = 256 };
enum { SMALL_PAGE = 2 << 20, LARGE_PAGE = 20 << 20 }; /* of expandable segments */
/* More than any device has: larger figures are no sizes. */
#define MOST_BYTES (INT64_C(1) << 39)

/* --- a map from numbers to places --- */

struct places {
    int64_t *key;
    uint32_t *place; /* HB_PICKLE_ABSENT: free */
    uint32_t room;   /* a power of two */
};

static struct places make_places(struct hb_arena *arena, uint32_t most)
{
    struct places p = {.room = 16};
    while (p.room < 2 * (uint64_t)most && p.room < 1u << 30)
        p.room *= 2;
    p.key = hb_arena_raw(arena, p.room, sizeof *p.key);
    p.place = hb_arena_raw(arena, p.room, sizeof *p.place);
    for (uint32_t i = 0; i < p.room; i++)
        p.place[i] = HB_PICKLE_ABSENT;
    return p;
}

/* Where the key is, or would be. Entries stay: a place may be set to NO_PLACE. */
static uint32_t slot_of(const struct places *p, int64_t key)
{
    uint64_t hash = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & (p->room - 1);
    while (p->place[at] != HB_PICKLE_ABSENT && p->key[at] != key)
        at = (at + 1) & (p->room - 1);
    return at;
}

#define NO_PLACE (HB_PICKLE_ABSENT - 1)

static void set_place(struct places *p, int64_t key, uint32_t place)
{
    uint32_t at = slot_of(p, key);
    p->key[at] = key;
    p->place[at] = place;
}

/* NO_PLACE: it is not there. */
static uint32_t find_place(const struct places *p, int64_t key)
{
    uint32_t at = slot_of(p, key);
    return p->place[at] == HB_PICKLE_ABSENT ? NO_PLACE : p->place[at];
}

/* --- reading --- */

enum action { ACT_ALLOC, ACT_FREE, ACT_FREED, ACT_OOM, ACT_OTHER };

struct event {
    enum action action;
    int64_t address;
    int64_t bytes;
    int64_t stream;
    int64_t device;
    uint32_t frames;
};

struct reader {
    struct hb_arena *arena;
    const struct hb_pickle *p;
    struct hb_snapshot *out;
    struct hb_snapshot_device *d; /* that is being told */
    struct event *events;
    uint32_t event_count;
    struct event *now; /* blocks in use at the end, as if they had been asked for */
    uint32_t now_count, now_cap;
    struct places groups; /* by frames */
    struct places names;  /* by a hash of what they are called */
};

static int64_t number(const struct reader *r, uint32_t map, const char *key, int64_t other)
{
    return hb_pickle_int(r->p, hb_pickle_find(r->p, map, key), other);
}

static int64_t bytes_of(const struct reader *r, uint32_t map, const char *key)
{
    int64_t bytes = number(r, map, key, 0);
    return bytes > 0 && bytes <= MOST_BYTES ? bytes : 0;
}

static bool has_text(const struct reader *r, uint32_t map, const char *key, const char *text)
{
    return hb_pickle_is_text(r->p, hb_pickle_find(r->p, map, key), text);
}

static struct hb_snapshot_device *device_of(struct reader *r, int64_t device)
{
    struct hb_snapshot *s = r->out;
    if (device < 0 || device >= MOST_DEVICES)
        device = 0;
    for (uint32_t i = 0; i < s->device_count; i++)
        if (s->devices[i].device == device)
            return &s->devices[i];
    s->devices = hb_grow(r->arena, s->devices, s->device_count, &s->device_cap, sizeof *s->devices);
    s->devices[s->device_count] =
        (struct hb_snapshot_device){.device = device, .peak_event = NONE, .oom_free_bytes = NONE};
    return &s->devices[s->device_count++];
}

static struct hb_snapshot_pool *pool_of(struct reader *r, int64_t stream, bool small)
{
    struct hb_snapshot_device *d = r->d;
    for (uint32_t i = 0; i < d->pool_count; i++)
        if (d->pools[i].stream == stream && d->pools[i].small == small)
            return &d->pools[i];
    if (d->pool_count == MOST_POOLS)
        return &d->pools[MOST_POOLS - 1];
    d->pools = hb_grow(r->arena, d->pools, d->pool_count, &d->pool_cap, sizeof *d->pools);
    d->pools[d->pool_count] = (struct hb_snapshot_pool){.stream = stream, .small = small};
    return &d->pools[d->pool_count++];
}

/* The frames of a block: its own, or in older files those of its history's first entry. */
static uint32_t frames_of(const struct reader *r, uint32_t block)
{
    uint32_t frames = hb_pickle_find(r->p, block, "frames");
    if (frames != HB_PICKLE_ABSENT)
        return frames;
    uint32_t first = hb_pickle_at(r->p, hb_pickle_find(r->p, block, "history"), 0);
    return hb_pickle_find(r->p, first, "frames");
}

static void add_now(struct reader *r, struct event e)
{
    r->now = hb_grow(r->arena, r->now, r->now_count, &r->now_cap, sizeof *r->now);
    r->now[r->now_count++] = e;
}

/* One block; `at` is where it starts if the file does not say. */
static void read_block(struct reader *r, uint32_t block, int64_t at, int64_t stream,
                       struct hb_snapshot_segment *s)
{
    struct hb_snapshot_device *d = r->d;
    int64_t bytes = bytes_of(r, block, "size");
    bool in_use = has_text(r, block, "state", "active_allocated");
    bool waits = !in_use && !has_text(r, block, "state", "inactive");
    if (in_use) {
        d->allocated_bytes = hb_add_sat(d->allocated_bytes, bytes);
        int64_t asked = bytes_of(r, block, "requested_size");
        d->requested_bytes = hb_add_sat(d->requested_bytes, asked ? asked : bytes);
        add_now(r, (struct event){ACT_ALLOC, number(r, block, "address", at), bytes, stream,
                                  d->device, frames_of(r, block)});
    }
    if (in_use || waits) {
        d->active_bytes = hb_add_sat(d->active_bytes, bytes);
        return;
    }
    int64_t page = s->page_bytes;
    s->free_bytes = hb_add_sat(s->free_bytes, bytes);
    s->idle_bytes = hb_add_sat(s->idle_bytes, page ? bytes - bytes % page : 0);
    s->largest_free_bytes = hb_larger(s->largest_free_bytes, bytes);
    s->holes++;
}

static void read_segment(struct reader *r, uint32_t segment)
{
    struct hb_snapshot_segment s = {.address = number(r, segment, "address", 0),
                                    .stream = number(r, segment, "stream", 0),
                                    .total_bytes = bytes_of(r, segment, "total_size"),
                                    .expandable = number(r, segment, "is_expandable", 0) != 0};
    bool small = has_text(r, segment, "segment_type", "small");
    s.page_bytes = !s.expandable ? 0 : small ? SMALL_PAGE : LARGE_PAGE;
    uint32_t blocks = hb_pickle_find(r->p, segment, "blocks");
    int64_t at = s.address;
    r->d = device_of(r, number(r, segment, "device", 0));
    int64_t active = r->d->active_bytes;
    for (uint32_t i = 0; i < hb_pickle_length(r->p, blocks); i++) {
        uint32_t block = hb_pickle_at(r->p, blocks, i);
        read_block(r, block, at, s.stream, &s);
        at = hb_add_sat(at, bytes_of(r, block, "size"));
    }
    struct hb_snapshot_device *d = r->d;
    active = d->active_bytes - active;
    d->reserved_bytes = hb_add_sat(d->reserved_bytes, s.total_bytes);
    struct hb_snapshot_pool *p = pool_of(r, s.stream, small);
    p->segments++;
    p->reserved_bytes = hb_add_sat(p->reserved_bytes, s.total_bytes);
    p->active_bytes = hb_add_sat(p->active_bytes, active);
    p->largest_bytes = hb_larger(p->largest_bytes, s.largest_free_bytes);
    if (!active) {
        p->whole_bytes = hb_add_sat(p->whole_bytes, s.total_bytes);
        return;
    }
    p->stuck_bytes = hb_add_sat(p->stuck_bytes, s.free_bytes - s.idle_bytes);
    p->whole_bytes = hb_add_sat(p->whole_bytes, s.idle_bytes);
    if (s.free_bytes > s.idle_bytes) {
        d->worst = hb_grow(r->arena, d->worst, d->worst_count, &d->worst_cap, sizeof *d->worst);
        d->worst[d->worst_count++] = s;
    }
}

static enum action action_of(const struct reader *r, uint32_t entry)
{
    static const struct {
        const char *text;
        enum action action;
    } words[] = {{"alloc", ACT_ALLOC},
                 {"free_requested", ACT_FREE},
                 {"free_completed", ACT_FREED},
                 {"oom", ACT_OOM}};
    uint32_t action = hb_pickle_find(r->p, entry, "action");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hb_pickle_is_text(r->p, action, words[i].text))
            return words[i].action;
    return ACT_OTHER;
}

static void read_trace(struct reader *r, uint32_t trace)
{
    r->event_count = 0;
    r->events =
        hb_arena_alloc(r->arena, (size_t)hb_pickle_length(r->p, trace) + 1, sizeof *r->events);
    for (uint32_t i = 0; i < hb_pickle_length(r->p, trace); i++) {
        uint32_t entry = hb_pickle_at(r->p, trace, i);
        struct event e = {.action = action_of(r, entry),
                          .address = number(r, entry, "addr", 0),
                          .bytes = bytes_of(r, entry, "size"),
                          .stream = number(r, entry, "stream", 0),
                          .device = r->d->device,
                          .frames = hb_pickle_find(r->p, entry, "frames")};
        if (e.action == ACT_OOM) {
            r->d->ooms++;
            r->d->oom_bytes = e.bytes;
            r->d->oom_free_bytes = number(r, entry, "device_free", NONE);
        }
        r->events[r->event_count++] = e;
    }
    r->d->events = r->event_count;
}

/* --- who asked --- */

static bool ends_in(const char *text, uint32_t len, const char *end)
{
    size_t count = strlen(end);
    return len >= count && memcmp(text + len - count, end, count) == 0;
}

static bool holds(const char *text, uint32_t len, const char *part)
{
    size_t count = strlen(part);
    for (uint32_t i = 0; i + count <= len; i++)
        if (memcmp(text + i, part, count) == 0)
            return true;
    return false;
}

/* 2: a line of Python that is not the framework's; 1: a line of Python; 0: another. */
static int weight_of(const struct reader *r, uint32_t frame)
{
    uint32_t len;
    const char *file = hb_pickle_text(r->p, hb_pickle_find(r->p, frame, "filename"), &len);
    if (!ends_in(file, len, ".py"))
        return 0;
    return holds(file, len, "/torch/") || holds(file, len, "site-packages/") ? 1 : 2;
}

/* Text of a stranger: printable characters alone. */
static const char *plain(struct hb_arena *arena, const char *text, uint32_t len)
{
    enum { MOST = 80 };
    char *copy = hb_arena_strndup(arena, text, len < MOST ? len : MOST);
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return copy;
}

static const char *name_frame(struct reader *r, uint32_t frame)
{
    uint32_t len, name_len;
    const char *file = hb_pickle_text(r->p, hb_pickle_find(r->p, frame, "filename"), &len);
    const char *name = hb_pickle_text(r->p, hb_pickle_find(r->p, frame, "name"), &name_len);
    uint32_t start = len;
    while (start && file[start - 1] != '/')
        start--;
    return hb_arena_printf(r->arena, "%s:%lld %s", plain(r->arena, file + start, len - start),
                           (long long)number(r, frame, "line", 0), plain(r->arena, name, name_len));
}

/* Frames stand from the innermost out. */
static const char *name_frames(struct reader *r, uint32_t frames)
{
    uint32_t best = HB_PICKLE_ABSENT;
    int weight = NONE;
    for (uint32_t i = 0; i < hb_pickle_length(r->p, frames); i++) {
        uint32_t frame = hb_pickle_at(r->p, frames, i);
        int own = weight_of(r, frame);
        if (own > weight) {
            weight = own;
            best = frame;
        }
    }
    return best == HB_PICKLE_ABSENT ? "(no frames were recorded)" : name_frame(r, best);
}

/* Of 64 bits, so that two names of a file share one by no chance that matters. */
static int64_t hash_of(const char *text)
{
    return (int64_t)(hb_hash_bytes(HB_HASH_START, text, strlen(text)) >> 1);
}

static uint32_t group_of(struct reader *r, uint32_t frames)
{
    struct hb_snapshot_device *d = r->d;
    uint32_t known = find_place(&r->groups, (int64_t)frames);
    if (known != NO_PLACE)
        return known;
    const char *where = name_frames(r, frames);
    uint32_t at = find_place(&r->names, hash_of(where));
    if (at == NO_PLACE) {
        at = d->group_count;
        d->groups = hb_grow(r->arena, d->groups, at, &d->group_cap, sizeof *d->groups);
        d->groups[d->group_count++] = (struct hb_snapshot_group){.where = where};
        set_place(&r->names, hash_of(where), at);
    }
    set_place(&r->groups, (int64_t)frames, at);
    return at;
}

static void add_block(struct reader *r, const struct event *e)
{
    uint32_t at = group_of(r, e->frames);
    struct hb_snapshot_group *g = &r->d->groups[at];
    g->bytes = hb_add_sat(g->bytes, e->bytes);
    g->largest_bytes = hb_larger(g->largest_bytes, e->bytes);
    g->count++;
}

/* --- the history --- */

/* All that is ever there: what is older than the history, then its requests. */
struct life {
    struct event e;
    int64_t start; /* place of the request; -1: before the first */
    int64_t end;   /* of the free; INT64_MAX: still there */
};

struct lives {
    struct life *list;
    uint32_t count;
    struct places by_address;
};

static void add_life(struct lives *l, struct event e, int64_t start)
{
    set_place(&l->by_address, e.address, l->count);
    l->list[l->count++] = (struct life){e, start, INT64_MAX};
}

static void end_life(struct lives *l, const struct event *e, int64_t at)
{
    uint32_t place = find_place(&l->by_address, e->address);
    if (place == NO_PLACE) { /* older than the history */
        struct event older = *e;
        older.frames = HB_PICKLE_ABSENT;
        add_life(l, older, NONE);
        place = l->count - 1;
    }
    l->list[place].end = at;
    set_place(&l->by_address, e->address, NO_PLACE);
}

/* Completed frees of what was freed before are passed over: the address is not in use, unless it
 * was given out again meanwhile, which its own request would have told. */
static struct lives find_lives(struct reader *r)
{
    uint32_t most = r->event_count + r->now_count + 1;
    struct lives l = {.list = hb_arena_raw(r->arena, most, sizeof *l.list),
                      .by_address = make_places(r->arena, most)};
    struct places freed = make_places(r->arena, r->event_count + 1);
    for (uint32_t i = 0; i < r->event_count; i++) {
        const struct event *e = &r->events[i];
        if (e->action == ACT_ALLOC) {
            if (find_place(&l.by_address, e->address) != NO_PLACE)
                end_life(&l, e, i); /* its free was not recorded */
            add_life(&l, *e, i);
        } else if (e->action == ACT_FREE) {
            end_life(&l, e, i);
            set_place(&freed, e->address, i);
        } else if (e->action == ACT_FREED) {
            if (find_place(&freed, e->address) == NO_PLACE)
                end_life(&l, e, i);
            set_place(&freed, e->address, NO_PLACE);
        }
    }
    for (uint32_t i = 0; i < r->now_count; i++)
        if (r->now[i].device == r->d->device &&
            find_place(&l.by_address, r->now[i].address) == NO_PLACE)
            add_life(&l, r->now[i], NONE);
    return l;
}

static void find_peak(struct reader *r, const struct lives *l)
{
    int64_t *change = hb_arena_alloc(r->arena, (size_t)r->event_count + 2, sizeof *change);
    int64_t live = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct life *a = &l->list[i];
        change[a->start + 1] = hb_add_sat(change[a->start + 1], a->e.bytes);
        if (a->end < INT64_MAX)
            change[a->end + 1] = hb_add_sat(change[a->end + 1], -a->e.bytes);
    }
    for (int64_t i = 0; i <= (int64_t)r->event_count; i++) {
        live = hb_add_sat(live, change[i]);
        if (live > r->d->peak_bytes) {
            r->d->peak_bytes = live;
            r->d->peak_event = i - 1;
        }
    }
    for (uint32_t i = 0; i < l->count; i++) {
        const struct life *a = &l->list[i];
        if (a->start <= r->d->peak_event && a->end > r->d->peak_event)
            add_block(r, &a->e);
    }
}

/* --- replays --- */

struct request {
    int64_t at; /* place in the history */
    uint32_t life;
    bool gives;
};

static int compare_requests(const void *x, const void *y)
{
    const struct request *a = x, *b = y;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    if (a->gives != b->gives)
        return a->gives ? -1 : 1;
    return a->life < b->life ? -1 : a->life > b->life;
}

static struct request *list_requests(struct reader *r, const struct lives *l, uint32_t *out_count)
{
    struct request *list = hb_arena_alloc(r->arena, 2 * (size_t)l->count + 1, sizeof *list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        if (!l->list[i].e.bytes)
            continue;
        list[count++] = (struct request){l->list[i].start, i, false};
        if (l->list[i].end < INT64_MAX)
            list[count++] = (struct request){l->list[i].end, i, true};
    }
    qsort(list, count, sizeof *list, compare_requests);
    *out_count = count;
    return list;
}

/* Streams as the allocator's small numbers. */
static uint32_t stream_number(int64_t *streams, uint32_t *count, uint32_t most, int64_t stream)
{
    for (uint32_t i = 0; i < *count; i++)
        if (streams[i] == stream)
            return i;
    if (*count < most)
        streams[(*count)++] = stream;
    return *count - 1;
}

/* reserved_bytes 0: it takes more than any device has. */
static struct hb_snapshot_replay replay(const struct lives *l, const struct request *list,
                                        uint32_t count, struct hb_cuda_limits limits)
{
    enum { MOST_STREAMS = 64 };
    int64_t streams[MOST_STREAMS];
    uint32_t known = 0;
    struct hb_arena *scratch = hb_arena_new();
    struct hb_cuda *cuda = hb_cuda_new(scratch, limits);
    uint32_t *block = hb_arena_raw(scratch, l->count + (size_t)1, sizeof *block);
    for (uint32_t i = 0; i < count && hb_cuda_stats(cuda).reserved_bytes <= MOST_BYTES; i++) {
        const struct life *a = &l->list[list[i].life];
        int64_t address;
        if (list[i].gives)
            hb_cuda_give(cuda, block[list[i].life]);
        else
            block[list[i].life] =
                hb_cuda_take(cuda, a->e.bytes,
                             stream_number(streams, &known, MOST_STREAMS, a->e.stream), &address);
    }
    struct hb_cuda_stats stats = hb_cuda_stats(cuda);
    hb_arena_free(scratch);
    bool told = stats.reserved_bytes <= MOST_BYTES;
    return (struct hb_snapshot_replay){.allocated_bytes = told ? stats.peak_allocated_bytes : 0,
                                       .reserved_bytes = told ? stats.peak_reserved_bytes : 0};
}

static void run_replays(struct reader *r, const struct lives *l)
{
    static const struct {
        const char *settings;
        struct hb_cuda_limits limits;
    } ways[] = {{"the allocator's defaults", {.expandable = false}},
                {"expandable_segments:True", {.expandable = true}},
                {"max_split_size_mb:256", {.max_split_bytes = INT64_C(256) << 20}}};
    enum { WAYS = sizeof ways / sizeof *ways };
    uint32_t count;
    const struct request *list = list_requests(r, l, &count);
    r->d->replays = hb_arena_alloc(r->arena, WAYS, sizeof *r->d->replays);
    for (int i = 0; i < WAYS; i++) {
        r->d->replays[i] = replay(l, list, count, ways[i].limits);
        r->d->replays[i].settings = ways[i].settings;
    }
    r->d->replay_count = WAYS;
}

/* --- the whole --- */

static int compare_groups(const void *x, const void *y)
{
    const struct hb_snapshot_group *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return strcmp(a->where, b->where);
}

static int compare_pools(const void *x, const void *y)
{
    const struct hb_snapshot_pool *a = x, *b = y;
    if (a->reserved_bytes != b->reserved_bytes)
        return a->reserved_bytes > b->reserved_bytes ? -1 : 1;
    return a->stream < b->stream ? -1 : a->stream > b->stream;
}

static int compare_segments(const void *x, const void *y)
{
    const struct hb_snapshot_segment *a = x, *b = y;
    if (a->free_bytes != b->free_bytes)
        return a->free_bytes > b->free_bytes ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void tell_device(struct reader *r, struct hb_snapshot_device *d, uint32_t trace)
{
    r->d = d;
    read_trace(r, trace);
    r->groups = make_places(r->arena, r->event_count + r->now_count + 1);
    r->names = make_places(r->arena, r->event_count + r->now_count + 1);
    struct lives l = find_lives(r);
    find_peak(r, &l);
    if (l.count)
        run_replays(r, &l);
    if (d->group_count)
        qsort(d->groups, d->group_count, sizeof *d->groups, compare_groups);
    if (d->pool_count)
        qsort(d->pools, d->pool_count, sizeof *d->pools, compare_pools);
    if (d->worst_count)
        qsort(d->worst, d->worst_count, sizeof *d->worst, compare_segments);
}

bool hb_snapshot_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                      const char *text, size_t len, struct hb_snapshot *out)
{
    struct hb_pickle p;
    struct reader r = {.arena = arena, .p = &p, .out = out};
    *out = (struct hb_snapshot){.expandable = NONE};
    if (!hb_pickle_read(arena, diag, path, text, len, &p))
        return false;
    uint32_t segments = hb_pickle_find(&p, p.root, "segments");
    uint32_t traces = hb_pickle_find(&p, p.root, "device_traces");
    if (segments == HB_PICKLE_ABSENT)
        return hb_error(diag, (struct hb_loc){.file = path},
                        "it is a pickle, but no memory snapshot: it has no 'segments' (write it "
                        "with torch.cuda.memory._dump_snapshot)");
    out->expandable = (int)number(&r, hb_pickle_find(&p, p.root, "allocator_settings"),
                                  "expandable_segments", NONE);
    for (uint32_t i = 0; i < hb_pickle_length(&p, segments); i++)
        read_segment(&r, hb_pickle_at(&p, segments, i));
    for (uint32_t i = 0; i < hb_pickle_length(&p, traces); i++)
        if (hb_pickle_length(&p, hb_pickle_at(&p, traces, i)))
            device_of(&r, i);
    for (uint32_t i = 0; i < out->device_count; i++)
        tell_device(&r, &out->devices[i],
                    hb_pickle_at(&p, traces, (uint32_t)out->devices[i].device));
    return true;
}
