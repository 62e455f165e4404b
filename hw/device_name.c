/* What a device is called: its name in the database, short names, and what is near a wrong one. */
#include "hw/device.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"

bool hb_device_is_path(const char *name)
{
    return strchr(name, '/') || hb_str_ends(name, ".yaml");
}

/* Short names that are not a name of the database less its vendor. */
static const struct {
    const char *alias;
    const char *name;
} aliases[] = {
    {"a100", "nvidia-a100-80gb"}, {"h100-sxm", "nvidia-h100"}, {"4090", "nvidia-rtx4090"},
    {"5090", "nvidia-rtx5090"},   {"v5litepod", "tpu-v5e"},    {"v5lite", "tpu-v5e"},
    {"trillium", "tpu-v6e"},      {"ironwood", "tpu-v7"},      {"v7x", "tpu-v7"},
};
enum { ALIASES = sizeof aliases / sizeof aliases[0], MOST_NAMES = 256 };

/* "h100" of "nvidia-h100". */
static const char *short_name(const char *name)
{
    const char *dash = strchr(name, '-');
    return dash ? dash + 1 : name;
}

/* The listed name that one word stands for, or null. */
static const char *meant_by(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (hb_str_same(names[i], word))
            return names[i];
    for (int i = 0; names[i]; i++)
        if (hb_str_same(short_name(names[i]), word))
            return names[i];
    for (int i = 0; i < ALIASES; i++)
        if (hb_str_same(aliases[i].alias, word))
            return aliases[i].name;
    return NULL;
}

/* As its profile is named: what sweeps ask of each cell, without a list of all. */
static bool is_whole(struct hb_arena *arena, const char *data_dir, const char *word)
{
    return word[0] && word[0] != '.' && !strchr(word, '/') &&
           hb_file_regular(hb_arena_printf(arena, "%s/hw/db/%s.yaml", data_dir, word));
}

const char *hb_device_resolve(struct hb_arena *arena, const char *data_dir, const char *name,
                              const char **out_near)
{
    char *word = hb_arena_strdup(arena, name);
    for (char *c = word; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    *out_near = NULL;
    if (is_whole(arena, data_dir, word))
        return word;
    const char *const *names = hb_device_list(arena, data_dir, NULL);
    const char *found = names[0] ? meant_by(names, word) : name;
    if (found)
        return found;
    const char *words[2 * MOST_NAMES + ALIASES + 1];
    int count = 0;
    for (int i = 0; i < MOST_NAMES && names[i]; i++)
        words[count++] = names[i];
    for (int i = 0; i < MOST_NAMES && names[i]; i++)
        words[count++] = short_name(names[i]);
    for (int i = 0; i < ALIASES; i++)
        words[count++] = aliases[i].alias;
    words[count] = NULL;
    const char *near = hb_str_nearest(word, words);
    *out_near = near ? meant_by(names, near) : NULL;
    return NULL;
}
