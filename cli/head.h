/* What each result as JSON begins with: name, version, compiler, device, configuration. */
#ifndef HB_CLI_HEAD_H
#define HB_CLI_HEAD_H

#include "base/json_write.h"

struct hb_env;
struct hb_spec;

/* Null is written as null: not known, or not one of them. */
struct hb_head {
    const char *name;
    const char *version; /* of hbmsim */
    const char *compiler;
    const char *device;
    const struct hb_node *configuration; /* with every key, its defaults too */
};

/* Of a result of one configuration. */
struct hb_head hb_head_of(const struct hb_env *env, const struct hb_spec *spec);
/* Its text keys alone: for records, whose configuration is `config`. */
void hb_head_json_texts(struct hb_json *j, const struct hb_head *head);
/* All of it into an open object. */
void hb_head_json(struct hb_json *j, const struct hb_head *head);

#endif
