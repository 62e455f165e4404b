/* The kernels of a calibration as text that NVRTC and hipRTC compile without headers. Loads are
 * four floats wide. Operands of products are normal random numbers in their own type: bits that
 * hardly change draw less power, and clocks rise with it. */
#include "hw/gpu_kernels.h"

#include "base/arena.h"
#include "hw/probe.h"

static const char common_text[] =
    "typedef float4 v4;\n"
    "#define AT long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; \\\n"
    "        long long step = gridDim.x * (long long)blockDim.x;\n"
    "#define EACH(n) AT for (; i < (n); i += step)\n"
    "#define ROWS(n) for (long long r = blockIdx.x; r < (n) / 4096; r += gridDim.x)\n"
    "#define ARGS float *a, const float *b, const float *c, long long n, int form\n"
    "#define KERNEL extern \"C\" __global__ void\n"

    /* Numbers as bits: normal ones from two uniform ones; a float in e + m + 1 bits. */
    "__device__ static unsigned mix(unsigned h) { h ^= h >> 16; h *= 0x7feb352du;\n"
    "  h ^= h >> 15; h *= 0x846ca68bu; return h ^ h >> 16; }\n"
    "__device__ static float normal(unsigned long long at) {\n"
    "  unsigned k = mix((unsigned)at + 0x9e3779b9u * (unsigned)(at >> 32));\n"
    "  float u = ((k >> 8) + 0.5f) * 5.9604645e-8f;\n"
    "  float v = (mix(k + 0x85ebca6bu) >> 8) * 5.9604645e-8f;\n"
    "  return sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v); }\n"
    "__device__ static unsigned narrow(float x, int e, int m, int bias, unsigned most) {\n"
    "  unsigned bits = __float_as_uint(x), q;\n"
    "  int power = (int)(bits >> 23 & 255u) - 127;\n"
    "  if (power + bias < 1) q = (unsigned)(fabsf(x) * exp2f((float)(m + bias - 1)) + 0.5f);\n"
    "  else q = (unsigned)(power + bias) << m | (bits & 0x7fffffu) >> (23 - m);\n"
    "  if (q > most) q = most;\n"
    "  return q ? q | bits >> 31 << (e + m) : 0; }\n"
    "__device__ static unsigned long long pack(unsigned long long at, int form) {\n"
    "  unsigned long long all = 0;\n"
    "  int bits = form == 0 ? 32 : form == 2 || form == 3 ? 16 : form == 6 ? 4 : 8;\n"
    "  for (int k = 0; k < 64 / bits; k++) { float x = normal(at * 16 + k); unsigned q = 0;\n"
    "    if (form == 0) q = __float_as_uint(x);\n"
    "    if (form == 2) q = narrow(x, 8, 7, 127, 0x7f7fu);\n"
    "    if (form == 3) q = narrow(x, 5, 10, 15, 0x7bffu);\n"
    "    if (form == 4) q = narrow(x, 4, 3, 7, 0x7eu);\n"
    "    if (form == 5) q = narrow(x, 4, 3, 8, 0x7fu);\n"
    "    if (form == 6) q = narrow(x, 2, 1, 1, 7u);\n"
    "    if (form == 7) q = (unsigned)(int)fminf(127.0f, fmaxf(-127.0f, x * 36.0f)) & 255u;\n"
    "    all |= (unsigned long long)q << (k * bits); }\n"
    "  return all; }\n"
    "KERNEL hb_fill(ARGS) { unsigned long long *to = (unsigned long long *)a;\n"
    "  EACH(n / 2) {\n"
    "    if (form == 1) ((double *)a)[i] = normal(i);\n"
    "    else if (form == 8) to[i] = 0x3838383838383838ull;\n"
    "    else if (form == 9) to[i] = 0x7f7f7f7f7f7f7f7full;\n"
    "    else to[i] = pack(i, form); } }\n"

    "KERNEL hb_empty(ARGS) {}\n"
    "KERNEL hb_read(ARGS) { float s = 0;\n"
    "  EACH(n / 4) { v4 x = ((const v4 *)b)[i]; s += x.x + x.y + x.z + x.w; }\n"
    "  if (s == 12345.678f) a[0] = s; }\n"
    "KERNEL hb_write(ARGS) { EACH(n / 4) ((v4 *)a)[i] = make_float4(1.0f, 2.0f, 3.0f, i); }\n"
    "KERNEL hb_copy(ARGS) { EACH(n / 4) ((v4 *)a)[i] = ((const v4 *)b)[i]; }\n"
    "KERNEL hb_triad(ARGS) {\n"
    "  EACH(n / 4) { v4 x = ((const v4 *)b)[i], y = ((const v4 *)c)[i];\n"
    "    ((v4 *)a)[i] = make_float4(x.x + 1.5f * y.x, x.y + 1.5f * y.y,\n"
    "                               x.z + 1.5f * y.z, x.w + 1.5f * y.w); } }\n"
    "KERNEL hb_gelu(ARGS) {\n"
    "  EACH(n) { float x = b[i]; a[i] = 0.5f * x * (1.0f + erff(0.70710678f * x)); } }\n"
    "KERNEL hb_reduce(ARGS) { __shared__ float part[256];\n"
    "  for (long long r = blockIdx.x; r < n / 1024; r += gridDim.x) {\n"
    "    v4 x = ((const v4 *)(b + r * 1024))[threadIdx.x];\n"
    "    part[threadIdx.x] = x.x + x.y + x.z + x.w; __syncthreads();\n"
    "    for (int w = 128; w; w >>= 1) {\n"
    "      if (threadIdx.x < w) part[threadIdx.x] += part[threadIdx.x + w];\n"
    "      __syncthreads(); }\n"
    "    if (!threadIdx.x) a[r] = part[0];\n"
    "    __syncthreads(); } }\n";

/* Rows of 4096, a block each; a row stays in registers between its passes. */
static const char rows_text[] =
    "__device__ static float together(float x, int most) { __shared__ float part[256];\n"
    "  part[threadIdx.x] = x; __syncthreads();\n"
    "  for (int w = 128; w; w >>= 1) {\n"
    "    if (threadIdx.x < w) { float y = part[threadIdx.x + w];\n"
    "      part[threadIdx.x] = most ? fmaxf(part[threadIdx.x], y) : part[threadIdx.x] + y; }\n"
    "    __syncthreads(); }\n"
    "  x = part[0]; __syncthreads(); return x; }\n"
    "KERNEL hb_softmax(ARGS) { ROWS(n) {\n"
    "  const float *from = b + r * 4096; float *to = a + r * 4096, x[16];\n"
    "  float top = -3e38f, sum = 0;\n"
    "  for (int k = 0; k < 16; k++) { x[k] = from[k * 256 + threadIdx.x]; top = fmaxf(top, x[k]); "
    "}\n"
    "  top = together(top, 1);\n"
    "  for (int k = 0; k < 16; k++) { x[k] = expf(x[k] - top); sum += x[k]; }\n"
    "  sum = 1.0f / together(sum, 0);\n"
    "  for (int k = 0; k < 16; k++) to[k * 256 + threadIdx.x] = x[k] * sum; } }\n"
    "KERNEL hb_norm(ARGS) { ROWS(n) {\n"
    "  const float *from = b + r * 4096; float *to = a + r * 4096, x[16], sum = 0;\n"
    "  for (int k = 0; k < 16; k++) { x[k] = from[k * 256 + threadIdx.x]; sum += x[k] * x[k]; }\n"
    "  sum = rsqrtf(together(sum, 0) / 4096.0f + 1e-6f);\n"
    "  for (int k = 0; k < 16; k++) to[k * 256 + threadIdx.x] =\n"
    "    x[k] * sum * c[k * 256 + threadIdx.x]; } }\n"
    /* a holds weights, then both moments; b the gradients. */
    "KERNEL hb_adam(ARGS) { float *m = a + n, *v = m + n;\n"
    "  EACH(n) { float g = b[i]; float p = m[i] = 0.9f * m[i] + 0.1f * g;\n"
    "    float q = v[i] = 0.95f * v[i] + 0.05f * g * g;\n"
    "    a[i] -= 1e-4f * (p / (sqrtf(fabsf(q)) + 1e-8f) + 0.1f * a[i]); } }\n"
    "KERNEL hb_chain(ARGS) {\n"
    "  EACH(n) { float x = b[i], y = x + 1, z = x + 2, w = x + 3;\n"
    "    for (int k = 0; k < 128; k++) { x = x * 0.999f + 0.5f; y = y * 0.998f + 0.5f;\n"
    "      z = z * 0.997f + 0.5f; w = w * 0.996f + 0.5f; }\n"
    "    a[i] = x + y + z + w; } }\n";

static const char *const kernel_names[] = {
#define HB_ENUM(name, text) text,
    HB_KERNELS(HB_ENUM)
#undef HB_ENUM
};

const char *hb_gpu_kernels(struct hb_arena *arena)
{
    return hb_arena_printf(arena, "%s%s", common_text, rows_text);
}

const char *hb_gpu_kernel_name(enum hb_kernel which)
{
    return kernel_names[which];
}
