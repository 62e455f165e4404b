/* The words: see logmeaning.h. */
#include "sim/hlo/logmeaning.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* By name. */
static const struct meaning {
    const char *word;
    int bits;
} meanings[] = {
    {"a", LEADS},
    {"about", LEADS | RECKONS},
    {"accelerator", DEVICE},
    {"alloc", WANTED | ALLOCS},
    {"allocate", WANTS | ALLOCS},
    {"allocated", HOLDS | ALLOCS},
    {"allocates", HOLDS | ALLOCS},
    {"allocation", WANTED | ALLOCS},
    {"allocations", HOLDS | ALLOCS},
    {"allocator", ALLOCS},
    {"allowed", LIMITS},
    {"almost", LEADS | RECKONS},
    {"amount", LEADS},
    {"an", LEADS},
    {"approximately", LEADS | RECKONS},
    {"arena", THING},
    {"around", LEADS | RECKONS},
    {"array", THING},
    {"at", LEADS},
    {"avail", FREES},
    {"available", FREES},
    {"avoid", ADVISES},
    {"block", THING},
    {"breakdown", ENDS},
    {"budget", LIMITS},
    {"buffer", WANTED | THING},
    {"but", PAUSES},
    {"byte", THING},
    {"bytes", THING | LEADS},
    {"calloc", WANTS | ALLOCS},
    {"cannot", CANNOTS},
    {"cant", CANNOTS},
    {"cap", LIMITS},
    {"capacity", TOTALS},
    {"ceiling", LIMITS},
    {"cgroup", HOST},
    {"chunk", THING},
    {"communicator", THING | LINKS},
    {"computer", OWNER},
    {"container", HOST},
    {"couldnt", CANNOTS},
    {"cpu", OWNER},
    {"crash", ENDS},
    {"crashed", ENDS},
    {"crashes", ENDS},
    {"crashing", ENDS},
    {"cublas", DEVICE | THING | KERNELS},
    {"cuda", DEVICE},
    {"cudf", DEVICE},
    {"cudnn", DEVICE | THING | KERNELS},
    {"cufft", DEVICE | THING | KERNELS},
    {"cusolver", DEVICE | THING | KERNELS},
    {"cusparse", DEVICE | THING | KERNELS},
    {"data", LEADS},
    {"demand", WANTS},
    {"denied", FAILS},
    {"device", DEVICE},
    {"died", ENDS},
    {"dram", MEMORY | THING},
    {"error", FAILS},
    {"estimated", WANTS},
    {"exceed", PAUSES | EXCEEDS},
    {"exhausted", EXCEEDS},
    {"exhaustion", EXCEEDS},
    {"fail", FAILS},
    {"failure", FAILS},
    {"fix", ADVISES},
    {"for", LEADS},
    {"fork", HOST | ALLOCS},
    {"free", FREES},
    {"gpu", DEVICE},
    {"greater", PAUSES},
    {"hbm", MEMORY | THING | DEVICE},
    {"hccl", DEVICE | THING | LINKS},
    {"heap", MEMORY | THING},
    {"held", HOLDS},
    {"hip", DEVICE},
    {"hipblas", DEVICE | THING | KERNELS},
    {"hipblaslt", DEVICE | THING | KERNELS},
    {"hold", HOLDS},
    {"host", OWNER},
    {"hpu", DEVICE},
    {"if", ADVISES},
    {"impossible", FAILS},
    {"in", LEADS},
    {"inadequate", SHORT},
    {"insufficient", SHORT},
    {"is", LEADS},
    {"java", HOST},
    {"job", OWNER},
    {"killed", ENDS},
    {"kubelet", HOST},
    {"lack", SHORT},
    {"larger", PAUSES},
    {"left", FREES},
    {"less", PAUSES},
    {"limit", LIMITS},
    {"limitation", LIMITS},
    {"low", SHORT},
    {"machine", OWNER},
    {"main", OWNER},
    {"malloc", WANTS | ALLOCS | THING},
    {"max", LIMITS},
    {"maximum", LIMITS},
    {"mem", MEMORY | THING | LEADS},
    {"memory", MEMORY | THING | LEADS},
    {"metal", DEVICE},
    {"might", ADVISES},
    {"mkl", HOST},
    {"mmap", HOST | ALLOCS | WANTED},
    {"more", PAUSES},
    {"most", LIMITS},
    {"mps", DEVICE},
    {"nccl", DEVICE | THING | LINKS},
    {"nearly", LEADS | RECKONS},
    {"need", WANTS},
    {"node", OWNER},
    {"npu", DEVICE},
    {"nvidia", DEVICE},
    {"occupied", HOLDS},
    {"of", LEADS},
    {"only", LEADS},
    {"opencl", DEVICE},
    {"overflow", EXCEEDS},
    {"page", THING},
    {"peak", HOLDS},
    {"pinned", HOST | PINNED | MEMORY | THING},
    {"pod", HOST},
    {"pool", THING},
    {"potentially", ADVISES},
    {"prevent", ADVISES},
    {"process", OWNER},
    {"quota", LIMITS},
    {"ram", MEMORY | THING | HOST},
    {"rapids", DEVICE},
    {"rccl", DEVICE | THING | LINKS},
    {"reach", HOLDS},
    {"reduce", ADVISES},
    {"refused", FAILS},
    {"remaining", FREES},
    {"request", WANTS},
    {"require", WANTS},
    {"reserve", WANTS | ALLOCS},
    {"reserved", HOLDS},
    {"reserves", HOLDS},
    {"resident", HOLDS},
    {"rmm", DEVICE},
    {"rocblas", DEVICE | THING | KERNELS},
    {"rocm", DEVICE},
    {"roughly", LEADS | RECKONS},
    {"rss", HOLDS},
    {"scratchpad", CHIP},
    {"shm", HOST | MEMORY | THING},
    {"size", WANTED | LEADS},
    {"slurm", HOST},
    {"slurmstepd", HOST},
    {"smem", CHIP | MEMORY | THING},
    {"sram", CHIP | MEMORY | THING},
    {"srun", HOST},
    {"step", OWNER},
    {"swap", HOLDS},
    {"sycl", DEVICE},
    {"sysmem", MEMORY | THING},
    {"system", OWNER},
    {"tensor", THING | LEADS},
    {"terminated", ENDS},
    {"than", PAUSES},
    {"the", LEADS},
    {"to", LEADS},
    {"total", TOTALS},
    {"tpu", DEVICE},
    {"unable", CANNOTS},
    {"unsufficient", SHORT},
    {"unused", FREES},
    {"upstream", WANTS},
    {"usage", HOLDS},
    {"used", HOLDS},
    {"uses", HOLDS},
    {"using", HOLDS},
    {"vmem", CHIP | MEMORY | THING},
    {"vram", MEMORY | THING | DEVICE},
    {"vs", PAUSES},
    {"vulkan", DEVICE},
    {"want", WANTS},
    {"while", PAUSES},
    {"with", LEADS},
    {"workspace", THING},
    {"xpu", DEVICE},
};

static int compare_word(const void *key, const void *row)
{
    return strcmp(key, ((const struct meaning *)row)->word);
}

static int meaning_exactly(const char *word)
{
    enum { COUNT = sizeof meanings / sizeof *meanings };
    const struct meaning *m = bsearch(word, meanings, COUNT, sizeof *meanings, compare_word);
    return m ? m->bits : 0;
}

/* The word without its ending, and what is put in the ending's place. */
static int meaning_without(const char *word, const char *ending, const char *instead)
{
    char stem[HB_MEANING_WORD];
    size_t len = strlen(word);
    size_t cut = strlen(ending);
    if (len <= cut + 2 || len + 1 >= sizeof stem || strcmp(word + len - cut, ending) != 0)
        return 0;
    memcpy(stem, word, len - cut);
    memcpy(stem + len - cut, instead, strlen(instead) + 1);
    return meaning_exactly(stem);
}

/* "memeory", "memroy": a slip of the pen; "memories", "memeries". */
static bool is_misspelt_memory(const char *word)
{
    size_t len = strlen(word);
    if (len >= 7 && len <= 9 && strncmp(word, "me", 2) == 0 && strcmp(word + len - 3, "ies") == 0 &&
        strspn(word, "memory") == len - 3)
        return true;
    return len >= 5 && len <= 8 && strncmp(word, "me", 2) == 0 && word[len - 1] == 'y' &&
           strspn(word, "memory") == len && strchr(word, 'o');
}

int hb_meaning_of(const char *word)
{
    if (is_misspelt_memory(word))
        word = "memory";
    static const int verbs = WANTS | ALLOCS | FAILS | EXCEEDS | PAUSES | SHORT | HOLDS | ADVISES;
    static const struct {
        const char *ending;
        const char *instead;
        int bits; /* what a word of that ending may mean */
    } forms[] = {{"s", "", ~0},
                 {"d", "", verbs},
                 {"ed", "", verbs},
                 {"ing", "", verbs},
                 {"ing", "e", verbs}};
    int bits = meaning_exactly(word);
    for (size_t i = 0; !bits && i < sizeof forms / sizeof *forms; i++)
        bits = meaning_without(word, forms[i].ending, forms[i].instead) & forms[i].bits;
    return bits;
}
