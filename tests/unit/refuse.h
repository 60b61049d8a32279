/* SPDX-License-Identifier: MIT */
/*
 * refuse: lets system calls of this process, and of all that it starts, fail from now on.
 *
 * By seccomp(2), so that a test needs no kernel that lacks the call, and no process that may not be
 * signalled: even root's signals are refused then.
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Lets the system call fail with this errno. False: the kernel doesn't allow that. */
static inline bool refuse(unsigned number, unsigned failed)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | failed),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
