/* The table of keys as JSON, for whoever builds a form of it. */
#include "base/json_write.h"
#include "models/schema.h"
#include "models/schema_key.h"

static const char *const kind_names[] = {
    [HB_KEY_INT] = "int",         [HB_KEY_SIZE] = "size",          [HB_KEY_REAL] = "real",
    [HB_KEY_BOOL] = "bool",       [HB_KEY_TEXT] = "text",          [HB_KEY_ENUM] = "enum",
    [HB_KEY_MASK] = "mask",       [HB_KEY_INTS] = "ints",          [HB_KEY_EVEN_INTS] = "even_ints",
    [HB_KEY_ONE_INTS] = "ints",   [HB_KEY_RANK] = "rank",          [HB_KEY_AXIS] = "int",
    [HB_KEY_MOMENTS] = "moments", [HB_KEY_MESHES] = "meshes",      [HB_KEY_SECTION] = "section",
    [HB_KEY_BLOCKS] = "blocks",   [HB_KEY_PER_BLOCK] = "per_block"};
_Static_assert(sizeof kind_names / sizeof kind_names[0] == HB_KEY_KIND_COUNT, "a name a kind");

static void put_words(struct hb_json *j, const struct hb_word *words)
{
    if (!words)
        return;
    hb_json_key(j, "words");
    hb_json_array(j);
    for (const struct hb_word *w = words; w->text; w++)
        hb_json_text(j, w->text);
    hb_json_array_end(j);
}

static void put_key(struct hb_json *j, const struct hb_key *key)
{
    hb_json_object(j);
    hb_json_put_text(j, "name", key->name);
    hb_json_put_text(j, "kind", kind_names[key->kind]);
    hb_json_put_text(j, "doc", key->doc);
    if (key->kind == HB_KEY_SECTION)
        hb_json_put_text(j, "section", hb_section(key->section)->path);
    else
        hb_json_put_text(j, "default", key->def);
    if (key->kind == HB_KEY_INT || key->kind == HB_KEY_AXIS || key->kind == HB_KEY_REAL) {
        hb_json_put_real(j, "low", key->low);
        hb_json_put_real(j, "high", key->high);
    }
    put_words(j, key->words);
    hb_json_object_end(j);
}

void hb_schema_form(struct hb_json *j)
{
    hb_json_array(j);
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        hb_json_object(j);
        hb_json_put_text(j, "path", s->path);
        hb_json_put_text(j, "doc", s->doc);
        hb_json_key(j, "keys");
        hb_json_array(j);
        for (int i = 0; i < s->key_count; i++)
            put_key(j, &s->keys[i]);
        hb_json_array_end(j);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}
