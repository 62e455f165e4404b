/* The list of commands, in the order of `hbmsim help`: what one does first comes first.
 * Order: plan simulate verify sweep compare advise plot serve report validate record calibrate hlo
 * explain init import devices models help. */
#ifndef HB_CLI_COMMANDS_H
#define HB_CLI_COMMANDS_H

#define HB_COMMANDS(X)                                                                             \
    X(plan)                                                                                        \
    X(simulate)                                                                                    \
    X(verify)                                                                                      \
    X(sweep)                                                                                       \
    X(compare)                                                                                     \
    X(advise)                                                                                      \
    X(plot)                                                                                        \
    X(serve)                                                                                       \
    X(report)                                                                                      \
    X(validate)                                                                                    \
    X(record)                                                                                      \
    X(calibrate)                                                                                   \
    X(hlo)                                                                                         \
    X(explain)                                                                                     \
    X(init)                                                                                        \
    X(import)                                                                                      \
    X(devices)                                                                                     \
    X(models)                                                                                      \
    X(help)

#endif
