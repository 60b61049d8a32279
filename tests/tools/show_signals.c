/* SPDX-License-Identifier: MIT */
/*
 * show_signals: a command that prints each signal that it receives.
 *
 * usage: show_signals SIGNAL STATUS
 *
 * Prints `ready PID`, then of each signal that can be caught number, name and the sender's pid (0:
 * the kernel, for the terminal). After TSTP, TTIN or TTOU it stops, as if it didn't catch them.
 * After SIGNAL, a number, it ends with STATUS.
 *
 * After 120 s SIGALRM ends the command. show_signals catches all other signals that can be caught.
 */
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 120 };

static void print_signal(const struct signalfd_siginfo *got)
{
    const char *name = sigabbrev_np((int)got->ssi_signo);

    printf("%u %s %u\n", got->ssi_signo, name != NULL ? name : "RT", got->ssi_pid);
}

static bool is_job_control(unsigned signo)
{
    return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

static void show_one(int signals, int end_signal, int status)
{
    struct signalfd_siginfo got;

    if (read(signals, &got, sizeof got) != (ssize_t)sizeof got)
        err(2, "signalfd");
    print_signal(&got);
    if ((int)got.ssi_signo == end_signal)
        exit(status);
    if (is_job_control(got.ssi_signo))
        raise(SIGSTOP);
}

int main(int argc, char **argv)
{
    sigset_t shown;
    int signals;

    if (argc != 3)
        errx(2, "usage: show_signals SIGNAL STATUS");
    sigfillset(&shown);
    sigdelset(&shown, SIGALRM);
    sigprocmask(SIG_SETMASK, &shown, NULL);
    alarm(LIMIT_SECONDS);
    signals = signalfd(-1, &shown, SFD_CLOEXEC);
    if (signals < 0)
        err(2, "signalfd");
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d\n", (int)getpid());
    for (;;)
        show_one(signals, atoi(argv[1]), atoi(argv[2]));
}
