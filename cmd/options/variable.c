/* SPDX-License-Identifier: MIT */
/* variable: the environment variables whose names begin with RLOCK_, in one table. */
#include "options/variable.h"

#include "base/err.h"
#include "options/options.h"
#include "options/suggest.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "RLOCK_"
#define NAME_BYTES 64

const struct variable variable_table[VARIABLE_COUNT] = {
    {"RLOCK_KEY", true},
    {"RLOCK_TOKEN", true},
    {"RLOCK_FENCE", true},
    {"RLOCK_TTL_MS", true},
    {"RLOCK_SLOT", true},
    /* the tokens of all parent locks except that of the nearest one, which is in RLOCK_TOKEN */
    {"RLOCK_PARENT_TOKENS", true},
    {"RLOCK_PARENT_SERVER", true}, /* the servers of the nearest parent lock */
    /* the names of the password variables that a parent rlock has removed */
    {"RLOCK_STRIPPED", false},
    /* rlock sets the next four for the command of --on-event */
    {"RLOCK_EVENT", false},
    {"RLOCK_EVENT_WAITED_MS", false},
    {"RLOCK_EVENT_HOLDER", false},
    {"RLOCK_EVENT_WHY", false},
    {"RLOCK_CONFIG", false},
    {"RLOCK_PASSWORD", false},
    {"RLOCK_SENTINEL_PASSWORD", false},
    {"RLOCK_LOCAL_DIR", false},
    {"RLOCK_HOLD_DIR", false},
};

bool variable_is_named(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool has_prefix(const char *entry)
{
    return strncmp(entry, PREFIX, strlen(PREFIX)) == 0;
}

static const struct variable *find(const char *entry)
{
    size_t i = 0;

    while (i < VARIABLE_COUNT && !variable_is_named(entry, variable_table[i].name))
        i++;
    return i < VARIABLE_COUNT ? &variable_table[i] : NULL;
}

bool variable_is_given(const char *entry)
{
    const struct variable *variable = has_prefix(entry) ? find(entry) : NULL;

    return variable != NULL && variable->is_given;
}

/*
 * Returns the option that belongs to a variable, by the variable's name without RLOCK_. For the
 * messages this includes names of flock(1), and options that the environment can't set.
 */
static const struct option *option_of_variable(const char *variable)
{
    char name[NAME_BYTES];
    size_t i;

    for (i = 0; variable[i] != '\0' && i < sizeof name - 1; i++) {
        name[i] = variable[i] == '_' ? '-' : variable[i];
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] - 'A' + 'a');
    }
    return option_of_name(name, i);
}

/* Write to `nearest` the known variable whose name is most like `variable`; "": none is like it. */
static void find_nearest(const char *variable, char nearest[NAME_BYTES])
{
    struct suggestion suggestion = {.typed = variable + strlen(PREFIX)};
    char names[OPTION_COUNT][NAME_BYTES];
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++) {
        option_variable(&option_table[i], names[i]);
        if (option_table[i].is_everywhere)
            suggest_consider(&suggestion, names[i] + strlen(PREFIX));
    }
    for (i = 0; i < VARIABLE_COUNT; i++)
        suggest_consider(&suggestion, variable_table[i].name + strlen(PREFIX));
    snprintf(nearest, NAME_BYTES, "%s%s", suggestion.best != NULL ? PREFIX : "",
             suggestion.best != NULL ? suggestion.best : "");
}

bool variable_check(const char *entry, struct mistake *mistake)
{
    const struct option *option;
    char name[NAME_BYTES];
    char shown[NAME_BYTES];
    char nearest[NAME_BYTES];

    if (!has_prefix(entry) || find(entry) != NULL ||
        strncmp(entry, "RLOCK_TEST_", strlen("RLOCK_TEST_")) == 0 ||
        entry[strcspn(entry, "=")] == '\0' || entry[strcspn(entry, "=") + 1] == '\0')
        return true;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(entry, "="), entry);
    option = option_of_variable(name + strlen(PREFIX));
    if (option != NULL && option->kind == OPTION_ASK)
        return true; /* scripts that install rlock often set RLOCK_VERSION */
    if (option != NULL)
        option_variable(option, nearest);
    if (option != NULL && option->is_everywhere && variable_is_named(entry, nearest))
        return true;
    err_escape(shown, sizeof shown, name);
    *mistake = (struct mistake){.hint = ""};
    if (option != NULL && !option->is_everywhere) {
        snprintf(mistake->why, sizeof mistake->why,
                 "%s has no effect: --%s can be given on the command line only", shown,
                 option->name);
        return false;
    }
    snprintf(mistake->why, sizeof mistake->why, "%s is set, but rlock knows no such variable",
             shown);
    if (option == NULL)
        find_nearest(name, nearest);
    if (nearest[0] != '\0')
        snprintf(mistake->hint, sizeof mistake->hint, "did you mean %s?", nearest);
    return false;
}
