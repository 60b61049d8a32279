/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#ifndef VERB_H
#define VERB_H

#include <stdbool.h>

/* What may follow a verb on the command line, beside options. */
enum verb_words {
    VERB_WORDS_NONE,
    VERB_WORDS_COMMAND,   /* the command to run; rlock's options end where it begins */
    VERB_WORDS_KEY,       /* one key, which may be given by -k instead */
    VERB_WORDS_MAYBE_KEY, /* one key, or none */
    VERB_WORDS_PATTERN,   /* one pattern for keys, or none */
    VERB_WORDS_VERB       /* the name of one verb, or none */
};

/*
 * All verbs, in the order of --help. ROW(constant, function, name, words, needs_key, takes_one_key,
 * has_no_lease, is_offline, help): main() calls `function`, which cmd.h declares; the other columns
 * are the fields of struct verb_row.
 */
#define VERBS(ROW)                                                                           \
    ROW(VERB_RUN, cmd_run, NULL, VERB_WORDS_COMMAND, true, false, false, false,              \
        "run a command while holding a lock in Redis")                                       \
    ROW(VERB_ACQUIRE, cmd_acquire, "acquire", VERB_WORDS_KEY, true, false, false, false,     \
        "take a lock without a command, and print its token")                                \
    ROW(VERB_HOLD, cmd_hold, "hold", VERB_WORDS_KEY, true, false, false, false,              \
        "hold a lock by hand for some time, as for a deploy freeze")                         \
    ROW(VERB_RENEW, cmd_renew, "renew", VERB_WORDS_KEY, true, false, false, false,           \
        "renew a lock by its token")                                                         \
    ROW(VERB_RELEASE, cmd_release, "release", VERB_WORDS_KEY, true, false, false, false,     \
        "release a lock by its token")                                                       \
    ROW(VERB_STATUS, cmd_status, "status", VERB_WORDS_MAYBE_KEY, false, false, true, false,  \
        "show who holds a lock, and who waits for it")                                       \
    ROW(VERB_LIST, cmd_list, "list", VERB_WORDS_PATTERN, false, false, true, false,          \
        "list the locks of the server, one per line")                                        \
    ROW(VERB_HISTORY, cmd_history, "history", VERB_WORDS_PATTERN, false, false, true, false, \
        "show who held a lock, and how each hold ended (--history)")                         \
    ROW(VERB_BREAK, cmd_break, "break", VERB_WORDS_KEY, true, true, true, false,             \
        "take a lock away from whoever holds it")                                            \
    ROW(VERB_DOCTOR, cmd_doctor, "doctor", VERB_WORDS_NONE, false, true, true, false,        \
        "check the server: what makes locks unsafe, and what to change")                     \
    ROW(VERB_HELP, cmd_help, "help", VERB_WORDS_VERB, false, false, true, true,              \
        "show the help of rlock, or of one verb")                                            \
    ROW(VERB_VERSION, cmd_version, "version", VERB_WORDS_NONE, false, false, true, true,     \
        "show the version of rlock")

#define VERB_CONSTANT(constant, ...) constant,
enum verb { VERBS(VERB_CONSTANT) VERB_COUNT };
#undef VERB_CONSTANT

struct verb_row {
    /* the verb on the command line; NULL: VERB_RUN, whose command line has no verb */
    const char *name;
    enum verb_words words;
    bool needs_key;     /* the user must give a key */
    bool takes_one_key; /* rlock refuses a second key */
    bool has_no_lease;  /* the verb neither acquires a lock nor uses a token */
    bool is_offline;    /* the verb needs no server and reads no settings */
    const char *help;
};

extern const struct verb_row verb_table[VERB_COUNT];

/* verb_named: the verb of that name; VERB_RUN if no verb has the name, or `word` is NULL. */
enum verb verb_named(const char *word);

/* verb_words: returns the verb's words as --help shows them, such as "[PATTERN]"; NULL: none. */
const char *verb_words(enum verb verb);

/*
 * verb_meant: the name of the verb that the user probably meant by a word that is no verb, such as
 * "release" by "relase" or "unlock". NULL: none.
 */
const char *verb_meant(const char *word);

#endif
