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
    const char *heading[TABLE_COLUMNS_MAX]; /* NULL behind the last one */
    size_t width_min[TABLE_COLUMNS_MAX];    /* the least width of each column */
    size_t first_min; /* a narrow terminal cuts the first column down to this width; 0: never */
    /* indexes of columns that a narrow terminal doesn't show, in this order; -1 behind the last */
    int to_drop[TABLE_COLUMNS_MAX];
    /*
     * The index of a column of bars, which is a seventh as wide as the terminal, and never the last
     * one; 0: none. Elsewhere than on a terminal it isn't shown. Its cells are the waited_ms and
     * held_ms of a struct bar, with a blank between them.
     */
    int bars;
    /* each row: as many cells as headings, with tabs between them, and a newline behind them */
    struct outbuf rows;
};

/*
 * table_print: append the table to `out`, each column as wide as its widest cell. On a terminal it
 * cuts the first and the last column, and drops columns, until a row fits. Prints nothing if there
 * is no row.
 */
void table_print(const struct table *table, const struct terminal *terminal, struct outbuf *out);

void table_fini(struct table *table);

#endif
