/* What XLA's and TensorFlow's BFC allocator says, the statistics that allocators print in five
 * ways, and cudaMallocAsync's.
 * Source of the forms: xla/tsl/framework/bfc_allocator.cc (AllocateRawInternal, DumpMemoryLog, old
 * and new wording), allocator.cc (AllocatorStats::DebugString), gpu_cudamallocasync_allocator.cc;
 * jax's memory_stats() dict; Reactant.jl's AllocatorStats, old and new print. */
#include <string.h>

#include "base/size.h"
#include "sim/hlo/logform.h"

/* "Allocator (GPU_2_bfc) ran out of memory trying to allocate 48.16GiB (rounded to 51712165888)
 * requested by op"; also with "The caller indicates that this is not a failure" behind it. */
static void take_refusal(struct hb_log_reader *r, const struct hb_form *form,
                         const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    char name[HB_LOG_WORD_CAP];
    struct hb_amount amount;
    hb_span_copy(&s, ")", name, sizeof name);
    if (!hb_span_starts(s, ") ran out of memory trying to allocate ") ||
        !hb_span_find(&s, "to allocate ") || !hb_span_amount(&s, 1, &amount))
        return;
    bool soft = hb_span_has(s, "this is not a failure");
    bool host = strstr(name, "host_bfc"); /* pinned, of which the device's driver reads */
    struct hb_log_message *m = hb_form_open(r, soft   ? HB_LOG_BFC_SOFT
                                               : host ? HB_LOG_HOST
                                                      : form->kind);
    hb_form_name(m, host && !soft ? HB_LOG_REFUSED : name);
    hb_form_set(m, HB_FACT_ASKED, amount);
}

/* "Bin (256): Total Chunks: 7, Chunks in use: 4. 15.5KiB allocated for chunks. 8.2KiB in use in
 * bin. ..." What is free in a bin is the difference; a free chunk is at most that large. */
static void take_bin(struct hb_log_reader *r, const struct hb_form *form,
                     const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    int64_t bin;
    int64_t all;
    int64_t used;
    struct hb_amount held;
    struct hb_amount in_use;
    if (!hb_span_int(&s, &bin) || !hb_span_find(&s, "Total Chunks: ") || !hb_span_int(&s, &all) ||
        !hb_span_find(&s, "Chunks in use: ") || !hb_span_int(&s, &used))
        return;
    if (!hb_span_amount(&s, 1, &held) || !hb_span_find(&s, "chunks. ") ||
        !hb_span_amount(&s, 1, &in_use) || all < used || held.bytes < in_use.bytes)
        return;
    if (hb_span_find(&s, "chunks. ")) /* older: client-requested bytes come between */
        hb_span_amount(&s, 1, &in_use);
    struct hb_log_message *m = hb_form_join(r, form->kind);
    int64_t free_bytes = held.bytes > in_use.bytes ? held.bytes - in_use.bytes : 0;
    hb_form_add(m, HB_FACT_BINS, 1);
    hb_form_add(m, HB_FACT_FREE_CHUNKS, all - used);
    hb_form_add(m, HB_FACT_BIN_FREE, free_bytes);
    if (all > used)
        hb_form_raise(m, HB_FACT_BIN_LARGEST, (struct hb_amount){free_bytes, held.step_bytes});
}

/* "Free  at 7bc24c500000 of size 6291456 next 289", "Free at 0x10435d82d00 of size 48000000". */
static void take_free_chunk(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_current(r, form->kind);
    int64_t bytes;
    if (!m || !hb_span_find(&s, " of size ") || !hb_span_int(&s, &bytes) || !hb_size_ok(bytes))
        return;
    hb_form_add(m, HB_FACT_FREE, bytes);
    hb_form_raise(m, HB_FACT_LARGEST_FREE, (struct hb_amount){bytes, 1});
}

/* Keeps the dump open while its thousands of lines go by. */
static void take_used_chunk(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    hb_form_current(r, form->kind);
    (void)place;
}

/* "Free memory/Total memory: 18801229824/197890015232" */
static void take_free_total(struct hb_log_reader *r, const struct hb_form *form,
                            const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_current(r, form->kind);
    struct hb_amount amount;
    hb_span_skip(&s, " memory");
    if (!m || !hb_span_amount(&s, 1, &amount))
        return;
    hb_form_set(m, HB_FACT_FREE, amount);
    hb_span_skip(&s, "/ ");
    if (hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_CAPACITY, amount);
}

/* "largest free chunk usable by lower end 12.5GiB" */
static void take_largest_free(struct hb_log_reader *r, const struct hb_form *form,
                              const struct hb_form_place *place)
{
    struct hb_span s = place->after;
    struct hb_log_message *m = hb_form_current(r, form->kind);
    struct hb_amount amount;
    if (m && hb_span_find(&s, "end ") && hb_span_amount(&s, 1, &amount))
        hb_form_set(m, HB_FACT_LARGEST_FREE, amount);
}

#define K(kind)    HB_LOG_##kind
#define OPENS      HB_FORM_OPENS
#define ADDS       HB_FORM_ADDS
#define JOINS      HB_FORM_JOINS
#define FACT(name) HB_FACT_##name

static const struct hb_form rows[] = {
    {"Allocator (", K(BFC), OPENS, .handle = take_refusal},
    {"BFCAllocator dump for ", K(BFC_DUMP), OPENS, .value = HB_VALUE_NAME},
    {"Bin (", K(BFC_DUMP), JOINS, .handle = take_bin},
    {"Free  at ", K(BFC_DUMP), ADDS, .handle = take_free_chunk},
    {"Free at ", K(BFC_DUMP), ADDS, .handle = take_free_chunk},
    {"InUse at ", K(BFC_DUMP), ADDS, .handle = take_used_chunk},
    {"Chunk at ", K(BFC_DUMP), ADDS, .handle = take_used_chunk},
    {" Chunks of size ", K(BFC_DUMP), ADDS, .handle = take_used_chunk},
    {"Sum Total of in-use chunks: ", K(BFC_DUMP), JOINS, .fact = FACT(IN_USE)},
    {"total_region_allocated_bytes_: ", K(BFC_DUMP), JOINS, .fact = FACT(POOL)},
    {" memory_limit_: ", K(BFC_DUMP), ADDS, .fact = FACT(LIMIT)},
    {"memory summary: rounded request ", K(BFC_DUMP), JOINS, .fact = FACT(ASKED)},
    {", total free in pool ", K(BFC_DUMP), ADDS, .fact = FACT(FREE)},
    {"largest free chunk usable by ", K(BFC_DUMP), ADDS, .handle = take_largest_free},
    {", pool size ", K(BFC_DUMP), ADDS, .fact = FACT(POOL)},
    {", pool limit ", K(BFC_DUMP), ADDS, .fact = FACT(LIMIT)},

    {"Stats:", K(STATS), OPENS, .value = HB_VALUE_NONE, .word = true},
    {"AllocatorStats", K(STATS), OPENS, .value = HB_VALUE_NONE},
    {"Limit:", K(STATS), ADDS, .fact = FACT(LIMIT), .word = true, .unless = "Reservable "},
    {"InUse:", K(STATS), JOINS, .fact = FACT(IN_USE), .word = true},
    {"MaxInUse:", K(STATS), JOINS, .fact = FACT(PEAK), .word = true},
    {"NumAllocs:", K(STATS), ADDS, .fact = FACT(ALLOCS), .word = true},
    {"MaxAllocSize:", K(STATS), JOINS, .fact = FACT(LARGEST), .word = true},
    {"Reserved:", K(STATS), ADDS, .fact = FACT(RESERVED), .word = true, .unless = "Peak "},
    {"LargestFreeBlock:", K(STATS), ADDS, .fact = FACT(LARGEST_FREE), .word = true},
    {"Num Allocs:", K(STATS), JOINS, .fact = FACT(ALLOCS), .word = true},
    {"In Use:", K(STATS), JOINS, .fact = FACT(IN_USE), .word = true, .unless = "Peak "},
    {"Peak In Use:", K(STATS), ADDS, .fact = FACT(PEAK), .word = true},
    {"Largest Alloc Size:", K(STATS), ADDS, .fact = FACT(LARGEST), .word = true},
    {"Reservable Limit:", K(STATS), ADDS, .fact = FACT(RESERVABLE), .word = true},
    {"Largest Free Block:", K(STATS), ADDS, .fact = FACT(LARGEST_FREE), .word = true},
    {"Pool:", K(STATS), ADDS, .fact = FACT(POOL), .word = true, .unless = "Peak "},
    {"num_allocs", K(STATS), JOINS, .fact = FACT(ALLOCS), .word = true},
    {"bytes_in_use", K(STATS), JOINS, .fact = FACT(IN_USE), .word = true},
    {"peak_bytes_in_use", K(STATS), JOINS, .fact = FACT(PEAK), .word = true},
    {"largest_alloc_size", K(STATS), JOINS, .fact = FACT(LARGEST), .word = true},
    {"bytes_limit", K(STATS), JOINS, .fact = FACT(LIMIT), .word = true},
    {"bytes_reserved", K(STATS), ADDS, .fact = FACT(RESERVED), .word = true},
    {"bytes_reservable_limit", K(STATS), ADDS, .fact = FACT(RESERVABLE), .word = true},
    {"largest_free_block_bytes", K(STATS), ADDS, .fact = FACT(LARGEST_FREE), .word = true},
    {"pool_bytes", K(STATS), ADDS, .fact = FACT(POOL), .word = true},

    {"cuMemAllocAsync failed to allocate ", K(ASYNC), OPENS, .fact = FACT(ASKED)},
    {"Free memory/Total", K(ASYNC), ADDS, .handle = take_free_total},
};

const struct hb_forms hb_forms_bfc = {rows, sizeof rows / sizeof rows[0]};
