/* The files of the page that `hbmsim serve` shows: those of cli/page, made into C by cli/page.sh
 * when the program is built. */
#ifndef HB_CLI_SERVE_PAGE_H
#define HB_CLI_SERVE_PAGE_H

struct hb_page_file {
    const char *name;         /* "page.js"; null: the end of the list */
    const char *type;         /* as Content-Type says it */
    const char *const *lines; /* ended by null */
};

extern const struct hb_page_file hb_page_files[];

#endif
