/* SPDX-License-Identifier: MIT */
/*
 * dumpable: nobody may read this process's memory, as a password is in it.
 *
 * A process that is not "dumpable" (prctl(2), PR_SET_DUMPABLE) writes no core file, and no other
 * process of the same user may attach to it or open its /proc/PID/mem.
 */
#ifndef DUMPABLE_H
#define DUMPABLE_H

/* dumpable_forbid: call this before a password comes into the memory; the process stays so. */
void dumpable_forbid(void);

/*
 * dumpable_reset: for a forked child that has cleared all passwords of its parent: make the process
 * dumpable again, if it was so before.
 */
void dumpable_reset(void);

#endif
