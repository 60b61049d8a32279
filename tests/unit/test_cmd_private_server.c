/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_private_server: the private server runs for as long as a process uses it, and no longer.
 *
 * This program is also the server: the test sets PATH to a directory in which valkey-server is a
 * copy of this program. This server listens and says what it was started with. The test is the
 * subreaper of all processes that it starts, so it can wait for the end of each.
 */
#include "fds.h"
#include "session/private_server.h"
#include "session/private_server_dir.h"
#include "session/private_server_process.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 30000 /* how long a test waits at most: a busy machine runs processes late */
#define SHORT_MS 60       /* how long a test lets a call wait in vain */
#define OTHER_UID 12345

static char top[] = "/tmp/rlock-server-XXXXXX"; /* a directory of this test alone */
static char dir_path[64];                       /* the private server's directory */
static char bin_path[64];                       /* the directory with valkey-server */
static int dir = -1;
static struct rlock_error err;

/* ---- the server ---- */

static int listen_here(int backlog)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = PRIVATE_SERVER_SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, backlog) == 0 ? fd : -1;
}

static long long soft_limit(int which)
{
    struct rlimit limit;

    return getrlimit((unsigned)which, &limit) != 0 ? -2
           : limit.rlim_cur == RLIM_INFINITY       ? -1
                                                   : (long long)limit.rlim_cur;
}

/* Writes what the server was started with to the file "about" in its directory. */
static void write_about(char *const *argv, char *const *envp)
{
    FILE *out = fopen("about", "w");
    char input[100] = "";
    struct sigaction of_xfsz;
    sigset_t mask;
    int n_variables = 0;

    if (out == NULL)
        return;
    for (; *envp != NULL; envp++)
        n_variables += strncmp(*envp, "LSAN_", 5) != 0 && strncmp(*envp, "ASAN_", 5) != 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    sigaction(SIGXFSZ, NULL, &of_xfsz);
    (void)!readlink("/proc/self/fd/0", input, sizeof input - 1);
    fprintf(out, "pid=%d parent=%d variables=%d input=%s\n", (int)getpid(), (int)getppid(),
            n_variables, input);
    fprintf(out, "files=%lld cpu=%lld core=%lld nice=%d policy=%d\n", soft_limit(RLIMIT_NOFILE),
            soft_limit(RLIMIT_CPU), soft_limit(RLIMIT_CORE), getpriority(PRIO_PROCESS, 0),
            sched_getscheduler(0));
    fprintf(out,
            "child_blocked=%d usr1_blocked=%d xfsz_ignored=%d\nargv=", sigismember(&mask, SIGCHLD),
            sigismember(&mask, SIGUSR1), of_xfsz.sa_handler == SIG_IGN);
    for (argv++; *argv != NULL; argv++)
        fprintf(out, "%s|", *argv);
    fclose(out);
}

/* What the server does is in the file "mode" in its directory. */
static int be_server(char *const *argv, char *const *envp)
{
    FILE *in = fopen("mode", "r");
    char mode[32] = "";

    alarm(500); /* ends this process if the test leaves it behind */
    if (in != NULL && fgets(mode, sizeof mode, in) == NULL)
        mode[0] = '\0';
    if (strcmp(mode, "quiet") == 0)
        return 1;
    if (strcmp(mode, "fail") == 0) {
        printf("the first line\n");
        fflush(stdout);
        fprintf(stderr, "the last line\n\n");
        return 1;
    }
    write_about(argv, envp);
    if (strcmp(mode, "deaf") != 0)
        (void)!listen_here(16);
    for (;;)
        pause();
}

/* ---- what the tests share ---- */

/* A name in a directory; the result is valid until the next call but three. */
static const char *in(const char *folder, const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned n;
    char *path = paths[n++ % 4];

    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static void set_mode(const char *mode)
{
    FILE *out = fopen(in(dir_path, "mode"), "w");

    fputs(mode, out);
    fclose(out);
}

/* Reads a file. The text is valid until the next call. NULs become blanks. */
static const char *text_of(const char *path)
{
    static char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    ssize_t i;

    if (fd >= 0)
        close(fd);
    for (i = 0; i < n; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void remove_files(void)
{
    static const char *const names[] = {PRIVATE_SERVER_USERS, PRIVATE_SERVER_START,
                                        PRIVATE_SERVER_SOCKET, "about", "mode"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        unlinkat(dir, names[i], 0);
}

static bool about_has(const char *words)
{
    return strstr(text_of(in(dir_path, "about")), words) != NULL;
}

static pid_t pid_in_about(const char *name)
{
    const char *at = strstr(text_of(in(dir_path, "about")), name);

    return at != NULL ? atoi(at + strlen(name)) : 0;
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

/* Waits for the end of a process that this test has adopted. -1: it didn't end. */
static int status_of(pid_t pid)
{
    int64_t until = rlock_clock_ms() + PATIENCE_MS;
    int status = -1;

    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0 && rlock_clock_ms() < until)
        pause_ms(1);
    return status;
}

/* Waits until no descendant of this test is left. */
static bool all_ended(void)
{
    int64_t until = rlock_clock_ms() + PATIENCE_MS;

    while (rlock_clock_ms() < until) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);

        if (pid < 0)
            return true;
        if (pid == 0)
            pause_ms(1);
    }
    return false;
}

static struct rlock_deadline in_ms(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

/* Becomes a user of the server. Returns a descriptor with the shared flock. */
static int use(void)
{
    int fd = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);

    return flock(fd, LOCK_SH | LOCK_NB) == 0 ? fd : -1;
}

/* A child of the process that isn't `not_this`; 0: there is none. */
static pid_t child_of(pid_t pid, pid_t not_this)
{
    char path[64];
    char text[200];
    char *at;
    char *saved;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    snprintf(text, sizeof text, "%s", text_of(path));
    for (at = strtok_r(text, " \n", &saved); at != NULL; at = strtok_r(NULL, " \n", &saved))
        if (atoi(at) != not_this)
            return atoi(at);
    return 0;
}

/* Cuts the blanks at the end of a text off. */
static const char *words_of(const char *text)
{
    static char words[4096];
    size_t n = strlen(text);

    while (n > 0 && text[n - 1] == ' ')
        n--;
    snprintf(words, sizeof words, "%.*s", (int)n, text);
    return words;
}

static const char *proc(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return text_of(path);
}

/* ---- the server's process ---- */

static void test_start(void)
{
    int fds = count_fds();
    int users = use();
    pid_t server;
    pid_t parent;
    int connection;
    int status;

    errno = 0;
    ok(private_server_process_connect(dir) < 0 && errno == ENOENT, "no server runs");
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_OK,
           "the server is started");
    connection = private_server_process_connect(dir);
    ok(connection >= 0 && (fcntl(connection, F_GETFD) & FD_CLOEXEC) != 0,
       "the server accepts a connection, which closes on exec");
    server = private_server_process_pid(connection);
    parent = pid_in_about("parent=");
    ok(server > 0 && server == pid_in_about("pid="), "the connection tells the server's pid");
    is_int(private_server_process_clients_max(connection), 0, "the server may have many clients");
    is_int(private_server_process_pid(dir), 0, "a descriptor that is no socket has no pid");
    close(connection);
    ok(about_has("argv=--port|0|--unixsocket|" PRIVATE_SERVER_SOCKET
                 "|--unixsocketperm|600|--timeout|0|--save||--appendonly|no|--maxmemory-policy|"
                 "noeviction|"),
       "the server has no port, no data on disk, and evicts no key");
    ok(about_has("variables=0 input=/dev/null"), "the server inherits no variable and no input");
    ok(about_has("child_blocked=0 usr1_blocked=0 xfsz_ignored=1"),
       "no signal is blocked in the server, and a full log doesn't kill it");
    is_str(proc(parent, "comm"), "rlock-local\n", "the server's parent has a name of its own");
    is_str(words_of(proc(parent, "cmdline")), "rlock-local", "it has the name as its argument");
    is_str(words_of(proc(parent, "environ")), "", "it keeps no variable of its starter");
    is_int(getsid(parent), parent, "the parent has a session of its own");
    is_int(count_fds(), fds + 1, "starting the server leaves no descriptor open");
    close(users);
    status = status_of(parent);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "without users the server's parent exits");
    status = status_of(server);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the parent has killed the server");
    ok(faccessat(dir, PRIVATE_SERVER_SOCKET, F_OK, 0) != 0, "the parent has removed the socket");
    ok(all_ended(), "no process is left");
}

static void test_limits(void)
{
    struct rlimit files;
    struct rlimit cpu;
    char wanted[64];
    rlim_t most;
    int users = use();
    bool is_root = geteuid() == 0;

    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, files.rlim_max});
    setrlimit(RLIMIT_CPU, &(struct rlimit){900, cpu.rlim_max});
    if (is_root)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1);
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_OK,
           "a server is started under limits");
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_CPU, &cpu);
    if (is_root)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1);
    most = is_root && files.rlim_max < 10064 ? 10064 : files.rlim_max;
    snprintf(wanted, sizeof wanted, "files=%lld ", (long long)most);
    okf(about_has(wanted), "the server may have %s files open", wanted);
    snprintf(wanted, sizeof wanted, "cpu=%lld core=0 ",
             cpu.rlim_max == RLIM_INFINITY || is_root ? -1 : (long long)cpu.rlim_max);
    okf(about_has(wanted), "the server has no limit that its starter had: %s", wanted);
    ok(!is_root || about_has("nice=0 policy=0"), "the server has the usual priority");
    close(users);
    ok(all_ended(), "no process is left");
}

/* Tests how many clients a server can have whose hard limit of files is low. */
static void test_few_clients(void)
{
    int status = -1;
    pid_t pid;

    remove_files();
    pid = fork();
    if (pid == 0) { /* a process of an ordinary user: it can't raise its hard limit again */
        struct private_server server;

        if (geteuid() == 0 && (fchown(dir, OTHER_UID, OTHER_UID) != 0 ||
                               setresgid(OTHER_UID, OTHER_UID, OTHER_UID) != 0 ||
                               setresuid(OTHER_UID, OTHER_UID, OTHER_UID) != 0))
            _exit(2);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, 100});
        if (private_server_open(&server, in_ms(PATIENCE_MS), PATIENCE_MS, &err) != RLOCK_OK)
            _exit(3);
        if (server.clients_max != 100 - 32)
            _exit(4);
        private_server_close(&server);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    (void)!fchown(dir, geteuid(), getegid());
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0,
           "with 100 files the server can have 68 clients");
    ok(all_ended(), "no process is left");
    remove_files();
}

static void test_parent_or_server_killed(void)
{
    int users = use();
    pid_t server;
    pid_t parent;
    int status;

    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_OK, "a server runs");
    server = pid_in_about("pid=");
    parent = pid_in_about("parent=");
    ok(parent > 0 && kill(parent, SIGKILL) == 0 && WIFSIGNALED(status_of(parent)),
       "the server's parent gets KILL");
    status = status_of(server);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the kernel kills the server, too");
    ok(all_ended(), "the process that waits for the last user has ended, too");
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    ok(private_server_process_start(dir, in_ms(PATIENCE_MS), &err) == RLOCK_OK &&
           kill(pid_in_about("pid="), SIGKILL) == 0,
       "the server gets KILL");
    status = status_of(pid_in_about("parent="));
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "its parent exits");
    ok(faccessat(dir, PRIVATE_SERVER_SOCKET, F_OK, 0) != 0, "the parent has removed the socket");
    ok(all_ended(), "no process is left");
    close(users);
}

/* Waits until the process has the file of the directory open that has the name PRIVATE_SERVER_USERS
 * now. */
static bool opens_users(pid_t pid)
{
    int64_t until = rlock_clock_ms() + PATIENCE_MS;
    char path[64];
    struct stat wanted;
    struct stat is;
    int fd;

    if (fstatat(dir, PRIVATE_SERVER_USERS, &wanted, 0) != 0)
        return false;
    for (; rlock_clock_ms() < until && kill(pid, 0) == 0; pause_ms(1))
        for (fd = 0; fd < 32; fd++) {
            snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
            if (stat(path, &is) == 0 && is.st_ino == wanted.st_ino && is.st_dev == wanted.st_dev)
                return true;
        }
    return false;
}

static void test_waiting_process(void)
{
    int64_t until = rlock_clock_ms() + PATIENCE_MS;
    int users = use();
    int newer;
    pid_t server;
    pid_t parent;
    pid_t waiter;
    pid_t next = 0;
    int status;

    ok(private_server_process_start(dir, in_ms(PATIENCE_MS), &err) == RLOCK_OK, "a server runs");
    server = pid_in_about("pid=");
    parent = pid_in_about("parent=");
    while ((waiter = child_of(parent, server)) == 0 && rlock_clock_ms() < until)
        pause_ms(1);
    ok(waiter > 0 && kill(waiter, SIGKILL) == 0, "the process that waits for the last user dies");
    while (((next = child_of(parent, server)) == 0 || next == waiter) && rlock_clock_ms() < until)
        pause_ms(1);
    ok(next > 0 && next != waiter, "the parent starts another one");
    unlinkat(dir, PRIVATE_SERVER_USERS, 0);
    newer = use();
    close(users);
    ok(opens_users(parent), "if its file was removed, the parent waits for the users of the next");
    is_int(waitpid(parent, &status, WNOHANG), 0, "the server runs on");
    close(newer);
    status = status_of(parent);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "without users the parent exits");
    ok(all_ended(), "no process is left");
}

/* The errno with which execvpe(3) fails in the server's process; 0: it does its usual work. */
static int execvpe_errno;

int __real_execvpe(const char *file, char *const argv[], char *const envp[]);
int __wrap_execvpe(const char *file, char *const argv[], char *const envp[]);

int __wrap_execvpe(const char *file, char *const argv[], char *const envp[])
{
    if (execvpe_errno == 0)
        return __real_execvpe(file, argv, envp);
    errno = execvpe_errno;
    return -1;
}

/*
 * Checks that no server starts as execvpe(3) fails with the errno `failed`: with the status `st`,
 * and with an error that ends in `advice` behind the reason.
 */
static void check_failed_exec(int failed, enum rlock_status st, const char *advice)
{
    char wanted[200];

    snprintf(wanted, sizeof wanted,
             "local: neither valkey-server nor redis-server can be run: %s%s", strerror(failed),
             advice);
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), st,
           "no server starts if its program can't be executed");
    is_str(err.text, wanted, "the error has the reason and the right advice");
}

/* The kernel refuses to execute a server's program although it is installed. */
static void test_refused_exec(void)
{
    static const int failures[] = {ENOMEM, ENOEXEC, E2BIG};
    int users = use();
    size_t i;

    for (i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        execvpe_errno = failures[i];
        check_failed_exec(failures[i], RLOCK_E_SYSTEM, "");
    }
    execvpe_errno = 0;
    close(users);
    ok(all_ended(), "no process is left");
}

static void test_no_start(void)
{
    int users = use();
    int ends[2];

    err = (struct rlock_error){.status = RLOCK_OK};
    setenv("PATH", top, 1);
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_E_UNREACHABLE,
           "without a server program no server starts");
    is_str(err.text, "local: neither valkey-server nor redis-server can be run; install one",
           "the error says what to install");
    close(open(in(top, "valkey-server"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    check_failed_exec(EACCES, RLOCK_E_UNREACHABLE, "; install one that this user may execute");
    setenv("PATH", in(top, "valkey-server"), 1); /* a file in PATH, which can't be searched */
    check_failed_exec(ENOTDIR, RLOCK_E_UNREACHABLE, "; install one that this user may execute");
    unlink(in(top, "valkey-server"));
    setenv("PATH", bin_path, 1);
    set_mode("fail");
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_E_UNREACHABLE,
           "a server that ends at once is an error");
    is_str(err.text, "local: the private server ended: the last line", "the error has its reason");
    set_mode("quiet");
    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_E_UNREACHABLE,
           "a server that ends at once, and says nothing, is an error");
    is_str(err.text, "local: the private server ended as it started, and didn't say why",
           "the error doesn't say that a program is missing");
    set_mode("deaf");
    is_int(private_server_process_start(dir, in_ms(SHORT_MS), &err), RLOCK_E_UNREACHABLE,
           "a server that doesn't listen is an error");
    is_str(err.text, "local: the private server doesn't accept connections",
           "the error says that the server is silent");
    if (!ok(pipe2(ends, O_CLOEXEC) == 0, "a pipe is made"))
        return;
    close(ends[1]);
    is_int(private_server_process_start(
               dir, (struct rlock_deadline){rlock_clock_ms() + PATIENCE_MS, ends[0]}, &err),
           RLOCK_STOPPED, "a readable descriptor ends the wait");
    close(ends[0]);
    close(users);
    ok(all_ended(), "no process is left");
    unlinkat(dir, "mode", 0);
}

/*
 * A file of the lock that can't be opened: no server may run that nobody would end. Without its
 * exit the parent would start a server in the starter's directory, and then kill it.
 */
static void test_users_unusable(void)
{
    int here = open(".", O_PATH | O_CLOEXEC);
    char wanted[200];
    int i;

    remove_files();
    ok(symlinkat("nowhere", dir, PRIVATE_SERVER_USERS) == 0 && chdir(top) == 0,
       "the file of the users is a symbolic link");
    for (i = 0; i < 20; i++)
        (void)private_server_process_start(dir, in_ms(PATIENCE_MS), &err);
    is_int(err.status, RLOCK_E_SYSTEM, "no server starts");
    snprintf(wanted, sizeof wanted, "local: can't open the lock file users: %s", strerror(ELOOP));
    is_str(err.text, wanted, "the error names the file");
    ok(all_ended(), "no process is left");
    ok(access("about", F_OK) != 0 && !about_has("pid="), "no server has run");
    (void)!fchdir(here);
    close(here);
    unlinkat(dir, PRIVATE_SERVER_USERS, 0);
}

/* ---- connections to listeners of this process ---- */

/* Listens on the server's socket as the server would. */
static int listen_as_server(int backlog)
{
    int here = open(".", O_PATH | O_CLOEXEC);
    int fd;

    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    fd = fchdir(dir) == 0 ? listen_here(backlog) : -1;
    (void)!fchdir(here);
    close(here);
    return fd;
}

static void test_connect(void)
{
    int fds = count_fds();
    int waiting[8];
    int n = 0;
    int listener = listen_as_server(0);

    while (n < 8 && (waiting[n] = private_server_process_connect(dir)) >= 0)
        n++;
    ok(n > 0 && n < 8 && errno == EAGAIN, "a server whose backlog is full is told by EAGAIN");
    while (n > 0)
        close(waiting[--n]);
    close(listener);
    ok(private_server_process_connect(dir) < 0 && errno == ECONNREFUSED,
       "a socket on which no process listens is told by another errno");
    if (geteuid() != 0) {
        skip("the server of another user is refused", "needs root");
    } else {
        ok(fchown(dir, OTHER_UID, 0) == 0 && seteuid(OTHER_UID) == 0, "another user listens");
        listener = listen_as_server(1);
        ok(seteuid(0) == 0 && private_server_process_connect(dir) < 0 && errno == EPERM,
           "the server of another user is refused");
        close(listener);
        listener = listen_as_server(1);
        (void)!fchmodat(dir, PRIVATE_SERVER_SOCKET, 0777, 0);
        ok(seteuid(OTHER_UID) == 0 && (n = private_server_process_connect(dir)) >= 0,
           "a server of root is used");
        ok(seteuid(0) == 0 && fchown(dir, 0, 0) == 0, "this process is root again");
        close(n);
        close(listener);
    }
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    is_int(count_fds(), fds, "no descriptor is left open");
}

/* ---- using the server ---- */

/* What flock(2) does, before it does its usual work, at its n-th call from now; 0: nothing. */
static int flock_fails_at;

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

/* The linker replaces flock(2) by this function, which can fail as beside other processes. */
int __wrap_flock(int fd, int how)
{
    if (flock_fails_at > 0 && --flock_fails_at == 0) {
        errno = EWOULDBLOCK;
        return -1;
    }
    return __real_flock(fd, how);
}

/* Opens the server into a struct that had other values. */
static enum rlock_status open_server(struct private_server *server, int64_t ms)
{
    memset(server, 0x11, sizeof *server);
    err = (struct rlock_error){.status = RLOCK_OK};
    return private_server_open(server, in_ms(ms), PATIENCE_MS, &err);
}

static int open_file(const char *name)
{
    return private_server_dir_open_file(dir, name);
}

static void test_open(void)
{
    struct private_server one;
    struct private_server two;
    int fds = count_fds();
    char wanted[64];
    pid_t pid;

    is_int(open_server(&one, PATIENCE_MS), RLOCK_OK, "the first user starts the server");
    ok(one.users_fd >= 0 && one.alive_fd >= 0 && one.dir_fd >= 0, "the user has its descriptors");
    is_int(one.clients_max, 0, "the server may have many clients");
    snprintf(wanted, sizeof wanted, "unix:///proc/self/fd/%d/server.sock", one.dir_fd);
    is_str(one.url, wanted, "the URL leads to the socket by a descriptor");
    pid = pid_in_about("pid=");
    is_int(open_server(&two, PATIENCE_MS), RLOCK_OK, "the second user joins");
    is_int(private_server_process_pid(two.alive_fd), pid, "both use the same server");
    is_int(two.clients_max, 0, "the second user knows of no limit of clients");
    ok(!private_server_has_ended(&one) && one.alive_fd >= 0, "the server has not ended");
    private_server_close(&one);
    ok(one.users_fd < 0 && one.alive_fd < 0 && one.dir_fd < 0, "a closed struct has none");
    ok(!private_server_has_ended(&one), "nor has it ended for a process that doesn't use it");
    is_int(kill(pid, 0), 0, "the server runs on for the other user");
    private_server_close(&two);
    ok(all_ended(), "without users the server and its helpers end");
    is_int(count_fds(), fds, "no descriptor is left open");
}

static void test_open_beside_others(void)
{
    struct private_server server;
    int fds = count_fds();
    int start = open_file(PRIVATE_SERVER_START);
    int users = open_file(PRIVATE_SERVER_USERS);
    int ends[2];
    int listener;

    ok(__real_flock(start, LOCK_EX | LOCK_NB) == 0, "another process starts a server");
    is_int(open_server(&server, SHORT_MS), RLOCK_BUSY, "this one waits until its deadline");
    ok(strstr(err.text, "local: the private server has ended, and processes") == err.text,
       "the error says what others still do");
    ok(server.users_fd < 0 && server.alive_fd < 0 && server.dir_fd < 0, "the struct is closed");
    if (ok(pipe2(ends, O_CLOEXEC) == 0, "a pipe is made")) {
        close(ends[1]);
        is_int(private_server_open(&server,
                                   (struct rlock_deadline){rlock_clock_ms() + PATIENCE_MS, ends[0]},
                                   PATIENCE_MS, &err),
               RLOCK_STOPPED, "a readable descriptor ends the wait");
        close(ends[0]);
    }
    close(start);
    ok(__real_flock(users, LOCK_SH) == 0, "another process still uses a server that has ended");
    is_int(open_server(&server, SHORT_MS), RLOCK_BUSY, "no server starts beside that process");
    close(users);
    unlinkat(dir, "about", 0);
    /* 1. Another process has the exclusive flock, and drops it; 2. a server answers. */
    listener = listen_as_server(16);
    flock_fails_at = 1;
    is_int(open_server(&server, PATIENCE_MS), RLOCK_OK,
           "a server without users is joined at the next try");
    ok(!about_has("pid="), "no other server was started");
    is_int(private_server_process_pid(server.alive_fd), getpid(), "the listening server is used");
    private_server_close(&server);
    close(listener);
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    is_int(count_fds(), fds, "no descriptor is left open");
    unlinkat(dir, PRIVATE_SERVER_USERS, 0);
    ok(symlinkat("nowhere", dir, PRIVATE_SERVER_USERS) == 0 &&
           open_server(&server, PATIENCE_MS) == RLOCK_E_SYSTEM,
       "a lock file that is a symbolic link is refused");
    unlinkat(dir, PRIVATE_SERVER_USERS, 0);
    unlinkat(dir, PRIVATE_SERVER_START, 0);
    ok(symlinkat("nowhere", dir, PRIVATE_SERVER_START) == 0 &&
           open_server(&server, PATIENCE_MS) == RLOCK_E_SYSTEM,
       "so is the other lock file");
    unlinkat(dir, PRIVATE_SERVER_START, 0);
    setenv("RLOCK_LOCAL_DIR", in(top, "none/here"), 1);
    is_int(open_server(&server, PATIENCE_MS), RLOCK_E_CONFIG, "a missing directory is an error");
    setenv("RLOCK_LOCAL_DIR", dir_path, 1);
    is_int(count_fds(), fds, "no descriptor is left open after an error");
}

/* The other end of the server's oldest connection that was not accepted yet. */
static int accept_at(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

static void test_has_ended(void)
{
    struct private_server server;
    int fds = count_fds();
    int listener = listen_as_server(1);
    int others[8];
    int n = 0;
    int peer;

    is_int(open_server(&server, PATIENCE_MS), RLOCK_OK, "this process uses its own listener");
    peer = accept_at(listener);
    ok(!private_server_has_ended(&server), "a silent connection is one to a living server");
    close(peer);
    ok(!private_server_has_ended(&server) && server.alive_fd >= 0,
       "if the server has only closed the connection, there is a new one");
    peer = accept_at(listener);
    ok(write(peer, "-ERR max", 8) == 8 && close(peer) == 0 && !private_server_has_ended(&server),
       "a server that refuses a client has not ended");
    ok(server.alive_fd < 0, "the refused connection is closed");
    ok(!private_server_has_ended(&server), "without a connection nothing is known");
    private_server_close(&server);
    is_int(open_server(&server, PATIENCE_MS), RLOCK_OK, "the listener is used again");
    peer = accept_at(listener);
    while (n < 8 && (others[n] = private_server_process_connect(dir)) >= 0)
        n++;
    close(peer);
    ok(n < 8 && !private_server_has_ended(&server), "a server with a full backlog has not ended");
    while (n > 0)
        close(others[--n]);
    private_server_close(&server);
    close(listener);
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    is_int(count_fds(), fds, "no descriptor is left open");
}

static void test_reopen(void)
{
    struct private_server server;
    struct private_server other;
    char device[64];
    int fds = count_fds();
    char url[64];
    pid_t pid;

    ok(open_server(&server, PATIENCE_MS) == RLOCK_OK &&
           open_server(&other, PATIENCE_MS) == RLOCK_OK,
       "a server has two users");
    snprintf(url, sizeof url, "%s", server.url);
    pid = pid_in_about("pid=");
    private_server_reopen(&server, -1, PATIENCE_MS);
    is_int(private_server_process_pid(server.alive_fd), pid, "a living server stays in use");
    ok(kill(pid, SIGKILL) == 0 && all_ended(), "the server gets KILL");
    ok(private_server_has_ended(&server), "the server has ended");
    ok(!private_server_has_ended(&server), "this is said once");
    private_server_reopen(&server, -1, PATIENCE_MS);
    snprintf(device, sizeof device, "/proc/self/fd/%d", server.dir_fd);
    ok(server.users_fd < 0 && server.alive_fd < 0,
       "beside another user of the ended server there is no next one");
    ok(readlink(device, url, sizeof url) == 9 && strncmp(url, "/dev/null", 9) == 0,
       "the URL leads to no server");
    private_server_close(&other);
    private_server_reopen(&server, -1, PATIENCE_MS);
    snprintf(url, sizeof url, "unix:///proc/self/fd/%d/server.sock", server.dir_fd);
    ok(server.users_fd >= 0 && server.alive_fd >= 0 && strcmp(url, server.url) == 0,
       "without that user the next server starts, under the same URL");
    ok(private_server_process_pid(server.alive_fd) == pid_in_about("pid=") &&
           pid_in_about("pid=") != pid,
       "it is a new server");
    ok(private_server_dir_has(dir, ".", server.dir_fd), "the URL leads to its directory");
    private_server_close(&server);
    private_server_reopen(&server, -1, PATIENCE_MS);
    is_int(server.users_fd, -1, "a closed struct is not opened again");
    ok(all_ended(), "no process is left");
    is_int(count_fds(), fds, "no descriptor is left open");
}

/* Copies this program to `path`: another user may have no access to the directory of the tests. */
static bool copy_program(const char *path)
{
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    bool is_done = from >= 0 && to >= 0;
    char bytes[65536];
    ssize_t n = 1;

    while (is_done && n > 0) {
        n = read(from, bytes, sizeof bytes);
        is_done = n >= 0 && write(to, bytes, (size_t)n) == n;
    }
    is_done = is_done && fchmod(to, 0755) == 0;
    close(from);
    close(to);
    return is_done;
}

static bool prepare(void)
{
    if (mkdtemp(top) == NULL)
        return false;
    snprintf(dir_path, sizeof dir_path, "%s/server", top);
    snprintf(bin_path, sizeof bin_path, "%s/bin", top);
    setenv("RLOCK_LOCAL_DIR", dir_path, 1);
    setenv("PATH", bin_path, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* another user has to reach the programs, in a directory of mode 0700 by mkdtemp(3) */
    return chmod(top, 0755) == 0 && mkdir(bin_path, 0755) == 0 &&
           copy_program(in(bin_path, "valkey-server")) && mkdir(dir_path, 0700) == 0 &&
           (dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0;
}

int main(int argc, char **argv, char **envp)
{
    (void)argc;
    if (strcmp(argv[0], "valkey-server") == 0)
        return be_server(argv, envp);
    alarm(500);
    if (!ok(prepare(), "a directory for this test is created"))
        return done_testing();
    RUN(test_start());
    RUN(test_limits());
    RUN(test_few_clients());
    RUN(test_parent_or_server_killed());
    RUN(test_waiting_process());
    RUN(test_no_start());
    RUN(test_refused_exec());
    RUN(test_users_unusable());
    RUN(test_connect());
    RUN(test_open());
    RUN(test_open_beside_others());
    RUN(test_has_ended());
    RUN(test_reopen());
    remove_files();
    unlink(in(bin_path, "valkey-server"));
    ok(rmdir(dir_path) == 0 && rmdir(bin_path) == 0 && rmdir(top) == 0, "no file is left");
    return done_testing();
}
