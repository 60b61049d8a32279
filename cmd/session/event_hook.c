/* SPDX-License-Identifier: MIT */
/*
 * event_hook: a helper process that runs the command of --on-event for each event of a run.
 *
 * The socket to the helper is also the queue: the helper runs the command for one event after the
 * other. The helper exits when the main process and the guard have closed their ends. The guard
 * sends an event if a lock is lost because the main process was stopped or killed.
 */
#include "session/event_hook.h"

#include "process/fds.h"
#include "process/helper.h"
#include "session/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOOK_MS 10000 /* how long the command may run for one event */
#define HOOK_LIMIT "10 s"
#define FAILURE_BYTES (HELPER_WHY_BYTES + 50)

/* The packet that tells the helper of an event. */
struct hook_news {
    enum event event;
    char fence[24];     /* "": not known; the next three may be "", too */
    char waited_ms[24]; /* how long rlock has waited */
    char holder[256];   /* who holds the lock */
    char why[512];      /* `why` of the message */
};

/* ---- what the helper does ---- */

static bool set_environment(const struct options *options)
{
    char *keys = options_keys(options, '\n');

    if (keys == NULL || !environment_shed())
        return false;
    options_mask_urls(options);
    return setenv("RLOCK_KEY", keys, 1) == 0 && setenv("RLOCK_FENCE", "", 1) == 0;
}

/* RLOCK_FENCE is set at `granted`, and stays for the events that follow. */
static bool set_event(const struct hook_news *news)
{
    return (news->event != EVENT_GRANTED || setenv("RLOCK_FENCE", news->fence, 1) == 0) &&
           setenv("RLOCK_EVENT", event_name(news->event), 1) == 0 &&
           setenv("RLOCK_EVENT_WAITED_MS", news->waited_ms, 1) == 0 &&
           setenv("RLOCK_EVENT_HOLDER", news->holder, 1) == 0 &&
           setenv("RLOCK_EVENT_WHY", news->why, 1) == 0;
}

/*
 * Must the helper run the command for this event? EVENT_LOST may come twice: from the guard, which
 * takes a stopped rlock for dead, and later from rlock itself, when it continues. A lock that was
 * never granted can't be lost: the message `lost` then only says why rlock ends.
 *
 *   told  bit i is set if the command has run for event i
 */
static bool is_new(uint64_t *told, enum event event)
{
    uint64_t bit = UINT64_C(1) << event;

    if ((*told & bit) != 0 || (event == EVENT_LOST && (*told & UINT64_C(1) << EVENT_GRANTED) == 0))
        return false;
    *told |= bit;
    return true;
}

/*
 * The helper may outlive rlock. If stderr is a pipe, its reader would then wait for the helper, so
 * the helper closes stderr. Only the first time that the command fails, the helper tells rlock why.
 */
static _Noreturn void serve(int fd, const struct options *options)
{
    char why[HELPER_WHY_BYTES];
    char failure[FAILURE_BYTES] = "";
    uint64_t told = 0;
    struct hook_news news;

    if (!report_keeps_stderr())
        dup2(STDIN_FILENO, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (!set_environment(options))
        _exit(1);
    while (recv(fd, &news, sizeof news, 0) == (ssize_t)sizeof news) {
        struct helper_command command = {.text = options->on_event,
                                         .deadline_ms = rlock_clock_ms() + HOOK_MS,
                                         .limit = HOOK_LIMIT,
                                         .client_fd = -1};

        if (!is_new(&told, news.event))
            continue;
        if (!set_event(&news))
            _exit(1);
        if (helper_run(&command, why) || failure[0] != '\0')
            continue;
        snprintf(failure, sizeof failure, "--on-event: %s (event %s)", why, event_name(news.event));
        (void)!send(fd, failure, strlen(failure) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    _exit(0);
}

/* ---- what rlock itself does ---- */

int event_hook_start(struct event_hook *hook, const struct options *options)
{
    int fd;
    pid_t pid = helper_fork(&fd, "rlock-hook");
    int failed = pid < 0 ? errno : 0;

    if (pid == 0)
        serve(fd, options);
    hook->fd = fd;
    return failed;
}

/* The event of --on-event that the message is about; EVENTS: none. */
static enum event event_of(const struct message *message)
{
    enum event what = message->what;

    if (what == EVENT_GRANTED || what == EVENT_WAITING_LONG || what == EVENT_LOST ||
        what == EVENT_RELEASED)
        return what;
    /* all reasons with the exit status of `busy` are busy: also timeout and superseded */
    return (int)what < EXIT_REASONS && exit_reason_row((enum exit_reason)what)->status ==
                                           exit_reason_row(REASON_BUSY)->status
               ? EVENT_BUSY
               : EVENTS;
}

void event_hook_tell(void *context, const struct message *message)
{
    const struct event_hook *hook = context;
    struct hook_news news = {.event = event_of(message)};
    size_t i;

    if (hook->fd < 0 || news.event == EVENTS)
        return;
    for (i = 0; i < MESSAGE_FACTS; i++) {
        const struct fact *fact = &message->facts[i];

        if (fact->kind == FACT_NUMBER && strcmp(fact->name, "fence") == 0)
            snprintf(news.fence, sizeof news.fence, "%" PRId64, fact->number);
        else if (fact->kind == FACT_NUMBER && strcmp(fact->name, "waited_ms") == 0)
            snprintf(news.waited_ms, sizeof news.waited_ms, "%" PRId64, fact->number);
        else if (fact->kind == FACT_PARTY && strcmp(fact->name, "holder") == 0)
            snprintf(news.holder, sizeof news.holder, "%s", fact->party->text);
    }
    snprintf(news.why, sizeof news.why, "%s", message->why != NULL ? message->why : "");
    (void)!send(hook->fd, &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool event_hook_failure(struct event_hook *hook, char *why, size_t room)
{
    char text[FAILURE_BYTES];
    ssize_t n = hook->fd < 0 ? 0 : recv(hook->fd, text, sizeof text, MSG_DONTWAIT);

    if (hook->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (n > 0) {
        snprintf(why, room, "%.*s", (int)n - 1, text);
        return true;
    }
    event_hook_stop(hook);
    snprintf(why, room,
             "--on-event: the process that runs the command was killed, so later events run none");
    return true;
}

void event_hook_stop(struct event_hook *hook)
{
    fds_close(&hook->fd);
}
