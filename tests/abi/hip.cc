// Without their overloads for C++: what a C compiler sees is what the libraries hold.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<rocblas/rocblas.h>)
#include <rocblas/rocblas.h>
#define HAS_ROCBLAS 1
#endif
#if __has_include(<hipblaslt/hipblaslt.h>)
#include <hipblaslt/hipblaslt.h>
#define HAS_HIPBLASLT 1
#endif
#undef __cplusplus
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#define __cplusplus 201703L
