/* SPDX-License-Identifier: MIT */
/*
 * test_cmd_password_lookup: the helper process finds the password in a file or in the output of a
 * command, hides what it has read, and ends when it should.
 */
#include "child.h"
#include "files.h"
#include "session/password_lookup.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define PATIENCE_MS 20000 /* how long a test waits at most: a busy machine runs processes late */
#define OTHER_UID 12345

static char top[] = "/tmp/rlock-lookup-XXXXXX"; /* a directory of this test alone */
static char path[100];                          /* a file in it */
static char found[RLOCK_PASSWORD_MAX + 2];
static struct rlock_error err;

/* Starts a helper that looks the password up by a command; NULL: in the file `path`. */
static struct password_helper start(const char *command)
{
    struct password_place place = {.name = "password file", .file = path};
    struct password_helper helper = {.fd = -1};

    if (command != NULL)
        place = (struct password_place){.name = "password command", .command = command};
    is_int(password_helper_start(&helper, &place), 0, "the helper is started");
    return helper;
}

static int ask(struct password_helper *helper, int64_t within_ms)
{
    struct rlock_password_source source = password_helper_source(helper);

    err = (struct rlock_error){.status = RLOCK_OK};
    return source.ask(source.context, rlock_clock_ms() + within_ms, &err);
}

/* Waits for the helper's answer, and takes it. RLOCK_TIMEOUT: no answer came. */
static enum rlock_status take(struct password_helper *helper)
{
    struct rlock_password_source source = password_helper_source(helper);
    struct pollfd answer = {.fd = helper->fd, .events = POLLIN};

    found[0] = '\0';
    if (poll(&answer, 1, PATIENCE_MS) != 1)
        return RLOCK_TIMEOUT;
    return source.take(source.context, found, sizeof found - 1, &err);
}

static bool looks_up(struct password_helper *helper)
{
    return ask(helper, PATIENCE_MS) == helper->fd && take(helper) == RLOCK_OK;
}

static int fds_of(const struct password_helper *helper)
{
    char command[60];

    snprintf(command, sizeof command, "exit $(ls /proc/%d/fd | wc -l)", (int)helper->pid);
    return WEXITSTATUS(system(command));
}

static bool is_refused(enum rlock_status st, const char *why)
{
    return st == RLOCK_E_CONFIG && err.reason == RLOCK_REASON_PASSWORD_LOOKUP &&
           strstr(err.text, why) != NULL;
}

static void test_file(void)
{
    static const struct {
        const char *text, *wanted; /* wanted NULL: the file is refused */
    } texts[] = {
        {"pw", "pw"},         {"pw\n", "pw"}, {"pw\r\n", "pw"}, {"pw\nother\n", "pw"},
        {" p w \n", " p w "}, {"", NULL},     {"\n", NULL},     {"\r\npw\n", NULL},
    };
    struct password_helper helper = start(NULL);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum rlock_status st;

        write_file(path, texts[i].text);
        ask(&helper, PATIENCE_MS);
        st = take(&helper);
        okf(texts[i].wanted == NULL ? is_refused(st, path)
                                    : st == RLOCK_OK && strcmp(found, texts[i].wanted) == 0,
            "the password is the first line of \"%s\", if that is not empty", texts[i].text);
    }
    unlink(path);
    mkdir(path, 0700);
    ask(&helper, PATIENCE_MS);
    ok(is_refused(take(&helper), path), "a folder is no password file");
    rmdir(path);
    password_helper_stop(&helper);
}

static void test_commands(void)
{
    static const struct {
        const char *command, *wanted, *why; /* wanted NULL: refused with the message `why` */
    } rows[] = {
        {"echo pw", "pw", NULL},
        {"printf 'p w\\r\\nother\\n'", "p w", NULL},
        {"sleep 3 & echo pw", "pw", NULL}, /* sleep keeps the pipe open */
        {"echo pw; echo other; head -c 300000 /dev/zero", "pw", NULL},
        {"head -c 16384 /dev/zero | tr '\\0' x", "", NULL}, /* the longest password */
        {"head -c 16385 /dev/zero | tr '\\0' x", NULL, "longer than a password"},
        {":", NULL, "the first line is empty"},
        {"echo pw; exit 3", NULL, "the command ended with status 3"},
        {"echo pw; kill -9 $$", NULL, "the command was ended by signal 9"},
        {"echo pw; sleep 100", NULL, "did not end within"},
        {"nowhere/at/all 2>/dev/null", NULL, "the command ended with status 127"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_slow = strstr(rows[i].command, "sleep 100") != NULL;
        struct password_helper helper = start(rows[i].command);
        const char *wanted = rows[i].wanted;
        enum rlock_status st;

        ask(&helper, is_slow ? 300 : PATIENCE_MS);
        st = take(&helper);
        okf(wanted == NULL      ? is_refused(st, rows[i].why)
            : wanted[0] == '\0' ? st == RLOCK_OK && strlen(found) == RLOCK_PASSWORD_MAX
                                : st == RLOCK_OK && strcmp(found, wanted) == 0,
            "%s: %s", rows[i].command, err.text);
        password_helper_stop(&helper);
    }
}

static void test_answers(void)
{
    struct password_helper helper = start(NULL);
    pid_t pid = helper.pid;
    int64_t from_ms;
    int fds;

    write_file(path, "one\n");
    ok(looks_up(&helper), "the file is read");
    ok(!helper.is_exposed, "nobody else may read the file");
    write_file(path, "two\n");
    chmod(path, 0644);
    ok(looks_up(&helper), "it is read again");
    ok(helper.is_exposed, "others may read the file");
    unlink(path);
    ok(ask(&helper, PATIENCE_MS) == helper.fd && is_refused(take(&helper), path) &&
       strncmp(err.text, "password file ", 14) == 0);
    password_helper_leave(&helper);
    ok(helper.pid == 0 && helper.fd == -1, "a helper that was left is not ours");
    ok(child_status(pid) == 0, "without a user it ends");

    from_ms = rlock_clock_ms();
    helper = start("echo pw");
    ok(looks_up(&helper), "a command is run");
    fds = fds_of(&helper);
    ok(looks_up(&helper) && looks_up(&helper), "the command runs three times");
    is_int(fds_of(&helper), fds, "the helper keeps no descriptor of a command");
    ok(rlock_clock_ms() >= from_ms + 1000, "it runs at most once in a second, but twice at first");
    password_helper_stop(&helper);
}

/* waitpid(2) has succeeded even if errno has an old value. */
static void test_stop(void)
{
    struct password_helper helper = start(NULL);
    pid_t pid = helper.pid;
    int64_t until_ms;

    errno = EINTR;
    password_helper_stop(&helper);
    ok(helper.pid == 0 && kill(pid, 0) != 0, "a helper that waits is ended");
    write_file(path, "one\n");
    helper = start(NULL);
    ok(ask(&helper, PATIENCE_MS) >= 0 &&
       poll(&(struct pollfd){helper.fd, POLLIN, 0}, 1, PATIENCE_MS) == 1);
    password_helper_stop(&helper);
    is_int(helper.pid, 0, "a helper whose answer nobody has read is ended");
    unlink(path);
    ok(mkfifo(path, 0600) == 0, "a named pipe is made");
    helper = start(NULL);
    pid = helper.pid;
    ok(ask(&helper, PATIENCE_MS) >= 0, "the helper opens a pipe that nobody writes to");
    password_helper_stop(&helper);
    ok(helper.pid == 0 && kill(pid, 0) != 0, "a helper that may hang is ended");
    unlink(path);
    helper = start("exec sleep 100");
    ok(ask(&helper, PATIENCE_MS) >= 0, "a command hangs");
    password_helper_stop(&helper);
    is_int(helper.pid, 0, "the helper can be ended during the command");
    helper = start("exec sleep 100");
    pid = helper.pid;
    until_ms = rlock_clock_ms() + PATIENCE_MS;
    ok(ask(&helper, PATIENCE_MS) >= 0, "another one hangs");
    password_helper_leave(&helper);
    ok(child_status(pid) == 0 && rlock_clock_ms() < until_ms, "without a user it is killed");
}

static void test_killed(void)
{
    struct password_helper helper = start(NULL);

    kill(helper.pid, SIGKILL);
    is_int(take(&helper), RLOCK_E_SYSTEM, "a helper that was killed is an error");
    is_str(err.text, "password: the helper process that looks it up was killed");
    is_int(ask(&helper, PATIENCE_MS), -1, "a helper that was killed can't be asked");
    is_int(err.status, RLOCK_E_SYSTEM, "the question fails by the same error");
    password_helper_stop(&helper);
    is_int(helper.pid, 0, "the helper is reaped");
}

/* What a command leaves behind isn't main's child, which might kill it with its command's tree. */
static void test_left_behind(void)
{
    struct password_helper helper = start(
        "[ $(cat /proc/$PPID/comm) = rlock-password ] && sh -c 'sleep 100 >/dev/null & echo $!'");
    char path_of[64];
    const char *text;

    ok(looks_up(&helper), "the helper has a name of its own, and its command leaves a process");
    snprintf(path_of, sizeof path_of, "/proc/%d/stat", atoi(found));
    text = read_file(path_of);
    is_int(strtol(text + strcspn(text, ")") + 3, NULL, 10), helper.pid, "the helper adopts it");
    kill(atoi(found), SIGKILL);
    password_helper_stop(&helper);
}

/* When the process that started the helper leaves it, it gives up the pipe that is its stderr. */
static void test_leave(void)
{
    int usual = dup(STDERR_FILENO);
    struct password_helper helper;
    struct password_helper forked;
    int ends[2];
    char byte;

    need(usual >= 0 && pipe2(ends, O_CLOEXEC) == 0, "a pipe is made");
    dup2(ends[1], STDERR_FILENO);
    helper = start("echo x; echo said >&2");
    dup2(usual, STDERR_FILENO);
    close(usual);
    close(ends[1]);
    ok(looks_up(&helper), "a command is run");
    ok(read(ends[0], &byte, 1) == 1 && byte == 's', "the command's messages go to stderr");
    forked = helper;
    forked.fd = dup(helper.fd); /* as a forked process has it */
    password_helper_leave(&helper);
    ok(looks_up(&forked), "it is run again");
    while (read(ends[0], &byte, 1) == 1 && byte != '\n')
        continue;
    ok(poll(&(struct pollfd){ends[0], POLLIN, 0}, 1, PATIENCE_MS) == 1 &&
       read(ends[0], &byte, 1) == 0);
    close(ends[0]);
    password_helper_stop(&forked);
}

static void test_dumpable(void)
{
    uid_t before = geteuid();
    struct password_helper helper;

    if (before == 0 && seteuid(OTHER_UID) != 0)
        return;
    prctl(PR_SET_DUMPABLE, 1);
    helper = start("stat -c %u /proc/$PPID/fd");
    ok(looks_up(&helper), "a password is looked up");
    is_str(found, "0", "other processes can't read the helper's memory");
    password_helper_stop(&helper);
    is_int(seteuid(before), 0, "this test has its user again");
}

int main(void)
{
    if (!ok(mkdtemp(top) != NULL, "a directory for this test is created"))
        return done_testing();
    snprintf(path, sizeof path, "%s/password", top);
    alarm(500);
    RUN_ALL(test_file, test_commands, test_answers, test_stop, test_killed, test_left_behind,
            test_leave, test_dumpable);
    ok(rmdir(top) == 0, "no file is left");
    return done_testing();
}
