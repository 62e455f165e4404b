/* See hlo_path.h. XLA names the files of a dump module_NNNN.NAME.STAGE.txt, and a proto's
 * module_NNNN.NAME.STAGE.hlo.pb. */
#include "cli/hlo_path.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"

static const char *const endings[] = {"after_optimizations.txt", "after_optimizations.txt.gz"};
static const char flag[] = "XLA_FLAGS=\"--xla_dump_to=DIR --xla_dump_hlo_as_text\"";

/* What a folder was searched for, and what of it is best. */
struct search {
    struct hb_env *env;
    const char *folder, *module;
    const char *path;
    int64_t bytes; /* of it */
    int count;     /* of modules */
};

static void look_at(struct search *s, const char *name)
{
    struct stat about;
    const char *path = hb_arena_printf(s->env->arena, "%s/%s", s->folder, name);
    s->count++;
    if ((s->module && !strstr(name, s->module)) || stat(path, &about) != 0 ||
        about.st_size <= s->bytes)
        return;
    s->path = path;
    s->bytes = about.st_size;
}

static bool search_folder(struct search *s)
{
    struct hb_arena *arena = s->env->arena;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        for (const char *const *n = hb_file_list(arena, s->folder, endings[i]); *n; n++)
            look_at(s, hb_arena_printf(arena, "%s%s", *n, endings[i]));
    if (s->path && !s->module && s->count > 1)
        hb_utf8_say(s->env->err,
                    "hbmsim hlo: %s: the largest of %d modules; --module chooses another\n",
                    s->path, s->count);
    if (s->path)
        return true;
    if (s->count)
        return hb_error(s->env->diag, (struct hb_loc){.file = s->folder},
                        "none of %d modules has '%s' in its name", s->count, s->module);
    return hb_error(s->env->diag, (struct hb_loc){.file = s->folder},
                    "no *after_optimizations.txt in this folder; %s writes them", flag);
}

bool hb_hlo_path(struct hb_env *env, const char *given, const char *module, const char **out_path)
{
    static const char proto[] = ".hlo.pb", text[] = ".txt";
    struct stat about;
    struct search s = {.env = env, .folder = given, .module = module};
    *out_path = given;
    if (strcmp(given, "-") == 0)
        return true;
    if (stat(given, &about) == 0 && S_ISDIR(about.st_mode)) {
        bool found = search_folder(&s);
        *out_path = s.path;
        return found;
    }
    if (!hb_str_ends(given, ".pb"))
        return true;
    size_t len = strlen(given) - strlen(hb_str_ends(given, proto) ? proto : ".pb");
    *out_path = hb_arena_printf(env->arena, "%.*s%s", (int)len, given, text);
    return access(*out_path, R_OK) == 0 ||
           hb_error(env->diag, (struct hb_loc){.file = given},
                    "is a proto, and its text is not beside it; %s writes it", flag);
}
