/* Prints shell scripts: see complete.h. Where nothing else fits, both shells complete files. */
#include "cli/complete.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/help.h"
#include "hw/device.h"
#include "models/schema.h"

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

/* ---- keys of the input, and what they take: for --set, --x, --y, --facet, --vary */

static bool takes_key(const struct hb_opt *row)
{
    return row->value && strstr(row->value, "KEY=");
}

/* What an option or an operand of this name is one of; null: something else. */
static const char *names_for(struct hb_env *env, const char *name)
{
    struct hb_str words;
    bool device = hb_str_same(name, "hardware.device") || hb_str_same(name, "device");
    bool preset = hb_str_same(name, "model.preset") || hb_str_same(name, "preset");
    int count = 0;
    if (!device && !preset)
        return NULL;
    const char *zoo = hb_arena_printf(env->arena, "%s/models/zoo", env->data_dir);
    const char *const *list = device ? hb_device_list(env->arena, env->data_dir, &count)
                                     : hb_file_list(env->arena, zoo, ".yaml");
    hb_str_init(&words, env->arena);
    for (int i = 0; device ? i < count : list[i] != NULL; i++)
        hb_str_addf(&words, "%s%s", i ? " " : "", list[i]);
    return words.text;
}

/* A list's item is set by its number: such keys cannot be completed. */
static void print_key(void *context, const char *path)
{
    FILE *to = context;
    if (!strpbrk(path, "[N") && strcmp(path, "hbmsim") != 0)
        fprintf(to, "%s= ", path);
}

struct values {
    struct hb_env *env;
    const char *before, *between, *after; /* of a line: the key, its words */
};

static void print_values(void *context, const char *path)
{
    const struct values *v = context;
    const char *words = names_for(v->env, path);
    if (!words)
        words = hb_schema_choices(v->env->arena, path);
    if (words && !strpbrk(path, "[N"))
        fprintf(v->env->out, "%s%s%s%s%s", v->before, path, v->between, words, v->after);
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
        const char *names = names_for(env, row->name);
        if (!is_shown(row) || (row->kind != HB_OPT_CHOICE && !takes_key(row) && !names))
            continue;
        fprintf(env->out, "    '%s --%s') words=", cmd->name, row->name);
        if (takes_key(row))
            fputs("$keys", env->out);
        else
            fputc('\'', env->out);
        if (names)
            fputs(names, env->out);
        else if (!takes_key(row))
            print_choices(env->out, row->value);
        fputs(takes_key(row) ? " ;;\n" : "' ;;\n", env->out);
    }
}

void hb_complete_bash(struct hb_env *env)
{
    struct values values = {env, "    *' ", "') words='", "' ;;\n"};
    fputs("# bash completion for hbmsim, made by `hbmsim help --completion bash`.\n"
          "_hbmsim() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) words= keys='",
          env->out);
    hb_schema_each_key(print_key, env->out);
    fputs("'\n"
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
    fprintf(env->out,
            "    'devices '*) [[ $cur == -* ]] || words='%s' ;;\n    'models '*) [[ $cur == -* ]] "
            "|| words='%s' ;;\n",
            names_for(env, "device"), names_for(env, "preset"));
    hb_schema_each_key(print_values, &values);
    fputs("    esac ;;\n    esac\n"
          "    [[ $cur == -* && -z $words ]] && case ${COMP_WORDS[1]} in\n",
          env->out);
    for (const struct hb_cmd *const *c = hb_help_commands(); *c; c++)
        print_bash_options(env, *c);
    fputs("    esac\n"
          "    [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
          "    return 0\n"
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

static void print_zsh_option(struct hb_env *env, const struct hb_opt *row)
{
    FILE *to = env->out;
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
    } else if (names_for(env, row->name)) {
        fprintf(to, ":name:(%s)", names_for(env, row->name));
    } else if (takes_key(row)) {
        fputs(":key:_hbmsim_keys", to);
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
            print_zsh_option(env, row);
    if (cmd == &hb_cmd_help)
        fputs(" \\\n      '1:command:_hbmsim_commands' ;;\n", env->out);
    else
        fputs(" \\\n      '*:file:_files' ;;\n", env->out);
}

/* KEY=VALUE: keys, and behind the sign what the key takes. */
static void print_zsh_keys(struct hb_env *env)
{
    struct values values = {env, "    *", ") compadd ", " ;;\n"};
    fputs("_hbmsim_keys() {\n  local -a keys=(", env->out);
    hb_schema_each_key(print_key, env->out);
    fputs(")\n  if ! compset -P '*='; then compadd -S '' -a keys; return; fi\n"
          "  case ${IPREFIX%=} in\n",
          env->out);
    hb_schema_each_key(print_values, &values);
    fputs("  esac\n}\n", env->out);
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
          "}\n",
          env->out);
    print_zsh_keys(env);
    fputs("_hbmsim() {\n"
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
