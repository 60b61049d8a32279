/* SPDX-License-Identifier: MIT */
/* signals: what rlock does with each signal, and the descriptor they come by. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

enum signal_action {
    SIGNAL_ENDS,   /* the command gets it; before the command runs it ends rlock */
    SIGNAL_PASSES, /* the command gets it; before the command runs it does nothing */
    SIGNAL_STOPS   /* job control: rlock stops as well */
};

struct signals {
    int fd;             /* readable when a signal came */
    int stop_fd;        /* when one came that ends or stops rlock: cuts a wait for the lock short */
    sigset_t inherited; /* the mask rlock was started with, and the command starts with */
    bool ignores_child; /* SIGCHLD was ignored when rlock was started */
};

/* A signal that came. */
struct signal_seen {
    int number;
    enum signal_action action;
    bool from_terminal; /* the command got it as well */
};

/*
 * signals_open: block what is handled and open the descriptor. What rlock was
 * started with as ignored stays ignored. 0, or an errno.
 */
int signals_open(struct signals *signals);

/* signals_take: the next signal that came, if any. */
bool signals_take(const struct signals *signals, struct signal_seen *seen);

/*
 * signals_end: while nothing runs yet: act on the signals that came. True with
 * the number of one that is to end rlock; one that stops it has done so.
 */
bool signals_end(const struct signals *signals, int *number);

/*
 * signals_yield: do to this process what the signal does by default, as if
 * rlock had never blocked it. Returns if that was to stop, and it goes on.
 */
void signals_yield(int number);

#endif
