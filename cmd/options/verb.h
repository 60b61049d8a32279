/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#ifndef VERB_H
#define VERB_H

#include <stdbool.h>

/*
 * All verbs, in the order of --help. A new verb is a row here and a file of its name in cmd/verbs/.
 *
 * ROW(constant, function, name, words, needs_key, only_looks, help): the function is the one that
 * carries the verb out, declared in cmd.h; the others are the fields of struct verb_row.
 */
#define VERBS(ROW)                                                                              \
    ROW(VERB_RUN, cmd_run, NULL, "COMMAND [ARG...]", true, false,                               \
        "run a command while holding a lock in Redis")                                          \
    ROW(VERB_ACQUIRE, cmd_acquire, "acquire", NULL, true, false,                                \
        "take a lock without a command, and print its token")                                   \
    ROW(VERB_RENEW, cmd_renew, "renew", NULL, true, false, "renew a lock by its token")         \
    ROW(VERB_RELEASE, cmd_release, "release", NULL, true, false, "release a lock by its token") \
    ROW(VERB_STATUS, cmd_status, "status", NULL, false, true,                                   \
        "show who holds a lock, and who waits for it")                                          \
    ROW(VERB_LIST, cmd_list, "list", "[PATTERN]", false, true,                                  \
        "list the locks of the server, one per line")                                           \
    ROW(VERB_BREAK, cmd_break, "break", NULL, true, true,                                       \
        "take a lock away from whoever holds it")                                               \
    ROW(VERB_DOCTOR, cmd_doctor, "doctor", NULL, false, true,                                   \
        "check the server: what makes locks unsafe, and what to change")

#define VERB_CONSTANT(constant, ...) constant,
enum verb { VERBS(VERB_CONSTANT) VERB_COUNT };
#undef VERB_CONSTANT

struct verb_row {
    const char *name;  /* the first word of the command line; NULL: what is done without one */
    const char *words; /* what may follow the options, for --help; NULL: nothing may */
    bool needs_key;    /* -k KEY must be given */
    bool only_looks;   /* it needs no token: it shows or breaks the locks of others */
    const char *help;
};

extern const struct verb_row verb_table[VERB_COUNT];

/* verb_named: the verb of that name; VERB_RUN if there is none. */
enum verb verb_named(const char *word);

#endif
