/* Word by word, without a shell: see args.h. */
#include "models/import/args.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

bool hb_args_look(const char *text)
{
    static const char *const known[] = {"--num-layers", "--hidden-size", "--micro-batch-size",
                                        "--tensor-model-parallel-size"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *at = strstr(text, known[i]);
        if (at && (at == text || strchr(" \t\n\"'(", at[-1])) && at[strlen(known[i])] != ':')
            return true;
    }
    return false;
}

/* Each argument and name is looked for among those before; a name may hold others many times. */
enum { MOST_WORDS = 10000, MOST_EXPANDED_BYTES = 1 << 20 };

struct reader {
    struct hb_arena *arena;
    struct hb_node *names; /* assignments */
    struct hb_node *root;
    const char *name;
    const char *argument; /* the last "--name" */
    int values;           /* that came behind it */
    int line;
    int words;             /* arguments, their values, assignments */
    size_t expanded_bytes; /* that names stood for */
};

static bool fits(const struct reader *r)
{
    return r->words <= MOST_WORDS && r->expanded_bytes <= MOST_EXPANDED_BYTES;
}

/* The value of $NAME at *at, which stands behind the dollar; "" where nothing says it. */
static void expand(struct reader *r, const char **at, struct hb_str *out)
{
    bool braces = **at == '{';
    const char *start = *at + braces;
    const char *end = start;
    while (isalnum((unsigned char)*end) || *end == '_')
        end++;
    const char *name = hb_arena_strndup(r->arena, start, (size_t)(end - start));
    const struct hb_node *node = hb_node_find(r->names, name);
    if (node) {
        r->expanded_bytes += strlen(node->text);
        hb_str_add(out, r->expanded_bytes > MOST_EXPANDED_BYTES ? "" : node->text);
    } else if (braces && end[0] == ':' && (end[1] == '-' || end[1] == '=')) {
        size_t len = strcspn(end + 2, "}");
        hb_str_addn(out, end + 2, len);
    }
    if (braces)
        end += strcspn(end, "}\n");
    *at = end + (braces && *end == '}');
}

static void put_value(struct reader *r, const char *text)
{
    struct hb_loc loc = {r->name, r->line, 1};
    struct hb_node *value = hb_node_scalar(r->arena, loc, text, false);
    struct hb_node *old = hb_node_find(r->root, r->argument);
    r->words++;
    if (r->values++ == 0) {
        hb_node_put(r->root, r->argument, loc, value);
        return;
    }
    if (old->kind == HB_NODE_SCALAR) {
        struct hb_node *list = hb_node_new(r->arena, HB_NODE_LIST, loc);
        hb_node_append(list, hb_node_scalar(r->arena, old->loc, old->text, false));
        hb_node_put(r->root, r->argument, loc, list);
        old = list;
    }
    hb_node_append(old, value);
}

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return len > 0 && !isdigit((unsigned char)text[0]);
}

/* Of an argument; a bracket begins a list of numbers ("[0]*3+[1]*58"), or else a test. */
static bool is_value(const char *word)
{
    if (word[0] == '[')
        return isdigit((unsigned char)word[1]);
    return word[0] && word[0] != '-' && !strchr("|&;<>{}", word[0]);
}

static void add_word(struct reader *r, const char *word)
{
    const char *equals = strchr(word, '=');
    if (word[0] == '-' && word[1] == '-' && isalpha((unsigned char)word[2])) {
        r->argument = equals ? hb_arena_strndup(r->arena, word, (size_t)(equals - word)) : word;
        r->values = 0;
        put_value(r, equals ? equals + 1 : "true");
        r->values = equals ? 1 : 0;
    } else if (equals && is_name(word, (size_t)(equals - word))) {
        struct hb_loc loc = {r->name, r->line, 1};
        const char *key = hb_arena_strndup(r->arena, word, (size_t)(equals - word));
        r->words++;
        if (!hb_node_find(r->names, key) || equals[1])
            hb_node_put(r->names, key, loc, hb_node_scalar(r->arena, loc, equals + 1, false));
        r->argument = NULL;
    } else if (hb_str_ends(word, ".py") || (word[0] == '-' && isalpha((unsigned char)word[1]))) {
        r->argument = NULL;
    } else if (r->argument && is_value(word)) {
        put_value(r, word);
    }
}

/* Up to the next blank, quote or bracket; $NAME replaced. */
static const char *read_word(struct reader *r, const char **at)
{
    struct hb_str out;
    hb_str_init(&out, r->arena);
    while (**at && !isspace((unsigned char)**at) && !strchr("\"'()\\;", **at)) {
        if (**at == '$' &&
            ((*at)[1] == '{' || isalpha((unsigned char)(*at)[1]) || (*at)[1] == '_')) {
            (*at)++;
            expand(r, at, &out);
        } else {
            hb_str_addn(&out, *at, 1);
            (*at)++;
        }
    }
    return out.text;
}

/* What a quote holds: one value behind an argument, else words of their own. */
static void read_quoted(struct reader *r, const char **at)
{
    char quote = *(*at)++;
    const char *end = *at;
    while (*end && *end != quote)
        end++;
    const char *text = hb_arena_strndup(r->arena, *at, (size_t)(end - *at));
    bool words = hb_str_starts(text, "--") || strstr(text, " --") || strstr(text, "\n--") ||
                 !r->argument || strchr(text, '$');
    *at = end + (*end == quote);
    if (!words) {
        add_word(r, text);
        return;
    }
    while (*text && fits(r)) {
        if (isspace((unsigned char)*text) || strchr("()\\;\"'", *text))
            text++;
        else
            add_word(r, read_word(r, &text));
    }
}

static bool check_size(const struct reader *r, struct hb_diag *diag)
{
    struct hb_loc loc = {r->name, r->line, 1};
    if (fits(r))
        return true;
    if (r->words > MOST_WORDS)
        return hb_error(diag, loc, "more than %d arguments and assignments", MOST_WORDS);
    return hb_error(diag, loc, "what its names stand for takes more than 1 MiB");
}

/* Megatron's model scripts name it for the script that reads them. */
static void put_tokenizer(struct reader *r)
{
    static const char name[] = "TOKENIZER_MODEL", argument[] = "--tokenizer-model";
    struct hb_node *node = hb_node_find(r->names, name);
    if (node && node->text[0] && !hb_node_find(r->root, argument))
        hb_node_put(r->root, argument, node->loc, hb_node_copy(r->arena, node));
}

bool hb_args_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root)
{
    struct hb_loc loc = {name, 1, 1};
    struct reader r = {.arena = arena, .name = name, .line = 1};
    r.names = hb_node_new(arena, HB_NODE_MAP, loc);
    r.root = hb_node_new(arena, HB_NODE_MAP, loc);
    const char *end = text + len;
    for (const char *at = text; at < end && *at;) {
        bool broken = at > text && at[-1] == '\\';
        if (*at == '\n') {
            r.line++;
            r.argument = broken ? r.argument : NULL;
        }
        if (*at == '#' && (at == text || isspace((unsigned char)at[-1])))
            at += strcspn(at, "\n");
        else if (*at == '"' || *at == '\'')
            read_quoted(&r, &at);
        else if (isspace((unsigned char)*at) || strchr("()\\;", *at)) {
            r.argument = *at == ')' || *at == ';' ? NULL : r.argument;
            at++;
        } else
            add_word(&r, read_word(&r, &at));
        if (!check_size(&r, diag))
            return false;
    }
    put_tokenizer(&r);
    *out_root = r.root;
    return true;
}
