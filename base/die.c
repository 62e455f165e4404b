/* The end of the program where it cannot go on: see diag.h. The library has its own (lib/call.c),
 * which ends the call alone. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "base/utf8.h"

void hb_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("hbmsim: fatal: ", stderr);
    hb_utf8_vsay(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(3);
}

void hb_quit(void)
{
    exit(3);
}

void hb_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "hbmsim: internal fault at %s:%d: ", file, line);
    hb_utf8_vsay(stderr, fmt, ap);
    fputs("\nThis is a defect of hbmsim, not of your input: please report it with the input.\n",
          stderr);
    va_end(ap);
#ifdef NDEBUG
    exit(3);
#else
    abort();
#endif
}
