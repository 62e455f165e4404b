/* SIGINT, held back: see interrupt.h. */
#include "cli/interrupt.h"

#include <stddef.h>

#include "base/env.h"

void hb_interrupt_hold(const struct hb_env *env, sigset_t *out_before)
{
    sigset_t held;
    if (env->guest)
        return;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigprocmask(SIG_BLOCK, &held, out_before);
}

bool hb_interrupt_came(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1;
}

void hb_interrupt_release(const struct hb_env *env, const sigset_t *before)
{
    sigset_t held;
    int taken;
    if (env->guest)
        return;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    if (hb_interrupt_came())
        sigwait(&held, &taken);
    sigprocmask(SIG_SETMASK, before, NULL);
}
