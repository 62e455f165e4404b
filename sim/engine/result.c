/* Model FLOPs are 6 for each parameter that a token passes and is multiplied with, and 12 for each
 * score's head dimension, of scores that the mask leaves: so do MaxText (its pull request 1988),
 * Megatron-LM (since March 2025) and NeMo. PaLM (Chowdhery et al. 2022, appendix B) and torchtitan
 * count whole squares, with which a long step's MFU is above 1. None for what is computed again,
 * none for tokens that experts drop. */
#include "sim/engine/result.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "models/params.h"
#include "sim/eager/timed.h"
#include "sim/engine/check.h"
#include "sim/engine/cost.h"
#include "sim/engine/dating.h"
#include "sim/engine/step.h"
#include "sim/engine/load.h"

/* Keys that a query sees on average, of the layers of a unit in turn. */
static double keys_seen(const struct hb_attention *a, double seq)
{
    double seen = 0;
    for (int i = 0; i < a->window_count; i++) {
        double window = (double)a->windows[i];
        if (window == 0 && a->mask == HB_MASK_NONE)
            seen += seq;
        else if (window == 0 || window >= seq)
            seen += seq / 2;
        else
            seen += window - window * window / (2 * seq);
    }
    return seen / a->window_count;
}

/* Scores of one token over all layers of a block, times their width for q k and for p v. */
static double attention_flops(const struct hb_spec *spec, const struct hb_block *block)
{
    const struct hb_attention *a = &block->attention;
    double width = 2 * (double)a->head_dim;
    if (a->kind == HB_ATTN_NONE)
        return 0;
    if (a->kind == HB_ATTN_MLA)
        width = (double)a->qk_nope_head_dim + (double)a->qk_rope_head_dim + (double)a->v_head_dim;
    return 6 * (double)block->repeat * (double)a->heads * width *
           keys_seen(a, (double)spec->batch.seq);
}

/* Parameters that are looked up and multiplied with nothing: where the head is the words' table,
 * those of positions alone. */
static double table_params(const struct hb_spec *spec, const struct hb_params *params)
{
    return (double)(spec->model.tied_embeddings
                        ? hb_mul_sat(spec->model.positions, spec->model.d_model)
                        : params->embedding);
}

/* Of a token's experts over all layers of a block, those that have no room for it for sure. */
static double dropped_params(const struct hb_spec *spec, const struct hb_block *block)
{
    const struct hb_moe *m = &block->moe;
    if (m->experts == 0 || m->dispatch != HB_DISPATCH_EINSUM)
        return 0;
    double room = (double)hb_params_capacity(m, spec->batch.seq) * (double)m->experts;
    double dropped = fmax(0, (double)m->top_k - room / (double)spec->batch.seq);
    return dropped * (double)block->repeat * (double)hb_params_expert(&spec->model, block);
}

/* What a step needs on each device, by no way of computing it less. */
static double needed_flops(const struct hb_spec *spec)
{
    struct hb_params params;
    hb_params_count(spec, &params);
    double products = (double)params.active - table_params(spec, &params) - (double)params.norm;
    double scores = 0;
    for (int i = 0; i < spec->model.block_count; i++) {
        products -= dropped_params(spec, &spec->model.blocks[i]);
        scores += attention_flops(spec, &spec->model.blocks[i]);
    }
    return (6 * products + scores) * (double)spec->batch.global * (double)spec->batch.seq /
           (double)spec->hardware.count;
}

/* Per second, of the fastest type that its layers or its head multiply in. */
static double peak_rate(const struct hb_result *r)
{
    const struct hb_spec *spec = r->spec;
    struct hb_cost cost;
    hb_cost_init(&cost, &r->program, r->device);
    double peak = hb_cost_peak_flops(&cost, hb_timed_linear_dtype(&spec->precision));
    return fmax(peak, fmax(hb_cost_peak_flops(&cost, spec->precision.compute),
                           hb_cost_peak_flops(&cost, spec->loss.dot)));
}

static double best_part(const struct hb_curve *c, double best)
{
    for (int i = 0; i < c->count; i++)
        best = fmax(best, c->y[i]);
    return best;
}

/* At which no product of this step runs faster: the peak of the fastest type that it multiplies in,
 * or what a measured profile has above it. */
static double fastest_rate(const struct hb_result *r)
{
    const struct hb_device *dev = r->device;
    double part = 1;
    for (int i = 0; i < HB_RATE_COUNT; i++)
        part = best_part(&dev->matmul_curve[i], part);
    part = best_part(&dev->attention_forward_curve, part);
    part = best_part(&dev->attention_backward_curve, part);
    part = best_part(&dev->sdpa_forward_curve, part);
    return peak_rate(r) *
           best_part(&dev->sdpa_backward_curve, best_part(&dev->grouped_curve, part));
}

static void rate_step(struct hb_result *r)
{
    const struct hb_spec *spec = r->spec;
    double tokens = (double)spec->batch.global * (double)spec->batch.seq;
    r->step_seconds = (double)r->timing.step_ns / 1e9;
    if (!(r->step_seconds > 0))
        return;
    double peak = fastest_rate(r) * r->step_seconds;
    r->tokens_per_second = tokens / r->step_seconds;
    if (peak > 0) {
        r->mfu = needed_flops(spec) / peak;
        r->hfu = r->timing.flops / peak;
    }
}

/* Of torch's steps it was found when ops were dated. */
static bool has_endless_op(const struct hb_result *r)
{
    struct hb_cost cost;
    if (r->spec->compiler == HB_TORCH)
        return r->endless;
    hb_cost_init(&cost, &r->program, r->device);
    for (uint32_t i = 0; i < r->program.op_count; i++)
        if (hb_cost_op_ns(&cost, i) == HB_COST_MAX_NS)
            return true;
    return false;
}

/* Of needed_flops: the rest are vectors, of which there are few in a row of a matrix. */
#define PRODUCTS 0.98

static bool check_time(struct hb_diag *diag, const struct hb_result *r)
{
    double fastest = fastest_rate(r);
    if (r->timing.step_ns == INT64_MAX)
        return hb_error(diag, (struct hb_loc){0}, "a step of '%s' takes more than 2^63 ns",
                        r->program.name);
    if (has_endless_op(r))
        return hb_error(diag, (struct hb_loc){0},
                        "an op of a step of '%s' takes more than 2^53 ns (104 days) on this device",
                        r->program.name);
    double least = PRODUCTS * needed_flops(r->spec);
    if (fastest > 0 && least / fastest > r->step_seconds)
        HB_BUG("a step of '%s' takes %g s, but its products take %g s at the device's peak: "
               "work of the program has got lost",
               r->program.name, r->step_seconds, least / fastest);
    return true;
}

static bool run_load(struct hb_arena *arena, struct hb_diag *diag, const struct hb_result *r,
                     int64_t processes, struct hb_load_row *out_row)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct hb_load_plan plan = hb_load_plan_make(r->spec, &r->program);
    struct hb_program program;
    struct hb_memory memory;
    if (!hb_load_program(arena, diag, &plan, r->spec->load.method, processes, &program) ||
        !hb_step_check_total(diag, &program))
        return false;
    hb_run_memory(arena, &program, &memory);
    *out_row = (struct hb_load_row){processes, memory.peak_bytes, memory.host_bytes,
                                    memory.peak_bytes <= r->budget_bytes};
    hb_arena_rewind(arena, mark);
    return true;
}

enum { MOST_LOAD_ROWS = 66 };

static bool run_loads(struct hb_arena *arena, struct hb_diag *diag, struct hb_result *r)
{
    int64_t asked = r->spec->load.processes;
    r->load_rows = hb_arena_alloc(arena, MOST_LOAD_ROWS, sizeof *r->load_rows);
    for (int64_t n = 1; n <= asked; n = hb_mul_sat(n, 2)) {
        if (!run_load(arena, diag, r, n, &r->load_rows[r->load_row_count++]))
            return false;
        if (n < asked && asked < hb_mul_sat(n, 2) &&
            !run_load(arena, diag, r, asked, &r->load_rows[r->load_row_count++]))
            return false;
    }
    r->load = r->load_rows[r->load_row_count - 1];
    return run_load(arena, diag, r, 2 * asked, &r->load_rows[r->load_row_count++]);
}

/* The program and its memory. */
static bool start_result(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         const struct hb_device *device, struct hb_result *out)
{
    *out = (struct hb_result){.spec = spec, .device = device};
    if (!hb_step_run(arena, diag, spec, &out->program, &out->memory))
        return false;
    memcpy(out->program.mesh, spec->mesh, sizeof spec->mesh);
    return true;
}

static bool end_result(struct hb_arena *arena, struct hb_diag *diag, struct hb_result *out)
{
    const struct hb_spec *spec = out->spec;
    hb_budget_make(spec, out->device, &out->budget);
    out->budget_bytes = out->budget.bytes;
    out->host_fits = out->memory.host_bytes <= out->budget.host_bytes;
    out->step_fits = out->memory.peak_bytes <= out->budget_bytes && out->host_fits;
    hb_interval_make(arena, spec, spec->plan.confidence, out->memory.peak_bytes, &out->interval);
    out->step_verdict =
        out->host_fits ? hb_interval_verdict(&out->interval, out->budget_bytes) : HB_VERDICT_NOT;
    rate_step(out);
    if (!check_time(diag, out))
        return false;
    if (spec->load.present && !run_loads(arena, diag, out))
        return false;
    bool loads = !spec->load.present || out->load.fits;
    out->fits = out->step_fits && loads;
    out->verdict = loads ? out->step_verdict : HB_VERDICT_NOT;
    return true;
}

/* The step's time is that of its own program; ops of the memory's are dated in proportion. */
static bool time_torch(struct hb_arena *arena, struct hb_diag *diag, struct hb_result *out)
{
    struct hb_program timed;
    if (!hb_timed_lower(arena, diag, out->spec, &timed))
        return false;
    memcpy(timed.mesh, out->spec->mesh, sizeof timed.mesh);
    hb_run_timing(arena, &timed, out->device, &out->timing);
    out->endless = !hb_dating_make(arena, &out->program, out->device, &out->timing);
    return true;
}

bool hb_result_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_device *device, struct hb_result *out)
{
    if (!start_result(arena, diag, spec, device, out))
        return false;
    hb_program_check(&out->program);
    if (spec->compiler != HB_TORCH)
        hb_run_timing(arena, &out->program, device, &out->timing);
    else if (!time_torch(arena, diag, out))
        return false;
    return end_result(arena, diag, out);
}

bool hb_result_brief(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_device *device, struct hb_result *out)
{
    if (!start_result(arena, diag, spec, device, out))
        return false;
    if (spec->compiler != HB_TORCH)
        out->timing.step_ns = hb_run_step_ns(arena, &out->program, device);
    else if (!time_torch(arena, diag, out))
        return false;
    return end_result(arena, diag, out);
}
