/* SPDX-License-Identifier: MIT */
/*
 * vforker: waits in vfork(2) until its child has ended, and writes down that it runs again.
 *
 *     vforker FIFO FILE
 *
 * The child appends "waits" to FILE, and ends when another process opens FIFO for writing. Then the
 * parent appends "runs" to FILE. Until the child has ended, the parent sleeps in the kernel: it
 * stops neither for a signal nor for ptrace(2), and only KILL ends it.
 */
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 120 };

int main(int argc, char **argv)
{
    int file;

    if (argc != 3)
        errx(2, "usage: vforker FIFO FILE");
    file = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        err(2, "%s", argv[2]);
    if (vfork() == 0) {
        alarm(LIMIT_SECONDS); /* ends this process if the test leaves it behind */
        _exit(write(file, "waits\n", 6) == 6 && open(argv[1], O_RDONLY) >= 0 ? 0 : 1);
    }
    return write(file, "runs\n", 5) == 5 ? 0 : 1;
}
