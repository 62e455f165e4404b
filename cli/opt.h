/* Options of a command: a table says what there is; the parser fills the command's record by it.
 * Forms: --name VALUE, --name=VALUE, -x VALUE, -xVALUE, `--` ends the options, `-` is an operand
 * (standard input). What is not in the table is an error that names the nearest spelling. */
#ifndef HB_CLI_OPT_H
#define HB_CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hb_arena;
struct hb_cmd;
struct hb_env;

/* What a row reads, and the type of the member that takes it. A member keeps what the caller put
 * there where the option is absent and the row has no default; a choice becomes -1. */
enum hb_opt_kind {
    HB_OPT_FLAG,           /* bool; takes no value */
    HB_OPT_STRING,         /* const char * */
    HB_OPT_INPUT,          /* const char *, a file that is read */
    HB_OPT_OUTPUT,         /* const char *, a file that is written */
    HB_OPT_INT,            /* int64_t, from low to high */
    HB_OPT_SIZE,           /* int64_t bytes: "95GiB", "512 MB", "4096" */
    HB_OPT_DOUBLE,         /* double, finite */
    HB_OPT_CHOICE,         /* int: which word of `value` ("text|json|csv"), from 0 */
    HB_OPT_WORDS,          /* struct hb_words; may be given several times */
    HB_OPT_INPUTS,         /* struct hb_words, files that are read; several times */
    HB_OPT_OPERAND,        /* const char *, a file; must be there */
    HB_OPT_OPERAND_MAYBE,  /* const char *; may be absent */
    HB_OPT_OPERANDS,       /* struct hb_words, files; at least one */
    HB_OPT_OPERANDS_MAYBE, /* struct hb_words, names; any number */
    HB_OPT_KIND_COUNT
};

struct hb_words {
    const char **items;
    uint32_t count;
    uint32_t cap;
};

/* One row. Operand rows come in the order of the command line, one that takes many last. */
struct hb_opt {
    const char *name; /* without dashes; an operand: as shown, "MODEL.yaml" */
    char letter;      /* short form; 0: none */
    enum hb_opt_kind kind;
    const char *value;    /* name of the value in --help, "FILE"; a choice: its words */
    const char *help;     /* one line; null: the option is not shown */
    const char *fallback; /* the default, as text; null: none */
    size_t offset;        /* of the member in the command's record */
    int64_t low;          /* of HB_OPT_INT */
    int64_t high;         /* of HB_OPT_INT; 0 with low 0: no limit */
};

/* Options that many commands share: a record of options begins with this member, and the
 * command's `common` says which of them it takes. */
struct hb_common {
    bool json;           /* --json */
    const char *output;  /* -o FILE; null or "-": standard output. Write it with base/out.h */
    struct hb_words set; /* --set KEY=VALUE, in order */
};
enum { HB_COMMON_JSON = 1, HB_COMMON_OUTPUT = 2, HB_COMMON_SET = 4 };

/* hb_opt_parse says so when the command is to go on. */
enum { HB_GO_ON = -1 };

/* Fills out_record (zeroed by the caller) from argv[1..]. Returns HB_GO_ON, or the exit status to
 * return: --help was printed (0), or the usage is wrong (2, errors in env->diag). An output that
 * is also read, or another output, links followed, is such a mistake. */
int hb_opt_parse(struct hb_env *env, const struct hb_cmd *cmd, int argc, char **argv,
                 void *out_record);

/* All rows of a command, common ones and --help included; the last one's name is null. */
const struct hb_opt *hb_opt_rows(struct hb_arena *arena, const struct hb_cmd *cmd);
bool hb_opt_is_operand(enum hb_opt_kind kind);
void hb_words_add(struct hb_words *words, struct hb_arena *arena, const char *word);

#endif
