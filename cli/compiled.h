/* The real compiler's word on a configuration: examples/verify/verify.py, run by the user's own
 * Python and JAX, compiles the reference step ahead of time and says what it takes of a device's
 * memory; or MaxText's own program does (run_maxtext.py). The answer is read as one of a stranger:
 * limited in time and length, and believed only where it is of this device and its sums agree. */
#ifndef HB_CLI_COMPILED_H
#define HB_CLI_COMPILED_H

#include <stdint.h>

#include "base/node.h"
#include "models/spec.h"

struct hb_env;

enum { HB_COMPILE_SECONDS = 900 }; /* a compilation may take, unless the user says otherwise */

struct hb_compile_ask {
    const char *python; /* a name in PATH, or a path */
    int64_t seconds;
    const struct hb_spec *spec;
    const char *maxtext;        /* a checkout, whose own program is compiled; null: ours is */
    const char *const *setting; /* with maxtext: KEY=VALUE after those of the configuration */
    uint32_t setting_count;
};

enum hb_compiled_end {
    HB_COMPILED,            /* the figures are there */
    HB_COMPILE_REFUSED,     /* the reference step does not have what the configuration asks for */
    HB_COMPILE_FAILED,      /* something is missing here, or what ran failed */
    HB_COMPILE_INTERRUPTED, /* `signal` came for us */
};

/* Figures that the answer lacks are -1: a compiler that refuses a program may tell the total alone.
 */
struct hb_compiled {
    enum hb_compiled_end end;
    const char *reason; /* a sentence, where there are no figures */
    int signal;         /* that interrupted */
    const char *by;     /* "libtpu 0.0.51" */
    const char *topology;
    const struct hb_node *versions; /* name: version */
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes;
    int64_t host_bytes;
    int64_t total_bytes; /* argument + output - alias + temp */
    double seconds;
};

void hb_compile(struct hb_env *env, const struct hb_compile_ask *ask, struct hb_compiled *out);

/* What of the configuration MaxText's settings cannot say, a line each; "": all is said. */
const char *hb_compile_unsaid(struct hb_env *env, const struct hb_spec *spec);
/* "15.31 GiB of 15.75; predicted 15.38", as the first line says it. */
const char *hb_compiled_line(struct hb_env *env, const struct hb_compiled *c, int64_t budget_bytes,
                             int64_t predicted_bytes);

#endif
