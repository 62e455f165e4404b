/* Whether a sentence says that memory was refused, and whether that was the host's; that a process
 * was ended for it says logkill.h. i is a word of it: what is asked is whether that says so. */
#ifndef HB_SIM_HLO_LOGREFUSAL_H
#define HB_SIM_HLO_LOGREFUSAL_H

#include "sim/hlo/logsentence.h"

bool hb_refusal_is(const struct hb_sentence *l, int i);
/* "out of [GPU] memory", "CUDAout of memory", "outofmemory" */
bool hb_refusal_is_out_of(const struct hb_sentence *l, int i);
/* "OOM" */
bool hb_refusal_is_oom(const struct hb_sentence *l, int i);
/* "leaves no GPU memory for the cache", "there is no memory left" */
bool hb_refusal_is_none_left(const struct hb_sentence *l, int i);
/* "alloc size : 301990400 is more than total mem size", "greater than the maximum buffer size" */
bool hb_refusal_is_more_than(const struct hb_sentence *l, int i);
/* "uses too much shared data", of a kernel */
bool hb_refusal_is_too_much(const struct hb_sentence *l);
/* What takes such a word back: == "OOMKilled", in code */
bool hb_refusal_is_compared(const struct hb_sentence *l, int i);
/* "get_oomKill_arrayindex(...)", in code */
bool hb_refusal_is_called(const struct hb_sentence *l, int i);
/* "zero high, max, OOM or OOM-kill events", "without OOM" */
bool hb_refusal_is_none(const struct hb_sentence *l, int i);
/* "the status OOMKilled never occurs" */
bool hb_refusal_is_never(const struct hb_sentence *l, int i);
/* "`Error`, not `OOMKilled`", "wasn't reported as OOMKilled" */
bool hb_refusal_is_denied(const struct hb_sentence *l, int i);
/* Whether it is about the host's memory: by name, or in the words that the C library and the C++
 * library have for it. */
bool hb_refusal_is_of_host(const struct hb_sentence *l);
/* "CPU memory keeps growing", "loading takes 100 GB of RAM": what fills the host's memory, of which
 * it is not said that it ran out. */
bool hb_refusal_fills_host(const struct hb_sentence *l);
/* Whether the host's memory is named, and be it how much there is. */
bool hb_refusal_names_host(const struct hb_sentence *l);
/* "The RAM usage goes up until it crashes": what came of that; -1: nothing. */
int hb_refusal_host_crash(const struct hb_sentence *l);

#endif
