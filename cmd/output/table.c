/* SPDX-License-Identifier: MIT */
/* table: rows of text in columns that fit the terminal. */
#include "output/table.h"

#include "output/bar.h"
#include "output/printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN 2   /* blanks between two columns */
#define BARS_PART 7 /* a column of bars is 1/BARS_PART as wide as the terminal */

struct layout {
    size_t width[TABLE_COLUMNS_MAX];
    bool is_shown[TABLE_COLUMNS_MAX];
    int n;          /* number of columns */
    int last;       /* the last column that is shown */
    double most_ms; /* the length of the longest bar */
};

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

static void widen(struct layout *layout, int column, size_t columns)
{
    if (columns > layout->width[column])
        layout->width[column] = columns;
}

/* Reads a bar from a cell; false: the column has no bars, or the cell is a heading. */
static bool read_bar(struct bar *bar, const struct table *table, int column, const char *cell)
{
    return table->bars > 0 && column == table->bars &&
           sscanf(cell, "%" SCNd64 " %" SCNd64, &bar->waited_ms, &bar->held_ms) == 2;
}

/* Makes the column of a cell wide enough. Bars have the same width in all rows. */
static void measure(struct layout *layout, const struct table *table, int column, const char *cell)
{
    struct bar bar;

    if (!read_bar(&bar, table, column, cell))
        widen(layout, column, printable_columns(cell));
    else if (bar_ms(&bar) > layout->most_ms)
        layout->most_ms = bar_ms(&bar);
}

/* The width to which a column may be cut. Only the first and the last column are ever cut. */
static size_t least_width(const struct layout *layout, const struct table *table, int column)
{
    if (column == layout->n - 1)
        return least(layout->width[column], TABLE_LAST_MIN);
    if (column == 0 && table->first_min > 0)
        return least(layout->width[column], table->first_min);
    return layout->width[column];
}

/* The width of a row with the columns that are shown, each as narrow as it may become. */
static size_t least_row_width(const struct layout *layout, const struct table *table)
{
    size_t width = 0;
    int i;

    for (i = 0; i < layout->n; i++)
        if (layout->is_shown[i])
            width += BETWEEN + least_width(layout, table, i);
    return width - BETWEEN;
}

/*
 * Choose the columns to show, and the widths of the first and the last one, so that a row fits into
 * `room`. The first one is cut only if the row is too long even with the last one at its least
 * width. The last one is as wide as the others leave room for.
 */
static void fit(struct layout *layout, const struct table *table, size_t room)
{
    size_t before = 0;
    size_t behind;
    int i;

    for (i = 0; i < TABLE_COLUMNS_MAX && table->to_drop[i] >= 0; i++)
        if (least_row_width(layout, table) > room)
            layout->is_shown[table->to_drop[i]] = false;
    for (i = 0; i < layout->n; i++)
        if (layout->is_shown[i])
            layout->last = i;
    behind = least_row_width(layout, table) - least_width(layout, table, 0);
    if (table->first_min > 0)
        layout->width[0] = least(layout->width[0], room > behind ? room - behind : 1);
    for (i = 0; i < layout->last; i++)
        before += layout->is_shown[i] ? layout->width[i] + BETWEEN : 0;
    layout->width[layout->last] = before < room ? room - before : 1;
}

/* Append one row, and cut its cells to the widths of their columns. `cells` is changed. */
static void put_row(struct outbuf *out, const struct table *table, const struct layout *layout,
                    char *cells, const struct terminal *terminal)
{
    struct bar bar;
    char *cell;
    int i;

    for (i = 0; i < layout->n && (cell = strsep(&cells, "\t")) != NULL; i++) {
        if (!layout->is_shown[i])
            continue;
        if (read_bar(&bar, table, i, cell)) {
            bar_add(out, &bar, layout->most_ms, layout->width[i], terminal);
            outbuf_add(out, "%*s", BETWEEN, "");
            continue;
        }
        printable_fit(cell, layout->width[i]);
        if (i == layout->last)
            outbuf_add(out, "%s\n", cell);
        else
            outbuf_add(out, "%s%*s", cell,
                       (int)(layout->width[i] - printable_columns(cell) + BETWEEN), "");
    }
}

static void put_headings(struct outbuf *out, const struct table *table, const struct layout *layout,
                         const struct terminal *terminal)
{
    struct outbuf cells = {.text = NULL};
    char *row;
    int i;

    for (i = 0; i < layout->n; i++)
        outbuf_add(&cells, "%s%s", i > 0 ? "\t" : "", table->heading[i]);
    row = cells.text;
    if (row == NULL) {
        outbuf_fail(out);
        return;
    }
    outbuf_add(out, "%s", terminal_colour(terminal, COLOUR_STRONG));
    put_row(out, table, layout, row, terminal);
    outbuf_add(out, "%s", terminal_colour(terminal, COLOUR_NONE));
    outbuf_fini(&cells);
}

void table_print(const struct table *table, const struct terminal *terminal, struct outbuf *out)
{
    struct layout layout = {.n = 0};
    char *copy = strdup(outbuf_text(&table->rows));
    char *rest = copy;
    char *row;
    int i;

    if (copy == NULL || table->rows.has_failed)
        outbuf_fail(out);
    if (copy == NULL || *copy == '\0') {
        free(copy);
        return;
    }
    for (; layout.n < TABLE_COLUMNS_MAX && table->heading[layout.n] != NULL; layout.n++) {
        layout.is_shown[layout.n] = true;
        layout.last = layout.n;
        layout.width[layout.n] = table->width_min[layout.n];
        widen(&layout, layout.n, printable_columns(table->heading[layout.n]));
    }
    while ((row = strsep(&rest, "\n")) != NULL && *row != '\0') {
        char *cell;

        for (i = 0; i < layout.n && (cell = strsep(&row, "\t")) != NULL; i++)
            measure(&layout, table, i, cell);
    }
    if (table->bars > 0) {
        layout.is_shown[table->bars] = terminal->is_terminal;
        widen(&layout, table->bars, (size_t)terminal->columns / BARS_PART);
    }
    if (terminal->is_terminal)
        fit(&layout, table, (size_t)terminal->columns);
    put_headings(out, table, &layout, terminal);
    strcpy(copy, outbuf_text(&table->rows)); /* a new copy: strsep() has cut the first one */
    rest = copy;
    while ((row = strsep(&rest, "\n")) != NULL && *row != '\0')
        put_row(out, table, &layout, row, terminal);
    free(copy);
}

void table_fini(struct table *table)
{
    outbuf_fini(&table->rows);
}
