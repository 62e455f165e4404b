/* A line of progress: see progress.h. */
#include "base/progress.h"

#include <stdio.h>

#include "base/env.h"
#include "base/size.h"

enum { FIRST_NS = 500000000, EVERY_NS = 100000000 };

void hb_progress_start(struct hb_progress *p, struct hb_env *env, const char *what, int64_t total)
{
    *p = (struct hb_progress){.env = env, .what = what, .total = total};
    if (!env->err_is_terminal)
        return;
    p->start_ns = env->now_ns();
    p->next_ns = p->start_ns + FIRST_NS;
}

static void print_line(const struct hb_progress *p, int64_t done, int64_t now_ns)
{
    char text[HB_SIZE_TEXT];
    double per_s = (double)done / ((double)(now_ns - p->start_ns) / 1e9);
    fprintf(p->env->err, "\r\033[K%s: %lld", p->what, (long long)done);
    if (p->total > 0)
        fprintf(p->env->err, " of %lld", (long long)p->total);
    fprintf(p->env->err, ", %s/s", hb_count_print(per_s, text));
    if (p->total > done && done > 0) {
        double left_s = (double)(p->total - done) / per_s;
        int64_t left_ns = left_s < 1e9 ? (int64_t)(left_s * 1e9) : INT64_MAX;
        fprintf(p->env->err, ", %s left", hb_time_print(left_ns, text));
    }
    fflush(p->env->err);
}

void hb_progress_at(struct hb_progress *p, int64_t done)
{
    if (!p->env->err_is_terminal)
        return;
    int64_t now_ns = p->env->now_ns();
    if (now_ns < p->next_ns)
        return;
    print_line(p, done, now_ns);
    p->shown = true;
    p->next_ns = now_ns + EVERY_NS;
}

void hb_progress_end(struct hb_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", p->env->err);
    p->shown = false;
}
