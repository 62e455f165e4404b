/* Prints shell scripts: see complete.h. Where nothing else fits, both shells complete files. */
#include "cli/complete.h"

#include <string.h>

#include "base/env.h"
#include "cli/cmd.h"
#include "cli/help.h"

/* A choice's "a|b|c" with blanks between. */
static void print_choices(FILE *to, const char *choices)
{
    for (; choices && *choices; choices++)
        fputc(*choices == '|' ? ' ' : *choices, to);
}

static void print_names(FILE *to)
{
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        fprintf(to, "%s ", (*c)->name);
}

/* Is it an option that people are told of? */
static bool is_shown(const struct hb_opt *row)
{
    return row->help && !hb_opt_is_operand(row->kind);
}

static void print_bash_options(struct hb_env *env, const struct hb_cmd *cmd)
{
    fprintf(env->out, "    %s) words='", cmd->name);
    for (const struct hb_opt *row = hb_opt_rows(env->arena, cmd); row->name; row++)
        if (is_shown(row))
            fprintf(env->out, "--%s ", row->name);
    fputs("' ;;\n", env->out);
}

static void print_bash_choices(struct hb_env *env, const struct hb_cmd *cmd)
{
    for (const struct hb_opt *row = hb_opt_rows(env->arena, cmd); row->name; row++) {
        if (!is_shown(row) || row->kind != HB_OPT_CHOICE)
            continue;
        fprintf(env->out, "    '%s --%s') words='", cmd->name, row->name);
        print_choices(env->out, row->value);
        fputs("' ;;\n", env->out);
    }
}

void hb_complete_bash(struct hb_env *env)
{
    fputs("# bash completion for hbmsim, made by `hbmsim help --completion bash`.\n"
          "_hbmsim() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) words=\n"
          "    COMPREPLY=()\n"
          "    [[ $cur == '=' ]] && cur=\n" /* bash takes --name=value as three words */
          "    [[ ${COMP_WORDS[at]} == '=' ]] && ((at--))\n"
          "    case \"$COMP_CWORD ${COMP_WORDS[1]} $cur\" in\n"
          "    '1 '*|'2 help '*) words='",
          env->out);
    print_names(env->out);
    fputs("--help --version' ;;\n    *) case \"${COMP_WORDS[1]} ${COMP_WORDS[at]}\" in\n",
          env->out);
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_bash_choices(env, *c);
    fputs("    esac ;;\n    esac\n"
          "    [[ $cur == -* && -z $words ]] && case ${COMP_WORDS[1]} in\n",
          env->out);
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_bash_options(env, *c);
    fputs("    esac\n"
          "    [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o default -F _hbmsim hbmsim\n",
          env->out);
}

/* Text within '...[text]' of zsh's _arguments. */
static void print_zsh_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", to);
        else if (strchr("[]:\\", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void print_zsh_option(FILE *to, const struct hb_opt *row)
{
    const char *many = row->kind == HB_OPT_WORDS || row->kind == HB_OPT_INPUTS ? "*" : "";
    if (row->letter)
        fprintf(to, " \\\n      '(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name, row->letter,
                row->value ? "+" : "", row->name, row->value ? "=" : "");
    else
        fprintf(to, " \\\n      '%s--%s%s[", many, row->name, row->value ? "=" : "");
    print_zsh_text(to, row->help);
    fputc(']', to);
    if (row->kind == HB_OPT_CHOICE) {
        fputs(":word:(", to);
        print_choices(to, row->value);
        fputc(')', to);
    } else if (row->value) {
        fputc(':', to);
        print_zsh_text(to, row->value);
        fputs(":_files", to);
    }
    fputc('\'', to);
}

static void print_zsh_command(struct hb_env *env, const struct hb_cmd *cmd)
{
    fprintf(env->out, "    %s) _arguments -s", cmd->name);
    for (const struct hb_opt *row = hb_opt_rows(env->arena, cmd); row->name; row++)
        if (is_shown(row))
            print_zsh_option(env->out, row);
    if (cmd == &hb_cmd_help)
        fputs(" \\\n      '1:command:_hbmsim_commands' ;;\n", env->out);
    else
        fputs(" \\\n      '*:file:_files' ;;\n", env->out);
}

void hb_complete_zsh(struct hb_env *env)
{
    fputs("#compdef hbmsim\n"
          "# zsh completion for hbmsim, made by `hbmsim help --completion zsh`.\n"
          "_hbmsim_commands() {\n"
          "  local -a commands=(\n",
          env->out);
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++) {
        fprintf(env->out, "    '%s:", (*c)->name);
        print_zsh_text(env->out, (*c)->summary);
        fputs("'\n", env->out);
    }
    fputs("  )\n"
          "  _describe command commands\n"
          "}\n"
          "_hbmsim() {\n"
          "  if (( CURRENT == 2 )); then _hbmsim_commands; return; fi\n"
          "  shift words; (( CURRENT-- ))\n"
          "  case $words[1] in\n",
          env->out);
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_zsh_command(env, *c);
    fputs("  esac\n"
          "}\n"
          "if [ \"$funcstack[1]\" = _hbmsim ]; then _hbmsim \"$@\"; else compdef _hbmsim hbmsim; "
          "fi\n",
          env->out);
}
