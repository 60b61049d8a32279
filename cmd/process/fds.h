/* SPDX-License-Identifier: MIT */
/* fds: close all but a few. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

/*
 * descriptors_keep: close everything above stderr but those in `keep`, which
 * is sorted on the way; negative ones count for nothing. Allocates nothing.
 */
void descriptors_keep(int keep[], int n);

/* descriptors_drop_inherited: close those that rlock was started with, but for 0 to 2. */
void descriptors_drop_inherited(void);

/* descriptors_drop_ours: close those that rlock has opened, but for those in `keep`. */
void descriptors_drop_ours(const int keep[], int n);

#endif
