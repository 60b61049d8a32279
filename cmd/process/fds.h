/* SPDX-License-Identifier: MIT */
/* fds: close all but a few. */
#ifndef FDS_H
#define FDS_H

/*
 * fds_keep: close everything above stderr but those in `keep`, which
 * is sorted on the way; negative ones count for nothing. Allocates nothing.
 */
void fds_keep(int keep[], int n);

/* fds_drop_inherited: close those that rlock was started with, but for 0 to 2. */
void fds_drop_inherited(void);

/* fds_drop_ours: close those that rlock has opened, but for those in `keep`. */
void fds_drop_ours(const int keep[], int n);

#endif
