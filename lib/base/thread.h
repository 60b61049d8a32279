/* SPDX-License-Identifier: MIT */
/* thread: a thread that never sees a signal. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

/*
 * thread_start: run `body(arg)` with every signal blocked and a stack of 256 KiB. Returns 0 or an
 * errno. End with thread_join(), which blocks until `body` returns, or with thread_detach().
 */
int thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

void thread_join(pthread_t thread);
void thread_detach(pthread_t thread);

#endif
