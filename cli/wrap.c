/* See wrap.h. */
#include "cli/wrap.h"

#include <string.h>

#include "base/env.h"

void hb_wrap_print(const struct hb_env *env, FILE *out, const char *text, int indent)
{
    int width = env->width > 100 ? 100 : env->width;
    int column = 0;
    while (*text) {
        int len = (int)strcspn(text, " ");
        if (column && column + 1 + len > width) {
            fputc('\n', out);
            column = 0;
        }
        if (column)
            fputc(' ', out);
        else
            fprintf(out, "%*s", indent, "");
        column += column ? len + 1 : indent + len;
        fprintf(out, "%.*s", len, text);
        text += len;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}
