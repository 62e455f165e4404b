/* Inside the story: what its tellers share. Only story*.c include this. */
#ifndef HB_SIM_HLO_TELLER_H
#define HB_SIM_HLO_TELLER_H

#include "sim/hlo/advice.h"
#include "sim/hlo/cause.h"
#include "sim/hlo/story.h"

/* A quarter of the largest devices: what JAX's pool leaves to others. */
#define HB_TELLER_POOL_BYTES ((int64_t)16 << 30)

struct teller {
    struct hb_arena *arena;
    const struct hb_log *log;
    struct hb_story *story;
    struct hb_advice *advice;
};

/* "48.16 GiB" in the arena. */
const char *hb_teller_size(const struct teller *t, int64_t bytes);
const char *hb_teller_text(const struct teller *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void hb_teller_note(const struct teller *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A part of the breakdown, unless bytes is not known or 0. */
void hb_teller_part(const struct teller *t, const char *name, int64_t bytes, bool inside);
/* For the advice: what holds, and how much a knob frees at most. */
void hb_teller_trait(const struct teller *t, bool holds, enum hb_trait trait);
void hb_teller_frees(const struct teller *t, enum hb_knob knob, int64_t bytes);
/* The groups of the message's list, largest first. */
void hb_teller_groups(const struct teller *t, enum hb_log_kind kind);
/* wanted, available, over: the last is the difference where it is -1. */
void hb_teller_figures(const struct teller *t, int64_t wanted, int64_t available, int64_t over);
void hb_teller_cause(const struct teller *t, enum hb_cause cause, const char *because);
/* The cause, and the sentence that says why, from what the figures are. */
enum hb_reason hb_teller_decide(const struct teller *t, const struct hb_ledger *ledger);
int64_t hb_teller_fact(const struct teller *t, enum hb_log_fact fact);
/* part of whole in percent, 0 where either is unknown. */
int hb_teller_percent(int64_t part, int64_t whole);

/* Whether anything in the log is of training. */
bool hb_teller_trains(const struct teller *t);
/* Whether the program makes text and trains nothing, as far as the log tells. */
bool hb_teller_generates(const struct teller *t);
/* Whether the log leaves open which of the two it does. */
bool hb_teller_is_open(const struct teller *t);
/* Whether the step has one sequence at a time, as far as the log tells. */
bool hb_teller_is_least(const struct teller *t);
/* Whether it loads a model's weights and trains nothing. */
bool hb_teller_loads(const struct teller *t);
/* Whether it failed in the optimizer's step, as far as the log tells. */
bool hb_teller_updates(const struct teller *t);

void hb_tell_tpu(const struct teller *t);
void hb_tell_tpu_runtime(const struct teller *t);
void hb_tell_tuner(const struct teller *t);
void hb_tell_xla(const struct teller *t);
void hb_tell_remat(const struct teller *t);
void hb_tell_totals(const struct teller *t);
void hb_tell_stats(const struct teller *t);
void hb_tell_torch(const struct teller *t);
void hb_tell_torch_stats(const struct teller *t);
void hb_tell_small(const struct teller *t);
void hb_tell_serve(const struct teller *t);
void hb_tell_host(const struct teller *t);
void hb_tell_refusal(const struct teller *t);

#endif
