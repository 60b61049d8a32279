/* SPDX-License-Identifier: MIT */
/*
 * outbuf: text that is gathered in memory before it is written to stdout.
 *
 * A struct outbuf is one text that grows at its end. A struct sorted_lines is a set of lines, each
 * under a key, that are written in the order of their keys. Neither reports a lack of memory at
 * once: it is remembered in `has_failed`, and outbuf_write() then writes nothing.
 */
#ifndef OUTBUF_H
#define OUTBUF_H

#include <stdbool.h>
#include <stddef.h>

/* Zero is an empty one. */
struct outbuf {
    char *text; /* heap; NULL: nothing was added yet */
    size_t used;
    size_t room;
    bool has_failed; /* there was no memory: a part of the text is missing */
};

/* outbuf_add: append, as printf(3) formats it. */
void outbuf_add(struct outbuf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* outbuf_text: what was added so far, borrowed until the next call; "" at first. */
const char *outbuf_text(const struct outbuf *out);

/* outbuf_clear: make it empty again; its memory is kept for what comes next. */
void outbuf_clear(struct outbuf *out);

/* outbuf_fail: note that a part of the text could not be made. */
void outbuf_fail(struct outbuf *out);

/*
 * outbuf_write: write all of the text to stdout, and clear it. False: stdout can't be written, or
 * a part of the text is missing and so nothing was written.
 */
bool outbuf_write(struct outbuf *out);

void outbuf_fini(struct outbuf *out);

struct sorted_line {
    char *key; /* heap, both */
    char *text;
};

/* Zero is an empty set. */
struct sorted_lines {
    struct sorted_line *line;
    size_t n;
    size_t room;
    bool has_failed; /* there was no memory: a line is missing */
};

/* sorted_lines_add: add copies of both strings. `text` NULL: there was no memory to make it. */
void sorted_lines_add(struct sorted_lines *lines, const char *key, const char *text);

/*
 * sorted_lines_sort: sort by the bytes of the keys; of the lines with the same key one stays, as a
 * server may list the same lock twice.
 */
void sorted_lines_sort(struct sorted_lines *lines);

/* sorted_lines_set_key: another key, which is taken over, for line i; the order stays. */
void sorted_lines_set_key(struct sorted_lines *lines, size_t i, char *key);

void sorted_lines_fini(struct sorted_lines *lines);

#endif
