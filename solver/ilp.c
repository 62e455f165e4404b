/* The integer program of ilp.h, row by row. GLPK ends the process on a wrong call unless hooked:
 * the hook jumps back here, and its environment is thrown away. */
#include "solver/ilp.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <string.h>

#include <glpk.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/owned.h"
#include "base/str.h"

static const double mib = 1048576.0;
static const double kib_of_mib = 1024.0;
static const double ms = 1e6;
/* Of the optimum: GLPK drops branches that are within 1e-7 of the best. */
static const double tolerance = 1e-6;
enum { LIMIT_MS = 20000 };

struct line {
    double slope;
    double base;
};

struct ilp {
    struct hb_arena *scratch;
    const struct hb_ilp_ask *ask;
    const struct hb_segment *s;
    glp_prob *lp;
    uint32_t *item; /* by place: the items that take part */
    uint32_t count;
    int goal;      /* column of T or P */
    double *value; /* of the row that is being made, by column */
    int columns;
    int *index; /* for GLPK: from 1 */
    double *packed;
    struct hb_ilp_answer *answer;
};

/* --- lines below tables --- */

/* Of a block's steps; all of them are always admitted. */
static struct line line_below(const struct hb_segment *s, const int64_t *table, int64_t high)
{
    int64_t low = 1;
    while (!s->admits[low])
        low++;
    struct line l = {0, 0};
    if (high > low)
        l.slope = floor((double)(table[high] - table[low]) / (double)(high - low));
    l.base = DBL_MAX;
    for (int64_t n = low; n <= high; n++)
        if (s->admits[n])
            l.base = fmin(l.base, (double)table[n] - l.slope * (double)n);
    return l;
}

static double down_to_kib(double bytes)
{
    return floor(bytes / 1024.0) / kib_of_mib;
}

static int64_t steps_of(const struct ilp *p, uint32_t item)
{
    return hb_block_steps(&p->ask->spec->model.blocks[p->s->items[item].block]);
}

static const int64_t *state_of(const struct ilp *p, uint32_t item, int kind, uint32_t slot,
                               int state)
{
    size_t row = hb_segment_row(p->s); /* by steps: blocks are not whole here */
    const int64_t *live = p->s->items[item].live[kind];
    return live ? live + ((size_t)slot * HB_PART_STATES + (size_t)state) * row : NULL;
}

/* --- rows --- */

static int column_x(const struct ilp *p, uint32_t place)
{
    (void)p;
    return 1 + (int)place;
}

static int column_y(const struct ilp *p, uint32_t place)
{
    return 1 + (int)(p->count + place);
}

static void add_line(struct ilp *p, uint32_t place, struct line l, double (*scale)(double))
{
    p->value[column_x(p, place)] += scale(l.slope);
    p->value[column_y(p, place)] += scale(l.base);
}

static void add_bytes(struct ilp *p, uint32_t place, const int64_t *table)
{
    if (table)
        add_line(p, place, line_below(p->s, table, steps_of(p, p->item[place])), down_to_kib);
}

/* Makes a row of p->value and clears it. */
static void close_row(struct ilp *p, const char *name, int kind, double low, double high)
{
    int row = glp_add_rows(p->lp, 1), used = 0;
    glp_set_row_name(p->lp, row, name);
    glp_set_row_bnds(p->lp, row, kind, low, high);
    for (int c = 1; c <= p->columns; c++) {
        if (p->value[c] < 0 || p->value[c] > 0) {
            p->index[++used] = c;
            p->packed[used] = p->value[c];
        }
        p->value[c] = 0;
    }
    glp_set_mat_row(p->lp, row, used, p->index, p->packed);
}

static void add_layer_rows(struct ilp *p)
{
    const struct hb_spec *spec = p->ask->spec;
    for (int k = 0; k < spec->model.block_count; k++) {
        int32_t steps = hb_block_steps(&spec->model.blocks[k]);
        if (p->s->first_item[k] == p->s->first_item[k + 1])
            continue;
        for (uint32_t i = 0; i < p->count; i++)
            if (p->s->items[p->item[i]].block == (uint32_t)k)
                p->value[column_x(p, i)] = 1;
        close_row(p, hb_arena_printf(p->scratch, "layers_%d", k), GLP_FX, (double)steps,
                  (double)steps);
    }
    for (uint32_t i = 0; i < p->count; i++) {
        p->value[column_x(p, i)] = 1;
        p->value[column_y(p, i)] = -(double)steps_of(p, p->item[i]);
        close_row(p, hb_arena_printf(p->scratch, "used_%u", i), GLP_UP, 0, 0);
        p->value[column_x(p, i)] = 1;
        p->value[column_y(p, i)] = -1;
        close_row(p, hb_arena_printf(p->scratch, "some_%u", i), GLP_LO, 0, 0);
        p->value[column_y(p, i)] = 0;
    }
    for (uint32_t i = 0; i < p->count; i++)
        p->value[column_y(p, i)] = 1;
    double looped = 0;
    for (int k = 0; k < spec->model.block_count; k++)
        looped += p->s->first_item[k] < p->s->first_item[k + 1];
    close_row(p, "one_split", GLP_UP, 0, looped + 1);
}

static double to_ms(double ns)
{
    return ns / ms;
}

static void add_time_rows(struct ilp *p)
{
    for (int v = 0; v < HB_BOUNDS; v++) {
        bool any = p->s->bound_ns[v] > 0;
        for (uint32_t i = 0; i < p->count; i++) {
            const int64_t *table = p->s->items[p->item[i]].bound_ns[v];
            any = any || table;
            if (table)
                add_line(p, i, line_below(p->s, table, steps_of(p, p->item[i])), to_ms);
        }
        p->value[p->goal] = -1;
        if (any)
            close_row(p, hb_arena_printf(p->scratch, "time_%d", v), GLP_UP, 0,
                      -to_ms((double)p->s->bound_ns[v]));
        p->value[p->goal] = 0;
    }
}

/* The side of a memory row that does not depend on the choice. */
static double room_for(struct ilp *p, int kind, uint32_t slot)
{
    double fixed = down_to_kib((double)p->s->fixed[kind] + (double)p->s->live[kind][slot]);
    bool memory = p->ask->limits.goal == HB_GOAL_MEMORY && kind == HB_BYTES_DEVICE;
    int64_t limit =
        kind == HB_BYTES_DEVICE ? p->ask->limits.budget_bytes : p->ask->limits.host_bytes;
    if (memory)
        p->value[p->goal] = -1;
    return memory ? -fixed : ceil((double)limit / mib) + 1 - fixed;
}

/* Sum of what all items add while item `own` (HB_NONE: none) has its turn; returns the most that it
 * can be. */
static double add_slot(struct ilp *p, int kind, uint32_t slot, uint32_t own)
{
    const struct hb_slot *q = &p->s->slots[slot];
    double most = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        int state = HB_PART_OWN;
        if (own != HB_NONE && i != own)
            state = (i < own) == q->rising ? HB_PART_AFTER : HB_PART_BEFORE;
        const int64_t *live = state_of(p, p->item[i], kind, slot, state);
        const int64_t *fixed = p->s->items[p->item[i]].fixed[kind];
        int64_t steps = steps_of(p, p->item[i]);
        add_bytes(p, i, live);
        add_bytes(p, i, fixed);
        most += ((live ? (double)live[steps] : 0) + (double)fixed[steps]) / mib + 1;
    }
    return most;
}

static void close_memory_row(struct ilp *p, int kind, uint32_t slot, uint32_t own, double most)
{
    double room = room_for(p, kind, slot);
    bool memory = p->ask->limits.goal == HB_GOAL_MEMORY && kind == HB_BYTES_DEVICE;
    /* Each block takes its items' bytes at most once over; the sum of all is well above. */
    double big = most - room;
    if (big <= 0 && !memory) { /* can never bind */
        for (int c = 1; c <= p->columns; c++)
            p->value[c] = 0;
        return;
    }
    if (own != HB_NONE) {
        p->value[column_y(p, own)] += big > 0 ? big : 0;
        room += big > 0 ? big : 0;
    }
    const char *name = own == HB_NONE
                           ? hb_arena_printf(p->scratch, "slot_%d_%u", kind, slot)
                           : hb_arena_printf(p->scratch, "turn_%d_%u_%u", kind, slot, own);
    close_row(p, name, GLP_UP, 0, room);
}

static void add_memory_rows(struct ilp *p, int kind)
{
    for (uint32_t q = 0; q < p->s->slot_count; q++) {
        if (!p->s->slots[q].turns) {
            double most = add_slot(p, kind, q, HB_NONE);
            close_memory_row(p, kind, q, HB_NONE, most);
            continue;
        }
        for (uint32_t i = 0; i < p->count; i++) {
            double most = add_slot(p, kind, q, i);
            close_memory_row(p, kind, q, i, most);
        }
    }
}

static void add_columns(struct ilp *p)
{
    p->columns = (int)(2 * p->count + 1);
    p->goal = p->columns;
    glp_add_cols(p->lp, p->columns);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct hb_item *item = &p->s->items[p->item[i]];
        glp_set_col_name(p->lp, column_x(p, i),
                         hb_arena_printf(p->scratch, "x_%u_%u", item->block, item->policy));
        glp_set_col_kind(p->lp, column_x(p, i), GLP_IV);
        glp_set_col_bnds(p->lp, column_x(p, i), GLP_DB, 0, (double)steps_of(p, p->item[i]));
        glp_set_col_name(p->lp, column_y(p, i),
                         hb_arena_printf(p->scratch, "y_%u_%u", item->block, item->policy));
        glp_set_col_kind(p->lp, column_y(p, i), GLP_BV);
    }
    bool memory = p->ask->limits.goal == HB_GOAL_MEMORY;
    glp_set_col_name(p->lp, p->goal, memory ? "peak_mib" : "step_ms");
    glp_set_col_bnds(p->lp, p->goal, GLP_LO, 0, 0);
    glp_set_obj_coef(p->lp, p->goal, 1);
    glp_set_obj_dir(p->lp, GLP_MIN);
    p->value = hb_arena_alloc(p->scratch, (size_t)p->columns + 1, sizeof *p->value);
    p->index = hb_arena_alloc(p->scratch, (size_t)p->columns + 1, sizeof *p->index);
    p->packed = hb_arena_alloc(p->scratch, (size_t)p->columns + 1, sizeof *p->packed);
}

static void make_problem(struct ilp *p)
{
    glp_set_prob_name(p->lp, "hbmsim");
    add_columns(p);
    add_layer_rows(p);
    if (p->ask->limits.goal == HB_GOAL_TIME)
        add_time_rows(p);
    add_memory_rows(p, HB_BYTES_DEVICE);
    if (p->s->has_host && p->ask->limits.host_bytes < INT64_MAX)
        add_memory_rows(p, HB_BYTES_HOST);
}

/* --- solving --- */

static void read_answer(const struct ilp *p, int failed, struct hb_ilp_answer *out)
{
    int status = glp_mip_status(p->lp);
    out->rows = (uint32_t)glp_get_num_rows(p->lp);
    out->columns = (uint32_t)glp_get_num_cols(p->lp);
    if (failed == GLP_ENOPFS || failed == GLP_ENODFS || (!failed && status == GLP_NOFEAS)) {
        out->status = HB_ILP_INFEASIBLE;
        return;
    }
    if (status != GLP_OPT)
        return;
    out->status = HB_ILP_OPTIMAL;
    out->objective = glp_mip_obj_val(p->lp);
    double unit = p->ask->limits.goal == HB_GOAL_MEMORY ? mib : ms;
    double value = out->objective * unit * (1 - tolerance);
    out->bound = value > 0 ? (int64_t)floor(value) : 0;
}

struct end {
    jmp_buf back;
    volatile bool no_memory; /* by GLPK's own words */
};

static void jump_back(void *info)
{
    longjmp(((struct end *)info)->back, 1);
}

static int say_nothing(void *info, const char *text)
{
    if (strstr(text, "no memory available") || strstr(text, "memory allocation "))
        ((struct end *)info)->no_memory = true;
    return 1;
}

/* A GLPK that was built without --enable-reentrant has one environment for all threads. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static bool is_shared(void)
{
    return glp_config("TLS") == NULL;
}

/* GLPK's memory of this thread, problems and all. */
static void free_glpk(void *unused)
{
    (void)unused;
    glp_free_env();
    if (is_shared())
        pthread_mutex_unlock(&one_at_a_time);
}

/* Where GLPK cannot go on it jumps to end, without a word: it would print to standard output. */
static void start_glpk(struct hb_owned *owned, struct end *end)
{
    if (is_shared())
        pthread_mutex_lock(&one_at_a_time);
    hb_own(owned, free_glpk, NULL);
    if (glp_init_env() > 1) /* any other call would end the process */
        hb_die("out of memory in GLPK");
    glp_term_hook(say_nothing, end);
    glp_term_out(GLP_OFF);
    glp_error_hook(jump_back, end);
}

static void end_glpk(struct hb_owned *owned)
{
    hb_disown(owned);
    free_glpk(NULL);
}

/* False: GLPK could not go on, and run has said nothing. For want of memory nothing else goes on
 * either: the same input has one answer, or none. */
static bool run_glpk(void (*run)(void *context), void *context)
{
    struct end end = {.no_memory = false};
    struct hb_owned owned;
    start_glpk(&owned, &end);
    if (setjmp(end.back)) {
        end_glpk(&owned);
        if (end.no_memory)
            hb_die("out of memory in GLPK");
        return false;
    }
    run(context);
    end_glpk(&owned);
    return true;
}

/* --- linear programs --- */

static void fill_linear(struct hb_arena *scratch, const struct hb_lp *from, glp_prob *lp)
{
    int rows = (int)from->row_count, entries = (int)from->entry_count;
    int *row = hb_arena_alloc(scratch, from->entry_count + 1, sizeof *row);
    int *column = hb_arena_alloc(scratch, from->entry_count + 1, sizeof *column);
    double *value = hb_arena_alloc(scratch, from->entry_count + 1, sizeof *value);
    glp_set_obj_dir(lp, GLP_MIN);
    glp_add_rows(lp, rows);
    glp_add_cols(lp, (int)from->columns);
    for (uint32_t c = 0; c < from->columns; c++)
        glp_set_col_bnds(lp, (int)c + 1, c ? GLP_DB : GLP_LO, 0, 1);
    glp_set_obj_coef(lp, 1, 1);
    for (int i = 0, at = 0; i < rows; i++) {
        glp_set_row_bnds(lp, i + 1, GLP_LO, from->rows[i].least, 0);
        for (; at < (int)from->rows[i].end; at++) {
            row[at + 1] = i + 1;
            column[at + 1] = (int)from->entries[at].column + 1;
            value[at + 1] = from->entries[at].value;
        }
    }
    glp_load_matrix(lp, entries, row, column, value);
}

/* What the row's weights prove, whatever GLPK takes for the optimum: of a sum of rows with weights
 * at least 0 each column is at its better bound. Column 0 has no upper one: the weights are made
 * smaller until it costs nothing. What rounding may add is taken off. */
static double proven_least(struct hb_arena *scratch, const struct hb_lp *from,
                           const double *weights)
{
    double *sums = hb_arena_alloc(scratch, from->columns, sizeof *sums);
    double value = 0, size = 0;
    for (uint32_t i = 0, at = 0; i < from->row_count; i++) {
        double weight = weights[i] > 0 ? weights[i] : 0;
        value += weight * from->rows[i].least;
        size += fabs(weight * from->rows[i].least);
        for (; at < from->rows[i].end; at++) {
            sums[from->entries[at].column] += weight * from->entries[at].value;
            size += fabs(weight * from->entries[at].value);
        }
    }
    for (uint32_t c = 1; c < from->columns; c++)
        value -= sums[c] > 0 ? sums[c] : 0;
    value -= size * DBL_EPSILON * (from->entry_count + from->row_count);
    double least = sums[0] > 1 ? value / sums[0] : value;
    return isfinite(least) && least > 0 ? least : 0;
}

static enum hb_ilp_status solve_linear(struct hb_arena *scratch, struct hb_lp *from)
{
    glp_smcp parm;
    enum hb_ilp_status status = HB_ILP_LIMIT;
    glp_prob *lp = glp_create_prob();
    fill_linear(scratch, from, lp);
    glp_init_smcp(&parm);
    parm.msg_lev = GLP_MSG_OFF;
    parm.tm_lim = LIMIT_MS;
    glp_scale_prob(lp, GLP_SF_AUTO);
    int failed = glp_simplex(lp, &parm);
    if (!failed && glp_get_status(lp) == GLP_OPT) {
        double *weights = hb_arena_alloc(scratch, from->row_count, sizeof *weights);
        for (uint32_t i = 0; i < from->row_count; i++)
            weights[i] = glp_get_row_dual(lp, (int)i + 1);
        status = HB_ILP_OPTIMAL;
        from->bound = proven_least(scratch, from, weights);
        for (uint32_t c = 0; c < from->columns && from->values; c++)
            from->values[c] = glp_get_col_prim(lp, (int)c + 1);
    } else if (!failed && glp_get_status(lp) == GLP_NOFEAS) {
        status = HB_ILP_INFEASIBLE;
    }
    glp_delete_prob(lp);
    return status;
}

/* The rows without column 0, which is there in its place what each of them may lack: where that is
 * more than nothing, no values keep them all. Of a row with column 0 some value of it always does.
 */
static bool is_proven_infeasible(struct hb_arena *scratch, const struct hb_lp *from)
{
    struct hb_lp lack = {.columns = from->columns};
    lack.rows = hb_arena_alloc(scratch, from->row_count, sizeof *lack.rows);
    lack.entries =
        hb_arena_alloc(scratch, from->entry_count + (size_t)from->row_count, sizeof *lack.entries);
    for (uint32_t i = 0, at = 0; i < from->row_count; i++) {
        uint32_t first = lack.entry_count;
        bool any = false;
        for (; at < from->rows[i].end; at++) {
            any = any || from->entries[at].column == 0;
            lack.entries[lack.entry_count++] = from->entries[at];
        }
        if (any) {
            lack.entry_count = first;
            continue;
        }
        lack.entries[lack.entry_count++] = (struct hb_lp_entry){0, 1};
        lack.rows[lack.row_count++] = (struct hb_lp_row){from->rows[i].least, lack.entry_count};
    }
    return solve_linear(scratch, &lack) == HB_ILP_OPTIMAL && lack.bound > 0;
}

struct linear {
    struct hb_arena *scratch;
    struct hb_lp *lp;
    enum hb_ilp_status status;
};

static void run_linear(void *context)
{
    struct linear *x = context;
    x->status = solve_linear(x->scratch, x->lp);
    if (x->status == HB_ILP_INFEASIBLE && !is_proven_infeasible(x->scratch, x->lp))
        x->status = HB_ILP_LIMIT;
}

enum hb_ilp_status hb_ilp_linear(struct hb_arena *scratch, struct hb_lp *lp)
{
    struct linear x = {scratch, lp, HB_ILP_LIMIT};
    return run_glpk(run_linear, &x) ? x.status : HB_ILP_LIMIT;
}

/* --- what the solver said, proven --- */

/* Linear programs for one proof. */
enum { PROOF_PROGRAMS = 200 };

struct proof {
    struct ilp *p;
    double least; /* nothing is below; INFINITY: there is nothing */
    uint32_t left;
    double *low; /* by column of GLPK's */
    double *high;
    uint32_t entry_cap, row_cap;
};

static uint32_t column_of(const struct ilp *p, int column)
{
    return column == p->goal ? 0 : (uint32_t)column;
}

/* Sign times the row is at least so much; columns count in parts of their room. */
static void add_side(struct proof *x, struct hb_lp *lp, int row, double sign, double least)
{
    struct ilp *p = x->p;
    int count = glp_get_mat_row(p->lp, row, p->index, p->packed);
    for (int i = 1; i <= count; i++) {
        int column = p->index[i];
        double value = sign * p->packed[i], room = x->high[column] - x->low[column];
        double scaled = column == p->goal ? value : value * room;
        least -= column == p->goal ? 0 : value * x->low[column];
        lp->entries =
            hb_grow(p->scratch, lp->entries, lp->entry_count, &x->entry_cap, sizeof *lp->entries);
        lp->entries[lp->entry_count++] = (struct hb_lp_entry){column_of(p, column), scaled};
    }
    lp->rows = hb_grow(p->scratch, lp->rows, lp->row_count, &x->row_cap, sizeof *lp->rows);
    lp->rows[lp->row_count++] = (struct hb_lp_row){least, lp->entry_count};
}

/* Of an equation the lower side alone: fewer rows prove less, never more, and no proof needed the
 * other. */
static struct hb_lp make_branch(struct proof *x)
{
    const struct ilp *p = x->p;
    struct hb_lp lp = {.columns = (uint32_t)p->columns + 1};
    x->entry_cap = x->row_cap = 0;
    lp.values = hb_arena_alloc(p->scratch, lp.columns, sizeof *lp.values);
    for (int row = 1; row <= glp_get_num_rows(p->lp); row++) {
        int type = glp_get_row_type(p->lp, row);
        if (type != GLP_UP)
            add_side(x, &lp, row, 1, glp_get_row_lb(p->lp, row));
        else
            add_side(x, &lp, row, -1, -glp_get_row_ub(p->lp, row));
    }
    return lp;
}

/* The column that is farthest from a whole number; 0: all are whole. */
static int find_split(const struct proof *x, const struct hb_lp *lp, double *out_value)
{
    int best = 0;
    double farthest = 1e-6;
    for (int c = 1; c <= x->p->columns; c++) {
        double value = x->low[c] + lp->values[c] * (x->high[c] - x->low[c]);
        double off = fabs(value - floor(value + 0.5));
        if (c != x->p->goal && off > farthest) {
            best = c;
            farthest = off;
            *out_value = value;
        }
    }
    return best;
}

static bool prove_branch(struct proof *x);

static bool prove_both(struct proof *x, int column, double value)
{
    double low = x->low[column], high = x->high[column];
    x->high[column] = floor(value);
    bool proven = prove_branch(x);
    x->high[column] = high;
    x->low[column] = floor(value) + 1;
    proven = proven && prove_branch(x);
    x->low[column] = low;
    return proven;
}

static bool prove_branch(struct proof *x)
{
    struct hb_arena *scratch = x->p->scratch;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    double value = 0;
    if (x->left == 0 || hb_stop_now(x->p->ask->limits.stop))
        return false;
    x->left--;
    struct hb_lp lp = make_branch(x);
    enum hb_ilp_status status = solve_linear(scratch, &lp);
    bool proven = status == HB_ILP_INFEASIBLE && is_proven_infeasible(scratch, &lp);
    proven = proven || (status == HB_ILP_OPTIMAL && lp.bound >= x->least);
    int column = status == HB_ILP_OPTIMAL && !proven ? find_split(x, &lp, &value) : 0;
    hb_arena_rewind(scratch, mark);
    return proven || (column && prove_both(x, column, value));
}

static bool is_proven(struct ilp *p, double least)
{
    struct proof x = {.p = p, .least = least, .left = PROOF_PROGRAMS};
    x.low = hb_arena_alloc(p->scratch, (size_t)p->columns + 1, sizeof *x.low);
    x.high = hb_arena_alloc(p->scratch, (size_t)p->columns + 1, sizeof *x.high);
    for (int c = 1; c <= p->columns; c++) {
        x.low[c] = glp_get_col_lb(p->lp, c);
        x.high[c] = c == p->goal ? x.low[c] : glp_get_col_ub(p->lp, c);
    }
    return prove_branch(&x);
}

/* --- the whole --- */

static void look_up(glp_tree *tree, void *stop)
{
    if (hb_stop_now(stop))
        glp_ios_terminate(tree);
}

static void solve_problem(struct ilp *p, struct hb_ilp_answer *out)
{
    glp_iocp parm;
    make_problem(p);
    if (p->ask->lp_file && glp_write_lp(p->lp, NULL, p->ask->lp_file) != 0)
        hb_die("cannot write '%s'", p->ask->lp_file);
    glp_init_iocp(&parm);
    parm.msg_lev = GLP_MSG_OFF;
    parm.presolve = GLP_ON;
    parm.tol_int = 1e-9;
    parm.tm_lim = LIMIT_MS;
    parm.cb_func = look_up;
    parm.cb_info = p->ask->limits.stop;
    int failed = glp_intopt(p->lp, &parm);
    read_answer(p, failed, out);
    if (out->status == HB_ILP_OPTIMAL)
        out->proven = is_proven(p, out->objective * (1 - tolerance));
    else if (out->status == HB_ILP_INFEASIBLE)
        out->proven = is_proven(p, INFINITY);
}

static struct ilp *open_program(struct hb_arena *scratch, const struct hb_ilp_ask *ask)
{
    struct ilp *p = hb_arena_alloc(scratch, 1, sizeof *p);
    *p = (struct ilp){.scratch = scratch, .ask = ask, .s = ask->segment};
    p->item = hb_arena_alloc(scratch, p->s->item_count, sizeof *p->item);
    for (uint32_t i = 0; i < p->s->item_count; i++)
        if (!ask->leave_out || !ask->leave_out[i])
            p->item[p->count++] = i;
    return p;
}

static void run_solve(void *context)
{
    struct ilp *p = context;
    p->lp = glp_create_prob();
    solve_problem(p, p->answer);
    glp_delete_prob(p->lp);
}

void hb_ilp_solve(struct hb_arena *scratch, const struct hb_ilp_ask *ask, struct hb_ilp_answer *out)
{
    struct ilp *p = open_program(scratch, ask);
    *out = (struct hb_ilp_answer){.status = HB_ILP_LIMIT};
    p->answer = out;
    run_glpk(run_solve, p);
}

struct claim {
    struct ilp *p;
    double least;
    bool proven;
};

static void run_proof(void *context)
{
    struct claim *x = context;
    x->p->lp = glp_create_prob();
    make_problem(x->p);
    x->proven = is_proven(x->p, x->least);
    glp_delete_prob(x->p->lp);
}

bool hb_ilp_proves(struct hb_arena *scratch, const struct hb_ilp_ask *ask, double least)
{
    struct claim x = {open_program(scratch, ask), least, false};
    return run_glpk(run_proof, &x) && x.proven;
}
