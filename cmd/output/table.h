/* SPDX-License-Identifier: MIT */
/* table: rows of text in columns that fit the terminal. */
#ifndef TABLE_H
#define TABLE_H

#include "output/outbuf.h"
#include "output/terminal.h"

#define TABLE_COLUMNS_MAX 8
/* To fit a terminal, table_print() first cuts the last column to this width, then drops columns. */
#define TABLE_LAST_MIN 16

/* The caller fills the struct in, and ends it by table_fini(). */
struct table {
    const char *heading[TABLE_COLUMNS_MAX]; /* NULL after the last one */
    size_t width_min[TABLE_COLUMNS_MAX];    /* the least width of each column */
    size_t first_min; /* a narrow terminal cuts the first column down to this width; 0: never */
    /* indexes of columns that a narrow terminal doesn't show, in this order; -1 after the last */
    int to_drop[TABLE_COLUMNS_MAX];
    /* The index of a column of bars, never of the last one; 0: none. Only a terminal shows this
     * column, which is a seventh as wide. Each cell is "WAITED_MS HELD_MS", as in struct bar. */
    int bars;
    /* in each row as many cells as headings, separated by tabs, and then a newline */
    struct outbuf rows;
};

/*
 * table_print: append the table to `out`, each column as wide as its widest cell. For a terminal
 * cut the first and the last column, and drop columns, until a row fits. No row: append nothing.
 */
void table_print(const struct table *table, const struct terminal *terminal, struct outbuf *out);

void table_fini(struct table *table);

#endif
