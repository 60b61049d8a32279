/* SPDX-License-Identifier: MIT */
/* variable: the environment variables whose names begin with RLOCK_, in one table. */
#ifndef VARIABLE_H
#define VARIABLE_H

#include "options/mistake.h"

#include <stdbool.h>

/* A variable that belongs to no option. For the variables of options see option_variable(). */
struct variable {
    const char *name;
    /* rlock gives the command its own value of the variable, not the inherited one */
    bool is_given;
};

#define VARIABLE_COUNT 17

extern const struct variable variable_table[VARIABLE_COUNT];

/* variable_is_named: is the entry of an environment "NAME=...", with this name? */
bool variable_is_named(const char *entry, const char *name);

/* variable_is_given: true if rlock itself sets the variable of this entry NAME=VALUE (is_given). */
bool variable_is_given(const char *entry);

/*
 * variable_check: returns false if the entry NAME=VALUE of an environment looks like a mistake:
 * NAME begins with RLOCK_, but rlock doesn't read this variable. `mistake` has the message. True
 * for an empty VALUE, for RLOCK_HELP and RLOCK_VERSION, and for RLOCK_TEST_..., as tests use.
 */
bool variable_check(const char *entry, struct mistake *mistake);

#endif
