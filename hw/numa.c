/* See numa.h. The three system calls are used as they are: libnuma is not everywhere, and they
 * are all of it that is wanted. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE /* syscall */
#endif
#include "hw/numa.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/file.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* A number from *at on, which then stands behind it; -1: there is none. */
static int read_number(const char **at)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return -1;
    long value = strtol(*at, &end, 10);
    *at = end;
    return value < HB_NUMA_MOST ? (int)value : -1;
}

int hb_numa_parse(const char *text, int *out_nodes)
{
    int count = 0;
    for (const char *at = text; *at && *at != '\n'; at += *at == ',') {
        int first = read_number(&at);
        int last = first;
        if (first >= 0 && *at == '-') {
            at++;
            last = read_number(&at);
        }
        if (first < 0 || last < first || (*at && *at != ',' && *at != '\n'))
            return 0;
        for (int node = first; node <= last && count < HB_NUMA_MOST; node++)
            out_nodes[count++] = node;
    }
    return count;
}

/* The text of a file of the kernel's; "" where there is none. */
static const char *read_told(struct hb_arena *arena, const char *path)
{
    struct hb_text text;
    const char *reason;
    return hb_file_load(arena, path, 4096, &text, &reason) ? text.text : "";
}

int hb_numa_nodes(struct hb_arena *arena, int *out_nodes)
{
    return hb_numa_parse(read_told(arena, "/sys/devices/system/node/has_memory"), out_nodes);
}

int hb_numa_beside(struct hb_arena *arena, const char *bus)
{
    char *path = hb_arena_printf(arena, "/sys/bus/pci/devices/%s/numa_node", bus);
    int nodes[HB_NUMA_MOST];
    for (char *c = path; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c);
    return hb_numa_parse(read_told(arena, path), nodes) == 1 ? nodes[0] : -1;
}

#if defined __linux__ && defined SYS_set_mempolicy && defined SYS_get_mempolicy

/* Of <numaif.h>, which comes with libnuma. */
enum { MPOL_PREFERRED = 1, MPOL_F_NODE = 1, MPOL_F_ADDR = 2 };
enum { LONG_BITS = 8 * sizeof(unsigned long) };
static const unsigned long kernel_nodes = HB_NUMA_WORDS * LONG_BITS;

bool hb_numa_policy(struct hb_numa_policy *out)
{
    return syscall(SYS_get_mempolicy, &out->mode, out->nodes, kernel_nodes, NULL, 0UL) == 0;
}

bool hb_numa_restore(const struct hb_numa_policy *policy)
{
    return syscall(SYS_set_mempolicy, policy->mode, policy->nodes, kernel_nodes) == 0;
}

bool hb_numa_prefer(int node)
{
    struct hb_numa_policy policy = {.mode = MPOL_PREFERRED};
    policy.nodes[node / LONG_BITS] = 1UL << node % LONG_BITS;
    return hb_numa_restore(&policy);
}

int hb_numa_of(void *at)
{
    int node = -1;
    long failed = syscall(SYS_get_mempolicy, &node, NULL, 0UL, at,
                          (unsigned long)(MPOL_F_NODE | MPOL_F_ADDR));
    return failed ? -1 : node;
}

#else

bool hb_numa_policy(struct hb_numa_policy *out)
{
    (void)out;
    return false;
}

bool hb_numa_restore(const struct hb_numa_policy *policy)
{
    (void)policy;
    return false;
}

bool hb_numa_prefer(int node)
{
    (void)node;
    return false;
}

int hb_numa_of(void *at)
{
    (void)at;
    return -1;
}

#endif
