/* SPDX-License-Identifier: MIT */
/*
 * dumpable: nobody may read this process's memory while a password is in it.
 *
 * A process that is not "dumpable" (prctl(2), PR_SET_DUMPABLE) writes no core file, and no other
 * process of the same user may attach to it or open its /proc/PID/mem.
 */
#ifndef DUMPABLE_H
#define DUMPABLE_H

/*
 * dumpable_forbid, dumpable_allow: a password comes into the memory, and is cleared from it. They
 * count: after the last dumpable_allow() the process is what it was before dumpable_forbid().
 * Calls of several threads must not overlap.
 */
void dumpable_forbid(void);
void dumpable_allow(void);

/* dumpable_reset: for a forked child that has cleared all passwords: allow it, whatever counts. */
void dumpable_reset(void);

#endif
