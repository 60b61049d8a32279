/* SPDX-License-Identifier: MIT */
/*
 * user: the entry of the effective user in the user database.
 *
 * /etc/passwd is read first, as getpwuid(3), by way of the name service switch, takes 0.1 ms: as
 * long as everything else that rlock does before it asks for the lock.
 */
#include "process/user.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

const struct passwd *user_entry(void)
{
    static const struct passwd *entry;
    static bool was_read;
    uid_t uid = geteuid();
    FILE *file;

    if (was_read)
        return entry;
    was_read = true;
    file = fopen("/etc/passwd", "re");
    while (file != NULL && (entry = fgetpwent(file)) != NULL && entry->pw_uid != uid)
        continue;
    if (file != NULL)
        fclose(file);
#ifndef RLOCK_STATIC /* there, the name service switch would have to load plug-ins of glibc */
    if (entry == NULL)
        entry = getpwuid(uid);
#endif
    return entry;
}
