/* SPDX-License-Identifier: MIT */
/*
 * private_server_process: the private server's process, from its start to its end.
 *
 * The rlock that starts the server forks twice, so init, or the nearest subreaper, adopts the
 * keeper. The keeper forks the server. When the keeper gets the exclusive flock on
 * PRIVATE_SERVER_USERS, no process uses the server or can become a user, and the keeper kills the
 * server. If the keeper is killed, the kernel kills the server. Each hour the keeper updates the
 * times of the files, which a cleaner of temporary files would otherwise remove.
 */
#include "session/private_server_process.h"

#include "base/err.h"
#include "options/mistake.h"
#include "process/child.h"
#include "process/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS 2
#define LOOK_MS 100                       /* from one look for users to the next */
#define LOOKS_BETWEEN (3600000 / LOOK_MS) /* from one update of the files' times to the next */
#define FILES_WANTED 10064                /* RLIMIT_NOFILE: 10,000 connections, and own files */

extern char **environ;

static const char *const programs[] = {"valkey-server", "redis-server"};
#define PROGRAMS (sizeof programs / sizeof programs[0])

/* ---- finding the server ---- */

/*
 * The address names the socket below /proc/self/fd: the path of the directory may be longer than
 * sun_path, and another process may have renamed the directory.
 *
 * Without a pidfd (Linux before 5.3, a server in another PID namespace), returns the connection. It
 * becomes readable when the server ends, but also when the server closes the connection.
 */
int private_server_process_find(int dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred who;
    socklen_t size = sizeof who;
    int failed = 0;
    int process;

    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" PRIVATE_SERVER_SOCKET, dir);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        failed = errno;
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
             (who.uid != geteuid() && who.uid != 0))
        failed = EPERM;
    process = failed == 0 ? (int)syscall(SYS_pidfd_open, who.pid, 0) : -1;
    if (failed == 0 && process < 0)
        return fd;
    close(fd);
    errno = failed;
    return process;
}

int private_server_process_open_users(int dir)
{
    int fd = openat(dir, PRIVATE_SERVER_USERS, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd >= 0)
        (void)!fchmod(fd, 0600); /* the umask may have forbidden rights */
    return fd;
}

/* ---- becoming the server ---- */

/*
 * The server serves all rlocks of this user. So keeper and server give up the limits and the
 * priority of the rlock that happened to start them, as far as they may: only root may raise
 * rlim_max, and lower the niceness.
 */
static void raise_limits(void)
{
    static const unsigned all[] = {RLIMIT_NOFILE, RLIMIT_AS,    RLIMIT_CPU,
                                   RLIMIT_DATA,   RLIMIT_FSIZE, RLIMIT_NPROC};
    struct sched_param usual = {.sched_priority = 0};
    struct rlimit limit = {0, 0};
    size_t i;

    setrlimit(RLIMIT_CORE, &limit);
    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        rlim_t wanted = all[i] == RLIMIT_NOFILE ? FILES_WANTED : RLIM_INFINITY;

        getrlimit(all[i], &limit);
        if (limit.rlim_max < wanted && setrlimit(all[i], &(struct rlimit){wanted, wanted}) == 0)
            continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(all[i], &limit);
    }
    sched_setscheduler(0, SCHED_OTHER, &usual);
    setpriority(PRIO_PROCESS, 0, 0);
}

/* `told`, the pipe to the rlock that starts the server, becomes the server's stdout and stderr. */
static void become_server(pid_t keeper, int told)
{
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
    sigset_t none;
    size_t i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) /* the keeper ended before prctl(): no signal will come */
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(told, STDOUT_FILENO);
    dup2(told, STDERR_FILENO);
    for (i = 0; i < PROGRAMS; i++) {
        argv[0] = programs[i];
        execvpe(programs[i], (char *const *)argv, nothing);
        if (errno != ENOENT)
            failed = errno;
    }
    dprintf(told, "neither valkey-server nor redis-server can be run%s%s\n",
            failed == ENOENT ? "; install one" : ": ", failed == ENOENT ? "" : strerror(failed));
    _exit(127);
}

/* ---- becoming the keeper ---- */

/*
 * The keeper was forked from an rlock, and has the arguments and environment of that rlock. Clear
 * them, as other processes could read them in /proc for as long as the server runs. Only PATH
 * stays, for execvpe(3) to find the server's program.
 */
static void clear_starter(void)
{
    static char *only[] = {NULL, NULL};
    char **each = environ;
    unsigned long begin = 0; /* the address of the arguments, which the environment follows */
    unsigned long end = 0;   /* the end of the environment */
    char line[2048] = "";
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    const char *field;
    int i;

    if (fd >= 0)
        (void)!read(fd, line, sizeof line - 1);
    close(fd);
    while (*each != NULL && strncmp(*each, "PATH=", strlen("PATH=")) != 0)
        each++;
    only[0] = *each != NULL ? strdup(*each) : NULL;
    environ = only;
    field = strrchr(line, ')');
    for (i = 2; field != NULL && i < 48; i++) /* fields 48 to 51, see proc_pid_stat(5) */
        field = strchr(field + 1, ' ');
    if (field == NULL || sscanf(field, "%lu %*u %*u %lu", &begin, &end) != 2 || begin == 0 ||
        end < begin)
        return;
    memset((char *)begin, 0, end - begin);
    snprintf((char *)begin, end - begin, "rlock-local");
}

/* Leave the session, the terminal, the signals and the descriptors of the rlock that forked us. */
static void leave_starter(const int keep[], int n)
{
    (void)!child_leave_session("rlock-local", -1);
    child_reset_signals();
    umask(077);
    fds_keep(keep, n);
    clear_starter();
}

/* Wait until no process uses the server, and end the server; return earlier if the server ends. */
static void await_end(int dir, int users, pid_t server)
{
    struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    sigset_t child;
    int looks = 0;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (flock(users, LOCK_EX | LOCK_NB) != 0) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return; /* the rlock that starts the next server removes the socket */
        if (++looks % LOOKS_BETWEEN == 0) {
            futimens(dir, NULL);
            futimens(users, NULL);
        }
        sigtimedwait(&child, NULL, &pause);
    }
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    kill(server, SIGKILL); /* the server has no data on disk, so it has nothing to save */
    waitpid(server, NULL, 0);
}

static void become_keeper(int dir, int told)
{
    pid_t keeper = getpid();
    pid_t server = -1;
    int users;

    leave_starter((int[]){dir, told}, 2);
    raise_limits();
    users = private_server_process_open_users(dir);
    if (users >= 0 && fchdir(dir) == 0)
        server = fork();
    if (server == 0)
        become_server(keeper, told);
    if (server > 0)
        await_end(dir, users, server);
    else
        dprintf(told, "%s\n", strerror(errno));
    _exit(0);
}

/* ---- starting the server ---- */

bool private_server_process_is_installed(const char *path)
{
    size_t i = 0;

    while (i < PROGRAMS && mistake_program_error(programs[i], path) != 0)
        i++;
    return i < PROGRAMS;
}

static bool answers(int dir)
{
    int fd = private_server_process_find(dir);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == EAGAIN;
}

/* Read what the server prints, and keep the last line. False: keeper and server have ended. */
static bool read_last_line(int told, char *line, size_t room)
{
    char text[2048];
    ssize_t n = read(told, text, sizeof text - 1);
    char *at;

    if (n <= 0)
        return false;
    text[n] = '\0';
    while ((at = strrchr(text, '\n')) != NULL && at[1] == '\0')
        *at = '\0';
    snprintf(line, room, "%.190s", at == NULL ? text : at + 1);
    return true;
}

/* Wait until the server accepts a connection. Keeper and server have the writing end of `told`. */
static enum rlock_status await_start(int dir, int told, struct rlock_deadline deadline,
                                     struct rlock_error *err)
{
    struct pollfd watch[] = {{.fd = told, .events = POLLIN},
                             {.fd = deadline.stop_fd, .events = POLLIN}};
    char line[200] = "it wrote no message; run redis-server or valkey-server by hand";

    while (!answers(dir)) {
        poll(watch, 2, RETRY_MS);
        if (watch[1].revents != 0)
            return RLOCK_STOPPED;
        if (watch[0].revents != 0 && !read_last_line(told, line, sizeof line))
            return err_set(err, RLOCK_E_UNREACHABLE, 0,
                           "local: the private server didn't start: %s", line);
        if (rlock_clock_ms() >= deadline.at_ms)
            return err_set(
                err, RLOCK_E_UNREACHABLE, 0,
                "local: the private server accepts no connection within --connect-timeout: the "
                "machine is busy, or the server hangs");
    }
    return RLOCK_OK;
}

enum rlock_status private_server_process_start(int dir, struct rlock_deadline deadline,
                                               struct rlock_error *err)
{
    int told[2];
    enum rlock_status st;
    pid_t child;

    if (pipe2(told, O_CLOEXEC) != 0)
        return err_set(err, RLOCK_E_SYSTEM, errno, "local: the private server can't be started");
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0); /* a server that was killed has left it */
    child = fork();
    if (child == 0) {
        pid_t keeper = fork();

        if (keeper == 0)
            become_keeper(dir, told[1]);
        if (keeper < 0)
            dprintf(told[1], "%s\n", strerror(errno));
        _exit(0);
    }
    st = child > 0
             ? RLOCK_OK
             : err_set(err, RLOCK_E_SYSTEM, errno, "local: the private server can't be started");
    close(told[1]);
    if (child > 0) {
        waitpid(child, NULL, 0);
        st = await_start(dir, told[0], deadline, err);
    }
    close(told[0]);
    return st;
}
