/* See titan_parts.h: the loss of TRL's GRPOTrainer (trl/trainer/utils.py: selective_log_softmax,
 * entropy_from_logits; grpo_trainer.py), on logits that are not in f32: they are divided by the
 * temperature, the log-softmax of each sequence stays for its gradient, the entropy is made of 128
 * tokens at a time. Values by token are left out. The reference's are made before, without
 * gradients, by a model of the same shapes whose weights are as they are computed with. */
#include "base/size.h"
#include "models/spec.h"
#include "sim/eager/titan_parts.h"

enum { ELEMENT_BYTES = 2, ENTROPY_TOKENS = 128 };

static uint32_t wide(struct hb_titan *e, int64_t rows, const char *op, const char *name)
{
    int64_t bytes = hb_tape_size(e->t, rows, e->head->rows, ELEMENT_BYTES);
    return hb_tape_make(e->t, (struct hb_made){op, name, bytes, HB_CAT_LOGITS, 0});
}

static int64_t each(const struct hb_titan *e)
{
    return e->tokens / e->sequences;
}

/* The logits themselves go. */
static uint32_t over_temperature(struct hb_titan *e, struct hb_titan_chunk *c)
{
    uint32_t scaled = wide(e, c->rows, "div", "logits over the temperature");
    hb_tape_drop_value(e->t, c->logits);
    e->t->values[c->logits].storage = HB_NONE;
    return scaled;
}

/* A name keeps a part's until the next part's is there; the third part allocates as the second. */
static void make_entropy(struct hb_titan *e)
{
    int64_t parts = hb_div_up(e->tokens, ENTROPY_TOKENS);
    int64_t rows = e->tokens < ENTROPY_TOKENS ? e->tokens : ENTROPY_TOKENS;
    uint32_t before = HB_NONE;
    for (int64_t i = 0; i < parts && i < 3; i++) {
        uint32_t logs = wide(e, rows, "log_softmax", "a part's log-probabilities");
        hb_tape_drop(e->t, before);
        before = logs;
        uint32_t power = wide(e, rows, "exp", "a part's probabilities");
        uint32_t product = wide(e, rows, "mul", "a part's entropy by word");
        hb_tape_drop(e->t, power);
        hb_tape_drop(e->t, product);
    }
    hb_tape_drop(e->t, before);
}

void hb_titan_log_probabilities(struct hb_titan *e, struct hb_titan_chunk *c)
{
    uint32_t scaled = over_temperature(e, c);
    for (int64_t i = 0; i < e->sequences; i++)
        c->by_sequence[i] = wide(e, each(e), "log_softmax", "log-probabilities of a sequence");
    if (e->spec->loss.entropy)
        make_entropy(e);
    hb_tape_drop(e->t, scaled);
}

/* From the last sequence to the first; then all in one, and by the temperature. */
uint32_t hb_titan_back_log_probabilities(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    for (int64_t i = e->sequences - 1; i >= 0; i--) {
        uint32_t picked = wide(e, each(e), "gather, backward", "gradient of the log-probabilities");
        uint32_t grad =
            wide(e, each(e), "log_softmax, backward", "gradient of a sequence's logits");
        hb_tape_drop(t, picked);
        hb_tape_drop(t, c->by_sequence[i]);
        c->by_sequence[i] = grad;
    }
    uint32_t all = wide(e, c->rows, "stack", "gradient of the scaled logits");
    for (int64_t i = 0; i < e->sequences; i++)
        hb_tape_drop(t, c->by_sequence[i]);
    uint32_t out = wide(e, c->rows, "div, backward", "gradient of the logits");
    hb_tape_drop(t, all);
    return out;
}

/* Each sequence's goes when the next one's has taken its name. */
static void take_log_probabilities(struct hb_titan *e, struct hb_titan_chunk *c)
{
    uint32_t scaled = over_temperature(e, c), before = HB_NONE;
    for (int64_t i = 0; i < e->sequences; i++) {
        uint32_t next = wide(e, each(e), "log_softmax", "log-probabilities of a sequence");
        hb_tape_drop(e->t, before);
        before = next;
    }
    hb_tape_drop(e->t, before);
    hb_tape_drop(e->t, scaled);
}

void hb_titan_run_reference(struct hb_titan *e)
{
    struct hb_tape *t = e->t;
    t->grad = false;
    e->fsdp.frozen = true;
    e->fsdp.first_pool = HB_POOL_ALL_REDUCE;
    uint32_t x = hb_titan_embed(e);
    for (int64_t i = 0; i < e->layer_count; i++)
        x = hb_titan_run_layer(&e->layers[i], x);
    hb_titan_head(e, x);
    hb_fsdp_after_forward(&e->fsdp, &e->last);
    take_log_probabilities(e, &e->chunks[0]);
    e->fsdp.first_pool = 0;
    e->fsdp.frozen = false;
    t->phase = HB_PHASE_FORWARD;
}

static void add_weight(struct hb_titan *e, const struct hb_weight *w)
{
    hb_tape_argument(e->t, w->name,
                     hb_tape_size(e->t, hb_fsdp_rows(&e->fsdp, w), w->cols, ELEMENT_BYTES),
                     HB_CAT_PARAMS);
}

void hb_titan_add_reference(struct hb_titan *e)
{
    const struct hb_spec *s = e->spec;
    e->t->where = "reference.";
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            add_weight(e, &e->layers[i].weights[w]);
    for (int i = 0; i < e->end_count - s->model.tied_embeddings; i++)
        add_weight(e, &e->end_weights[i]);
    hb_titan_add_rope(e);
    e->t->where = "";
}
