/* SPDX-License-Identifier: MIT */
/* stack: prepares the stack memory that rlock will need, and frees what it has needed. */
#include "process/stack.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define TRIM_BYTES (256 * 1024) /* no call of rlock goes deeper than this */
#define OWN_BYTES 1024          /* stays: more than the frames of stack_trim() and madvise(2) */
#define TOUCH_BYTES 28672       /* rlock needs less than this until the command starts */
#define PAGE_BYTES 4096         /* with larger pages madvise(2) fails, and the memory stays */

/*
 * Below the lowest page in use no memory is mapped. madvise(2) then fails with ENOMEM, but has
 * freed all pages that are mapped.
 */
void stack_trim(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t end = (here - OWN_BYTES) & ~(uintptr_t)(PAGE_BYTES - 1);

    (void)!madvise((void *)(end - TRIM_BYTES), TRIM_BYTES, MADV_DONTNEED);
}

/* Writes to all bytes: if a function writes to some only, clang keeps just these on the stack. */
void stack_touch(void)
{
    char below[TOUCH_BYTES];

    explicit_bzero(below, sizeof below);
}
