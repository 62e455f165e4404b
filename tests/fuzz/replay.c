/* main for a fuzz target without libFuzzer: runs it on each file named, one TAP line each. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return 1;
    long len = ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(len > 0 ? (size_t)len : 1);
    size_t got = bytes && len > 0 ? fread(bytes, 1, (size_t)len, f) : 0;
    fclose(f);
    int result = got == (size_t)len ? LLVMFuzzerTestOneInput(bytes, got) : 1;
    free(bytes);
    return result;
}

int main(int argc, char **argv)
{
    int failed = 0;
    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        int result = run_file(argv[i]);
        printf("%s %d - %s\n", result ? "not ok" : "ok", i, argv[i]);
        fflush(stdout);
        failed |= result;
    }
    return failed;
}
