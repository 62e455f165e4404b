/* A grid of configurations: each cell sets some keys of the input and is run by the engine. Results
 * are numbers of cells in a fixed order, whatever computed them: one process, several, shards of a
 * cluster, or an earlier run whose journal was kept.
 *
 * The journal is append-only: a first line that names the grid, then a line a cell. A last line
 * without its end is one that a killed run did not finish: it is cut off, the cell is run again. */
#ifndef HB_SOLVER_SWEEP_H
#define HB_SOLVER_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "solver/ranks.h"

struct hb_arena;
struct hb_env;
struct hb_node;
struct hb_schema_source;
struct hb_spec;

enum { HB_SWEEP_AXES = 8, HB_SWEEP_MOST_CELLS = 1000000 };

/* "batch.global=8..512*2", "batch.seq=2048..8192+1024", "remat.policy=full,dots". */
struct hb_sweep_axis {
    const char *key;
    const char **values; /* as they are set */
    uint32_t count;
};

/* x varies fastest, then y, then the facets, the last slowest. */
struct hb_sweep {
    /* The input as a tree (hb_schema_load): one for each value of model.preset where that varies,
     * as other keys are laid over a card when it is read; else one. */
    struct hb_node **roots;
    uint32_t root_count;
    uint32_t preset_axis; /* HB_SWEEP_AXES: the preset does not vary */
    struct hb_node *own;  /* the input without the axes; null: it cannot be read so */
    struct hb_sweep_axis axes[HB_SWEEP_AXES];
    uint32_t axis_count; /* x, y, facets; at least 1 */
    uint32_t cell_count;
};

struct hb_sweep_cell {
    bool done;
    bool fits;         /* the step and, where it is described, the loading */
    const char *error; /* null: it was run */
    int64_t peak_bytes;
    int64_t low_bytes;  /* of its interval */
    int64_t high_bytes; /* what the verdict asks */
    int64_t budget_bytes;
    int64_t step_ns;
    double tokens_per_second;
};

bool hb_sweep_parse_axis(struct hb_arena *arena, struct hb_diag *diag, const char *text,
                         struct hb_sweep_axis *out);
/* Counts the cells; false with an error where they are too many or a key is there twice. */
bool hb_sweep_count(struct hb_diag *diag, struct hb_sweep *sweep);
/* Reads the input, after the axes. It need not be complete without their values. */
bool hb_sweep_load(const struct hb_schema_source *source, struct hb_sweep *sweep);
/* The model's name, or "" where it is not told or varies. */
const char *hb_sweep_name(const struct hb_sweep *sweep);
/* The input as it stands, or, where it is not complete without the axes' values, the first cell
 * that can be. False: none can. */
bool hb_sweep_spec(struct hb_arena *arena, const struct hb_sweep *sweep, const char *data_dir,
                   struct hb_spec *out_spec);
/* The cell that is the input as it stands: each axis at the value that it has there. HB_NONE: it is
 * not in the grid, or not complete. */
uint32_t hb_sweep_own(struct hb_arena *arena, const struct hb_sweep *sweep, const char *data_dir);
/* Whether other values of a key are other questions (another sequence, model or machine), so that
 * tokens a second do not rank them; else they are ways to answer one. */
bool hb_sweep_is_question(const char *key);
/* Whether any axis is no question: else no cell is better than another. */
bool hb_sweep_has_ways(const struct hb_sweep *sweep);
/* The value of an axis in a cell. */
const char *hb_sweep_value(const struct hb_sweep *sweep, uint32_t cell, uint32_t axis);

struct hb_sweep_ask {
    struct hb_env *env;
    const struct hb_sweep *sweep;
    const char *journal; /* null: none is kept */
    const char **merge;  /* journals that are read, not written */
    uint32_t merge_count;
    int64_t jobs;  /* processes, >= 1 */
    int64_t shard; /* of the cells, those with index % shards == shard - 1 */
    int64_t shards;
    struct hb_ranks ranks; /* of an MPI run: rank 0 gives out, the others follow */
    /* Null, or what hears of each cell as it is run: its line of JSON, with its end of line. */
    void (*tell)(void *context, const char *line, size_t len);
    void *context;
};

/* Fills cells (by index; those of other shards stay undone). False: an error says why. */
bool hb_sweep_run(const struct hb_sweep_ask *ask, struct hb_sweep_cell **out_cells);
/* Runs cells for rank 0 until there are no more. */
void hb_sweep_follow(const struct hb_sweep_ask *ask);

#endif
