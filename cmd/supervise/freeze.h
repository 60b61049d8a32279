/* SPDX-License-Identifier: MIT */
/* freeze: hold still all that runs below this process. */
#ifndef FREEZE_H
#define FREEZE_H

#include "supervise/proctree.h"

/*
 * freeze_tree: stop every thread in the tree of this process that isn't stopped yet.
 * True: all are, and nothing of them runs before freeze_release(). False:
 * some have yet to stop, or were only found now; ask again soon. `*refused`
 * is then the errno of one that can't be stopped, or 0. Never blocks. When one
 * of the tree has ended, what it traced itself may go on: ask again then, too.
 *
 * If this process dies, what it holds still is killed by the kernel.
 */
bool freeze_tree(struct proctree *tree, int *refused);

/*
 * freeze_release: let go all that are stopped, but none after `not_after_ms`
 * on rlock_clock_ms(). One that stops only later is seen by waitpid(2) as
 * stopped, and is let go by freeze_release_one().
 */
void freeze_release(struct proctree *tree, int64_t not_after_ms);
void freeze_release_one(pid_t thread, int64_t not_after_ms);

/* freeze_end: let go everything, also what has yet to stop: after it this process may end. */
void freeze_end(struct proctree *tree);

#endif
