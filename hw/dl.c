/* Run-time libraries: see dl.h. */
#include "hw/dl.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"

struct hb_dl {
    void *handle; /* null once closed */
    const char *name;
};

struct search {
    struct hb_arena *arena;
    const char *const *names;
    struct hb_str broken; /* what was there and did not load, and why */
    int broken_count;
};

/* Of a name without a folder: whether what the system said is of another file than it. */
static bool blames_another(const char *said, const char *name)
{
    return !hb_str_starts(said, name) || !strstr(said, "No such file");
}

static struct hb_dl *try_open(struct search *s, const char *folder, const char *name)
{
    const char *path = *folder ? hb_arena_printf(s->arena, "%s/%s", folder, name) : name;
    if (*folder && access(path, F_OK) != 0)
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *said = dlerror();
        if (said && (*folder || blames_another(said, name)))
            hb_str_addf(&s->broken, "%s%s is there but does not load: %s",
                        s->broken_count++ ? "; " : "", path, said);
        return NULL;
    }
    struct hb_dl *lib = hb_arena_alloc(s->arena, 1, sizeof *lib);
    *lib = (struct hb_dl){handle, name};
    return lib;
}

static struct hb_dl *try_folder(struct search *s, const char *folder)
{
    struct hb_dl *lib = NULL;
    for (int i = 0; s->names[i] && !lib; i++)
        lib = try_open(s, folder, s->names[i]);
    return lib;
}

static const char *explain(struct search *s)
{
    struct hb_str tried;
    hb_str_init(&tried, s->arena);
    for (int i = 0; s->names[i]; i++)
        hb_str_addf(&tried, "%s%s", i ? ", " : "", s->names[i]);
    return s->broken_count ? s->broken.text
                           : hb_arena_printf(s->arena, "there is no %s", tried.text);
}

struct hb_dl *hb_dl_open(struct hb_arena *arena, const char *const *folders,
                         const char *const *names, const char **out_reason)
{
    struct search s = {.arena = arena, .names = names};
    struct hb_dl *lib = NULL;
    hb_str_init(&s.broken, arena);
    for (int i = 0; folders[i] && !lib; i++)
        lib = try_folder(&s, folders[i]);
    if (!lib)
        *out_reason = explain(&s);
    return lib;
}

bool hb_dl_bind(struct hb_dl *lib, struct hb_arena *arena, const struct hb_dl_bind *table,
                void *record, const char **out_reason)
{
    for (; table->symbol; table++) {
        void *at = dlsym(lib->handle, table->symbol);
        if (!at && !table->optional) {
            *out_reason = hb_arena_printf(arena, "%s has no function %s; is its version too old?",
                                          lib->name, table->symbol);
            return false;
        }
        /* POSIX lets a function's address stand in a void pointer. */
        memcpy((char *)record + table->offset, &at, sizeof at);
    }
    return true;
}

const char *hb_dl_name(const struct hb_dl *lib)
{
    return lib->name;
}

void hb_dl_close(struct hb_dl *lib)
{
    if (lib && lib->handle)
        dlclose(lib->handle);
    if (lib)
        lib->handle = NULL;
}
