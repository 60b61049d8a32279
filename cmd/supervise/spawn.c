/* SPDX-License-Identifier: MIT */
/*
 * spawn: starts the command, with the signals and descriptors that rlock was started with.
 *
 * vfork(2) is faster than fork(2), which copies page tables. As the child runs in the parent's
 * memory, it writes to its own variables only. By a pipe, which the exec closes, the child tells
 * the time of the exec, and the errno of a failure.
 */
#include "supervise/spawn.h"

#include "supervise/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <rlock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child writes to the pipe: one note just before the exec, and one if it has failed. */
struct note {
    int64_t exec_ms; /* the time; 0 in a note of failure */
    int error;
    int is_exec_error;
};

static void write_note(int fd, struct note note)
{
    (void)!write(fd, &note, sizeof note);
}

/*
 * Runs in the child, and does not return. The child checks the lease directly before the exec,
 * because the guard may have been stopped at any point before, for longer than the lease lasts.
 */
static void exec_command(const struct spawn_plan *plan, pid_t parent, int note_fd)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct note failure = {.is_exec_error = true};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl() */
        _exit(127);
    if (plan->ignore_child)
        sigaction(SIGCHLD, &ignored, NULL);
    sigprocmask(SIG_SETMASK, plan->mask, NULL);
    if (plan->cgroup_fd >= 0 && (failure.error = cgroup_enter(plan->cgroup_fd)) != 0) {
        failure.is_exec_error = false;
    } else {
        write_note(note_fd, (struct note){.exec_ms = rlock_clock_ms()});
        failure.error = SPAWN_TOO_LATE;
        if (rlock_clock_ms() < plan->not_after_ms) {
            execvpe(plan->argv[0], plan->argv, plan->envp);
            failure.error = errno;
        }
    }
    write_note(note_fd, failure);
    _exit(127);
}

/* Reads the child's notes, until its exec or its end has closed the pipe. */
static void read_notes(int fd, struct spawned *spawned)
{
    struct note note;

    while (read(fd, &note, sizeof note) == (ssize_t)sizeof note) {
        spawned->exec_ms = note.exec_ms;
        spawned->error = note.error;
        spawned->is_exec_error = note.is_exec_error;
    }
}

struct spawned spawn(const struct spawn_plan *plan)
{
    struct spawned spawned = {.pid = 0};
    pid_t parent = getpid();
    int notes[2];

    if (pipe2(notes, O_CLOEXEC) != 0) {
        spawned.error = errno;
        return spawned;
    }
    spawned.pid = vfork();
    if (spawned.pid == 0)
        exec_command(plan, parent, notes[1]);
    if (spawned.pid < 0)
        spawned.error = errno;
    close(notes[1]);
    if (spawned.pid > 0)
        read_notes(notes[0], &spawned);
    close(notes[0]);
    if (spawned.pid > 0 && spawned.error != 0)
        waitpid(spawned.pid, NULL, 0);
    if (spawned.error != 0)
        spawned.pid = 0;
    return spawned;
}
