/* Reads a command line by the command's table: see opt.h. Errors are collected, so that one run
 * shows all that is wrong with a line. */
#include "cli/opt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/help.h"

enum { COMMON_ROWS = 3 };

static const struct {
    unsigned mask;
    struct hb_opt row;
} common_rows[COMMON_ROWS] = {
    {HB_COMMON_SET,
     {"set", 0, HB_OPT_WORDS, "KEY=VALUE", "override a key of the YAML; may be repeated", NULL,
      offsetof(struct hb_common, set), 0, 0}},
    {HB_COMMON_JSON,
     {"json", 0, HB_OPT_FLAG, NULL, "print JSON: stable keys, bytes, seconds", NULL,
      offsetof(struct hb_common, json), 0, 0}},
    {HB_COMMON_OUTPUT,
     {"output", 'o', HB_OPT_OUTPUT, "FILE", "write to FILE, whole or not at all", "-",
      offsetof(struct hb_common, output), 0, 0}},
};

/* No record has this member: --help is handled before anything is stored. */
static const struct hb_opt help_row = {"help", 'h', HB_OPT_FLAG, NULL, "print this text",
                                       NULL,   0,   0,           0};

bool hb_opt_is_operand(enum hb_opt_kind kind)
{
    return kind >= HB_OPT_OPERAND;
}

static bool takes_many(enum hb_opt_kind kind)
{
    return kind == HB_OPT_WORDS || kind == HB_OPT_INPUTS || kind == HB_OPT_OPERANDS ||
           kind == HB_OPT_OPERANDS_MAYBE;
}

static bool must_be_there(enum hb_opt_kind kind)
{
    return kind == HB_OPT_OPERAND || kind == HB_OPT_OPERANDS;
}

void hb_words_add(struct hb_words *words, struct hb_arena *arena, const char *word)
{
    words->items = hb_grow(arena, words->items, words->count, &words->cap, sizeof *words->items);
    words->items[words->count++] = word;
}

const struct hb_opt *hb_opt_rows(struct hb_arena *arena, const struct hb_cmd *cmd)
{
    size_t own = 0;
    while (cmd->options && cmd->options[own].name)
        own++;
    struct hb_opt *rows = hb_arena_alloc(arena, own + COMMON_ROWS + 2, sizeof *rows);
    if (own)
        memcpy(rows, cmd->options, own * sizeof *rows);
    size_t count = own;
    for (int i = 0; i < COMMON_ROWS; i++)
        if (cmd->common & common_rows[i].mask)
            rows[count++] = common_rows[i].row;
    rows[count] = help_row;
    return rows;
}

/* What the parser knows while it walks the arguments. */
struct parser {
    struct hb_env *env;
    const struct hb_cmd *cmd;
    const struct hb_opt *rows;
    bool *seen; /* of each row */
    char *record;
    bool help_wanted;
};

static const struct hb_loc nowhere;

static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *out = value;
    return true;
}

static bool store_int(struct parser *p, const struct hb_opt *row, const char *text)
{
    int64_t value;
    bool unlimited = row->low == 0 && row->high == 0;
    int64_t high = unlimited ? INT64_MAX : row->high;
    if (parse_int(text, &value) && value >= row->low && value <= high) {
        memcpy(p->record + row->offset, &value, sizeof value);
        return true;
    }
    if (unlimited)
        return hb_error(p->env->diag, nowhere, "--%s: '%s' is not a whole number of 0 or more",
                        row->name, text);
    return hb_error(p->env->diag, nowhere, "--%s: '%s' is not a whole number from %lld to %lld",
                    row->name, text, (long long)row->low, (long long)high);
}

static bool store_size(struct parser *p, const struct hb_opt *row, const char *text)
{
    int64_t bytes;
    if (!hb_size_parse(text, &bytes))
        return hb_error(p->env->diag, nowhere,
                        "--%s: '%s' is not a size; write bytes, or \"95GiB\", \"512 MB\"",
                        row->name, text);
    memcpy(p->record + row->offset, &bytes, sizeof bytes);
    return true;
}

static bool store_double(struct parser *p, const struct hb_opt *row, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return hb_error(p->env->diag, nowhere, "--%s: '%s' is not a number", row->name, text);
    memcpy(p->record + row->offset, &value, sizeof value);
    return true;
}

/* The words of "a|b|c" as a null-terminated list. */
static const char *const *split_choices(struct hb_arena *arena, const char *choices)
{
    struct hb_words words = {0};
    for (const char *at = choices; at;) {
        size_t len = strcspn(at, "|");
        hb_words_add(&words, arena, hb_arena_strndup(arena, at, len));
        at = at[len] ? at + len + 1 : NULL;
    }
    hb_words_add(&words, arena, NULL);
    return words.items;
}

static bool store_choice(struct parser *p, const struct hb_opt *row, const char *text)
{
    const char *const *words = split_choices(p->env->arena, row->value);
    for (int i = 0; words[i]; i++) {
        if (!hb_str_same(words[i], text))
            continue;
        memcpy(p->record + row->offset, &i, sizeof i);
        return true;
    }
    const char *near = hb_str_nearest(text, words);
    if (near)
        return hb_error(p->env->diag, nowhere, "--%s: '%s' is not one of %s; did you mean '%s'?",
                        row->name, text, row->value, near);
    return hb_error(p->env->diag, nowhere, "--%s: '%s' is not one of %s", row->name, text,
                    row->value);
}

static bool store_text(struct parser *p, const struct hb_opt *row, const char *text)
{
    memcpy(p->record + row->offset, &text, sizeof text);
    return true;
}

static bool store_word(struct parser *p, const struct hb_opt *row, const char *text)
{
    struct hb_words words;
    memcpy(&words, p->record + row->offset, sizeof words);
    hb_words_add(&words, p->env->arena, text);
    memcpy(p->record + row->offset, &words, sizeof words);
    return true;
}

static bool store_flag(struct parser *p, const struct hb_opt *row, const char *text)
{
    bool on = true;
    (void)text;
    memcpy(p->record + row->offset, &on, sizeof on);
    return true;
}

static bool (*const stores[])(struct parser *, const struct hb_opt *, const char *) = {
    [HB_OPT_FLAG] = store_flag,
    [HB_OPT_STRING] = store_text,
    [HB_OPT_INPUT] = store_text,
    [HB_OPT_OUTPUT] = store_text,
    [HB_OPT_INT] = store_int,
    [HB_OPT_SIZE] = store_size,
    [HB_OPT_DOUBLE] = store_double,
    [HB_OPT_CHOICE] = store_choice,
    [HB_OPT_WORDS] = store_word,
    [HB_OPT_INPUTS] = store_word,
    [HB_OPT_OPERAND] = store_text,
    [HB_OPT_OPERANDS] = store_word,
    [HB_OPT_OPERAND_MAYBE] = store_text,
    [HB_OPT_OPERANDS_MAYBE] = store_word,
};

_Static_assert(sizeof stores / sizeof stores[0] == HB_OPT_KIND_COUNT, "one store a kind");

static const struct hb_opt *find_long(const struct parser *p, const char *name, size_t len)
{
    for (const struct hb_opt *row = p->rows; row->name; row++)
        if (!hb_opt_is_operand(row->kind) && strlen(row->name) == len &&
            memcmp(row->name, name, len) == 0)
            return row;
    return NULL;
}

static const struct hb_opt *find_letter(const struct parser *p, char letter)
{
    for (const struct hb_opt *row = p->rows; row->name; row++)
        if (row->letter && row->letter == letter)
            return row;
    return NULL;
}

static const char *nearest_option(const struct parser *p, const char *given)
{
    struct hb_words names = {0};
    for (const struct hb_opt *row = p->rows; row->name; row++)
        if (row->help && !hb_opt_is_operand(row->kind))
            hb_words_add(&names, p->env->arena, row->name);
    hb_words_add(&names, p->env->arena, NULL);
    return hb_str_nearest(given, names.items);
}

static bool refuse_unknown(struct parser *p, const char *given, size_t len)
{
    const char *word = hb_arena_strndup(p->env->arena, given, len);
    const char *near = given[1] == '-' ? nearest_option(p, word + 2) : NULL;
    if (near)
        return hb_error(p->env->diag, nowhere, "'%s' has no option '%s'; did you mean '--%s'?",
                        p->cmd->name, word, near);
    return hb_error(p->env->diag, nowhere, "'%s' has no option '%s'; 'hbmsim %s --help' lists them",
                    p->cmd->name, word, p->cmd->name);
}

/* Stores the value of an option; text is null where the command line has ended. */
static bool store_value(struct parser *p, const struct hb_opt *row, const char *text)
{
    size_t at = (size_t)(row - p->rows);
    if (!text)
        return hb_error(p->env->diag, nowhere, "--%s wants a value: --%s %s", row->name, row->name,
                        row->value);
    if (p->seen[at] && !takes_many(row->kind) && row->kind != HB_OPT_FLAG)
        return hb_error(p->env->diag, nowhere, "--%s is given twice", row->name);
    p->seen[at] = true;
    if (row->offset == 0 && hb_str_same(row->name, help_row.name)) {
        p->help_wanted = true;
        return true;
    }
    return stores[row->kind](p, row, text);
}

/* Each of the two takes the argument at argv[*at] and, where the value stands apart, the next. */
static bool take_long(struct parser *p, char **argv, int *at)
{
    const char *given = argv[*at];
    size_t len = strcspn(given, "=");
    const char *inside = given[len] ? given + len + 1 : NULL;
    const struct hb_opt *row = find_long(p, given + 2, len - 2);
    if (!row)
        return refuse_unknown(p, given, len);
    if (row->kind == HB_OPT_FLAG) {
        if (inside)
            return hb_error(p->env->diag, nowhere, "--%s takes no value", row->name);
        return store_value(p, row, "");
    }
    return store_value(p, row, inside ? inside : argv[*at + 1] ? argv[++*at] : NULL);
}

static bool take_letters(struct parser *p, char **argv, int *at)
{
    const char *given = argv[*at];
    const struct hb_opt *row = find_letter(p, given[1]);
    if (!row || (row->kind == HB_OPT_FLAG && given[2]))
        return refuse_unknown(p, given, strlen(given));
    if (row->kind == HB_OPT_FLAG)
        return store_value(p, row, "");
    return store_value(p, row, given[2] ? given + 2 : argv[*at + 1] ? argv[++*at] : NULL);
}

static bool take_operand(struct parser *p, const char *text)
{
    for (const struct hb_opt *row = p->rows; row->name; row++) {
        size_t at = (size_t)(row - p->rows);
        if (!hb_opt_is_operand(row->kind) || (p->seen[at] && !takes_many(row->kind)))
            continue;
        p->seen[at] = true;
        return stores[row->kind](p, row, text);
    }
    const char *help = "";
    if (strchr(text, '=') && p->cmd->common & HB_COMMON_SET)
        help = "; a key is set by --set KEY=VALUE; what the command line of another program adds "
               "to its file, `hbmsim import FILE KEY=VALUE -o model.yaml` takes";
    return hb_error(p->env->diag, nowhere, "'%s' does not take a further argument '%s'%s",
                    p->cmd->name, text, help);
}

static bool take_all(struct parser *p, int argc, char **argv)
{
    bool ok = true;
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        bool option = !options_ended && argv[i][0] == '-' && argv[i][1];
        if (option && hb_str_same(argv[i], "--"))
            options_ended = true;
        else if (option)
            ok &= argv[i][1] == '-' ? take_long(p, argv, &i) : take_letters(p, argv, &i);
        else
            ok &= take_operand(p, argv[i]);
    }
    return ok;
}

static void store_defaults(struct parser *p)
{
    static const int no_choice = -1;
    for (const struct hb_opt *row = p->rows; row->name; row++) {
        if (row->fallback && !stores[row->kind](p, row, row->fallback))
            HB_BUG("default '%s' of --%s", row->fallback, row->name);
        if (!row->fallback && row->kind == HB_OPT_CHOICE)
            memcpy(p->record + row->offset, &no_choice, sizeof no_choice);
    }
}

static bool check_operands(struct parser *p)
{
    bool ok = true;
    for (const struct hb_opt *row = p->rows; row->name; row++)
        if (must_be_there(row->kind) && !p->seen[row - p->rows])
            ok = hb_error(p->env->diag, nowhere, "'%s' wants %s; try 'hbmsim %s --help'",
                          p->cmd->name, row->name, p->cmd->name);
    return ok;
}

/* The files that a row names. */
static struct hb_words files_of(const struct parser *p, const struct hb_opt *row)
{
    struct hb_words files = {0};
    const char *one = NULL;
    if (row->kind == HB_OPT_INPUTS || row->kind == HB_OPT_OPERANDS) {
        memcpy(&files, p->record + row->offset, sizeof files);
    } else if (row->kind == HB_OPT_INPUT || row->kind == HB_OPT_OUTPUT ||
               row->kind == HB_OPT_OPERAND || row->kind == HB_OPT_OPERAND_MAYBE) {
        memcpy(&one, p->record + row->offset, sizeof one);
        if (one)
            hb_words_add(&files, p->env->arena, one);
    }
    return files;
}

static bool check_output(struct parser *p, const struct hb_opt *out, const char *path)
{
    const char *target = hb_file_target(p->env->arena, path);
    for (const struct hb_opt *row = p->rows; target && row->name; row++) {
        bool written = row->kind == HB_OPT_OUTPUT;
        struct hb_words files = files_of(p, row);
        if (written && row <= out)
            continue;
        for (uint32_t i = 0; i < files.count; i++) {
            bool standard = hb_str_same(files.items[i], "-");
            const char *other = hb_file_target(p->env->arena, files.items[i]);
            if ((standard && !written) || !other || !hb_str_same(target, other))
                continue;
            return hb_error(p->env->diag, nowhere, "--%s: '%s' is also %s%s: nothing is written",
                            out->name, path, written ? "the output of --" : "read as ", row->name);
        }
    }
    return true;
}

static bool check_outputs(struct parser *p)
{
    bool ok = true;
    for (const struct hb_opt *row = p->rows; row->name; row++) {
        struct hb_words files = files_of(p, row);
        if (row->kind == HB_OPT_OUTPUT && files.count)
            ok &= check_output(p, row, files.items[0]);
    }
    return ok;
}

int hb_opt_parse(struct hb_env *env, const struct hb_cmd *cmd, int argc, char **argv,
                 void *out_record)
{
    struct parser p = {.env = env, .cmd = cmd, .rows = hb_opt_rows(env->arena, cmd)};
    size_t count = 0;
    while (p.rows[count].name)
        count++;
    p.seen = hb_arena_alloc(env->arena, count, sizeof *p.seen);
    p.record = out_record;
    store_defaults(&p);
    bool ok = take_all(&p, argc, argv);
    if (ok && p.help_wanted) {
        hb_help_command(env, cmd);
        return HB_EXIT_YES;
    }
    return ok && check_operands(&p) && check_outputs(&p) ? HB_GO_ON : HB_EXIT_INPUT;
}
