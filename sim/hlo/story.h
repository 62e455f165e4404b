/* What the messages of a log amount to: how much was wanted, by what, how far over, why, and what
 * helps in which order. A pure function of struct hb_log; texts are plain sentences. */
#ifndef HB_SIM_HLO_STORY_H
#define HB_SIM_HLO_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "sim/hlo/knob.h"
#include "sim/hlo/log.h"
#include "sim/hlo/what.h"

struct hb_arena;

#define HB_CAUSES(X)                                                                               \
    X(NONE, "none", "nothing failed")                                                              \
    X(UNKNOWN, "unknown", "not told")                                                              \
    X(SIZE, "size", "plain size")                                                                  \
    X(GIANT, "single_giant", "a single giant")                                                     \
    X(FRAGMENTATION, "fragmentation", "fragmentation")                                             \
    X(REPLICATION, "replication", "replication over processes")                                    \
    X(PADDING, "padding", "padding")                                                               \
    X(OUTPUTS, "outputs", "the outputs")                                                           \
    X(STATE, "state", "the state")                                                                 \
    X(OTHERS, "other_processes", "other processes on the device")                                  \
    X(LIMIT, "limit", "a limit that was set")                                                      \
    X(COMMUNICATOR, "communicator", "no room beside the framework's pool")                         \
    X(ONCHIP, "on_chip", "on-chip memory")                                                         \
    X(CORRUPT, "corrupt_size", "a size that cannot be meant")                                      \
    X(HOST, "host_memory", "host memory")                                                          \
    X(FAULT, "fault", "a fault, no lack of memory")

enum hb_cause {
#define HB_ENUM(name, key, title) HB_CAUSE_##name,
    HB_CAUSES(HB_ENUM)
#undef HB_ENUM
        HB_CAUSE_COUNT
};

enum { HB_STORY_PARTS = 16, HB_STORY_GROUPS = 48, HB_STORY_KNOBS = 12, HB_STORY_NOTES = 12 };

/* A figure of the breakdown. */
struct hb_story_part {
    const char *name;
    int64_t bytes;
    bool inside; /* is contained in the part above */
};

/* Buffers of a list that are alike: same shape, same operation but for numbers in its name. */
struct hb_story_group {
    enum hb_what what;
    const struct hb_log_item *item; /* the first of them */
    int count;
    int64_t bytes;         /* of all */
    int64_t padding_bytes; /* of all */
};

/* For which program a knob is meant, where the log leaves open what it does, or for whose memory,
 * where that is open. */
enum hb_story_when { HB_WHEN_ANY, HB_WHEN_TRAINS, HB_WHEN_RUNS, HB_WHEN_DEVICE, HB_WHEN_HOST };

struct hb_story_knob {
    enum hb_knob knob;
    int64_t frees_bytes; /* at most; -1: not known */
    enum hb_story_when when;
};

struct hb_story {
    enum hb_log_kind kind; /* of the message that it is told from */
    const char *title;     /* a sentence: what happened */
    enum hb_cause cause;
    const char *because;             /* a sentence: why */
    bool supposed;                   /* memory is spoken of; that it was refused nobody says */
    bool of_a_step;                  /* hbmsim can say more than the log */
    enum hb_log_framework framework; /* HB_FW_LOG_COUNT: not known */
    const char *compiler;            /* xla-tpu, xla-gpu, torch; null: not known */
    const char *device;              /* a name of hw's table; null: not known */
    const char *wanted_of;           /* what wanted_bytes is */
    const char *available_of;        /* what available_bytes is */
    int64_t wanted_bytes;            /* -1 in these: not known */
    int64_t available_bytes;         /* */
    int64_t over_bytes;              /* wanted beyond what was there */
    int64_t capacity_bytes;          /* what a program may use of the device */
    int64_t beside_bytes;            /* of it, what stands beside the allocator; 0: not known */
    int64_t state_bytes;             /* held between steps */
    int64_t transient_bytes;         /* what comes on top of it at the peak */
    struct hb_story_part parts[HB_STORY_PARTS];
    int part_count;
    struct hb_story_group groups[HB_STORY_GROUPS]; /* largest first */
    int group_count;
    const char *notes[HB_STORY_NOTES]; /* further sentences */
    int note_count;
    struct hb_story_knob knobs[HB_STORY_KNOBS]; /* what helps most comes first */
    int knob_count;
};

/* False: the log has no message that is known, out_story is untouched. */
bool hb_story_tell(struct hb_arena *arena, const struct hb_log *log, struct hb_story *out_story);

/* KEY=VALUE of a knob for --set, where hbmsim's input has such a key for that compiler; or null. */
const char *hb_story_set(const struct hb_story *story, enum hb_knob knob);

/* Where a ready command line takes the model from. */
struct hb_story_model {
    const char *path;       /* the user's YAML; null: none */
    const char *const *zoo; /* names of the zoo, ends with null */
};
/* Lines that can be pasted into a shell; at least one. Returns how many. */
int hb_story_commands(struct hb_arena *arena, const struct hb_log *log,
                      const struct hb_story *story, struct hb_story_model model,
                      const char *out_lines[4]);

/* "trains", "runs", "device", "host"; null: any program. */
const char *hb_when_key(enum hb_story_when when);
const char *hb_cause_key(enum hb_cause cause);
const char *hb_cause_title(enum hb_cause cause);

#endif
