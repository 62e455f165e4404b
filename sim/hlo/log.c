/* The log reader: finds the anchors of all forms in one pass and keeps one message of each kind.
 * See log.h; what the forms are stands in the tables of the log_*.c beside this file. */
#include "sim/hlo/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/logform.h"
#include "sim/hlo/logline.h"

/* A line longer than WINDOW is read in pieces that overlap by AHEAD, so that a message is seen
 * whole if it is not longer than that. AHEAD is also how far a handler may look. */
enum { WINDOW = 1 << 16, AHEAD = 4096, BEHIND = 256, RANK_PREFIX = 96, TAIL = 32 };

/* Which message of a kind is kept. */
enum keep { KEEP_FIRST, KEEP_LAST, KEEP_LARGEST };

/* lines: how far from its last word a message still takes what belongs to it. Dumps are long, and
 * other ranks write in between. least: figures without which it is no message but a word in the
 * text; 0: the words alone say enough. */
static const struct policy {
    enum keep keep;
    enum hb_log_fact key; /* of KEEP_LARGEST */
    int lines;
    int least;
} policies[HB_LOG_KIND_COUNT] = {
    [HB_LOG_REMAT] = {KEEP_LARGEST, HB_FACT_REACHED, 4, 1},
    [HB_LOG_TPU] = {KEEP_LARGEST, HB_FACT_NEEDED, 64, 1},
    [HB_LOG_TPU_SCOPED] = {KEEP_FIRST, HB_FACT_NEEDED, 8, 0},
    [HB_LOG_TPU_ALLOC] = {KEEP_LARGEST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_TPU_BUFFER] = {KEEP_FIRST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_TPU_PROGRAM] = {KEEP_FIRST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_TUNER] = {KEEP_LAST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_XLA_ALLOC] = {KEEP_LAST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_BUFFERS] = {KEEP_LARGEST, HB_FACT_TOTAL, 64, 2},
    [HB_LOG_BFC] = {KEEP_LAST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_BFC_SOFT] = {KEEP_LARGEST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_BFC_DUMP] = {KEEP_LAST, HB_FACT_IN_USE, 200, 1},
    [HB_LOG_STATS] = {KEEP_LARGEST, HB_FACT_PEAK, 24, 2},
    [HB_LOG_ASYNC] = {KEEP_LAST, HB_FACT_ASKED, 8, 1},
    [HB_LOG_DRIVER] = {KEEP_FIRST, HB_FACT_ASKED, 12, 1},
    [HB_LOG_PLAIN] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_ANALYSIS] = {KEEP_LARGEST, HB_FACT_TOTAL, 24, 2},
    [HB_LOG_MAXTEXT] = {KEEP_LARGEST, HB_FACT_TOTAL, 4, 1},
    [HB_LOG_TORCH] = {KEEP_FIRST, HB_FACT_ASKED, 12, 1},
    [HB_LOG_TORCH_CORRUPT] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_CORRUPT] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_TORCH_STATS] = {KEEP_LARGEST, HB_FACT_PEAK_RESERVED, 60, 1},
    [HB_LOG_LIBRARY] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_NCCL] = {KEEP_LARGEST, HB_FACT_ASKED, 8, 0},
    [HB_LOG_GRAPH] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_GATHER] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_RESHARD] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_SERVE] = {KEEP_LARGEST, HB_FACT_ASKED, 6, 0},
    [HB_LOG_TACTIC] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
    [HB_LOG_RUNTIME] = {KEEP_FIRST, HB_FACT_ASKED, 4, 1},
    [HB_LOG_HOST] = {KEEP_LARGEST, HB_FACT_RESIDENT, 8, 0},
    [HB_LOG_ANY] = {KEEP_LARGEST, HB_FACT_ASKED, 2, 0},
    [HB_LOG_FAULT] = {KEEP_FIRST, HB_FACT_ASKED, 1, 0},
};

struct slot {
    struct hb_log_message open;
    bool is_open;
    int64_t last_line;
};

enum { PAIRS = 256 * 256 };

struct hb_log_reader {
    struct hb_arena *arena;
    struct hb_log_source source;
    struct hb_log *log;
    struct hb_evidence_reader *evidence;
    char *window;
    size_t start; /* of what is not read yet */
    size_t end;
    int64_t line;
    int64_t folds;               /* lines that were put behind it so far */
    struct hb_log_widths width;  /* of the text */
    int64_t first_line;          /* that has words, and no fence or tag alone; 0: none yet */
    struct hb_log_joined joined; /* a message broken over lines, as far as it was met */
    int64_t joined_line;         /* where it began */
    char
        before[HB_LOG_JOINED_CAP / 2]; /* the line before, if it was short and in no such message */
    size_t before_len;
    struct hb_span front;   /* what stood before the line that was taken last */
    struct hb_span segment; /* that is being read */
    char tail[TAIL];        /* the end of the segment before */
    size_t tail_len;
    bool any_seen; /* a part of a word that refusals have, in the segment */
    void *scratch; /* of hb_form_take_any */
    struct slot slot[HB_LOG_KIND_COUNT];
    enum hb_log_kind list_kind;
    bool has_list;
    uint8_t ranks[HB_LOG_RANKS / 8];
    uint8_t pairs[PAIRS / 8];  /* a bit for each two bytes that begin an anchor */
    struct hb_form *forms;     /* by their anchors' first two bytes */
    uint16_t first[PAIRS + 1]; /* forms[first[p]] .. forms[first[p + 1] - 1] begin with pair p */
};

static void clear_message(struct hb_log_message *m)
{
    for (int i = 0; i < HB_FACT_COUNT; i++) {
        m->fact[i] = -1;
        m->step[i] = 0;
    }
    m->name[0] = '\0';
    m->report = HB_REPORT_TOLD;
    m->item_count = 0;
    m->items_seen = 0;
}

static int figures_of(const struct hb_log_message *m)
{
    int figures = 0;
    for (int i = 0; i < HB_FACT_COUNT; i++)
        figures += m->fact[i] >= 0;
    return figures;
}

/* What a process printed that has nothing on the device: "MA 0.0 GB Max_MA 0.0 GB". */
static bool is_blank(enum hb_log_kind kind, const struct hb_log_message *m)
{
    for (int i = 0; i < HB_FACT_COUNT; i++)
        if (m->fact[i] > 0)
            return false;
    return kind == HB_LOG_TORCH_STATS;
}

static int said_of(const struct hb_log_message *m)
{
    bool named = m->name[0] && !hb_log_is_ended(m);
    return figures_of(m) + m->item_count + named;
}

/* Whether fresh takes the place of kept. Of two that say the same the one that says more stays. */
static bool is_better(const struct policy *policy, const struct hb_log_message *fresh,
                      const struct hb_log_message *kept)
{
    int64_t a = fresh->fact[policy->key];
    int64_t b = kept->fact[policy->key];
    if (fresh->report != kept->report) /* what has more to show stays */
        return fresh->report > kept->report;
    int64_t blur = kept->step[policy->key];
    /* People write GB of what was printed in GiB: 7 % apart. */
    if (fresh->step[policy->key] == 1 && blur > 1)
        blur += b / 13;
    if (a >= 0 && (b < 0 || (llabs(a - b) <= blur && blur > fresh->step[policy->key])))
        return true; /* the first that tells; the same, told exactly */
    if (a == b && (policy->keep == KEEP_LAST || (policy->keep == KEEP_LARGEST && a >= 0)))
        return said_of(fresh) >= said_of(kept);
    if (a == b && (a >= 0 || policy->keep == KEEP_LARGEST)) /* the first request counts */
        return said_of(fresh) > said_of(kept);
    return policy->keep == KEEP_LAST || (policy->keep == KEEP_LARGEST && a > b);
}

/* MaxText and memory_analysis() tell the parts; the total they mean is argument + output - alias
 * + temp (schema of measured records, kind xla_total). */
static void complete_total(struct hb_log_message *m)
{
    int64_t *f = m->fact;
    if (f[HB_FACT_TOTAL] >= 0 || f[HB_FACT_ARGUMENT] < 0 || f[HB_FACT_OUTPUT] < 0 ||
        f[HB_FACT_TEMP] < 0)
        return;
    int64_t alias = f[HB_FACT_ALIAS] > 0 ? f[HB_FACT_ALIAS] : 0;
    int64_t total = f[HB_FACT_ARGUMENT] + f[HB_FACT_OUTPUT] + f[HB_FACT_TEMP] - alias;
    hb_form_set(m, HB_FACT_TOTAL, (struct hb_amount){total > 0 ? total : 0, 1});
}

static void put_away(struct hb_log_reader *r, enum hb_log_kind kind)
{
    struct slot *slot = &r->slot[kind];
    struct hb_log_message *kept = &r->log->message[kind];
    if (!slot->is_open)
        return;
    slot->is_open = false;
    if (kind == HB_LOG_DRIVER && slot->open.fact[HB_FACT_ASKED] < 0)
        return; /* what the device had, and no request */
    if ((figures_of(&slot->open) < policies[kind].least && !slot->open.item_count) ||
        is_blank(kind, &slot->open))
        return;
    if (kind == HB_LOG_ANALYSIS)
        complete_total(&slot->open);
    int64_t times = kept->times + 1;
    if (!kept->times || is_better(&policies[kind], &slot->open, kept)) {
        struct hb_log_item *spare = kept->items;
        *kept = slot->open;
        slot->open.items = spare;
    }
    kept->times = times;
}

/* "[rank3]:", "[Rank 0]", "[default3]:" near the segment's start. */
static void note_rank(struct hb_log_reader *r)
{
    static const char *const marks[] = {"[rank", "[Rank ", "[default"};
    const struct hb_span heads[] = {r->front, hb_span_first(r->segment, RANK_PREFIX)};
    int64_t rank;
    for (size_t i = 0; i < 2 * sizeof marks / sizeof marks[0]; i++) {
        struct hb_span s = heads[i % 2];
        if (!hb_span_find(&s, marks[i / 2]) || !hb_span_int(&s, &rank) || rank >= HB_LOG_RANKS)
            continue;
        uint8_t bit = (uint8_t)(1u << (rank % 8));
        r->log->rank_count += !(r->ranks[rank / 8] & bit);
        r->ranks[rank / 8] |= bit;
        return;
    }
}

struct hb_log_message *hb_form_open(struct hb_log_reader *r, enum hb_log_kind kind)
{
    struct slot *slot = &r->slot[kind];
    put_away(r, kind);
    clear_message(&slot->open);
    slot->open.line = r->line;
    slot->is_open = true;
    slot->last_line = r->line;
    note_rank(r);
    return &slot->open;
}

struct hb_log_message *hb_form_current(struct hb_log_reader *r, enum hb_log_kind kind)
{
    struct slot *slot = &r->slot[kind];
    if (!slot->is_open || r->line - slot->last_line > policies[kind].lines)
        return NULL;
    slot->last_line = r->line;
    return &slot->open;
}

struct hb_log_message *hb_form_join(struct hb_log_reader *r, enum hb_log_kind kind)
{
    struct hb_log_message *m = hb_form_current(r, kind);
    if (!m)
        return hb_form_open(r, kind);
    m->report = HB_REPORT_TOLD;
    if (hb_log_is_ended(m))
        m->name[0] = '\0';
    return m;
}

void hb_form_end(struct hb_log_reader *r, const struct hb_form *form,
                 const struct hb_form_place *place)
{
    struct hb_log_message *m = hb_form_current(r, HB_LOG_HOST);
    bool begun = m;
    if (!begun)
        m = hb_form_open(r, HB_LOG_HOST);
    if (!begun || hb_str_same(m->name, HB_LOG_ENDED))
        hb_form_name(m, HB_LOG_SIGNAL);
    m->report = HB_REPORT_TOLD;
    (void)form;
    (void)place;
}

void hb_form_set(struct hb_log_message *m, int fact, struct hb_amount amount)
{
    int64_t blur = m->fact[fact] < 0 ? 0 : m->step[fact];
    bool exact = blur > 1 && amount.step_bytes == 1 && llabs(m->fact[fact] - amount.bytes) <= blur;
    if (m->fact[fact] >= 0 && !exact)
        return;
    m->fact[fact] = amount.bytes;
    m->step[fact] = amount.step_bytes;
}

void hb_form_add(struct hb_log_message *m, int fact, int64_t bytes)
{
    int64_t sum = m->fact[fact] < 0 ? bytes : hb_add_sat(m->fact[fact], bytes);
    m->fact[fact] = hb_size_ok(sum) ? sum : INT64_MAX / 4 - 1;
    m->step[fact] = 1;
}

void hb_form_lower(struct hb_log_message *m, int fact, struct hb_amount amount)
{
    if (m->fact[fact] >= 0 && m->fact[fact] <= amount.bytes)
        return;
    m->fact[fact] = amount.bytes;
    m->step[fact] = amount.step_bytes;
}

void hb_form_raise(struct hb_log_message *m, int fact, struct hb_amount amount)
{
    if (m->fact[fact] >= amount.bytes)
        return;
    m->fact[fact] = amount.bytes;
    m->step[fact] = amount.step_bytes;
}

struct hb_log_item *hb_form_item(struct hb_log_reader *r, struct hb_log_message *m)
{
    m->items_seen += m->items_seen < INT32_MAX;
    if (m->item_count == HB_LOG_ITEMS)
        return NULL;
    if (!m->items)
        m->items = hb_arena_alloc(r->arena, HB_LOG_ITEMS, sizeof *m->items);
    struct hb_log_item *item = &m->items[m->item_count++];
    memset(item, 0, sizeof *item);
    return item;
}

struct hb_log_message *hb_form_list(struct hb_log_reader *r)
{
    return r->has_list ? hb_form_current(r, r->list_kind) : NULL;
}

void hb_form_list_of(struct hb_log_reader *r, enum hb_log_kind kind)
{
    r->has_list = true;
    r->list_kind = kind;
}

bool hb_form_is_met(const struct hb_log_reader *r, enum hb_log_kind kind)
{
    return r->slot[kind].is_open || r->log->message[kind].times;
}

int64_t hb_form_line(const struct hb_log_reader *r)
{
    return r->line;
}

bool hb_form_is_first_line(const struct hb_log_reader *r)
{
    return r->line == r->first_line;
}

struct hb_log *hb_form_log(struct hb_log_reader *r)
{
    return r->log;
}

/* The message that a form's figure goes to; null if it has none. */
static struct hb_log_message *target_of(struct hb_log_reader *r, const struct hb_form *form)
{
    struct hb_log_message *m;
    switch (form->act) {
    case HB_FORM_OPENS:
        return hb_form_open(r, form->kind);
    case HB_FORM_ADDS:
        return hb_form_current(r, form->kind);
    case HB_FORM_JOINS:
        m = hb_form_current(r, form->kind);
        if (m && (form->value == HB_VALUE_NONE || m->fact[form->fact] < 0))
            return m;
        return hb_form_open(r, form->kind);
    }
    return NULL;
}

static void take_amount(struct hb_log_reader *r, const struct hb_form *form, bool found,
                        struct hb_amount amount)
{
    struct hb_log_message *m = found ? target_of(r, form) : NULL;
    if (m)
        hb_form_set(m, form->fact, amount);
}

/* "... and 1.00 GiB" <line break> "is reserved by PyTorch ..." */
static bool amount_before(const struct hb_log_reader *r, struct hb_span before,
                          struct hb_amount *out)
{
    struct hb_span blank = before;
    hb_span_skip(&blank, " \t");
    if (blank.at < blank.end)
        return hb_span_amount_last(before, out);
    return hb_span_amount_last((struct hb_span){r->tail, r->tail + r->tail_len}, out);
}

static void take_form(struct hb_log_reader *r, const struct hb_form *form,
                      struct hb_form_place *place)
{
    struct hb_amount amount = {0, 0};
    struct hb_log_message *m;
    int64_t unit = form->unit_bytes ? form->unit_bytes : 1;
    bool found;
    if (form->needs && !hb_span_has(place->after, form->needs))
        return;
    if (form->handle) {
        form->handle(r, form, place);
        return;
    }
    switch (form->value) {
    case HB_VALUE_AFTER:
        found = hb_span_amount(&place->after, unit, &amount);
        take_amount(r, form, found, amount);
        return;
    case HB_VALUE_BEFORE:
        found = amount_before(r, place->before, &amount);
        take_amount(r, form, found, amount);
        return;
    case HB_VALUE_NAME:
        m = target_of(r, form);
        if (m && !m->name[0])
            hb_span_copy(&place->after, " \t'\"\\,;()]", m->name, sizeof m->name);
        return;
    case HB_VALUE_NONE:
        target_of(r, form);
        return;
    }
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

static bool ends_with(struct hb_span s, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(s.end - s.at) >= len && memcmp(s.end - len, word, len) == 0;
}

static unsigned pair_at(const char *at)
{
    return (unsigned)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

/* "# Avoid Cuda failure 'out of memory'": what is kept from happening. */
static bool is_avoided(struct hb_span before)
{
    return ends_with(before, "void ") || ends_with(before, "voids ") ||
           ends_with(before, "revent ") || ends_with(before, "revents ");
}

static void try_forms(struct hb_log_reader *r, const char *at, unsigned pair)
{
    struct hb_span rest = {at + 2, r->segment.end};
    struct hb_span before = hb_span_last((struct hb_span){r->segment.at, at}, BEHIND);
    for (unsigned i = r->first[pair]; i < r->first[pair + 1]; i++) {
        const struct hb_form *form = &r->forms[i];
        if (!hb_span_starts(rest, form->anchor + 2))
            continue;
        if (form->word && before.end > before.at && is_word_byte(before.end[-1]))
            continue;
        if (form->unless && ends_with(before, form->unless))
            continue;
        if (form->act == HB_FORM_OPENS && is_avoided(before))
            continue;
        struct hb_span after = {at + strlen(form->anchor), rest.end};
        struct hb_form_place place = {before, hb_span_first(after, AHEAD)};
        take_form(r, form, &place);
    }
}

void hb_form_any_seen(struct hb_log_reader *r)
{
    r->any_seen = true;
}

void *hb_form_scratch(struct hb_log_reader *r, size_t size)
{
    if (!r->scratch)
        r->scratch = hb_arena_alloc(r->arena, 1, size);
    return r->scratch;
}

/* Whether a form took something of this line; figures that stand beside refusals are none. */
static bool is_told(const struct hb_log_reader *r)
{
    for (int kind = 0; kind < HB_LOG_KIND_COUNT; kind++) {
        const struct slot *slot = &r->slot[kind];
        if (slot->last_line != r->line)
            continue;
        int least = kind == HB_LOG_TPU_SCOPED ? 1 : policies[kind].least;
        bool empty = slot->is_open && !slot->open.item_count && figures_of(&slot->open) < least;
        bool device = kind == HB_LOG_DRIVER && slot->open.fact[HB_FACT_ASKED] < 0;
        if (!empty && !device && kind != HB_LOG_STATS && kind != HB_LOG_FAULT &&
            kind != HB_LOG_GATHER && kind != HB_LOG_TORCH_STATS)
            return true;
    }
    return false;
}

/* A message whose request stands in other words, or misspelt. */
static bool lacks_request(const struct hb_log_reader *r, enum hb_log_kind kind)
{
    const struct slot *slot = &r->slot[kind];
    return slot->is_open && slot->last_line == r->line && slot->open.fact[HB_FACT_ASKED] < 0;
}

/* What no form took, piece by piece. */
static void read_any(struct hb_log_reader *r, struct hb_span segment)
{
    enum { PIECE = 2048 };
    while (segment.at < segment.end) {
        struct hb_span piece = hb_span_first(segment, PIECE);
        hb_form_take_any(r, piece);
        segment.at = piece.end;
    }
}

/* A list of figures that stands right behind a refusal which tells none. */
static void follow_refusal(struct hb_log_reader *r, struct hb_span segment)
{
    enum { LINES = 5 };
    static const enum hb_log_kind kinds[] = {HB_LOG_PLAIN, HB_LOG_ANY};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct slot *slot = &r->slot[kinds[i]];
        if (hb_span_has(segment, "Found device")) /* a list of what it has, not of what failed */
            put_away(r, kinds[i]);
        if (!slot->is_open || r->line - slot->open.line > LINES || is_told(r))
            continue;
        hb_form_follow(r, &slot->open, segment);
        return;
    }
}

/* Looks at each byte of the segment that lies before stop. */
static void read_segment(struct hb_log_reader *r, struct hb_span segment, const char *stop)
{
    r->segment = segment;
    const char *last = segment.end - 1 < stop ? segment.end - 1 : stop;
    hb_evidence_take(r->evidence, segment);
    for (const char *at = segment.at; at < last; at++) {
        unsigned pair = pair_at(at);
        if (r->pairs[pair / 8] & (1u << (pair % 8)))
            try_forms(r, at, pair);
    }
    const struct slot *host = &r->slot[HB_LOG_HOST]; /* told by a form: as programs print it */
    bool printed = host->is_open && host->last_line == r->line;
    r->log->mark[HB_MARK_PRINTED] += printed;
    r->log->mark[HB_MARK_SHOWN] += printed;
    if (r->any_seen && !is_told(r))
        read_any(r, segment);
    else if (r->any_seen && lacks_request(r, HB_LOG_TORCH))
        hb_form_complete(r, HB_LOG_TORCH, segment);
    else if (r->any_seen && lacks_request(r, HB_LOG_PLAIN))
        hb_form_complete(r, HB_LOG_PLAIN, segment);
    r->any_seen = false;
    follow_refusal(r, segment);
    size_t len = (size_t)(segment.end - segment.at);
    r->tail_len = len < TAIL ? len : TAIL;
    memcpy(r->tail, segment.end - r->tail_len, r->tail_len);
}

/* A line, cut where someone escaped its line breaks: "\n" as two characters. */
static void read_line(struct hb_log_reader *r, struct hb_span line, const char *stop)
{
    while (line.at < line.end && line.at < stop) {
        struct hb_span rest = line;
        struct hb_span segment = line;
        if (hb_span_find(&rest, "\\n"))
            segment.end = rest.at - 2;
        else
            rest.at = line.end;
        read_segment(r, segment, stop);
        line.at = rest.at;
    }
}

static void end_joined(struct hb_log_reader *r)
{
    int64_t line = r->line;
    struct hb_span text = {r->joined.text, r->joined.text + r->joined.len};
    r->line = r->joined_line;
    if (r->joined.len)
        read_line(r, text, text.end);
    r->joined.len = 0;
    r->line = line;
}

static void keep_before(struct hb_log_reader *r, struct hb_span line)
{
    size_t len = (size_t)(line.end - line.at);
    r->before_len = len <= sizeof r->before ? len : 0;
    memcpy(r->before, line.at, r->before_len);
}

/* Whether a message begins here, or began in the line before, that goes on in the next line. */
static bool begin_joined(struct hb_log_reader *r, struct hb_span line)
{
    struct hb_span before = {r->before, r->before + r->before_len};
    r->joined_line = r->line; /* of the line before something may have been told */
    if (hb_log_line_begin_both(&r->joined, before, line))
        return true;
    if (!hb_log_line_is_cut(line))
        return false;
    hb_log_line_begin(&r->joined, before, line);
    return true;
}

/* A line that is whole, in the window, where it may be changed. */
static void take_line(struct hb_log_reader *r, char *text, size_t len)
{
    len = hb_log_line_plain(text, len);
    struct hb_span line = hb_log_line_bare((struct hb_span){text, text + len}), words = line;
    hb_span_skip(&words, " \t\r");
    if (!r->first_line && words.at < words.end && *words.at != '<' && !hb_span_starts(words, "```"))
        r->first_line = r->line;
    bool added = r->joined.len && hb_log_line_add(&r->joined, line);
    if (!added)
        end_joined(r);
    r->front = (struct hb_span){text, line.at};
    if (added || begin_joined(r, line)) {
        r->before_len = 0;
        if (hb_log_line_is_done(&r->joined))
            end_joined(r);
    } else {
        read_line(r, line, line.end);
        keep_before(r, line);
    }
    r->log->lines++;
}

/* Reads all whole lines of the window, and what is left of it if it can hold no more. */
static void read_window(struct hb_log_reader *r, bool at_end)
{
    for (char *part = r->window + r->start, *end = r->window + r->end;;) {
        char *text = r->window + r->start;
        char *cut = memchr(part, '\n', (size_t)(end - part));
        if (!cut)
            break;
        char *stop = cut > part && cut[-1] == '\r' ? cut - 1 : cut;
        struct hb_span line = {part, stop}, next = {cut + 1, end};
        bool folded = hb_log_is_folded(line, next, r->width.fold);
        bool wrapped = !folded && hb_log_is_wrapped(line, next, r->width.wrap);
        if (cut - text < HB_LOG_JOINED_CAP && (folded || wrapped)) {
            bool blank = wrapped && !(stop > part && stop[-1] == ' ');
            size_t over = (size_t)(cut + 1 - stop) - blank; /* of its end */
            memmove(text + over, text, (size_t)(stop - text));
            if (blank)
                *cut = ' ';
            r->start += over;
            r->log->lines++;
            r->folds++;
        } else {
            take_line(r, text, (size_t)(cut - text));
            r->start = (size_t)(cut + 1 - r->window);
            r->line += r->folds + 1;
            r->folds = 0;
        }
        part = cut + 1;
    }
    struct hb_span rest = {r->window + r->start, r->window + r->end};
    if (at_end && rest.at < rest.end) {
        take_line(r, r->window + r->start, r->end - r->start);
        r->start = r->end;
    } else if (r->start == 0 && r->end == WINDOW) {
        end_joined(r);
        r->start = WINDOW - AHEAD;
        read_line(r, rest, r->window + r->start);
    }
    if (at_end)
        end_joined(r);
}

/* As much as it can hold, so that nothing follows from how a text comes in pieces. */
static bool fill_window(struct hb_log_reader *r)
{
    memmove(r->window, r->window + r->start, r->end - r->start);
    r->end -= r->start;
    r->start = 0;
    r->front = (struct hb_span){NULL, NULL};
    size_t known = r->end, got = 1;
    for (; got > 0 && r->end < WINDOW; r->end += got)
        got = r->source.read(r->source.context, r->window + r->end, WINDOW - r->end);
    if (!r->log->bytes)
        r->width = hb_log_widths_of((struct hb_span){r->window, r->window + r->end});
    r->log->bytes += (int64_t)(r->end - known);
    return r->end > known;
}

static const struct hb_forms *const families[] = {&hb_forms_xla,   &hb_forms_bfc, &hb_forms_torch,
                                                  &hb_forms_other, &hb_forms_run, &hb_forms_program,
                                                  &hb_forms_any};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* Counts forms by their first two bytes into first[pair + 1], and marks these. */
static size_t count_forms(struct hb_log_reader *r)
{
    size_t count = 0;
    for (int i = 0; i < FAMILIES; i++)
        for (size_t k = 0; k < families[i]->count; k++) {
            unsigned pair = pair_at(families[i]->rows[k].anchor);
            r->pairs[pair / 8] |= (uint8_t)(1u << (pair % 8));
            r->first[pair + 1]++;
            count++;
        }
    return count;
}

static void index_forms(struct hb_log_reader *r)
{
    uint16_t *next = hb_arena_alloc(r->arena, PAIRS, sizeof *next);
    r->forms = hb_arena_alloc(r->arena, count_forms(r), sizeof *r->forms);
    for (int p = 0; p < PAIRS; p++) {
        r->first[p + 1] = (uint16_t)(r->first[p + 1] + r->first[p]);
        next[p] = r->first[p];
    }
    for (int i = 0; i < FAMILIES; i++)
        for (size_t k = 0; k < families[i]->count; k++) {
            const struct hb_form *form = &families[i]->rows[k];
            r->forms[next[pair_at(form->anchor)]++] = *form;
        }
}

void hb_log_read(struct hb_arena *arena, struct hb_log_source source, struct hb_log *out_log)
{
    struct hb_log_reader *r = hb_arena_alloc(arena, 1, sizeof *r);
    memset(out_log, 0, sizeof *out_log);
    r->arena = arena;
    r->source = source;
    r->log = out_log;
    r->window = hb_arena_alloc(arena, WINDOW, 1);
    r->line = 1;
    r->evidence = hb_evidence_begin(arena);
    index_forms(r);
    while (fill_window(r))
        read_window(r, false);
    read_window(r, true);
    out_log->evidence = hb_evidence_sum(r->evidence);
    for (int kind = 0; kind < HB_LOG_KIND_COUNT; kind++) {
        put_away(r, (enum hb_log_kind)kind);
        out_log->kinds_seen += out_log->message[kind].times > 0;
    }
}

#define HB_ENUM(name, key) key,
static const char *const kind_keys[] = {HB_LOG_KINDS(HB_ENUM)};
static const char *const fact_keys[] = {HB_LOG_FACTS(HB_ENUM)};
static const char *const framework_keys[] = {HB_LOG_FRAMEWORKS(HB_ENUM)};
#undef HB_ENUM

const char *hb_log_kind_key(enum hb_log_kind kind)
{
    return kind_keys[kind];
}

const char *hb_log_fact_key(enum hb_log_fact fact)
{
    return fact_keys[fact];
}

const char *hb_log_framework_key(enum hb_log_framework framework)
{
    return framework_keys[framework];
}

bool hb_log_is_ended(const struct hb_log_message *m)
{
    return hb_str_same(m->name, HB_LOG_ENDED) || hb_str_same(m->name, HB_LOG_SIGNAL);
}

bool hb_log_seen(const struct hb_log *log, enum hb_log_kind kind)
{
    return log->message[kind].times > 0;
}

int64_t hb_log_fact(const struct hb_log *log, enum hb_log_kind kind, enum hb_log_fact fact)
{
    return hb_log_seen(log, kind) ? log->message[kind].fact[fact] : -1;
}

int64_t hb_log_asked(const struct hb_log *log, enum hb_log_kind kind)
{
    static const enum hb_log_kind kinds[] = {HB_LOG_XLA_ALLOC, HB_LOG_BFC, HB_LOG_ASYNC,
                                             HB_LOG_DRIVER};
    int64_t asked = hb_log_fact(log, kind, HB_FACT_ASKED);
    int64_t blur = asked < 0 ? 0 : log->message[kind].step[HB_FACT_ASKED];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && blur > 1; i++) {
        int64_t other = hb_log_fact(log, kinds[i], HB_FACT_ASKED);
        bool exact = other >= 0 && log->message[kinds[i]].step[HB_FACT_ASKED] == 1;
        if (exact && llabs(other - asked) <= blur)
            return other;
    }
    return asked;
}
