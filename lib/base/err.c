/* SPDX-License-Identifier: MIT */
/* err: fills a struct rlock_error, and makes texts of a server fit to be shown. */
#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
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

static void escape(char *out, size_t room, const char *bytes, bool with_backslash)
{
    size_t used = 0;
    unsigned char c;

    while ((c = (unsigned char)*bytes) != '\0' && used + 8 < room) {
        if (c >= ' ' && c < 0x7f && (c != '\\' || !with_backslash))
            out[used++] = (char)c;
        else
            used += (size_t)snprintf(out + used, room - used, "\\x%02x", c);
        bytes++;
    }
    snprintf(out + used, room - used, "%s", *bytes == '\0' ? "" : "...");
}

void err_escape(char *out, size_t room, const char *bytes)
{
    escape(out, room, bytes, true);
}

void err_escape_text(char *out, size_t room, const char *text)
{
    escape(out, room, text, false);
}

void err_prefix(struct rlock_error *err, const char *where)
{
    char text[sizeof err->text];

    if (err == NULL)
        return;
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%.100s: %.150s", where, text);
}

void err_suffix(struct rlock_error *err, const char *and)
{
    size_t used;

    if (err == NULL)
        return;
    used = strlen(err->text);
    snprintf(err->text + used, sizeof err->text - used, "; %s", and);
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
