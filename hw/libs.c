/* Folders with libraries: see libs.h. Wheels: NVIDIA's lie in nvidia/NAME/lib (nvidia/cu13/lib
 * since CUDA 13), PyTorch's ROCm wheels keep theirs in torch/lib, AMD's in _rocm_sdk_NAME/lib. */
#include "hw/libs.h"

#include <glob.h>
#include <string.h>

#include "base/arena.h"
#include "base/child.h"
#include "base/str.h"

enum { MOST_ANSWER = 1 << 16, MOST_FOLDERS = 256 };
static const int64_t most_ns = 10000000000;

/* Asked of the user's Python, since only it knows its search path and its environment. */
static const char question[] =
    "import glob, os, sys\n"
    "for p in sys.path:\n"
    "    for w in ('nvidia/*/lib', 'torch/lib', '_rocm_sdk_*/lib', 'rocm*/lib'):\n"
    "        for d in sorted(glob.glob(os.path.join(glob.escape(p), w))) if p else ():\n"
    "            print(os.path.abspath(d))\n"
    "roots = [os.environ.get(v) for v in\n"
    "         ('CONDA_PREFIX', 'CUDA_HOME', 'CUDA_PATH', 'ROCM_PATH', 'ROCM_HOME')]\n"
    "if os.path.isdir(os.path.join(sys.prefix, 'conda-meta')):\n"
    "    roots.append(sys.prefix)\n"
    "for r in roots:\n"
    "    for w in ('lib', 'lib64', 'targets/x86_64-linux/lib', 'targets/sbsa-linux/lib'):\n"
    "        if r and os.path.isdir(os.path.join(r, w)):\n"
    "            print(os.path.join(os.path.abspath(r), w))\n";

static const char *const system_places[] = {
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/lib", "/usr/local/cuda*/targets/*/lib",
    "/opt/cuda/lib64",        "/opt/rocm*/lib",
};

struct found {
    struct hb_arena *arena;
    const char **items;
    uint32_t count, cap;
};

static void add(struct found *f, const char *folder)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (hb_str_same(f->items[i], folder))
            return;
    if (f->count == MOST_FOLDERS)
        return;
    f->items = hb_grow(f->arena, f->items, f->count, &f->cap, sizeof *f->items);
    f->items[f->count++] = hb_arena_strdup(f->arena, folder);
}

static const char *const *ended(struct found *f)
{
    f->items = hb_grow(f->arena, f->items, f->count, &f->cap, sizeof *f->items);
    f->items[f->count] = NULL;
    return f->items;
}

/* One line of the answer: an absolute path, or nothing. */
static bool is_folder_name(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return false;
    return *text == '/';
}

static void ask_python(struct found *f, const struct hb_libs_ask *ask, int *out_signal)
{
    const char *const argv[] = {ask->python, "-c", question, NULL};
    struct hb_child_ask run = {
        .argv = argv, .most_ns = most_ns, .most_bytes = MOST_ANSWER, .now_ns = ask->now_ns};
    struct hb_child child;
    hb_child_run(f->arena, &run, &child);
    if (child.end == HB_CHILD_INTERRUPTED)
        *out_signal = child.status;
    if (child.end != HB_CHILD_DONE || child.status != 0)
        return; /* without a Python that answers there are no wheels */
    for (const char *at = child.out.text; *at;) {
        size_t len = strcspn(at, "\n");
        const char *line = hb_arena_strndup(f->arena, at, len);
        if (is_folder_name(line))
            add(f, line);
        at += len + (at[len] == '\n');
    }
}

static void look_in_system(struct found *f, const char *root)
{
    for (size_t i = 0; i < sizeof system_places / sizeof system_places[0]; i++) {
        glob_t there;
        const char *pattern = hb_arena_printf(f->arena, "%s%s", root, system_places[i]);
        if (glob(pattern, 0, NULL, &there) == 0) {
            for (size_t k = 0; k < there.gl_pathc; k++)
                add(f, there.gl_pathv[k]);
            globfree(&there);
        }
    }
}

void hb_libs_find(struct hb_arena *arena, const struct hb_libs_ask *ask, struct hb_libs *out)
{
    struct found given = {.arena = arena};
    struct found all = {.arena = arena};
    out->signal = 0;
    for (uint32_t i = 0; i < ask->given_count; i++) {
        add(&given, ask->given[i]);
        add(&all, ask->given[i]);
    }
    if (!ask->given_count) {
        if (ask->python)
            ask_python(&all, ask, &out->signal);
        look_in_system(&all, ask->root);
        add(&all, "");
    }
    add(&given, "");
    out->given = ended(&given);
    out->folders = ended(&all);
}
