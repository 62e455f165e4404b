/* A profile as a file, and the sources of its numbers: see device.h. */
#include "base/json_write.h"
#include "base/str.h"
#include "hw/device.h"

/* Seven digits: more than any figure here has. */
static void write_real(struct hb_str *to, double value)
{
    hb_str_addf(to, "%.7g", value);
}

static void write_curve(struct hb_str *to, const struct hb_curve *curve)
{
    hb_str_add(to, "[");
    for (int i = 0; i < curve->count; i++) {
        hb_str_add(to, i ? ", [" : "[");
        write_real(to, curve->x[i]);
        hb_str_add(to, ", ");
        write_real(to, curve->y[i]);
        hb_str_add(to, "]");
    }
    hb_str_add(to, "]");
}

static void write_value(const struct hb_device *dev, const struct hb_field *f, struct hb_str *to)
{
    const void *at = (const char *)dev + f->offset;
    switch (f->type) {
    case HB_FIELD_BYTES:
    case HB_FIELD_COUNT_:
    case HB_FIELD_NS:
        hb_str_addf(to, "%lld", (long long)*(const int64_t *)at);
        break;
    case HB_FIELD_RATE:
    case HB_FIELD_PART:
        write_real(to, *(const double *)at);
        break;
    case HB_FIELD_LINK:
        hb_str_add(to, hb_link_kind_name(dev->link_kind));
        break;
    case HB_FIELD_TOPOLOGY:
        hb_str_add(to, hb_topology_name(dev->link_topology));
        break;
    case HB_FIELD_CURVE:
        write_curve(to, at);
        break;
    }
}

/* Index of the first fact with the same source: its number names the source in the file. */
static int first_with_source(const struct hb_device *dev, int index)
{
    for (int i = 0; i < index; i++)
        if (dev->facts[i].source && hb_str_same(dev->facts[i].source, dev->facts[index].source))
            return i;
    return index;
}

static void write_pair(struct hb_str *to, const char *indent, const char *key, const char *text)
{
    hb_str_addf(to, "%s%s: ", indent, key);
    hb_json_quote(to, text);
    hb_str_add(to, "\n");
}

static void write_head(const struct hb_device *dev, int count, struct hb_str *to)
{
    hb_str_add(to, "hbmsim_device: 1\n");
    write_pair(to, "", "name", dev->name);
    write_pair(to, "", "title", dev->title);
    hb_str_addf(to, "vendor: %s\nkind: %s\n", hb_vendor_name(dev->vendor), hb_kind_name(dev->kind));
    if (dev->measured_date) {
        hb_str_add(to, "measured:\n");
        write_pair(to, "  ", "date", dev->measured_date);
        write_pair(to, "  ", "driver", dev->measured_driver);
        write_pair(to, "  ", "clocks", dev->measured_clocks);
        write_pair(to, "  ", "spread", dev->measured_spread);
        if (dev->measured_power)
            write_pair(to, "  ", "power", dev->measured_power);
    }
    hb_str_add(to, "sources:\n");
    for (int i = 0; i < count; i++)
        if (dev->facts[i].source && first_with_source(dev, i) == i) {
            hb_str_addf(to, "  s%d: ", i);
            hb_json_quote(to, dev->facts[i].source);
            hb_str_add(to, "\n");
        }
}

void hb_device_write(const struct hb_device *dev, struct hb_str *to)
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    write_head(dev, count, to);
    for (int i = 0; i < count; i++) {
        const struct hb_fact *fact = &dev->facts[i];
        if (!fact->source)
            continue;
        hb_str_addf(to, "%s%s: [", fields[i].starts ? "\n" : "", fields[i].key);
        write_value(dev, &fields[i], to);
        hb_str_addf(to, ", s%d", first_with_source(dev, i));
        if (fact->note[0]) {
            hb_str_add(to, ", ");
            hb_json_quote(to, fact->note);
        }
        hb_str_add(to, "]\n");
    }
}

void hb_device_set_fact(struct hb_device *dev, const char *key, const char *source,
                        const char *note)
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    for (int i = 0; i < count; i++)
        if (hb_str_same(fields[i].key, key)) {
            dev->facts[i] = (struct hb_fact){.source = source, .note = note};
            return;
        }
    HB_BUG("no field %s", key);
}
