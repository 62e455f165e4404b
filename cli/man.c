/* Prints roff: see man.h. */
#include "cli/man.h"

#include "base/env.h"
#include "cli/cmd.h"
#include "cli/help.h"

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
    print_text(env->out, cmd->example);
    fputs("\n.fi\n.RE\n", env->out);
}

void hb_man_commands(struct hb_env *env)
{
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_command(env, *c);
}
