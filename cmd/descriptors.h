/* SPDX-License-Identifier: MIT */
/* descriptors: close all but a few. */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

/*
 * descriptors_keep: close everything above stderr but those in `keep`, which
 * is sorted on the way; negative ones count for nothing. Allocates nothing.
 */
void descriptors_keep(int keep[], int n);

#endif
