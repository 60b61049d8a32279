/* SPDX-License-Identifier: MIT */
/*
 * untouchable: a command that becomes root for good, as sudo does, and runs for a while.
 *
 * usage: untouchable FILE
 *
 * The program's file must belong to root, and have the set-user-ID bit. The command writes
 * "running" to standard output, and exits with 7 when FILE exists, or with 3 after LIFE_S seconds.
 */
#include <err.h>
#include <poll.h>
#include <unistd.h>

enum { LIFE_S = 20 };

int main(int argc, char **argv)
{
    if (argc != 2)
        errx(2, "usage: untouchable FILE");
    if (setresuid(0, 0, 0) != 0)
        err(2, "setresuid");
    if (write(STDOUT_FILENO, "running\n", 8) != 8)
        err(2, "write");
    for (int i = 0; i < LIFE_S * 50; i++) {
        if (access(argv[1], F_OK) == 0)
            return 7;
        poll(NULL, 0, 20);
    }
    return 3;
}
