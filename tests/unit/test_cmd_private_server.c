/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_private_server: the private server runs for as long as a process uses it, and no longer.
 *
 * This program is also the server: the test sets PATH to a directory in which valkey-server is a
 * copy of this program. This server listens and says what it was started with. The test is the
 * subreaper of all processes that it starts, so it can wait for the end of each.
 */
#include "child.h"
#include "fds.h"
#include "files.h"
#include "session/private_server.h"
#include "session/private_server_process.h"
#include "tap.h"
#include "user_entry.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

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

static long long soft_limit(pid_t pid, int which)
{
    struct rlimit limit;

    return prlimit(pid, (unsigned)which, NULL, &limit) != 0 ? -2
           : limit.rlim_cur == RLIM_INFINITY                ? -1
                                                            : (long long)limit.rlim_cur;
}

/* Writes what the server was started with to the file "about" in its directory. */
static void write_about(char *const *argv, char *const *envp)
{
    FILE *out = fopen("about", "w");
    char input[100] = "";
    sigset_t mask;
    int n_variables = 0;

    if (out == NULL)
        return;
    for (; *envp != NULL; envp++)
        n_variables += strncmp(*envp, "LSAN_", 5) != 0 && strncmp(*envp, "ASAN_", 5) != 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    (void)!readlink("/proc/self/fd/0", input, sizeof input - 1);
    fprintf(out, "pid=%d parent=%d variables=%d input=%s\n", (int)getpid(), (int)getppid(),
            n_variables, input);
    fprintf(out, "keeper=%lld files=%lld cpu=%lld core=%lld nice=%d policy=%d\n",
            soft_limit(getppid(), RLIMIT_CPU), soft_limit(0, RLIMIT_NOFILE),
            soft_limit(0, RLIMIT_CPU), soft_limit(0, RLIMIT_CORE), getpriority(PRIO_PROCESS, 0),
            sched_getscheduler(0));
    fprintf(out, "child_blocked=%d usr1_blocked=%d\nargv=", sigismember(&mask, SIGCHLD),
            sigismember(&mask, SIGUSR1));
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

static void remove_files(void)
{
    static const char *const names[] = {PRIVATE_SERVER_USERS, PRIVATE_SERVER_SOCKET, "about",
                                        "mode"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        unlinkat(dir, names[i], 0);
}

static bool about_has(const char *words)
{
    return strstr(read_file(in(dir_path, "about")), words) != NULL;
}

static pid_t pid_in_about(const char *name)
{
    const char *at = strstr(read_file(in(dir_path, "about")), name);

    return at != NULL ? atoi(at + strlen(name)) : 0;
}

/* Waits until no descendant of this test is left; alarm(2) ends this test if one stays. */
static bool all_ended(void)
{
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return errno == ECHILD;
}

static struct rlock_deadline in_ms(int64_t ms)
{
    return (struct rlock_deadline){rlock_clock_ms() + ms, -1};
}

/* Takes the flock as LOCK_EX, to start a server, or LOCK_SH, as a user. Returns its descriptor. */
static int take(int how)
{
    int fd = private_server_process_open_users(dir);

    return flock(fd, how | LOCK_NB) == 0 ? fd : -1;
}

/* Starts a server with the flock, and becomes its user. Returns the descriptor of the flock. */
static int start(void)
{
    int users = take(LOCK_EX);

    is_int(private_server_process_start(dir, in_ms(PATIENCE_MS), &err), RLOCK_OK,
           "the server is started");
    ok(flock(users, LOCK_SH) == 0, "this process is its user");
    return users;
}

static bool is_readable(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) > 0;
}

static const char *proc(pid_t pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return read_file(path);
}

/* ---- the server's process ---- */

/* If true, the keeper does not wait for signals, so that an hour passes at once. */
static bool hurries;

int __real_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);
int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout);

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    struct timespec now = {0, 0};

    return __real_sigtimedwait(set, info, hurries ? &now : timeout);
}

static bool is_young(const char *name)
{
    struct stat is;

    return fstatat(dir, name, &is, 0) == 0 && is.st_mtime > time(NULL) - 3600;
}

/* Waits until the keeper has made old files young: cleaners remove those that are old. */
static bool are_made_young(int users)
{
    int64_t until = rlock_clock_ms() + PATIENCE_MS;
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    futimens(users, times);
    futimens(dir, times);
    while (!(is_young(".") && is_young(PRIVATE_SERVER_USERS)) && rlock_clock_ms() < until)
        poll(NULL, 0, 1);
    return is_young(".") && is_young(PRIVATE_SERVER_USERS);
}

/* Starts the server with limits and a priority, which it doesn't inherit. */
static int start_with_limits(void)
{
    struct rlimit files, cpu;
    int users;

    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, files.rlim_max});
    setrlimit(RLIMIT_CPU, &(struct rlimit){900, cpu.rlim_max});
    if (geteuid() == 0)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1);
    hurries = true;
    users = start();
    hurries = false;
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_CPU, &cpu);
    if (geteuid() == 0)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 1);
    return users;
}

static void check_limits(void)
{
    bool is_root = geteuid() == 0;
    struct rlimit files, cpu;
    long long cpu_s;
    char wanted[120];

    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_CPU, &cpu);
    cpu_s = is_root || cpu.rlim_max == RLIM_INFINITY ? -1 : (long long)cpu.rlim_max;
    snprintf(wanted, sizeof wanted, "keeper=%lld files=%lld cpu=%lld core=0 ", cpu_s,
             is_root && files.rlim_max < 10064 ? 10064LL : (long long)files.rlim_max, cpu_s);
    okf(about_has(wanted), "the server has limits of its own: %s", wanted);
    ok(!is_root || about_has("nice=0 policy=0"), "the server has the usual priority");
}

static void test_start(void)
{
    int fds = count_fds();
    int users;
    pid_t server, keeper;
    int alive;

    errno = 0;
    ok(private_server_process_find(dir) < 0 && errno == ENOENT, "no server runs");
    users = start_with_limits();
    alive = private_server_process_find(dir);
    ok(alive >= 0 && (fcntl(alive, F_GETFD) & FD_CLOEXEC) != 0 && !is_readable(alive),
       "the server is found, by a descriptor that closes on exec");
    server = pid_in_about("pid=");
    keeper = pid_in_about("parent=");
    ok(about_has("argv=--port|0|--unixsocket|" PRIVATE_SERVER_SOCKET
                 "|--unixsocketperm|600|--timeout|0|--save||--appendonly|no|--maxmemory-policy|"
                 "noeviction|"),
       "the server has no port, no data on disk, and evicts no key");
    ok(about_has("variables=0 input=/dev/null"), "the server inherits no variable and no input");
    ok(about_has("child_blocked=0 usr1_blocked=0"), "no signal is blocked in the server");
    check_limits();
    is_str(proc(keeper, "comm"), "rlock-local\n", "the keeper has a name of its own");
    is_str(proc(keeper, "cmdline"), "rlock-local", "it has the name as its argument");
    is_str(proc(keeper, "environ"), "", "it keeps no variable of its starter");
    is_int(getsid(keeper), keeper, "the keeper has a session of its own");
    ok(are_made_young(users), "each hour it makes the files young");
    is_int(count_fds(), fds + 2, "starting the server leaves no descriptor open");
    close(users);
    is_int(child_status(keeper), 0, "without users the keeper exits");
    ok(is_readable(alive), "the keeper has killed the server before");
    close(alive);
    ok(server > 0 && kill(server, 0) != 0, "the keeper has reaped it, too");
    ok(faccessat(dir, PRIVATE_SERVER_SOCKET, F_OK, 0) != 0, "the keeper has removed the socket");
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

/* How many calls of fork(2) in a row succeed, in a process and its child together. */
static int n_forks = INT_MAX;

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    if (n_forks-- > 0)
        return __real_fork();
    errno = EAGAIN;
    return -1;
}

/* Checks that no server starts in this mode, and that the error is "... server TEXT". */
static void check_no_start(const char *mode, const char *text)
{
    char wanted[300];

    write_file(in(dir_path, "mode"), mode);
    snprintf(wanted, sizeof wanted, "local: the private server %s", text);
    is_int(private_server_process_start(
               dir, in_ms(strcmp(mode, "deaf") == 0 ? SHORT_MS : PATIENCE_MS), &err),
           RLOCK_E_UNREACHABLE, text);
    is_str(err.text, wanted, "the error says why");
}

#define CANT_RUN "didn't start: neither valkey-server nor redis-server can be run"

/* Returns a deadline that a readable descriptor has passed. */
static struct rlock_deadline stopped(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    close(ends[1]);
    return (struct rlock_deadline){rlock_clock_ms() + PATIENCE_MS, ends[0]};
}

static void test_no_start(void)
{
    int users = take(LOCK_EX);
    struct rlock_deadline deadline = stopped();

    setenv("PATH", top, 1);
    check_no_start("", CANT_RUN "; install one");
    close(open(in(top, "valkey-server"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    check_no_start("", CANT_RUN ": Permission denied");
    unlink(in(top, "valkey-server"));
    execvpe_errno = ENOMEM;
    check_no_start("", CANT_RUN ": Cannot allocate memory");
    execvpe_errno = 0;
    n_forks = 1;
    check_no_start("", "didn't start: Resource temporarily unavailable");
    n_forks = INT_MAX;
    setenv("PATH", bin_path, 1);
    check_no_start("fail", "didn't start: the last line");
    check_no_start("quiet",
                   "didn't start: it wrote no message; run redis-server or valkey-server by hand");
    check_no_start("deaf", "accepts no connection within --connect-timeout: the machine is busy, "
                           "or the server hangs");
    is_int(private_server_process_start(dir, deadline, &err), RLOCK_STOPPED);
    close(deadline.stop_fd);
    close(users);
    ok(all_ended(), "no process is left");
    unlinkat(dir, "mode", 0);
}

/* ---- connections to listeners of this process ---- */

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

static void test_find(void)
{
    int fds = count_fds();
    int waiting[8];
    int n = 0;
    int listener = listen_as_server(0);

    while (n < 8 && (waiting[n] = private_server_process_find(dir)) >= 0)
        n++;
    ok(n > 0 && n < 8 && errno == EAGAIN, "a server whose backlog is full is told by EAGAIN");
    while (n > 0)
        close(waiting[--n]);
    close(listener);
    ok(private_server_process_find(dir) < 0 && errno == ECONNREFUSED,
       "a socket on which no process listens is told by another errno");
    if (geteuid() != 0) {
        skip("the server of another user is refused", "needs root");
    } else {
        ok(fchown(dir, OTHER_UID, 0) == 0 && seteuid(OTHER_UID) == 0, "another user listens");
        listener = listen_as_server(1);
        ok(seteuid(0) == 0 && private_server_process_find(dir) < 0 && errno == EPERM,
           "the server of another user is refused");
        close(listener);
        listener = listen_as_server(1);
        (void)!fchmodat(dir, PRIVATE_SERVER_SOCKET, 0777, 0);
        ok(seteuid(OTHER_UID) == 0 && (n = private_server_process_find(dir)) >= 0,
           "a server of root is used");
        ok(seteuid(0) == 0 && fchown(dir, 0, 0) == 0, "this process is root again");
        close(n);
        close(listener);
    }
    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    is_int(count_fds(), fds, "no descriptor is left open");
}

/* ---- using the server ---- */

/* Opens the server into a struct that had other values. */
static enum rlock_status open_server(struct private_server *server, int64_t ms)
{
    enum rlock_status st;

    memset(server, 0x11, sizeof *server);
    server->alive_fd = dup2(0, 900);
    err = (struct rlock_error){.status = RLOCK_OK};
    st = private_server_open(server, in_ms(ms), PATIENCE_MS, &err);
    ok(close(900) == 0, "the former value is no descriptor to close");
    return st;
}

static void test_open_beside_others(void)
{
    struct private_server server;
    int fds = count_fds();
    int users = take(LOCK_EX);
    struct rlock_deadline deadline = stopped();
    int listener;

    unlinkat(dir, "about", 0);
    ok(users >= 0, "another process starts a server");
    is_int(open_server(&server, SHORT_MS), RLOCK_BUSY, "this one waits until its deadline");
    ok(strstr(err.text, "before they have ended: fuser /") != NULL &&
           strstr(err.text, "/users lists them") != NULL,
       "the error says how to find the others");
    ok(server.users_fd < 0 && server.alive_fd < 0 && server.dir_fd < 0, "the struct is closed");
    listener = listen_as_server(16);
    is_int(open_server(&server, SHORT_MS), RLOCK_BUSY, "a server that is being ended isn't used");
    close(listener);
    is_int(private_server_open(&server, deadline, PATIENCE_MS, &err), RLOCK_STOPPED);
    close(deadline.stop_fd);
    ok(flock(users, LOCK_SH) == 0, "another process still uses a server that has ended");
    is_int(open_server(&server, SHORT_MS), RLOCK_BUSY, "no server starts beside that process");
    close(users);
    ok(!about_has("pid="), "no server was started");
    remove_files();
    ok(symlinkat("nowhere", dir, PRIVATE_SERVER_USERS) == 0 &&
           open_server(&server, PATIENCE_MS) == RLOCK_E_CONFIG &&
           strstr(err.text, "/users can't be opened: ") != NULL &&
           strstr(err.text, "; set RLOCK_LOCAL_DIR ") != NULL,
       "a lock file that is a symbolic link is refused");
    remove_files();
    setenv("RLOCK_LOCAL_DIR", in(top, "none/here"), 1);
    is_int(open_server(&server, PATIENCE_MS), RLOCK_E_CONFIG, "a missing directory is an error");
    setenv("RLOCK_LOCAL_DIR", dir_path, 1);
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
    ok(pid_in_about("pid=") == pid && server.users_fd >= 0, "a living server stays in use");
    ok(kill(pid, SIGKILL) == 0 && all_ended(), "the server gets KILL");
    ok(private_server_has_ended(&other), "the server has ended");
    ok(!private_server_has_ended(&other), "this is said once");
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
    ok(pid_in_about("pid=") != pid, "it is a new server");
    ok(readlink(device, url, sizeof url) > 9 && strncmp(url, dir_path, strlen(dir_path)) == 0,
       "the URL leads to its directory");
    private_server_close(&server);
    private_server_reopen(&server, -1, PATIENCE_MS);
    is_int(server.users_fd, -1, "a closed struct is not opened again");
    ok(all_ended(), "no process is left");
    is_int(count_fds(), fds, "no descriptor is left open");
}

#define OLD "01234567-89ab-cdef-0123-456789abcdef"
#define RECENT "11234567-89ab-cdef-0123-456789abcdef"

/* Makes a home in which earlier boots have left directories, and removes the home: for a shell. */
#define MAKE_HOME                                                                                  \
    "PATH=/usr/bin:/bin; umask 077; mkdir -p %s/.local/state/rlock; cd %s/.local/state/rlock"      \
    " && mkdir " OLD " " RECENT " && touch -d '40 days ago' " OLD "/" PRIVATE_SERVER_USERS " " OLD \
    " && touch -d '20 days ago' " RECENT " && chown -R %d:%d %s"
#define REMOVE_HOME "PATH=/usr/bin:/bin; rm -r %s"

/* Without RLOCK_LOCAL_DIR, users other than root have the server in their home. */
static void test_in_home(void)
{
    bool is_root = geteuid() == 0;
    int id = is_root ? OTHER_UID : (int)geteuid();
    char boot[40] = "";
    char home[64], state[100], boot_dir[150], command[700];
    struct private_server server;
    struct stat is;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    ok(read(fd, boot, 36) == 36, "the boot has an ID");
    close(fd);
    snprintf(home, sizeof home, "%s/home", top);
    snprintf(state, sizeof state, "%s/.local/state/rlock", home);
    snprintf(boot_dir, sizeof boot_dir, "%s/%s", state, boot);
    snprintf(command, sizeof command, MAKE_HOME, home, home, id, id, home);
    need(system(command) == 0 &&
         (!is_root || (setegid(OTHER_UID) == 0 && seteuid(OTHER_UID) == 0)));
    entry = (struct passwd){.pw_uid = OTHER_UID, .pw_dir = home};
    found = &entry;
    setenv("RLOCK_LOCAL_DIR", "", 1);
    is_int(open_server(&server, PATIENCE_MS), RLOCK_OK, "the server is started");
    ok(stat(boot_dir, &is) == 0 && (is.st_mode & 07777) == 0700 &&
       access(in(boot_dir, PRIVATE_SERVER_SOCKET), F_OK) == 0);
    ok(access(in(state, OLD), F_OK) != 0, "the directory of an earlier boot was removed");
    ok(access(in(state, RECENT), F_OK) == 0, "one that was used in the last month was not");
    private_server_close(&server);
    ok(all_ended(), "no process is left");
    chmod(boot_dir, 0755);
    is_int(open_server(&server, PATIENCE_MS), RLOCK_E_CONFIG, "no other directory is tried");
    ok(!is_root || (seteuid(0) == 0 && setegid(0) == 0), "this process is root again");
    setenv("RLOCK_LOCAL_DIR", dir_path, 1);
    snprintf(command, sizeof command, REMOVE_HOME, home);
    ok(system(command) == 0, "the home is removed");
}

/* Copies this program to `path`: another user may have no access to the directory of the tests. */
static bool copy_program(const char *path)
{
    char command[200];

    snprintf(command, sizeof command, "cp /proc/%d/exe %s && chmod 755 %s", (int)getpid(), path,
             path);
    return system(command) == 0;
}

static bool prepare(void)
{
    if (mkdtemp(top) == NULL)
        return false;
    snprintf(dir_path, sizeof dir_path, "%s/server", top);
    snprintf(bin_path, sizeof bin_path, "%s/bin", top);
    setenv("RLOCK_LOCAL_DIR", dir_path, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* another user has to reach the programs, in a directory of mode 0700 by mkdtemp(3) */
    return chmod(top, 0755) == 0 && mkdir(bin_path, 0755) == 0 &&
           copy_program(in(bin_path, "valkey-server")) && mkdir(dir_path, 0700) == 0 &&
           (dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0 &&
           setenv("PATH", bin_path, 1) == 0;
}

int main(int argc, char **argv, char **envp)
{
    (void)argc;
    if (strcmp(argv[0], "valkey-server") == 0)
        return be_server(argv, envp);
    alarm(500);
    if (!ok(prepare(), "a directory for this test is created"))
        return done_testing();
    RUN_ALL(test_start, test_no_start, test_find, test_open_beside_others, test_reopen,
            test_in_home);
    remove_files();
    unlink(in(bin_path, "valkey-server"));
    ok(rmdir(dir_path) == 0 && rmdir(bin_path) == 0 && rmdir(top) == 0, "no file is left");
    return done_testing();
}
