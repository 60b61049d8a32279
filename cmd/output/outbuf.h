/* SPDX-License-Identifier: MIT */
/*
 * outbuf: text that is gathered in memory before it is written.
 *
 * A struct outbuf is a text to which the caller appends. A struct sorted_lines is a set of lines,
 * each with a key by which the lines are sorted. If memory runs out, no call reports that at once:
 * `has_failed` becomes true, and report_output() then writes nothing.
 */
#ifndef OUTBUF_H
#define OUTBUF_H

#include <stdbool.h>
#include <stddef.h>

/* A struct of zeros is an empty text. */
struct outbuf {
    char *text; /* heap; NULL: nothing was added yet */
    size_t used;
    size_t room;
    bool has_failed; /* memory ran out: a part of the text is missing */
};

/* outbuf_add: append a text that is formatted as printf(3) does. */
void outbuf_add(struct outbuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* outbuf_text: the text so far, or ""; borrowed until the next outbuf_add() or outbuf_fini(). */
const char *outbuf_text(const struct outbuf *out);

/* outbuf_clear: empty the text, and keep its memory for the next text. */
void outbuf_clear(struct outbuf *out);

/* outbuf_fail: set `has_failed`, as the caller has no memory to make a part of the text. */
void outbuf_fail(struct outbuf *out);

void outbuf_fini(struct outbuf *out);

struct sorted_line {
    char *key;  /* heap */
    char *text; /* heap */
};

/* A struct of zeros is an empty set. */
struct sorted_lines {
    struct sorted_line *line;
    size_t n;
    size_t room;
    bool has_failed; /* memory ran out: a line is missing */
};

/*
 * sorted_lines_add: add a line; both strings are copied. If the caller had no memory to make the
 * text, it passes NULL, and `has_failed` becomes true.
 */
void sorted_lines_add(struct sorted_lines *lines, const char *key, const char *text);

/*
 * sorted_lines_sort: sort the lines by the bytes of their keys, and keep only one line of each key,
 * because a server may list a lock twice.
 */
void sorted_lines_sort(struct sorted_lines *lines);

void sorted_lines_fini(struct sorted_lines *lines);

#endif
