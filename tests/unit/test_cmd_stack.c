/* SPDX-License-Identifier: MIT */
/* test_cmd_stack: memory below the stack's frames is freed, or used in advance. */
#include "process/stack.h"
#include "tap.h"

#include <sys/mman.h>
#include <unistd.h>

#define DEEP_BYTES 65536
#define NEAR_BYTES 20480 /* stack_touch() reaches at least so far below its caller's frame */

/* Uses DEEP_BYTES of the stack, as a call with large buffers does. */
__attribute__((noinline)) static int go_deep(int seed)
{
    volatile char buffer[DEEP_BYTES];
    size_t i;

    for (i = 0; i < sizeof buffer; i += 512)
        buffer[i] = (char)seed;
    return buffer[512];
}

/* Counts the pages with memory from `bytes` below the frame of main() up to 4 KiB below it. */
static int count_pages(uintptr_t frame, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = (frame - 4096) & ~(page - 1);
    uintptr_t at;
    int n = 0;

    for (at = end - (bytes & ~(page - 1)); at < end; at += page) {
        unsigned char is_there = 0;

        n += mincore((void *)at, page, &is_there) == 0 && (is_there & 1) != 0;
    }
    return n;
}

int main(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    char kept[] = "kept";
    int n_deep;

    if (sysconf(_SC_PAGESIZE) != 4096) {
        skip("the stack is trimmed", "pages are larger than 4 KiB");
        return done_testing();
    }
    is_int(go_deep(1), 1, "a call uses 64 KiB of the stack");
    n_deep = count_pages(frame, DEEP_BYTES);
    ok(n_deep >= 14, "the memory of the call stays when the call has returned");
    stack_trim();
    ok(count_pages(frame, DEEP_BYTES) <= 4, "stack_trim() frees the memory of the call");
    is_str(kept, "kept", "the caller's own variables keep their values");
    is_int(go_deep(2), 2, "after stack_trim() another call gets memory for its stack");
    stack_trim();
    stack_touch();
    ok(count_pages(frame, NEAR_BYTES) == NEAR_BYTES / 4096,
       "stack_touch() uses the memory below the caller's frame");
    return done_testing();
}
