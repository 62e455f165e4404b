/* hbmsim models: the cards of the model zoo, by name. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"

struct options {
    struct hb_common common;
};

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct hb_words list_zoo(struct hb_env *env)
{
    static const char suffix[] = ".yaml";
    struct hb_words names = {0};
    const char *path = hb_arena_printf(env->arena, "%s/models/zoo", env->data_dir);
    DIR *dir = opendir(path);
    if (!dir)
        hb_die("cannot read the model zoo in %s; HBMSIM_DATA can name another place", path);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (hb_str_ends(entry->d_name, suffix))
            hb_words_add(&names, env->arena,
                         hb_arena_strndup(env->arena, entry->d_name,
                                          strlen(entry->d_name) - strlen(suffix)));
    closedir(dir);
    if (names.count)
        qsort(names.items, names.count, sizeof *names.items, compare_words);
    return names;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_models, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    struct hb_words names = list_zoo(env);
    struct hb_out *out = hb_out_open(env, o.common.output);
    for (uint32_t i = 0; i < names.count; i++)
        fprintf(hb_out_file(out), "%s\n", names.items[i]);
    hb_out_close(out);
    return HB_EXIT_YES;
}

const struct hb_cmd hb_cmd_models = {
    .name = "models",
    .run = run,
    .summary = "the model zoo: names for `model: {preset: NAME}`",
    .example = "hbmsim models",
    .common = HB_COMMON_OUTPUT,
};
