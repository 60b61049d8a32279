/* SPDX-License-Identifier: MIT */
/* freeze: stop every thread of all descendants of this process, and let them run again. */
#ifndef FREEZE_H
#define FREEZE_H

#include "supervise/proctree.h"

/*
 * freeze_tree: tell every thread of the tree to stop that isn't stopped yet. Never blocks.
 *
 * True: all threads are stopped, and none runs before freeze_release(). The caller calls this again
 * when a process of the tree has ended: if that was a debugger, the kernel lets the threads run
 * that the debugger had stopped. False: some threads have yet to stop, or were found only now; the
 * caller calls this again in a few ms. `*refused` is the errno for a thread that can't be stopped,
 * or 0.
 *
 * If this process dies, the kernel kills all frozen processes.
 */
bool freeze_tree(struct proctree *tree, int *refused);

/*
 * freeze_release: let the stopped threads run again, one after the other. From `not_after_ms` on
 * (on rlock_clock_ms()) freeze_release() lets no further thread run. If this process has no
 * descriptor or memory to find the threads, freeze_release() tries again for 0.2 s. False: a thread
 * may have been left stopped.
 *
 * freeze_release_one: the same for one thread. freeze_tree() tells a thread to stop; if the thread
 * stops only after freeze_release(), waitpid(2) reports that, and the caller calls
 * freeze_release_one().
 */
bool freeze_release(struct proctree *tree, int64_t not_after_ms);
bool freeze_release_one(pid_t thread, int64_t not_after_ms);

/*
 * freeze_has_thread: true if this process traces a thread that lives. If this process exits then,
 * the kernel kills the thread. After freeze_release() such a thread has yet to stop: only a stopped
 * thread can be released, and a thread that waits in vfork(2) does not stop before its child's
 * exec or end. waitpid(2) reports the stop, and the caller calls freeze_release_one().
 */
bool freeze_has_thread(void);

#endif
