/* Prose in a terminal. */
#ifndef HB_CLI_WRAP_H
#define HB_CLI_WRAP_H

#include <stdio.h>

struct hb_env;

/* Prints text broken at blanks, so that lines stay within the terminal and within 100 columns, each
 * behind indent spaces. */
void hb_wrap_print(const struct hb_env *env, FILE *out, const char *text, int indent);

#endif
