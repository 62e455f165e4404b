/* The arguments of a command line out of a shell script, or out of a plain list: a map from
 * "--name" to its value ("true" where it has none, a list where it has several). Assignments of the
 * script stand in for $NAME and ${NAME}; what is no argument is passed over. */
#ifndef HB_MODELS_IMPORT_ARGS_H
#define HB_MODELS_IMPORT_ARGS_H

#include <stddef.h>

#include "base/node.h"

struct hb_arena;

/* Whether text is such a list rather than YAML or TOML. */
bool hb_args_look(const char *text);
/* False: it holds more words than any configuration; an error says so. */
bool hb_args_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root);

#endif
