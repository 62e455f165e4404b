/* What XLA's three orders of a step would need: see show.h. */
#include "base/arena.h"
#include "base/size.h"
#include "cli/show.h"
#include "sim/hlo/schedule.h"

static void show_order(FILE *out, const char *title, int64_t bytes, int64_t argument_bytes,
                       const char *note)
{
    char all[HB_SIZE_TEXT], above[HB_SIZE_TEXT];
    fprintf(out, "  %-14s %12s %12s%s\n", title, hb_size_print(bytes, all),
            hb_size_print(bytes - argument_bytes, above), note);
}

void hb_show_orders(FILE *out, const struct hb_step_orders *o)
{
    fprintf(out, "\nOrders, by what is alive at once\n  %-14s %12s %12s\n", "", "estimate",
            "above args");
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++)
        show_order(out, hb_hlo_order_title((enum hb_order_kind)kind), o->choice.bytes[kind],
                   o->step.argument_bytes,
                   kind == (int)o->choice.least ? "  XLA takes the least" : "");
    show_order(out, "as simulated", o->written_bytes, o->step.argument_bytes, "");
}

void hb_show_orders_json(struct hb_json *j, const struct hb_step_orders *o)
{
    hb_json_key(j, "orders");
    hb_json_object(j);
    hb_json_put_text(j, "least", hb_graph_order_name(o->choice.least));
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++)
        hb_json_put_int(j, hb_graph_order_name((enum hb_order_kind)kind), o->choice.bytes[kind]);
    hb_json_put_int(j, "simulated", o->written_bytes);
    hb_json_put_int(j, "argument_bytes", o->step.argument_bytes);
    hb_json_object_end(j);
}
