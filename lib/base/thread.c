/* SPDX-License-Identifier: MIT */
/* thread: starts threads that block every signal. */
#include "base/thread.h"

#include <signal.h>

/* Enough for the calls that use most stack: getaddrinfo(3) with NSS modules, TLS handshakes. */
#define STACK_BYTES (256 * 1024)

int thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    pthread_attr_t attr;
    sigset_t all;
    sigset_t before;
    int failed;

    failed = pthread_attr_init(&attr);
    if (failed)
        return failed;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits this mask */
    failed = pthread_create(thread, &attr, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

void thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}

void thread_detach(pthread_t thread)
{
    pthread_detach(thread);
}
