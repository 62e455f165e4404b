/* Snapshots as text and JSON: see show_snapshot.h. First what stands at the peak, by line of code;
 * then where the memory lies that nobody uses, and what other settings would have made of it. */
#include "cli/show_snapshot.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/head.h"
#include "cli/wrap.h"

enum { GROUPS_SHOWN = 12, POOLS_SHOWN = 8, SEGMENTS_SHOWN = 5 };

struct page {
    struct hb_env *env;
    FILE *out;
    const struct hb_snapshot *s;
    const struct hb_snapshot_device *d;
};

static const char *size_text(const struct page *g, int64_t bytes)
{
    return hb_size_print(bytes, hb_arena_alloc(g->env->arena, HB_SIZE_TEXT, 1));
}

static int64_t stuck_bytes(const struct hb_snapshot_device *d)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < d->pool_count; i++)
        sum = hb_add_sat(sum, d->pools[i].stuck_bytes);
    return sum;
}

static int64_t whole_bytes(const struct hb_snapshot_device *d)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < d->pool_count; i++)
        sum = hb_add_sat(sum, d->pools[i].whole_bytes);
    return sum;
}

static int64_t largest_free_bytes(const struct hb_snapshot_device *d)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < d->pool_count; i++)
        most = hb_larger(most, d->pools[i].largest_bytes);
    return most;
}

static void print_state(const struct page *g)
{
    const struct hb_snapshot_device *d = g->d;
    fprintf(g->out, "\nDevice %" PRId64 ", when it was written\n", d->device);
    fprintf(g->out, "  reserved    %11s  held from the device\n", size_text(g, d->reserved_bytes));
    fprintf(g->out, "  allocated   %11s  in use (%s were asked for)\n",
            size_text(g, d->allocated_bytes), size_text(g, d->requested_bytes));
    if (d->active_bytes > d->allocated_bytes)
        fprintf(g->out, "  waiting     %11s  freed, until another stream is done with it\n",
                size_text(g, d->active_bytes - d->allocated_bytes));
    fprintf(g->out, "  stuck       %11s  free, in segments that are in use\n",
            size_text(g, stuck_bytes(d)));
    fprintf(g->out, "  idle        %11s  free segments or pages: empty_cache() gives them back\n",
            size_text(g, whole_bytes(d)));
}

static void print_peak(const struct page *g)
{
    const struct hb_snapshot_device *d = g->d;
    if (d->events)
        fprintf(g->out, "\nPeak %s in use, at event %" PRId64 " of %u of the history\n",
                size_text(g, d->peak_bytes), d->peak_event + 1, d->events);
    else
        fprintf(g->out,
                "\n%s in use (no history: torch.cuda.memory._record_memory_history() "
                "before the step\nwould tell the peak, and who stands there)\n",
                size_text(g, d->peak_bytes));
    if (d->group_count)
        fputs("  by the line of code that asked for it:\n", g->out);
    for (uint32_t i = 0; i < d->group_count && i < GROUPS_SHOWN; i++) {
        const struct hb_snapshot_group *b = &d->groups[i];
        fprintf(g->out, "  %11s  %5.1f %%  %6u block%s  %s\n", size_text(g, b->bytes),
                d->peak_bytes ? 100 * (double)b->bytes / (double)d->peak_bytes : 0, b->count,
                b->count == 1 ? " " : "s", b->where);
    }
    if (d->group_count > GROUPS_SHOWN)
        fprintf(g->out, "  and %u more lines\n", d->group_count - GROUPS_SHOWN);
}

static void print_pools(const struct page *g)
{
    const struct hb_snapshot_device *d = g->d;
    fputs("\nBy pool         segments     reserved       in use        stuck         idle  "
          "largest hole\n",
          g->out);
    for (uint32_t i = 0; i < d->pool_count && i < POOLS_SHOWN; i++) {
        const struct hb_snapshot_pool *p = &d->pools[i];
        const char *name = hb_arena_printf(g->env->arena, "%s, stream %" PRId64,
                                           p->small ? "small" : "large", p->stream);
        fprintf(g->out, "  %-16s %6u %12s %12s %12s %12s  %12s\n", name, p->segments,
                size_text(g, p->reserved_bytes), size_text(g, p->active_bytes),
                size_text(g, p->stuck_bytes), size_text(g, p->whole_bytes),
                size_text(g, p->largest_bytes));
    }
    if (d->worst_count)
        fputs("  most free within:\n", g->out);
    for (uint32_t i = 0; i < d->worst_count && i < SEGMENTS_SHOWN; i++) {
        const struct hb_snapshot_segment *s = &d->worst[i];
        fprintf(g->out, "  %11s of %s in %u hole%s, the largest %s%s\n",
                size_text(g, s->free_bytes), size_text(g, s->total_bytes), s->holes,
                s->holes == 1 ? "" : "s", size_text(g, s->largest_free_bytes),
                s->expandable ? " (expandable)" : "");
    }
}

static void print_replays(const struct page *g)
{
    const struct hb_snapshot_device *d = g->d;
    if (!d->events || !d->replay_count || !d->replays[0].reserved_bytes)
        return;
    fputs("\nThe same requests, replayed\n", g->out);
    for (uint32_t i = 0; i < d->replay_count; i++)
        if (d->replays[i].reserved_bytes)
            fprintf(g->out, "  %11s reserved at most  with %s\n",
                    size_text(g, d->replays[i].reserved_bytes), d->replays[i].settings);
}

/* The least of the replays by settings other than the first. */
static const struct hb_snapshot_replay *best_replay(const struct hb_snapshot_device *d)
{
    const struct hb_snapshot_replay *best = NULL;
    for (uint32_t i = 1; i < d->replay_count; i++)
        if (d->replays[i].reserved_bytes &&
            (!best || d->replays[i].reserved_bytes < best->reserved_bytes))
            best = &d->replays[i];
    return best && best->reserved_bytes < d->replays[0].reserved_bytes ? best : NULL;
}

static const char unmaps[] =
    " With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True whole pages of "
    "such holes are given back when a request fails.";

static const char *verdict(const struct page *g)
{
    const struct hb_snapshot_device *d = g->d;
    int64_t stuck = stuck_bytes(d);
    const struct hb_snapshot_replay *best = best_replay(d);
    const char *set =
        best ? hb_arena_printf(g->env->arena,
                               " Replayed with %s the same requests hold %s less: "
                               "PYTORCH_CUDA_ALLOC_CONF=%s.",
                               best->settings,
                               size_text(g, d->replays[0].reserved_bytes - best->reserved_bytes),
                               best->settings)
             : "";
    if (!d->ooms)
        return best && stuck > d->reserved_bytes / 20
                   ? hb_arena_printf(g->env->arena,
                                     "%s of what is held is stuck in segments that "
                                     "are in use.%s",
                                     size_text(g, stuck), set)
                   : "";
    const char *asked = hb_arena_printf(
        g->env->arena, "A request for %s failed%s.", size_text(g, d->oom_bytes),
        d->oom_free_bytes >= 0 ? hb_arena_printf(g->env->arena, " with %s left on the device",
                                                 size_text(g, d->oom_free_bytes))
                               : "");
    if (stuck >= d->oom_bytes && largest_free_bytes(d) < d->oom_bytes)
        return hb_arena_printf(g->env->arena,
                               "%s Fragmentation: %s are free, but stuck in segments that are in "
                               "use, in no hole that is large enough (the largest is %s).%s",
                               asked, size_text(g, stuck), size_text(g, largest_free_bytes(d)),
                               g->s->expandable == 1 ? ""
                               : *set                ? set
                                                     : unmaps);
    return hb_arena_printf(g->env->arena,
                           "%s What is in use is what is too much: see the lines of code above, "
                           "and hbmsim advise for what frees most.",
                           asked);
}

void hb_show_snapshot_text(struct hb_env *env, FILE *out, const struct hb_snapshot *s)
{
    struct page g = {env, out, s, NULL};
    fprintf(out, "A memory snapshot of PyTorch: %u device%s.\n", s->device_count,
            s->device_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < s->device_count; i++) {
        g.d = &s->devices[i];
        print_state(&g);
        print_peak(&g);
        print_pools(&g);
        print_replays(&g);
        const char *text = verdict(&g);
        if (*text) {
            fputc('\n', out);
            hb_wrap_print(env, out, text, 0);
        }
    }
}

/* --- JSON --- */

static void put_groups(struct hb_json *j, const struct hb_snapshot_device *d)
{
    hb_json_key(j, "at_peak");
    hb_json_array(j);
    for (uint32_t i = 0; i < d->group_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "where", d->groups[i].where);
        hb_json_put_int(j, "bytes", d->groups[i].bytes);
        hb_json_put_int(j, "largest_bytes", d->groups[i].largest_bytes);
        hb_json_put_int(j, "blocks", d->groups[i].count);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_pools(struct hb_json *j, const struct hb_snapshot_device *d)
{
    hb_json_key(j, "pools");
    hb_json_array(j);
    for (uint32_t i = 0; i < d->pool_count; i++) {
        const struct hb_snapshot_pool *p = &d->pools[i];
        hb_json_object(j);
        hb_json_put_int(j, "stream", p->stream);
        hb_json_put_bool(j, "small", p->small);
        hb_json_put_int(j, "segments", p->segments);
        hb_json_put_int(j, "reserved_bytes", p->reserved_bytes);
        hb_json_put_int(j, "active_bytes", p->active_bytes);
        hb_json_put_int(j, "stuck_bytes", p->stuck_bytes);
        hb_json_put_int(j, "idle_bytes", p->whole_bytes);
        hb_json_put_int(j, "largest_free_bytes", p->largest_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_segments(struct hb_json *j, const struct hb_snapshot_device *d)
{
    hb_json_key(j, "fragmented_segments");
    hb_json_array(j);
    for (uint32_t i = 0; i < d->worst_count && i < 10 * SEGMENTS_SHOWN; i++) {
        const struct hb_snapshot_segment *s = &d->worst[i];
        hb_json_object(j);
        hb_json_put_int(j, "address", s->address);
        hb_json_put_int(j, "stream", s->stream);
        hb_json_put_int(j, "total_bytes", s->total_bytes);
        hb_json_put_int(j, "free_bytes", s->free_bytes);
        hb_json_put_int(j, "holes", s->holes);
        hb_json_put_int(j, "largest_free_bytes", s->largest_free_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    hb_json_key(j, "replays");
    hb_json_array(j);
    for (uint32_t i = 0; i < d->replay_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "settings", d->replays[i].settings);
        hb_json_put_int(j, "reserved_bytes", d->replays[i].reserved_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_device(struct hb_json *j, const struct hb_snapshot_device *d)
{
    hb_json_object(j);
    hb_json_put_int(j, "device", d->device);
    hb_json_put_int(j, "reserved_bytes", d->reserved_bytes);
    hb_json_put_int(j, "allocated_bytes", d->allocated_bytes);
    hb_json_put_int(j, "active_bytes", d->active_bytes);
    hb_json_put_int(j, "requested_bytes", d->requested_bytes);
    hb_json_put_int(j, "stuck_bytes", stuck_bytes(d));
    hb_json_put_int(j, "idle_bytes", whole_bytes(d));
    hb_json_put_int(j, "events", d->events);
    hb_json_put_int(j, "peak_bytes", d->peak_bytes);
    hb_json_put_int(j, "peak_event", d->peak_event + 1);
    hb_json_put_int(j, "ooms", d->ooms);
    hb_json_put_int(j, "oom_bytes", d->oom_bytes);
    put_groups(j, d);
    put_pools(j, d);
    put_segments(j, d);
    hb_json_object_end(j);
}

void hb_show_snapshot_json(struct hb_env *env, FILE *out, const char *file,
                           const struct hb_snapshot *s)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    hb_json_object(&j);
    struct hb_head head = {.name = file, .version = env->version, .compiler = "torch"};
    hb_head_json(&j, &head);
    hb_json_put_bool(&j, "known", true);
    hb_json_put_text(&j, "what", "A memory snapshot of PyTorch");
    hb_json_key(&j, "devices");
    hb_json_array(&j);
    for (uint32_t i = 0; i < s->device_count; i++)
        put_device(&j, &s->devices[i]);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
}
