/* A tree as YAML text: see yaml.h. Maps and lists of scalars that fit a line are written in
 * flow style, others one child a line, two spaces deeper. */
#include "base/yaml.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/json_write.h"

enum { LINE_COLUMNS = 100 };

/* Letters, digits and a few signs, beginning with a letter or digit: never special in YAML. */
static bool plain_text(const char *text)
{
    if (!isalnum((unsigned char)text[0]))
        return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-./+", *c))
            return false;
    return true;
}

/* Whether a plain scalar of this text would be taken for something else than text. */
static bool means_more(const char *text)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n",   NULL};
    if (isdigit((unsigned char)text[0]))
        return true;
    for (int i = 0; words[i]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static void write_text(struct hb_str *out, const char *text)
{
    if (plain_text(text) && !means_more(text))
        hb_str_add(out, text);
    else
        hb_json_quote(out, text);
}

/* A plain scalar stays plain where its type hangs on it; other text is quoted where it must be. */
static void write_scalar(struct hb_str *out, const struct hb_node *node)
{
    double number;
    if (hb_node_is_null(node))
        hb_str_add(out, "null");
    else if (!node->quoted && (plain_text(node->text) || hb_node_real(node, &number)))
        hb_str_add(out, node->text);
    else
        write_text(out, node->text);
}

static void write_flow(struct hb_str *out, const struct hb_node *node)
{
    if (node->kind == HB_NODE_SCALAR) {
        write_scalar(out, node);
        return;
    }
    bool map = node->kind == HB_NODE_MAP;
    hb_str_add(out, map ? "{" : "[");
    for (const struct hb_node *child = node->first; child; child = child->next) {
        if (map) {
            write_text(out, child->key);
            hb_str_add(out, ": ");
        }
        write_flow(out, child);
        if (child->next)
            hb_str_add(out, ", ");
    }
    hb_str_add(out, map ? "}" : "]");
}

/* Columns that node takes in flow style; LINE_COLUMNS and more: it is to be broken up. */
static size_t flow_columns(struct hb_str *out, const struct hb_node *node)
{
    size_t before = out->len;
    write_flow(out, node);
    size_t columns = out->len - before;
    out->len = before;
    if (out->cap)
        out->text[before] = '\0';
    return columns;
}

static bool is_leaf(const struct hb_node *node)
{
    for (const struct hb_node *child = node->first; child; child = child->next)
        for (const struct hb_node *inner = child->first; inner; inner = inner->next)
            if (inner->kind != HB_NODE_SCALAR || child->kind == HB_NODE_MAP)
                return false;
    return true;
}

static void indent(struct hb_str *out, int depth)
{
    for (int i = 0; i < depth; i++)
        hb_str_add(out, "  ");
}

static void write_block(struct hb_str *out, const struct hb_node *node, int depth, bool hanging);

/* What follows "key:" or "-", which end at column. */
static void write_child(struct hb_str *out, const struct hb_node *child, int depth, size_t column)
{
    bool single = child->kind == HB_NODE_SCALAR || !child->first;
    if (single || (is_leaf(child) && column + flow_columns(out, child) < LINE_COLUMNS)) {
        hb_str_add(out, " ");
        write_flow(out, child);
        hb_str_add(out, "\n");
        return;
    }
    bool hanging = !child->key && child->kind == HB_NODE_MAP;
    hb_str_add(out, hanging ? " " : "\n");
    write_block(out, child, depth + 1, hanging);
}

/* Children one a line; hanging: the first goes on in the line of its "-". */
static void write_block(struct hb_str *out, const struct hb_node *node, int depth, bool hanging)
{
    for (const struct hb_node *child = node->first; child; child = child->next) {
        size_t line = out->len;
        if (!hanging || child != node->first)
            indent(out, depth);
        if (node->kind == HB_NODE_MAP) {
            write_text(out, child->key);
            hb_str_add(out, ":");
        } else {
            hb_str_add(out, "-");
        }
        write_child(out, child, depth, out->len - line);
    }
}

void hb_yaml_write(struct hb_str *out, const struct hb_node *root)
{
    if (root->kind != HB_NODE_SCALAR && root->first) {
        write_block(out, root, 0, false);
        return;
    }
    write_flow(out, root);
    hb_str_add(out, "\n");
}
