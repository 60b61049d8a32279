/* SPDX-License-Identifier: MIT */
/*
 * user: the entry of the effective user in the user database.
 *
 * rlock reads /etc/passwd itself first. getpwuid(3), which asks the name service switch, takes 0.1
 * ms: as long as everything else that rlock does before it asks for the lock.
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
#ifndef RLOCK_STATIC /* in the static program getpwuid(3) would load glibc's plug-ins */
    if (entry == NULL)
        entry = getpwuid(uid);
#endif
    return entry;
}
