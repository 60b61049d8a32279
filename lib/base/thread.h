/* SPDX-License-Identifier: MIT */
/* thread: starts threads that block every signal. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

/*
 * thread_start: run `body(arg)` in a new thread, with every signal blocked and a stack of 256 KiB.
 * Returns 0 or an errno. The caller then calls thread_join(), which blocks until `body` returns, or
 * thread_detach().
 */
int thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

void thread_join(pthread_t thread);
void thread_detach(pthread_t thread);

#endif
