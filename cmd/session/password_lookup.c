/* SPDX-License-Identifier: MIT */
/*
 * password_lookup: a helper process that reads the password from a file or a command's output.
 *
 * The password is looked up again for each new connection, also by the renewer's thread. If that
 * thread read the file itself, it could block without limit: open(2) can't be interrupted on a
 * network file system that hangs. So only the helper hangs; the thread waits with a deadline.
 */
#include "session/password_lookup.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/secret.h"
#include "options/config.h"
#include "process/dumpable.h"
#include "process/helper.h"
#include "session/environment.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DETACH INT64_C(-1)   /* a request to close stderr; other requests are a deadline in ms */
#define COMMAND_EACH_MS 1000 /* at most one run of the command in this time, on average */
#define STOP_WITHIN_MS 200   /* after this time rlock kills a helper that hangs in open(2) */
#define FOUND '+'            /* the first byte of an answer: the password follows */
#define FOUND_EXPOSED '!'    /* as FOUND, but others may read the file (config_is_exposed()) */
#define NOT_FOUND '-'        /* the first byte of an answer: an error message follows */
#define ANSWER_BYTES (RLOCK_PASSWORD_MAX + 2)

/* What the helper process works with. */
struct lookup {
    const struct password_place *place;
    int fd;
    int64_t next_ms; /* when the command may run again, on average: see wait_for_turn() */
    char answer[ANSWER_BYTES];
};

static void answer_reason(struct lookup *l, const char *why)
{
    snprintf(l->answer, sizeof l->answer, "%c%s%s%.150s: %.200s", NOT_FOUND, l->place->name,
             l->place->file != NULL ? " " : "", l->place->file != NULL ? l->place->file : "", why);
}

static void answer_password(struct lookup *l, const char *line)
{
    if (*line == '\0')
        answer_reason(l, "the first line is empty");
    else if (strlen(line) > RLOCK_PASSWORD_MAX)
        answer_reason(l, "the first line is longer than a password may be");
    else
        snprintf(l->answer, sizeof l->answer, "%c%s", FOUND, line);
}

static void read_file(struct lookup *l)
{
    const char *why;
    char *line = config_first_line(l->place->file, &config_wait_forever, &why);

    if (line == NULL)
        answer_reason(l, why);
    else
        answer_password(l, line);
    if (l->answer[0] == FOUND && config_is_exposed(l->place->file))
        l->answer[0] = FOUND_EXPOSED;
    secret_free(line);
}

/*
 * If a server refuses every password, rlock asks the helper again and again. So each run of the
 * command moves `next_ms` on by COMMAND_EACH_MS. As the command may start up to COMMAND_EACH_MS
 * before `next_ms`, two runs may follow each other without a pause.
 */
static void wait_for_turn(struct lookup *l)
{
    struct rlock_deadline turn = {l->next_ms - COMMAND_EACH_MS, -1};

    poll(&(struct pollfd){.fd = l->fd, .events = POLLRDHUP}, 1, deadline_poll_ms(turn));
    l->next_ms = clock_later(l->next_ms, rlock_clock_ms()) + COMMAND_EACH_MS;
}

static void run_command(struct lookup *l, int64_t deadline_ms)
{
    static char line[ANSWER_BYTES]; /* static, as it is large; cleared below */
    char why[HELPER_WHY_BYTES];

    wait_for_turn(l);
    if (helper_run(&(struct helper_command){.text = l->place->command,
                                            .deadline_ms = deadline_ms,
                                            .limit = "--connect-timeout",
                                            .client_fd = l->fd,
                                            .output = line,
                                            .room = sizeof line},
                   why)) {
        line[strcspn(line, "\r\n")] = '\0';
        answer_password(l, line);
    } else {
        answer_reason(l, why);
    }
    explicit_bzero(line, sizeof line);
}

static _Noreturn void serve(struct lookup *l)
{
    int64_t deadline_ms;

    if (!environment_shed())
        _exit(1);
    while (recv(l->fd, &deadline_ms, sizeof deadline_ms, 0) == (ssize_t)sizeof deadline_ms) {
        if (deadline_ms == DETACH) {
            dup2(STDIN_FILENO, STDERR_FILENO);
            continue;
        }
        if (l->place->file != NULL)
            read_file(l);
        else
            run_command(l, deadline_ms);
        (void)!send(l->fd, l->answer, strlen(l->answer), MSG_NOSIGNAL);
        explicit_bzero(l->answer, sizeof l->answer);
    }
    _exit(0);
}

int password_helper_start(struct password_helper *helper, const struct password_place *place)
{
    static struct lookup l; /* static: gcc's code touches each page of a large frame in each run */
    pid_t pid;
    int failed;

    if (place->name == NULL)
        return 0;
    l = (struct lookup){.place = place};
    dumpable_forbid();
    pid = helper_fork(&l.fd, "rlock-password");
    failed = errno;
    if (pid == 0)
        serve(&l);
    *helper = (struct password_helper){.pid = pid > 0 ? pid : 0, .fd = l.fd};
    return pid < 0 ? failed : 0;
}

/* ---- how rlock asks the helper process ---- */

static enum rlock_status gone(struct rlock_error *err)
{
    return err_set(err, RLOCK_E_SYSTEM, 0,
                   "password: the helper process that looks it up was killed");
}

static int ask(void *context, int64_t deadline_ms, struct rlock_error *err)
{
    const struct password_helper *helper = context;

    if (send(helper->fd, &deadline_ms, sizeof deadline_ms, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        return helper->fd;
    (void)!gone(err);
    return -1;
}

static enum rlock_status take(void *context, char *password, size_t room, struct rlock_error *err)
{
    struct password_helper *helper = context;
    ssize_t n;

    n = recv(helper->fd, password, room, MSG_DONTWAIT);
    if (n > 0 && (password[0] == FOUND || password[0] == FOUND_EXPOSED)) {
        helper->is_exposed = password[0] == FOUND_EXPOSED;
        memmove(password, password + 1, (size_t)n - 1);
        password[n - 1] = '\0';
        return RLOCK_OK;
    }
    if (n <= 0)
        return gone(err);
    (void)err_set(err, RLOCK_E_CONFIG, 0, "%.*s", (int)n - 1, password + 1);
    err_set_reason(err, RLOCK_REASON_PASSWORD_LOOKUP);
    return RLOCK_E_CONFIG;
}

struct rlock_password_source password_helper_source(struct password_helper *helper)
{
    if (helper->pid == 0)
        return (struct rlock_password_source){.ask = NULL};
    return (struct rlock_password_source){.ask = ask, .take = take, .context = helper};
}

void password_helper_stop(struct password_helper *helper)
{
    struct pollfd ended = {.fd = helper->fd, .events = POLLIN};

    if (helper->pid == 0)
        return;
    shutdown(helper->fd, SHUT_WR);
    while (poll(&ended, 1, STOP_WITHIN_MS) > 0 && recv(helper->fd, &(char){0}, 1, 0) > 0)
        continue; /* discard unread answers; recv(2) returns 0 when the helper has ended */
    if (ended.revents == 0)
        kill(helper->pid, SIGKILL);
    while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(helper->fd);
    *helper = (struct password_helper){.fd = -1};
}

void password_helper_leave(struct password_helper *helper)
{
    int64_t word = DETACH;

    if (helper->pid == 0)
        return;
    (void)!send(helper->fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
    close(helper->fd);
    *helper = (struct password_helper){.fd = -1};
}
