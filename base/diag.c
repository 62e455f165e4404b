/* Messages in the one form that every command prints: see diag.h. */
#include "base/diag.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"

void hb_diag_init(struct hb_diag *diag, struct hb_arena *arena)
{
    diag->arena = arena;
    diag->count = 0;
    diag->errors = 0;
    diag->quiet = false;
}

__attribute__((format(printf, 3, 0))) static void
add_entry(struct hb_diag *diag, struct hb_diag_entry entry, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (len < 0)
        HB_BUG("bad format '%s'", fmt);
    char *text = hb_arena_alloc(diag->arena, (size_t)len + 1, 1);
    vsnprintf(text, (size_t)len + 1, fmt, ap);
    entry.text = text;
    diag->entries[diag->count++] = entry;
}

#undef hb_error
bool hb_error(struct hb_diag *diag, struct hb_loc loc, const char *fmt, ...)
{
    diag->errors++;
    if (diag->quiet || diag->count == HB_DIAG_MAX_ERRORS)
        return false;
    va_list ap;
    va_start(ap, fmt);
    add_entry(diag, (struct hb_diag_entry){.loc = loc}, fmt, ap);
    va_end(ap);
    return false;
}

void hb_warn(struct hb_diag *diag, struct hb_loc loc, const char *fmt, ...)
{
    if (diag->quiet || diag->count == HB_DIAG_MAX_ERRORS)
        return;
    va_list ap;
    va_start(ap, fmt);
    add_entry(diag, (struct hb_diag_entry){.loc = loc, .warning = true}, fmt, ap);
    va_end(ap);
}

static void print_loc(struct hb_loc loc, FILE *err)
{
    const char *file = loc.file ? loc.file : "hbmsim";
    hb_utf8_show(err, file, strlen(file), false);
    if (loc.line > 0)
        fprintf(err, ":%d", loc.line);
    if (loc.line > 0 && loc.column > 0)
        fprintf(err, ":%d", loc.column);
}

void hb_diag_print(struct hb_diag *diag, FILE *err)
{
    int shown = 0;
    for (int i = 0; i < diag->count; i++) {
        const struct hb_diag_entry *e = &diag->entries[i];
        print_loc(e->loc, err);
        fprintf(err, ": %s: ", e->warning ? "warning" : "error");
        hb_utf8_show(err, e->text, strlen(e->text), false);
        fputc('\n', err);
        shown += !e->warning;
    }
    if (diag->errors > shown)
        fprintf(err, "hbmsim: %d further errors not shown\n", diag->errors - shown);
    diag->count = 0;
    diag->errors = 0;
}
