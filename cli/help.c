/* Prints the command tables for people: see help.h. */
#include "cli/help.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "cli/cmd.h"

static const struct hb_cmd *const commands[] = {
#define HB_COMMAND(name) &hb_cmd_##name,
    HB_COMMANDS(HB_COMMAND)
#undef HB_COMMAND
        NULL,
};

const struct hb_cmd *const *hb_help_commands(void)
{
    return commands;
}

const struct hb_cmd *hb_help_find(const char *name)
{
    for (const struct hb_cmd *const *c = commands; *c; c++)
        if (hb_str_same((*c)->name, name))
            return *c;
    return NULL;
}

void hb_help_unknown(struct hb_env *env, const char *name, const char *section)
{
    struct hb_words names = {0};
    for (const struct hb_cmd *const *c = commands; *c; c++)
        hb_words_add(&names, env->arena, (*c)->name);
    if (section)
        hb_words_add(&names, env->arena, section);
    hb_words_add(&names, env->arena, NULL);
    const char *near = hb_str_nearest(name, names.items);
    if (near)
        hb_error(env->diag, (struct hb_loc){0}, "there is no command '%s'; did you mean '%s'?",
                 name, near);
    else
        hb_error(env->diag, (struct hb_loc){0},
                 "there is no command '%s'; 'hbmsim help' lists them", name);
}

void hb_help_overview(FILE *to)
{
    fputs("usage: hbmsim COMMAND [OPTIONS] FILE...\n\n"
          "Says before the run whether one training step of a large model fits the memory of\n"
          "its devices, what stands at the peak, and how long the step takes.\n\n"
          "commands:\n",
          to);
    for (const struct hb_cmd *const *c = commands; *c; c++)
        fprintf(to, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fputs("\n'hbmsim COMMAND --help' has the options of a command and an example.\n"
          "'hbmsim help model' describes the input file. 'hbmsim --version' names the version.\n\n"
          "exit status: 0 done, it fits; 1 the answer is no; 2 bad usage or input; 3 the machine\n"
          "failed, or an internal fault.\n",
          to);
}

/* "-o, --output FILE" */
static const char *print_form(struct hb_arena *arena, const struct hb_opt *row)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    if (row->letter)
        hb_str_addf(&s, "-%c, ", row->letter);
    hb_str_addf(&s, "--%s", row->name);
    if (row->value)
        hb_str_addf(&s, " %s", row->value);
    return s.text;
}

static void print_usage(FILE *to, const struct hb_cmd *cmd, const struct hb_opt *rows)
{
    fprintf(to, "usage: hbmsim %s [OPTIONS]", cmd->name);
    for (; rows->name; rows++) {
        if (!hb_opt_is_operand(rows->kind))
            continue;
        bool maybe = rows->kind == HB_OPT_OPERAND_MAYBE || rows->kind == HB_OPT_OPERANDS_MAYBE;
        bool many = rows->kind == HB_OPT_OPERANDS || rows->kind == HB_OPT_OPERANDS_MAYBE;
        fprintf(to, maybe ? " [%s%s]" : " %s%s", rows->name, many ? "..." : "");
    }
    fputc('\n', to);
}

enum { FORM_WIDTH = 24 };

static void print_row(FILE *to, const char *form, const struct hb_opt *row)
{
    fprintf(to, "  %-*s ", FORM_WIDTH, form);
    if (strlen(form) > FORM_WIDTH)
        fprintf(to, "\n  %-*s ", FORM_WIDTH, "");
    fputs(row->help, to);
    if (row->fallback)
        fprintf(to, " [%s]", row->fallback);
    fputc('\n', to);
}

void hb_help_command(struct hb_env *env, const struct hb_cmd *cmd)
{
    const struct hb_opt *rows = hb_opt_rows(env->arena, cmd);
    print_usage(env->out, cmd, rows);
    fprintf(env->out, "\n%s.\n", cmd->summary);
    if (cmd->about)
        fprintf(env->out, "\n%s\n", cmd->about);
    fputc('\n', env->out);
    for (const struct hb_opt *row = rows; row->name; row++)
        if (hb_opt_is_operand(row->kind))
            print_row(env->out, row->name, row);
    for (const struct hb_opt *row = rows; row->name; row++)
        if (row->help && !hb_opt_is_operand(row->kind))
            print_row(env->out, print_form(env->arena, row), row);
    if (cmd->example)
        fprintf(env->out, "\nexample:\n  %s\n", cmd->example);
}
