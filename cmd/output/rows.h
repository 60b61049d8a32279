/* SPDX-License-Identifier: MIT */
/* rows: lines of text by key, in the order of the keys, and each key once. */
#ifndef ROWS_H
#define ROWS_H

#include <stdbool.h>
#include <stddef.h>

struct row {
    char *key;
    char *line;
};

/* Zero is empty. */
struct rows {
    struct row *row;
    size_t n;
    size_t room;
    bool has_failed; /* no memory: something is missing */
};

/* rows_add: copies of both. */
void rows_add(struct rows *rows, const char *key, const char *line);

/* rows_sort: in the order of the bytes of the keys; of several with one key only one stays. */
void rows_sort(struct rows *rows);

void rows_fini(struct rows *rows);

#endif
