/* Pictures of results for commands: `--plot FILE`, and the compact ones in a terminal. */
#ifndef HB_CLI_DRAW_H
#define HB_CLI_DRAW_H

#include <stdbool.h>

#include "plots/draw.h"

struct hb_device;
struct hb_env;
struct hb_picture;
struct hb_term;

/* The row that a command's table takes: HB_DRAW_OPTION(offsetof(struct options, plot)). */
#define HB_DRAW_OPTION(at)                                                                         \
    {                                                                                              \
        "plot", 0, HB_OPT_OUTPUT, "FILE", "draw it: a name that ends in .svg, .pdf or .png", NULL, \
            at, 0, 0                                                                               \
    }

/* The format that the ending of path asks for; HB_FORMAT_NONE: none known. */
enum hb_format hb_draw_format(const char *path);
/* For a command to say before its work that path cannot be drawn; null is fine. */
bool hb_draw_check(struct hb_env *env, const char *path);
/* Draws to path as a command's --plot; hb_draw_check has passed. */
void hb_draw_picture(struct hb_env *env, const struct hb_picture *p, const char *path);
/* The curves of a device's profile; hb_rates_any holds. */
void hb_draw_rates(struct hb_env *env, const struct hb_device *device, const char *path);
/* Whether text printed to path (null or "-": standard output) may have a picture, and of which
 * kind. */
bool hb_draw_in_terminal(const struct hb_env *env, const char *path, struct hb_term *out);

#endif
