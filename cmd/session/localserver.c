/* SPDX-License-Identifier: MIT */
/*
 * localserver: the private server's process, from its start to its end.
 *
 * The server's parent is a renewer process, which is nobody's child. A child of
 * the renewer waits for the exclusive flock on LOCALDIR_USERS: it is granted when
 * nobody uses the server any more, and the renewer then ends the server while
 * newcomers wait for the flock. If the renewer dies the kernel ends both.
 *
 * Cleaners remove files that were not used for days, so the renewer marks the
 * directory and its files as fresh each hour. Where the file it has locked is no
 * longer the one in the directory, others may use the server under the new
 * file: the renewer then waits for that one, too.
 */
#include "session/localserver.h"

#include "process/fds.h"
#include "session/localdir.h"

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
#define FRESH_S 3600       /* cleaners count in days */
#define FORK_AGAIN_S 1     /* when there was no room for a process */
#define FILES_WANTED 10064 /* of a server with its 10,000 clients, and what it keeps for itself */
#define FILES_RESERVED 32  /* the server keeps so many for itself */
#define FEW_CLIENTS 1000

extern char **environ;

/* ---- a connection to it ---- */

static bool peer(int connection, struct ucred *who)
{
    socklen_t size = sizeof *who;

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, who, &size) == 0;
}

pid_t localserver_pid(int connection)
{
    struct ucred who;

    return peer(connection, &who) ? who.pid : 0;
}

/* Through the descriptor: however long the path is, and whatever is done to it. */
int localserver_call(int dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred who;
    int failed = 0;

    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" LOCALDIR_SOCKET, dir);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        failed = errno;
    else if (!peer(fd, &who) || (who.uid != geteuid() && who.uid != 0))
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

/* It serves others, too, who are not to suffer from the limits of the first. */
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

static void become_server(pid_t keeper, int log)
{
    static const char *const programs[] = {"valkey-server", "redis-server"};
    const char *argv[] = {"",
                          "--port",
                          "0",
                          "--unixsocket",
                          LOCALDIR_SOCKET,
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
    if (getppid() != keeper)
        _exit(1);
    forget_limits();
    signal(SIGXFSZ, SIG_IGN); /* by what it logs, where the limit of a file's size is 0 */
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        argv[0] = programs[i];
        execvpe(programs[i], (char *const *)argv, nothing);
    }
    _exit(127);
}

/* ---- the renewer ---- */

/*
 * What the first user was started with is none of the renewer's business, and
 * would stay readable in /proc for as long as the last one. PATH is needed to
 * find the server.
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
    for (i = 2; field != NULL && i < 48; i++) /* fields count from 1; the name is the second */
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

/* Ends by itself when nobody uses the server any more: the flock is the renewer's then, too. */
static pid_t watch_users(int users, pid_t keeper)
{
    pid_t watcher = fork();

    if (watcher == 0) {
        unblock();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == keeper && flock(users, LOCK_EX) != 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    return watcher;
}

static void mark_as_fresh(int dir)
{
    static const char *const all[] = {".", LOCALDIR_START, LOCALDIR_USERS, LOCALDIR_SOCKET};
    size_t i;

    for (i = 0; i < sizeof all / sizeof all[0]; i++)
        utimensat(dir, all[i], NULL, AT_SYMLINK_NOFOLLOW);
}

/* A child that has ended, or 0 after a while. */
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

/* Returns when nobody uses the server any more, or when it has ended: does it still run? */
static bool keep(int dir, int users, pid_t server)
{
    pid_t watcher = watch_users(users, getpid());
    int status;
    pid_t ended;

    for (;;) {
        mark_as_fresh(dir);
        ended = await_child(&status, watcher > 0 ? FRESH_S : FORK_AGAIN_S);
        if (ended == server || (ended < 0 && errno == ECHILD && watcher > 0))
            return false;
        if (ended > 0 && ended == watcher && WIFEXITED(status)) {
            int now;

            if (localdir_has(dir, LOCALDIR_USERS, users))
                return true;
            now = localdir_file(dir, LOCALDIR_USERS);
            if (now < 0)
                return true;
            close(users);
            users = now;
        }
        if (watcher < 0 || (ended > 0 && ended == watcher)) /* or it was killed */
            watcher = watch_users(users, getpid());
    }
}

/* The renewer shares neither session, terminal nor descriptors with who started it. */
static void become_keeper(int dir, int log, int alive)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int users = localdir_file(dir, LOCALDIR_USERS);
    pid_t keeper = getpid();
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
        become_server(keeper, log);
    }
    close(log);
    is_running = server > 0 && keep(dir, users, server);
    unlinkat(dir, LOCALDIR_SOCKET, 0); /* as a server that was killed doesn't */
    if (is_running)
        kill(server, SIGKILL); /* nothing of it is to be kept */
    _exit(0);
}

/* ---- its start ---- */

/* The last line the server wrote, since it ended before it answered. */
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
    int fd = localserver_call(dir);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == EAGAIN;
}

/* Wait until it answers; `renewer` is readable once the renewer, and so the server, has ended. */
static enum rlock_status await(int dir, int keeper, int log, struct rlock_deadline deadline,
                               struct rlock_error *err)
{
    struct pollfd watch[] = {{.fd = keeper, .events = POLLIN},
                             {.fd = deadline.stop_fd, .events = POLLIN}};
    char line[160];

    while (!answers(dir)) {
        poll(watch, 2, TRY_AGAIN_MS);
        if (watch[1].revents != 0)
            return RLOCK_STOPPED;
        if (watch[0].revents != 0) {
            read_log(log, line, sizeof line);
            if (line[0] == '\0')
                return localdir_fail(
                    err, RLOCK_E_UNREACHABLE,
                    "local: neither valkey-server nor redis-server can be run; install one");
            return localdir_fail(err, RLOCK_E_UNREACHABLE, "local: its server ended: %s", line);
        }
        if (rlock_clock_ms() >= deadline.at_ms)
            return localdir_fail(err, RLOCK_E_UNREACHABLE, "local: its server doesn't answer");
    }
    return RLOCK_OK;
}

int64_t localserver_clients(int connection)
{
    struct rlimit limit;
    pid_t pid = localserver_pid(connection);

    if (pid <= 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) != 0 ||
        limit.rlim_cur >= FILES_RESERVED + FEW_CLIENTS)
        return 0;
    return limit.rlim_cur > FILES_RESERVED ? (int64_t)limit.rlim_cur - FILES_RESERVED : 1;
}

enum rlock_status localserver_start(int dir, struct rlock_deadline deadline,
                                    struct rlock_error *err)
{
    enum rlock_status st;
    int alive[2] = {-1, -1}; /* the renewer holds one end: its end shows at the other */
    int log = memfd_create("rlock-local", MFD_CLOEXEC);
    pid_t between = -1;

    if (log >= 0 && pipe2(alive, O_CLOEXEC) == 0)
        between = fork();
    if (between == 0) {
        if (fork() == 0) /* nobody's child: it outlives us */
            become_keeper(dir, log, alive[1]);
        _exit(0);
    }
    if (between > 0) {
        waitpid(between, NULL, 0);
        close(alive[1]);
        st = await(dir, alive[0], log, deadline, err);
    } else {
        st = localdir_fail(err, RLOCK_E_SYSTEM, "local: can't start its server: %s",
                           strerror(errno));
        close(alive[1]);
    }
    close(alive[0]);
    close(log);
    return st;
}
