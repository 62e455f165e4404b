/* Recursive descent over text in memory: see json.h. All scalars and keys are copied, unescaped,
 * into one pool: a string of k bytes takes k + 1 there and had two quotes, a number is followed
 * by a delimiter or the end, so a pool of len + 1 bytes holds them all. What ends the text, a line
 * feed or 0, is never a part of one, so that nothing but blanks is held against the end. */
#include "base/json.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"

struct reader {
    struct hb_arena *arena;
    struct hb_diag *diag;
    struct hb_loc start;
    const char *at;
    const char *end;
    const char *line_start; /* of the line that at is in */
    int line;
    long inner_bytes; /* bytes of this line, up to at, that continue a character */
    char *pool;       /* free room for copies */
    int nodes;
};

static bool read_value(struct reader *r, int depth, struct hb_node **out_node);

static struct hb_loc here(const struct reader *r)
{
    long column = r->at - r->line_start - r->inner_bytes + 1;
    if (r->line == r->start.line)
        column += r->start.column - 1;
    return (struct hb_loc){r->start.file, r->line, (int)column};
}

static bool fail(struct reader *r, const char *wanted)
{
    struct hb_loc loc = here(r);
    if (r->at == r->end)
        return hb_error(r->diag, loc, "not JSON: ends where %s is wanted", wanted);
    char found[8] = {*r->at};
    for (int i = 1; i < 4 && r->at + i < r->end && ((unsigned char)r->at[i] & 0xc0) == 0x80; i++)
        found[i] = r->at[i];
    if (found[0] == '\n')
        memcpy(found, "\\n", 3);
    else if (iscntrl((unsigned char)found[0]))
        snprintf(found, sizeof found, "\\x%02x", (unsigned char)found[0]);
    return hb_error(r->diag, loc, "not JSON: '%s' where %s is wanted", found, wanted);
}

static void skip_space(struct reader *r)
{
    for (;; r->at++) {
        if (r->at == r->end)
            return;
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
            r->inner_bytes = 0;
        } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

static bool read_hex4(struct reader *r, uint32_t *out_code)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int digit = hb_hex_digit(*r->at);
        if (digit < 0)
            return fail(r, "a hexadecimal digit");
        code = code << 4 | (uint32_t)digit;
    }
    *out_code = code;
    return true;
}

/* After \u: one code, or the two halves of one. */
static bool read_unicode(struct reader *r)
{
    uint32_t code = 0;
    uint32_t low = 0;
    if (!read_hex4(r, &code))
        return false;
    if (code == 0)
        return hb_error(r->diag, here(r), "not JSON: the character U+0000 is not text");
    if (code >= 0xd800 && code < 0xe000) {
        bool pair = code < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u';
        if (!pair)
            return fail(r, "the second half of a \\u pair");
        r->at += 2;
        if (!read_hex4(r, &low))
            return false;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "the second half of a \\u pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    r->pool += hb_utf8_put(code, r->pool);
    return true;
}

static bool read_escape(struct reader *r)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    r->at++;
    if (*r->at == 'u') {
        r->at++;
        return read_unicode(r);
    }
    const char *found = *r->at ? strchr(letters, *r->at) : NULL;
    if (!found)
        return fail(r, "an escape (one of \"\\/bfnrtu)");
    *r->pool++ = meanings[found - letters];
    r->at++;
    return true;
}

/* At the opening quote. */
static bool read_string(struct reader *r, const char **out_text)
{
    char *text = r->pool;
    char *out = text;
    const char *at = r->at + 1;
    for (;;) {
        while (*at != '"' && *at != '\\' && (unsigned char)*at >= 0x20) {
            r->inner_bytes += ((unsigned char)*at & 0xc0) == 0x80;
            *out++ = *at++;
        }
        r->at = at;
        r->pool = out;
        if ((unsigned char)*at < 0x20)
            return fail(r, "the closing '\"' of a string");
        if (*at == '"')
            break;
        if (!read_escape(r))
            return false;
        at = r->at;
        out = r->pool;
    }
    r->at++;
    *r->pool++ = '\0';
    *out_text = text;
    return true;
}

static const char *skip_digits(const char *at)
{
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

/* The end of the number at text, or null. */
static const char *number_end(const char *text)
{
    const char *at = text + (*text == '-');
    if (!isdigit((unsigned char)*at))
        return NULL;
    at = *at == '0' ? at + 1 : skip_digits(at);
    if (*at == '.') {
        if (!isdigit((unsigned char)*++at))
            return NULL;
        at = skip_digits(at);
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        if (!isdigit((unsigned char)*at))
            return NULL;
        at = skip_digits(at);
    }
    return at;
}

/* A number, true, false or null. */
static bool read_word(struct reader *r, const char **out_text)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *end = number_end(r->at);
    for (int i = 0; i < 3 && !end; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(r->at, words[i], len) == 0)
            end = r->at + len;
    }
    if (!end || isalnum((unsigned char)*end) || *end == '.')
        return fail(r, "a value");
    size_t len = (size_t)(end - r->at);
    memcpy(r->pool, r->at, len);
    r->pool[len] = '\0';
    *out_text = r->pool;
    r->pool += len + 1;
    r->at = end;
    return true;
}

static bool read_member(struct reader *r, int depth, struct hb_node *map)
{
    const char *key = NULL;
    struct hb_node *value = NULL;
    skip_space(r);
    struct hb_loc key_loc = here(r);
    if (*r->at != '"')
        return fail(r, "a key in quotes");
    if (!read_string(r, &key))
        return false;
    skip_space(r);
    if (*r->at != ':')
        return fail(r, "':'");
    r->at++;
    if (!read_value(r, depth, &value))
        return false;
    value->key = key;
    value->key_loc = key_loc;
    hb_node_append(map, value);
    return true;
}

static bool read_item(struct reader *r, int depth, struct hb_node *list)
{
    struct hb_node *value = NULL;
    if (!read_value(r, depth, &value))
        return false;
    hb_node_append(list, value);
    return true;
}

/* At the opening bracket. */
static bool read_children(struct reader *r, int depth, struct hb_node *node)
{
    bool map = node->kind == HB_NODE_MAP;
    char close = map ? '}' : ']';
    r->at++;
    skip_space(r);
    if (*r->at == close) {
        r->at++;
        return true;
    }
    for (;;) {
        if (!(map ? read_member(r, depth, node) : read_item(r, depth, node)))
            return false;
        skip_space(r);
        if (*r->at != ',' && *r->at != close)
            return fail(r, map ? "',' or '}'" : "',' or ']'");
        if (*r->at++ == close)
            return !map || hb_node_check_keys(r->arena, r->diag, node);
    }
}

static bool read_value(struct reader *r, int depth, struct hb_node **out_node)
{
    skip_space(r);
    struct hb_loc loc = here(r);
    if (depth >= HB_NODE_MAX_DEPTH)
        return hb_error(r->diag, loc, "nested deeper than %d levels", HB_NODE_MAX_DEPTH);
    if (++r->nodes > HB_NODE_MAX_COUNT)
        return hb_error(r->diag, loc, "more than %d values", HB_NODE_MAX_COUNT);
    char c = *r->at;
    bool map = c == '{';
    if (map || c == '[') {
        *out_node = hb_node_new(r->arena, map ? HB_NODE_MAP : HB_NODE_LIST, loc);
        return read_children(r, depth + 1, *out_node);
    }
    const char *text = NULL;
    if (!(c == '"' ? read_string(r, &text) : read_word(r, &text)))
        return false;
    *out_node = hb_node_scalar(r->arena, loc, text, c == '"');
    return true;
}

bool hb_json_parse(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc start,
                   const char *text, size_t len, struct hb_node **out_root)
{
    if (!hb_utf8_check(diag, start, text, len))
        return false;
    struct reader r = {.arena = arena,
                       .diag = diag,
                       .start = start,
                       .at = text,
                       .end = text + len,
                       .line_start = text,
                       .line = start.line,
                       .pool = hb_arena_alloc(arena, len + 1, 1)};
    struct hb_node *root = NULL;
    if (!read_value(&r, 0, &root))
        return false;
    skip_space(&r);
    if (r.at != r.end)
        return fail(&r, "the end");
    *out_root = root;
    return true;
}

bool hb_jsonl_open(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                   struct hb_jsonl *out_file)
{
    struct hb_text content;
    const char *reason = NULL;
    struct hb_loc loc = {.file = path};
    if (!hb_file_load(arena, path, HB_FILE_MAX_BYTES, &content, &reason))
        return hb_error(diag, loc, "%s", reason);
    *out_file = (struct hb_jsonl){.path = path, .text = content.text, .len = content.len};
    return true;
}

static bool blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isspace((unsigned char)text[i]))
            return false;
    return true;
}

bool hb_jsonl_next(struct hb_jsonl *file, struct hb_arena *arena, struct hb_diag *diag,
                   struct hb_node **out_record)
{
    while (file->at < file->len) {
        const char *line = file->text + file->at;
        const char *end = memchr(line, '\n', file->len - file->at);
        size_t len = end ? (size_t)(end - line) : file->len - file->at;
        file->at += len + (end != NULL);
        file->line++;
        if (blank(line, len))
            continue;
        struct hb_loc start = {file->path, file->line, 1};
        return hb_json_parse(arena, diag, start, line, len, out_record);
    }
    *out_record = NULL;
    return true;
}
