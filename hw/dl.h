/* Libraries that are looked for at run time: the only user of dlopen. A machine without them is
 * not at fault; the caller says in a sentence what was looked for. */
#ifndef HB_HW_DL_H
#define HB_HW_DL_H

#include <stdbool.h>
#include <stddef.h>

struct hb_arena;
struct hb_dl;

/* A function and where its pointer goes in the caller's record. */
struct hb_dl_bind {
    const char *symbol;
    size_t offset;
    bool optional; /* its pointer stays null where the library lacks it */
};

/* The first of names that loads, from the first of the folders that has one ("" stands for where
 * the system looks); both lists end with null. Null: *out_reason says what was tried, and of a file
 * that is there why it does not load: in the system's own words, which name what it lacks. Stays
 * open until hb_dl_close. */
struct hb_dl *hb_dl_open(struct hb_arena *arena, const char *const *folders,
                         const char *const *names, const char **out_reason);
/* Fills record by the table, whose last symbol is null. False: *out_reason names what is missing.
 */
bool hb_dl_bind(struct hb_dl *lib, struct hb_arena *arena, const struct hb_dl_bind *table,
                void *record, const char **out_reason);
/* The name that was loaded. */
const char *hb_dl_name(const struct hb_dl *lib);
void hb_dl_close(struct hb_dl *lib);

#endif
