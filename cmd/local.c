/* SPDX-License-Identifier: MIT */
/*
 * local: a private server on a Unix socket, for locks on one machine.
 *
 * Who uses the server holds a shared flock on a file beside its socket; the
 * kernel drops it however a user ends. A keeper process, the server's parent,
 * waits for the exclusive one: it gets that when nobody is left, and ends the
 * server while newcomers wait for it to be over. A second file serialises
 * starting.
 */
#include "local.h"

#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY_AGAIN_MS 2

static enum rlock_status fail(struct rlock_error *err, enum rlock_status st, const char *format,
                              ...) __attribute__((format(printf, 3, 4)));

static enum rlock_status fail(struct rlock_error *err, enum rlock_status st, const char *format,
                              ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->status = st;
    return st;
}

/* ---- the place ---- */

/* The same for all of one user's sessions, as far as the system has such a place. */
static void choose_directory(char path[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    unsigned uid = (unsigned)geteuid();
    struct stat is;

    snprintf(path, PATH_MAX, "/run/user/%u", uid);
    if (runtime != NULL && runtime[0] == '/')
        snprintf(path, PATH_MAX, "%s/rlock", runtime);
    else if (stat(path, &is) == 0 && S_ISDIR(is.st_mode) && is.st_uid == uid)
        snprintf(path, PATH_MAX, "/run/user/%u/rlock", uid);
    else if (uid == 0)
        snprintf(path, PATH_MAX, "/run/rlock");
    else
        snprintf(path, PATH_MAX, "/tmp/rlock-%u", uid);
}

/* A directory that only we can write to: whoever owns it could hand us a server of theirs. */
static enum rlock_status make_directory(const char *path, struct rlock_error *err)
{
    struct stat is;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail(err, RLOCK_E_CONFIG, "local: %.150s: %s", path, strerror(errno));
    if (lstat(path, &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() ||
        (is.st_mode & 077) != 0)
        return fail(err, RLOCK_E_CONFIG, "local: %.150s: not a directory of this user's alone",
                    path);
    if (strlen(path) + sizeof "/server.sock" > sizeof((struct sockaddr_un *)NULL)->sun_path)
        return fail(err, RLOCK_E_CONFIG, "local: %.150s: the path is too long for a socket", path);
    return RLOCK_OK;
}

static int open_beside(const char *directory, const char *name)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static bool is_over(struct rlock_until until)
{
    return until.at_ms != RLOCK_NEVER && rlock_clock_ms() >= until.at_ms;
}

/* flock knows neither a deadline nor a descriptor that cuts it short, and it is held briefly. */
static enum rlock_status take_lock(int fd, int kind, struct rlock_until until,
                                   struct rlock_error *err)
{
    struct pollfd stop = {.fd = until.stop_fd, .events = POLLIN};

    while (flock(fd, kind | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail(err, RLOCK_E_SYSTEM, "local: flock: %s", strerror(errno));
        if (is_over(until))
            return fail(err, RLOCK_E_UNREACHABLE, "local: its server neither starts nor ends");
        if (poll(&stop, 1, TRY_AGAIN_MS) > 0)
            return RLOCK_STOPPED;
    }
    return RLOCK_OK;
}

/* ---- the server ---- */

static bool answers(const char *socket_path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_there;

    snprintf(at.sun_path, sizeof at.sun_path, "%s", socket_path);
    is_there = fd >= 0 && (connect(fd, (struct sockaddr *)&at, sizeof at) == 0 || errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return is_there;
}

static void become_server(const char *directory, const char *socket_path, pid_t keeper, int log)
{
    static const char *const programs[] = {"valkey-server", "redis-server"};
    const char *argv[] = {"",           "--port",       "0",       "--unixsocket",
                          socket_path,  "--save",       "",        "--unixsocketperm",
                          "600",        "--dir",        directory, "--maxmemory-policy",
                          "noeviction", "--appendonly", "no",      NULL};
    char *const nothing[] = {NULL};
    size_t i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(1);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        argv[0] = programs[i];
        execvpe(programs[i], (char *const *)argv, nothing);
    }
    _exit(127);
}

/* Ends when nobody uses the server any more: the lock on `users` is the keeper's then. */
static pid_t watch_users(int users, pid_t keeper)
{
    pid_t watcher = fork();

    if (watcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == keeper && flock(users, LOCK_EX) != 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    return watcher;
}

/* The keeper shares neither session, terminal nor descriptors with who started it. */
static void become_keeper(const char *directory, const char *socket_path, int log, int alive)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int users = open_beside(directory, "users");
    pid_t keeper = getpid();
    pid_t watcher = -1;
    pid_t server;
    sigset_t none;
    int i;

    prctl(PR_SET_NAME, "rlock-local");
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (i = 0; i <= STDERR_FILENO; i++)
        dup2(nothing, i);
    descriptors_keep((int[]){users, log, alive}, 3);
    if (users < 0 || chdir(directory) != 0)
        _exit(1);
    server = fork();
    if (server == 0)
        become_server(directory, socket_path, keeper, log);
    close(log);
    if (server > 0)
        watcher = watch_users(users, keeper);
    if (watcher > 0 && waitpid(-1, NULL, 0) == server) {
        kill(watcher, SIGKILL); /* the server ended by itself */
        _exit(0);
    }
    unlink(socket_path);
    if (server > 0)
        kill(server, SIGKILL); /* nothing of it is to be kept */
    _exit(0);
}

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

/* Wait until it answers; `keeper` is readable once the keeper, and so the server, has ended. */
static enum rlock_status await(const char *socket_path, int keeper, int log,
                               struct rlock_until until, struct rlock_error *err)
{
    struct pollfd watch[] = {{.fd = keeper, .events = POLLIN},
                             {.fd = until.stop_fd, .events = POLLIN}};
    char line[160];

    while (!answers(socket_path)) {
        poll(watch, 2, TRY_AGAIN_MS);
        if (watch[1].revents != 0)
            return RLOCK_STOPPED;
        if (watch[0].revents != 0) {
            read_log(log, line, sizeof line);
            if (line[0] == '\0')
                return fail(
                    err, RLOCK_E_UNREACHABLE,
                    "local: neither valkey-server nor redis-server can be run; install one");
            return fail(err, RLOCK_E_UNREACHABLE, "local: its server ended: %s", line);
        }
        if (is_over(until))
            return fail(err, RLOCK_E_UNREACHABLE, "local: its server doesn't answer");
    }
    return RLOCK_OK;
}

static enum rlock_status start(const char *directory, const char *socket_path,
                               struct rlock_until until, struct rlock_error *err)
{
    enum rlock_status st;
    int alive[2] = {-1, -1}; /* the keeper holds one end: its end shows at the other */
    int log = memfd_create("rlock-local", MFD_CLOEXEC);
    pid_t between = -1;

    if (log >= 0 && pipe2(alive, O_CLOEXEC) == 0)
        between = fork();
    if (between == 0) {
        if (fork() == 0) /* nobody's child: it outlives us */
            become_keeper(directory, socket_path, log, alive[1]);
        _exit(0);
    }
    if (between > 0) {
        waitpid(between, NULL, 0);
        close(alive[1]);
        st = await(socket_path, alive[0], log, until, err);
    } else {
        st = fail(err, RLOCK_E_SYSTEM, "local: can't start its server: %s", strerror(errno));
        close(alive[1]);
    }
    close(alive[0]);
    close(log);
    return st;
}

/* Only one of those who come at the same moment starts it. */
static enum rlock_status make_sure(const char *directory, const char *socket_path,
                                   struct rlock_until until, struct rlock_error *err)
{
    enum rlock_status st;
    int turn;

    if (answers(socket_path))
        return RLOCK_OK;
    turn = open_beside(directory, "start");
    if (turn < 0)
        return fail(err, RLOCK_E_SYSTEM, "local: %.150s: %s", directory, strerror(errno));
    st = take_lock(turn, LOCK_EX, until, err);
    if (st == RLOCK_OK && !answers(socket_path))
        st = start(directory, socket_path, until, err);
    close(turn);
    return st;
}

/* What means something in a URL is written %XX. */
static void write_url(char url[PATH_MAX], const char *path)
{
    size_t used = (size_t)snprintf(url, PATH_MAX, "unix://");

    for (; *path != '\0' && used + 4 < PATH_MAX; path++)
        used += (size_t)snprintf(url + used, PATH_MAX - used,
                                 strchr("%?#", *path) != NULL ? "%%%02X" : "%c", *path);
}

enum rlock_status local_open(struct local *local, struct rlock_until until, struct rlock_error *err)
{
    char directory[PATH_MAX];
    char socket_path[PATH_MAX + 16];
    enum rlock_status st;

    choose_directory(directory);
    st = make_directory(directory, err);
    if (st != RLOCK_OK)
        return st;
    local->fd = open_beside(directory, "users");
    if (local->fd < 0)
        return fail(err, RLOCK_E_SYSTEM, "local: %.150s: %s", directory, strerror(errno));
    snprintf(socket_path, sizeof socket_path, "%s/server.sock", directory);
    write_url(local->url, socket_path);
    st = take_lock(local->fd, LOCK_SH, until, err);
    if (st == RLOCK_OK)
        st = make_sure(directory, socket_path, until, err);
    if (st != RLOCK_OK)
        local_close(local);
    return st;
}

void local_close(struct local *local)
{
    if (local->fd >= 0)
        close(local->fd);
    local->fd = -1;
}
