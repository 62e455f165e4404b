/* The table as a JSON Schema (draft 2020-12), for editors and validators: a definition for each
 * section. Keys that another file or a preset may give are not required, for one file alone does
 * not say whether they are missing; those of a block are, for lists are never merged. */
#include "models/schema.h"

#include <string.h>

#include "models/schema_key.h"

static const char dialect[] = "https://json-schema.org/draft/2020-12/schema";

/* "#/$defs/model.blocks.attention": no brackets in a pointer. */
static const char *section_name(struct hb_arena *arena, enum hb_section_id id)
{
    const char *path = hb_section(id)->path;
    struct hb_str name;
    hb_str_init(&name, arena);
    for (; *path; path++)
        if (*path != '[' && *path != ']')
            hb_str_addn(&name, path, 1);
    return name.text;
}

static void put_ref(struct hb_json *j, enum hb_section_id id)
{
    struct hb_str ref;
    hb_str_init(&ref, j->out->arena);
    hb_str_addf(&ref, "#/$defs/%s", section_name(j->out->arena, id));
    hb_json_put_text(j, "$ref", ref.text);
}

static void open_list_of(struct hb_json *j)
{
    hb_json_put_text(j, "type", "array");
    hb_json_key(j, "items");
    hb_json_object(j);
}

/* Bounds that a double holds to the unit are whole. */
static void put_bound(struct hb_json *j, const char *key, double bound)
{
    if (bound == (double)(int64_t)bound)
        hb_json_put_int(j, key, (int64_t)bound);
    else
        hb_json_put_real(j, key, bound);
}

static void put_number(struct hb_json *j, const struct hb_key *key, const char *type)
{
    hb_json_put_text(j, "type", type);
    put_bound(j, "minimum", key->low);
    put_bound(j, "maximum", key->high);
}

/* The spellings; of true and false also the truth values. */
static void put_words(struct hb_json *j, const struct hb_word *words)
{
    hb_json_key(j, "enum");
    hb_json_array(j);
    for (; words->text; words++) {
        hb_json_text(j, words->text);
        if (hb_str_same(words->text, "true") || hb_str_same(words->text, "false"))
            hb_json_bool(j, words->text[0] == 't');
    }
    hb_json_array_end(j);
}

static void put_word_list(struct hb_json *j, const struct hb_key *key)
{
    open_list_of(j);
    put_words(j, key->words);
    hb_json_object_end(j);
}

static void put_number_list(struct hb_json *j, const struct hb_key *key)
{
    open_list_of(j);
    put_number(j, key, "integer");
    hb_json_object_end(j);
}

/* Begins `anyOf` with its first alternative open. */
static void open_either(struct hb_json *j)
{
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    hb_json_object(j);
}

static void next_alternative(struct hb_json *j)
{
    hb_json_object_end(j);
    hb_json_object(j);
}

static void close_either(struct hb_json *j)
{
    hb_json_object_end(j);
    hb_json_array_end(j);
}

static void put_types(struct hb_json *j, const char *a, const char *b)
{
    hb_json_key(j, "type");
    hb_json_array(j);
    hb_json_text(j, a);
    hb_json_text(j, b);
    hb_json_array_end(j);
}

/* A word, or what stands in the second alternative, which is open when it returns. */
static void word_or(struct hb_json *j, const char *word)
{
    open_either(j);
    hb_json_put_text(j, "const", word);
    next_alternative(j);
}

static void put_int(struct hb_json *j, const struct hb_key *key)
{
    put_number(j, key, "integer");
}

static void put_real(struct hb_json *j, const struct hb_key *key)
{
    put_number(j, key, "number");
}

static void put_size(struct hb_json *j, const struct hb_key *key)
{
    (void)key;
    put_types(j, "integer", "string");
}

static void put_bool(struct hb_json *j, const struct hb_key *key)
{
    (void)key;
    hb_json_put_text(j, "type", "boolean");
}

/* A name that is a number is one for other readers of YAML. */
static void put_text(struct hb_json *j, const struct hb_key *key)
{
    (void)key;
    put_types(j, "string", "number");
}

static void put_word(struct hb_json *j, const struct hb_key *key)
{
    put_words(j, key->words);
}

static void put_even(struct hb_json *j, const struct hb_key *key)
{
    word_or(j, "even");
    put_number_list(j, key);
    close_either(j);
}

static void put_one_or_list(struct hb_json *j, const struct hb_key *key)
{
    open_either(j);
    put_int(j, key);
    next_alternative(j);
    put_number_list(j, key);
    hb_json_put_int(j, "minItems", 1);
    close_either(j);
}

static void put_rank(struct hb_json *j, const struct hb_key *key)
{
    word_or(j, "max");
    put_int(j, key);
    close_either(j);
}

static void put_axis(struct hb_json *j, const struct hb_key *key)
{
    word_or(j, "rest");
    put_int(j, key);
    close_either(j);
}

static void put_map(struct hb_json *j, const struct hb_key *key)
{
    put_ref(j, key->section);
}

static void put_blocks(struct hb_json *j, const struct hb_key *key)
{
    open_list_of(j);
    put_ref(j, key->section);
    hb_json_object_end(j);
    hb_json_put_int(j, "minItems", 1);
}

static void put_meshes(struct hb_json *j, const struct hb_key *key)
{
    open_either(j);
    put_word_list(j, key);
    next_alternative(j);
    put_blocks(j, key);
    close_either(j);
}

static void put_per_block(struct hb_json *j, const struct hb_key *key)
{
    hb_json_put_text(j, "type", "object");
    hb_json_key(j, "additionalProperties");
    hb_json_object(j);
    put_ref(j, key->section);
    hb_json_object_end(j);
}

static void (*const kinds[])(struct hb_json *j, const struct hb_key *key) = {
    [HB_KEY_INT] = put_int,
    [HB_KEY_SIZE] = put_size,
    [HB_KEY_REAL] = put_real,
    [HB_KEY_BOOL] = put_bool,
    [HB_KEY_TEXT] = put_text,
    [HB_KEY_ENUM] = put_word,
    [HB_KEY_MASK] = put_word_list,
    [HB_KEY_INTS] = put_number_list,
    [HB_KEY_EVEN_INTS] = put_even,
    [HB_KEY_ONE_INTS] = put_one_or_list,
    [HB_KEY_RANK] = put_rank,
    [HB_KEY_AXIS] = put_axis,
    [HB_KEY_MOMENTS] = put_word_list,
    [HB_KEY_MESHES] = put_meshes,
    [HB_KEY_SECTION] = put_map,
    [HB_KEY_BLOCKS] = put_blocks,
    [HB_KEY_PER_BLOCK] = put_per_block,
};
_Static_assert(sizeof kinds / sizeof kinds[0] == HB_KEY_KIND_COUNT, "one row a kind");

/* The line of help, and the default where it is a value and not computed. */
static void put_key(struct hb_json *j, const struct hb_key *key)
{
    hb_json_key(j, key->name);
    hb_json_object(j);
    hb_json_put_text(j, "description", key->doc);
    kinds[key->kind](j, key);
    if (key->def && !strchr("=[{", key->def[0])) {
        bool word = key->kind == HB_KEY_ENUM || key->kind == HB_KEY_TEXT;
        struct hb_node node = {.kind = HB_NODE_SCALAR, .text = key->def, .quoted = word};
        hb_json_key(j, "default");
        hb_json_node(j, &node);
    }
    hb_json_object_end(j);
}

static void put_required(struct hb_json *j, const struct hb_section *section)
{
    hb_json_key(j, "required");
    hb_json_array(j);
    for (int i = 0; i < section->key_count; i++)
        if (!section->keys[i].def)
            hb_json_text(j, section->keys[i].name);
    hb_json_array_end(j);
}

static void put_section(struct hb_json *j, enum hb_section_id id)
{
    const struct hb_section *section = hb_section(id);
    hb_json_put_text(j, "type", "object");
    hb_json_put_text(j, "description", section->doc);
    hb_json_key(j, "properties");
    hb_json_object(j);
    for (int i = 0; i < section->key_count; i++)
        put_key(j, &section->keys[i]);
    hb_json_object_end(j);
    hb_json_put_bool(j, "additionalProperties", false);
    if (hb_str_starts(section->path, hb_section(HB_SEC_BLOCK)->path))
        put_required(j, section);
}

void hb_schema_json_sections(struct hb_json *j)
{
    for (int id = HB_SEC_ROOT + 1; id < HB_SEC_COUNT; id++) {
        hb_json_key(j, section_name(j->out->arena, (enum hb_section_id)id));
        hb_json_object(j);
        put_section(j, (enum hb_section_id)id);
        hb_json_object_end(j);
    }
}

void hb_schema_json_root(struct hb_json *j)
{
    put_section(j, HB_SEC_ROOT);
}

void hb_schema_json(struct hb_json *j)
{
    hb_json_object(j);
    hb_json_put_text(j, "$schema", dialect);
    hb_json_put_text(j, "title", "hbmsim model.yaml");
    put_section(j, HB_SEC_ROOT);
    hb_json_key(j, "$defs");
    hb_json_object(j);
    hb_schema_json_sections(j);
    hb_json_object_end(j);
    hb_json_object_end(j);
}
