/* SPDX-License-Identifier: MIT */
/*
 * private_server_process: the private server's process, from its start to its end.
 *
 * There are three processes: the server, its parent, and a waiter, the parent's other child.
 *
 *   1. The waiter waits for the exclusive flock on PRIVATE_SERVER_USERS. The kernel grants it when the
 *      last user of the server has dropped its shared one, and the waiter ends.
 *   2. The parent sees that, and ends the server. Newcomers wait for the flock meanwhile, which the
 *      parent still holds: the descriptor is the waiter's and the parent's.
 *   3. The parent ends, and the flock is free.
 *
 * The parent was forked twice, so that it outlives whoever started the server. If the parent is
 * killed the kernel ends its children (PR_SET_PDEATHSIG).
 *
 * Cleaners remove files that were not used for days, so the parent renews the times of the
 * directory and its files each hour. If PRIVATE_SERVER_USERS was replaced all the same, newcomers hold
 * their flocks on the new file: the parent then waits for that one, too.
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

#define TRY_AGAIN_MS 2
#define TOUCH_S 3600       /* cleaners count in days */
#define FORK_AGAIN_S 1     /* when there was no room for a process */
#define FILES_WANTED 10064 /* for 10,000 clients, and enough for the server's own files */
#define FILES_RESERVED 32  /* the server keeps so many for itself */
#define FEW_CLIENTS 1000

extern char **environ;

/* ---- a connection to it ---- */

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
 * By way of the directory's descriptor: a path may be too long for a socket's address, and others
 * may rename what it names.
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

/* ---- the server ---- */

static void raise_limit(unsigned which, rlim_t wanted)
{
    struct rlimit limit;
    struct rlimit more = {wanted, wanted};

    if (getrlimit(which, &limit) != 0)
        return;
    if (limit.rlim_max < wanted && setrlimit(which, &more) == 0) /* as root */
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(which, &limit);
}

/* The server serves all of this user's processes: limits of the one that started it don't apply. */
static void forget_limits(void)
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

static void become_server(pid_t parent, int log)
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
    size_t i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended before prctl() */
        _exit(1);
    forget_limits();
    signal(SIGXFSZ, SIG_IGN); /* the log is a file, and RLIMIT_FSIZE may be 0 */
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        argv[0] = programs[i];
        execvpe(programs[i], (char *const *)argv, nothing);
    }
    _exit(127);
}

/* ---- the server's parent ---- */

/*
 * Clear the arguments and the environment of the process that started the server: they would stay
 * readable in /proc until the last user has ended. PATH stays, to find the server.
 */
static void forget_start(void)
{
    static char *only[] = {NULL, NULL};
    char **each = environ;
    unsigned long at[4]; /* of the arguments and of the environment: begin and end */
    char line[2048];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    const char *field;
    int i;

    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = '\0';
    field = strrchr(line, ')');
    for (i = 2; field != NULL && i < 48; i++) /* `field` is at the end of the second, the name */
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

static void forget_signals(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t child;
    int number;

    for (number = 1; number < NSIG; number++)
        sigaction(number, &usual, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD); /* taken by sigtimedwait */
    sigprocmask(SIG_SETMASK, &child, NULL);
}

static void unblock(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The waiter: ends when nobody uses the server any more. Its flock is the parent's, too. */
static pid_t start_waiter(int users, pid_t parent)
{
    pid_t waiter = fork();

    if (waiter == 0) {
        unblock();
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

/* The pid of a child that has ended; 0: none within that time; -1: there is no child. */
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

/* Wait until nobody uses the server any more, or it has ended. Returns whether it still runs. */
static bool await_end(int dir, int users, pid_t server)
{
    pid_t waiter = start_waiter(users, getpid());
    int status;
    pid_t ended;

    for (;;) {
        touch_files(dir);
        ended = await_child(&status, waiter > 0 ? TOUCH_S : FORK_AGAIN_S);
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
        if (waiter < 0 || (ended > 0 && ended == waiter)) /* it was killed */
            waiter = start_waiter(users, getpid());
    }
}

/* The parent shares no session, terminal or descriptor with whoever started the server. */
static void become_parent(int dir, int log, int alive)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int users = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);
    pid_t parent = getpid();
    bool is_running;
    pid_t server;
    int i;

    prctl(PR_SET_NAME, "rlock-local");
    setsid();
    umask(077);
    forget_signals();
    forget_start();
    for (i = 0; i <= STDERR_FILENO; i++)
        dup2(nothing, i);
    fds_keep((int[]){dir, users, log, alive}, 4);
    if (users < 0 || fchdir(dir) != 0)
        _exit(1);
    server = fork();
    if (server == 0) {
        unblock();
        become_server(parent, log);
    }
    close(log);
    is_running = server > 0 && await_end(dir, users, server);
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0); /* a server that was killed left its socket */
    if (is_running)
        kill(server, SIGKILL); /* the server has nothing to save: it keeps no data on disk */
    _exit(0);
}

/* ---- its start ---- */

/* The last line of the log of a server that has ended before it answered. */
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

/* `alive` is readable once the server's parent, and so the server, has ended. */
static enum rlock_status await_start(int dir, int alive, int log, struct rlock_deadline deadline,
                                     struct rlock_error *err)
{
    struct pollfd watch[] = {{.fd = alive, .events = POLLIN},
                             {.fd = deadline.stop_fd, .events = POLLIN}};
    char line[160];

    while (!answers(dir)) {
        poll(watch, 2, TRY_AGAIN_MS);
        if (watch[1].revents != 0)
            return RLOCK_STOPPED;
        if (watch[0].revents != 0) {
            read_log(log, line, sizeof line);
            if (line[0] == '\0')
                return err_set(
                    err, RLOCK_E_UNREACHABLE, 0,
                    "local: neither valkey-server nor redis-server can be run; install one");
            return err_set(err, RLOCK_E_UNREACHABLE, 0, "local: its server ended: %s", line);
        }
        if (rlock_clock_ms() >= deadline.at_ms)
            return err_set(err, RLOCK_E_UNREACHABLE, 0, "local: its server doesn't answer");
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
    int alive[2] = {-1, -1}; /* a pipe: when the parent ends, the kernel closes its end */
    int log = memfd_create("rlock-local", MFD_CLOEXEC);
    pid_t between = -1;

    if (log >= 0 && pipe2(alive, O_CLOEXEC) == 0)
        between = fork();
    if (between == 0) {
        if (fork() == 0) /* as nobody's child it outlives us */
            become_parent(dir, log, alive[1]);
        _exit(0);
    }
    if (between > 0) {
        waitpid(between, NULL, 0);
        close(alive[1]);
        st = await_start(dir, alive[0], log, deadline, err);
    } else {
        st = err_set(err, RLOCK_E_SYSTEM, errno, "local: can't start its server");
        close(alive[1]);
    }
    close(alive[0]);
    close(log);
    return st;
}
