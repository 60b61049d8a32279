/* SPDX-License-Identifier: MIT */
/* outbuf: text that is gathered in memory before it is written. */
#include "output/outbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct outbuf *out, size_t more)
{
    size_t room = out->room;
    char *grown;

    while (room < out->used + more)
        room = room * 2 + 512;
    if (room == out->room)
        return true;
    grown = realloc(out->text, room);
    if (grown == NULL)
        return false;
    out->text = grown;
    out->room = room;
    return true;
}

void outbuf_add(struct outbuf *out, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !make_room(out, (size_t)n + 1)) {
        out->has_failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(out->text + out->used, (size_t)n + 1, format, args);
    va_end(args);
    out->used += (size_t)n;
}

const char *outbuf_text(const struct outbuf *out)
{
    return out->text == NULL ? "" : out->text;
}

void outbuf_clear(struct outbuf *out)
{
    out->used = 0;
    out->has_failed = false;
    if (out->text != NULL)
        out->text[0] = '\0';
}

void outbuf_fail(struct outbuf *out)
{
    out->has_failed = true;
}

void outbuf_fini(struct outbuf *out)
{
    free(out->text);
    *out = (struct outbuf){.text = NULL};
}

/* ---- sorting lines by their keys ---- */

static void line_fini(struct sorted_line *line)
{
    free(line->key);
    free(line->text);
}

static bool add_line(struct sorted_lines *lines, struct sorted_line line)
{
    size_t room = lines->room * 2 + 64;
    struct sorted_line *grown;

    if (line.key == NULL || line.text == NULL)
        return false;
    if (lines->n == lines->room) {
        grown = realloc(lines->line, room * sizeof *grown);
        if (grown == NULL)
            return false;
        lines->line = grown;
        lines->room = room;
    }
    lines->line[lines->n++] = line;
    return true;
}

void sorted_lines_add(struct sorted_lines *lines, const char *key, const char *text)
{
    struct sorted_line line = {.key = strdup(key), .text = text != NULL ? strdup(text) : NULL};

    if (add_line(lines, line))
        return;
    lines->has_failed = true;
    line_fini(&line);
}

static int compare_keys(const void *one, const void *other)
{
    const struct sorted_line *a = one;
    const struct sorted_line *b = other;

    return strcmp(a->key, b->key);
}

void sorted_lines_sort(struct sorted_lines *lines)
{
    size_t kept = 0;
    size_t i;

    if (lines->n > 0)
        qsort(lines->line, lines->n, sizeof *lines->line, compare_keys);
    for (i = 0; i < lines->n; i++) {
        if (kept > 0 && strcmp(lines->line[kept - 1].key, lines->line[i].key) == 0)
            line_fini(&lines->line[i]);
        else
            lines->line[kept++] = lines->line[i];
    }
    lines->n = kept;
}

void sorted_lines_fini(struct sorted_lines *lines)
{
    size_t i;

    for (i = 0; i < lines->n; i++)
        line_fini(&lines->line[i]);
    free(lines->line);
    *lines = (struct sorted_lines){.line = NULL};
}
