/* SPDX-License-Identifier: MIT */
/* combination: features that exclude each other, and why; docs.bats compares the manual with it. */
#include "options/combination.h"

#include <string.h>

/* Features, with their names: ROW(constant, name). */
#define FEATURE_NAMES(ROW)                                                         \
    ROW(SEVERAL_KEYS, "several keys")                                              \
    ROW(SEVERAL_SERVERS, "several servers")                                        \
    ROW(SHARED, "--shared")                                                        \
    ROW(SLOTS, "--slots")                                                          \
    ROW(ONCE, "--once")                                                            \
    ROW(TIMESTAMP, "--protocol timestamp")                                         \
    ROW(NESTED, "--nested")                                                        \
    ROW(QUEUE, "--queue") /* a queue that was asked for, not the one by default */ \
    ROW(HISTORY, "--history")                                                      \
    ROW(PAUSE, "--on-lost pause")                                                  \
    ROW(BIND_PID, "--bind-pid")                                                    \
    ROW(ACQUIRE, "acquire")                                                        \
    ROW(HOLD, "hold")                                                              \
    ROW(HOLD_WITHOUT_RENEWALS, "hold without --renew")                             \
    ROW(TTL_GIVEN, "--ttl")                                                        \
    ROW(LOG_GIVEN, "--log")                                                        \
    ROW(VERB_OF_HISTORY, "the verb history")                                       \
    ROW(NO_SCRIPTS, "--scripts no")                                                \
    ROW(LOCAL, "a private server (local:)")

#define PLACE(feature, name) feature##_PLACE,
#define BIT(feature, name) feature = 1 << feature##_PLACE,
#define NAME(feature, name) name,

enum { FEATURE_NAMES(PLACE) FEATURES };
enum feature { FEATURE_NAMES(BIT) };
static const char *const names[FEATURES] = {FEATURE_NAMES(NAME)};

static const struct {
    enum feature feature;
    unsigned excluded;
    const char *why;
    const char *needs; /* the option with which both are possible; NULL: none */
} rows[] = {
    {SLOTS, SEVERAL_KEYS | SEVERAL_SERVERS, "slots are counted for one key, on one server", NULL},
    {ONCE, SEVERAL_KEYS | SHARED | SLOTS, "one exclusive lock is marked as done", NULL},
    {TIMESTAMP, SEVERAL_KEYS | SEVERAL_SERVERS | SHARED | SLOTS | ONCE | QUEUE,
     "the key's value is only a time", NULL},
    {TIMESTAMP, NESTED | ACQUIRE | HOLD, "such a lock has no token", NULL},
    {BIND_PID, PAUSE, "only a command that rlock starts has a control group to be frozen in", NULL},
    {HOLD_WITHOUT_RENEWALS, TTL_GIVEN | LOG_GIVEN,
     "without it the lock lasts as long as --for says, and no process renews it", "--renew"},
    {HOLD_WITHOUT_RENEWALS, LOCAL, "such a server ends with the last process that uses it",
     "--renew"},
    {LOCAL, SEVERAL_SERVERS, "it serves this machine alone", NULL},
    {NO_SCRIPTS,
     SEVERAL_KEYS | SEVERAL_SERVERS | SHARED | SLOTS | ONCE | TIMESTAMP | QUEUE | HISTORY |
         VERB_OF_HISTORY,
     "this needs a script on the server", NULL},
};

#define ROWS (sizeof rows / sizeof rows[0])

static unsigned when(bool is_asked_for, enum feature feature)
{
    return is_asked_for ? feature : 0;
}

static bool is_given(const struct options *options, const char *name)
{
    return options_origin(options, name)->from == FROM_COMMAND_LINE;
}

static unsigned features_of_lock(const struct options *options)
{
    return when(options->mode == RLOCK_SHARED, SHARED) | when(options->mode == RLOCK_SLOTS, SLOTS) |
           when(options->once_ms > 0, ONCE) |
           when(options->protocol != RLOCK_PROTOCOL_TOKEN, TIMESTAMP) |
           when(options->nested, NESTED) | when(options->needs_queue, QUEUE) |
           when(options->on_lost == ON_LOST_PAUSE, PAUSE) | when(options->history > 0, HISTORY);
}

static unsigned features_of_hold(const struct options *options)
{
    return HOLD | when(!options->renews, HOLD_WITHOUT_RENEWALS) |
           when(is_given(options, "ttl"), TTL_GIVEN) | when(is_given(options, "log"), LOG_GIVEN);
}

static bool is_local(const struct options *options)
{
    size_t i = 0;

    while (i < options->n_urls && strcmp(options->urls[i], OPTIONS_LOCAL_URL) != 0)
        i++;
    return i < options->n_urls;
}

static unsigned features_of(const struct options *options)
{
    enum verb verb = options->verb;
    unsigned features = when(options->n_keys > 1 && !verb_table[verb].has_no_lease, SEVERAL_KEYS) |
                        when(options->n_urls > 1, SEVERAL_SERVERS) |
                        when(options->history > 0 && verb == VERB_BREAK, HISTORY) |
                        when(verb == VERB_HISTORY, VERB_OF_HISTORY) |
                        when(options->scripts == RLOCK_SCRIPTS_NO, NO_SCRIPTS) |
                        when(is_local(options), LOCAL);

    if (verb == VERB_RUN || verb == VERB_ACQUIRE || verb == VERB_HOLD)
        features |= features_of_lock(options);
    if (verb == VERB_ACQUIRE)
        features |= ACQUIRE | when(options->bind_pid > 0, BIND_PID);
    return verb == VERB_HOLD ? features | features_of_hold(options) : features;
}

static const char *name_of(unsigned features)
{
    size_t i = 0;

    while ((features >> i & 1) == 0)
        i++;
    return names[i];
}

bool combination_check(const struct options *options, char *why, size_t why_bytes)
{
    unsigned features = features_of(options);
    size_t i;

    for (i = 0; i < ROWS; i++)
        if ((features & rows[i].feature) != 0 && (features & rows[i].excluded) != 0) {
            snprintf(why, why_bytes, "%s: %s %s, as %s", name_of(features & rows[i].excluded),
                     rows[i].needs != NULL ? "needs" : "not possible with",
                     rows[i].needs != NULL ? rows[i].needs : name_of(rows[i].feature), rows[i].why);
            return false;
        }
    return true;
}

void combination_dump(FILE *out)
{
    size_t row;
    size_t i;

    for (row = 0; row < ROWS; row++) {
        const char *between = "";

        fprintf(out, "%s\t", name_of(rows[row].feature));
        for (i = 0; i < FEATURES; i++)
            if ((rows[row].excluded >> i & 1) != 0) {
                fprintf(out, "%s%s", between, names[i]);
                between = ", ";
            }
        fprintf(out, "\t%s\n", rows[row].why);
    }
}
