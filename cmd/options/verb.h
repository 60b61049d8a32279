/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#ifndef VERB_H
#define VERB_H

#include <stdbool.h>

enum verb {
    VERB_RUN,
    VERB_ACQUIRE,
    VERB_RENEW,
    VERB_RELEASE,
    VERB_STATUS,
    VERB_LIST,
    VERB_BREAK,
    VERB_DOCTOR
};

#define VERB_COUNT (VERB_DOCTOR + 1)

struct verb_row {
    const char *name;  /* the first word of the command line; NULL: what is done without one */
    const char *words; /* what may follow the options; NULL: nothing */
    bool needs_key;
    const char *help;
    bool only_looks; /* opens no lock of its own */
};

extern const struct verb_row verb_table[VERB_COUNT];

/* verb_named: the verb of that name; VERB_RUN if there is none. */
enum verb verb_named(const char *word);

#endif
