/* Words of a log and what they weigh: see evidence.h. A word counts once, however often it stands
 * there. What a word is, tests/golden/logs/weigh.py has a second time. */
#include "sim/hlo/evidence.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

enum {
    SLOTS = 2048,
    WORDS = SLOTS / 2, /* at most */
    LETTERS = 24,      /* of a word that count */
    IDEOGRAPH = 3      /* bytes of a character of Chinese, Japanese or Korean */
};

struct hb_evidence_reader {
    uint64_t hash[WORDS];
    uint16_t slot[SLOTS]; /* 1 + index of a word; 0: none */
    bool seen[WORDS];
    bool stem[LETTERS + 1]; /* there are stems of so many letters */
};

static size_t count_words(void)
{
    return hb_evidence_word_count < WORDS ? hb_evidence_word_count : WORDS - 1;
}

struct hb_evidence_reader *hb_evidence_begin(struct hb_arena *arena)
{
    struct hb_evidence_reader *r = hb_arena_alloc(arena, 1, sizeof *r);
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < count_words(); i++) {
        const char *text = hb_evidence_words[i].text;
        size_t len = strlen(text);
        r->hash[i] = hb_hash_bytes(HB_HASH_START, text, len);
        if (text[len - 1] == '*' && len - 1 <= LETTERS)
            r->stem[len - 1] = true;
        size_t at = r->hash[i] % SLOTS;
        while (r->slot[at])
            at = (at + 1) % SLOTS;
        r->slot[at] = (uint16_t)(i + 1);
    }
    return r;
}

/* 64 bits of its hash tell a word. */
static void see(struct hb_evidence_reader *r, uint64_t hash)
{
    for (size_t at = hash % SLOTS; r->slot[at]; at = (at + 1) % SLOTS)
        if (r->hash[r->slot[at] - 1] == hash)
            r->seen[r->slot[at] - 1] = true;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Goes on from a hash with letters in lower case; sees their stems. */
static uint64_t hash_letters(struct hb_evidence_reader *r, uint64_t hash, struct hb_span word,
                             bool stems)
{
    size_t len = 0;
    for (const char *at = word.at; at < word.end && len < LETTERS; at++) {
        hash = hb_hash(hash, (unsigned char)(*at | 0x20));
        if (r->stem[++len] && stems)
            see(r, hb_hash(hash, '*'));
    }
    return hash;
}

static uint64_t see_word(struct hb_evidence_reader *r, struct hb_span word)
{
    uint64_t hash = hash_letters(r, HB_HASH_START, word, true);
    see(r, hash);
    return hash;
}

/* Where the part of CamelCase that begins at `at` ends: "HTTP", "Server". */
static const char *end_of_part(const char *at, const char *end)
{
    const char *stop = at;
    while (stop < end && is_upper(*stop))
        stop++;
    if (stop - at > 1 && stop < end)
        return stop - 1; /* the last one begins the next */
    while (stop < end && is_lower(*stop))
        stop++;
    return stop;
}

static void see_parts(struct hb_evidence_reader *r, struct hb_span word)
{
    while (word.at < word.end) {
        struct hb_span part = {word.at, end_of_part(word.at, word.end)};
        see_word(r, part);
        word.at = part.end;
    }
}

static bool is_letter(char c)
{
    return is_upper(c) || is_lower(c);
}

/* Of U+3000 to U+D7FF. */
static bool is_ideograph(struct hb_span s)
{
    unsigned char lead = (unsigned char)*s.at;
    return s.end - s.at >= IDEOGRAPH && lead >= 0xe3 && lead <= 0xed;
}

/* What two of them mean, by the stem that has its weight: as TONGUES of weigh.py. */
static void see_meaning(struct hb_evidence_reader *r, const char *two)
{
    static const struct {
        const char *two, *stem;
    } tongues[] = {{"\u8bad\u7ec3", "train*"}, {"\u5fae\u8c03", "finetun*"},
                   {"\u5b66\u7fd2", "train*"}, {"\u63a8\u7406", "infer*"},
                   {"\u63a8\u8ad6", "infer*"}, {"\u90e8\u7f72", "serv*"}};
    for (size_t i = 0; i < sizeof tongues / sizeof *tongues; i++)
        if (memcmp(tongues[i].two, two, 2 * IDEOGRAPH) == 0)
            see(r, hb_hash_bytes(HB_HASH_START, tongues[i].stem, strlen(tongues[i].stem)));
}

/* Two and two of a run. Returns its end. */
static const char *see_ideographs(struct hb_evidence_reader *r, struct hb_span s)
{
    for (s.at += IDEOGRAPH; s.at < s.end && is_ideograph(s); s.at += IDEOGRAPH) {
        see(r, hb_hash_bytes(HB_HASH_START, s.at - IDEOGRAPH, 2 * IDEOGRAPH));
        see_meaning(r, s.at - IDEOGRAPH);
    }
    return s.at;
}

void hb_evidence_take(struct hb_evidence_reader *r, struct hb_span line)
{
    uint64_t before = 0; /* the word before, and a space */
    struct hb_span s = line;
    while (s.at < s.end) {
        if (is_ideograph(s)) {
            s.at = see_ideographs(r, s);
            before = 0;
            continue;
        }
        if (!is_letter(*s.at)) {
            s.at++;
            continue;
        }
        struct hb_span word = s;
        while (s.at < s.end && is_letter(*s.at))
            s.at++;
        word.end = s.at;
        see_parts(r, word);
        if (before)
            see(r, hash_letters(r, before, word, false));
        before = hb_hash(see_word(r, word), ' ');
    }
}

struct hb_evidence hb_evidence_sum(const struct hb_evidence_reader *r)
{
    struct hb_evidence sum = {hb_evidence_bias.trains, hb_evidence_bias.teaches,
                              hb_evidence_bias.mentions, 0, 0};
    for (size_t i = 0; i < count_words(); i++) {
        const struct hb_evidence_word *word = &hb_evidence_words[i];
        sum.trains += r->seen[i] ? word->trains : 0;
        sum.teaches += r->seen[i] ? word->teaches : 0;
        sum.mentions += r->seen[i] ? word->mentions : 0;
        sum.words += r->seen[i] && word->trains;
        sum.told += r->seen[i] && word->mentions;
    }
    return sum;
}
