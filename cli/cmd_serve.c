/* hbmsim serve: what if, on a local page. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/serve_http.h"
#include "hw/device.h"
#include "models/import/import.h"
#include "models/schema.h"

struct options {
    struct hb_common common;
    const char *model;
    int64_t port;
};

/* The configuration as it is written, so that what is not written stays a default of the form; one
 * that is put together of several files, or another program's, as it is read. */
static bool load_config(struct hb_env *env, const struct options *o, struct hb_node **out_root)
{
    struct hb_schema_source source = {.arena = env->arena,
                                      .diag = env->diag,
                                      .path = o->model,
                                      .sets = o->common.set.items,
                                      .set_count = (int)o->common.set.count,
                                      .data_dir = env->data_dir};
    struct hb_node *root;
    if (!hb_import_load(env->arena, env->diag, o->model, &root))
        return false;
    if (hb_import_is_foreign(root) || hb_node_find(root, "include") ||
        hb_node_find(hb_node_find(root, "model"), "import"))
        return hb_schema_load(&source, out_root);
    if (root->kind != HB_NODE_MAP)
        return hb_error(env->diag, root->loc, "%s stands where a map of keys is wanted",
                        hb_node_show(env->arena, root));
    for (uint32_t i = 0; i < o->common.set.count; i++)
        if (!hb_schema_set(env->arena, env->diag, root, o->common.set.items[i]))
            return false;
    *out_root = root;
    return true;
}

/* Where none is named: something to begin with. */
static struct hb_node *first_config(struct hb_env *env, const struct options *o)
{
    static const char *const sets[] = {"model.preset=llama3-8b", "hardware.device=nvidia-h100",
                                       "mesh.fsdp=8", "batch.global=16", "batch.seq=8192"};
    struct hb_node *root = hb_node_new(env->arena, HB_NODE_MAP, (struct hb_loc){0});
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        hb_schema_set(env->arena, env->diag, root, sets[i]);
    for (uint32_t i = 0; i < o->common.set.count; i++)
        hb_schema_set(env->arena, env->diag, root, o->common.set.items[i]);
    return root;
}

static void put_names(struct hb_json *j, const char *key, const char *const *names)
{
    hb_json_key(j, key);
    hb_json_array(j);
    for (; *names; names++)
        hb_json_text(j, *names);
    hb_json_array_end(j);
}

static const char *start_text(struct hb_env *env, const struct hb_node *config)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_object(&j);
    hb_json_put_text(&j, "version", env->version);
    hb_json_key(&j, "configuration");
    hb_json_node(&j, config);
    put_names(&j, "presets",
              hb_file_list(env->arena, hb_arena_printf(env->arena, "%s/models/zoo", env->data_dir),
                           ".yaml"));
    put_names(&j, "devices", hb_device_list(env->arena, env->data_dir, NULL));
    hb_json_key(&j, "schema");
    hb_schema_form(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return text.text;
}

/* Nobody guesses it. */
static bool make_token(struct hb_env *env, char *out)
{
    unsigned char random[HB_SERVE_TOKEN / 2] = {0};
    int fd = open("/dev/urandom", O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, random, sizeof random);
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(out + 2 * i, 3, "%02x", random[i]);
    return got == (ssize_t)sizeof random ||
           hb_error(env->diag, (struct hb_loc){0}, "/dev/urandom cannot be read");
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_node *config;
    struct hb_serve serve = {.env = env};
    int status = hb_opt_parse(env, &hb_cmd_serve, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_serve_built()) {
        fputs("hbmsim serve: this program was built without libmicrohttpd: install it (Debian: "
              "libmicrohttpd-dev) and build again\n",
              env->err);
        return HB_EXIT_MACHINE;
    }
    if (o.model && !load_config(env, &o, &config))
        return HB_EXIT_INPUT;
    if (!o.model)
        config = first_config(env, &o);
    if (env->diag->errors || !make_token(env, serve.token))
        return HB_EXIT_INPUT;
    const struct hb_node *device = hb_node_find(hb_node_find(config, "hardware"), "device");
    serve.port = o.port;
    serve.start = start_text(env, config);
    if (device && device->kind == HB_NODE_SCALAR && hb_device_is_path(device->text))
        serve.device = device->text;
    return hb_serve_run(&serve) ? HB_EXIT_YES : HB_EXIT_INPUT;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND_MAYBE, NULL,
     "what the page begins with; - is standard input; default: an 8B model on 8 devices", NULL,
     offsetof(struct options, model), 0, 0},
    {"port", 0, HB_OPT_INT, "N", "of this machine's own address, 127.0.0.1; 0: any that is free",
     "0", offsetof(struct options, port), 0, 65535},
    {0},
};

const struct hb_cmd hb_cmd_serve = {
    .name = "serve",
    .run = run,
    .summary = "a local page to turn keys on and see at once what fits",
    .about =
        "Prints an address on this machine and serves a page there until Ctrl-C: a form of all\n"
        "keys, and for each change the verdict, what stands at the peak, the timeline and the\n"
        "step's time; a fit map, levers, plan, comparison; other programs' files, logs and dumps\n"
        "are read where they are dropped on it. Only this machine can reach it, and only who\n"
        "has the address. It reads no file but the one that is named here.",
    .example = "hbmsim serve examples/quickstart/model.yaml",
    .options = options,
    .common = HB_COMMON_SET,
};
