/* SPDX-License-Identifier: MIT */
/* fds: close groups of descriptors in a forked process. */
#ifndef FDS_H
#define FDS_H

#include <stdbool.h>

/* The last two arguments of fds_keep() or fds_drop(), from a list of descriptors. */
#define FDS(...) (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))

/* fds_close: close the descriptor, unless `*fd` is negative, and set `*fd` to -1. */
void fds_close(int *fd);

/*
 * fds_keep: close all descriptors above stderr, except those in `keep`, in which negative numbers
 * are ignored. Allocates nothing: safe between fork and exec.
 */
void fds_keep(const int keep[], int n);

/*
 * fds_drop: close all descriptors that rlock has opened (`is_ours`), or else all that rlock was
 * started with; except 0, 1, 2 and the `n` of `keep`.
 */
void fds_drop(bool is_ours, const int keep[], int n);

#endif
