/* SPDX-License-Identifier: MIT */
/* freeze: stop every thread of all descendants of this process, and let them run again. */
#ifndef FREEZE_H
#define FREEZE_H

#include "supervise/proctree.h"

/*
 * freeze_tree: stop every thread of the tree that isn't stopped yet. Never blocks.
 *
 * True: all threads are stopped, and none runs before freeze_release(). Call it again when a
 * process of the tree has ended: if that was a debugger, the kernel lets go what it had stopped.
 * False: some threads have yet to stop, or were found only now: call it again in a few ms.
 * `*refused` is the errno of a thread that can't be stopped, or 0.
 *
 * If this process dies, the kernel kills all that is frozen.
 */
bool freeze_tree(struct proctree *tree, int *refused);

/*
 * freeze_release: let all stopped threads run again, but none when it is `not_after_ms` on
 * rlock_clock_ms() or later: then the rest stays stopped. A thread that freeze_tree() told to stop
 * may stop only after this: waitpid(2) reports it as stopped, and it needs freeze_release_one().
 */
void freeze_release(struct proctree *tree, int64_t not_after_ms);
void freeze_release_one(pid_t thread, int64_t not_after_ms);

/*
 * freeze_end: let all threads run again for good, also those that have yet to stop, so that this
 * process may end without killing them. Blocks for 0.2 s at most.
 */
void freeze_end(struct proctree *tree);

#endif
