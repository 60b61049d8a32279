/* SPDX-License-Identifier: MIT */
/*
 * dumpable: nobody may read this process's memory, as a password is in it.
 *
 * A process that is not "dumpable" (prctl(2), PR_SET_DUMPABLE) writes no core file, and no other
 * process of the same user may attach to it or open its /proc/PID/mem.
 */
#ifndef DUMPABLE_H
#define DUMPABLE_H

/* dumpable_forbid: make this process not dumpable, before it stores a password in memory. */
void dumpable_forbid(void);

/* dumpable_reset: undo dumpable_forbid(), in a forked child that has cleared all passwords. */
void dumpable_reset(void);

#endif
