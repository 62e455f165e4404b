/* A configuration out of text, for the unit tests of what comes after the reader. Include it after
 * unit.h. */
#ifndef HB_TESTS_UNIT_SPEC_H
#define HB_TESTS_UNIT_SPEC_H

#include "base/yaml.h"
#include "models/schema.h"

static inline struct hb_spec unit_spec(struct unit *u, const char *text)
{
    struct hb_spec spec;
    struct hb_node *root;
    bool ok = hb_yaml_parse(u->env.arena, &u->diag, "test", text, strlen(text), &root) &&
              hb_schema_from_node(u->env.arena, &u->diag, root, HB_SOURCE_DIR, &spec);
    if (!ok)
        print_error("%s\n%s\n", text, u->diag.entries[0].text);
    assert_true(ok);
    return spec;
}

#endif
