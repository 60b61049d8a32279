/* SPDX-License-Identifier: MIT */
/*
 * private_server_process: the private server's process, from its start to its end.
 *
 * There are three processes: the server, its parent, and the parent's other child, which waits for
 * the end of the last user. These processes end in the following steps:
 *
 * 1. The waiting process blocks in flock(2) until it gets the exclusive flock on
 *    PRIVATE_SERVER_USERS. The kernel grants that flock when the last user of the server has
 *    dropped its shared one. Then the waiting process exits.
 * 2. The parent reaps the waiting process, and kills the server. In the meantime new users can't
 *    get the flock, because it is still held: a flock belongs to the open file description, which
 *    the waiting process inherited from the parent.
 * 3. The parent exits, which drops the flock.
 *
 * The rlock that starts the server forks twice, so that init adopts the parent, which outlives that
 * rlock. If the parent is killed, the kernel kills its children (PR_SET_PDEATHSIG).
 *
 * Cleaners of temporary files remove files that were not used for days. So the parent updates the
 * times of the directory and its files each hour. If a cleaner has removed PRIVATE_SERVER_USERS,
 * new users hold their flocks on a new file of that name. So the parent opens the new file, and
 * forks a waiting process for that file.
 */
#include "session/private_server_process.h"

#include "base/err.h"
#include "process/fds.h"
#include "session/private_server_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 2
#define TOUCH_S 3600       /* the time from one update of the files' times to the next */
#define FORK_RETRY_S 1     /* the pause after fork(2) has failed */
#define FILES_WANTED 10064 /* RLIMIT_NOFILE: 10,000 connections, and the server's own files */
#define FILES_RESERVED 32  /* descriptors that the server doesn't use for connections */
#define FEW_CLIENTS 1000   /* with fewer connections than this, rlock warns */

extern char **environ;

/*
 * Why no server runs. Its parent, or the process that was to become the server, writes this to the
 * pipe to the rlock that starts the server.
 */
struct start_failure {
    enum { NO_USERS_FILE, NO_DIRECTORY, NO_FORK, NO_PROGRAM } what;
    int failed; /* the errno */
};

/* ---- connecting to the server ---- */

static bool get_peer(int connection, struct ucred *who)
{
    socklen_t size = sizeof *who;

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, who, &size) == 0;
}

pid_t private_server_process_pid(int connection)
{
    struct ucred who;

    return get_peer(connection, &who) ? who.pid : 0;
}

/*
 * The address names the socket below /proc/self/fd: the path of the directory may be longer than
 * sun_path, and another process may have renamed the directory.
 */
int private_server_process_connect(int dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred who;
    int failed = 0;

    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" PRIVATE_SERVER_SOCKET, dir);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        failed = errno;
    else if (!get_peer(fd, &who) || (who.uid != geteuid() && who.uid != 0))
        failed = EPERM;
    if (failed == 0)
        return fd;
    close(fd);
    errno = failed;
    return -1;
}

/* ---- becoming the server ---- */

static void raise_limit(unsigned which, rlim_t wanted)
{
    struct rlimit limit;
    struct rlimit more = {wanted, wanted};

    if (getrlimit(which, &limit) != 0)
        return;
    if (limit.rlim_max < wanted && setrlimit(which, &more) == 0) /* only root may raise rlim_max */
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(which, &limit);
}

/*
 * The server serves all rlocks of this user. So the server must not run under the resource limits
 * and the priority of the one process that happened to start it.
 */
static void raise_limits(void)
{
    static const unsigned others[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE,
                                      RLIMIT_NPROC};
    struct sched_param usual = {.sched_priority = 0};
    struct rlimit none = {0, 0};
    size_t i;

    raise_limit(RLIMIT_NOFILE, FILES_WANTED);
    for (i = 0; i < sizeof others / sizeof others[0]; i++)
        raise_limit(others[i], RLIM_INFINITY);
    setrlimit(RLIMIT_CORE, &none);
    sched_setscheduler(0, SCHED_OTHER, &usual);
    setpriority(PRIO_PROCESS, 0, 0);
}

static void tell_failure(int starter, struct start_failure failure)
{
    (void)!write(starter, &failure, sizeof failure);
}

static void become_server(pid_t parent, int log, int starter)
{
    static const char *const programs[] = {"valkey-server", "redis-server"};
    const char *argv[] = {"",
                          "--port",
                          "0",
                          "--unixsocket",
                          PRIVATE_SERVER_SOCKET,
                          "--unixsocketperm",
                          "600",
                          "--timeout",
                          "0",
                          "--save",
                          "",
                          "--appendonly",
                          "no",
                          "--maxmemory-policy",
                          "noeviction",
                          NULL};
    char *const nothing[] = {NULL};
    int failed = ENOENT;
    size_t i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent ended before prctl(): no signal will come */
        _exit(1);
    raise_limits();
    signal(SIGXFSZ, SIG_IGN); /* a write to the log beyond RLIMIT_FSIZE must fail, not kill */
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        argv[0] = programs[i];
        execvpe(programs[i], (char *const *)argv, nothing);
        if (errno != ENOENT)
            failed = errno;
    }
    tell_failure(starter, (struct start_failure){NO_PROGRAM, failed});
    _exit(127);
}

/* ---- becoming the server's parent ---- */

/*
 * The parent was forked from an rlock, and has the arguments and environment of that rlock. Clear
 * them, as other processes could read them in /proc for as long as the server runs. Only PATH
 * stays, for execvpe(3) to find the server's program.
 */
static void clear_starter(void)
{
    static char *only[] = {NULL, NULL};
    char **each = environ;
    unsigned long at[4]; /* addresses: begin and end of the arguments, and of the environment */
    char line[2048];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    const char *field;
    int i;

    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = '\0';
    field = strrchr(line, ')');
    for (i = 2; field != NULL && i < 48; i++) /* fields 48 to 51, see proc_pid_stat(5) */
        field = strchr(field + 1, ' ');
    while (*each != NULL && strncmp(*each, "PATH=", strlen("PATH=")) != 0)
        each++;
    only[0] = *each != NULL ? strdup(*each) : NULL;
    environ = only;
    if (field == NULL || sscanf(field, "%lu %lu %lu %lu", &at[0], &at[1], &at[2], &at[3]) != 4)
        return;
    if (at[0] == 0 || at[1] < at[0] || at[2] < at[1] || at[3] < at[2])
        return;
    memset((char *)at[0], 0, at[3] - at[0]);
    snprintf((char *)at[0], at[1] - at[0], "rlock-local");
}

static void reset_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t child;
    int number;

    for (number = 1; number < NSIG; number++)
        sigaction(number, &usual, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD); /* blocked, so that sigtimedwait(2) receives it */
    sigprocmask(SIG_SETMASK, &child, NULL);
}

static void unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Fork the process that exits when no process uses the server any more. */
static pid_t start_waiter(int users, pid_t parent)
{
    pid_t waiter = fork();

    if (waiter == 0) {
        unblock_signals();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent && flock(users, LOCK_EX) != 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    return waiter;
}

static void touch_files(int dir)
{
    static const char *const all[] = {".", PRIVATE_SERVER_START, PRIVATE_SERVER_USERS,
                                      PRIVATE_SERVER_SOCKET};
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0]; i++)
        utimensat(dir, all[i], NULL, AT_SYMLINK_NOFOLLOW);
}

/*
 * Wait for the end of a child, for at most `seconds`. Returns the pid of a child that has ended; 0:
 * none has; -1: there is no child.
 */
static pid_t await_child(int *status, time_t seconds)
{
    struct timespec while_s = {.tv_sec = seconds};
    sigset_t child;
    pid_t pid = waitpid(-1, status, WNOHANG);

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (pid == 0) {
        sigtimedwait(&child, NULL, &while_s);
        pid = waitpid(-1, status, WNOHANG);
    }
    return pid;
}

/*
 * Wait until no process uses the server any more, or the server has ended. Returns true if the
 * server still runs.
 */
static bool await_end(int dir, int users, pid_t server)
{
    pid_t waiter = start_waiter(users, getpid());
    int status;
    pid_t ended;

    for (;;) {
        touch_files(dir);
        ended = await_child(&status, waiter > 0 ? TOUCH_S : FORK_RETRY_S);
        if (ended == server || (ended < 0 && errno == ECHILD && waiter > 0))
            return false;
        if (ended > 0 && ended == waiter && WIFEXITED(status)) {
            int current;

            if (private_server_dir_has(dir, PRIVATE_SERVER_USERS, users))
                return true;
            current = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);
            if (current < 0)
                return true;
            close(users);
            users = current;
        }
        /* Start another waiter if none runs: fork(2) failed, or the waiter was killed, or it waited
         * for the lock of a file that a cleaner has removed. */
        if (waiter < 0 || (ended > 0 && ended == waiter))
            waiter = start_waiter(users, getpid());
    }
}

/*
 * Become the server's parent, in a process just forked. The parent leaves the session, the terminal
 * and the descriptors of the rlock that starts the server. `starter` is the pipe to that rlock.
 */
static void become_parent(int dir, int log, int starter)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int users = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);
    int users_errno = errno;
    pid_t parent = getpid();
    bool is_running;
    pid_t server;
    int i;

    prctl(PR_SET_NAME, "rlock-local");
    setsid();
    umask(077);
    reset_signals();
    clear_starter();
    for (i = 0; i <= STDERR_FILENO; i++)
        dup2(nothing, i);
    fds_keep((int[]){dir, users, log, starter}, 4);
    if (users < 0) {
        tell_failure(starter, (struct start_failure){NO_USERS_FILE, users_errno});
        _exit(1);
    }
    if (fchdir(dir) != 0) {
        tell_failure(starter, (struct start_failure){NO_DIRECTORY, errno});
        _exit(1);
    }
    server = fork();
    if (server == 0) {
        unblock_signals();
        become_server(parent, log, starter);
    }
    if (server < 0)
        tell_failure(starter, (struct start_failure){NO_FORK, errno});
    close(log);
    is_running = server > 0 && await_end(dir, users, server);
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0); /* a server that was killed did not remove it */
    if (is_running)
        kill(server, SIGKILL); /* the server has no data on disk, so it has nothing to save */
    _exit(0);
}

/* ---- starting the server ---- */

/* Read the last line of the log, which says why a server ended as it started. */
static void read_log(int log, char *line, size_t room)
{
    char text[2048];
    ssize_t n = pread(log, text, sizeof text - 1, 0);
    char *at;

    text[n > 0 ? n : 0] = '\0';
    while ((at = strrchr(text, '\n')) != NULL && at[1] == '\0')
        *at = '\0';
    snprintf(line, room, "%.150s", at == NULL ? text : at + 1);
}

static bool answers(int dir)
{
    int fd = private_server_process_connect(dir);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == EAGAIN;
}

#define CANT_RUN_SERVER "local: neither valkey-server nor redis-server can be run"

/* The server's parent has ended, and the server with it. Sets `err` to the reason. */
static enum rlock_status explain_end(int alive, int log, struct rlock_error *err)
{
    struct start_failure failure;
    char line[160];

    if (read(alive, &failure, sizeof failure) != sizeof failure) {
        read_log(log, line, sizeof line);
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "local: the private server ended%s%s",
                       line[0] == '\0' ? " as it started, and didn't say why" : ": ", line);
    }
    switch (failure.what) {
    case NO_USERS_FILE:
        return err_set(err, RLOCK_E_SYSTEM, failure.failed,
                       "local: can't open the lock file " PRIVATE_SERVER_USERS);
    case NO_DIRECTORY:
        return err_set(err, RLOCK_E_SYSTEM, failure.failed,
                       "local: can't enter the private server's directory");
    case NO_FORK:
        return err_set(err, RLOCK_E_SYSTEM, failure.failed,
                       "local: the private server can't be started");
    case NO_PROGRAM:
        break;
    }
    switch (failure.failed) {
    case ENOENT:
        return err_set(err, RLOCK_E_UNREACHABLE, 0, CANT_RUN_SERVER "; install one");
    /* execvpe(3) sets these two also if no program is installed, and PATH names a folder that this
     * user can't search, or a file. */
    case EACCES:
    case ENOTDIR:
        return err_set(err, RLOCK_E_UNREACHABLE, 0,
                       CANT_RUN_SERVER ": %s; install one that this user may execute",
                       strerror(failure.failed));
    default:
        return err_set(err, RLOCK_E_SYSTEM, failure.failed, CANT_RUN_SERVER);
    }
}

/*
 * Wait until the server accepts a connection. The server's parent has the writing end of the pipe
 * `alive`. When the parent has ended, poll(2) reports POLLHUP, and the server has ended, too.
 */
static enum rlock_status await_start(int dir, int alive, int log, struct rlock_deadline deadline,
                                     struct rlock_error *err)
{
    struct pollfd watch[] = {{.fd = alive, .events = 0},
                             {.fd = deadline.stop_fd, .events = POLLIN}};

    while (!answers(dir)) {
        poll(watch, 2, RETRY_MS);
        if (watch[1].revents != 0)
            return RLOCK_STOPPED;
        if (watch[0].revents != 0)
            return explain_end(alive, log, err);
        if (rlock_clock_ms() >= deadline.at_ms)
            return err_set(err, RLOCK_E_UNREACHABLE, 0,
                           "local: the private server doesn't accept connections");
    }
    return RLOCK_OK;
}

int64_t private_server_process_clients_max(int connection)
{
    struct rlimit limit;
    pid_t pid = private_server_process_pid(connection);

    if (pid <= 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) != 0 ||
        limit.rlim_cur >= FILES_RESERVED + FEW_CLIENTS)
        return 0;
    return limit.rlim_cur > FILES_RESERVED ? (int64_t)limit.rlim_cur - FILES_RESERVED : 1;
}

enum rlock_status private_server_process_start(int dir, struct rlock_deadline deadline,
                                               struct rlock_error *err)
{
    enum rlock_status st;
    int alive[2] = {-1, -1}; /* a pipe: the kernel closes the parent's end when the parent ends */
    int log = memfd_create("rlock-local", MFD_CLOEXEC);
    pid_t intermediate = -1;

    if (log >= 0 && pipe2(alive, O_CLOEXEC) == 0)
        intermediate = fork();
    if (intermediate == 0) {
        pid_t parent = fork(); /* init adopts that process, so it may outlive rlock */

        if (parent == 0)
            become_parent(dir, log, alive[1]);
        if (parent < 0)
            tell_failure(alive[1], (struct start_failure){NO_FORK, errno});
        _exit(0);
    }
    if (intermediate > 0) {
        waitpid(intermediate, NULL, 0);
        close(alive[1]);
        st = await_start(dir, alive[0], log, deadline, err);
    } else {
        st = err_set(err, RLOCK_E_SYSTEM, errno, "local: the private server can't be started");
        close(alive[1]);
    }
    close(alive[0]);
    close(log);
    return st;
}
