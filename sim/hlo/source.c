/* Questions to the text beside the instructions: attributes, metadata, the user's source. */
#include "sim/hlo/module.h"

#include <string.h>

struct hb_hlo_span hb_hlo_attr_of(const struct hb_hlo_module *m, const struct hb_hlo_inst *at,
                                  const char *key)
{
    struct hb_hlo_span attrs = {m->text.bytes + at->attrs_at, at->attrs_len};
    struct hb_hlo_span none = {0}, name, value;
    if (!hb_hlo_span_find(attrs, key))
        return none;
    struct hb_hlo_lex lex = hb_hlo_lex_span(attrs);
    while (hb_hlo_take(&lex, ',')) {
        if (!hb_hlo_take_attr(&lex, &name, &value))
            return none;
        if (hb_hlo_span_is(name, key))
            return value;
    }
    return none;
}

struct hb_hlo_span hb_hlo_attr(const struct hb_hlo_module *m, uint32_t inst, const char *key)
{
    return hb_hlo_attr_of(m, &m->insts[inst], key);
}

struct hb_hlo_span hb_hlo_constant(const struct hb_hlo_module *m, uint32_t inst)
{
    const struct hb_hlo_inst *at = &m->insts[inst];
    const char *name = m->text.bytes + at->name_at;
    struct hb_hlo_span line = {name, at->attrs_at - at->name_at};
    struct hb_hlo_span none = {0};
    if (at->op != HB_HLO_OP_CONSTANT)
        return none;
    /* Its name may be the like, but is not followed by a bracket, unless it is the word itself. */
    const char *open = hb_hlo_span_find(line, "constant(");
    return open ? (struct hb_hlo_span){open + 9, (size_t)(name + line.len - open - 9)} : none;
}

/* A string without its quotes, or a word; at null: something in brackets, passed over. */
static struct hb_hlo_span take_value(struct hb_hlo_lex *lex)
{
    const char *first = lex->at, *end = lex->end;
    struct hb_hlo_span none = {0};
    if (first < end && *first == '"') {
        const char *at = first + 1;
        while (at < end && *at != '"')
            at += *at == '\\' ? 2 : 1;
        lex->at = at < end ? at + 1 : end;
        return (struct hb_hlo_span){first + 1, at < end ? (size_t)(at - first - 1) : 0};
    }
    if (first < end && (*first == '{' || *first == '[')) {
        hb_hlo_skip_brackets(lex);
        return none;
    }
    hb_hlo_take_name(lex);
    return (struct hb_hlo_span){first, (size_t)(lex->at - first)};
}

struct hb_hlo_span hb_hlo_metadata(const struct hb_hlo_module *m, uint32_t inst, const char *key)
{
    struct hb_hlo_span metadata = hb_hlo_attr(m, inst, "metadata"), none = {0};
    if (metadata.len < 2)
        return none;
    struct hb_hlo_lex lex = {metadata.at + 1, metadata.at + metadata.len - 1};
    for (;;) {
        hb_hlo_skip_space(&lex);
        struct hb_hlo_span name = hb_hlo_take_name(&lex);
        if (!name.len || !hb_hlo_take(&lex, '='))
            return none;
        struct hb_hlo_span value = take_value(&lex);
        if (value.at && hb_hlo_span_is(name, key))
            return value;
        hb_hlo_take(&lex, ',');
    }
}

/* The frame's place; the innermost frame is the one that the compiler names. */
static bool find_frame(const struct hb_hlo_module *m, int64_t frame, struct hb_hlo_span *out_file,
                       int64_t *out_line)
{
    if (frame < 1 || frame > m->frame_count)
        return false;
    uint32_t location = m->frames[frame - 1].file;
    if (location < 1 || location > m->location_count)
        return false;
    const struct hb_hlo_frame *at = &m->locations[location - 1];
    if (at->file < 1 || at->file > m->file_count)
        return false;
    *out_file = m->files[at->file - 1];
    *out_line = at->line;
    return out_file->at != NULL;
}

bool hb_hlo_source(const struct hb_hlo_module *m, uint32_t inst, struct hb_hlo_span *out_file,
                   int64_t *out_line)
{
    int64_t number = 0;
    struct hb_hlo_span file = hb_hlo_metadata(m, inst, "source_file");
    if (file.at && file.len) {
        struct hb_hlo_lex line = hb_hlo_lex_span(hb_hlo_metadata(m, inst, "source_line"));
        *out_file = file;
        *out_line = line.at && hb_hlo_take_int(&line, &number) ? number : 0;
        return true;
    }
    struct hb_hlo_span id = hb_hlo_metadata(m, inst, "stack_frame_id");
    struct hb_hlo_lex lex = hb_hlo_lex_span(id);
    return id.at && hb_hlo_take_int(&lex, &number) && find_frame(m, number, out_file, out_line);
}

bool hb_hlo_take_path(struct hb_hlo_lex *lex, uint32_t *path, uint32_t *out_len)
{
    *out_len = 0;
    if (!hb_hlo_take(lex, '{'))
        return false;
    while (!hb_hlo_take(lex, '}')) {
        int64_t step;
        if (*out_len == HB_HLO_MAX_PATH || !hb_hlo_take_int(lex, &step) || step >= INT32_MAX)
            return false;
        path[(*out_len)++] = (uint32_t)step;
        hb_hlo_take(lex, ',');
    }
    return true;
}

uint32_t hb_hlo_numbers(struct hb_hlo_span span, int64_t *out, uint32_t max)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(span);
    uint32_t count = 0;
    bool minus = false;
    while (span.at && lex.at < lex.end && count < max) {
        int64_t value;
        if (*lex.at >= '0' && *lex.at <= '9') {
            if (!hb_hlo_take_int(&lex, &value))
                return count;
            out[count++] = minus ? -value : value;
            minus = false;
        } else {
            minus = *lex.at++ == '-';
        }
    }
    return count;
}
