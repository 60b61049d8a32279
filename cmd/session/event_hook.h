/* SPDX-License-Identifier: MIT */
/* event_hook: a helper process that runs the command of --on-event for each event of a run. */
#ifndef EVENT_HOOK_H
#define EVENT_HOOK_H

#include "options/options.h"
#include "output/report.h"

/* Only event_hook.c writes the fields. */
struct event_hook {
    /* Socket to the hook process, which reports here that the command failed; -1: no process. */
    int fd;
};

/*
 * event_hook_start: fork the hook process, which runs the command of --on-event, before there is a
 * thread. Returns 0, or an errno.
 */
int event_hook_start(struct event_hook *hook, const struct options *options);

/*
 * event_hook_tell: if the message is about one of the events of --on-event, send that event to the
 * hook process. It is a listener for report_set_listener(), with a struct event_hook as context.
 * Doesn't block, and allocates nothing; if the hook process hangs, events are dropped.
 */
void event_hook_tell(void *hook, const struct message *message);

/*
 * event_hook_failure: write to `why` the reason of the first failure of the command or of the hook
 * process. False: neither has failed, or an earlier call has written the reason. Doesn't block.
 */
bool event_hook_failure(struct event_hook *hook, char *why, size_t room);

/*
 * event_hook_stop: close the socket to the hook process, which still runs the command for the
 * events that were sent, and then exits. Nobody waits for its exit.
 */
void event_hook_stop(struct event_hook *hook);

#endif
