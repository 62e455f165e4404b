/* The stack machine of pickle, without the opcodes that run code (Lib/pickletools.py has them all):
 * see pickle.h. Lists and maps grow by doubling; their room follows from their count. */
#include "base/pickle.h"

#include <string.h>

#include "base/arena.h"
#include "base/str.h"

enum op {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_REDUCE = 'R',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_APPEND = 'a',
    OP_GLOBAL = 'c',
    OP_DICT = 'd',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_LIST = 'l',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_SETITEMS = 'u',
    OP_EMPTY_DICT = '}',
    OP_EMPTY_LIST = ']',
    OP_EMPTY_TUPLE = ')',
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2,
    OP_TUPLE3,
    OP_NEWTRUE,
    OP_NEWFALSE,
    OP_LONG1,
    OP_LONG4,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8,
    OP_BINBYTES8,
    OP_MEMOIZE = 0x94,
    OP_FRAME,
    OP_BYTEARRAY8
};

struct machine {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *path;
    const unsigned char *text;
    size_t len, at;
    size_t op_at; /* of the opcode that runs */
    struct hb_pickle *p;
    uint32_t *stack;
    uint32_t stack_count, stack_cap;
    uint32_t *marks; /* heights of the stack */
    uint32_t mark_count, mark_cap;
    uint32_t *memo; /* values */
    uint32_t memo_count, memo_cap;
    bool done;
};

static bool wrong(struct machine *m, const char *what)
{
    return hb_error(m->diag, (struct hb_loc){.file = m->path}, "pickle, byte %zu: %s", m->op_at,
                    what);
}

/* --- bytes --- */

static bool take(struct machine *m, size_t count, const unsigned char **out)
{
    if (count > m->len - m->at)
        return wrong(m, "the file ends within it");
    *out = m->text + m->at;
    m->at += count;
    return true;
}

/* A number of so many bytes, the lowest first. */
static bool take_count(struct machine *m, size_t bytes, uint64_t *out)
{
    const unsigned char *b = NULL;
    if (!take(m, bytes, &b))
        return false;
    *out = 0;
    for (size_t i = bytes; i-- > 0;)
        *out = *out << 8 | b[i];
    return true;
}

/* --- values --- */

static bool push(struct machine *m, uint32_t value)
{
    m->stack = hb_grow(m->arena, m->stack, m->stack_count, &m->stack_cap, sizeof *m->stack);
    m->stack[m->stack_count++] = value;
    return true;
}

static bool push_new(struct machine *m, struct hb_pickle_value value)
{
    struct hb_pickle *p = m->p;
    if (p->count >= HB_PICKLE_MOST_VALUES)
        return wrong(m, "more than 2^27 values");
    p->values = hb_grow(m->arena, p->values, p->count, &p->cap, sizeof *p->values);
    p->values[p->count] = value;
    return push(m, p->count++);
}

static bool push_int(struct machine *m, int64_t number)
{
    return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_INT, .is.number = number});
}

/* Above the last mark. */
static uint32_t floor_of(const struct machine *m)
{
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static bool pop(struct machine *m, uint32_t *out)
{
    if (m->stack_count <= floor_of(m))
        return wrong(m, "the stack is empty");
    *out = m->stack[--m->stack_count];
    return true;
}

/* The value below what is above the mark, or the top: of a kind. */
static bool top_of_kind(struct machine *m, enum hb_pickle_kind kind, uint32_t *out)
{
    if (m->stack_count <= floor_of(m))
        return wrong(m, "the stack is empty");
    *out = m->stack[m->stack_count - 1];
    return m->p->values[*out].kind == kind || wrong(m, "it adds to what is no list or dictionary");
}

static bool pop_mark(struct machine *m, uint32_t *out_first)
{
    if (!m->mark_count)
        return wrong(m, "there is no mark");
    *out_first = m->marks[--m->mark_count];
    return true;
}

/* --- lists and maps --- */

static uint32_t room_for(uint32_t count)
{
    uint32_t room = 4;
    if (!count)
        return 0;
    while (room < count)
        room *= 2;
    return room;
}

/* Appends words of the stack (of a map two a pair) to a value that has `before` of them. */
static void extend(struct machine *m, struct hb_pickle_value *v, uint32_t before, uint32_t first,
                   uint32_t count)
{
    uint32_t old = room_for(before), wanted = room_for(before + count);
    if (wanted > old) {
        uint32_t *items = hb_arena_raw(m->arena, wanted, sizeof *items);
        if (before)
            memcpy(items, v->is.items, before * sizeof *items);
        v->is.items = items;
    }
    if (count)
        memcpy(v->is.items + before, m->stack + first, count * sizeof *m->stack);
}

static bool push_list(struct machine *m, uint32_t first)
{
    struct hb_pickle_value v = {.kind = HB_PICKLE_LIST, .count = m->stack_count - first};
    extend(m, &v, 0, first, v.count);
    m->stack_count = first;
    return push_new(m, v);
}

/* The so many values on top. */
static bool push_tuple(struct machine *m, uint32_t count)
{
    if (m->stack_count - floor_of(m) < count)
        return wrong(m, "the stack is empty");
    return push_list(m, m->stack_count - count);
}

static bool append(struct machine *m, uint32_t first)
{
    uint32_t list = 0, count = m->stack_count - first;
    m->stack_count = first;
    if (!top_of_kind(m, HB_PICKLE_LIST, &list))
        return false;
    struct hb_pickle_value *v = &m->p->values[list];
    extend(m, v, v->count, first, count);
    v->count += count;
    return true;
}

static bool add_pairs(struct machine *m, struct hb_pickle_value *v, uint32_t first)
{
    uint32_t words = m->stack_count - first;
    if (words % 2)
        return wrong(m, "a key without a value");
    extend(m, v, 2 * v->count, first, words);
    v->count += words / 2;
    m->stack_count = first;
    return true;
}

static bool set_items(struct machine *m, uint32_t first)
{
    uint32_t map = 0, height = m->stack_count;
    m->stack_count = first;
    if (!top_of_kind(m, HB_PICKLE_MAP, &map))
        return false;
    m->stack_count = height;
    return add_pairs(m, &m->p->values[map], first);
}

static bool push_map(struct machine *m, uint32_t first)
{
    struct hb_pickle_value v = {.kind = HB_PICKLE_MAP};
    return add_pairs(m, &v, first) && push_new(m, v);
}

/* --- memo --- */

static bool put_memo(struct machine *m, uint64_t index)
{
    if (m->stack_count <= floor_of(m))
        return wrong(m, "the stack is empty");
    if (index > m->memo_count)
        return wrong(m, "a place of the memo beyond the next one");
    if (index == m->memo_count) {
        m->memo = hb_grow(m->arena, m->memo, m->memo_count, &m->memo_cap, sizeof *m->memo);
        m->memo_count++;
    }
    m->memo[index] = m->stack[m->stack_count - 1];
    return true;
}

static bool get_memo(struct machine *m, uint64_t index)
{
    if (index >= m->memo_count)
        return wrong(m, "a place of the memo that nothing was put in");
    return push(m, m->memo[index]);
}

/* --- scalars --- */

static bool push_text(struct machine *m, size_t count_bytes)
{
    uint64_t count = 0;
    const unsigned char *text = NULL;
    if (!take_count(m, count_bytes, &count))
        return false;
    if (count > UINT32_MAX)
        return wrong(m, "a text of 2^32 bytes or more");
    if (!take(m, (size_t)count, &text))
        return false;
    return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_TEXT,
                                                .count = (uint32_t)count,
                                                .is.text = (const char *)text});
}

/* Two's complement of any length. */
static bool push_long(struct machine *m, size_t count_bytes)
{
    uint64_t count = 0, number = 0;
    const unsigned char *b = NULL;
    if (!take_count(m, count_bytes, &count) || !take(m, (size_t)count, &b))
        return false;
    bool below = count && b[count - 1] & 0x80;
    bool large = false;
    for (uint64_t i = count; i-- > 0;) {
        if (i >= 8)
            large = large || b[i] != (below ? 0xff : 0);
        else
            number |= (uint64_t)b[i] << 8 * i;
    }
    if (below && count < 8)
        number |= UINT64_MAX << 8 * count;
    large = large || (count > 8 && (number >> 63) != below);
    if (large)
        return push_int(m, below ? INT64_MIN : INT64_MAX);
    int64_t value;
    memcpy(&value, &number, sizeof value);
    return push_int(m, value);
}

static bool push_small(struct machine *m, size_t bytes)
{
    uint64_t number = 0;
    if (!take_count(m, bytes, &number))
        return false;
    return push_int(m, bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

static bool push_real(struct machine *m)
{
    const unsigned char *b = NULL;
    uint64_t bits = 0;
    double real;
    if (!take(m, 8, &b))
        return false;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | b[i];
    memcpy(&real, &bits, sizeof real);
    return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_REAL, .is.real = real});
}

static bool push_bool(struct machine *m, bool value)
{
    return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_BOOL, .is.number = value});
}

/* --- the one call --- */

static const char known_call[] = "torch.jit._pickle\nrestore_type_tag\n";

static bool push_name(struct machine *m)
{
    size_t length = sizeof known_call - 1;
    if (m->len - m->at < length || memcmp(m->text + m->at, known_call, length) != 0)
        return wrong(m, "it would import a name of Python's: refused, as are all files that run "
                        "code");
    m->at += length;
    return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_NAME});
}

/* name(value, tag): value. */
static bool call_name(struct machine *m)
{
    uint32_t list = 0, name = 0;
    if (!pop(m, &list) || !pop(m, &name))
        return false;
    const struct hb_pickle_value *args = &m->p->values[list];
    if (m->p->values[name].kind != HB_PICKLE_NAME || args->kind != HB_PICKLE_LIST || !args->count)
        return wrong(m, "it would call a function of Python's: refused");
    return push(m, args->is.items[0]);
}

/* --- opcodes --- */

static bool push_mark(struct machine *m)
{
    m->marks = hb_grow(m->arena, m->marks, m->mark_count, &m->mark_cap, sizeof *m->marks);
    m->marks[m->mark_count++] = m->stack_count;
    return true;
}

static bool is_protocol(uint64_t version)
{
    enum { FIRST = 2, LAST = 5 };
    return version >= FIRST && version <= LAST;
}

static bool check_protocol(struct machine *m)
{
    uint64_t version = 0;
    if (!take_count(m, 1, &version))
        return false;
    return is_protocol(version) || wrong(m, "a protocol other than 2 to 5");
}

static bool run_scalar(struct machine *m, int op, bool *out_known)
{
    switch (op) {
    case OP_NONE:
        return push_new(m, (struct hb_pickle_value){.kind = HB_PICKLE_NONE});
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push_bool(m, op == OP_NEWTRUE);
    case OP_BININT1:
        return push_small(m, 1);
    case OP_BININT2:
        return push_small(m, 2);
    case OP_BININT:
        return push_small(m, 4);
    case OP_LONG1:
    case OP_LONG4:
        return push_long(m, op == OP_LONG1 ? 1 : 4);
    case OP_BINFLOAT:
        return push_real(m);
    case OP_SHORT_BINSTRING:
    case OP_SHORT_BINUNICODE:
    case OP_SHORT_BINBYTES:
        return push_text(m, 1);
    case OP_BINSTRING:
    case OP_BINUNICODE:
    case OP_BINBYTES:
        return push_text(m, 4);
    case OP_BINUNICODE8:
    case OP_BINBYTES8:
    case OP_BYTEARRAY8:
        return push_text(m, 8);
    }
    *out_known = false;
    return true;
}

static bool run_marked(struct machine *m, int op, bool *out_known)
{
    uint32_t first = 0;
    switch (op) {
    case OP_MARK:
        return push_mark(m);
    case OP_POP_MARK:
        if (!pop_mark(m, &first))
            return false;
        m->stack_count = first;
        return true;
    case OP_TUPLE:
    case OP_LIST:
        return pop_mark(m, &first) && push_list(m, first);
    case OP_DICT:
        return pop_mark(m, &first) && push_map(m, first);
    case OP_APPENDS:
        return pop_mark(m, &first) && append(m, first);
    case OP_SETITEMS:
        return pop_mark(m, &first) && set_items(m, first);
    }
    *out_known = false;
    return true;
}

static bool run_memo(struct machine *m, int op, bool *out_known)
{
    uint64_t index = 0;
    switch (op) {
    case OP_BINGET:
        return take_count(m, 1, &index) && get_memo(m, index);
    case OP_LONG_BINGET:
        return take_count(m, 4, &index) && get_memo(m, index);
    case OP_BINPUT:
        return take_count(m, 1, &index) && put_memo(m, index);
    case OP_LONG_BINPUT:
        return take_count(m, 4, &index) && put_memo(m, index);
    case OP_MEMOIZE:
        return put_memo(m, m->memo_count);
    }
    *out_known = false;
    return true;
}

static bool append_top(struct machine *m, uint32_t words, bool map)
{
    if (m->stack_count < words)
        return wrong(m, "the stack is empty");
    uint32_t first = m->stack_count - words;
    return map ? set_items(m, first) : append(m, first);
}

static bool run_other(struct machine *m, int op)
{
    uint32_t value = 0;
    uint64_t count;
    switch (op) {
    case OP_PROTO:
        return check_protocol(m);
    case OP_FRAME:
        return take_count(m, 8, &count);
    case OP_EMPTY_LIST:
    case OP_EMPTY_TUPLE:
        return push_list(m, m->stack_count);
    case OP_EMPTY_DICT:
        return push_map(m, m->stack_count);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return push_tuple(m, (uint32_t)(op - OP_TUPLE1) + 1);
    case OP_APPEND:
        return append_top(m, 1, false);
    case OP_SETITEM:
        return append_top(m, 2, true);
    case OP_POP:
        return pop(m, &value);
    case OP_DUP:
        return pop(m, &value) && push(m, value) && push(m, value);
    case OP_GLOBAL:
        return push_name(m);
    case OP_REDUCE:
        return call_name(m);
    case OP_STOP:
        m->done = true;
        return pop(m, &m->p->root);
    }
    return wrong(m, "an instruction that builds objects, or none at all: refused");
}

bool hb_pickle_is(const char *text, size_t len)
{
    return len >= 2 && (unsigned char)text[0] == OP_PROTO && is_protocol((unsigned char)text[1]);
}

bool hb_pickle_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                    const char *text, size_t len, struct hb_pickle *out)
{
    struct machine m = {.arena = arena,
                        .diag = diag,
                        .path = path,
                        .text = (const unsigned char *)text,
                        .len = len,
                        .p = out};
    *out = (struct hb_pickle){0};
    while (!m.done) {
        const unsigned char *op = NULL;
        m.op_at = m.at;
        if (!take(&m, 1, &op))
            return false;
        bool scalar = true, marked = true, memo = true;
        if (!run_scalar(&m, *op, &scalar) || (!scalar && !run_marked(&m, *op, &marked)) ||
            (!scalar && !marked && !run_memo(&m, *op, &memo)) ||
            (!scalar && !marked && !memo && !run_other(&m, *op)))
            return false;
    }
    return true;
}

/* --- asking --- */

static const struct hb_pickle_value *value_of(const struct hb_pickle *p, uint32_t value,
                                              enum hb_pickle_kind kind)
{
    return value < p->count && p->values[value].kind == kind ? &p->values[value] : NULL;
}

uint32_t hb_pickle_find(const struct hb_pickle *p, uint32_t map, const char *key)
{
    const struct hb_pickle_value *v = value_of(p, map, HB_PICKLE_MAP);
    for (uint32_t i = v ? v->count : 0; i-- > 0;)
        if (hb_pickle_is_text(p, v->is.items[2 * i], key))
            return v->is.items[2 * i + 1];
    return HB_PICKLE_ABSENT;
}

uint32_t hb_pickle_length(const struct hb_pickle *p, uint32_t list)
{
    const struct hb_pickle_value *v = value_of(p, list, HB_PICKLE_LIST);
    return v ? v->count : 0;
}

uint32_t hb_pickle_at(const struct hb_pickle *p, uint32_t list, uint32_t index)
{
    const struct hb_pickle_value *v = value_of(p, list, HB_PICKLE_LIST);
    return v && index < v->count ? v->is.items[index] : HB_PICKLE_ABSENT;
}

int64_t hb_pickle_int(const struct hb_pickle *p, uint32_t value, int64_t other)
{
    const struct hb_pickle_value *v = value_of(p, value, HB_PICKLE_INT);
    if (!v)
        v = value_of(p, value, HB_PICKLE_BOOL);
    return v ? v->is.number : other;
}

const char *hb_pickle_text(const struct hb_pickle *p, uint32_t value, uint32_t *out_len)
{
    const struct hb_pickle_value *v = value_of(p, value, HB_PICKLE_TEXT);
    *out_len = v ? v->count : 0;
    return v ? v->is.text : "";
}

bool hb_pickle_is_text(const struct hb_pickle *p, uint32_t value, const char *text)
{
    const struct hb_pickle_value *v = value_of(p, value, HB_PICKLE_TEXT);
    size_t len = strlen(text);
    return v && v->count == len && memcmp(v->is.text, text, len) == 0;
}
