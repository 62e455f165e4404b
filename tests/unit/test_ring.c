/* base/ring: what was added, moved and cut stands as in a plain array, both ways around. */
#include "tests/unit/unit.h"

#include "base/ring.h"
#include "base/rng.h"

enum { RINGS = 3, LINKS = 60, DRAWS = 4000, NONE = -1 };

static struct unit u;

struct row {
    uint32_t link[LINKS + 1]; /* the ring's first link first */
    uint32_t count;
};

/* Where a link is put: behind some other of one ring. */
static void put_link(struct row *row, uint32_t place, uint32_t link)
{
    memmove(row->link + place + 2, row->link + place + 1,
            (row->count - place - 1) * sizeof *row->link);
    row->link[place + 1] = link;
    row->count++;
}

static void take_link(struct row *rows, uint32_t link)
{
    for (int r = 0; r < RINGS; r++)
        for (uint32_t i = 1; i < rows[r].count; i++) {
            if (rows[r].link[i] != link)
                continue;
            rows[r].count--;
            memmove(rows[r].link + i, rows[r].link + i + 1,
                    (rows[r].count - i) * sizeof *rows[r].link);
        }
}

static void assert_ring(const struct hb_rings *rings, const struct row *row)
{
    for (uint32_t i = 0; i < row->count; i++) {
        const struct hb_link *l = &rings->links[row->link[i]];
        assert_int_equal(l->next, row->link[(i + 1) % row->count]);
        assert_int_equal(l->prev, row->link[(i + row->count - 1) % row->count]);
        assert_int_equal(l->owner, 10 * row->link[i]);
    }
}

static void links_stand_where_they_were_put(void **state)
{
    (void)state;
    struct hb_rings rings = {.arena = u.env.arena};
    struct hb_rng rng = hb_rng_seed(3);
    static struct row rows[RINGS];
    for (uint32_t r = 0; r < RINGS; r++) {
        rows[r] = (struct row){.count = 1};
        rows[r].link[0] = hb_ring_new(&rings, 10 * r);
        assert_int_equal(rows[r].link[0], r);
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        struct row *to = &rows[hb_rng_range(&rng, 0, RINGS - 1)];
        bool adds = rings.count < LINKS;
        uint32_t link = adds ? rings.count : (uint32_t)hb_rng_range(&rng, RINGS, LINKS - 1);
        if (!adds)
            take_link(rows, link);
        uint32_t place = (uint32_t)hb_rng_range(&rng, 0, to->count - 1), behind = to->link[place];
        if (adds)
            assert_int_equal(hb_ring_add(&rings, 10 * link, behind), link);
        else if (hb_rng_range(&rng, 0, 3) == 0)
            hb_ring_cut(&rings, link);
        else
            hb_ring_move(&rings, link, behind);
        if (adds || rings.links[link].next != link)
            put_link(to, place, link);
        for (int r = 0; r < RINGS; r++)
            assert_ring(&rings, &rows[r]);
    }
}

int main(void)
{
    unit_start(&u);
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_stand_where_they_were_put)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
