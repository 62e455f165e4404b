/* What the stand-in libraries share: see driver.c. */
#ifndef STANDIN_H
#define STANDIN_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef STANDIN_CUDA
#define NAME(cuda, hip) cuda
typedef unsigned long long address;
#else
#define NAME(cuda, hip) hip
typedef void *address;
#endif

enum { FAILED = 999 };

void standin_work(void *stream, double ns);
/* Products make the device hot, rest cools it. */
void standin_product(void *stream, double ns);
/* The number after `name=` in HBM_STANDIN, 1 for a bare name, 0 where it is absent. */
int standin_trouble(const char *name);
void standin_take(long long bytes);
void standin_check(uintptr_t at, double bytes, const char *what);
void standin_die(const char *what);
/* Counts calls of all libraries; true for the one that is to fail. */
int standin_fails(void);
const char *standin_arch(void);

#define MAY_FAIL()                                                                                 \
    do {                                                                                           \
        if (standin_fails())                                                                       \
            return FAILED;                                                                         \
    } while (0)

#endif
