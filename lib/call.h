/* A call of the library: what would end the program (hb_die, HB_BUG) ends the call instead. */
#ifndef HB_LIB_CALL_H
#define HB_LIB_CALL_H

#include <stdbool.h>

enum { HB_CALL_WHY = 512 };

/* Runs work(context) in the C locale. False: it was ended in its middle, what it owned
 * (base/owned.h) was given back, and out_why says why. Calls do not nest. */
bool hb_call(void (*work)(void *context), void *context, char out_why[HB_CALL_WHY]);

#endif
