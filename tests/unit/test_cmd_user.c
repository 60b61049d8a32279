/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_user: user_entry() finds the user's entry in /etc/passwd, or asks getpwuid(3).
 *
 * The linker replaces the functions by which user_entry() opens the file, asks who the user is, and
 * asks the name service switch, by those of this file.
 */
#include "process/user.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define UID 1000
#define LONG_GECOS 5000 /* more bytes than user.c has room for in a line */

static int reads_left = -1; /* after so many reads each one fails; -1: none fails */
static const char *file;    /* what /etc/passwd has; NULL: it can't be opened */
static struct passwd of_switch = {.pw_name = (char *)(uintptr_t) "switch",
                                  .pw_uid = UID,
                                  .pw_dir = (char *)(uintptr_t) "/switch"};

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
uid_t __wrap_geteuid(void);
struct passwd *__wrap_getpwuid(uid_t uid);
ssize_t __real_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n);

ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
    if (reads_left == 0) {
        errno = EIO;
        return -1;
    }
    reads_left -= reads_left > 0;
    return __real_read(fd, bytes, n);
}

int __wrap_open64(const char *path, int flags, ...)
{
    int fd;

    (void)flags;
    if (strcmp(path, "/etc/passwd") != 0)
        abort();
    if (file == NULL)
        return -1;
    fd = memfd_create("passwd", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, strlen(file)) != (ssize_t)strlen(file) ||
        lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

int __wrap_open(const char *path, int flags, ...)
{
    return __wrap_open64(path, flags);
}

uid_t __wrap_geteuid(void)
{
    return UID;
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
    return uid == UID ? &of_switch : NULL;
}

/*
 * Writes "NAME UID HOME" of the entry; n_reads: see reads_left. In a child, as user_entry() keeps
 * the first result.
 */
static void entry_of(const char *content, int n_reads, char text[200])
{
    int pair[2];
    ssize_t n;
    pid_t pid;

    if (pipe(pair) != 0 || (pid = fork()) < 0)
        abort();
    if (pid == 0) {
        const struct passwd *entry;

        file = content;
        reads_left = n_reads;
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
    {"ann:x:1000:100::/home/ann:\n", "ann 1000 /home/ann", "fields may be empty"},
    {"ann:x:1000:100::/home/ann:/bin/sh", "ann 1000 /home/ann", "a last line without a newline"},
    {"ann:x:1000:1::/a:/bin/sh\nbob:x:1000:1::/b:/bin/sh\n", "ann 1000 /a",
     "of two entries the first one counts"},
    {"ann:x:1000:100::/home/ann\nbob:x:1000:1::/b:/bin/sh\n", "ann 1000 /home/ann",
     "as in fgetpwent(3), the shell may be missing"},
    {"ann:x:1000:100\nbob:x:1000:1::/b:/bin/sh\n", "ann 1000 ", "and the home"},
    {"ann:x:1000:100::/a:/bin/sh:x\nbob:x:1000:1::/b:/bin/sh\n", "ann 1000 /a",
     "and the shell may have colons"},
    {"\nann:x:1000\nbob:x:1000:\ncid:x:1000:1a::/c:/bin/sh\ndan:x:1000:1::/d:/bin/sh\n",
     "dan 1000 /d", "a line without the group's number is no entry"},
    {"+ann:x:1000:1::/a:/bin/sh\n-bob:x:1000:1::/b:/bin/sh\ncid:x:1000:1::/c:/bin/sh\n",
     "cid 1000 /c", "nor is a line that begins with + or -, which is meant for NIS"},
    {"ann:x:1000a:1::/a:/bin/sh\nbob:x::1::/b:/bin/sh\n:x:1000:1::/c:/bin/sh\n",
     "switch 1000 /switch", "nor is a line without the user's number or name"},
    {"ann:x:10000:1::/a:/bin/sh\nbob:x:100:1::/b:/bin/sh\ncid:x:4294968296:1::/c:/bin/sh\n",
     "switch 1000 /switch", "the name service switch knows users that the file lacks"},
    {"#gone:x:1000:1::/a:/bin/sh\n  #old:x:1000:1::/b:/bin/sh\n \tann:x:1000:1::/c:/bin/sh\n",
     "ann 1000 /c", "a comment is no entry, and blanks are no part of the name"},
    {"", "switch 1000 /switch", "an empty file"},
    {NULL, "switch 1000 /switch", "no file"},
};

static void test_long_lines(void)
{
    static char content[3 * LONG_GECOS];
    char text[200];

    snprintf(content, sizeof content,
             "ann:x:1000:1:%0*d:/a:/bin/sh\nbob:x:1:1::/b:/bin/sh\ncid:x:1000:1:%0*d:/c:/bin/sh\n",
             LONG_GECOS, 0, LONG_GECOS / 2, 0);
    entry_of(content, -1, text);
    is_str(text, "cid 1000 /c", "a line that is too long is skipped");
    entry_of(content, 1, text);
    is_str(text, "switch 1000 /switch", "a read fails within a line");
}

int main(void)
{
    char text[200];
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        entry_of(cases[i].content, -1, text);
        is_str(text, cases[i].wanted, cases[i].name);
    }
    RUN(test_long_lines());
    return done_testing();
}
