/* A stream that writes to memory and knows when it could not: open_memstream of glibc loses what it
 * has no memory for without a word, and what comes after that stands in its place. */
#ifndef HB_BASE_MEM_FILE_H
#define HB_BASE_MEM_FILE_H

#include <stddef.h>
#include <stdio.h>

/* Null without memory. As open_memstream: after a flush *text is what was written, terminated, and
 * *len its length; the caller frees *text after fclose. Null where nothing could be kept; where a
 * part was lost, a flush fails and ferror tells. */
FILE *hb_mem_open(char **text, size_t *len);

#endif
