/* SPDX-License-Identifier: MIT */
/* buffer: queues of bytes, and strings of a known length. */
#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void buffer_add(struct buffer *buffer, const void *bytes, size_t n)
{
    if (buffer->n + n > buffer->room) {
        buffer->room = (buffer->n + n) * 2;
        buffer->at = realloc(buffer->at, buffer->room);
        if (buffer->at == NULL)
            abort();
    }
    if (n > 0)
        memcpy(buffer->at + buffer->n, bytes, n);
    buffer->n += n;
}

void buffer_add_format(struct buffer *buffer, const char *format, ...)
{
    char text[512];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        abort();
    buffer_add(buffer, text, (size_t)n);
}

void buffer_take(struct buffer *buffer, size_t n)
{
    memmove(buffer->at, buffer->at + n, buffer->n - n);
    buffer->n -= n;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->at);
    *buffer = (struct buffer){.at = NULL};
}

struct text buffer_text(const struct buffer *buffer)
{
    return (struct text){buffer->at, buffer->n};
}

struct text text_of(const char *string)
{
    return (struct text){string, strlen(string)};
}

bool text_is(struct text text, const char *string)
{
    return text.n == strlen(string) && memcmp(text.at, string, text.n) == 0;
}

bool text_is_word(struct text text, const char *word)
{
    return text.n == strlen(word) && strncasecmp(text.at, word, text.n) == 0;
}

bool text_starts(struct text text, const char *beginning)
{
    size_t n = strlen(beginning);

    return text.n >= n && memcmp(text.at, beginning, n) == 0;
}

int text_compare(struct text one, struct text other)
{
    size_t n = one.n < other.n ? one.n : other.n;
    int order = n > 0 ? memcmp(one.at, other.at, n) : 0;

    return order != 0 ? order : (one.n > other.n) - (one.n < other.n);
}
