/* SPDX-License-Identifier: MIT */
/* signals: what rlock does with each signal, and the descriptors to read them from. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum signal_action {
    SIGNAL_ENDS,   /* passed to the command; before the command runs it ends rlock */
    SIGNAL_PASSES, /* passed to the command; before the command runs it is ignored */
    SIGNAL_STOPS   /* job control: it stops the command and rlock */
};

struct signals {
    int fd;             /* signalfd(2): all handled signals */
    int stop_fd;        /* those that end or stop rlock: interrupts a wait for the lock */
    sigset_t inherited; /* the signal mask that rlock was started with; the command gets it */
    bool ignores_child; /* SIGCHLD was ignored when rlock was started; the command gets that, too */
};

/* A signal that was received. */
struct signal_seen {
    int number;
    enum signal_action action;
    bool from_terminal; /* a key such as ^C: the kernel has sent it to the command as well */
};

/*
 * signals_open: block the handled signals and open the descriptors. A signal that was ignored when
 * rlock was started (nohup) stays ignored. Returns 0, or an errno.
 */
int signals_open(struct signals *signals);

/* signals_take: take the next received signal. False: there is none. Doesn't block. */
bool signals_take(const struct signals *signals, struct signal_seen *seen);

/*
 * signals_end: before the command runs: take all received signals, and stop if one of them stops
 * rlock. True: one of them ends rlock; `*number` is its number.
 */
bool signals_end(const struct signals *signals, int *number);

/*
 * signals_yield: let a signal do to rlock what it does by default: end it, without a core file, or
 * stop it. Returns only after a stop, when rlock was continued.
 */
void signals_yield(int number);

#endif
