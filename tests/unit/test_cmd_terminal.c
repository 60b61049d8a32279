/* SPDX-License-Identifier: MIT */
/* test_cmd_terminal: what rlock knows of its terminal, and the line that it draws there. */
#include "output/progress.h"
#include "output/terminal.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rlock.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000

static const struct rlock_obstacle obstacle = {.holder = {.text = "another program"}, .place = 2};

/* Opens a terminal of 99 columns by 33 rows. Returns its master. */
static int open_master(void)
{
    const struct winsize size = {.ws_row = 33, .ws_col = 99};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ioctl(master, TIOCSWINSZ, &size) != 0)
        abort();
    return master;
}

static void test_size(int master)
{
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    int before = dup(STDOUT_FILENO);
    struct terminal terminal;
    size_t columns;

    fflush(stdout);
    unsetenv("COLUMNS");
    dup2(slave, STDOUT_FILENO);
    terminal_read_state(&terminal);
    columns = terminal_columns();
    dup2(before, STDOUT_FILENO);
    close(before);
    close(slave);
    ok(terminal.is_terminal, "stdout is a terminal");
    is_int((int64_t)terminal.lines, 33, "it has 33 lines");
    is_int((int64_t)terminal.columns, 99, "it has 99 columns");
    is_int((int64_t)columns, 99, "--help has 99 columns, too");
}

/* In a process of its own, in the foreground of the terminal. */
static void draw(const char *slave)
{
    const struct report report = {
        .level = REPORT_NOTICE, .key = "job", .start_ms = rlock_clock_ms()};
    struct progress progress;
    int fd;

    setsid();
    fd = open(slave, O_RDWR | O_CLOEXEC);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0 || tcsetpgrp(fd, getpid()) != 0)
        _exit(1);
    progress_init(&progress, &report, 5000, 0);
    progress_show(&progress, &obstacle);
    progress_show(&progress, NULL);
    _exit(progress.terminal == -1 ? 0 : 2);
}

static void test_line(int master)
{
    struct pollfd drawn = {.fd = master, .events = POLLIN};
    char text[4096] = "";
    size_t used = 0;
    int status = -1;
    ssize_t n = 1;
    pid_t pid = fork();

    if (pid == 0)
        draw(ptsname(master));
    waitpid(pid, &status, 0);
    while (n > 0 && used < sizeof text - 1 && poll(&drawn, 1, PATIENCE_MS) > 0) {
        n = read(master, text + used, sizeof text - 1 - used); /* EIO: nobody has it open */
        used += n > 0 ? (size_t)n : 0;
    }
    is_int(status, 0, "the terminal is closed at the end of the wait");
    ok(strstr(text, "rlock: job: waiting ") != NULL &&
       strstr(text, " for another program") != NULL);
    ok(used > 0 && text[used - 1] == '\r', "then it is cleared");
}

int main(void)
{
    int master = open_master();

    setenv("TERM", "vt100", 1);
    RUN(test_size(master));
    RUN(test_line(master));
    close(master);
    return done_testing();
}
