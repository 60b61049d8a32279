/* SPDX-License-Identifier: MIT */
/* err: fills a struct rlock_error, and makes texts of a server fit to be shown. */
#include "base/err.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECRET_PART_BYTES 8 /* shorter beginnings of a secret also occur in ordinary text */

enum rlock_status err_set(struct rlock_error *err, enum rlock_status status, int sys,
                          const char *format, ...)
{
    va_list args;
    size_t used;
    int n;

    if (err == NULL)
        return status;
    err->status = status;
    err->reason = RLOCK_REASON_NONE;
    err->sys = sys;
    err->said = 0;
    va_start(args, format);
    n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    used = n < 0 ? 0 : (size_t)n;
    if (sys != 0 && used < sizeof err->text)
        snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(sys));
    return status;
}

void err_set_reason(struct rlock_error *err, enum rlock_reason reason)
{
    if (err != NULL)
        err->reason = reason;
}

void err_make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

void err_escape(char *out, size_t room, const char *bytes)
{
    size_t used = 0;
    size_t n;

    while (*bytes != '\0' && used + 8 < room) {
        n = *bytes == '\\' ? 0 : utf8_shown_bytes(bytes);
        if (n > 0)
            memcpy(out + used, bytes, n);
        else
            snprintf(out + used, room - used, "\\x%02x", (unsigned char)*bytes);
        used += n > 0 ? n : 4;
        bytes += n > 0 ? n : 1;
    }
    snprintf(out + used, room - used, "%s", *bytes == '\0' ? "" : "...");
}

/* Appends the text, as far as there is room. Returns the new length of the whole text. */
static size_t append(struct rlock_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static size_t append(struct rlock_error *err, const char *format, ...)
{
    size_t used = strlen(err->text);
    va_list args;

    va_start(args, format);
    vsnprintf(err->text + used, sizeof err->text - used, format, args);
    va_end(args);
    return strlen(err->text);
}

void err_prefix(struct rlock_error *err, const char *where)
{
    char text[sizeof err->text];
    size_t before;

    if (err == NULL)
        return;
    memcpy(text, err->text, sizeof text);
    before = (size_t)snprintf(err->text, sizeof err->text, "%.100s: ", where);
    (void)!append(err, "%s", text);
    if (err->said > 0)
        err->said += before;
}

void err_add_said(struct rlock_error *err, const char *words)
{
    if (err == NULL)
        return;
    err->said = err->text[0] != '\0' ? append(err, "; ") : 0;
    (void)!append(err, "the server says: %s", words);
}

void err_suffix(struct rlock_error *err, const char *and)
{
    if (err != NULL)
        (void)!append(err, "; %s", and);
}

/*
 * Counts the bytes at the start of `text` that repeat the secret, or a beginning of the secret of
 * at least SECRET_PART_BYTES. Redis replies to an unknown command with only the first 128 bytes of
 * its arguments, so a long password appears in the reply without its end.
 */
static size_t count_secret_bytes(const char *text, const char *secret)
{
    size_t n = 0;

    while (secret[n] != '\0' && text[n] == secret[n])
        n++;
    return secret[n] == '\0' || n >= SECRET_PART_BYTES ? n : 0;
}

void err_copy_masked(char *out, size_t room, const char *text, const char *secret)
{
    size_t to_mask = 0; /* how many bytes from text[i] on become asterisks */
    size_t i;

    for (i = 0; text[i] != '\0' && i + 1 < room; i++) {
        size_t n = secret != NULL ? count_secret_bytes(text + i, secret) : 0;

        if (n > to_mask)
            to_mask = n;
        out[i] = text[i];
        if (to_mask > 0) {
            out[i] = '*';
            to_mask--;
        }
    }
    out[i] = '\0';
}
