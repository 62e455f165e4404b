/* hbmsim init: a model.yaml of one's own to start from, each line with what it says. The words are
 * the table's (models/schema_table.c); what is printed is read back before it is printed. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/out.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/cmd.h"
#include "models/schema.h"

struct options {
    struct hb_common common;
    const char *preset;
    const char *device;
    int64_t devices;
    int64_t batch;
    int64_t seq;
};

enum { COMMENT_COLUMN = 40 };

/* "  key: value" and what it means; depth in steps of two blanks. */
static void line(struct hb_str *out, int depth, const char *path, const char *value)
{
    const char *dot = strrchr(path, '.');
    const char *doc = hb_schema_doc(path);
    size_t start = out->len;
    if (!doc)
        HB_BUG("no key %s", path);
    hb_str_addf(out, "%*s%s: %s", depth * 2, "", dot ? dot + 1 : path, value);
    size_t used = out->len - start;
    hb_str_addf(out, "%*s# %s\n", used < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - used) : 1, "",
                doc);
}

/* Layers to edit: those of a model of a billion parameters. */
static void add_layers(struct hb_str *out)
{
    static const char block[] = "model.blocks[].";
    static const struct {
        const char *section, *key, *value;
    } lines[] = {
        {"attention", "heads", "32"},    {"attention", "kv_heads", "8"},
        {"attention", "head_dim", "64"}, {"attention", "kernel", "flash"},
        {"mlp", "kind", "swiglu"},       {"mlp", "d_ff", "8192"},
    };
    char path[64];
    line(out, 1, "model.name", "mine");
    line(out, 1, "model.d_model", "2048");
    line(out, 1, "model.vocab", "32000");
    line(out, 1, "model.tied_embeddings", "false");
    hb_str_add(out, "  blocks:\n    - ");
    struct hb_str first;
    hb_str_init(&first, out->arena);
    line(&first, 0, "model.blocks[].name", "dense");
    hb_str_add(out, first.text);
    line(out, 3, "model.blocks[].repeat", "16");
    line(out, 3, "model.blocks[].norm", "rmsnorm");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (i == 0 || lines[i].section != lines[i - 1].section)
            hb_str_addf(out, "      %s:\n", lines[i].section);
        snprintf(path, sizeof path, "%s%s.%s", block, lines[i].section, lines[i].key);
        line(out, 4, path, lines[i].value);
    }
}

static const char *number(struct hb_env *env, int64_t value)
{
    return hb_arena_printf(env->arena, "%" PRId64, value);
}

static void add_run(struct hb_env *env, struct hb_str *out, const struct options *o)
{
    hb_str_add(out, "batch:\n");
    if (o->batch)
        line(out, 1, "batch.global", number(env, o->batch));
    else
        line(out, 1, "batch.per_device", "1");
    line(out, 1, "batch.seq", number(env, o->seq));
    hb_str_add(out, "precision:\n");
    line(out, 1, "precision.params", "f32");
    line(out, 1, "precision.compute", "bf16");
    hb_str_add(out, "optimizer:\n");
    line(out, 1, "optimizer.name", "adamw");
    line(out, 1, "optimizer.clip", "true");
    hb_str_add(out, "mesh:\n");
    line(out, 1, "mesh.fsdp", "rest");
    line(out, 1, "mesh.tensor", "1");
    hb_str_add(out, "remat:\n");
    line(out, 1, "remat.policy", "full");
    hb_str_add(out, "loss:\n");
    line(out, 1, "loss.chunks", "1");
    hb_str_add(out, "hardware:\n");
    line(out, 1, "hardware.device", o->device);
    line(out, 1, "hardware.count", number(env, o->devices));
    hb_str_add(out, "plan:\n  search:\n");
    line(out, 2, "plan.search.mesh", "[data, fsdp, tensor]");
    line(out, 2, "plan.search.remat", "true");
    line(out, 2, "plan.search.loss_chunks", "[1, 2, 4, 8]");
}

/* Whether it reads: a preset or device that is not there is said as of a file. */
static bool reads(struct hb_env *env, const char *text)
{
    struct hb_node *root;
    struct hb_spec spec;
    return hb_yaml_parse(env->arena, env->diag, "model.yaml", text, strlen(text), &root) &&
           hb_schema_from_node(env->arena, env->diag, root, env->data_dir, &spec);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_str text;
    hb_str_init(&text, env->arena);
    int status = hb_opt_parse(env, &hb_cmd_init, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    hb_str_add(&text,
               "# yaml-language-server: $schema=model.schema.json\n"
               "# For an editor's help: hbmsim help model --json-schema > model.schema.json\n"
               "# One training step for hbmsim. `hbmsim simulate model.yaml` says whether it "
               "fits, `hbmsim plan\n# model.yaml` searches the fastest that does, `hbmsim "
               "help model` has every key.\n");
    line(&text, 0, "hbmsim", "1");
    hb_str_add(&text, "model:\n");
    if (o.preset)
        line(&text, 1, "model.preset", o.preset);
    else
        add_layers(&text);
    add_run(env, &text, &o);
    if (!reads(env, text.text))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    fputs(text.text, hb_out_file(out));
    hb_out_close(out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"preset", 0, HB_OPT_STRING, "NAME", "a model of the zoo; none: layers to edit", NULL,
     offsetof(struct options, preset), 0, 0},
    {"device", 0, HB_OPT_STRING, "NAME", "as `hbmsim devices` lists them", "nvidia-h100",
     offsetof(struct options, device), 0, 0},
    {"devices", 0, HB_OPT_INT, "N", "how many", "8", offsetof(struct options, devices), 1, 1 << 24},
    {"batch", 0, HB_OPT_INT, "N", "sequences of a step; none: one for each device", NULL,
     offsetof(struct options, batch), 1, 1 << 24},
    {"seq", 0, HB_OPT_INT, "N", "tokens of a sequence", "8192", offsetof(struct options, seq), 1,
     1 << 24},
    {0},
};

const struct hb_cmd hb_cmd_init = {
    .name = "init",
    .run = run,
    .summary = "a commented model.yaml to start from",
    .about =
        "Asks nothing. Prints a configuration that simulates and plans as it is, each line with\n"
        "what it says; `-o model.yaml` writes it.",
    .example = "hbmsim init --preset llama3-8b --device h100 --devices 16",
    .options = options,
    .common = HB_COMMON_OUTPUT,
};
