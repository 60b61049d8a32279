/* SPDX-License-Identifier: MIT */
/* user: the entry of the effective user in the user database. */
#ifndef USER_H
#define USER_H

#include <pwd.h>

/* user_entry: read at the first call, static; NULL: there is no entry. */
const struct passwd *user_entry(void);

#endif
