/* Pictures for commands: see draw.h. */
#include "cli/draw.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "plots/picture.h"
#include "plots/term.h"

enum { PNG_SCALE = 2 };

enum hb_format hb_draw_format(const char *path)
{
    for (int i = 0; i < HB_FORMAT_NONE; i++) {
        const char *name = hb_format_name((enum hb_format)i);
        size_t len = strlen(path);
        size_t end = strlen(name);
        if (len > end && path[len - end - 1] == '.' && hb_str_ends(path, name))
            return (enum hb_format)i;
    }
    return HB_FORMAT_NONE;
}

/* A side within what can be drawn; *text moves past it. */
static bool parse_side(const char **text, double *out)
{
    char *end;
    long side = strtol(*text, &end, 10);
    bool good =
        isdigit((unsigned char)**text) && side >= HB_LOOK_MIN_SIDE && side <= HB_DRAW_MAX_SIDE;
    *text = end;
    *out = (double)side;
    return good;
}

bool hb_draw_size(struct hb_diag *diag, const char *text, struct hb_look *look)
{
    const char *at = text;
    if (!text)
        return true;
    if (parse_side(&at, &look->width) && *at++ == 'x' && parse_side(&at, &look->height) && !*at)
        return true;
    return hb_error(diag, (struct hb_loc){0},
                    "--size: '%s' where WIDTHxHEIGHT is wanted, each from %d to %d", text,
                    HB_LOOK_MIN_SIDE, HB_DRAW_MAX_SIDE);
}

bool hb_draw_check(struct hb_env *env, const struct hb_draw_options *o)
{
    struct hb_look look = {.scale = PNG_SCALE};
    if (!o->path)
        return !o->size || hb_error(env->diag, (struct hb_loc){0}, "--size is of --plot's picture");
    if (hb_draw_format(o->path) == HB_FORMAT_NONE)
        return hb_error(env->diag, (struct hb_loc){0},
                        "--plot: '%s' where a name that ends in .svg, .pdf or .png is wanted",
                        o->path);
    return hb_draw_size(env->diag, o->size, &look);
}

void hb_draw_picture(struct hb_env *env, const struct hb_picture *p,
                     const struct hb_draw_options *o)
{
    struct hb_look look = {.scale = PNG_SCALE, .theme = (enum hb_theme)o->theme};
    struct hb_str bytes;
    struct hb_out *out = hb_out_open(env, o->path);
    hb_str_init(&bytes, env->arena);
    hb_draw_size(env->diag, o->size, &look);
    hb_picture_size(p, &look);
    hb_canvas_finish(hb_picture_draw(env->arena, p, &look, hb_draw_format(o->path)), &bytes);
    fwrite(bytes.text, 1, bytes.len, hb_out_file(out));
    hb_out_close(out);
}

void hb_draw_rates(struct hb_env *env, const struct hb_device *device,
                   const struct hb_draw_options *o)
{
    struct hb_picture picture = {.kind = HB_PICTURE_RATES, .device = device};
    hb_draw_picture(env, &picture, o);
}

bool hb_draw_in_terminal(const struct hb_env *env, const char *path, struct hb_term *out)
{
    *out = (struct hb_term){env->width, env->unicode, env->colour};
    return env->out_is_terminal && (!path || strcmp(path, "-") == 0);
}
