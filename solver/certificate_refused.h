/* Of certificates: numbers of the variants of a node, and what of a space is refused. */
#ifndef HB_SOLVER_CERTIFICATE_REFUSED_H
#define HB_SOLVER_CERTIFICATE_REFUSED_H

#include "solver/plan.h"

struct hb_json;
struct hb_str;

/* Places, forms, outer counts (of nested scans) and chunks, the last ones fastest. */
struct hb_variants {
    struct hb_variant {
        enum hb_place place;
        enum hb_form form;
        int64_t outer;
        int64_t chunks;
    } * list;
    uint32_t count;
};

void hb_variants_make(struct hb_arena *arena, const struct hb_spec *base, struct hb_variants *out);
uint32_t hb_variants_find(const struct hb_variants *v, const struct hb_cell *cell);
/* "0-3,7" and then 8: "0-3,7-8". Numbers rise. */
void hb_ranges_add(struct hb_str *text, uint32_t number);
/* "reasons", and "refused": for a mesh, by numbers in the product of batch, accumulation and
 * microbatches, those that hb_schema_check refuses for a reason; with "cells" only these variants
 * of them. What the batch's own division says is left out. */
void hb_refused_put(struct hb_arena *arena, struct hb_json *j, const struct hb_plan_ask *ask,
                    const struct hb_plan *plan, const struct hb_variants *variants);

#endif
