/* A run-time compiler, NVRTC or hipRTC of the version MAJOR, whose images say what they are. */
#include "tests/standin/standin.h"

struct program {
    const char *text;
    char image[128];
};

int NAME(nvrtcVersion, hiprtcVersion)(int *major, int *minor)
{
    MAY_FAIL();
    *major = MAJOR;
    *minor = 8;
    return 0;
}

int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void **program, const char *text,
                                                  const char *name, int headers,
                                                  NAME(const char *const *, const char **) texts,
                                                  NAME(const char *const *, const char **) names)
{
    struct program *p;
    (void)texts;
    (void)names;
    MAY_FAIL();
    p = calloc(1, sizeof *p);
    p->text = text;
    *program = p;
    return !text || !name || headers;
}

/* What the option asks for becomes the image. */
int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void *program, int count,
                                                    NAME(const char *const *, const char **)
                                                        options)
{
    struct program *p = program;
    const char *own = NAME("--gpu-architecture=", "--offload-arch=");
    int trouble = standin_trouble("compile");
    MAY_FAIL();
    if (count != 1 || strncmp(options[0], own, strlen(own)) != 0)
        return 5;
    const char *arch = options[0] + strlen(own);
    int number = 0;
    if (NAME(1, 0))
        number = (int)strtol(strchr(arch, '_') + 1, NULL, 10);
    if (number > 90)
        return 5; /* newer than this compiler */
    snprintf(p->image, sizeof p->image, "standin %d %s%s", MAJOR,
             strncmp(arch, "compute", 7) == 0 ? "PTX " : "", arch);
    return trouble == 1 || trouble == MAJOR || !strstr(p->text, "KERNEL hb_triad");
}

#ifdef STANDIN_CUDA
int nvrtcGetNumSupportedArchs(int *count)
{
    MAY_FAIL();
    *count = 3;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs)
{
    MAY_FAIL();
    archs[0] = 75;
    archs[1] = 80;
    archs[2] = 90;
    return 0;
}

int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
    const struct program *p = program;
    MAY_FAIL();
    *bytes = strstr(p->image, "sm_") ? strlen(p->image) + 1 : 0;
    return 0;
}

int nvrtcGetCUBIN(void *program, char *to)
{
    MAY_FAIL();
    memcpy(to, ((struct program *)program)->image, strlen(((struct program *)program)->image) + 1);
    return 0;
}
#endif

int NAME(nvrtcGetPTXSize, hiprtcGetCodeSize)(void *program, size_t *bytes)
{
    MAY_FAIL();
    *bytes = strlen(((struct program *)program)->image) + 1;
    return 0;
}

int NAME(nvrtcGetPTX, hiprtcGetCode)(void *program, char *to)
{
    MAY_FAIL();
    memcpy(to, ((struct program *)program)->image, strlen(((struct program *)program)->image) + 1);
    return 0;
}

int NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void *program, size_t *bytes)
{
    (void)program;
    MAY_FAIL();
    *bytes = sizeof "hbmsim.c(1): error: no";
    return 0;
}

int NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void *program, char *to)
{
    (void)program;
    MAY_FAIL();
    memcpy(to, "hbmsim.c(1): error: no", sizeof "hbmsim.c(1): error: no");
    return 0;
}

int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void **program)
{
    free(*program);
    *program = NULL;
    return 0;
}
