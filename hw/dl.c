/* Run-time libraries: see dl.h. */
#include "hw/dl.h"

#include <dlfcn.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

struct hb_dl {
    void *handle; /* null once closed */
    const char *name;
};

static void *try_open(struct hb_arena *arena, const char *folder, const char *name,
                      const char **out_said)
{
    const char *path = folder ? hb_arena_printf(arena, "%s/%s", folder, name) : name;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *said = handle ? NULL : dlerror();
    /* That a file is not there says less than why one that is there does not load. */
    if (said && (!**out_said || !strstr(said, "No such file")))
        *out_said = hb_arena_strdup(arena, said);
    return handle;
}

struct hb_dl *hb_dl_open(struct hb_arena *arena, const char *folder, const char *const *names,
                         const char **out_reason)
{
    struct hb_str tried;
    const char *said = "";
    hb_str_init(&tried, arena);
    for (int i = 0; names[i]; i++)
        hb_str_addf(&tried, "%s%s", i ? ", " : "", names[i]);
    for (int in_folder = folder != NULL; in_folder >= 0; in_folder--)
        for (int i = 0; names[i]; i++) {
            void *handle = try_open(arena, in_folder ? folder : NULL, names[i], &said);
            if (handle) {
                struct hb_dl *lib = hb_arena_alloc(arena, 1, sizeof *lib);
                *lib = (struct hb_dl){handle, names[i]};
                return lib;
            }
        }
    *out_reason = hb_arena_printf(arena, "none of %s can be loaded (%s)", tried.text, said);
    return NULL;
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
