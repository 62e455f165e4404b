/* MaxText's words for what a layer keeps: its policies (remat_policy) and the tensors that
 * `custom` names. One table for import, emit and help. */
#ifndef HB_MODELS_MAXTEXT_H
#define HB_MODELS_MAXTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

/* A tensor that `custom` gives device, offload or remat; 0: it has no name here. In layers with
 * experts some keys stand for other tensors. */
struct hb_maxtext_tensor {
    const char *key;
    uint32_t dense;
    uint32_t experts;
};
enum { HB_MAXTEXT_TENSORS = 23 };
extern const struct hb_maxtext_tensor hb_maxtext_tensors[HB_MAXTEXT_TENSORS];

/* What a policy other than `custom` keeps. Keys of tensors, ended by null. */
struct hb_maxtext_policy {
    const char *name;
    enum hb_policy policy;
    const char *const *save;
    const char *const *offload;
};
enum { HB_MAXTEXT_POLICIES = 13 };
extern const struct hb_maxtext_policy hb_maxtext_policies[HB_MAXTEXT_POLICIES];

/* Null: there is none of this name. */
const struct hb_maxtext_policy *hb_maxtext_policy(const char *name);
/* The tensors of some keys in layers with or without experts (both: some are dense). */
uint32_t hb_maxtext_mask(const char *const *keys, bool dense, bool experts);
/* The tensors that a layer of MaxText's can have at all. */
uint32_t hb_maxtext_has(const struct hb_block *block);
/* The policy that keeps just what this block's does, or null. */
const struct hb_maxtext_policy *hb_maxtext_policy_of(const struct hb_block *block);

#endif
