/* Prints roff: see man.h. */
#include "cli/man.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/help.h"
#include "cli/json_keys.h"
#include "models/schema.h"

/* Text in which nothing means anything to roff. */
static void print_text(FILE *to, const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\\')
            fputs("\\e", to);
        else
            fputc(*text, to);
        line_start = *text == '\n';
    }
}

static void print_option(FILE *to, const struct hb_opt *row)
{
    fputs(".TP\n", to);
    if (hb_opt_is_operand(row->kind)) {
        fprintf(to, ".I %s\n", row->name);
    } else {
        fputs(".B ", to);
        if (row->letter)
            fprintf(to, "\\-%c, ", row->letter);
        fprintf(to, "\\-\\-");
        print_text(to, row->name);
        if (row->value)
            fprintf(to, " \\fI%s\\fR", row->value);
        fputc('\n', to);
    }
    print_text(to, row->help);
    if (row->fallback)
        fprintf(to, " [%s]", row->fallback);
    fputc('\n', to);
}

/* A file of the source tree is one of the reader's own where only the program is installed. */
static void print_example(struct hb_env *env, const char *text)
{
    static const char *const trees[] = {"examples/", "tests/", "models/zoo/"};
    struct hb_str out;
    hb_str_init(&out, env->arena);
    while (*text) {
        size_t len = strcspn(text, " \n");
        const char *word = hb_arena_strndup(env->arena, text, len);
        const char *slash = strrchr(word, '/');
        bool ours = false;
        for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++)
            ours = ours || hb_str_starts(word, trees[i]);
        hb_str_add(&out, ours && slash ? slash + 1 : word);
        text += len;
        if (*text)
            hb_str_addn(&out, text++, 1);
    }
    print_text(env->out, out.text);
}

static void print_command(struct hb_env *env, const struct hb_cmd *cmd)
{
    fprintf(env->out, ".SS hbmsim %s\n", cmd->name);
    print_text(env->out, cmd->summary);
    fputs(".\n", env->out);
    if (cmd->about) {
        fputs(".PP\n", env->out);
        print_text(env->out, cmd->about);
        fputc('\n', env->out);
    }
    for (const struct hb_opt *row = hb_opt_rows(env->arena, cmd); row->name; row++)
        if (row->help)
            print_option(env->out, row);
    fputs(".PP\nExample:\n.PP\n.RS\n.nf\n", env->out);
    print_example(env, cmd->example);
    fputs("\n.fi\n.RE\n", env->out);
}

static void print_input(struct hb_env *env)
{
    const char *near = NULL;
    hb_schema_help(env->out, env->arena, NULL, &near);
}

static void print_keys(struct hb_env *env)
{
    hb_json_keys_text(env->out, NULL);
}

/* A section of lines as they are, with minus signs. */
static void print_list(struct hb_env *env, const char *title, const char *about,
                       void (*print)(struct hb_env *env))
{
    fprintf(env->out, ".SH %s\n", title);
    print_text(env->out, about);
    fputs("\n.PP\n.nf\n.tr -\\-\n", env->out);
    print(env);
    fputs(".tr --\n.fi\n", env->out);
}

void hb_man_commands(struct hb_env *env)
{
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_command(env, *c);
    print_list(env, "INPUT", "A YAML or JSON file with these keys (hbmsim help model).",
               print_input);
    print_list(env, "JSON", "What commands print with --json (hbmsim help json).", print_keys);
}
