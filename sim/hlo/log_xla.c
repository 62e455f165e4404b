/* What XLA says: its compilers' refusals, its rematerialization, the runtime's failed allocations,
 * lists of buffers, and the totals that JAX programs print.
 * Source of the forms: docs/errors/error_1000, 0100, 0101 and docs/oom_debugging of openxla/xla;
 * xla/service/buffer_assignment.cc (StatsString, ToVerboseString); pjrt's CompiledMemoryStats;
 * backends/autotuner/config_assigner.cc and config_runner.cc (what no kernel could be found for);
 * MaxText's max_utils.py before and after its pull request 4514; logs in public issues. */
#include <string.h>

#include "sim/hlo/logform.h"

/* A chip's memories other than HBM are a kernel's own affair: kept apart. */
static enum hb_log_kind kind_of_space(const char *space)
{
    return strcmp(space, "hbm") == 0 || strcmp(space, "HBM") == 0 ? HB_LOG_TPU : HB_LOG_TPU_SCOPED;
}

/* "Ran out of memory in memory space hbm. Used 17.62G of 15.48G hbm." */
static void take_space(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    char space[HB_LOG_WORD_CAP];
    struct hb_amount amount;
    hb_span_copy(&s, ". \t,;:'\"\\", space, sizeof space);
    if (space[0] < 'A' || space[0] > 'z')
        return;
    struct hb_log_message *m = hb_form_open(r, kind_of_space(space));
    memcpy(m->name, space, sizeof space);
    if (kind_of_space(space) == HB_LOG_TPU)
        hb_form_list_of(r, HB_LOG_TPU);
    if (!hb_span_find(&s, "Used ") || !hb_span_amount(&s, 1, &amount))
        return;
    hb_form_set(m, HB_FACT_NEEDED, amount);
    if (hb_span_find(&s, "of ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
    if (hb_span_find(&s, "capacity by ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_OVER, amount);
    (void)form;
}

/* "... the total memory required for HLO temporaries (28.58G) exceeds available HBM (15.75G). HLO
 * module: jit_f." The figure is argument + output - alias + temp: compiled at four sizes, it goes
 * on in the series of the totals of those that fit (6.5, 10.5, 14.5, then 18.50G; libtpu 0.0.51).
 */
static void take_temporaries(struct hb_log_reader *r, const struct hb_form *form,
                             const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_NEEDED, amount);
    hb_form_list_of(r, HB_LOG_TPU);
    if (hb_span_find(&s, "available HBM (") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
    if (hb_span_find(&s, "HLO module: "))
        hb_span_copy(&s, " .'\"\\", m->name, sizeof m->name);
}

/* "TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes:
 * 95.74G" */
static void take_cores(struct hb_log_reader *r, const struct hb_form *form,
                       const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount tensor;
    struct hb_amount sparse;
    struct hb_amount limit;
    if (!hb_span_amount(&s, 1, &tensor) || !hb_span_find(&s, "SparseCore Hbm usage") ||
        !hb_span_amount(&s, 1, &sparse) || !hb_span_find(&s, "available bytes") ||
        !hb_span_amount(&s, 1, &limit))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_TENSORCORE, tensor);
    hb_form_set(m, HB_FACT_SPARSECORE, sparse);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
    hb_form_set(
        m, HB_FACT_NEEDED,
        (struct hb_amount){tensor.bytes + sparse.bytes, tensor.step_bytes + sparse.step_bytes});
}

/* "Allocation (size=107374182400) would exceed memory (size=17179869184) :: #allocation7 [shape =
 * 'u8[327680,327680]{...}', space=hbm, ..., tag = 'output of fusion@{}']" */
static void take_allocation(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount asked;
    struct hb_amount limit;
    if (!hb_span_amount(&s, 1, &asked) || !hb_span_find(&s, "exceed memory (size=") ||
        !hb_span_amount(&s, 1, &limit))
        return;
    bool scoped = hb_span_has(s, "space=") && !hb_span_has(s, "space=hbm");
    struct hb_log_message *m = hb_form_open(r, scoped ? HB_LOG_TPU_SCOPED : form->kind);
    hb_form_set(m, scoped ? HB_FACT_NEEDED : HB_FACT_ASKED, asked);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
    struct hb_log_item *item = hb_form_item(r, m);
    item->bytes = asked.bytes;
    if (hb_span_find(&s, "shape = '"))
        hb_span_copy(&s, "'", item->shape, sizeof item->shape);
    if (hb_span_find(&s, "space="))
        hb_span_copy(&s, ", ]", m->name, sizeof m->name);
    if (hb_span_find(&s, "tag = '"))
        hb_span_copy(&s, "'", item->op, sizeof item->op);
}

/* "Could not allocate 10485760 bytes in memory 0x0x0_HBM0; 4374528 bytes allocatable, 14942208
 * bytes available", "... (size=...) ..." */
static void take_no_place(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount) || !hb_span_has(s, "in memory "))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_ASKED, amount);
    if (hb_span_find(&s, "in memory "))
        hb_span_copy(&s, " .,;:'\"\\", m->name, sizeof m->name);
    struct hb_span piece = s;
    if (hb_span_has(s, " bytes allocatable, ") && hb_span_find(&piece, "; ") &&
        hb_span_amount(&piece, 1, &amount)) {
        hb_form_set(m, HB_FACT_LARGEST_FREE, amount);
        hb_span_find(&s, " bytes allocatable, ");
        if (hb_span_amount(&s, 1, &amount))
            hb_form_set(m, HB_FACT_FREE, amount);
    }
    if (hb_span_find(&s, "There are ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_FREE, amount);
}

/* "Out of memory allocating 512 bytes."; CuPy's sentence begins alike. */
static void take_allocating(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    if (!hb_span_has(place->after, "allocated so far"))
        hb_form_request(r, form, place);
}

/* "The byte size of input/output arguments (86973087744) exceeds the base limit (81174881894)." */
static void take_base_limit(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount held;
    struct hb_amount limit;
    if (!hb_span_amount(&s, 1, &held) || !hb_span_find(&s, "base limit (") ||
        !hb_span_amount(&s, 1, &limit))
        return;
    struct hb_log_message *m = hb_form_join(r, form->kind);
    hb_form_set(m, HB_FACT_ARGUMENT, held);
    hb_form_set(m, HB_FACT_LIMIT, limit);
}

/* "Used 33.27G of 30.75G" of HBM, as people quote it, without the sentence before. */
static void take_used(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_amount used;
    struct hb_amount limit;
    const struct hb_log_message *open = hb_form_current(r, HB_LOG_TPU);
    if ((open && open->fact[HB_FACT_NEEDED] >= 0) || !hb_span_amount(&s, 1, &used) ||
        !hb_span_starts(s, " of "))
        return;
    s.at += 4;
    if (!hb_span_amount(&s, 1, &limit) || limit.bytes >= used.bytes ||
        !(hb_span_has(place->before, "HBM") || hb_span_has(s, "HBM") || hb_span_has(s, "hbm")))
        return;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    hb_form_set(m, HB_FACT_NEEDED, used);
    hb_form_set(m, HB_FACT_CAPACITY, limit);
    hb_form_list_of(r, HB_LOG_TPU);
}

/* "  1. Size: 1.46G": the number of an entry stands before. */
static bool is_numbered(struct hb_span before)
{
    while (before.end > before.at && before.end[-1] == ' ')
        before.end--;
    return before.end - before.at >= 2 && before.end[-1] == '.' && before.end[-2] >= '0' &&
           before.end[-2] <= '9';
}

/* "1. Size: 2.00G" and "Size: 3.40GiB" begin an entry of the list that is open. A BFC dump has
 * "Size: 4.39GiB | Requested Size: ..." */
static void take_item(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_list(r);
    struct hb_amount amount;
    if (!hb_span_amount(&s, 1, &amount) || hb_span_has(s, "| Requested"))
        return;
    if (!m && is_numbered(place->before)) { /* a list whose head was cut off */
        m = hb_form_join(r, HB_LOG_TPU);
        hb_form_list_of(r, HB_LOG_TPU);
    }
    if (!m)
        return;
    struct hb_log_item *item = hb_form_item(r, m);
    if (item)
        item->bytes = amount.bytes;
    (void)form;
}

/* The entry that is being told; null if there is none. */
static struct hb_log_item *last_item(struct hb_log_reader *r)
{
    struct hb_log_message *m = hb_form_list(r);
    bool kept = m && m->item_count && m->item_count == m->items_seen;
    return kept ? &m->items[m->item_count - 1] : NULL;
}

/* The value of name="..." or name=\"...\" into text; "" where it is not there. */
static void copy_quoted(struct hb_span s, const char *name, char *text, size_t cap)
{
    text[0] = '\0';
    if (!hb_span_find(&s, name))
        return;
    hb_span_skip(&s, "\\\"");
    hb_span_copy(&s, "\\\"", text, cap);
}

static void copy_source(struct hb_span s, char *text, size_t cap)
{
    char line[16];
    copy_quoted(s, "source_file=", text, cap);
    if (!text[0] || !hb_span_find(&s, "source_line="))
        return;
    hb_span_copy(&s, " \t,}\\\"", line, sizeof line);
    size_t len = strlen(text);
    size_t more = strlen(line);
    if (len + 1 + more >= cap)
        return;
    text[len] = ':';
    memcpy(text + len + 1, line, more + 1);
}

static void take_operator(struct hb_log_reader *r, const struct hb_form *form,
                          const struct hb_form_place *place)
{
    struct hb_log_item *item = last_item(r);
    if (!item || item->op[0])
        return;
    copy_quoted(place->after, "op_name=", item->op, sizeof item->op);
    copy_source(place->after, item->source, sizeof item->source);
    (void)form;
}

enum item_text { ITEM_SHAPE, ITEM_LABEL, ITEM_TYPE, ITEM_PARAMETER };

static void take_item_text(struct hb_log_reader *r, const struct hb_form *form,
                           const struct hb_form_place *place)
{
    struct hb_log_item *item = last_item(r);
    struct hb_span s = place->after;
    if (!item)
        return;
    hb_span_skip(&s, " \t%");
    switch ((enum item_text)form->fact) {
    case ITEM_PARAMETER:
        memcpy(item->type, "argument", sizeof "argument");
        hb_span_copy(&s, "\\\r", item->shape, sizeof item->shape);
        return;
    case ITEM_SHAPE:
        hb_span_copy(&s, "\\\r", item->shape, sizeof item->shape);
        return;
    case ITEM_LABEL:
        hb_span_copy(&s, " \\\r", item->label, sizeof item->label);
        return;
    case ITEM_TYPE:
        hb_span_copy(&s, "\\\r", item->type, sizeof item->type);
        return;
    }
}

static void take_padding(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_log_item *item = last_item(r);
    struct hb_span s = place->after;
    struct hb_amount amount;
    if (item && hb_span_amount(&s, 1, &amount) && amount.bytes <= item->bytes)
        item->padding_bytes = amount.bytes;
    (void)form;
}

/* A list of buffers begins in the message of kind. */
static void take_list(struct hb_log_reader *r, const struct hb_form *form,
                      const struct hb_form_place *place)
{
    hb_form_join(r, form->kind);
    hb_form_list_of(r, form->kind);
    (void)place;
}

/* "Buffer 11:" alone in its line: a list whose head was cut off goes on. */
static void take_buffer(struct hb_log_reader *r, const struct hb_form *form,
                        const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t number;
    if (!hb_span_int(&s, &number) || !hb_span_starts(s, ":"))
        return;
    s.at++;
    hb_span_skip(&s, " \t\r");
    if (s.at < s.end)
        return;
    hb_form_join(r, form->kind);
    hb_form_list_of(r, form->kind);
}

static void take_stats_head(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    hb_form_open(r, form->kind);
    hb_form_list_of(r, form->kind);
    (void)place;
}

/* "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {..} to {..}
 * efficiently for HLO operation %add = f32[64,96,6144]{2,1,0} add(...), ... op_name=..." */
static void take_reshard(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_open(r, form->kind);
    struct hb_log_item *item = hb_form_item(r, m);
    copy_quoted(s, "op_name=", item->op, sizeof item->op);
    copy_source(s, item->source, sizeof item->source);
    if (!hb_span_find(&s, "HLO operation"))
        return;
    hb_span_skip(&s, ": %");
    hb_span_copy(&s, " =", m->name, sizeof m->name);
    hb_span_skip(&s, " =");
    hb_span_copy(&s, " ", item->shape, sizeof item->shape);
}

#define NOT_POSSIBLE "That was not possible"
#define K(kind)      HB_LOG_##kind
#define OPENS        HB_FORM_OPENS
#define ADDS         HB_FORM_ADDS
#define JOINS        HB_FORM_JOINS
#define FACT(name)   HB_FACT_##name

static const struct hb_form rows[] = {
    {"Can't reduce memory use below ", K(REMAT), JOINS, .fact = FACT(TARGET)},
    /* arguments alone are above the limit */
    {"Can't reduce memory use below -", K(REMAT), OPENS, .value = HB_VALUE_NONE},
    {"of input/output arguments (", K(REMAT), JOINS, .handle = take_base_limit},
    {"only reduced to ", K(REMAT), ADDS, .fact = FACT(REACHED)},
    {", down from ", K(REMAT), ADDS, .fact = FACT(ORIGINAL)},

    {"Ran out of memory in memory space ", K(TPU), OPENS, .handle = take_space},
    {"Scoped allocation with size ", K(TPU_SCOPED), OPENS, .handle = hb_form_request,
     .text = "on-chip memory", .figures = {{"", FACT(NEEDED)}, {"limit ", FACT(CAPACITY)}}},
    {"unlikely to have enough memory. Requires ", K(TPU), OPENS, .handle = hb_form_request,
     .figures = {{"", FACT(NEEDED)}, {", has ", FACT(CAPACITY)}}},
    {"required for HLO temporaries (", K(TPU), OPENS, .handle = take_temporaries},
    {"TensorCore Hbm usage", K(TPU), OPENS, .handle = take_cores},
    {"Total hbm usage >= ", K(TPU), JOINS, .fact = FACT(TOTAL)},
    {"Peak HBM: ", K(TPU), JOINS, .fact = FACT(TOTAL)},
    {"reserved ", K(TPU), ADDS, .fact = FACT(RESERVED), .word = true},
    {"program ", K(TPU), ADDS, .fact = FACT(PROGRAM), .word = true},
    {"arguments ", K(TPU), ADDS, .fact = FACT(ARGUMENT), .word = true},
    {"Output size ", K(TPU), ADDS, .fact = FACT(OUTPUT), .word = true},
    {"; shares ", K(TPU), ADDS, .fact = FACT(ALIAS)},
    {"Program hbm requirement ", K(TPU), ADDS, .fact = FACT(PROGRAM)},
    {"HLO temp ", K(TPU), ADDS, .fact = FACT(TEMP)},
    {"utilization: Unpadded (", K(TPU), JOINS, .fact = FACT(UNPADDED)},
    {" Padded (", K(TPU), ADDS, .fact = FACT(PADDED)},
    {"% fragmentation (", K(TPU), ADDS, .fact = FACT(FRAGMENTATION)},
    {"Largest program allocations in ", K(TPU), JOINS, .handle = take_list},

    {"Allocation (size=", K(TPU_ALLOC), OPENS, .handle = take_allocation},
    {"Attempting to allocate ", K(TPU_BUFFER), OPENS, .handle = hb_form_request,
     .needs = NOT_POSSIBLE,
     .figures = {{"", FACT(ASKED)},
                 {"There are ", FACT(FREE)},
                 {"region of free memory is ", FACT(LARGEST_FREE)}}},
    {"Attempting to reserve ", K(TPU_PROGRAM), OPENS, .handle = hb_form_request,
     .needs = NOT_POSSIBLE,
     .figures = {{"", FACT(ASKED)}, {"There are ", FACT(FREE)}, {", and ", FACT(RESERVABLE)}}},

    {"Could not allocate ", K(TPU_BUFFER), OPENS, .handle = take_no_place},
    {"Used ", K(TPU), OPENS, .handle = take_used, .word = true},

    {"onfigs failed during profiling", K(TUNER), OPENS, .value = HB_VALUE_NONE},
    {"ailed to get configs for", K(TUNER), OPENS, .value = HB_VALUE_NONE},
    {"ould not get config for HLO", K(TUNER), OPENS, .value = HB_VALUE_NONE},
    {"utotuning failed for HLO", K(TUNER), OPENS, .value = HB_VALUE_NONE},
    {"ailed to determine best cudnn", K(TUNER), OPENS, .value = HB_VALUE_NONE},

    {"Out of memory while trying to allocate ", K(XLA_ALLOC), OPENS, .fact = FACT(ASKED)},
    {"Out of memory allocating ", K(XLA_ALLOC), OPENS, .handle = take_allocating},
    {"Failed to allocate request for ", K(XLA_ALLOC), OPENS, .fact = FACT(ASKED)},
    {"executable_name='", K(XLA_ALLOC), ADDS, .value = HB_VALUE_NAME},
    {"on device ordinal ", K(XLA_ALLOC), ADDS, .fact = FACT(DEVICE)},

    {"BufferAssignment stats:", K(BUFFERS), OPENS, .handle = take_stats_head},
    {"parameter allocation: ", K(BUFFERS), JOINS, .fact = FACT(ARGUMENT)},
    {"constant allocation: ", K(BUFFERS), ADDS, .fact = FACT(CONSTANT)},
    {"maybe_live_out allocation: ", K(BUFFERS), JOINS, .fact = FACT(OUTPUT)},
    {"preallocated temp allocation: ", K(BUFFERS), JOINS, .fact = FACT(TEMP)},
    {"preallocated temp fragmentation: ", K(BUFFERS), ADDS, .fact = FACT(TEMP_FRAGMENTATION)},
    {"total allocation: ", K(BUFFERS), JOINS, .fact = FACT(TOTAL)},
    {"total fragmentation: ", K(BUFFERS), ADDS, .fact = FACT(FRAGMENTATION)},
    {"Peak buffers:", K(BUFFERS), JOINS, .handle = take_list},
    {"Buffer ", K(BUFFERS), JOINS, .handle = take_buffer, .word = true},

    {"Size: ", K(TPU), ADDS, .handle = take_item, .word = true},
    {"Operator: ", K(TPU), ADDS, .handle = take_operator, .word = true},
    {"Shape: ", K(TPU), ADDS, .fact = ITEM_SHAPE, .handle = take_item_text, .word = true},
    {"XLA label: ", K(TPU), ADDS, .fact = ITEM_LABEL, .handle = take_item_text, .word = true},
    {"XLA Label: ", K(TPU), ADDS, .fact = ITEM_LABEL, .handle = take_item_text, .word = true},
    {"Allocation type: ", K(TPU), ADDS, .fact = ITEM_TYPE, .handle = take_item_text, .word = true},
    {"Entry Parameter Subshape: ", K(TPU), ADDS, .fact = ITEM_PARAMETER, .handle = take_item_text,
     .word = true},
    {"Extra memory due to padding: ", K(TPU), ADDS, .handle = take_padding, .word = true},

    {"CompiledMemoryStats(", K(ANALYSIS), OPENS, .value = HB_VALUE_NONE},
    {"generated_code_size_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(CODE), .word = true},
    {"argument_size_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(ARGUMENT), .word = true},
    {"output_size_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(OUTPUT), .word = true},
    {"alias_size_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(ALIAS), .word = true},
    {"temp_size_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(TEMP), .word = true},
    {"peak_memory_in_bytes", K(ANALYSIS), JOINS, .fact = FACT(PEAK), .word = true},
    {"host_argument_size_in_bytes", K(ANALYSIS), ADDS, .fact = FACT(HOST_ARGUMENT), .word = true},
    {"host_output_size_in_bytes", K(ANALYSIS), ADDS, .fact = FACT(HOST_OUTPUT), .word = true},
    {"host_alias_size_in_bytes", K(ANALYSIS), ADDS, .fact = FACT(HOST_ALIAS), .word = true},
    {"host_temp_size_in_bytes", K(ANALYSIS), ADDS, .fact = FACT(HOST_TEMP), .word = true},

    /* PyTorch/XLA's PT_XLA_DEBUG */
    {"Graph input size: ", K(ANALYSIS), OPENS, .fact = FACT(ARGUMENT)},
    {"Graph output size: ", K(ANALYSIS), ADDS, .fact = FACT(OUTPUT)},
    {"Aliased Input size: ", K(ANALYSIS), ADDS, .fact = FACT(ALIAS)},
    {"Intermediate tensor size: ", K(ANALYSIS), ADDS, .fact = FACT(TEMP)},

    /* axlearn, one a line */
    {"Input memory: ", K(MAXTEXT), OPENS, .fact = FACT(ARGUMENT)},
    {"Output memory: ", K(MAXTEXT), ADDS, .fact = FACT(OUTPUT)},
    {"Temp memory: ", K(MAXTEXT), ADDS, .fact = FACT(TEMP)},
    {"Total HBM memory: ", K(MAXTEXT), ADDS, .fact = FACT(TOTAL)},
    {"Total memory size: ", K(MAXTEXT), OPENS, .fact = FACT(TOTAL)},
    {"Total estimated memory size: ", K(MAXTEXT), OPENS, .fact = FACT(TOTAL)},
    {"Output size: ", K(MAXTEXT), ADDS, .fact = FACT(OUTPUT)},
    {"output size: ", K(MAXTEXT), ADDS, .fact = FACT(OUTPUT)},
    {"Temp size: ", K(MAXTEXT), ADDS, .fact = FACT(TEMP)},
    {"estimated temp size: ", K(MAXTEXT), ADDS, .fact = FACT(TEMP)},
    {"Argument size: ", K(MAXTEXT), ADDS, .fact = FACT(ARGUMENT)},
    {"argument size: ", K(MAXTEXT), ADDS, .fact = FACT(ARGUMENT)},
    {"ost temp size: ", K(MAXTEXT), ADDS, .fact = FACT(HOST_TEMP)},

    {"[SPMD] Involuntary full remat", K(RESHARD), OPENS, .handle = take_reshard},
    {"process_allgather", K(GATHER), OPENS, .value = HB_VALUE_NONE},
    {"broadcast_one_to_all", K(GATHER), OPENS, .value = HB_VALUE_NONE},
    {"multihost_utils.assert_equal", K(GATHER), OPENS, .value = HB_VALUE_NONE},
};

const struct hb_forms hb_forms_xla = {rows, sizeof rows / sizeof rows[0]};
