/* SPDX-License-Identifier: MIT */
/* user: the entry of the effective user in the user database. */
#ifndef USER_H
#define USER_H

#include <pwd.h>

/*
 * user_entry: the entry of the effective user, in static memory; NULL: the user has none. The first
 * call reads the user database, later ones return the same entry.
 */
const struct passwd *user_entry(void);

#endif
