/* hbmsim import: a configuration of another program as a model.yaml, with what it understood, what
 * it assumed and what it could not express as comments on top (with --json: as keys). */
#include <inttypes.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/cmd.h"
#include "cli/head.h"
#include "models/import/import.h"
#include "models/schema.h"

struct options {
    struct hb_common common;
    const char *file;
    struct hb_words more;
};

static void write_notes(struct hb_json *j, const char *key, const struct hb_notes *notes)
{
    hb_json_key(j, key);
    hb_json_array(j);
    for (uint32_t i = 0; i < notes->count; i++)
        hb_json_text(j, notes->items[i]);
    hb_json_array_end(j);
}

static void print_json(FILE *to, struct hb_env *env, const struct hb_import *import,
                       const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, to, true);
    struct hb_head head = hb_head_of(env, spec);
    head.configuration = import->root;
    hb_json_object(&j);
    hb_head_json(&j, &head);
    hb_json_put_text(&j, "imported", import->what);
    write_notes(&j, "understood", &import->understood);
    write_notes(&j, "assumed", &import->assumed);
    write_notes(&j, "missing", &import->missing);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static void print_yaml(FILE *to, struct hb_env *env, const struct hb_import *import)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    hb_import_comment(&text, import);
    hb_str_add(&text, "\n");
    hb_yaml_write(&text, import->root);
    fputs(text.text, to);
}

/* The file as ours, sets applied; and checked, so that what is printed is one that is read. */
static bool read_import(struct hb_env *env, const struct options *o, struct hb_import *out_import,
                        struct hb_spec *out_spec)
{
    struct hb_import_source source = {.arena = env->arena,
                                      .diag = env->diag,
                                      .path = o->file,
                                      .more = o->more.items,
                                      .more_count = (int)o->more.count,
                                      .data_dir = env->data_dir};
    struct hb_node *root;
    if (!hb_import_load_given(env->arena, env->diag, &env->given, o->file, &root) ||
        !hb_import_tree(&source, root, out_import))
        return false;
    for (uint32_t i = 0; i < o->common.set.count; i++)
        if (!hb_schema_set(env->arena, env->diag, out_import->root, o->common.set.items[i]))
            return false;
    return hb_schema_from_node(env->arena, env->diag, out_import->root, env->data_dir, out_spec);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_import import;
    struct hb_spec spec;
    int status = hb_opt_parse(env, &hb_cmd_import, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!read_import(env, &o, &import, &spec))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    if (o.common.json)
        print_json(hb_out_file(out), env, &import, &spec);
    else
        print_yaml(hb_out_file(out), env, &import);
    hb_out_close(out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"FILE", 0, HB_OPT_OPERAND, NULL, "another program's configuration; '-': standard input", NULL,
     offsetof(struct options, file), 0, 0},
    {"MORE", 0, HB_OPT_OPERANDS_MAYBE, NULL,
     "what its command line adds: KEY=VALUE, further files; behind --: --arguments", NULL,
     offsetof(struct options, more), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_import = {
    .name = "import",
    .run = run,
    .summary = "a model.yaml from another program's configuration",
    .about =
        "Reads Hugging Face config.json, MaxText's yml, torchtitan's toml or config dump, the\n"
        "arguments of Megatron-LM and Megatron-Bridge, NeMo's yaml, Levanter's yml, and the\n"
        "files of a run of Hugging Face's Trainer (its arguments, accelerate's, DeepSpeed's)\n"
        "beside one another. What was understood, assumed and not expressed stands on top.\n"
        "Every command takes such a file in place of a model.yaml; `model: {import: FILE}` takes\n"
        "its model alone, `include: FILE` all that it says, as defaults.\n"
        "\n"
        "Of MaxText: remat_policy (full, none, minimal, minimal_with_context, minimal_flash,\n"
        "minimal_with_quantization, minimal_offloaded, save_dot_with_context_except_mlp,\n"
        "save_dot_except_mlpwi, save_dot_except_mlp, save_qkv_proj, save_out_proj,\n"
        "qkv_proj_offloaded, custom) is remat; num_vocab_tiling is loss.chunks; use_iota_embed is\n"
        "embedding.lookup: onehot; fsdp_transpose counts as mesh.fsdp.",
    .example = "hbmsim import examples/import/config.json",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
