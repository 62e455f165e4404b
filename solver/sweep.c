/* Cells, their results, and who runs them: see sweep.h. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "solver/sweep.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/progress.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/result.h"
#include "solver/journal.h"

/* --- input --- */

static struct hb_node *load_own(const struct hb_schema_source *source)
{
    struct hb_schema_source own = *source;
    struct hb_diag quiet;
    struct hb_node *root;
    hb_diag_init(&quiet, source->arena);
    own.diag = &quiet;
    return hb_schema_load(&own, &root) ? root : NULL;
}

bool hb_sweep_load(const struct hb_schema_source *source, struct hb_sweep *sweep)
{
    struct hb_schema_source each = *source;
    uint32_t axis = 0;
    while (axis < sweep->axis_count && !hb_str_same(sweep->axes[axis].key, "model.preset"))
        axis++;
    bool varies = axis < sweep->axis_count;
    if (varies && hb_str_same(source->path, "-"))
        return hb_error(source->diag, (struct hb_loc){0},
                        "model.preset varies: the model is read for each value, so it has to be a "
                        "file, not standard input");
    sweep->preset_axis = varies ? axis : HB_SWEEP_AXES;
    sweep->root_count = varies ? sweep->axes[axis].count : 1;
    sweep->roots = hb_arena_alloc(source->arena, sweep->root_count, sizeof(struct hb_node *));
    sweep->own = varies ? load_own(source) : NULL;
    const char **sets = hb_arena_alloc(source->arena, (size_t)source->set_count + 1, sizeof *sets);
    for (int i = 0; i < source->set_count; i++)
        sets[i] = source->sets[i];
    each.sets = sets;
    each.set_count += varies;
    for (uint32_t i = 0; i < sweep->root_count; i++) {
        if (varies)
            sets[source->set_count] =
                hb_arena_printf(source->arena, "model.preset=%s", sweep->axes[axis].values[i]);
        if (!hb_schema_load(&each, &sweep->roots[i]))
            return false;
    }
    sweep->own = varies ? sweep->own : sweep->roots[0];
    return true;
}

const char *hb_sweep_name(const struct hb_sweep *sweep)
{
    const struct hb_node *name = hb_node_find(hb_node_find(sweep->roots[0], "model"), "name");
    return sweep->root_count == 1 && name && name->kind == HB_NODE_SCALAR ? name->text : "";
}

/* --- one cell --- */

struct work {
    const struct hb_sweep_ask *ask;
    const struct hb_sweep *sweep;
    struct hb_arena *scratch;
    struct hb_arena *kept; /* devices */
    struct hb_device device;
    const char *device_name;
};

static bool load_device(struct work *w, struct hb_diag *diag, const char *name)
{
    if (w->device_name && hb_str_same(w->device_name, name))
        return true;
    w->device_name = NULL;
    if (!hb_device_load(w->kept, diag, w->ask->env->data_dir, name, (struct hb_loc){0}, &w->device))
        return false;
    w->device_name = hb_arena_strdup(w->kept, name);
    return true;
}

static bool run_spec(struct work *w, struct hb_diag *diag, struct hb_spec *spec,
                     struct hb_sweep_cell *out)
{
    struct hb_result result;
    if (!hb_spec_supported(diag, NULL, spec) || !load_device(w, diag, spec->hardware.device))
        return false;
    spec->hardware.memory_bytes = hb_budget_found_bytes(spec, &w->device);
    if (!hb_result_brief(w->scratch, diag, spec, &w->device, &result))
        return false;
    *out = (struct hb_sweep_cell){.done = true,
                                  .fits = result.fits,
                                  .peak_bytes = result.memory.peak_bytes,
                                  .low_bytes = result.interval.low_bytes,
                                  .high_bytes = result.interval.high_bytes,
                                  .budget_bytes = result.budget_bytes,
                                  .step_ns = result.timing.step_ns,
                                  .tokens_per_second = result.tokens_per_second};
    return true;
}

static const struct hb_node *root_of(const struct hb_sweep *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->preset_axis && i < s->axis_count; i++)
        index /= s->axes[i].count;
    return s->roots[index % s->root_count];
}

static bool read_spec(struct hb_arena *arena, struct hb_diag *diag, const struct hb_sweep *sweep,
                      uint32_t index, const char *data_dir, struct hb_spec *out_spec)
{
    struct hb_node *root = hb_node_copy(arena, root_of(sweep, index));
    bool ok = true;
    for (uint32_t i = 0; i < sweep->axis_count && ok; i++) {
        if (i == sweep->preset_axis)
            continue;
        const char *set =
            hb_arena_printf(arena, "%s=%s", sweep->axes[i].key, hb_sweep_value(sweep, index, i));
        ok = hb_schema_set(arena, diag, root, set);
    }
    return ok && hb_schema_from_node(arena, diag, root, data_dir, out_spec);
}

bool hb_sweep_spec(struct hb_arena *arena, const struct hb_sweep *sweep, const char *data_dir,
                   struct hb_spec *out_spec)
{
    struct hb_diag quiet;
    hb_diag_init(&quiet, arena);
    bool found = sweep->root_count == 1 &&
                 hb_schema_from_node(arena, &quiet, sweep->roots[0], data_dir, out_spec);
    for (uint32_t i = 0; i < sweep->cell_count && !found; i++) {
        hb_diag_init(&quiet, arena);
        found = read_spec(arena, &quiet, sweep, i, data_dir, out_spec);
    }
    return found;
}

/* A configuration in full: two that say the same are the same text. */
static const char *print_spec(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    hb_schema_emit_json(&text, spec, true);
    return text.text;
}

/* The card decides what a model is, so its name is not among the keys of what was read. */
static bool is_own_preset(struct hb_arena *arena, const struct hb_sweep *s, uint32_t value,
                          const char *data_dir, const char *own)
{
    struct hb_diag quiet;
    struct hb_spec spec;
    hb_diag_init(&quiet, arena);
    return hb_schema_from_node(arena, &quiet, s->roots[value], data_dir, &spec) &&
           hb_str_same(print_spec(arena, &spec), own);
}

static bool is_own_value(struct hb_arena *arena, const struct hb_sweep *s, uint32_t axis,
                         uint32_t value, const char *data_dir, const char *own)
{
    struct hb_diag quiet;
    struct hb_spec spec;
    if (axis == s->preset_axis)
        return is_own_preset(arena, s, value, data_dir, own);
    struct hb_node *root = hb_node_copy(arena, s->own);
    const char *set =
        hb_arena_printf(arena, "%s=%s", s->axes[axis].key, s->axes[axis].values[value]);
    hb_diag_init(&quiet, arena);
    return hb_schema_set(arena, &quiet, root, set) &&
           hb_schema_from_node(arena, &quiet, root, data_dir, &spec) &&
           hb_str_same(print_spec(arena, &spec), own);
}

uint32_t hb_sweep_own(struct hb_arena *arena, const struct hb_sweep *sweep, const char *data_dir)
{
    struct hb_arena *scratch = hb_arena_new();
    struct hb_diag quiet;
    struct hb_spec spec;
    uint32_t cell = 0, stride = 1;
    hb_diag_init(&quiet, arena);
    bool ok = sweep->own && hb_schema_from_node(arena, &quiet, sweep->own, data_dir, &spec);
    const char *own = ok ? print_spec(arena, &spec) : "";
    for (uint32_t i = 0; i < sweep->axis_count && ok; i++) {
        uint32_t value = 0;
        for (ok = false; value < sweep->axes[i].count && !ok; value += !ok) {
            struct hb_arena_mark mark = hb_arena_mark(scratch);
            ok = is_own_value(scratch, sweep, i, value, data_dir, own);
            hb_arena_rewind(scratch, mark);
        }
        cell += value * stride;
        stride *= sweep->axes[i].count;
    }
    hb_arena_free(scratch);
    return ok ? cell : HB_NONE;
}

static void run_cell(struct work *w, uint32_t index, struct hb_sweep_cell *out)
{
    struct hb_diag diag;
    struct hb_spec spec;
    hb_diag_init(&diag, w->scratch);
    bool ok = read_spec(w->scratch, &diag, w->sweep, index, w->ask->env->data_dir, &spec) &&
              run_spec(w, &diag, &spec, out);
    if (!ok)
        *out = (struct hb_sweep_cell){.done = true, .error = diag.entries[0].text};
}

/* --- lines --- */

static const char *cell_line(struct hb_arena *arena, uint32_t index, const struct hb_sweep_cell *c)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_object(&j);
    hb_json_put_int(&j, "cell", index);
    if (c->error) {
        hb_json_put_text(&j, "error", c->error);
    } else {
        hb_json_put_bool(&j, "fits", c->fits);
        hb_json_put_int(&j, "peak_bytes", c->peak_bytes);
        hb_json_put_int(&j, "low_bytes", c->low_bytes);
        hb_json_put_int(&j, "high_bytes", c->high_bytes);
        hb_json_put_int(&j, "budget_bytes", c->budget_bytes);
        hb_json_put_int(&j, "step_ns", c->step_ns);
        hb_json_put_real(&j, "tokens_per_second", c->tokens_per_second);
    }
    hb_json_object_end(&j);
    hb_json_end(&j);
    return text.text;
}

static bool read_cell(struct hb_arena *arena, const struct hb_node *line, uint32_t cell_count,
                      struct hb_sweep_cell *cells)
{
    int64_t index;
    struct hb_sweep_cell c = {.done = true};
    const struct hb_node *error = hb_node_find(line, "error");
    if (!hb_node_int(hb_node_find(line, "cell"), &index) || index < 0 || index >= cell_count)
        return false;
    if (error)
        c.error = hb_arena_strdup(arena, error->text);
    else if (!hb_node_bool(hb_node_find(line, "fits"), &c.fits) ||
             !hb_node_int(hb_node_find(line, "peak_bytes"), &c.peak_bytes) ||
             !hb_node_int(hb_node_find(line, "low_bytes"), &c.low_bytes) ||
             !hb_node_int(hb_node_find(line, "high_bytes"), &c.high_bytes) ||
             !hb_node_int(hb_node_find(line, "budget_bytes"), &c.budget_bytes) ||
             !hb_node_int(hb_node_find(line, "step_ns"), &c.step_ns) ||
             !hb_node_real(hb_node_find(line, "tokens_per_second"), &c.tokens_per_second))
        return false;
    cells[index] = c;
    return true;
}

/* The grid in words: a journal belongs to it and to no other. */
static const char *grid_line(struct hb_arena *arena, const struct hb_sweep *sweep)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_object(&j);
    hb_json_key(&j, "sweep");
    hb_json_array(&j);
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        hb_json_array(&j);
        hb_json_text(&j, sweep->axes[i].key);
        for (uint32_t k = 0; k < sweep->axes[i].count; k++)
            hb_json_text(&j, sweep->axes[i].values[k]);
        hb_json_array_end(&j);
    }
    hb_json_array_end(&j);
    hb_json_key(&j, "input");
    hb_json_array(&j);
    for (uint32_t i = 0; i < sweep->root_count; i++)
        hb_json_node(&j, sweep->roots[i]);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return text.text;
}

/* --- all cells --- */

static bool is_wanted(const struct hb_sweep_ask *ask, const struct hb_sweep_cell *cells,
                      uint32_t index)
{
    return !cells[index].done && (int64_t)index % ask->shards == ask->shard - 1;
}

/* Of one cell; it stays until the scratch is rewound. */
static const char *answer_cell(struct work *w, uint32_t index, struct hb_sweep_cell *cell)
{
    run_cell(w, index, cell);
    return cell_line(w->scratch, index, cell);
}

/* The next wanted cell, by a count that all children share; cell_count: there is none. */
static uint32_t take_turn(const struct work *w, const struct hb_sweep_cell *cells,
                          atomic_uint *turn)
{
    uint32_t index;
    do
        index = atomic_fetch_add(turn, 1);
    while (index < w->sweep->cell_count && !is_wanted(w->ask, cells, index));
    return index < w->sweep->cell_count ? index : w->sweep->cell_count;
}

/* A child process: one wanted cell after another, as lines into the pipe. Cells are unlike, those
 * of one value of the first axis alike: none has a share of its own. */
static void run_child(struct work *w, const struct hb_sweep_cell *cells, atomic_uint *turn, int out)
{
    for (;;) {
        struct hb_sweep_cell cell;
        struct hb_arena_mark mark = hb_arena_mark(w->scratch);
        uint32_t index = take_turn(w, cells, turn);
        if (index == w->sweep->cell_count)
            break;
        const char *line = answer_cell(w, index, &cell);
        for (size_t left = strlen(line); left > 0;) {
            ssize_t wrote = write(out, line, left);
            if (wrote < 0 && errno != EINTR)
                _exit(1);
            line += wrote > 0 ? wrote : 0;
            left -= wrote > 0 ? (size_t)wrote : 0;
        }
        hb_arena_rewind(w->scratch, mark);
    }
    _exit(0);
}

/* Processes, and bytes of a cell's line: a message of the schema is at most 512 long. */
enum { MOST_JOBS = 256, MOST_LINE = HB_RANKS_LINE };

struct children {
    pid_t pid[MOST_JOBS];
    FILE *from[MOST_JOBS];
    int64_t count;
};

/* Of all processes that are forked from here on. A child that dies leaves it as it is. */
static atomic_uint *share_turn(void)
{
    atomic_uint *turn =
        mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turn == MAP_FAILED)
        hb_die("no memory for processes: %s", strerror(errno));
    atomic_init(turn, 0);
    return turn;
}

static void start_children(struct work *w, const struct hb_sweep_cell *cells, struct children *c)
{
    atomic_uint *turn = share_turn();
    fflush(NULL);
    for (c->count = 0; c->count < w->ask->jobs; c->count++) {
        int ends[2];
        if (pipe(ends) != 0)
            hb_die("no pipe for a process: %s", strerror(errno));
        pid_t pid = fork();
        if (pid < 0)
            hb_die("no process: %s", strerror(errno));
        if (pid == 0) {
            close(ends[0]);
            run_child(w, cells, turn, ends[1]);
        }
        close(ends[1]);
        c->pid[c->count] = pid;
        c->from[c->count] = fdopen(ends[0], "r");
        if (!c->from[c->count])
            hb_die("no stream for a process: %s", strerror(errno));
    }
    munmap(turn, sizeof *turn);
}

struct gather {
    struct work *w;
    struct hb_journal *journal;
    struct hb_sweep_cell *cells;
    struct hb_progress progress;
    int64_t done;
    uint32_t next;             /* cell that is given out next */
    struct hb_arena_mark mark; /* of the scratch, before rank 0 works itself */
};

/* -1: none is left. */
static int64_t next_cell(void *context)
{
    struct gather *g = context;
    while (g->next < g->w->sweep->cell_count) {
        uint32_t index = g->next++;
        if (is_wanted(g->w->ask, g->cells, index))
            return index;
    }
    return -1;
}

/* A cell's line, to the journal and to who listens. */
static void tell_line(const struct gather *g, const char *line, size_t len)
{
    if (g->journal)
        hb_journal_add(g->journal, line, len);
    if (g->w->ask->tell)
        g->w->ask->tell(g->w->ask->context, line, len);
}

static void keep_line(struct gather *g, const char *line, size_t len)
{
    struct hb_arena *arena = g->w->ask->env->arena;
    struct hb_arena_mark mark = hb_arena_mark(g->w->scratch);
    struct hb_diag diag;
    struct hb_node *node;
    hb_diag_init(&diag, g->w->scratch);
    struct hb_loc start = {.file = "a process", .line = 1, .column = 1};
    if (!hb_json_parse(g->w->scratch, &diag, start, line, len, &node) ||
        !read_cell(arena, node, g->w->sweep->cell_count, g->cells))
        hb_die("a process of the sweep answers '%.60s'", line);
    tell_line(g, line, len);
    hb_progress_at(&g->progress, ++g->done);
    hb_arena_rewind(g->w->scratch, mark);
}

/* Round and round, a line from each that has one. */
static void gather_children(struct gather *g, struct children *c)
{
    char *line = hb_arena_alloc(g->w->scratch, MOST_LINE, 1);
    for (int64_t open = c->count; open > 0;)
        for (int64_t i = 0; i < c->count; i++) {
            if (!c->from[i])
                continue;
            if (fgets(line, MOST_LINE, c->from[i])) {
                keep_line(g, line, strlen(line));
                continue;
            }
            fclose(c->from[i]);
            c->from[i] = NULL;
            open--;
        }
    for (int64_t i = 0; i < c->count; i++) {
        int status = 0;
        if (waitpid(c->pid[i], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            hb_die("a process of the sweep ended early");
    }
}

/* --- ranks of an MPI run --- */

static void keep_answer(void *context, const char *line, size_t len)
{
    keep_line(context, line, len);
}

struct follower {
    struct work *w;
    struct hb_arena_mark mark;
};

static const char *work_cell(void *context, int64_t index)
{
    struct follower *f = context;
    struct hb_sweep_cell cell;
    hb_arena_rewind(f->w->scratch, f->mark);
    return answer_cell(f->w, (uint32_t)index, &cell);
}

static const char *work_own(void *context, int64_t index)
{
    struct gather *g = context;
    struct follower own = {g->w, g->mark};
    return work_cell(&own, index);
}

/* Rank 0's part. */
static void lead_ranks(struct gather *g)
{
    const struct hb_sweep_ask *ask = g->w->ask;
    const struct hb_ranks_tasks tasks = {next_cell, work_own, keep_answer, g};
    char *line = hb_arena_alloc(ask->env->arena, MOST_LINE, 1);
    g->mark = hb_arena_mark(g->w->scratch);
    hb_ranks_lead(&ask->ranks, &tasks, line);
}

static void follow(struct work *w)
{
    struct follower f = {w, hb_arena_mark(w->scratch)};
    hb_ranks_follow(work_cell, &f);
}

/* --- one process --- */

static void run_alone(struct gather *g)
{
    for (int64_t i = next_cell(g); i >= 0; i = next_cell(g)) {
        struct hb_sweep_cell cell;
        struct hb_arena_mark mark = hb_arena_mark(g->w->scratch);
        const char *line = answer_cell(g->w, (uint32_t)i, &cell);
        tell_line(g, line, strlen(line));
        if (cell.error)
            cell.error = hb_arena_strdup(g->w->ask->env->arena, cell.error);
        g->cells[i] = cell;
        hb_progress_at(&g->progress, ++g->done);
        hb_arena_rewind(g->w->scratch, mark);
    }
}

static bool read_kept(const struct hb_sweep_ask *ask, const char *path, const char *grid,
                      struct hb_sweep_cell *cells)
{
    struct hb_arena *arena = ask->env->arena;
    struct hb_jsonl lines;
    struct hb_node *node;
    const char *text;
    if (!hb_journal_read(arena, ask->env->diag, path, &text, &lines))
        return false;
    if (!text)
        return true;
    if (!hb_str_starts(text, grid))
        return hb_error(ask->env->diag, (struct hb_loc){.file = path, .line = 1},
                        "the journal is of another sweep (other input, keys or values); remove it, "
                        "or name another");
    while (hb_jsonl_next(&lines, arena, ask->env->diag, &node) && node)
        if (!hb_node_find(node, "sweep") && !read_cell(arena, node, ask->sweep->cell_count, cells))
            return hb_error(ask->env->diag, node->loc, "a line that is no cell of this sweep");
    return ask->env->diag->errors == 0;
}

static void run_all(struct gather *g, int64_t wanted)
{
    const struct hb_sweep_ask *ask = g->w->ask;
    hb_progress_start(&g->progress, ask->env, "sweep", wanted);
    if (ask->ranks.count > 1) {
        lead_ranks(g);
    } else if (ask->jobs > 1 && wanted > 1) {
        struct children *children = hb_arena_alloc(ask->env->arena, 1, sizeof *children);
        start_children(g->w, g->cells, children);
        gather_children(g, children);
    } else {
        run_alone(g);
    }
    hb_progress_end(&g->progress);
}

static bool read_journals(const struct hb_sweep_ask *ask, const char *grid,
                          struct hb_sweep_cell *cells)
{
    for (uint32_t i = 0; i < ask->merge_count; i++)
        if (!read_kept(ask, ask->merge[i], grid, cells))
            return false;
    return !ask->journal || read_kept(ask, ask->journal, grid, cells);
}

bool hb_sweep_run(const struct hb_sweep_ask *ask, struct hb_sweep_cell **out_cells)
{
    struct hb_arena *arena = ask->env->arena;
    struct hb_sweep_cell *cells = hb_arena_alloc(arena, ask->sweep->cell_count, sizeof *cells);
    const char *grid = grid_line(arena, ask->sweep);
    bool ok = read_journals(ask, grid, cells);
    struct work w = {
        .ask = ask, .sweep = ask->sweep, .scratch = hb_arena_new(), .kept = hb_arena_new()};
    struct gather g = {.w = &w, .cells = cells};
    int64_t wanted = 0;
    for (uint32_t i = 0; i < ask->sweep->cell_count; i++)
        wanted += is_wanted(ask, cells, i);
    if (!ok) /* the others wait for tasks: there are none */
        g.next = ask->sweep->cell_count;
    g.journal = ok && ask->journal ? hb_journal_open(arena, ask->journal, grid) : NULL;
    if (ok || ask->ranks.count > 1)
        run_all(&g, ok ? wanted : 0);
    if (g.journal)
        hb_journal_close(g.journal);
    hb_arena_free(w.scratch);
    hb_arena_free(w.kept);
    *out_cells = cells;
    return ok;
}

void hb_sweep_follow(const struct hb_sweep_ask *ask)
{
    struct work w = {
        .ask = ask, .sweep = ask->sweep, .scratch = hb_arena_new(), .kept = hb_arena_new()};
    follow(&w);
    hb_arena_free(w.scratch);
    hb_arena_free(w.kept);
}
