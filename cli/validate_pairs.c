/* Printing pairs of records: see validate_pairs.h. */
#include "cli/validate_pairs.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"

enum { KEY_WIDTH = 36, SIZE_WIDTH = 12, MEGABYTE = 1000000 };

static void print_difference(FILE *to, int64_t bytes)
{
    char text[HB_SIZE_TEXT];
    fprintf(to, " %c%-*s", bytes < 0 ? '-' : '+', SIZE_WIDTH, hb_size_print(llabs(bytes), text));
}

static void print_stats(FILE *to, const char *which, struct hb_pair_stats s)
{
    fprintf(to,
            "%s%u pairs; above %d MB: sign right in %u of %u, within %.0f %% in %u; others: off by "
            "less than that in %u of %u\n",
            which, s.n, (int)(HB_PAIR_LARGE_BYTES / MEGABYTE), s.sign_right, s.large,
            100 * HB_PAIR_CLOSE, s.within_close, s.small_within, s.n - s.large);
}

void hb_report_pairs_text(const struct hb_pairs *pairs, FILE *to)
{
    struct hb_pair *list;
    uint32_t count = hb_pairs_find(pairs, &list);
    fprintf(to, "\npairs that differ in one key\n %-*s %-*s %-*s first -> second\n", SIZE_WIDTH + 1,
            "measured", SIZE_WIDTH + 1, "predicted", KEY_WIDTH, "key");
    for (uint32_t i = 0; i < count; i++) {
        print_difference(to, list[i].measured_bytes);
        print_difference(to, list[i].predicted_bytes);
        fprintf(to, " %-*s %s -> %s\n", KEY_WIDTH, list[i].key, list[i].first, list[i].second);
    }
    print_stats(to, "", hb_pairs_stats(list, count, false));
    struct hb_pair_stats own = hb_pairs_stats(list, count, true);
    if (own.n)
        print_stats(to, "with a record that the compiler rematerialised: ", own);
}

static void write_share(struct hb_json *j, const char *key, uint32_t part, uint32_t whole)
{
    hb_json_key(j, key);
    if (whole)
        hb_json_real(j, (double)part / (double)whole);
    else
        hb_json_null(j);
}

static void write_stats(struct hb_json *j, struct hb_pair_stats s)
{
    hb_json_put_int(j, "n", s.n);
    hb_json_put_int(j, "large", s.large);
    write_share(j, "sign_right", s.sign_right, s.large);
    write_share(j, "within_15_pct", s.within_close, s.large);
    write_share(j, "small_within", s.small_within, s.n - s.large);
}

void hb_report_pairs_json(struct hb_json *j, const struct hb_pairs *pairs)
{
    struct hb_pair *list;
    uint32_t count = hb_pairs_find(pairs, &list);
    hb_json_key(j, "pairs");
    hb_json_object(j);
    write_stats(j, hb_pairs_stats(list, count, false));
    hb_json_key(j, "rematerialised");
    hb_json_object(j);
    write_stats(j, hb_pairs_stats(list, count, true));
    hb_json_object_end(j);
    hb_json_key(j, "list");
    hb_json_array(j);
    for (uint32_t i = 0; i < count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "key", list[i].key);
        hb_json_put_text(j, "first", list[i].first);
        hb_json_put_text(j, "second", list[i].second);
        hb_json_put_int(j, "measured_bytes", list[i].measured_bytes);
        hb_json_put_int(j, "predicted_bytes", list[i].predicted_bytes);
        hb_json_put_bool(j, "rematerialised", list[i].rematerialised);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    hb_json_object_end(j);
}
