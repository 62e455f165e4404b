/* What the page may ask for: see serve_gate.h. */
#include "cli/serve_gate.h"

#include <string.h>

#include "base/str.h"
#include "hw/device.h"

static bool names_file(struct hb_diag *diag, struct hb_loc loc, const char *key)
{
    return !hb_error(diag, loc, "%s: the page reads no files; allowed: drop the file on the page",
                     key);
}

bool hb_gate_config(struct hb_diag *diag, const struct hb_node *root, const char *device)
{
    const struct hb_node *include = hb_node_find(root, "include");
    const struct hb_node *import = hb_node_find(hb_node_find(root, "model"), "import");
    const struct hb_node *profile = hb_node_find(hb_node_find(root, "hardware"), "device");
    if (root->kind != HB_NODE_MAP)
        return hb_error(diag, root->loc, "a map of keys is wanted");
    if (include)
        return !names_file(diag, include->loc, "include");
    if (import && !hb_node_is_null(import))
        return !names_file(diag, import->loc, "model.import");
    if (!profile || profile->kind != HB_NODE_SCALAR || !hb_device_is_path(profile->text) ||
        (device && hb_str_same(device, profile->text)))
        return true;
    return !names_file(diag, profile->loc, "hardware.device");
}

/* Keys are words, dots and numbers in brackets; values are words and numbers: no path, no map, no
 * YAML alias. */
bool hb_gate_axis(struct hb_diag *diag, const char *text)
{
    static const char key_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.[]";
    static const char value_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_-.,+ ";
    size_t len = strspn(text, key_letters);
    if (!len || text[len] != '=')
        return hb_error(diag, (struct hb_loc){0}, "'%.80s' is no KEY=RANGE", text);
    const char *value = text + len + 1;
    size_t plain = strspn(value, value_letters);
    if (value[plain] == '*' && plain) /* 8..64*2 */
        plain += 1 + strspn(value + plain + 1, "0123456789");
    if (!value[plain] && !strstr(text, "import") && !strstr(text, "include") &&
        !strstr(text, ".yaml"))
        return true;
    return hb_error(diag, (struct hb_loc){0},
                    "%.80s: the page reads no files; allowed: numbers and words", text);
}
