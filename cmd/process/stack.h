/* SPDX-License-Identifier: MIT */
/* stack: prepares the stack memory that rlock will need, and frees what it has needed. */
#ifndef STACK_H
#define STACK_H

/*
 * stack_trim: give the kernel back the memory of the stack below the caller's frame, which calls
 * that have returned still occupy. A later call that needs a page there gets an empty page. Only
 * the main thread may call this function.
 */
void stack_trim(void);

/*
 * stack_touch: write to the memory of the stack below the caller's frame, as far as rlock needs it
 * until the command starts. After a fork the kernel copies each page of the stack at the first
 * write. rlock calls this while it waits, so that it doesn't spend the time for the copies between
 * the grant and the start of the command.
 */
void stack_touch(void);

#endif
