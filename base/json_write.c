/* The JSON writer: see json_write.h. */
#include "base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

enum { FLUSH_BYTES = 64 << 10, MAX_OPEN = 62 };

struct hb_json hb_json_begin(struct hb_str *out, FILE *file, bool pretty)
{
    return (struct hb_json){.out = out, .file = file, .pretty = pretty};
}

static void pass_on(struct hb_json *j)
{
    fwrite(j->out->text, 1, j->out->len, j->file);
    j->out->len = 0;
    if (j->out->cap)
        j->out->text[0] = '\0';
}

void hb_json_end(struct hb_json *j)
{
    if (j->depth || j->keyed)
        HB_BUG("JSON ended within %d open brackets", j->depth);
    hb_str_add(j->out, "\n");
    if (j->file)
        pass_on(j);
}

static void break_line(struct hb_json *j)
{
    if (!j->pretty)
        return;
    hb_str_add(j->out, "\n");
    for (int i = 0; i < j->depth; i++)
        hb_str_add(j->out, "  ");
}

/* What stands before any value or key. */
static void separate(struct hb_json *j)
{
    if (j->keyed) {
        j->keyed = false;
        return;
    }
    if (j->any >> j->depth & 1)
        hb_str_add(j->out, j->pretty ? "," : ", ");
    if (j->depth)
        break_line(j);
    j->any |= (uint64_t)1 << j->depth;
    if (j->file && j->out->len > FLUSH_BYTES)
        pass_on(j);
}

static void open_bracket(struct hb_json *j, const char *bracket)
{
    separate(j);
    hb_str_add(j->out, bracket);
    if (j->depth >= MAX_OPEN)
        HB_BUG("JSON nested deeper than %d", MAX_OPEN);
    j->depth++;
    j->any &= ~((uint64_t)1 << j->depth);
}

static void close_bracket(struct hb_json *j, const char *bracket)
{
    bool any = j->any >> j->depth & 1;
    if (j->depth == 0 || j->keyed)
        HB_BUG("JSON: '%s' without its opening or after a key", bracket);
    j->depth--;
    if (any)
        break_line(j);
    hb_str_add(j->out, bracket);
}

void hb_json_object(struct hb_json *j)
{
    open_bracket(j, "{");
}

void hb_json_object_end(struct hb_json *j)
{
    close_bracket(j, "}");
}

void hb_json_array(struct hb_json *j)
{
    open_bracket(j, "[");
}

void hb_json_array_end(struct hb_json *j)
{
    close_bracket(j, "]");
}

/* Characters beyond ASCII that YAML takes for line breaks or for no text at all: U+0080 to U+009F,
 * U+2028, U+2029, U+FEFF, U+FFFE, U+FFFF. Their length in bytes; 0: another character. */
static size_t find_special(const unsigned char *text, unsigned *out_code)
{
    if (text[0] == 0xc2 && text[1] >= 0x80 && text[1] < 0xa0) {
        *out_code = text[1];
        return 2;
    }
    bool three = (text[0] == 0xe2 || text[0] == 0xef) && (text[1] & 0xc0) == 0x80 &&
                 (text[2] & 0xc0) == 0x80;
    if (!three)
        return 0;
    unsigned code = (text[0] & 0xfu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
    bool special = code == 0x2028 || code == 0x2029 || code == 0xfeff || code >= 0xfffe;
    *out_code = code;
    return special ? 3 : 0;
}

/* Bytes that are written as they stand. */
static size_t plain_bytes(const char *text)
{
    size_t n = 0;
    unsigned unused;
    for (;; n++) {
        unsigned char c = (unsigned char)text[n];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
            return n;
        if (c >= 0xc2 && find_special((const unsigned char *)text + n, &unused))
            return n;
    }
}

void hb_json_quote(struct hb_str *out, const char *text)
{
    static const char letters[] = "\"\\\n\t\r\b\f";
    static const char escapes[] = "\"\\ntrbf";
    hb_str_add(out, "\"");
    for (;;) {
        size_t plain = plain_bytes(text);
        hb_str_addn(out, text, plain);
        text += plain;
        if (!*text)
            break;
        const char *found = strchr(letters, *text);
        unsigned code = (unsigned char)*text;
        size_t len = code < 0x80 ? 1 : find_special((const unsigned char *)text, &code);
        if (found)
            hb_str_addf(out, "\\%c", escapes[found - letters]);
        else
            hb_str_addf(out, "\\u%04x", code);
        text += len;
    }
    hb_str_add(out, "\"");
}

void hb_json_key(struct hb_json *j, const char *key)
{
    if (j->keyed)
        HB_BUG("JSON key '%s' where a value is due", key);
    separate(j);
    hb_json_quote(j->out, key);
    hb_str_add(j->out, ": ");
    j->keyed = true;
}

void hb_json_text(struct hb_json *j, const char *text)
{
    separate(j);
    if (text)
        hb_json_quote(j->out, text);
    else
        hb_str_add(j->out, "null");
}

void hb_json_int(struct hb_json *j, int64_t value)
{
    separate(j);
    hb_str_addf(j->out, "%" PRId64, value);
}

const char *hb_real_print(double value, char *text)
{
    if (value == 0)
        value = 0; /* -0 reads back as a whole number */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, HB_REAL_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

void hb_json_real(struct hb_json *j, double value)
{
    char text[HB_REAL_TEXT];
    if (!isfinite(value))
        HB_BUG("a number that is not finite in JSON");
    separate(j);
    hb_str_add(j->out, hb_real_print(value, text));
}

void hb_json_bool(struct hb_json *j, bool value)
{
    separate(j);
    hb_str_add(j->out, value ? "true" : "false");
}

void hb_json_null(struct hb_json *j)
{
    separate(j);
    hb_str_add(j->out, "null");
}

static void write_scalar(struct hb_json *j, const struct hb_node *node)
{
    int64_t whole;
    double real;
    bool truth;
    if (hb_node_int(node, &whole))
        hb_json_int(j, whole);
    else if (hb_node_real(node, &real))
        hb_json_real(j, real);
    else if (hb_node_bool(node, &truth))
        hb_json_bool(j, truth);
    else if (hb_node_is_null(node))
        hb_json_null(j);
    else
        hb_json_text(j, node->text);
}

void hb_json_node(struct hb_json *j, const struct hb_node *node)
{
    if (node->kind == HB_NODE_SCALAR) {
        write_scalar(j, node);
        return;
    }
    bool map = node->kind == HB_NODE_MAP;
    open_bracket(j, map ? "{" : "[");
    for (const struct hb_node *child = node->first; child; child = child->next) {
        if (map)
            hb_json_key(j, child->key);
        hb_json_node(j, child);
    }
    close_bracket(j, map ? "}" : "]");
}

void hb_json_put_text(struct hb_json *j, const char *key, const char *text)
{
    hb_json_key(j, key);
    hb_json_text(j, text);
}

void hb_json_put_int(struct hb_json *j, const char *key, int64_t value)
{
    hb_json_key(j, key);
    hb_json_int(j, value);
}

void hb_json_put_real(struct hb_json *j, const char *key, double value)
{
    hb_json_key(j, key);
    hb_json_real(j, value);
}

void hb_json_put_bool(struct hb_json *j, const char *key, bool value)
{
    hb_json_key(j, key);
    hb_json_bool(j, value);
}

void hb_json_put_known(struct hb_json *j, const char *key, int64_t value)
{
    hb_json_key(j, key);
    if (value < 0)
        hb_json_null(j);
    else
        hb_json_int(j, value);
}
