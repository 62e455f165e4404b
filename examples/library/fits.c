/* Will it fit, and if not, what is the cheapest that does? A configuration is read from a file (or
 * standard input), simulated, and planned where it does not fit.
 *
 *     cc fits.c $(pkg-config --cflags --libs hbmsim) -o fits && ./fits model.yaml */
#include <hbmsim.h>
#include <stdio.h>
#include <string.h>

static const double gib = 1073741824.0;

static size_t read_all(const char *path, char *text, size_t room)
{
    FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
    size_t len = file ? fread(text, 1, room, file) : 0;
    if (file && file != stdin)
        fclose(file);
    return len;
}

static void tell(const char *what, int status, const struct hbmsim_result *r)
{
    fputs(hbmsim_messages(r), stderr);
    if (status <= HBMSIM_NO)
        printf("%s: %s, %.2f GiB, %.3f s a step\n", what, hbmsim_verdict(r),
               (double)hbmsim_peak_bytes(r) / gib, hbmsim_step_seconds(r));
}

int main(int argc, char **argv)
{
    static char text[1 << 20];
    static const char *const quick[] = {"--seconds=5", NULL};
    struct hbmsim_result *r;
    const char *path = argc > 1 ? argv[1] : "-";
    struct hbmsim_input in = {
        .name = path, .text = text, .text_bytes = read_all(path, text, sizeof text)};
    if (argc > 2)
        in.data_dir = argv[2];
    int status = hbmsim_simulate(&in, NULL, &r);
    tell("as it is", status, r);
    hbmsim_free(r);
    if (status != HBMSIM_NO)
        return status;
    status = hbmsim_plan(&in, quick, &r);
    tell("planned", status, r);
    hbmsim_free(r);
    return status;
}
