/* What a memory snapshot of PyTorch tells, for people and programs. */
#ifndef HB_CLI_SHOW_SNAPSHOT_H
#define HB_CLI_SHOW_SNAPSHOT_H

#include <stdio.h>

#include "sim/hlo/snapshot.h"

struct hb_env;

void hb_show_snapshot_text(struct hb_env *env, FILE *out, const struct hb_snapshot *s);
void hb_show_snapshot_json(struct hb_env *env, FILE *out, const char *file,
                           const struct hb_snapshot *s);

#endif
