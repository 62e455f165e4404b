/* The certificate of a search: the space by its values, what of it is refused and why, each cell
 * with what it was put aside by and the terms of that bound (proof.h), the policies that were
 * searched, and all that the engine ran. examples/verify/check_certificate.py, which shares no code
 * with the search, enumerates the space again, computes each bound again from its terms, and says
 * what it takes on trust.
 *
 * Cells that differ in chunks, form and place only stand together as a node; those of them of which
 * the same is said are one row, by their numbers in the product of places, forms, outer counts and
 * chunks. So the file grows with the nodes (about 400 bytes each) and the runs (about 100), not
 * with the cells; what is refused is told once for a mesh where the words are the same. */
#ifndef HB_SOLVER_CERTIFICATE_H
#define HB_SOLVER_CERTIFICATE_H

#include <stdio.h>

#include "solver/nearly.h"
#include "solver/plan.h"

enum { HB_CERTIFICATE_FORM = 2 };

/* Of a search with ask.keep_runs. taken: what is printed in place of the fastest, one of the runs;
 * or null. */
void hb_certificate_write(struct hb_env *env, FILE *out, const struct hb_plan_ask *ask,
                          const struct hb_plan *plan, const struct hb_roomier *taken);

#endif
