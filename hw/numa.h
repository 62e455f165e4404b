/* Nodes of the host's memory: pinned memory is reached faster from the node beside the device.
 * Linux tells and chooses them; elsewhere there is one node, and nothing is chosen. */
#ifndef HB_HW_NUMA_H
#define HB_HW_NUMA_H

#include <stdbool.h>

struct hb_arena;

enum { HB_NUMA_MOST = 64, HB_NUMA_WORDS = 16 };

/* Where this thread's new memory comes from. */
struct hb_numa_policy {
    int mode;
    unsigned long nodes[HB_NUMA_WORDS]; /* a bit each */
};

/* Numbers in a list such as "0-3,8\n", at most HB_NUMA_MOST; 0: it is no such list. */
int hb_numa_parse(const char *text, int *out_nodes);
/* The nodes that have memory; 0: nobody tells. */
int hb_numa_nodes(struct hb_arena *arena, int *out_nodes);
/* The node beside the device of this PCI bus id ("0000:C1:00.0"); -1: nobody tells. */
int hb_numa_beside(struct hb_arena *arena, const char *bus);
/* False, as all below: the machine does not allow it. */
bool hb_numa_policy(struct hb_numa_policy *out);
/* From here on this thread's new memory is of that node, where it has room. */
bool hb_numa_prefer(int node);
bool hb_numa_restore(const struct hb_numa_policy *policy);
/* The node that this byte is on; -1: nobody tells. */
int hb_numa_of(void *at);

#endif
