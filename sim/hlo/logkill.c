/* Processes that were ended: see logkill.h. */
#include "sim/hlo/logkill.h"

#include <string.h>

#include "sim/hlo/logrefusal.h"

/* Whether the sentence around a word speaks of a device. */
static bool names_device(const struct hb_sentence *l, int i)
{
    return l->bits[i] & DEVICE || hb_sentence_ahead(l, i, HB_SENTENCE_WORDS, DEVICE) >= 0 ||
           hb_sentence_behind(l, i, HB_SENTENCE_WORDS, DEVICE) >= 0;
}

/* "the process got killed", by whom nobody says */
static bool is_ended(const struct hb_sentence *l, int i)
{
    static const char *const verbs[] = {"got", "get",  "gets",  "getting", "was",
                                        "is",  "been", "being", "be",      NULL};
    static const char *const things[] = {
        "process", "script",   "program", "training", "it",      "job",       "worker", "kernel",
        "always",  "suddenly", "task",    "run",      "workers", "processes", "jobs",   NULL};
    static const char *const gets[] = {"got", "gets", "getting", NULL};
    if (!hb_sentence_is(l, i, "killed"))
        return false;
    bool got = hb_sentence_is_any(l, i - 1, gets);
    bool passive = hb_sentence_is(l, i - 1, "worker") || hb_sentence_is(l, i - 1, "workers");
    bool named = passive || got; /* "the data loader worker killed" */
    passive = passive || hb_sentence_is_any(l, i - 1, verbs) || hb_sentence_is_any(l, i - 2, verbs);
    for (int n = 2; n <= 4; n++)
        named = named || hb_sentence_is_any(l, i - n, things);
    return passive && named && !names_device(l, i);
}

/* "the OS kills the process", "terminated by the operating system" */
static bool is_ended_by_system(const struct hb_sentence *l, int i)
{
    enum { FAR = 4 };
    static const char *const kills[] = {"kills", "killed", "kill", NULL};
    static const char *const systems[] = {"os", "system", "kernel", NULL};
    static const char *const things[] = {"process", "script", "program", "training",
                                         "it",      "job",    NULL};
    static const char *const gets[] = {"gets", NULL};
    bool kill = hb_sentence_is_any(l, i, kills);
    if (!kill && !(l->bits[i] & ENDS))
        return false;
    bool named = hb_sentence_is_any(l, i + 1, things) || hb_sentence_is_any(l, i + 2, things);
    bool ended =
        l->bits[i] & ENDS || (hb_sentence_is(l, i, "kill") && hb_sentence_is_any(l, i - 1, gets));
    if (ended && hb_sentence_is(l, i + 1, "by") && hb_sentence_next(l, i + 1, FAR, systems) >= 0)
        return true; /* "will be killed by the system" */
    return kill && named && hb_sentence_is_any(l, i - 1, systems);
}

/* "OOM killer", which may be no more than compared with or denied */
static bool is_oom_kill(const struct hb_sentence *l, int i)
{
    static const char *const kills[] = {"kill", "killed", "killer", "killing", NULL};
    return hb_sentence_is_any(l, i + 1, kills);
}

/* "killed due to memory usage", "killed by the scheduler for OOM" */
static bool is_ended_of_memory(const struct hb_sentence *l, int i)
{
    enum { FAR = 6 };
    const char *text = l->word[i].text;
    if (!(l->bits[i] & ENDS) || (strcmp(text, "killed") != 0 && names_device(l, i)))
        return false;
    /* what crashes may have met a device's end, unless it names RAM */
    int memory = strncmp(text, "crash", 5) == 0 ? HOST : MEMORY;
    if (hb_sentence_ahead(l, i, FAR, memory) >= 0 || hb_sentence_behind(l, i, FAR, memory) >= 0)
        return true;
    for (int k = i + 1; k <= i + FAR; k++)
        if (hb_refusal_is_oom(l, k))
            return strncmp(text, "kill", 4) == 0;
    return false;
}

bool hb_kill_is_number(const struct hb_sentence *l, int i)
{
    enum { FAR = 3 };
    static const char *const codes[] = {"exit", "code", "status", "exitcode", "exited", NULL};
    const struct hb_word *word = &l->word[i];
    if (word->kind != HB_WORD_NUMBER)
        return false;
    bool minus = strcmp(word->text, "-9") == 0;
    bool nine = minus || strcmp(word->text, "9") == 0;
    bool told = minus || strcmp(word->text, "137") == 0;
    for (int k = i - 1; k >= 0 && k >= i - FAR && l->word[k].kind != HB_WORD_END; k--)
        if ((nine && hb_sentence_is(l, k, "signal")) || (told && hb_sentence_is_any(l, k, codes)))
            return true;
    return false;
}

/* 'the terminal shows "killed"': the shell's word, quoted */
static bool is_quoted(const struct hb_sentence *l, int i)
{
    if (!hb_sentence_is(l, i, "killed"))
        return false;
    struct hb_span s = l->word[i].span;
    return s.at > l->span.at && s.end < l->span.end && strchr("\"'`", s.at[-1]) &&
           *s.end == s.at[-1];
}

bool hb_kill_is_status(const struct hb_sentence *l, int i)
{
    if (!hb_kill_is_number(l, i) || strcmp(l->word[i].text, "137") != 0)
        return false;
    for (int k = 0; k < l->count; k++)
        if (k != i &&
            ((l->bits[k] & MEMORY && !hb_sentence_is(l, k, "memory")) || hb_kill_is(l, k)))
            return false;
    return true;
}

static bool is_kill(const struct hb_sentence *l, int i)
{
    enum { FAR = 5 };
    const struct hb_word *word = &l->word[i];
    static const char *const states[] = {"signal", "status", NULL};
    if (hb_sentence_is(l, i, "sigkill")) /* "with signal SIGKILL", "a status of 9(SIGKILL)" */
        return hb_sentence_nearest(l, i, FAR, states) >= 0 ||
               hb_sentence_is(l, i + 1, "received") || hb_sentence_has_pair(l, "was", "sent") ||
               hb_sentence_behind(l, i, FAR, ENDS) >= 0 || hb_sentence_ahead(l, i, FAR, ENDS) >= 0;
    bool glued = i + 1 < l->count && l->word[i + 1].kind == HB_WORD_TEXT &&
                 l->word[i + 1].span.at == word->span.end; /* "KilledWorker" */
    if (hb_sentence_is(l, i, "killed") && i > 0 && *word->span.at == 'K' && !glued &&
        !hb_refusal_is_compared(l, i - 1)) /* a shell's word, quoted */
        return true;
    if (is_quoted(l, i) || is_ended(l, i) || is_ended_by_system(l, i) ||
        (hb_sentence_is(l, i, "oomkilled") && !hb_refusal_is_compared(l, i)))
        return true;
    if (hb_sentence_is(l, i, "oom") && hb_sentence_is(l, i + 2, "false")) /* "OOMKilled": false */
        return false;
    if (hb_sentence_is(l, i, "oom") && !hb_refusal_is_compared(l, i))
        return is_oom_kill(l, i);
    return (l->bits[i] & ENDS && hb_sentence_has_word(l, "srun")) || is_ended_of_memory(l, i) ||
           hb_kill_is_number(l, i);
}

bool hb_kill_is(const struct hb_sentence *l, int i)
{
    return is_kill(l, i) && !hb_refusal_is_never(l, i) && !hb_refusal_is_called(l, i) &&
           !hb_refusal_is_none(l, i) && !hb_refusal_is_denied(l, i);
}
