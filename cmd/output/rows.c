/* SPDX-License-Identifier: MIT */
/* rows: lines of text by key, in the order of the keys, and each key once. */
#include "output/rows.h"

#include <stdlib.h>
#include <string.h>

static void row_fini(struct row *row)
{
    free(row->key);
    free(row->line);
}

void rows_add(struct rows *rows, const char *key, const char *line)
{
    struct row row = {.key = strdup(key), .line = strdup(line)};
    struct row *grown = rows->row;

    if (rows->n == rows->room) {
        rows->room = rows->room * 2 + 64;
        grown = realloc(rows->row, rows->room * sizeof *grown);
    }
    if (grown != NULL)
        rows->row = grown;
    if (grown == NULL || row.key == NULL || row.line == NULL) {
        rows->room = grown == NULL ? rows->n : rows->room;
        rows->has_failed = true;
        row_fini(&row);
        return;
    }
    grown[rows->n++] = row;
}

static int compare(const void *one, const void *other)
{
    const struct row *a = one;
    const struct row *b = other;

    return strcmp(a->key, b->key);
}

void rows_sort(struct rows *rows)
{
    size_t kept = 0;
    size_t i;

    if (rows->n > 0)
        qsort(rows->row, rows->n, sizeof *rows->row, compare);
    for (i = 0; i < rows->n; i++) {
        if (kept > 0 && strcmp(rows->row[kept - 1].key, rows->row[i].key) == 0)
            row_fini(&rows->row[i]);
        else
            rows->row[kept++] = rows->row[i];
    }
    rows->n = kept;
}

void rows_fini(struct rows *rows)
{
    size_t i;

    for (i = 0; i < rows->n; i++)
        row_fini(&rows->row[i]);
    free(rows->row);
    *rows = (struct rows){.row = NULL};
}
