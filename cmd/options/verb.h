/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#ifndef VERB_H
#define VERB_H

#include <stdbool.h>

/*
 * All verbs, in the order of --help. A new verb needs a row here, and a file of its name in
 * cmd/verbs/.
 *
 * ROW(constant, function, name, words, needs_key, takes_one_key, has_no_lease, help): to carry out
 * the verb, main() calls `function`, which cmd.h declares. The other columns are the fields of
 * struct verb_row.
 */
#define VERBS(ROW)                                                                             \
    ROW(VERB_RUN, cmd_run, NULL, "COMMAND [ARG...]", true, false, false,                       \
        "run a command while holding a lock in Redis")                                         \
    ROW(VERB_ACQUIRE, cmd_acquire, "acquire", NULL, true, false, false,                        \
        "take a lock without a command, and print its token")                                  \
    ROW(VERB_RENEW, cmd_renew, "renew", NULL, true, false, false, "renew a lock by its token") \
    ROW(VERB_RELEASE, cmd_release, "release", NULL, true, false, false,                        \
        "release a lock by its token")                                                         \
    ROW(VERB_STATUS, cmd_status, "status", NULL, false, false, true,                           \
        "show who holds a lock, and who waits for it")                                         \
    ROW(VERB_LIST, cmd_list, "list", "[PATTERN]", false, false, true,                          \
        "list the locks of the server, one per line")                                          \
    ROW(VERB_BREAK, cmd_break, "break", NULL, true, true, true,                                \
        "take a lock away from whoever holds it")                                              \
    ROW(VERB_DOCTOR, cmd_doctor, "doctor", NULL, false, true, true,                            \
        "check the server: what makes locks unsafe, and what to change")

#define VERB_CONSTANT(constant, ...) constant,
enum verb { VERBS(VERB_CONSTANT) VERB_COUNT };
#undef VERB_CONSTANT

struct verb_row {
    /* the first word of the command line; NULL: the verb for a command line without such a word */
    const char *name;
    const char *words; /* arguments that may follow the options, as --help shows them; NULL: none */
    bool needs_key;    /* the user must give -k KEY */
    bool takes_one_key; /* rlock refuses a second -k KEY */
    bool has_no_lease;  /* the verb neither takes a lock nor uses a token */
    const char *help;
};

extern const struct verb_row verb_table[VERB_COUNT];

/* verb_named: the verb of that name; VERB_RUN if no verb has the name, or `word` is NULL. */
enum verb verb_named(const char *word);

#endif
