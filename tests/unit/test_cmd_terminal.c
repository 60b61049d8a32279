/* SPDX-License-Identifier: MIT */
/* test_cmd_terminal: the size of the terminal. tests/cli/screens.bats shows what rlock draws. */
#include "output/terminal.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int open_master(void)
{
    const struct winsize size = {.ws_row = 33, .ws_col = 99};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ioctl(master, TIOCSWINSZ, &size) != 0)
        abort();
    return master;
}

static void test_size(void)
{
    int master = open_master();
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
    close(master);
    ok(terminal.is_terminal, "stdout is a terminal");
    is_int((int64_t)terminal.lines, 33, "it has 33 lines");
    is_int((int64_t)terminal.columns, 99, "it has 99 columns");
    is_int((int64_t)columns, 99, "--help has 99 columns, too");
}

/* Both stdin and stderr have to be terminals. */
static void test_can_ask(void)
{
    int usual[] = {dup(STDIN_FILENO), dup(STDERR_FILENO)};
    int master = open_master();
    int fd[] = {open("/dev/null", O_RDWR | O_CLOEXEC),
                open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)};

    for (int i = 0; i < 4; i++) {
        bool can;

        dup2(fd[i & 1], STDIN_FILENO);
        dup2(fd[i >> 1], STDERR_FILENO);
        can = terminal_can_ask();
        dup2(usual[0], STDIN_FILENO);
        dup2(usual[1], STDERR_FILENO);
        is_int(can, i == 3);
    }
    close(master);
}

TESTS(test_size, test_can_ask)
