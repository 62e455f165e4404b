/* What all refusals of a request have in common: see hb_form_request in logform.h. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"

void hb_form_name(struct hb_log_message *m, const char *name)
{
    struct hb_span s = hb_span_of(name);
    hb_span_copy(&s, "", m->name, sizeof m->name);
}

void hb_form_request(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    static const struct hb_form_figure asked[HB_FORM_FIGURES] = {{"", HB_FACT_ASKED}};
    const struct hb_form_figure *figure = form->figures[0].words ? form->figures : asked;
    struct hb_span s = place->after;
    struct hb_amount amount;
    int64_t unit = form->unit_bytes ? form->unit_bytes : 1;
    if (figure->words[0] && !hb_span_find(&s, figure->words))
        return;
    if (!hb_span_amount(&s, unit, &amount)) {
        if (hb_span_is_absurd(s))
            hb_form_open(r, HB_LOG_CORRUPT);
        return;
    }
    struct hb_log_message *m = hb_form_open(r, form->kind);
    if (form->text)
        hb_form_name(m, form->text);
    if (amount.bytes > 0 || amount.step_bytes == 1) /* nobody asks for "0.00 MB" */
        hb_form_set(m, figure->fact, amount);
    for (int i = 1; i < HB_FORM_FIGURES && figure[i].words; i++) {
        if (!hb_span_find(&s, figure[i].words))
            continue;
        if (hb_span_starts(s, "only "))
            hb_span_find(&s, "only ");
        if (hb_span_amount(&s, unit, &amount))
            hb_form_set(m, figure[i].fact, amount);
    }
}

/* Types as TensorFlow and numpy print them. */
static const struct {
    const char *name;
    int bytes;
} types[] = {{"float", 4},   {"bfloat16", 2}, {"half", 2},   {"double", 8},     {"int32", 4},
             {"int64", 8},   {"int8", 1},     {"uint8", 1},  {"bool", 1},       {"complex64", 8},
             {"int16", 2},   {"uint16", 2},   {"uint32", 4}, {"uint64", 8},     {"float16", 2},
             {"float32", 4}, {"float64", 8},  {"object", 8}, {"complex128", 16}};

int64_t hb_form_array_bytes(struct hb_span dims, const char *type)
{
    int64_t bytes = -1;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, type) == 0)
            bytes = types[i].bytes;
    for (int64_t dim; bytes >= 0 && hb_span_int(&dims, &dim); hb_span_skip(&dims, ", "))
        bytes = hb_mul_sat(bytes, dim);
    return hb_size_ok(bytes) ? bytes : -1;
}
