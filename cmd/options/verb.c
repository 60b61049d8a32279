/* SPDX-License-Identifier: MIT */
/* verb: what rlock can be asked to do, in one table. */
#include "options/verb.h"

#include "options/suggest.h"

#include <stddef.h>
#include <string.h>

#define TABLE_ROW(constant, function, name, words, needs_key, takes_one_key, has_no_lease, \
                  is_offline, help)                                                        \
    [constant] = {name, words, needs_key, takes_one_key, has_no_lease, is_offline, help},

const struct verb_row verb_table[VERB_COUNT] = {VERBS(TABLE_ROW)};

enum verb verb_named(const char *word)
{
    size_t i;

    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL && word != NULL && strcmp(verb_table[i].name, word) == 0)
            return (enum verb)i;
    return VERB_RUN;
}

const char *verb_words(enum verb verb)
{
    static const char *const words[] = {
        [VERB_WORDS_NONE] = NULL,           [VERB_WORDS_COMMAND] = "COMMAND [ARG...]",
        [VERB_WORDS_KEY] = "KEY",           [VERB_WORDS_MAYBE_KEY] = "[KEY]",
        [VERB_WORDS_PATTERN] = "[PATTERN]", [VERB_WORDS_VERB] = "[VERB]",
    };

    return words[verb_table[verb].words];
}

const char *verb_meant(const char *word)
{
    /* the names that other programs have for these verbs */
    static const struct {
        const char *word;
        enum verb verb;
    } synonyms[] = {
        {"lock", VERB_ACQUIRE}, {"unlock", VERB_RELEASE}, {"free", VERB_RELEASE},
        {"extend", VERB_RENEW}, {"refresh", VERB_RENEW},  {"show", VERB_STATUS},
        {"ls", VERB_LIST},      {"check", VERB_DOCTOR},
    };
    struct suggestion suggestion = {.typed = word};
    size_t i;

    for (i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
        if (strcmp(word, synonyms[i].word) == 0)
            return verb_table[synonyms[i].verb].name;
    for (i = 0; i < VERB_COUNT; i++)
        if (verb_table[i].name != NULL)
            suggest_consider(&suggestion, verb_table[i].name);
    return suggestion.best;
}
