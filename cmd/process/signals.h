/* SPDX-License-Identifier: MIT */
/* signals: what rlock does with each signal, and the descriptors to read them from. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* What rlock does with a signal. */
enum signal_action {
    SIGNAL_ENDS,   /* passed to the command that rlock runs; before the command runs: ends rlock */
    SIGNAL_PASSES, /* passed to the command that rlock runs; before the command runs: ignored */
    SIGNAL_STOPS   /* a signal of job control: rlock stops the command, and then itself */
};

struct signals {
    int fd;      /* signalfd(2) for all signals that rlock handles */
    int stop_fd; /* signalfd(2) for signals that end or stop rlock; the library's calls poll it */
    sigset_t inherited; /* the signal mask that rlock was started with, for the command */
    bool ignores_child; /* rlock was started with SIGCHLD ignored; the command is started so, too */
};

/* A signal that was received. */
struct signal_seen {
    int number;
    enum signal_action action;
    bool from_terminal; /* the terminal has sent it, as at ^C, to the command as well */
};

/*
 * signals_open: block the signals that rlock handles, and open the descriptors. A signal that was
 * ignored when rlock was started, as by nohup(1), stays ignored. Returns 0, or an errno.
 */
int signals_open(struct signals *signals);

/* signals_take: read the next signal that was received. False: there is none. Doesn't block. */
bool signals_take(const struct signals *signals, struct signal_seen *seen);

/*
 * signals_end: before the command runs, read the signals that were received, up to the first that
 * ends rlock; stop this process for each that stops rlock. True: one ends rlock; `*number` is it.
 */
bool signals_end(const struct signals *signals, int *number);

/*
 * signals_yield: send rlock a signal with its default action, which ends rlock, without a core
 * file, or stops rlock. After a stop, returns when rlock was continued.
 */
void signals_yield(int number);

#endif
