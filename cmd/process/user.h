/* SPDX-License-Identifier: MIT */
/* user: who runs rlock, as the user database has it. */
#ifndef USER_H
#define USER_H

#include <pwd.h>

/* user_entry: of the effective user, read once; NULL: there is none. */
const struct passwd *user_entry(void);

#endif
