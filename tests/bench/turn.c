/* SPDX-License-Identifier: MIT */
/*
 * turn: the command that waiters run under the lock; writes to a log when it ran.
 *
 *     turn LOG NUMBER GATE|MS
 *
 * LOG gets a struct turn. Between its times turn sleeps for MS, or until another process opens the
 * named pipe GATE for writing. -nostartfiles, system calls only: libc's start would take as long as
 * the rest of a hand-over.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#define ENTRY __attribute__((force_align_arg_pointer))
#else
#define ENTRY
#endif

/* Times in ns of CLOCK_MONOTONIC. */
struct turn {
    long long number;
    long long start;
    long long end;
};

static long long now_ns(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void leave(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

/* Reads the command line from /proc into `words`; ends the program if it has not n words. */
static void words_read(char *text, size_t size, const char **words, int n)
{
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
    long bytes = syscall(SYS_read, fd, text, size);
    int found = 0;

    for (long i = 0; i < bytes && found < n; i++)
        if (i == 0 || text[i - 1] == '\0')
            words[found++] = text + i;
    if (found != n || text[bytes - 1] != '\0')
        leave(64);
}

static long number(const char *text)
{
    long n = 0;

    while (*text)
        n = n * 10 + *text++ - '0';
    return n;
}

static void pass_time(const char *gate_or_ms)
{
    static const struct itimerval limit = {.it_value = {300, 0}};
    struct timespec pause;

    if (*gate_or_ms == '/') {
        syscall(SYS_setitimer, ITIMER_REAL, &limit, NULL);
        syscall(SYS_openat, AT_FDCWD, gate_or_ms, O_RDONLY);
        return;
    }
    pause.tv_sec = number(gate_or_ms) / 1000;
    pause.tv_nsec = number(gate_or_ms) % 1000 * 1000000;
    syscall(SYS_nanosleep, &pause, NULL);
}

ENTRY void _start(void);

ENTRY void _start(void)
{
    struct turn turn = {.start = now_ns()};
    const char *words[4];
    char text[1024];

    words_read(text, sizeof text, words, 4);
    pass_time(words[3]);
    turn.number = number(words[2]);
    long log = syscall(SYS_openat, AT_FDCWD, words[1], O_WRONLY | O_APPEND);
    turn.end = now_ns();
    leave(syscall(SYS_write, log, &turn, sizeof turn) == sizeof turn ? 0 : 71);
}
