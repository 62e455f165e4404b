/* Pictures of results for commands: `--plot FILE`, and the compact ones in a terminal. */
#ifndef HB_CLI_DRAW_H
#define HB_CLI_DRAW_H

#include <stdbool.h>
#include <stddef.h>

#include "plots/draw.h"

struct hb_device;
struct hb_diag;
struct hb_env;
struct hb_look;
struct hb_picture;
struct hb_term;

/* What a command's options say of its picture. */
struct hb_draw_options {
    const char *path; /* null: none is asked for */
    int theme;
    const char *size;
};

/* The rows that a command's table takes: HB_DRAW_OPTIONS(offsetof(struct options, plot)). */
#define HB_DRAW_OPTIONS(at)                                                                        \
    {"plot",                                                                                       \
     0,                                                                                            \
     HB_OPT_OUTPUT,                                                                                \
     "FILE",                                                                                       \
     "draw it: a name that ends in .svg, .pdf or .png",                                            \
     NULL,                                                                                         \
     (at) + offsetof(struct hb_draw_options, path),                                                \
     0,                                                                                            \
     0},                                                                                           \
        {"theme",                                                                                  \
         0,                                                                                        \
         HB_OPT_CHOICE,                                                                            \
         "light|dark",                                                                             \
         "of the picture: for a light or a dark page",                                             \
         "light",                                                                                  \
         (at) + offsetof(struct hb_draw_options, theme),                                           \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "size", 0, HB_OPT_STRING, "WIDTHxHEIGHT", "of the picture, in pixels (PDF: points)", NULL, \
            (at) + offsetof(struct hb_draw_options, size), 0, 0                                    \
    }

/* The format that the ending of path asks for; HB_FORMAT_NONE: none known. */
enum hb_format hb_draw_format(const char *path);
/* For a command to say before its work that it cannot be drawn so; no path is fine. */
bool hb_draw_check(struct hb_env *env, const struct hb_draw_options *o);
/* "900x560" into look; null is fine. */
bool hb_draw_size(struct hb_diag *diag, const char *text, struct hb_look *look);
/* Draws as a command's options say; hb_draw_check has passed, and there is a path. */
void hb_draw_picture(struct hb_env *env, const struct hb_picture *p,
                     const struct hb_draw_options *o);
/* The curves of a device's profile; hb_rates_any holds. */
void hb_draw_rates(struct hb_env *env, const struct hb_device *device,
                   const struct hb_draw_options *o);
/* Whether text printed to path (null or "-": standard output) may have a picture, and of which
 * kind. */
bool hb_draw_in_terminal(const struct hb_env *env, const char *path, struct hb_term *out);

#endif
