/* One pass over the text: the head, tables of the user's source, computations. Computations mostly
 * stand above those that call them; where they do not, link.c puts them there, so that calls cannot
 * go in circles. */
#include "sim/hlo/module.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/hlo/reader.h"

struct hb_loc hb_hlo_place(const struct hb_hlo_reader *r, const char *at)
{
    return hb_hlo_text_loc(&r->m->text, at);
}

int hb_hlo_shown(struct hb_hlo_span span)
{
    enum { MOST = 60 };
    return span.len < MOST ? (int)span.len : MOST;
}

bool hb_hlo_fail(struct hb_hlo_reader *r, const char *at, const char *what)
{
    if (at >= r->lex.end)
        return hb_error(r->diag, hb_hlo_place(r, r->lex.end), "the file ends too early: %s", what);
    return hb_error(r->diag, hb_hlo_place(r, at), "%s", what);
}

uint32_t hb_hlo_hash_name(struct hb_hlo_span name)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ name.len;
    size_t i = 0;
    for (; i + 8 <= name.len; i += 8) {
        uint64_t eight;
        memcpy(&eight, name.at + i, sizeof eight);
        hash = (hash ^ eight) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 31);
}

uint32_t *hb_hlo_find_comp(struct hb_hlo_reader *r, struct hb_hlo_span name)
{
    uint32_t mask = r->comp_name_cap - 1;
    for (uint32_t i = hb_hlo_hash_name(name) & mask;; i = (i + 1) & mask) {
        uint32_t at = r->comp_names[i];
        if (!at || hb_hlo_same_text(r->m->comps[at - 1].name, name))
            return &r->comp_names[i];
    }
}

/* ---- computations ---- */

/* Parameters by number: each once, none left out. */
static bool list_params(struct hb_hlo_reader *r, struct hb_hlo_comp *comp)
{
    struct hb_hlo_module *m = r->m;
    comp->params_at = m->param_count;
    for (uint32_t i = 0; i < comp->inst_count; i++)
        comp->param_count += m->insts[comp->first_inst + i].op == HB_HLO_OP_PARAMETER;
    for (uint32_t i = 0; i < comp->param_count; i++) {
        m->params = hb_grow(m->arena, m->params, m->param_count, &m->param_cap, sizeof *m->params);
        m->params[m->param_count++] = HB_NONE;
    }
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++) {
        const struct hb_hlo_inst *inst = &m->insts[i];
        if (inst->op != HB_HLO_OP_PARAMETER)
            continue;
        if (inst->number >= comp->param_count ||
            m->params[comp->params_at + inst->number] != HB_NONE)
            return hb_error(r->diag, hb_hlo_place(r, m->text.bytes + inst->name_at),
                            "parameter(%u) is out of range or there twice", inst->number);
        m->params[comp->params_at + inst->number] = i;
    }
    return true;
}

/* `, key=value` behind a head or a computation; what is told is given to note, which may be null.
 */
static bool read_pairs(struct hb_hlo_reader *r,
                       bool (*note)(struct hb_hlo_reader *r, struct hb_hlo_span key,
                                    struct hb_hlo_span value))
{
    while (hb_hlo_take(&r->lex, ',')) {
        struct hb_hlo_span key, value;
        const char *at = r->lex.at;
        if (!hb_hlo_take_attr(&r->lex, &key, &value))
            return hb_hlo_fail(r, r->lex.at >= r->lex.end ? r->lex.end : at,
                               "an attribute is wanted here, as in key=value");
        if (note && !note(r, key, value))
            return false;
    }
    return true;
}

static bool close_comp(struct hb_hlo_reader *r)
{
    struct hb_hlo_comp *comp = &r->m->comps[r->m->comp_count - 1];
    if (comp->root == HB_NONE)
        comp->root = comp->first_inst + comp->inst_count - 1;
    return list_params(r, comp);
}

/* Instructions up to behind the closing brace. */
static bool read_body(struct hb_hlo_reader *r)
{
    for (;;) {
        hb_hlo_skip_space(&r->lex);
        if (r->lex.at >= r->lex.end)
            return hb_hlo_fail(r, r->lex.end, "a computation is not closed by '}'");
        if (*r->lex.at == '}')
            break;
        if (!hb_hlo_read_inst(r))
            return false;
    }
    if (!r->m->comps[r->m->comp_count - 1].inst_count)
        return hb_hlo_fail(r, r->lex.at, "this computation has no instructions");
    r->lex.at++;
    return close_comp(r);
}

static void push_comp(struct hb_hlo_reader *r, struct hb_hlo_comp comp)
{
    struct hb_hlo_module *m = r->m;
    m->comps = hb_grow(m->arena, m->comps, m->comp_count, &m->comp_cap, sizeof *m->comps);
    m->comps[m->comp_count++] = comp;
    hb_hlo_begin_names(r);
}

static bool add_comp(struct hb_hlo_reader *r, struct hb_hlo_span name)
{
    struct hb_hlo_module *m = r->m;
    push_comp(r, (struct hb_hlo_comp){.name = name, .first_inst = m->inst_count, .root = HB_NONE});
    if (m->comp_count * 2 > r->comp_name_cap) {
        r->comp_name_cap = r->comp_name_cap ? r->comp_name_cap * 2 : 256;
        r->comp_names = hb_arena_alloc(m->arena, r->comp_name_cap, sizeof *r->comp_names);
        for (uint32_t i = 0; i + 1 < m->comp_count; i++)
            if (!m->comps[i].nameless)
                *hb_hlo_find_comp(r, m->comps[i].name) = i + 1;
    }
    uint32_t *slot = hb_hlo_find_comp(r, name);
    if (*slot)
        return hb_error(r->diag, hb_hlo_place(r, name.at), "computation '%.*s' is there twice",
                        hb_hlo_shown(name), name.at);
    *slot = m->comp_count;
    return true;
}

/* Computations written in braces where a name might stand: read behind the one that holds them.
 * They may hold others. */
static bool read_inner(struct hb_hlo_reader *r)
{
    struct hb_hlo_lex outer = r->lex;
    for (; r->bodies_read < r->pending_count; r->bodies_read++) {
        struct hb_hlo_pending *p = &r->pending[r->bodies_read];
        if (!p->body)
            continue;
        p->comp = r->m->comp_count;
        push_comp(r, (struct hb_hlo_comp){.name = {p->text.at, 0},
                                          .first_inst = r->m->inst_count,
                                          .root = HB_NONE,
                                          .nameless = true});
        r->lex = (struct hb_hlo_lex){p->text.at + 1, p->text.at + p->text.len};
        if (!read_body(r))
            return false;
    }
    r->lex = outer;
    return true;
}

/* `(parameters) -> result`: told again by the instructions. */
static bool skip_signature(struct hb_hlo_reader *r)
{
    struct hb_hlo_lex *lex = &r->lex;
    hb_hlo_skip_space(lex);
    if (lex->at >= lex->end || *lex->at != '(')
        return true;
    const char *first = lex->at;
    if (!hb_hlo_skip_brackets(lex) || !hb_hlo_take(lex, '-') || !hb_hlo_take(lex, '>'))
        return false;
    hb_hlo_skip_space(lex);
    return hb_hlo_shape_skip(lex) && lex->at > first;
}

/* `[ENTRY] %name [(parameters) -> result] { instructions }`. */
static bool read_comp(struct hb_hlo_reader *r)
{
    struct hb_hlo_module *m = r->m;
    const char *first = r->lex.at;
    struct hb_hlo_span name = hb_hlo_take_name(&r->lex);
    bool entry = *first != '%' && hb_hlo_span_is(name, "ENTRY");
    if (hb_hlo_span_is(name, "HloModule"))
        return hb_hlo_fail(r, first, "another module begins here; one is read at a time");
    if (entry) {
        hb_hlo_skip_space(&r->lex);
        name = hb_hlo_take_name(&r->lex);
    }
    if (r->lex.at < r->lex.end && *r->lex.at == ':')
        r->lex.at++;
    if (!name.len || !skip_signature(r) || !hb_hlo_take(&r->lex, '{'))
        return hb_hlo_fail(r, r->lex.at < r->lex.end ? first : r->lex.end,
                           "a computation is wanted here, as in %name (p: f32[8]) -> f32[8] {");
    if (entry && r->has_entry)
        return hb_hlo_fail(r, first, "a module has one ENTRY");
    if (!add_comp(r, name))
        return false;
    if (entry) {
        m->entry = m->comp_count - 1;
        m->partitioned = hb_hlo_span_find(name, "_spmd") != NULL;
        r->has_entry = true;
    }
    uint32_t comp = m->comp_count;
    if (!read_body(r) || !read_pairs(r, NULL) || !read_inner(r))
        return false;
    if (!r->has_entry)
        m->entry = comp - 1; /* the last one, where none is marked */
    return true;
}

/* ---- the module's head ---- */

/* `{ {0}: (0, {}, may-alias), {1}: (2, {1}, must-alias) }` */
static bool read_donations(struct hb_hlo_module *m, struct hb_hlo_span value)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(value);
    if (!hb_hlo_take(&lex, '{'))
        return false;
    while (!hb_hlo_take(&lex, '}')) {
        struct hb_hlo_donation d = {.param = 0};
        int64_t param;
        if (!hb_hlo_take_path(&lex, d.out_path, &d.out_len) || !hb_hlo_take(&lex, ':') ||
            !hb_hlo_take(&lex, '(') || !hb_hlo_take_int(&lex, &param) || param >= INT32_MAX ||
            !hb_hlo_take(&lex, ',') || !hb_hlo_take_path(&lex, d.param_path, &d.param_len))
            return false;
        d.param = (uint32_t)param;
        if (hb_hlo_take(&lex, ',')) {
            hb_hlo_skip_space(&lex);
            hb_hlo_take_name(&lex);
        }
        if (!hb_hlo_take(&lex, ')'))
            return false;
        m->donations = hb_grow(m->arena, m->donations, m->donation_count, &m->donation_cap,
                               sizeof *m->donations);
        m->donations[m->donation_count++] = d;
        hb_hlo_take(&lex, ',');
    }
    return true;
}

static bool note_head(struct hb_hlo_reader *r, struct hb_hlo_span key, struct hb_hlo_span value)
{
    struct hb_hlo_module *m = r->m;
    struct hb_hlo_lex number = hb_hlo_lex_span(value);
    if (hb_hlo_span_is(key, "is_scheduled"))
        m->scheduled = hb_hlo_span_is(value, "true");
    else if (hb_hlo_span_is(key, "num_partitions"))
        hb_hlo_take_int(&number, &m->partitions);
    else if (hb_hlo_span_is(key, "input_output_alias") && !read_donations(m, value))
        return hb_hlo_fail(r, value.at, "input_output_alias={ {output}: (parameter, {path}), ...}");
    return true;
}

/* A text that is one instruction, with a name or without: the only one of its computation. */
static bool read_single(struct hb_hlo_reader *r, struct hb_hlo_span name, bool named)
{
    struct hb_hlo_module *m = r->m;
    if (!add_comp(r, name) || !hb_hlo_read_single(r, named) || !close_comp(r))
        return false;
    m->name = m->comps[0].name = hb_hlo_name_of(m, m->comps[0].root);
    return read_inner(r);
}

/* `HloModule name, key=value, ...`, or a computation or an instruction at once. */
static bool read_head(struct hb_hlo_reader *r)
{
    struct hb_hlo_module *m = r->m;
    m->partitions = 1;
    hb_hlo_skip_space(&r->lex);
    const char *first = r->lex.at;
    struct hb_hlo_span word = hb_hlo_take_name(&r->lex);
    hb_hlo_skip_space(&r->lex);
    bool head = hb_hlo_span_is(word, "HloModule"), entry = hb_hlo_span_is(word, "ENTRY");
    bool root = hb_hlo_span_is(word, "ROOT");
    struct hb_hlo_span name = head || entry || root ? hb_hlo_take_name(&r->lex) : word;
    if (r->lex.at < r->lex.end && *r->lex.at == ':')
        r->lex.at++;
    hb_hlo_skip_space(&r->lex);
    char next = r->lex.at < r->lex.end ? *r->lex.at : '\0';
    if (!head && !entry && (name.len ? next == '=' || next == '[' : next == '(')) {
        r->lex.at = first;
        return read_single(r, name, next == '=');
    }
    if (!name.len || (!head && next != '(' && next != '{'))
        return hb_hlo_fail(r, r->lex.at >= r->lex.end ? r->lex.end : first,
                           "an HLO text begins with 'HloModule NAME' or a computation (a proto or "
                           "StableHLO is not read)");
    m->name = name;
    if (head)
        return read_pairs(r, note_head);
    r->lex.at = first;
    return true;
}

/* ---- tables of the user's source ---- */

/* The value of `key=` in a row, or 0. */
static int64_t find_field(struct hb_hlo_span row, const char *key)
{
    const char *at = hb_hlo_span_find(row, key);
    int64_t value = 0;
    if (at) {
        struct hb_hlo_lex lex = {at + strlen(key), row.at + row.len};
        hb_hlo_take_int(&lex, &value);
    }
    return value;
}

static uint32_t find_index(struct hb_hlo_span row, const char *key)
{
    int64_t value = find_field(row, key);
    return value < INT32_MAX ? (uint32_t)value : 0;
}

static void add_row(struct hb_hlo_module *m, char table, struct hb_hlo_span row)
{
    if (table == 'i') { /* FileNames */
        const char *open = hb_hlo_span_find(row, "\"");
        struct hb_hlo_span name = {0};
        if (open && row.at[row.len - 1] == '"' && row.at + row.len - 1 > open)
            name = (struct hb_hlo_span){open + 1, (size_t)(row.at + row.len - 2 - open)};
        m->files = hb_grow(m->arena, m->files, m->file_count, &m->file_cap, sizeof *m->files);
        m->files[m->file_count++] = name;
    } else if (table == 'L') { /* FileLocations */
        m->locations = hb_grow(m->arena, m->locations, m->location_count, &m->location_cap,
                               sizeof *m->locations);
        m->locations[m->location_count++] =
            (struct hb_hlo_frame){find_index(row, "file_name_id="), find_field(row, " line="), 0};
    } else if (table == 'S') { /* StackFrames */
        m->frames = hb_grow(m->arena, m->frames, m->frame_count, &m->frame_cap, sizeof *m->frames);
        m->frames[m->frame_count++] = (struct hb_hlo_frame){find_index(row, "file_location_id="), 0,
                                                            find_index(row, "parent_frame_id=")};
    }
}

/* A heading alone in its line, then rows that begin with their number; false if none is here. */
static bool read_table(struct hb_hlo_reader *r)
{
    static const struct {
        const char *heading;
        char table;
    } tables[] = {
        {"FileNames", 'i'}, {"FunctionNames", 'f'}, {"FileLocations", 'L'}, {"StackFrames", 'S'}};
    struct hb_hlo_lex lex = r->lex;
    struct hb_hlo_span word = hb_hlo_take_name(&lex);
    char table = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (hb_hlo_span_is(word, tables[i].heading))
            table = tables[i].table;
    hb_hlo_skip_blanks(&lex);
    if (!table || (lex.at < lex.end && *lex.at != '\n'))
        return false;
    for (;;) {
        hb_hlo_skip_space(&lex);
        if (lex.at >= lex.end || *lex.at < '0' || *lex.at > '9')
            break;
        const char *line_end = memchr(lex.at, '\n', (size_t)(lex.end - lex.at));
        line_end = line_end ? line_end : lex.end;
        add_row(r->m, table, (struct hb_hlo_span){lex.at, (size_t)(line_end - lex.at)});
        lex.at = line_end;
    }
    r->lex.at = lex.at;
    return true;
}

bool hb_hlo_module_read(struct hb_arena *arena, struct hb_diag *diag,
                        const struct hb_hlo_text *text, struct hb_hlo_module *out_module)
{
    struct hb_hlo_reader *r = hb_arena_alloc(arena, 1, sizeof *r);
    struct hb_hlo_module *m = hb_arena_alloc(arena, 1, sizeof *m);
    *r = (struct hb_hlo_reader){
        .m = m, .diag = diag, .lex = {text->bytes + text->from, text->bytes + text->len}};
    *m = (struct hb_hlo_module){.arena = arena, .text = *text};
    hb_hlo_shapes_init(&m->shapes, arena);
    if (!read_head(r))
        return false;
    for (;;) {
        hb_hlo_skip_space(&r->lex);
        if (r->lex.at >= r->lex.end)
            break;
        if (!read_table(r) && !read_comp(r))
            return false;
    }
    if (!m->comp_count)
        return hb_hlo_fail(r, r->lex.end, "the module has no computations");
    if (r->pending_count && !hb_hlo_link(r))
        return false;
    if (!m->scheduled)
        hb_hlo_copy_outputs(m);
    m->dialect = hb_hlo_dialect_guess(m);
    *out_module = *m;
    return true;
}
