/* The state of one calibration and what its steps share: results with their sources, and the kinds
 * of work that are timed. Used by measure.c and the steps in measure_compute.c (products,
 * kernels, gaps), measure_memory.c (rates, capacity) and measure_host.c (host copies). */
#ifndef HB_HW_MEASURE_RUN_H
#define HB_HW_MEASURE_RUN_H

#include "hw/calib.h"
#include "hw/measure.h"

enum { HB_RUN_BUFFERS = 3 };

struct hb_run {
    struct hb_env *env;
    struct hb_probe *p;
    struct hb_calib calib;
    struct hb_measure_result *out;
    struct hb_device *dev;
    const struct hb_measure_wish *wish;
    const char *source;
    uintptr_t buffer[HB_RUN_BUFFERS]; /* device memory that the steps share */
    int64_t room;                     /* bytes of each */
    int64_t total_bytes;
    int64_t context_bytes;
    int64_t library_bytes;
    bool in_use;                /* by others, before anything was allocated */
    double gap_ns;              /* between two kernels; 0: not known yet */
    double stretch_ns;          /* how long large products run */
    int64_t next_look_ns;       /* when power and clocks are read again */
    struct hb_health worst;     /* under work: the lowest clocks, the highest power */
    double best[HB_RATE_COUNT]; /* fastest product */
    double best_memory;
    double worst_spread;
    int samples;
    int outliers;
    double reference_ns[2]; /* one product, at the start and at the end */
};

/* A sentence for the user. */
void hb_run_remark(struct hb_run *r, const char *text);
/* A step that could not be done: said once, the rest goes on. */
void hb_run_failure(struct hb_run *r, const char *what);
/* Where the number of this key comes from. */
void hb_run_fact(struct hb_run *r, const char *key, const char *source, const char *note);
/* Quantiles and drift as a note. */
const char *hb_run_describe(struct hb_run *r, const struct hb_sample *s);
/* hb_calib_measure, counted in the run's summary. */
bool hb_run_measure(struct hb_run *r, hb_calib_work *work, void *ctx, struct hb_sample *out);

/* A task for as long as large products run, watched; counted in the summary. */
struct hb_task;
bool hb_run_stretch(struct hb_run *r, const struct hb_task *task, struct hb_stretch *out);
/* Time of a kernel that was one of many in a row: without the gap to the next. */
double hb_run_without_gap(const struct hb_run *r, double ns);

/* One operation of the device. */
struct hb_task {
    struct hb_run *r;
    enum { HB_TASK_KERNEL, HB_TASK_PRODUCT, HB_TASK_COPY } kind;
    enum hb_kernel kernel;
    int64_t n;
    struct hb_product product;
    enum hb_lane lane;
    enum hb_copy way;
    void *host;
    int64_t bytes;
    int pieces;   /* issued so often each time; 0: once */
    bool watched; /* power and clocks are read while it runs */
};

/* Two of them on two lanes. */
struct hb_pair {
    struct hb_task first, second;
};

struct hb_task hb_task_kernel(struct hb_run *r, enum hb_kernel kernel, int64_t n);
/* Operands and result are put into the shared buffers. */
struct hb_task hb_task_product(struct hb_run *r, struct hb_product x);
struct hb_task hb_task_copy(struct hb_run *r, enum hb_copy way, void *host, int64_t bytes);

/* Kinds of work for hb_run_measure. ctx is a struct hb_task: one after another on its lane; each
 * waited for. ctx is a struct hb_pair: both at once, until the later one is done; the second one's
 * time while several of the first run. */
bool hb_task_run(void *ctx, int repeats, double *out_ns);
bool hb_task_run_waited(void *ctx, int repeats, double *out_ns);
bool hb_task_run_pair(void *ctx, int repeats, double *out_ns);
bool hb_task_run_under(void *ctx, int repeats, double *out_ns);

double hb_product_flops(const struct hb_product *x);
/* Fills the shared buffers with numbers of this type. */
bool hb_run_fill(struct hb_run *r, enum hb_rate rate);
/* Whether the shared buffers hold its operands and result. */
bool hb_product_fits(const struct hb_run *r, const struct hb_product *x);
/* The same product at the start and at the end tells of clocks that drift. */
struct hb_product hb_run_reference(struct hb_run *r);

/* Steps, in the order in which they run. */
void hb_step_memory_essentials(struct hb_run *r);
void hb_step_product_essentials(struct hb_run *r);
void hb_step_vector(struct hb_run *r);
void hb_step_host(struct hb_run *r);
void hb_step_memory(struct hb_run *r);
void hb_step_products(struct hb_run *r);
void hb_step_elementwise(struct hb_run *r);
void hb_step_launch(struct hb_run *r);
void hb_step_last_reference(struct hb_run *r);
/* After the shared buffers were given back. */
void hb_step_links(struct hb_run *r);
void hb_step_capacity(struct hb_run *r);

#endif
