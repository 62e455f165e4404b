/* hbmsim plot: any result's JSON as a picture. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "plots/picture.h"

struct options {
    struct hb_common common;
    struct hb_words files;
    int kind;
    int format;
    int theme;
    const char *size;
    double scale;
    const char *font;
    const char *layout;
    bool text;
};

static enum hb_format find_format(const struct options *o)
{
    if (o->format >= 0)
        return (enum hb_format)o->format;
    return hb_draw_format(o->common.output ? o->common.output : "-");
}

static bool load_json(struct hb_env *env, const char *path, const struct hb_node **out)
{
    struct hb_text text;
    const char *reason;
    struct hb_node *root;
    struct hb_loc start = {path, 1, 1};
    if (env->given.name)
        text = (struct hb_text){env->given.text, env->given.len};
    else if (!hb_file_load(env->arena, path, HB_FILE_MAX_BYTES, &text, &reason))
        return hb_error(env->diag, (struct hb_loc){0}, "%s %s", path, reason);
    if (!hb_json_parse(env->arena, env->diag, start, text.text, text.len, &root))
        return false;
    *out = root;
    return true;
}

static const char *base_name(struct hb_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return hb_str_ends(name, ".json") ? hb_arena_strndup(arena, name, strlen(name) - 5) : name;
}

static bool read_picture(struct hb_env *env, const struct options *o, struct hb_picture *out)
{
    uint32_t count = o->files.count;
    struct hb_picture_input *inputs = hb_arena_alloc(env->arena, count, sizeof *inputs);
    for (uint32_t i = 0; i < count; i++) {
        if (!load_json(env, o->files.items[i], &inputs[i].json))
            return false;
        inputs[i].name = base_name(env->arena, o->files.items[i]);
    }
    enum hb_picture_kind kind = o->kind < 0 ? HB_PICTURE_COUNT : (enum hb_picture_kind)o->kind;
    return hb_picture_read(env->arena, env->diag, inputs, count, kind, out);
}

static void write_layout(struct hb_env *env, const struct hb_canvas *c, const char *path)
{
    struct hb_str text;
    struct hb_out *out = hb_out_open(env, path);
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, hb_out_file(out), true);
    hb_canvas_write_layout(c, &j);
    hb_json_end(&j);
    hb_out_close(out);
}

static int draw_picture(struct hb_env *env, const struct options *o, const struct hb_look *look,
                        const struct hb_picture *p)
{
    enum hb_format format = find_format(o);
    struct hb_str bytes;
    struct hb_out *out = hb_out_open(env, o->common.output);
    hb_str_init(&bytes, env->arena);
    struct hb_canvas *c = hb_picture_draw(env->arena, p, look, format);
    hb_canvas_finish(c, &bytes);
    fwrite(bytes.text, 1, bytes.len, hb_out_file(out));
    hb_out_close(out);
    if (o->layout)
        write_layout(env, c, o->layout);
    return HB_EXIT_YES;
}

static int run(struct hb_env *env, int argc, char **argv);

#define HB_ENUM(name, text) "|" text
static const char kinds[] = HB_PICTURES(HB_ENUM);
#undef HB_ENUM

static const struct hb_opt options[] = {
    {"FILE.json", 0, HB_OPT_OPERANDS, NULL, "results as JSON; several of simulate are compared",
     NULL, offsetof(struct options, files), 0, 0},
    {"kind", 0, HB_OPT_CHOICE, &kinds[1], "which picture, where a result has several", NULL,
     offsetof(struct options, kind), 0, 0},
    {"format", 0, HB_OPT_CHOICE, "svg|pdf|png", "default: by the ending of the output's name", NULL,
     offsetof(struct options, format), 0, 0},
    {"theme", 0, HB_OPT_CHOICE, "light|dark", "colours for a light or a dark page", "light",
     offsetof(struct options, theme), 0, 0},
    {"size", 0, HB_OPT_STRING, "WIDTHxHEIGHT", "of the page, in pixels (PDF: points)", NULL,
     offsetof(struct options, size), 0, 0},
    {"scale", 0, HB_OPT_DOUBLE, "FACTOR", "PNG: pixels for each of the page's", "2",
     offsetof(struct options, scale), 0, 0},
    {"font", 0, HB_OPT_STRING, "FAMILY", "tried first", HB_DRAW_FONT,
     offsetof(struct options, font), 0, 0},
    {"text", 0, HB_OPT_FLAG, NULL, "SVG: text as text, in the reader's font; smaller", NULL,
     offsetof(struct options, text), 0, 0},
    {"layout", 0, HB_OPT_OUTPUT, "FILE", "also write where every label, cell and point stands",
     NULL, offsetof(struct options, layout), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_plot = {
    .name = "plot",
    .run = run,
    .summary = "draws any result's JSON as svg, pdf or png",
    .about =
        "Reads the JSON of simulate, sweep, plan, advise, validate or hlo and draws the picture\n"
        "that belongs to it: timeline or breakdown, fit map, Pareto front, levers, scatter,\n"
        "address map.",
    .example =
        "hbmsim plot examples/pictures/full.json examples/pictures/none.json -o breakdown.svg",
    .options = options,
    .common = HB_COMMON_OUTPUT,
};

static bool check_scale(struct hb_diag *diag, const struct hb_look *look, enum hb_format format)
{
    struct hb_loc nowhere = {0};
    if (format == HB_FORMAT_NONE)
        return hb_error(diag, nowhere,
                        "no format: end the output's name in .svg, .pdf or .png, or say --format");
    if (!(look->scale >= 0.1 && look->scale <= 16))
        return hb_error(diag, nowhere, "--scale: from 0.1 to 16");
    double side = look->width > look->height ? look->width : look->height;
    if (format == HB_FORMAT_PNG && side * look->scale > HB_DRAW_MAX_SIDE)
        return hb_error(diag, nowhere, "an image's side has at most %d pixels", HB_DRAW_MAX_SIDE);
    return true;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_picture picture;
    int status = hb_opt_parse(env, &hb_cmd_plot, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    struct hb_look look = {
        .theme = (enum hb_theme)o.theme, .scale = o.scale, .font = o.font, .live_text = o.text};
    if (!hb_draw_size(env->diag, o.size, &look) || !read_picture(env, &o, &picture))
        return HB_EXIT_INPUT;
    hb_picture_size(&picture, &look);
    if (!check_scale(env->diag, &look, find_format(&o)))
        return HB_EXIT_INPUT;
    return draw_picture(env, &o, &look, &picture);
}
