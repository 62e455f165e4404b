/* A configuration out of text, for the unit tests of what comes after the reader. Include it after
 * unit.h. */
#ifndef HB_TESTS_UNIT_SPEC_H
#define HB_TESTS_UNIT_SPEC_H

#include "base/str.h"
#include "base/yaml.h"
#include "hw/device.h"
#include "models/schema.h"

static inline struct hb_spec text_spec(struct hb_arena *arena, struct hb_diag *diag,
                                       const char *text)
{
    struct hb_spec spec;
    struct hb_node *root;
    bool ok = hb_yaml_parse(arena, diag, "test", text, strlen(text), &root) &&
              hb_schema_from_node(arena, diag, root, HB_SOURCE_DIR, &spec);
    if (!ok)
        print_error("%s\n%s\n", text, diag->entries[0].text);
    assert_true(ok);
    return spec;
}

static inline struct hb_spec unit_spec(struct unit *unit, const char *text)
{
    return text_spec(unit->env.arena, &unit->diag, text);
}

/* The device that it names. */
static inline struct hb_device spec_device(struct hb_arena *arena, struct hb_diag *diag,
                                           const struct hb_spec *spec)
{
    struct hb_device device;
    assert_true(hb_device_load(arena, diag, HB_SOURCE_DIR, spec->hardware.device,
                               (struct hb_loc){0}, &device));
    return device;
}

static inline struct hb_device unit_device(struct unit *unit, const struct hb_spec *spec)
{
    return spec_device(unit->env.arena, &unit->diag, spec);
}

/* What a refusal begins with is a key of the format, so that it has a place. */
static inline void unit_names_a_key(struct unit *unit, const char *text)
{
    static const char before[] = "compiler: torch: ";
    assert_true(hb_str_starts(text, before));
    const char *key = text + strlen(before);
    const char *end = strstr(key, ": ");
    assert_non_null(end);
    assert_true(hb_schema_check_key(unit->env.arena, &unit->diag, (struct hb_loc){0},
                                    hb_arena_strndup(unit->env.arena, key, (size_t)(end - key))));
}

#endif
