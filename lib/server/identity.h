/* SPDX-License-Identifier: MIT */
/* identity: which server it is that answers, and since when it runs. */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdint.h>

struct identity {
    char run_id[48]; /* "": it hasn't told */
    int64_t born_ms; /* when it started, at the latest, on rlock_clock_ms() */
};

/* identity_read: from what INFO says just now; it may be anything, and "" tells nothing. */
void identity_read(struct identity *identity, const char *info);

#endif
