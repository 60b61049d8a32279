/* SPDX-License-Identifier: MIT */
/*
 * signals: what rlock does with each signal, and the descriptors to read them from.
 *
 * rlock blocks the signals in the table and the real-time signals, and reads them from a signalfd.
 * It leaves all others as they are, such as those of a fault in rlock itself, and SIGPIPE.
 */
#include "process/signals.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const struct row {
    int number;
    enum signal_action action;
    bool by_key; /* the terminal sends the signal to the whole job, as at ^C or a resize */
} table[] = {
    {SIGHUP, SIGNAL_ENDS, false},    {SIGINT, SIGNAL_ENDS, true},
    {SIGQUIT, SIGNAL_ENDS, true},    {SIGTERM, SIGNAL_ENDS, false},
    {SIGUSR1, SIGNAL_ENDS, false},   {SIGUSR2, SIGNAL_ENDS, false},
    {SIGALRM, SIGNAL_ENDS, false},   {SIGVTALRM, SIGNAL_ENDS, false},
    {SIGPROF, SIGNAL_ENDS, false},   {SIGIO, SIGNAL_ENDS, false},
    {SIGPWR, SIGNAL_ENDS, false},    {SIGSTKFLT, SIGNAL_ENDS, false},
    {SIGCONT, SIGNAL_PASSES, false}, {SIGWINCH, SIGNAL_PASSES, true},
    {SIGTSTP, SIGNAL_STOPS, true},   {SIGTTIN, SIGNAL_STOPS, true},
    {SIGTTOU, SIGNAL_STOPS, true},
};

/* The row of a signal; NULL: rlock doesn't handle the signal. */
static const struct row *row_of(int number)
{
    static const struct row real_time = {0, SIGNAL_ENDS, false};
    size_t i;

    for (i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].number == number)
            return &table[i];
    return number >= SIGRTMIN ? &real_time : NULL;
}

static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) != 0 || now.sa_handler == SIG_IGN;
}

int signals_open(struct signals *signals)
{
    struct sigaction as_default = {.sa_handler = SIG_DFL};
    struct sigaction before;
    sigset_t handled;
    sigset_t stopping; /* signals that interrupt a wait for the lock: all but CONT and WINCH */
    int number;

    sigemptyset(&handled);
    sigemptyset(&stopping);
    for (number = 1; number <= SIGRTMAX; number++) {
        /* an ignored signal stays unblocked: the kernel queues a blocked one even if ignored */
        if (row_of(number) == NULL || is_ignored(number))
            continue;
        sigaddset(&handled, number);
        if (row_of(number)->action != SIGNAL_PASSES)
            sigaddset(&stopping, number);
    }
    /* while SIGCHLD is ignored, waitpid(2) returns no status */
    sigaction(SIGCHLD, &as_default, &before);
    signals->ignores_child = before.sa_handler == SIG_IGN;
    sigprocmask(SIG_BLOCK, &handled, &signals->inherited);
    signals->fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0)
        return errno;
    signals->stop_fd = signalfd(-1, &stopping, SFD_CLOEXEC | SFD_NONBLOCK);
    return signals->stop_fd < 0 ? errno : 0;
}

bool signals_take(const struct signals *signals, struct signal_seen *seen)
{
    struct signalfd_siginfo info;
    const struct row *row;

    if (read(signals->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    row = row_of((int)info.ssi_signo);
    *seen = (struct signal_seen){(int)info.ssi_signo, row->action,
                                 row->by_key && info.ssi_code == SI_KERNEL};
    return true;
}

void signals_yield(int number)
{
    struct rlimit no_core = {0, 0};
    sigset_t one;
    sigset_t before;

    if (row_of(number)->action == SIGNAL_ENDS)
        setrlimit(RLIMIT_CORE, &no_core); /* else SIGQUIT would leave a core file of rlock */
    sigemptyset(&one);
    sigaddset(&one, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

bool signals_end(const struct signals *signals, int *number)
{
    struct signal_seen seen;

    while (signals_take(signals, &seen)) {
        *number = seen.number;
        if (seen.action == SIGNAL_ENDS)
            return true;
        if (seen.action == SIGNAL_STOPS)
            signals_yield(seen.number);
    }
    return false;
}
