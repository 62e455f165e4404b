/* See emit_parts.h. */
#include "models/emit_parts.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/diag.h"
#include "hw/device.h"
#include "models/schema.h"

static bool same_windows(const struct hb_attention *a, const struct hb_attention *b)
{
    for (int i = 0; a->window_count == b->window_count && i < a->window_count; i++)
        if (a->windows[i] != b->windows[i])
            return false;
    return a->window_count == b->window_count;
}

static bool same_block(const struct hb_block *a, const struct hb_block *b)
{
    return a->repeat == b->repeat && a->unit == b->unit && a->norm == b->norm &&
           a->post_norm == b->post_norm && a->attention.kind == b->attention.kind &&
           a->attention.heads == b->attention.heads &&
           a->attention.kv_heads == b->attention.kv_heads &&
           a->attention.head_dim == b->attention.head_dim &&
           a->attention.bias == b->attention.bias && a->attention.qk_norm == b->attention.qk_norm &&
           a->attention.q_lora_rank == b->attention.q_lora_rank &&
           a->attention.kv_lora_rank == b->attention.kv_lora_rank &&
           same_windows(&a->attention, &b->attention) && a->mlp.kind == b->mlp.kind &&
           a->mlp.d_ff == b->mlp.d_ff && a->moe.experts == b->moe.experts &&
           a->moe.top_k == b->moe.top_k && a->moe.d_ff == b->moe.d_ff &&
           a->moe.shared_d_ff == b->moe.shared_d_ff;
}

bool hb_is_card(struct hb_arena *arena, const struct hb_model *m, const char *zoo,
                const char *data_dir)
{
    struct hb_diag unheard;
    struct hb_spec card;
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, (struct hb_loc){.file = "card"});
    hb_diag_init(&unheard, arena);
    if (!hb_schema_set(arena, &unheard, root, hb_arena_printf(arena, "model.preset=%s", zoo)) ||
        !hb_schema_from_node(arena, &unheard, root, data_dir, &card))
        return false;
    bool same = m->d_model == card.model.d_model && m->vocab == card.model.vocab &&
                m->tied_embeddings == card.model.tied_embeddings &&
                m->block_count == card.model.block_count;
    for (int i = 0; same && i < m->block_count; i++)
        same = same_block(&m->blocks[i], &card.model.blocks[i]);
    return same;
}

/* "# ... Hugging Face NAME, config.json" in the comments on top of a card. */
static const char *hub_name_of(struct hb_arena *arena, const char *zoo, const char *data_dir)
{
    static const char word[] = "Hugging Face ";
    struct hb_text card;
    const char *reason = NULL;
    const char *path = hb_arena_printf(arena, "%s/models/zoo/%s.yaml", data_dir, zoo);
    if (!hb_file_load(arena, path, HB_FILE_MAX_BYTES, &card, &reason))
        return NULL;
    const char *at = strstr(card.text, word);
    const char *name = at ? at + strlen(word) : "";
    size_t len = strcspn(name, " ,.;\n");
    while (name[len] == '.' && name[len + 1] > ' ')
        len += 1 + strcspn(name + len + 1, " ,.;\n");
    return memchr(name, '/', len) ? hb_arena_strndup(arena, name, len) : NULL;
}

const char *hb_hub_name(struct hb_arena *arena, const struct hb_model *model, const char *data_dir)
{
    const char *const *zoo =
        hb_file_list(arena, hb_arena_printf(arena, "%s/models/zoo", data_dir), ".yaml");
    const char *found = NULL;
    for (; *zoo; zoo++) {
        bool own = model->name && hb_str_same(model->name, *zoo);
        if ((!found || own) && hb_is_card(arena, model, *zoo, data_dir))
            found = *zoo;
    }
    return found ? hub_name_of(arena, found, data_dir) : NULL;
}

enum { USUAL_HOST = 8 };

struct hb_hosts hb_hosts_of(struct hb_arena *arena, const struct hb_spec *s, const char *data_dir)
{
    struct hb_diag unheard;
    struct hb_device device;
    int64_t each = USUAL_HOST, count = s->hardware.count;
    hb_diag_init(&unheard, arena);
    if (hb_device_load(arena, &unheard, data_dir, s->hardware.device, (struct hb_loc){0},
                       &device) &&
        device.host_devices > 0)
        each = device.host_devices;
    while (count % each) /* the most that all hosts can have alike */
        each--;
    return (struct hb_hosts){each, count / each};
}

int64_t hb_rank_batch(const struct hb_spec *s)
{
    int64_t ranks = s->mesh[HB_AX_DATA] * s->mesh[HB_AX_FSDP] * s->mesh[HB_AX_EXPERT];
    return s->batch.global / (ranks * s->batch.accumulate);
}
