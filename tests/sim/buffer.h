/* SPDX-License-Identifier: MIT */
/*
 * buffer: a struct buffer is a queue of bytes: callers add bytes at its end, and take bytes from
 * its beginning. A struct text is a string of a known length, which may contain any bytes.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    const char *at;
    size_t n;
};

struct buffer {
    char *at;
    size_t n;
    size_t room;
};

void buffer_add(struct buffer *buffer, const void *bytes, size_t n);
void buffer_add_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buffer_take(struct buffer *buffer, size_t n); /* drops the first n bytes */
void buffer_free(struct buffer *buffer);

struct text buffer_text(const struct buffer *buffer);

struct text text_of(const char *string);
bool text_is(struct text text, const char *string);    /* are the bytes the same? */
bool text_is_word(struct text text, const char *word); /* upper and lower case are the same */
bool text_starts(struct text text, const char *beginning);
int text_compare(struct text one, struct text other); /* as memcmp(3); "a" is before "aa" */

#endif
