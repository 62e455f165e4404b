/* answer COMMAND DATA FILE [OPTION...]: what the library's function of that name gives, its text
 * on standard output and its messages on standard error. */
#include <hbmsim.h>
#include <stdio.h>
#include <string.h>

static char text[16 << 20];

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*call)(const struct hbmsim_input *, const char *const *, struct hbmsim_result **);
    } calls[] = {{"simulate", hbmsim_simulate}, {"plan", hbmsim_plan},     {"sweep", hbmsim_sweep},
                 {"advise", hbmsim_advise},     {"import", hbmsim_import}, {"plot", hbmsim_plot}};
    FILE *file = argc > 3 ? fopen(argv[3], "r") : NULL;
    if (!file)
        return 9;
    struct hbmsim_input in = {.name = argv[3],
                              .text = text,
                              .text_bytes = fread(text, 1, sizeof text, file),
                              .data_dir = argv[2]};
    fclose(file);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct hbmsim_result *r;
        if (strcmp(calls[i].name, argv[1]) != 0)
            continue;
        int status = calls[i].call(&in, (const char *const *)(argv + 4), &r);
        size_t bytes;
        const char *answer = hbmsim_text(r, &bytes);
        fwrite(answer, 1, bytes, stdout);
        fputs(hbmsim_messages(r), stderr);
        hbmsim_free(r);
        return status;
    }
    return 9;
}
