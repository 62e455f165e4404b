/* The format of a profile as a JSON Schema, from the table that reads and writes it. */
#include "base/json_write.h"
#include "hw/device.h"

static void put_words(struct hb_json *j, const char *(*word)(int), int count)
{
    hb_json_key(j, "enum");
    hb_json_array(j);
    for (int i = 0; i < count; i++)
        hb_json_text(j, word(i));
    hb_json_array_end(j);
}

static const char *vendor_word(int i)
{
    return hb_vendor_name((enum hb_vendor)i);
}

static const char *kind_word(int i)
{
    return hb_kind_name((enum hb_device_kind)i);
}

static const char *link_word(int i)
{
    return hb_link_kind_name((enum hb_link_kind)i);
}

static const char *topology_word(int i)
{
    return hb_topology_name((enum hb_topology)i);
}

static void put_typed(struct hb_json *j, const char *type)
{
    hb_json_object(j);
    hb_json_put_text(j, "type", type);
    hb_json_object_end(j);
}

static void put_number(struct hb_json *j, const char *type, const struct hb_field *f)
{
    hb_json_object(j);
    hb_json_put_text(j, "type", type);
    hb_json_put_real(j, "minimum", f->low);
    hb_json_put_real(j, "maximum", f->high);
    hb_json_object_end(j);
}

/* [[x, y], ...]; files of people write sizes there too. */
static void put_curve(struct hb_json *j)
{
    hb_json_object(j);
    hb_json_put_text(j, "type", "array");
    hb_json_put_int(j, "maxItems", HB_CURVE_POINTS);
    hb_json_key(j, "items");
    hb_json_object(j);
    hb_json_put_text(j, "type", "array");
    hb_json_put_int(j, "minItems", 2);
    hb_json_put_int(j, "maxItems", 2);
    hb_json_object_end(j);
    hb_json_object_end(j);
}

/* A number of bytes, or a text as 80GiB. */
static void put_bytes(struct hb_json *j, const struct hb_field *f)
{
    hb_json_object(j);
    hb_json_key(j, "anyOf");
    hb_json_array(j);
    put_number(j, "integer", f);
    hb_json_object(j);
    hb_json_put_text(j, "type", "string");
    hb_json_put_text(j, "pattern", "^[0-9]+(\\.[0-9]+)? ?[KMGTkmgt]?i?B$");
    hb_json_object_end(j);
    hb_json_array_end(j);
    hb_json_object_end(j);
}

static void put_value(struct hb_json *j, const struct hb_field *f)
{
    switch (f->type) {
    case HB_FIELD_BYTES:
        put_bytes(j, f);
        break;
    case HB_FIELD_COUNT_:
    case HB_FIELD_NS:
        put_number(j, "integer", f);
        break;
    case HB_FIELD_RATE:
    case HB_FIELD_PART:
        put_number(j, "number", f);
        break;
    case HB_FIELD_LINK:
    case HB_FIELD_TOPOLOGY:
        hb_json_object(j);
        if (f->type == HB_FIELD_LINK)
            put_words(j, link_word, HB_LINK_PCIE + 1);
        else
            put_words(j, topology_word, HB_TOPOLOGY_TORUS + 1);
        hb_json_object_end(j);
        break;
    case HB_FIELD_CURVE:
        put_curve(j);
        break;
    }
}

/* [value, source] or [value, source, "note"] */
static void put_field(struct hb_json *j, const struct hb_field *f)
{
    hb_json_key(j, f->key);
    hb_json_object(j);
    hb_json_put_text(j, "description", f->meaning);
    hb_json_put_text(j, "type", "array");
    hb_json_put_int(j, "minItems", 2);
    hb_json_put_int(j, "maxItems", 3);
    hb_json_key(j, "prefixItems");
    hb_json_array(j);
    put_value(j, f);
    put_typed(j, "string");
    put_typed(j, "string");
    hb_json_array_end(j);
    hb_json_object_end(j);
}

static void put_texts(struct hb_json *j, const char *key)
{
    hb_json_key(j, key);
    hb_json_object(j);
    hb_json_put_text(j, "type", "object");
    hb_json_key(j, "additionalProperties");
    put_typed(j, "string");
    hb_json_object_end(j);
}

static void put_head(struct hb_json *j)
{
    hb_json_key(j, "hbmsim_device");
    hb_json_object(j);
    hb_json_put_int(j, "const", 1);
    hb_json_object_end(j);
    hb_json_key(j, "name");
    put_typed(j, "string");
    hb_json_key(j, "title");
    put_typed(j, "string");
    hb_json_key(j, "vendor");
    hb_json_object(j);
    put_words(j, vendor_word, HB_VENDOR_HOST + 1);
    hb_json_object_end(j);
    hb_json_key(j, "kind");
    hb_json_object(j);
    put_words(j, kind_word, HB_KIND_CPU + 1);
    hb_json_object_end(j);
    put_texts(j, "measured");
    put_texts(j, "sources");
}

void hb_device_json_schema(struct hb_json *j)
{
    static const char *const head[] = {"hbmsim_device", "name", "title", "vendor", "kind"};
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    hb_json_put_text(j, "type", "object");
    hb_json_key(j, "properties");
    hb_json_object(j);
    put_head(j);
    for (int i = 0; i < count; i++)
        put_field(j, &fields[i]);
    hb_json_object_end(j);
    hb_json_key(j, "required");
    hb_json_array(j);
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        hb_json_text(j, head[i]);
    for (int i = 0; i < count; i++)
        if (fields[i].required)
            hb_json_text(j, fields[i].key);
    hb_json_array_end(j);
    hb_json_put_bool(j, "additionalProperties", false);
}
