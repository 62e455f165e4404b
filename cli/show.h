/* Results for people and programs: what simulate prints, and plan of its prediction. Each function
 * writes to a FILE; nothing here decides anything. */
#ifndef HB_CLI_SHOW_H
#define HB_CLI_SHOW_H

#include <stdio.h>

#include "base/json_write.h"
#include "cli/head.h"
#include "sim/engine/result.h"
#include "sim/graph/step.h"

struct hb_env;

/* The whole answer as text: verdict, peak, categories, largest tensors, time by stream, loading. */
void hb_show_text(const struct hb_env *env, FILE *out, const struct hb_result *r);
/* Bytes at the peak by category, as the key "categories". */
void hb_show_categories_json(struct hb_json *j, const struct hb_memory *m);
/* As one JSON object, with the keys that `hbmsim simulate --json` promises; full: with the curve
 * over time and the places of buffers (plots/outcome.h); orders: null where not asked for; head:
 * null within another result, which has one. */
void hb_show_json(struct hb_json *j, struct hb_arena *arena, const struct hb_result *r, bool full,
                  const struct hb_step_orders *orders, const struct hb_head *head);
/* What XLA's three orders would need (simulate --orders): a table; the same as a key of an open
 * object. */
void hb_show_orders(FILE *out, const struct hb_step_orders *o);
void hb_show_orders_json(struct hb_json *j, const struct hb_step_orders *o);

/* Tensors whose name has this text in it: whether and why each is alive at the peak, and which
 * rule made it. False, with an error that names the nearest, where there is none. */
bool hb_show_explain(const struct hb_env *env, FILE *out, const struct hb_result *r,
                     const char *text);

/* Diffable lists, one line an item. */
void hb_show_graph(FILE *out, const struct hb_result *r);
void hb_show_buffers(FILE *out, const struct hb_result *r);
void hb_show_heap(FILE *out, struct hb_arena *arena, const struct hb_result *r);
void hb_show_events(FILE *out, struct hb_arena *arena, const struct hb_result *r);
/* The ops and what flows between them, for Graphviz. */
void hb_show_dot(FILE *out, struct hb_arena *arena, const struct hb_result *r);
/* A Chrome trace (chrome://tracing, ui.perfetto.dev): streams as threads, live bytes by category
 * as a counter. */
void hb_show_trace(FILE *out, struct hb_arena *arena, const struct hb_result *r);

/* "backward, op 231 of 400: dW of mlp.down, in every trip of loop 'dense' (32)". */
const char *hb_show_place(struct hb_arena *arena, const struct hb_program *p, int32_t op);
/* "bf16[32,1,8192,4096]"; "" where the shape is not known. */
const char *hb_show_shape(struct hb_arena *arena, const struct hb_buf *buf);

#endif
