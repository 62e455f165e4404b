/* Records predicted with conditions answered by force: see mutate.py, which numbers them and reads
 * what is said here, a line for each answer:
 *   condition  no|yes  records that ask it  records moved|unasked|alike|fault  error before  after
 * Errors are sums over the records moved, in percentage points. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/record.h"
#include "sim/engine/budget.h"
#include "sim/engine/validate.h"

enum { CONDITIONS = 8192, SECONDS = 20, FAULT_PCT = 100 };

/* What the sources ask. */
extern unsigned char hb_asked[CONDITIONS];
extern signed char hb_forced[CONDITIONS];
unsigned char hb_asked[CONDITIONS];
signed char hb_forced[CONDITIONS];

struct said {
    double value; /* bytes or seconds; NAN: not run */
    double error_pct;
};

struct records {
    struct hb_arena *arena;
    struct hb_record *list;
    uint32_t *device_of; /* of a record, in devices */
    struct hb_device *devices;
    uint32_t count;
    uint32_t cap;
    uint32_t of_cap;
    uint32_t device_count;
    uint32_t device_cap;
    struct said *plain;
    struct said *forced; /* shared with the child that fills it */
    unsigned char (*asked)[CONDITIONS];
};

/* HB_NONE: no such device. */
static uint32_t find_device(struct records *r, const char *name)
{
    struct hb_diag quiet;
    struct hb_device device;
    for (uint32_t i = 0; i < r->device_count; i++)
        if (hb_str_same(r->devices[i].name, name))
            return i;
    hb_diag_init(&quiet, r->arena);
    if (!hb_device_load(r->arena, &quiet, ".", name, (struct hb_loc){0}, &device))
        return HB_NONE;
    r->devices = hb_grow(r->arena, r->devices, r->device_count, &r->device_cap, sizeof *r->devices);
    r->devices[r->device_count] = device;
    return r->device_count++;
}

static void read_file(struct records *r, const char *path)
{
    struct hb_jsonl file;
    struct hb_diag diag;
    struct hb_node *node;
    hb_diag_init(&diag, r->arena);
    bool ok = hb_jsonl_open(r->arena, &diag, path, &file);
    while (ok && hb_jsonl_next(&file, r->arena, &diag, &node) && node) {
        struct hb_record record;
        if (!hb_record_read(r->arena, &diag, node, ".", &record) || record.verdict)
            continue;
        struct hb_spec *spec = &record.spec;
        uint32_t device = find_device(r, spec->hardware.device);
        if (device == HB_NONE)
            continue;
        spec->hardware.memory_bytes = hb_budget_found_bytes(spec, &r->devices[device]);
        r->list = hb_grow(r->arena, r->list, r->count, &r->cap, sizeof *r->list);
        r->device_of = hb_grow(r->arena, r->device_of, r->count, &r->of_cap, sizeof *r->device_of);
        r->list[r->count] = record;
        r->device_of[r->count++] = device;
    }
}

static struct said predict(const struct records *r, uint32_t i)
{
    struct hb_arena *own = hb_arena_new();
    struct hb_program program;
    struct hb_memory memory;
    struct hb_case c;
    const struct hb_record *record = &r->list[i];
    const struct hb_device *device = &r->devices[r->device_of[i]];
    hb_validate_case(own, record, record->peak_bytes < 0 ? device : NULL, &c, &program, &memory);
    struct said said = {c.speed ? c.predicted_seconds : (double)c.predicted_bytes, c.error_pct};
    if (c.failed)
        said = (struct said){-1, FAULT_PCT};
    hb_arena_free(own);
    return said;
}

static bool is_asked_else(const struct records *r, uint32_t i, int condition, int answer)
{
    return r->asked[i][condition] & (answer ? 1 : 2);
}

/* In a child of its own, which may fall. False: it did, or took too long. */
static bool force(const struct records *r, int condition, int answer, bool all)
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        exit(3);
    if (!child) {
        struct rlimit time = {SECONDS, SECONDS}, core = {0, 0};
        setrlimit(RLIMIT_CPU, &time);
        setrlimit(RLIMIT_CORE, &core);
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        hb_forced[condition] = (signed char)answer;
        for (uint32_t i = 0; i < r->count; i++) {
            if (!is_asked_else(r, i, condition, answer))
                continue;
            r->forced[i] = predict(r, i);
            if (!all && fabs(r->forced[i].value - r->plain[i].value) > 0)
                break;
        }
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void try_answer(const struct records *r, int condition, int answer, bool all)
{
    const char *word = answer ? "yes" : "no";
    uint32_t asks = 0, else_ = 0, moved = 0;
    double before = 0, after = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        asks += r->asked[i][condition] != 0;
        else_ += is_asked_else(r, i, condition, answer);
        r->forced[i].value = NAN;
    }
    if (!else_) {
        if (asks || !answer)
            printf("%d %s %u %s 0 0\n", condition, word, asks, asks ? "alike" : "unasked");
        return;
    }
    bool whole = force(r, condition, answer, all);
    for (uint32_t i = 0; i < r->count; i++)
        if (!isnan(r->forced[i].value) && fabs(r->forced[i].value - r->plain[i].value) > 0) {
            moved++;
            before += fabs(r->plain[i].error_pct);
            after += fabs(r->forced[i].error_pct);
        }
    if (whole)
        printf("%d %s %u %u %.2f %.2f\n", condition, word, asks, moved, before, after);
    else
        printf("%d %s %u fault %.2f %.2f\n", condition, word, asks, before, after);
}

int main(int argc, char **argv)
{
    struct records r = {.arena = hb_arena_new()};
    char line[64];
    memset(hb_forced, -1, sizeof hb_forced);
    if (argc < 4 || strtol(argv[2], NULL, 10) >= CONDITIONS)
        return 2;
    for (int i = 3; i < argc; i++)
        read_file(&r, argv[i]);
    r.plain = hb_arena_alloc(r.arena, r.count, sizeof *r.plain);
    r.asked = hb_arena_alloc(r.arena, r.count, sizeof *r.asked);
    r.forced = mmap(NULL, r.count * sizeof *r.forced, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!r.count || r.forced == MAP_FAILED)
        return 3;
    for (uint32_t i = 0; i < r.count; i++) {
        memset(hb_asked, 0, sizeof hb_asked);
        r.plain[i] = predict(&r, i);
        memcpy(r.asked[i], hb_asked, sizeof hb_asked);
    }
    while (fgets(line, sizeof line, stdin))
        for (int answer = 0; answer < 2; answer++)
            try_answer(&r, (int)strtol(line, NULL, 10), answer, hb_str_same(argv[1], "all"));
    hb_arena_free(r.arena);
    return 0;
}
