/* SPDX-License-Identifier: MIT */
/*
 * show_signals: a command that prints each signal that it receives.
 *
 * usage: show_signals [-e SIGNAL] [-i] [-s STATUS]
 *
 * Prints `ready PID`, then of each signal that can be caught number, name and the sender's pid (0:
 * the kernel, for the terminal). After TSTP, TTIN or TTOU it stops, as if it didn't catch them.
 *
 *   -e SIGNAL   end after the signal of this number
 *   -i          end at the end of standard input
 *   -s STATUS   end with this status instead of 0
 *
 * After 120 s SIGALRM ends the command. show_signals catches all other signals that can be caught.
 */
#include <err.h>
#include <poll.h>
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

/* Reads and discards input. At the end of input, stops polling for it. */
static void read_away(struct pollfd *in)
{
    char bytes[4096];

    if (read(in->fd, bytes, sizeof bytes) <= 0)
        in->fd = -1;
}

int main(int argc, char **argv)
{
    struct pollfd polled[2] = {{.events = POLLIN}, {.fd = -1, .events = POLLIN}};
    bool ends_with_input = false;
    int end_signal = 0;
    int status = 0;
    sigset_t shown;
    int option;

    while ((option = getopt(argc, argv, "e:is:")) != -1) {
        switch (option) {
        case 'e':
            end_signal = atoi(optarg);
            break;
        case 'i':
            ends_with_input = true;
            break;
        case 's':
            status = atoi(optarg);
            break;
        default:
            errx(2, "usage: show_signals [-e SIGNAL] [-i] [-s STATUS]");
        }
    }
    sigfillset(&shown);
    sigdelset(&shown, SIGALRM);
    sigprocmask(SIG_SETMASK, &shown, NULL);
    alarm(LIMIT_SECONDS);
    polled[0].fd = signalfd(-1, &shown, SFD_CLOEXEC);
    if (polled[0].fd < 0)
        err(2, "signalfd");
    if (ends_with_input)
        polled[1].fd = STDIN_FILENO;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d\n", (int)getpid());
    while (!ends_with_input || polled[1].fd >= 0) {
        if (poll(polled, 2, -1) < 0)
            err(2, "poll");
        if (polled[0].revents != 0)
            show_one(polled[0].fd, end_signal, status);
        if (polled[1].revents != 0)
            read_away(&polled[1]);
    }
    return status;
}
