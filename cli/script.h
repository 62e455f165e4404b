/* One of our scripts, run by the user's own Python: a question on its standard input, one JSON
 * object back. The answer is read as one of a stranger: limited in time and length, its words
 * tamed. */
#ifndef HB_CLI_SCRIPT_H
#define HB_CLI_SCRIPT_H

#include <stdint.h>

#include "base/node.h"

struct hb_env;

struct hb_script_ask {
    const char *const *argv; /* python -B script ...; ended by null */
    const char *input;
    int64_t most_ns;
    const char *name;    /* what runs: "the compiler" */
    const char *longer;  /* what gives it more time: "--compile-seconds" */
    const char *install; /* what is to be installed after Python 3: "JAX with: pip ..." */
};

enum hb_script_end {
    HB_SCRIPT_ANSWERED,    /* the answer is a map */
    HB_SCRIPT_FAILED,      /* `reason` says why there is none */
    HB_SCRIPT_INTERRUPTED, /* `signal` came for us */
};

struct hb_script {
    enum hb_script_end end;
    const char *reason;
    int signal;
    int status; /* exit status, where it answered */
    struct hb_node *answer;
    const char *last_words; /* ": " and the last line of its messages; "" */
    double seconds;
};

/* Whether there is an answer, which may be {"error": "a sentence"}. */
bool hb_script_run(struct hb_env *env, const struct hb_script_ask *ask, struct hb_script *out);
/* The error of an answer, tamed; null: there is none. */
const char *hb_script_error(struct hb_env *env, const struct hb_script *script);
/* The text at a key, tamed; "" where there is none. */
const char *hb_script_word(struct hb_env *env, const struct hb_node *map, const char *key);
/* The map at a key (names and versions), tamed. */
const struct hb_node *hb_script_words(struct hb_env *env, const struct hb_node *map,
                                      const char *key);

#endif
