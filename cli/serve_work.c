/* The works of the page: see serve_work.h. */
#include "cli/serve_work.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/pickle.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/input.h"
#include "cli/plan_emit.h"
#include "cli/serve_gate.h"
#include "cli/serve_view.h"
#include "models/import/import.h"
#include "models/schema.h"
#include "sim/engine/result.h"

/* Where the body is read from again. */
#define BODY "/dev/stdin"

enum { MOST_WORDS = 24 };

static const char *value_of(const struct hb_work *work, const char *key, const char *absent)
{
    for (int i = 0; i < work->count; i++)
        if (hb_str_same(work->keys[i], key) && work->values[i])
            return work->values[i];
    return absent;
}

/* A command of the program by its words, the first of them its name. */
static int run_command(struct hb_env *env, const struct hb_cmd *cmd, const char *const *words)
{
    char *argv[MOST_WORDS + 1] = {0};
    int argc = 0;
    for (; argc < MOST_WORDS && words[argc]; argc++)
        argv[argc] = hb_arena_strdup(env->arena, words[argc]);
    return cmd->run(env, argc, argv);
}

/* The body's tree; it can be read again from its start. */
static bool load_body(struct hb_env *env, struct hb_node **out_root)
{
    bool read = hb_import_load(env->arena, env->diag, "-", out_root);
    return lseek(STDIN_FILENO, 0, SEEK_SET) == 0 && read;
}

static bool read_config(struct hb_env *env, struct hb_spec *spec, struct hb_device *device)
{
    struct hb_words none = {0};
    return hb_input_read(env, "-", &none, spec, device);
}

static int simulate(struct hb_env *env, const struct hb_work *work)
{
    struct hb_spec spec;
    struct hb_device device;
    struct hb_result result;
    (void)work;
    if (!read_config(env, &spec, &device) ||
        !hb_result_run(env->arena, env->diag, &spec, &device, &result))
        return HB_EXIT_INPUT;
    hb_view_write(env, env->out, &result);
    return result.verdict == HB_VERDICT_NOT ? HB_EXIT_NO : HB_EXIT_YES;
}

static int sweep(struct hb_env *env, const struct hb_work *work)
{
    const char *x = value_of(work, "x", "");
    const char *y = value_of(work, "y", "");
    if (!hb_gate_axis(env->diag, x) || !hb_gate_axis(env->diag, y))
        return HB_EXIT_INPUT;
    const char *const words[] = {"sweep", "-", "--lines", "--x", x, "--y", y, NULL};
    return run_command(env, &hb_cmd_sweep, words);
}

static int advise(struct hb_env *env, const struct hb_work *work)
{
    static const char *const words[] = {"advise", "-", "--json", NULL};
    (void)work;
    return run_command(env, &hb_cmd_advise, words);
}

static int plan(struct hb_env *env, const struct hb_work *work)
{
    const char *const words[] = {"plan",        "-",
                                 "--json",      "--full",
                                 "--seconds",   value_of(work, "seconds", "60"),
                                 "--objective", value_of(work, "objective", "tokens_per_second"),
                                 NULL};
    return run_command(env, &hb_cmd_plan, words);
}

/* A file without a name that holds a tree; its path for who opens it. */
static const char *keep_tree(struct hb_env *env, const struct hb_node *tree)
{
    FILE *file = tmpfile();
    struct hb_str text;
    if (!file)
        hb_die("no temporary file");
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, file, false);
    hb_json_node(&j, tree);
    hb_json_end(&j);
    fflush(file);
    rewind(file);
    return hb_arena_printf(env->arena, "/dev/fd/%d", fileno(file));
}

/* The body holds both: {"a": ..., "b": ...}. */
static int compare(struct hb_env *env, const struct hb_work *work)
{
    struct hb_node *root;
    if (!load_body(env, &root))
        return HB_EXIT_INPUT;
    const struct hb_node *a = hb_node_find(root, "a");
    const struct hb_node *b = hb_node_find(root, "b");
    if (!a || !b) {
        hb_error(env->diag, root->loc, "'a' and 'b' are wanted");
        return HB_EXIT_INPUT;
    }
    if (!hb_gate_config(env->diag, a, work->device) || !hb_gate_config(env->diag, b, work->device))
        return HB_EXIT_INPUT;
    const char *const words[] = {"compare", keep_tree(env, a), keep_tree(env, b), "--json", NULL};
    return run_command(env, &hb_cmd_compare, words);
}

/* The configuration as a file of ours, or as settings of another program. */
static int emit(struct hb_env *env, const struct hb_work *work)
{
    static const char *const names[] = {"maxtext", "levanter", "yaml", "torchtitan", "megatron"};
    const char *what = value_of(work, "what", "yaml");
    struct hb_spec spec;
    struct hb_device device;
    if (!read_config(env, &spec, &device))
        return HB_EXIT_INPUT;
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (hb_str_same(what, names[i])) {
            hb_plan_emit_print(env, env->out, (enum hb_emit)i, &spec, NULL, &device);
            return HB_EXIT_YES;
        }
    hb_error(env->diag, (struct hb_loc){0}, "what: '%.40s' is no program's settings", what);
    return HB_EXIT_INPUT;
}

static int report(struct hb_env *env, const struct hb_work *work)
{
    const char *const words[] = {"report", "-", "--seconds", value_of(work, "seconds", "10"), NULL};
    return run_command(env, &hb_cmd_report, words);
}

/* Of a result, not of a configuration: no engine is asked. */
static int picture(struct hb_env *env, const struct hb_work *work)
{
    const char *const words[] = {"plot",     "-",
                                 "--kind",   value_of(work, "kind", "timeline"),
                                 "--format", value_of(work, "format", "svg"),
                                 "--theme",  value_of(work, "theme", "light"),
                                 "--size",   value_of(work, "size", "960x560"),
                                 NULL};
    return run_command(env, &hb_cmd_plot, words);
}

/* ---- what is dropped on the page */

static int read_hlo(struct hb_env *env)
{
    static const char *const words[] = {"hlo", "-", NULL};
    fputs("text hlo\n", env->out);
    return run_command(env, &hb_cmd_hlo, words);
}

static int read_log(struct hb_env *env)
{
    static const char *const words[] = {"explain", BODY, NULL};
    fputs("text explain\n", env->out);
    return run_command(env, &hb_cmd_explain, words);
}

/* A model.yaml of ours goes into the form as it stands; another program's as import makes it. */
static int take_config(struct hb_env *env, const struct hb_work *work, const struct hb_node *root)
{
    static const char *const words[] = {"import", "-", "--json", NULL};
    if (hb_import_is_foreign(root)) {
        fputs("config import\n", env->out);
        return run_command(env, &hb_cmd_import, words);
    }
    if (!hb_gate_config(env->diag, root, work->device))
        return HB_EXIT_INPUT;
    struct hb_str text;
    hb_str_init(&text, env->arena);
    fputs("config file\n", env->out);
    struct hb_json j = hb_json_begin(&text, env->out, false);
    hb_json_object(&j);
    hb_json_key(&j, "configuration");
    hb_json_node(&j, root);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return HB_EXIT_YES;
}

static bool is_ours(const struct hb_node *root)
{
    return hb_node_find(root, "hbmsim") || hb_node_find(root, "model") ||
           hb_node_find(root, "hardware");
}

/* Told by what it holds, never by its name. */
static int read_dropped(struct hb_env *env, const struct hb_work *work)
{
    struct hb_diag quiet, *loud = env->diag;
    struct hb_node *root = NULL;
    char start[4096] = "";
    size_t len = hb_file_start(BODY, start, sizeof start - 1);
    start[len] = '\0';
    if (hb_pickle_is(start, len))
        return read_log(env);
    if (strstr(start, "HloModule") || memcmp(start, "\x1f\x8b", 2) == 0) /* gzip */
        return read_hlo(env);
    hb_diag_init(&quiet, env->arena);
    env->diag = &quiet;
    bool tree = load_body(env, &root) && root->kind == HB_NODE_MAP;
    env->diag = loud;
    if (tree && (hb_import_is_foreign(root) || is_ours(root)))
        return take_config(env, work, root);
    return read_log(env);
}

/* ---- the table */

#define SMALL ((size_t)1 << 20)
#define LARGE ((size_t)256 << 20)

static const struct entry {
    const char *name;
    int (*run)(struct hb_env *env, const struct hb_work *work);
    size_t most_bytes;
    bool config; /* the body is a configuration */
} entries[] = {
    {"simulate", simulate, SMALL, true},
    {"sweep", sweep, SMALL, true},
    {"advise", advise, SMALL, true},
    {"plan", plan, SMALL, true},
    {"emit", emit, SMALL, true},
    {"report", report, SMALL, true},
    {"compare", compare, 2 * SMALL, false},
    {"picture", picture, 32 * SMALL, false},
    {"read", read_dropped, LARGE, false},
};

static const struct entry *find_entry(const char *name)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (hb_str_same(entries[i].name, name))
            return &entries[i];
    return NULL;
}

size_t hb_work_most_bytes(const char *name)
{
    const struct entry *entry = find_entry(name);
    return entry ? entry->most_bytes : 0;
}

int hb_work_run(struct hb_env *env, const struct hb_work *work)
{
    const struct entry *entry = find_entry(work->name);
    struct hb_node *root;
    if (entry->config && (!load_body(env, &root) || !hb_gate_config(env->diag, root, work->device)))
        return HB_EXIT_INPUT;
    return entry->run(env, work);
}
