/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#include "options/verb.h"

#include <stddef.h>
#include <string.h>

#define TABLE_ROW(constant, function, name, words, needs_key, takes_one_key, has_no_lease, help) \
    [constant] = {name, words, needs_key, takes_one_key, has_no_lease, help},

const struct verb_row verb_table[VERB_COUNT] = {VERBS(TABLE_ROW)};

enum verb verb_named(const char *word)
{
    size_t i;

    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL && word != NULL && strcmp(verb_table[i].name, word) == 0)
            return (enum verb)i;
    return VERB_RUN;
}
