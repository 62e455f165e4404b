/* A list for each thread: see owned.h. */
#include "base/owned.h"

#include <stddef.h>

struct list {
    struct hb_owned *newest;
    bool open;
};

/* The one thing that changes and is no argument: hb_die has none, and a thread has its own. */
static _Thread_local struct list list;

void hb_own(struct hb_owned *owned, void (*drop)(void *what), void *what)
{
    *owned = (struct hb_owned){
        .drop = drop, .what = what, .older = list.newest, .newer = NULL, .kept = list.open};
    if (!list.open)
        return;
    if (list.newest)
        list.newest->newer = owned;
    list.newest = owned;
}

void hb_disown(struct hb_owned *owned)
{
    if (!owned->kept)
        return;
    owned->kept = false;
    if (owned->older)
        owned->older->newer = owned->newer;
    if (owned->newer)
        owned->newer->older = owned->older;
    else
        list.newest = owned->older;
}

void hb_owned_begin(void)
{
    list = (struct list){.open = true};
}

void hb_owned_end(void)
{
    while (list.newest) {
        struct hb_owned *last = list.newest;
        hb_disown(last);
        last->drop(last->what);
    }
    list.open = false;
}
