/* SPDX-License-Identifier: MIT */
/*
 * kernel: the system calls that the library makes, as the simulated world answers them.
 *
 * The linker leads each such call here (--wrap), so all of lib/ is simulated as it ships. Calls
 * that no coroutine makes, and those with a real descriptor, go on to the real function.
 */
#ifndef KERNEL_H
#define KERNEL_H

struct process;

/* kernel_close_all: close a process's descriptors, as at its end; its connections end. */
void kernel_close_all(struct process *process);

#endif
