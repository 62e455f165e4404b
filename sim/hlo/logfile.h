/* A log on the disk, plain or gzip, or standard input, read by hb_log_read. */
#ifndef HB_SIM_HLO_LOGFILE_H
#define HB_SIM_HLO_LOGFILE_H

#include <stdbool.h>

#include "base/diag.h"
#include "sim/hlo/log.h"

struct hb_arena;

/* path "-": standard input. False: it cannot be read, the error is in diag. */
bool hb_logfile_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                     struct hb_log *out_log);

#endif
