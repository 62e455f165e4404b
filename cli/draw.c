/* Pictures for commands: see draw.h. */
#include "cli/draw.h"

#include <stdio.h>
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

bool hb_draw_check(struct hb_env *env, const char *path)
{
    return !path || hb_draw_format(path) != HB_FORMAT_NONE ||
           hb_error(env->diag, (struct hb_loc){0},
                    "--plot: '%s' where a name that ends in .svg, .pdf or .png is wanted", path);
}

void hb_draw_picture(struct hb_env *env, const struct hb_picture *p, const char *path)
{
    struct hb_look look = {.scale = PNG_SCALE};
    struct hb_str bytes;
    struct hb_out *out = hb_out_open(env, path);
    hb_str_init(&bytes, env->arena);
    hb_picture_size(p, &look);
    hb_canvas_finish(hb_picture_draw(env->arena, p, &look, hb_draw_format(path)), &bytes);
    fwrite(bytes.text, 1, bytes.len, hb_out_file(out));
    hb_out_close(out);
}

void hb_draw_rates(struct hb_env *env, const struct hb_device *device, const char *path)
{
    struct hb_picture picture = {.kind = HB_PICTURE_RATES, .device = device};
    hb_draw_picture(env, &picture, path);
}

bool hb_draw_in_terminal(const struct hb_env *env, const char *path, struct hb_term *out)
{
    *out = (struct hb_term){env->width, env->unicode, env->colour};
    return env->out_is_terminal && (!path || strcmp(path, "-") == 0);
}
