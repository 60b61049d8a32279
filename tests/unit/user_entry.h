/* SPDX-License-Identifier: MIT */
/* user_entry: lets a test choose what the user database says of this process's user. */
#ifndef USER_ENTRY_H
#define USER_ENTRY_H

#include "process/user.h"

#include <stddef.h>

static struct passwd entry;        /* the user's entry in the user database */
static const struct passwd *found; /* `entry`, or NULL: the user has none */

const struct passwd *__wrap_user_entry(void);

/* The linker replaces user_entry() by this function. */
const struct passwd *__wrap_user_entry(void)
{
    return found;
}

#endif
