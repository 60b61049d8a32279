/* SPDX-License-Identifier: MIT */
/* list: tell all locks of the server. */
#ifndef LIST_H
#define LIST_H

#include "options/options.h"

/* tell_list: what the verb does; returns the exit status. */
int tell_list(const struct options *options);

#endif
