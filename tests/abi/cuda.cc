// Without their overloads for C++: what a C compiler sees is what the libraries hold.
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <driver_types.h>
#include <library_types.h>
#include <stdio.h>
#undef __cplusplus
#include <cuda.h>
#include <nvrtc.h>
#include <cublas_v2.h>
#include <cublasLt.h>
#define __cplusplus 201703L
