/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_fds: a forked process closes the descriptors of one group, and no others. What a process
 * does when it can't fork or can't leave its session, and who may read its memory.
 */
#include "child.h"
#include "process/child.h"
#include "process/dumpable.h"
#include "process/fds.h"
#include "refuse.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOW 20      /* the tests open descriptors from here on, with gaps between them */
#define HIGH 700    /* a descriptor far above the first ones */
#define BEYOND 1500 /* above 1024, so fds.c finds this one only by reading /proc/self/fd */

/* Which of the descriptors of the tests are open: bit i is about fds[i]. */
static const int fds[] = {LOW, LOW + 5, HIGH, LOW + 9, LOW + 10, HIGH + 1, BEYOND, BEYOND + 1};
#define N ((int)(sizeof fds / sizeof fds[0]))
enum { INHERITED = 0x47, OURS = 0xb8 }; /* bits of fds[] without and with FD_CLOEXEC */

static void open_all(int last)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    for (int i = 0; i < N; i++)
        if (fds[i] <= last)
            dup3(fd, fds[i], (OURS & (1 << i)) != 0 ? O_CLOEXEC : 0);
    close(fd);
}

static int which_are_open(void)
{
    int open = 0;

    for (int i = 0; i < N; i++)
        if (fcntl(fds[i], F_GETFD) >= 0)
            open |= 1 << i;
    return open;
}

/*
 * Starts a child that opens the descriptors of `fds` up to `last`, and then calls `drop`. Returns
 * which of them the child still has open, one bit for each element of `fds`.
 */
static int left_after(void (*drop)(void), int last)
{
    pid_t child = fork();

    if (child == 0) {
        open_all(last);
        drop();
        _exit(which_are_open());
    }
    return child_status(child);
}

static void drop_nothing(void)
{
}

static void drop_ours(void)
{
    fds_drop(true, NULL, 0);
}

static void drop_ours_but_two(void)
{
    fds_drop(true, FDS(HIGH + 1, -1, LOW + 9));
}

static void drop_inherited(void)
{
    fds_drop(false, NULL, 0);
}

static void keep_two(void)
{
    fds_keep(FDS(HIGH, -1, LOW + 9));
}

#ifndef SYS_dup2 /* as on ARM, where dup2() calls dup3(2) */
#define SYS_dup2 SYS_dup3
#endif

/* The kernel refuses to fork, and to duplicate a descriptor. */
static int be_refused(void)
{
    int lowest = dup(0);
    int fd;

    close(lowest);
    if (!refuse(SYS_clone, EAGAIN) || !refuse(SYS_dup2, EBUSY))
        return CHILD_CANT_RUN;
    if (child_fork(&fd) != -1 || errno != EAGAIN || fd != -1 || dup(0) != lowest)
        return 3;
    return child_leave_session("test", -1) == EBUSY ? 0 : 4;
}

static int be_dumpable(void)
{
    prctl(PR_SET_DUMPABLE, 1);
    dumpable_forbid();
    if (prctl(PR_GET_DUMPABLE) != 0)
        return 3;
    dumpable_reset();
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : 4;
}

static void in_child(int (*body)(void), const char *name)
{
    pid_t child = fork();

    if (child == 0)
        _exit(body());
    child_passes(child, name, "the kernel allows no filter");
}

int main(void)
{
    struct rlimit many = {.rlim_cur = BEYOND + 10, .rlim_max = BEYOND + 10};
    int low = 0x3f; /* the bits of all elements of `fds` but BEYOND and BEYOND + 1 */

    is_int(left_after(drop_nothing, HIGH + 1), low);
    is_int(left_after(drop_ours, HIGH + 1), INHERITED & low);
    is_int(left_after(drop_ours_but_two, HIGH + 1), (INHERITED & low) | 0x28);
    is_int(left_after(drop_inherited, HIGH + 1), OURS & low);
    is_int(left_after(keep_two, HIGH + 1), 0x0c);
    in_child(be_refused, "a failed fork leaves no descriptor, and a failed dup2() is told");
    in_child(be_dumpable, "a process is dumpable again once it has no password any more");
    if (setrlimit(RLIMIT_NOFILE, &many) < 0) {
        skip("descriptors above 1024", "the limit of descriptors can't be raised");
        return done_testing();
    }
    is_int(left_after(drop_ours, BEYOND + 1), INHERITED);
    is_int(left_after(drop_inherited, BEYOND + 1), OURS);
    return done_testing();
}
