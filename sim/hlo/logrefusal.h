/* Whether a sentence says that memory was refused or that a process was ended for it, and whether
 * the memory was the host's. i is a word of the sentence: what is asked is whether it says so. */
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
/* "signal 9", "SIGKILL", "exit code 137", "OOMKilled": whoever ended the process, it was the
 * memory that a host or a container gives in all but few cases. */
bool hb_refusal_is_kill(const struct hb_sentence *l, int i);
/* Whether it is about the host's memory: by name, or in the words that the C library and the C++
 * library have for it. */
bool hb_refusal_is_of_host(const struct hb_sentence *l);

#endif
