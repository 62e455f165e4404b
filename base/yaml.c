/* libyaml's events made into a tree: see yaml.h. libyaml 0.2.5 counts lines and columns from 0
 * and accepts duplicate keys and any depth (both tried). An alias becomes a copy of what it
 * names, which counts as nodes, so that the limit on nodes bounds what aliases can blow up. */
#include "base/yaml.h"

#include <stdint.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/owned.h"
#include "base/utf8.h"

enum { MAX_ANCHORS = 1000 };

struct anchor {
    const char *name;
    const struct hb_node *node;
    bool complete; /* its end was seen: an alias cannot hold itself */
};

struct reader {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *name;
    yaml_parser_t parser;
    struct anchor *anchors;
    uint32_t anchor_count;
    uint32_t anchor_cap;
    int nodes;
    bool loose;
};

/* Of libyaml, until end_event. */
struct event {
    yaml_event_t e;
    struct hb_owned owned;
};

static bool read_node(struct reader *r, const yaml_event_t *event, int depth,
                      struct hb_node **out_node);

static struct hb_loc place(const struct reader *r, yaml_mark_t mark)
{
    return (struct hb_loc){r->name, (int)mark.line + 1, (int)mark.column + 1};
}

static bool fail_parser(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        hb_die("out of memory in libyaml");
    const char *problem = p->problem ? p->problem : "unknown fault";
    struct hb_loc loc = place(r, p->problem_mark);
    if (p->error == YAML_READER_ERROR)
        loc = (struct hb_loc){.file = r->name};
    if (p->context)
        return hb_error(r->diag, loc, "not YAML: %s, %s", p->context, problem);
    return hb_error(r->diag, loc, "not YAML: %s", problem);
}

static void drop_event(void *event)
{
    yaml_event_delete(event);
}

static bool next_event(struct reader *r, struct event *event)
{
    if (!yaml_parser_parse(&r->parser, &event->e))
        return fail_parser(r);
    hb_own(&event->owned, drop_event, &event->e);
    return true;
}

static void end_event(struct event *event)
{
    hb_disown(&event->owned);
    yaml_event_delete(&event->e);
}

static bool count_node(struct reader *r, struct hb_loc loc, int depth)
{
    if (depth >= HB_NODE_MAX_DEPTH)
        return hb_error(r->diag, loc, "nested deeper than %d levels", HB_NODE_MAX_DEPTH);
    if (++r->nodes > HB_NODE_MAX_COUNT)
        return hb_error(r->diag, loc, "more than %d values, aliases expanded", HB_NODE_MAX_COUNT);
    return true;
}

/* Remembers an anchor; *out_index is where, or UINT32_MAX for none. */
static bool add_anchor(struct reader *r, const yaml_char_t *name, const struct hb_node *node,
                       uint32_t *out_index)
{
    *out_index = UINT32_MAX;
    if (!name)
        return true;
    if (r->anchor_count == MAX_ANCHORS)
        return hb_error(r->diag, node->loc, "more than %d anchors", MAX_ANCHORS);
    r->anchors = hb_grow(r->arena, r->anchors, r->anchor_count, &r->anchor_cap, sizeof *r->anchors);
    const char *copy = hb_arena_strdup(r->arena, (const char *)name);
    r->anchors[r->anchor_count] = (struct anchor){copy, node, false};
    *out_index = r->anchor_count++;
    return true;
}

static void complete_anchor(struct reader *r, uint32_t index)
{
    if (index != UINT32_MAX)
        r->anchors[index].complete = true;
}

/* A copy within the limits; alias is where the copy is asked for. */
static bool copy_tree(struct reader *r, struct hb_loc alias, const struct hb_node *from, int depth,
                      struct hb_node **out_node)
{
    if (!count_node(r, alias, depth))
        return false;
    struct hb_node *copy = hb_node_new(r->arena, from->kind, from->loc);
    copy->text = from->text;
    copy->quoted = from->quoted;
    for (const struct hb_node *child = from->first; child; child = child->next) {
        struct hb_node *c = NULL;
        if (!copy_tree(r, alias, child, depth + 1, &c))
            return false;
        c->key = child->key;
        c->key_loc = child->key_loc;
        hb_node_append(copy, c);
    }
    *out_node = copy;
    return true;
}

static bool read_alias(struct reader *r, const yaml_event_t *event, int depth,
                       struct hb_node **out_node)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct hb_loc loc = place(r, event->start_mark);
    for (uint32_t i = r->anchor_count; i-- > 0;) {
        if (!hb_str_same(r->anchors[i].name, name))
            continue;
        if (!r->anchors[i].complete)
            return hb_error(r->diag, loc, "alias '*%s' stands within what it names", name);
        return copy_tree(r, loc, r->anchors[i].node, depth, out_node);
    }
    return hb_error(r->diag, loc, "alias '*%s' has no anchor '&%s' before it", name, name);
}

/* The tags of JSON's types change nothing except !!str, which makes text of a plain scalar. */
static bool read_tag(struct reader *r, struct hb_loc loc, const yaml_char_t *tag, bool *out_text)
{
    static const char *const known[] = {YAML_NULL_TAG, YAML_BOOL_TAG, YAML_INT_TAG, YAML_FLOAT_TAG,
                                        YAML_SEQ_TAG,  YAML_MAP_TAG,  YAML_STR_TAG, "!"};
    *out_text = tag && hb_str_same((const char *)tag, YAML_STR_TAG);
    if (!tag)
        return true;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (hb_str_same((const char *)tag, known[i]))
            return true;
    struct hb_node shown = {.kind = HB_NODE_SCALAR, .quoted = true, .text = (const char *)tag};
    return hb_error(r->diag, loc, "tag %s is not known; leave it out",
                    hb_node_show(r->arena, &shown));
}

static bool read_scalar(struct reader *r, const yaml_event_t *event, struct hb_node **out_node)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    struct hb_loc loc = place(r, event->start_mark);
    bool text = false;
    uint32_t anchor = 0;
    if (!read_tag(r, loc, event->data.scalar.tag, &text))
        return false;
    if (memchr(value, 0, len))
        return hb_error(r->diag, loc, "the text holds the character U+0000");
    text = text || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    *out_node = hb_node_scalar(r->arena, loc, hb_arena_strndup(r->arena, value, len), text);
    if (!add_anchor(r, event->data.scalar.anchor, *out_node, &anchor))
        return false;
    complete_anchor(r, anchor);
    return true;
}

static bool is_merge(const char *key)
{
    return hb_str_same(key, "<<");
}

/* The value after a key, and both into map. */
static bool read_member(struct reader *r, const yaml_event_t *key_event, int depth,
                        struct hb_node *map)
{
    struct hb_node *key = NULL;
    struct hb_node *value = NULL;
    struct event event;
    if (!read_node(r, key_event, depth, &key))
        return false;
    if (key->kind != HB_NODE_SCALAR)
        return hb_error(r->diag, key->loc, "%s stands where a key is wanted",
                        hb_node_show(r->arena, key));
    if (is_merge(key->text) && !key->quoted && !r->loose)
        return hb_error(r->diag, key->loc, "merge keys ('<<') are not read; write the keys out");
    if (!next_event(r, &event))
        return false;
    bool ok = read_node(r, &event.e, depth, &value);
    end_event(&event);
    if (!ok)
        return false;
    value->key = key->text;
    value->key_loc = place(r, key_event->start_mark);
    hb_node_append(map, value);
    return true;
}

/* What a map under "<<" has and map has not. */
static void merge(struct hb_node *map, const struct hb_node *from)
{
    for (struct hb_node *n = from->kind == HB_NODE_MAP ? from->first : NULL, *next; n; n = next) {
        next = n->next;
        n->next = NULL;
        if (!hb_node_find(map, n->key))
            hb_node_append(map, n);
    }
}

/* Of a key that is written twice the last counts; "<<" holds one map or several. */
static bool settle_keys(struct reader *r, struct hb_node *map)
{
    enum { MOST_KEYS = 2000 };
    struct hb_node *rest = map->first;
    if (!r->loose || map->count > MOST_KEYS)
        return hb_node_check_keys(r->arena, r->diag, map);
    struct hb_node *merged = hb_node_new(r->arena, HB_NODE_LIST, map->loc);
    map->first = map->last = NULL;
    map->count = 0;
    for (struct hb_node *n = rest, *next; n; n = next) {
        next = n->next;
        n->next = NULL;
        if (is_merge(n->key))
            hb_node_append(merged, n);
        else
            hb_node_put(map, n->key, n->key_loc, n);
    }
    for (struct hb_node *m = merged->first; m; m = m->next) {
        merge(map, m);
        for (const struct hb_node *n = m->kind == HB_NODE_LIST ? m->first : NULL; n; n = n->next)
            merge(map, n);
    }
    return map->count <= MOST_KEYS ||
           hb_error(r->diag, map->loc, "more than %d keys, merged ones counted", (int)MOST_KEYS);
}

static bool read_children(struct reader *r, struct hb_node *node, int depth)
{
    bool map = node->kind == HB_NODE_MAP;
    yaml_event_type_t last = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    for (;;) {
        struct event event;
        if (!next_event(r, &event))
            return false;
        bool end = event.e.type == last;
        bool ok = true;
        struct hb_node *item = NULL;
        if (!end && map) {
            ok = read_member(r, &event.e, depth, node);
        } else if (!end) {
            ok = read_node(r, &event.e, depth, &item);
            if (ok)
                hb_node_append(node, item);
        }
        end_event(&event);
        if (!ok)
            return false;
        if (end)
            return !map || settle_keys(r, node);
    }
}

static bool read_collection(struct reader *r, const yaml_event_t *event, int depth,
                            struct hb_node **out_node)
{
    bool map = event->type == YAML_MAPPING_START_EVENT;
    struct hb_loc loc = place(r, event->start_mark);
    const yaml_char_t *tag = map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *name =
        map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    bool text = false;
    uint32_t anchor = 0;
    struct hb_node *node = hb_node_new(r->arena, map ? HB_NODE_MAP : HB_NODE_LIST, loc);
    if (!read_tag(r, loc, tag, &text) || !add_anchor(r, name, node, &anchor))
        return false;
    if (!read_children(r, node, depth + 1))
        return false;
    complete_anchor(r, anchor);
    *out_node = node;
    return true;
}

static bool read_node(struct reader *r, const yaml_event_t *event, int depth,
                      struct hb_node **out_node)
{
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(r, event, depth, out_node);
    if (!count_node(r, place(r, event->start_mark), depth))
        return false;
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(r, event, out_node);
    return read_collection(r, event, depth, out_node);
}

/* From the start of the stream to its end: one document. */
static bool read_stream(struct reader *r, struct hb_node **out_root)
{
    for (;;) {
        struct event event;
        if (!next_event(r, &event))
            return false;
        yaml_event_type_t type = event.e.type;
        struct hb_loc loc = place(r, event.e.start_mark);
        bool ok = true;
        if (type == YAML_DOCUMENT_START_EVENT && *out_root)
            ok = hb_error(r->diag, loc, "a second document begins; one file holds one");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
            ok = read_node(r, &event.e, 0, out_root);
        end_event(&event);
        if (!ok)
            return false;
        if (type == YAML_STREAM_END_EVENT)
            return true;
    }
}

/* JSON in full, which libyaml does not know (pairs of \u escapes), and faster. */
static bool read_json(struct hb_arena *arena, const char *name, const char *text, size_t len,
                      struct hb_node **out_root)
{
    size_t at = strspn(text, " \t\r\n");
    if (text[at] != '{')
        return false;
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct hb_diag unheard;
    hb_diag_init(&unheard, arena);
    if (hb_json_parse(arena, &unheard, (struct hb_loc){name, 1, 1}, text, len, out_root))
        return true;
    hb_arena_rewind(arena, mark);
    return false;
}

static void drop_parser(void *parser)
{
    yaml_parser_delete(parser);
}

static bool parse(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                  struct hb_text content, bool loose, struct hb_node **out_root)
{
    const char *text = content.text;
    size_t len = content.len;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    struct hb_node *root = NULL;
    if (!hb_utf8_check(diag, (struct hb_loc){name, 1, 1}, text, len))
        return false;
    if (read_json(arena, name, text, len, out_root))
        return true;
    struct reader r = {.arena = arena, .diag = diag, .name = name, .loose = loose};
    if (!yaml_parser_initialize(&r.parser))
        hb_die("out of memory in libyaml");
    struct hb_owned owned;
    hb_own(&owned, drop_parser, &r.parser);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    bool ok = read_stream(&r, &root);
    hb_disown(&owned);
    yaml_parser_delete(&r.parser);
    if (ok && (!root || hb_node_is_null(root)))
        ok = hb_error(diag, (struct hb_loc){.file = name}, "is empty; it holds no key");
    if (ok)
        *out_root = root;
    return ok;
}

bool hb_yaml_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root)
{
    return parse(arena, diag, name, (struct hb_text){.text = text, .len = len}, false, out_root);
}

bool hb_yaml_parse_loose(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                         const char *text, size_t len, struct hb_node **out_root)
{
    return parse(arena, diag, name, (struct hb_text){.text = text, .len = len}, true, out_root);
}

bool hb_yaml_read_file(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                       struct hb_node **out_root)
{
    struct hb_text content;
    const char *name;
    if (!hb_file_read(arena, diag, path, &content, &name))
        return false;
    return hb_yaml_parse(arena, diag, name, content.text, content.len, out_root);
}
