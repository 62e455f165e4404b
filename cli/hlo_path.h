/* Which text `hbmsim hlo` reads, where a dump's folder or a proto is named. */
#ifndef HB_CLI_HLO_PATH_H
#define HB_CLI_HLO_PATH_H

#include <stdbool.h>

struct hb_env;

/* A folder: the text of the module after optimizations that has module (or its number of the
 * file's name) in its name, else the largest, which is told. A .pb: the text beside it. Else as
 * given. False: an error says which flag of XLA writes the text. */
bool hb_hlo_path(struct hb_env *env, const char *given, const char *module, const char **out_path);

#endif
