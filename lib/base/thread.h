/* SPDX-License-Identifier: MIT */
/* thread: a thread that never sees a signal. */
#ifndef THREAD_H
#define THREAD_H

#include <pthread.h>

/*
 * thread_start: run `body(arg)` with every signal blocked and a small stack.
 * Returns 0 or an errno. Give back with thread_join(), or let it go with
 * thread_detach().
 */
int thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

void thread_join(pthread_t thread);
void thread_detach(pthread_t thread);

#endif
