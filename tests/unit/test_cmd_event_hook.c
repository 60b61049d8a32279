/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_event_hook: the command of --on-event runs once for each event, with the event's facts.
 *
 * The command writes to files in a directory of the test. The clock of the process that runs the
 * command can be moved, so that a command that hangs doesn't take the test 10 s.
 */
#include "files.h"
#include "session/event_hook.h"
#include "supervise/proctree.h"
#include "tap.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define PATIENCE_MS 30000 /* how long a test waits at most: a busy machine runs processes late */

static char top[] = "/tmp/rlock-hook-XXXXXX"; /* a directory of this test alone */
static int64_t *ahead_s; /* how far the clock is put forward; shared with forked processes */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* The linker replaces clock_gettime() by this function. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = __real_clock_gettime(clock, now);

    now->tv_sec += (time_t)*ahead_s;
    return failed;
}

/* Starts the hook process. Its working directory is `top`. */
static struct event_hook start(const char *command)
{
    const char *keys[] = {"key one", "key two"};
    struct options options = {
        .on_event = strdup(command), .argv = &(char *){NULL}, .keys = keys, .n_keys = 2};
    struct event_hook hook = {.fd = -1};

    is_int(event_hook_start(&hook, &options), 0, "the hook process is started");
    free((char *)options.on_event);
    return hook;
}

static void tell(struct event_hook *hook, enum event what)
{
    event_hook_tell(hook, &(struct message){.what = what});
}

/* Waits for a failure that the process reports. False: none has come. */
static bool await_failure(struct event_hook *hook, char why[256])
{
    struct pollfd watch = {.fd = hook->fd, .events = POLLIN};

    why[0] = '\0';
    return poll(&watch, 1, PATIENCE_MS) == 1 && event_hook_failure(hook, why, 256);
}

/* Ends the hook process when it has run all commands, by two calls. Returns its exit status. */
static int stop(struct event_hook *hook)
{
    int status = -1;

    event_hook_stop(hook);
    event_hook_stop(hook);
    is_int(hook->fd, -1, "the socket is closed");
    ok(waitpid(-1, &status, 0) > 0 && WIFEXITED(status), "the hook process ends by itself");
    return WEXITSTATUS(status);
}

#define SHOW                                                                               \
    "echo \"$RLOCK_EVENT key=$RLOCK_KEY fence=$RLOCK_FENCE waited=$RLOCK_EVENT_WAITED_MS " \
    "holder=$RLOCK_EVENT_HOLDER why=$RLOCK_EVENT_WHY"                                      \
    " token=$RLOCK_TOKEN\" >>shown; "

static void test_events(void)
{
    static const struct rlock_party holder = {.text = "web1"};
    struct event_hook hook;
    char why[256];

    setenv("RLOCK_TOKEN", "secret", 1);
    hook = start(SHOW);
    tell(&hook, EVENT_LOST);
    event_hook_tell(&hook, &(struct message){.what = EVENT_WAITING_LONG,
                                             .facts = {{0},
                                                       {FACT_NUMBER, "pid", .number = 5},
                                                       {FACT_NUMBER, "waited_ms", .number = 7},
                                                       {FACT_TEXT, "holder", .text = "nobody"},
                                                       {FACT_PARTY, "holder", .party = &holder},
                                                       {FACT_NUMBER, "other", .number = 6}}});
    event_hook_tell(&hook, &(struct message){.what = EVENT_GRANTED,
                                             .facts = {{FACT_NUMBER, "fence", .number = 12},
                                                       {FACT_TEXT, "fence", .text = "13"}}});
    tell(&hook, EVENT_GRANTED);
    tell(&hook, EVENT_RENEWAL_FAILED);
    event_hook_tell(&hook, &(struct message){.what = EVENT_LOST, .why = "the server is gone"});
    tell(&hook, EVENT_LOST);
    tell(&hook, (enum event)REASON_TIMEOUT);
    tell(&hook, (enum event)REASON_SYSTEM);
    tell(&hook, EVENT_RELEASED);
    ok(!event_hook_failure(&hook, why, sizeof why), "nothing has failed");
    is_int(stop(&hook), 0, "the hook process ends when it has run all commands");
    is_str(read_file("shown"),
           "waiting-long key=key one\nkey two fence= waited=7 holder=web1 why= token=\n"
           "granted key=key one\nkey two fence=12 waited= holder= why= token=\n"
           "lost key=key one\nkey two fence=12 waited= holder= why=the server is gone "
           "token=\n"
           "busy key=key one\nkey two fence=12 waited= holder= why= token=\n"
           "released key=key one\nkey two fence=12 waited= holder= why= token=\n");
    unlink("shown");
    tell(&hook, EVENT_GRANTED);
    ok(!event_hook_failure(&hook, why, sizeof why), "without a hook process nothing happens");
    unsetenv("RLOCK_TOKEN");
}

/* A command whose failure is reported, and the report. */
static const struct {
    const char *command, *why;
} failures[] = {
    {"exit 7", "--on-event: the command ended with status 7 (event granted)"},
    {"kill -9 $$", "--on-event: the command was ended by signal 9 (event granted)"},
};

static void test_failures(void)
{
    struct event_hook hook;
    char why[256];

    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        hook = start(failures[i].command);
        tell(&hook, EVENT_GRANTED);
        ok(await_failure(&hook, why), "a failure is reported");
        is_str(why, failures[i].why, "the report says why");
        tell(&hook, EVENT_RELEASED);
        is_int(stop(&hook), 0, "the hook process goes on");
    }
}

static void test_killed(void)
{
    struct event_hook hook = start("kill -9 $PPID");
    char why[256];

    tell(&hook, EVENT_GRANTED);
    ok(await_failure(&hook, why), "the end of the hook process is reported");
    is_str(why,
           "--on-event: the process that runs the command was killed, so later events run none",
           "the report says so");
    is_int(hook.fd, -1, "there is no hook process any more");
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

/* A command that hangs gets KILL, and so does what it has started. */
static void test_hangs(void)
{
    struct event_hook hook = start("sleep 100 & echo $PPID $! >pids; mv pids started; wait");
    char why[256];
    pid_t process;
    pid_t child;

    tell(&hook, EVENT_GRANTED);
    while (access("started", F_OK) != 0)
        poll(NULL, 0, 1);
    need(sscanf(read_file("started"), "%d %d", &process, &child) == 2);
    *ahead_s = 9;
    kill(process, SIGCHLD); /* wakes it */
    ok(!event_hook_failure(&hook, why, sizeof why), "after 9 s the command has not failed");
    *ahead_s = 10;
    kill(process, SIGCHLD);
    ok(await_failure(&hook, why), "after 10 s it has failed");
    is_str(why, "--on-event: the command did not end within 10 s, and was killed (event granted)");
    *ahead_s = 0;
    is_int(stop(&hook), 0, "the hook process goes on, and ends");
    unlink("started");
    while (proctree_state(child) == 'S') /* alarm(2) ends this test if it doesn't end */
        poll(NULL, 0, 1);
    ok(true, "what the command had started has got KILL");
}

/* The command has a session and descriptors of its own. */
static void test_command(void)
{
    struct event_hook hook;
    const char *text;
    const char *at;
    int ours = dup(STDERR_FILENO); /* doesn't close on exec */
    int first = 0;
    int second = 0;
    int pid = 0;
    int sid = 0;

    hook = start("ls /proc/$PPID/fd | wc -w >>fds; [ $RLOCK_EVENT = granted ] || exit 0; "
                 "read -r a b c d e f g <\"/proc/$$/stat\"; echo $$ $f >shown; "
                 "readlink /proc/$$/fd/0 >>shown; "
                 "for i in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$i ] && echo $i >>shown; done; "
                 "cat /proc/$PPID/comm >>shown");
    close(ours);
    tell(&hook, EVENT_GRANTED);
    tell(&hook, EVENT_RELEASED);
    is_int(stop(&hook), 0, "the command has run twice");
    text = read_file("shown");
    at = strchr(text, '\n');
    ok(at != NULL && sscanf(text, "%d %d", &pid, &sid) == 2 && pid == sid);
    is_str(at != NULL ? at + 1 : "", "/dev/null\nrlock-hook\n");
    unlink("shown");
    ok(sscanf(read_file("fds"), "%d %d", &first, &second) == 2 && first == second && first > 0);
    unlink("fds");
}

int main(void)
{
    ahead_s =
        mmap(NULL, sizeof *ahead_s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ahead_s == MAP_FAILED || mkdtemp(top) == NULL || chdir(top) != 0)
        abort();
    alarm(500);
    RUN_ALL(test_events, test_failures, test_killed, test_hangs, test_command);
    ok(rmdir(top) == 0, "no file is left");
    return done_testing();
}
