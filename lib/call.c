/* Back to the caller by a jump: see call.h. Stands in the library in the place of base/die.c. */
#include "lib/call.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "base/owned.h"

struct call {
    jmp_buf back;
    char *why;
};

/* hb_die has no argument that leads here; each thread has its own. */
static _Thread_local struct call *running;

static _Noreturn void leave(void)
{
    struct call *call = running;
    if (!call)
        abort(); /* hb_die outside of a call: there is no way back */
    hb_owned_end();
    longjmp(call->back, 1);
}

void hb_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (running)
        vsnprintf(running->why, HB_CALL_WHY, fmt, ap);
    va_end(ap);
    leave();
}

void hb_quit(void)
{
    leave();
}

void hb_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (running) {
        int used =
            snprintf(running->why, HB_CALL_WHY,
                     "internal fault at %s:%d, a defect of hbmsim, please report it: ", file, line);
        if (used > 0 && used < HB_CALL_WHY)
            vsnprintf(running->why + used, HB_CALL_WHY - (size_t)used, fmt, ap);
    }
    va_end(ap);
    leave();
}

bool hb_call(void (*work)(void *context), void *context, char out_why[HB_CALL_WHY])
{
    struct call call = {.why = out_why};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) {
        snprintf(out_why, HB_CALL_WHY, "out of memory: no locale");
        return false;
    }
    locale_t before = uselocale(plain);
    out_why[0] = '\0';
    running = &call;
    hb_owned_begin();
    bool ended = setjmp(call.back) != 0;
    if (!ended) {
        work(context);
        hb_owned_end();
    }
    running = NULL;
    uselocale(before);
    freelocale(plain);
    return !ended;
}
