/* hbmsim models: the cards of the model zoo, with what is counted from them. */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/head.h"
#include "models/params.h"
#include "models/schema.h"

struct options {
    struct hb_common common;
    struct hb_words names;
};

/* A card that was read. */
struct card {
    const char *name;
    const char *path;
    struct hb_model model;
    struct hb_params params;
};

/* A name of the zoo in its spelling; otherwise an error. */
static bool check_name(struct hb_env *env, const char *name, const char *const *known)
{
    for (const char *const *k = known; *k; k++)
        if (hb_str_same(*k, name))
            return true;
    const char *near = hb_str_nearest(name, known);
    if (near)
        return hb_error(env->diag, (struct hb_loc){0},
                        "the zoo has no model '%s'; did you mean '%s'?", name, near);
    return hb_error(env->diag, (struct hb_loc){0},
                    "the zoo has no model '%s'; 'hbmsim models' lists them", name);
}

static bool read_card(struct hb_env *env, const char *name, struct card *card)
{
    struct hb_spec spec;
    struct hb_node *root = hb_node_new(env->arena, HB_NODE_MAP, (struct hb_loc){0});
    const char *set = hb_arena_printf(env->arena, "model.preset=%s", name);
    if (!hb_schema_set(env->arena, env->diag, root, set) ||
        !hb_schema_from_node(env->arena, env->diag, root, env->data_dir, &spec))
        return false;
    card->name = name;
    card->path = hb_arena_printf(env->arena, "%s/models/zoo/%s.yaml", env->data_dir, name);
    card->model = spec.model;
    hb_params_count(&spec, &card->params);
    return true;
}

/* A configuration, or another program's, instead of a name. */
static bool is_file(const char *name)
{
    static const char *const ends[] = {".yaml", ".yml", ".json", ".toml", ".sh"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (hb_str_ends(name, ends[i]))
            return true;
    return strchr(name, '/') != NULL || hb_str_same(name, "-");
}

static bool read_file(struct hb_env *env, const char *path, struct card *card)
{
    struct hb_spec spec;
    struct hb_schema_source source = {
        .arena = env->arena, .diag = env->diag, .path = path, .data_dir = env->data_dir};
    if (!hb_schema_read(&source, &spec))
        return false;
    card->name = spec.model.name;
    card->path = path;
    card->model = spec.model;
    hb_params_count(&spec, &card->params);
    return true;
}

static int64_t count_layers(const struct hb_model *model)
{
    int64_t layers = 0;
    for (int i = 0; i < model->block_count; i++)
        layers += model->blocks[i].repeat;
    return layers;
}

static int64_t most_experts(const struct hb_model *model, int64_t *out_top_k)
{
    int64_t experts = 0;
    *out_top_k = 0;
    for (int i = 0; i < model->block_count; i++) {
        if (model->blocks[i].moe.experts <= experts)
            continue;
        experts = model->blocks[i].moe.experts;
        *out_top_k = model->blocks[i].moe.top_k;
    }
    return experts;
}

static void print_list(FILE *to, struct hb_arena *arena, const struct card *cards, uint32_t count)
{
    fprintf(to, "%-24s %10s %10s %7s %8s %8s  %s\n", "model", "parameters", "active", "layers",
            "d_model", "vocab", "experts");
    for (uint32_t i = 0; i < count; i++) {
        const struct card *c = &cards[i];
        char total[HB_SIZE_TEXT];
        char active[HB_SIZE_TEXT];
        int64_t top_k;
        int64_t experts = most_experts(&c->model, &top_k);
        fprintf(
            to, "%-24s %10s %10s %7lld %8lld %8lld  %s\n", c->name,
            hb_count_print((double)c->params.total, total),
            hb_count_print((double)c->params.active, active), (long long)count_layers(&c->model),
            (long long)c->model.d_model, (long long)c->model.vocab,
            experts ? hb_arena_printf(arena, "%lld of %lld", (long long)top_k, (long long)experts)
                    : "-");
    }
    fputs("\nWrite `model: {preset: NAME}`. 'hbmsim models NAME' has the layers and the "
          "source.\n",
          to);
}

static void print_attention(FILE *to, const struct hb_attention *a)
{
    switch (a->kind) {
    case HB_ATTN_GQA:
        fprintf(to, "%lld heads of %lld, %lld of keys and values", (long long)a->heads,
                (long long)a->head_dim, (long long)a->kv_heads);
        break;
    case HB_ATTN_MLA:
        fprintf(to, "%lld latent heads, rank %lld", (long long)a->heads,
                (long long)a->kv_lora_rank);
        break;
    case HB_ATTN_NONE:
        fputs("none", to);
        break;
    }
    for (int i = 0; i < a->window_count; i++)
        if (a->window_count > 1 || a->windows[i])
            fprintf(to, "%s%lld", i ? ", " : "; window ", (long long)a->windows[i]);
}

static void print_block(FILE *to, const struct hb_block *b)
{
    fprintf(to, "%5lld x %s\n          attention: ", (long long)b->repeat, b->name);
    print_attention(to, &b->attention);
    if (b->moe.experts)
        fprintf(to, "\n          experts: %lld of %lld, each %lld wide; shared %lld\n",
                (long long)b->moe.top_k, (long long)b->moe.experts, (long long)b->moe.d_ff,
                (long long)b->moe.shared_d_ff);
    else
        fprintf(to, "\n          MLP: %lld wide\n", (long long)b->mlp.d_ff);
}

static const struct {
    const char *name;
    const char *key;
    size_t offset;
} parts[] = {
    {"embedding", "embedding", offsetof(struct hb_params, embedding)},
    {"unembedding", "head", offsetof(struct hb_params, head)},
    {"attention", "attention", offsetof(struct hb_params, attention)},
    {"MLP, shared experts", "mlp", offsetof(struct hb_params, mlp)},
    {"experts", "experts", offsetof(struct hb_params, experts)},
    {"router", "router", offsetof(struct hb_params, router)},
    {"norms", "norm", offsetof(struct hb_params, norm)},
    {"multi-token prediction", "mtp", offsetof(struct hb_params, mtp)},
};

static int64_t part_count(const struct hb_params *params, size_t offset)
{
    return *(const int64_t *)(const void *)((const char *)params + offset);
}

static void explain_card(FILE *to, const struct card *c)
{
    fprintf(to, "%s: %lld parameters, %lld active; d_model %lld, vocabulary %lld%s\n", c->name,
            (long long)c->params.total, (long long)c->params.active, (long long)c->model.d_model,
            (long long)c->model.vocab, c->model.tied_embeddings ? ", tied embeddings" : "");
    for (int i = 0; i < c->model.block_count; i++)
        print_block(to, &c->model.blocks[i]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int64_t count = part_count(&c->params, parts[i].offset);
        if (count)
            fprintf(to, "  %-24s %18lld\n", parts[i].name, (long long)count);
    }
    fprintf(to, "card and source: %s\n", c->path);
}

static void print_text(FILE *to, struct hb_arena *arena, const struct card *cards, uint32_t count,
                       bool all)
{
    if (all)
        print_list(to, arena, cards, count);
    for (uint32_t i = 0; !all && i < count; i++) {
        if (i)
            fputc('\n', to);
        explain_card(to, &cards[i]);
    }
}

static void write_card(struct hb_json *j, const struct card *c)
{
    int64_t top_k;
    int64_t experts = most_experts(&c->model, &top_k);
    hb_json_object(j);
    hb_json_put_text(j, "name", c->name);
    hb_json_put_int(j, "parameters", c->params.total);
    hb_json_put_int(j, "active_parameters", c->params.active);
    hb_json_put_int(j, "layers", count_layers(&c->model));
    hb_json_put_int(j, "d_model", c->model.d_model);
    hb_json_put_int(j, "vocab", c->model.vocab);
    hb_json_put_int(j, "experts", experts);
    hb_json_put_int(j, "top_k", top_k);
    hb_json_key(j, "parts");
    hb_json_object(j);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hb_json_put_int(j, parts[i].key, part_count(&c->params, parts[i].offset));
    hb_json_object_end(j);
    hb_json_object_end(j);
}

static void print_json(FILE *to, const struct hb_env *env, const struct card *cards, uint32_t count)
{
    struct hb_str text;
    struct hb_head head = {.name = count == 1 ? cards[0].name : NULL, .version = env->version};
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, to, true);
    hb_json_object(&j);
    hb_head_json(&j, &head);
    hb_json_key(&j, "models");
    hb_json_array(&j);
    for (uint32_t i = 0; i < count; i++)
        write_card(&j, &cards[i]);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

/* The cards that were asked for, all where none was; null after an error. */
static struct card *read_cards(struct hb_env *env, const struct hb_words *names,
                               uint32_t *out_count)
{
    const char *folder = hb_arena_printf(env->arena, "%s/models/zoo", env->data_dir);
    const char *const *known = hb_file_list(env->arena, folder, ".yaml");
    if (!*known)
        hb_die("no model zoo in %s; HBMSIM_DATA can name another place", folder);
    const char *const *items = names->count ? names->items : known;
    uint32_t count = names->count;
    while (!names->count && items[count])
        count++;
    struct card *cards = hb_arena_alloc(env->arena, count, sizeof *cards);
    bool ok = true;
    for (uint32_t i = 0; i < count; i++)
        ok &= is_file(items[i])
                  ? read_file(env, items[i], &cards[i])
                  : check_name(env, items[i], known) && read_card(env, items[i], &cards[i]);
    *out_count = count;
    return ok ? cards : NULL;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_models, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    uint32_t count;
    const struct card *cards = read_cards(env, &o.names, &count);
    if (!cards)
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    if (o.common.json)
        print_json(hb_out_file(out), env, cards, count);
    else
        print_text(hb_out_file(out), env->arena, cards, count, !o.names.count);
    hb_out_close(out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"NAME", 0, HB_OPT_OPERANDS_MAYBE, NULL,
     "a model of the zoo, or a file whose model is counted; none: the whole list", NULL,
     offsetof(struct options, names), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_models = {
    .name = "models",
    .run = run,
    .summary = "the model zoo: published models for `model: {preset: NAME}`",
    .about = "Parameters are counted from the card, as every other figure is; each card names the\n"
             "published configuration that it comes from.",
    .example = "hbmsim models deepseek-v3",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT,
};
