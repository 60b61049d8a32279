/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#include "options/verb.h"

#include <stddef.h>
#include <string.h>

const struct verb_row verb_table[VERB_COUNT] = {
    [VERB_RUN] = {NULL, "COMMAND [ARG...]", true, "run a command while holding a lock in Redis",
                  false},
    [VERB_ACQUIRE] = {"acquire", NULL, true, "take a lock without a command, and print its token",
                      false},
    [VERB_RENEW] = {"renew", NULL, true, "renew a lock by its token", false},
    [VERB_RELEASE] = {"release", NULL, true, "give a lock back by its token", false},
    [VERB_STATUS] = {"status", NULL, false, "tell who holds a lock, and who waits for it", true},
    [VERB_LIST] = {"list", "[PATTERN]", false, "tell all locks of the server, a line each", true},
    [VERB_BREAK] = {"break", NULL, true, "take a lock away from whoever holds it", true},
    [VERB_DOCTOR] = {"doctor", NULL, false, "tell what makes locks unsafe, and what to change",
                     true},
};

enum verb verb_named(const char *word)
{
    size_t i;

    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL && word != NULL && strcmp(verb_table[i].name, word) == 0)
            return (enum verb)i;
    return VERB_RUN;
}
