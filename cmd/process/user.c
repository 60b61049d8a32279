/* SPDX-License-Identifier: MIT */
/* user: the entry of the effective user in the user database. */
#include "process/user.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Looks for the user in /etc/passwd, but not in lines that begin with + or -: they are for NIS. */
static const struct passwd *find(uid_t uid)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry = NULL;

    if (file == NULL)
        return NULL;
    do
        entry = fgetpwent(file);
    while (entry != NULL && (entry->pw_uid != uid || strchr("+-", *entry->pw_name) != NULL));
    fclose(file);
    return entry;
}

const struct passwd *user_entry(void)
{
    static const struct passwd *entry;
    static bool was_read;

    if (was_read)
        return entry;
    was_read = true;
    entry = find(geteuid());
#ifndef RLOCK_STATIC /* in the static program getpwuid(3) would load glibc's plug-ins */
    if (entry == NULL)
        entry = getpwuid(geteuid());
#endif
    return entry;
}
