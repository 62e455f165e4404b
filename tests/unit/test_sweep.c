/* solver/sweep: what the words of a range mean, which are refused, and the order of cells. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/node.h"
#include "base/str.h"
#include "models/schema.h"
#include "sim/ir/program.h"
#include "solver/journal.h"
#include "solver/sweep.h"

static bool read_axis(struct unit *u, const char *text, struct hb_sweep_axis *out)
{
    return hb_sweep_parse_axis(u->env.arena, u->env.diag, text, out);
}

/* The values with bars between, or "refused". */
static const char *values_of(struct unit *u, const char *text)
{
    struct hb_sweep_axis axis;
    struct hb_str s;
    if (!read_axis(u, text, &axis))
        return "refused";
    hb_str_init(&s, u->env.arena);
    for (uint32_t i = 0; i < axis.count; i++)
        hb_str_addf(&s, "%s%s", i ? "|" : "", axis.values[i]);
    return s.text;
}

static void ranges_and_lists_are_read(void **state)
{
    (void)state;
    struct unit u;
    struct hb_sweep_axis axis;
    unit_start(&u);
    assert_string_equal(values_of(&u, "batch.global=8..512*2"), "8|16|32|64|128|256|512");
    assert_string_equal(values_of(&u, "a=8..100*3"), "8|24|72");
    assert_string_equal(values_of(&u, "a=8..31+8"), "8|16|24");
    assert_string_equal(values_of(&u, "a=8..32+8"), "8|16|24|32");
    assert_string_equal(values_of(&u, "a=-2..2+2"), "-2|0|2");
    assert_string_equal(values_of(&u, "a=0..0+1"), "0");
    assert_string_equal(values_of(&u, "a=1..4*2"), "1|2|4");
    assert_string_equal(values_of(&u, "a=7"), "7");
    assert_string_equal(values_of(&u, "remat.policy=full,none"), "full|none");
    assert_string_equal(values_of(&u, "a=[x, y],[z],{k: 1, l: 2}"), "[x, y]|[z]|{k: 1, l: 2}");
    assert_string_equal(values_of(&u, "hardware.hbm=40GiB,80GiB"), "40GiB|80GiB");
    assert_true(read_axis(&u, "blocks[0].repeat=1,2", &axis));
    assert_string_equal(axis.key, "blocks[0].repeat");
    assert_int_equal(u.diag.errors, 0);
    unit_end(&u);
}

static void ranges_stop_at_the_top(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    assert_string_equal(values_of(&u, "a=4611686018427387904..9223372036854775807*2"),
                        "4611686018427387904");
    assert_string_equal(values_of(&u, "a=9223372036854775806..9223372036854775807+5"),
                        "9223372036854775806");
    assert_int_equal(u.diag.errors, 0);
    unit_end(&u);
}

static void what_is_no_range_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"batch.global",
                                      "=8",
                                      "a=",
                                      "a=8..4*2",
                                      "a=8..64*1",
                                      "a=0..64*2",
                                      "a=-8..64*2",
                                      "a=8..64+0",
                                      "a=8..64+-8",
                                      "a=8..64",
                                      "a=8..64*",
                                      "a=..64*2",
                                      "a=8..*2",
                                      "a=1.5..3+1",
                                      "a=1..3+0.5",
                                      "a=8,,16",
                                      "a=8,16,",
                                      "a=,8",
                                      "a=8,16,8",
                                      "a=8,8.0",
                                      "a=full,full",
                                      "a=x..y*2",
                                      "a=8..64*2,128",
                                      "a=1..65537+1",
                                      "a=1..99999999999999999999+1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct unit u;
        unit_start(&u);
        if (strcmp(values_of(&u, bad[i]), "refused") != 0)
            fail_msg("'%s' was read", bad[i]);
        assert_int_equal(u.diag.errors, 1);
        unit_end(&u);
    }
}

static void cells_are_counted_and_found(void **state)
{
    (void)state;
    struct unit u;
    struct hb_sweep s = {.axis_count = 3};
    unit_start(&u);
    assert_true(read_axis(&u, "a=0..2+1", &s.axes[0]));
    assert_true(read_axis(&u, "b=0..1+1", &s.axes[1]));
    assert_true(read_axis(&u, "c=0..4+1", &s.axes[2]));
    assert_true(hb_sweep_count(&u.diag, &s));
    assert_int_equal(s.cell_count, 30);
    for (uint32_t cell = 0; cell < 30; cell++) {
        assert_int_equal(hb_sweep_value(&s, cell, 0)[0] - '0', cell % 3);
        assert_int_equal(hb_sweep_value(&s, cell, 1)[0] - '0', cell / 3 % 2);
        assert_int_equal(hb_sweep_value(&s, cell, 2)[0] - '0', cell / 6);
    }
    assert_true(read_axis(&u, "b=1..1000+1", &s.axes[1]));
    assert_true(read_axis(&u, "c=1..1000+1", &s.axes[2]));
    assert_false(hb_sweep_count(&u.diag, &s)); /* 3 million */
    assert_true(read_axis(&u, "a=1", &s.axes[2]));
    assert_false(hb_sweep_count(&u.diag, &s)); /* a is there twice */
    assert_int_equal(u.diag.errors, 2);
    assert_int_equal(s.cell_count, 30); /* untouched */
    unit_end(&u);
}

/* The cell that a step is, in a grid of up to two axes; -1: none. */
static int64_t own_cell(const char *x, const char *y, const char *set)
{
    struct unit u;
    const char *sets[] = {set};
    struct hb_sweep s = {.axis_count = y ? 2 : 1};
    unit_start(&u);
    struct hb_schema_source source = {.arena = u.env.arena,
                                      .diag = u.env.diag,
                                      .path = HB_SOURCE_DIR "/examples/quickstart/model.yaml",
                                      .data_dir = HB_SOURCE_DIR,
                                      .sets = sets,
                                      .set_count = set ? 1 : 0};
    assert_true(read_axis(&u, x, &s.axes[0]) && (!y || read_axis(&u, y, &s.axes[1])));
    assert_true(hb_sweep_count(&u.diag, &s) && hb_sweep_load(&source, &s));
    uint32_t cell = hb_sweep_own(u.env.arena, &s, HB_SOURCE_DIR);
    unit_end(&u);
    return cell == HB_NONE ? -1 : (int64_t)cell;
}

/* A model that cannot be read is an error of the sweep, whichever of its values it is. */
static void presets_that_are_not_there_are_refused(void **state)
{
    (void)state;
    static const char *const axes[] = {"model.preset=none,llama3-8b",
                                       "model.preset=llama3-8b,none"};
    for (int i = 0; i < 2; i++) {
        struct unit u;
        struct hb_sweep s = {.axis_count = 1};
        unit_start(&u);
        struct hb_schema_source source = {.arena = u.env.arena,
                                          .diag = u.env.diag,
                                          .path = HB_SOURCE_DIR "/examples/quickstart/model.yaml",
                                          .data_dir = HB_SOURCE_DIR};
        assert_true(read_axis(&u, axes[i], &s.axes[0]) && hb_sweep_count(&u.diag, &s));
        assert_false(hb_sweep_load(&source, &s));
        unit_end(&u);
    }
}

/* Axes of one value, of as many as fit into what is grown by doubling, and of one more. */
static void the_own_cell_is_found(void **state)
{
    (void)state;
    static const char many[] = "batch.global=32..512+32";
    assert_int_equal(own_cell("batch.global=32", NULL, NULL), 0);
    assert_int_equal(own_cell("batch.global=64", NULL, NULL), -1);
    assert_int_equal(own_cell(many, NULL, NULL), 0);
    assert_int_equal(own_cell(many, NULL, "batch.global=512"), 15);
    assert_int_equal(own_cell(many, NULL, "batch.global=8"), -1);
    assert_int_equal(own_cell(many, "loss.chunks=1,2,4", "batch.global=256"), 7);
    assert_int_equal(own_cell(many, "loss.chunks=2,4,1", "batch.global=256"), 2 * 16 + 7);
    assert_int_equal(own_cell("loss.chunks=2,4,1", many, "batch.global=96"), 2 + 3 * 2);
    assert_int_equal(own_cell("loss.chunks=2,4", many, NULL), -1);
    assert_int_equal(own_cell(many, "loss.chunks=2,4", NULL), -1);
    /* Two presets that are the same model on this device would be one; these are not. */
    assert_int_equal(own_cell("model.preset=llama3-70b,llama3-8b", "loss.chunks=1,2", NULL), 1);
    assert_int_equal(own_cell("model.preset=llama3-70b,llama3-8b", "loss.chunks=2,1", NULL), 3);
    assert_int_equal(own_cell("loss.chunks=2,1", "model.preset=llama3-70b,llama3-8b", NULL), 3);
    assert_int_equal(own_cell("model.preset=llama3-70b,gemma2-9b", NULL, NULL), -1);
}

static void what_asks_another_question(void **state)
{
    (void)state;
    struct unit u;
    struct hb_sweep s = {.axis_count = 1};
    unit_start(&u);
    assert_true(read_axis(&u, "batch.seq=1,2", &s.axes[0]));
    assert_false(hb_sweep_has_ways(&s));
    assert_true(read_axis(&u, "hardware.device=a,b", &s.axes[0]));
    assert_false(hb_sweep_has_ways(&s));
    s.axis_count = 2;
    assert_true(read_axis(&u, "model.d_model=1,2", &s.axes[1]));
    assert_false(hb_sweep_has_ways(&s));
    assert_true(read_axis(&u, "batch.global=1,2", &s.axes[1]));
    assert_true(hb_sweep_has_ways(&s));
    s.axes[0] = s.axes[1];
    s.axis_count = 1;
    assert_true(hb_sweep_has_ways(&s));
    unit_end(&u);
}

struct grid {
    struct unit u;
    struct hb_sweep sweep;
    struct hb_sweep_ask ask;
    int heard;
};

static void open_grid(struct grid *g, const char *x, const char *y, const char *path)
{
    unit_start(&g->u);
    g->u.env.data_dir = HB_SOURCE_DIR;
    g->heard = 0;
    g->sweep = (struct hb_sweep){.axis_count = y ? 2 : 1};
    struct hb_schema_source source = {
        .arena = g->u.env.arena, .diag = g->u.env.diag, .path = path, .data_dir = HB_SOURCE_DIR};
    assert_true(read_axis(&g->u, x, &g->sweep.axes[0]));
    assert_true(!y || read_axis(&g->u, y, &g->sweep.axes[1]));
    assert_true(hb_sweep_count(&g->u.diag, &g->sweep) && hb_sweep_load(&source, &g->sweep));
    g->ask = (struct hb_sweep_ask){
        .env = &g->u.env, .sweep = &g->sweep, .jobs = 1, .shard = 1, .shards = 1};
}

static void hear(void *context, const char *line, size_t len)
{
    struct grid *g = context;
    assert_true(line[0] == '{' && line[len - 1] == '\n' && strlen(line) == len);
    g->heard++;
}

static const char quickstart[] = HB_SOURCE_DIR "/examples/quickstart/model.yaml";

/* Each cell once, by one process or by more of them than there are cells; what cannot be has its
 * reason. */
static void cells_are_heard_once(void **state)
{
    (void)state;
    struct grid g;
    struct hb_sweep_cell *one, *many;
    open_grid(&g, "hardware.device=h100,none-such,b200", "batch.global=8,9", quickstart);
    g.ask.tell = hear;
    g.ask.context = &g;
    assert_true(hb_sweep_run(&g.ask, &one));
    assert_int_equal(g.heard, 6);
    g.ask.jobs = 7;
    assert_true(hb_sweep_run(&g.ask, &many));
    assert_int_equal(g.heard, 12);
    for (int i = 0; i < 6; i++) {
        assert_true(one[i].done && many[i].done);
        assert_int_equal(!one[i].error, i == 0 || i == 2);
        assert_true(one[i].error ? strcmp(one[i].error, many[i].error) == 0
                                 : one[i].peak_bytes == many[i].peak_bytes &&
                                       one[i].step_ns == many[i].step_ns);
    }
    assert_non_null(strstr(one[1].error, "none-such"));
    assert_non_null(strstr(one[3].error, "batch.global"));
    unit_end(&g.u);
}

/* In the place of solver/ranks.c: one process that has the part of each rank in turn. */
static struct {
    int64_t tasks[8];
    char lines[8][400];
    int count;
} ranks;

struct hb_ranks hb_ranks_open(void)
{
    return (struct hb_ranks){0, 2};
}

void hb_ranks_close(void)
{
}

bool hb_ranks_agree(bool yes)
{
    return yes;
}

void hb_ranks_lead(const struct hb_ranks *own, const struct hb_ranks_tasks *tasks, char *line)
{
    assert_int_equal(own->count, 2);
    ranks.count = 0;
    for (int64_t task; (task = tasks->next(tasks->context)) >= 0; ranks.count++) {
        const char *answer = tasks->work(tasks->context, task);
        size_t len = strlen(answer);
        assert_true(len < sizeof ranks.lines[0]);
        memcpy(line, answer, len + 1); /* as it comes from another */
        memcpy(ranks.lines[ranks.count], answer, len + 1);
        ranks.tasks[ranks.count] = task;
        tasks->keep(tasks->context, line, strlen(line));
    }
    assert_int_equal(tasks->next(tasks->context), -1);
}

void hb_ranks_follow(hb_ranks_work *work, void *context)
{
    for (int i = ranks.count; i-- > 0;)
        assert_string_equal(work(context, ranks.tasks[i]), ranks.lines[i]);
}

/* Of ranks each has what is wanted and not known: of its part, and then nothing; of all, the rest.
 */
static void ranks_have_what_is_left(void **state)
{
    (void)state;
    struct grid g;
    struct hb_sweep_cell *one, *many;
    char file[64];
    snprintf(file, sizeof file, "/tmp/hbmsim-sweep-ranks-%ld", (long)getpid());
    open_grid(&g, "hardware.device=h100,none-such,b200", "batch.global=8,9", quickstart);
    assert_true(hb_sweep_run(&g.ask, &one));
    g.ask.tell = hear;
    g.ask.context = &g;
    g.ask.journal = file;
    g.ask.ranks = (struct hb_ranks){0, 2};
    g.ask.shards = 2;
    for (int again = 0; again < 2; again++) {
        assert_true(hb_sweep_run(&g.ask, &many));
        assert_int_equal(ranks.count, again ? 0 : 3);
        assert_int_equal(g.heard, 3);
        for (int i = 0; i < 6; i++)
            assert_int_equal(many[i].done, i % 2 == 0);
    }
    g.ask.shards = 1;
    assert_true(hb_sweep_run(&g.ask, &many));
    assert_int_equal(g.heard, 6);
    assert_int_equal(ranks.count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ranks.tasks[i], 2 * i + 1);
    for (int i = 0; i < 6; i++) {
        assert_true(many[i].done);
        assert_int_equal(!many[i].error, !one[i].error);
        assert_int_equal(many[i].step_ns, one[i].step_ns);
    }
    hb_sweep_follow(&g.ask);
    unlink(file);
    unit_end(&g.u);
}

/* With a right checksum, and yet no cell of this grid. */
static void lines_that_are_no_cells(void **state)
{
    (void)state;
    static const char rest[] = "\"low_bytes\":1,\"high_bytes\":1,\"budget_bytes\":1,"
                               "\"step_ns\":1,\"tokens_per_second\":1}\n";
    static const char *const bad[] = {"{\"cell\":2,\"error\":\"no\"}\n",
                                      "{\"cell\":-1,\"error\":\"no\"}\n", "{\"error\":\"no\"}\n",
                                      "{\"cell\":0,\"fits\":true,"};
    char file[64], line[400];
    snprintf(file, sizeof file, "/tmp/hbmsim-sweep-test-%ld", (long)getpid());
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct grid g;
        struct hb_sweep_cell *cells;
        open_grid(&g, "batch.global=8,16", NULL, quickstart);
        g.ask.journal = file;
        assert_true(hb_sweep_run(&g.ask, &cells));
        struct hb_text kept;
        const char *why;
        assert_true(hb_file_load(g.u.env.arena, file, 100000, &kept, &why));
        const char *grid = hb_arena_strndup(g.u.env.arena, kept.text,
                                            (size_t)(strchr(kept.text, '\n') + 1 - kept.text));
        struct hb_journal *j = hb_journal_open(g.u.env.arena, file, grid);
        snprintf(line, sizeof line, "%s%s", bad[i], strchr(bad[i], '\n') ? "" : rest);
        hb_journal_add(j, line, strlen(line));
        hb_journal_close(j);
        assert_false(hb_sweep_run(&g.ask, &cells));
        assert_int_equal(g.u.diag.errors, 1);
        assert_non_null(strstr(g.u.diag.entries[0].text, "no cell"));
        assert_int_equal(g.u.diag.entries[0].loc.line, 4);
        unlink(file);
        unit_end(&g.u);
    }
}

/* The input where it is complete, else the first cell that is; none where none can be. */
static void a_spec_of_the_grid(void **state)
{
    (void)state;
    struct grid g;
    struct hb_spec spec;
    open_grid(&g, "batch.global=9,64", NULL, quickstart);
    assert_true(hb_sweep_spec(g.u.env.arena, &g.sweep, HB_SOURCE_DIR, &spec));
    assert_int_equal(spec.batch.global, 32);
    unit_end(&g.u);
    open_grid(&g, "model.preset=llama3-8b,gemma2-9b", "batch.global=9,64", quickstart);
    assert_true(hb_sweep_spec(g.u.env.arena, &g.sweep, HB_SOURCE_DIR, &spec));
    assert_int_equal(spec.batch.global, 64);
    assert_string_equal(hb_sweep_name(&g.sweep), "");
    unit_end(&g.u);
    open_grid(&g, "model.preset=llama3-8b,gemma2-9b", "batch.global=9,10", quickstart);
    assert_false(hb_sweep_spec(g.u.env.arena, &g.sweep, HB_SOURCE_DIR, &spec));
    unit_end(&g.u);
}

/* As many values as an axis may have, and cells as a grid may have; then one more. */
static void limits_of_a_grid(void **state)
{
    (void)state;
    struct unit u;
    struct hb_sweep s = {.axis_count = 2};
    unit_start(&u);
    assert_true(read_axis(&u, "a=1..10000+1", &s.axes[0]));
    assert_int_equal(s.axes[0].count, 10000);
    assert_string_equal(values_of(&u, "b=1..10001+1"), "refused");
    assert_true(read_axis(&u, "b=1..100+1", &s.axes[1]));
    assert_true(hb_sweep_count(&u.diag, &s));
    assert_int_equal(s.cell_count, HB_SWEEP_MOST_CELLS);
    assert_true(read_axis(&u, "b=1..101+1", &s.axes[1]));
    assert_false(hb_sweep_count(&u.diag, &s));
    assert_int_equal(u.diag.errors, 2);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_and_lists_are_read),
        cmocka_unit_test(ranges_stop_at_the_top),
        cmocka_unit_test(what_is_no_range_is_refused),
        cmocka_unit_test(cells_are_counted_and_found),
        cmocka_unit_test(the_own_cell_is_found),
        cmocka_unit_test(presets_that_are_not_there_are_refused),
        cmocka_unit_test(what_asks_another_question),
        cmocka_unit_test(limits_of_a_grid),
        cmocka_unit_test(cells_are_heard_once),
        cmocka_unit_test(ranks_have_what_is_left),
        cmocka_unit_test(lines_that_are_no_cells),
        cmocka_unit_test(a_spec_of_the_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
