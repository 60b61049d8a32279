/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_user: user_entry() finds the user's entry in /etc/passwd, or asks getpwuid(3).
 *
 * The linker replaces the functions by which user_entry() opens the file, asks who the user is, and
 * asks the name service switch, by those of this file.
 */
#include "process/user.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define UID 1000

static const char *content; /* what /etc/passwd has; NULL: it can't be opened */
static struct passwd of_switch = {.pw_name = (char *)(uintptr_t) "switch",
                                  .pw_uid = UID,
                                  .pw_dir = (char *)(uintptr_t) "/switch"};

FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
uid_t __wrap_geteuid(void);
struct passwd *__wrap_getpwuid(uid_t uid);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    if (strcmp(path, "/etc/passwd") != 0)
        abort();
    return content == NULL ? NULL : fmemopen((char *)(uintptr_t)content, strlen(content), mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return __wrap_fopen64(path, mode);
}

uid_t __wrap_geteuid(void)
{
    return UID;
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
    return uid == UID ? &of_switch : NULL;
}

/* Writes "NAME UID HOME" of the entry. In a child, as user_entry() keeps the first result. */
static void entry_of(const char *file, char text[200])
{
    int pair[2];
    ssize_t n;
    pid_t pid;

    if (pipe(pair) != 0 || (pid = fork()) < 0)
        abort();
    if (pid == 0) {
        const struct passwd *entry;

        content = file;
        entry = user_entry();
        dprintf(pair[1], "%s %d %s%s", entry->pw_name, (int)entry->pw_uid, entry->pw_dir,
                user_entry() == entry ? "" : ", and another one later");
        _exit(0);
    }
    close(pair[1]);
    n = read(pair[0], text, 199);
    text[n > 0 ? n : 0] = '\0';
    close(pair[0]);
    waitpid(pid, NULL, 0);
}

static const struct {
    const char *content;
    const char *wanted;
    const char *name;
} cases[] = {
    {"root:x:0:0:root:/root:/bin/bash\nann:x:1000:100:Ann,,,:/home/ann:/bin/sh\n",
     "ann 1000 /home/ann", "an entry that is not the first one"},
    {"ann:x:1000:1::/a:/bin/sh\nbob:x:1000:1::/b:/bin/sh\n", "ann 1000 /a",
     "of two entries the first one counts"},
    {"+ann:x:1000:1::/a:/bin/sh\n-bob:x:1000:1::/b:/bin/sh\ncid:x:1000:1::/c:/bin/sh\n",
     "cid 1000 /c", "a line that begins with + or - is meant for NIS"},
    {"ann:x:10000:1::/a:/bin/sh\nbob:x:100:1::/b:/bin/sh\n", "switch 1000 /switch",
     "the name service switch knows users that the file lacks"},
    {NULL, "switch 1000 /switch", "no file"},
};

int main(void)
{
    char text[200];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        entry_of(cases[i].content, text);
        is_str(text, cases[i].wanted, cases[i].name);
    }
    return done_testing();
}
