/* How many words a tokenizer has, by its name: where a program's file names a tokenizer only. The
 * number is that of rows in the models that are published with it (config.json's vocab_size), or
 * of the tokenizer's own words where those are trained from scratch. */
#include "models/import/source.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

/* The first whose part stands in the name counts: children before their parents. */
static const struct {
    const char *part; /* in small letters, '_' as '-' */
    int64_t words;
} tokenizers[] = {
    {"128k.vocab", 131072}, /* Nemotron's tiktoken files */
    {"256k", 256000},       /* Nemotron's sentence pieces */
    {"distill-qwen", 152064}, {"distill-llama", 128256},  {"deepseek-v2", 102400},
    {"deepseek-llm", 102400}, {"deepseek-v3", 129280},    {"deepseek-r1", 129280},
    {"moonlight", 163840},    {"kimi", 163840},           {"gpt-oss", 201088},
    {"gpt-neox", 50277},      {"gpt-neo", 50257},         {"pythia", 50277},
    {"gpt2", 50257},          {"gpt-2", 50257},           {"llava-1.5", 32064},
    {"codellama", 32016},     {"tinyllama", 32000},       {"llama-2", 32000},
    {"llama2", 32000},        {"llama-4", 202048},        {"llama4", 202048},
    {"llama-3", 128256},      {"llama3", 128256},         {"marin", 128256},
    {"mistral-nemo", 131072}, {"mistral-7b-v0.3", 32768}, {"mistral-7b-instruct-v0.3", 32768},
    {"mistral-7b", 32000},    {"mixtral-8x7b", 32000},    {"mixtral-8x22b", 32768},
    {"gemma-3", 262144},      {"gemma3", 262144},         {"gemma", 256000},
    {"qwen2-7b", 152064},     {"qwen2-72b", 152064},      {"qwen2.5-7b", 152064},
    {"qwen2.5-14b", 152064},  {"qwen2.5-32b", 152064},    {"qwen2.5-72b", 152064},
    {"qwen2", 151936},        {"qwen3-next", 151936},     {"qwen3", 151936},
    {"qwen", 151936},         {"olmo-2", 100352},         {"olmo2", 100352},
    {"olmo", 50304},          {"smollm", 49152},          {"starcoder", 49152},
    {"phi-3", 32064},         {"phi-4", 100352},          {"t5-", 32128},
};

int64_t hb_take_tokenizer(struct hb_foreign *f, const char *name)
{
    char *plain = hb_arena_strdup(f->arena, name);
    for (char *c = plain; *c; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < sizeof tokenizers / sizeof tokenizers[0]; i++)
        if (strstr(plain, tokenizers[i].part)) {
            hb_assume(f, "vocabulary of %" PRId64 " words, by the tokenizer's name",
                      tokenizers[i].words);
            return tokenizers[i].words;
        }
    return 0;
}
