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
 * variable_check: returns false if the NAME of the entry NAME=VALUE begins with RLOCK_ and has no
 * effect: rlock doesn't know it, or it belongs to an option that can't be set in the environment.
 * `mistake` then has the name, and the name that the user probably meant. An entry with an empty
 * VALUE is always right, as is a NAME that begins with RLOCK_TEST_: rlock's tests use such names.
 */
bool variable_check(const char *entry, struct mistake *mistake);

#endif
