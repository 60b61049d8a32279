/* SPDX-License-Identifier: MIT */
/*
 * report: what rlock says, as text for people or JSON for programs.
 *
 * Stderr is the command's as well, so its flags are not ours to change: a line
 * is written only once there is room for it, and dropped if there is none for
 * a while. SIGPIPE is kept from us for the length of the write.
 */
#include "report.h"

#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048 /* less than PIPE_BUF: whole, or not at all */
#define KEY_BYTES 256
#define PATIENCE_MS 200

static bool write_all(int fd, const char *bytes, size_t n)
{
    ssize_t done;

    while (n > 0) {
        done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/* A closed pipe must not end us: block the signal, and take it if it came. */
static bool write_unbroken(int fd, const char *bytes, size_t n)
{
    struct timespec now = {0, 0};
    sigset_t broken;
    sigset_t before;
    bool good;

    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    good = write_all(fd, bytes, n);
    if (!good && errno == EPIPE)
        sigtimedwait(&broken, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static void write_line(const char *line, size_t n)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&room, 1, PATIENCE_MS) > 0)
        write_unbroken(STDERR_FILENO, line, n);
}

void report_draw(int terminal, const char *bytes, size_t n)
{
    write_all(terminal, bytes, n);
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

void report_escape(char *out, size_t room, const char *bytes)
{
    escape(out, room, bytes, true);
}

/* What is ours to say; others' words in it were escaped when they were put in. */
static void escape_text(char *out, size_t room, const char *text)
{
    escape(out, room, text == NULL ? "" : text, false);
}

static int64_t elapsed_ms(const struct report *report)
{
    return rlock_clock_ms() - report->start_ms;
}

static size_t as_text(const struct report *report, const struct message *message, char *line)
{
    char key[KEY_BYTES] = "";
    char why[768];
    char hint[512];
    char time[32] = "";
    int n;

    if (report->key != NULL)
        report_escape(key, sizeof key, report->key);
    escape_text(why, sizeof why, message->why);
    escape_text(hint, sizeof hint, message->hint);
    if (report->level == REPORT_STEP)
        snprintf(time, sizeof time, " (%" PRId64 ".%03d s)", elapsed_ms(report) / 1000,
                 (int)(elapsed_ms(report) % 1000));
    n = snprintf(line, LINE_BYTES, "rlock: %s%s%s%s%s%s%s%s\n", key, *key ? ": " : "",
                 message->what, *why ? ": " : "", why, *hint ? "; " : "", hint, time);
    return n < 0 ? 0 : (size_t)n;
}

static size_t as_json(const struct report *report, const struct message *message, char *line)
{
    char key[KEY_BYTES];
    struct json json;

    json_begin(&json, line, LINE_BYTES);
    json_string(&json, "event", message->what);
    if (report->key != NULL) {
        snprintf(key, sizeof key, "%s", report->key);
        json_string(&json, "key", key);
    }
    if (message->why != NULL)
        json_string(&json, "why", message->why);
    if (message->hint != NULL)
        json_string(&json, "hint", message->hint);
    if (message->who != NULL)
        json_string(&json, "who", message->who);
    if (message->at_ms != 0)
        json_number(&json, "at_ms", message->at_ms);
    json_number(&json, "elapsed_ms", elapsed_ms(report));
    json_end(&json);
    return json.used;
}

void report_say(const struct report *report, enum report_level level, struct message message)
{
    char line[LINE_BYTES];
    size_t n;

    if (level > report->level)
        return;
    n = (report->json ? as_json : as_text)(report, &message, line);
    write_line(line, n);
}

enum verdict report_fault(const struct report *report, enum verdict verdict, const char *why,
                          int sys)
{
    char text[400];

    snprintf(text, sizeof text, "%.200s%s%s", why, sys ? ": " : "", sys ? strerror(sys) : "");
    report_say(report, REPORT_FAILURE,
               (struct message){.what = verdict_row(verdict)->name, .why = text});
    return verdict;
}

int report_file(const struct report *report, const char *path, const struct summary *summary)
{
    const char *key = report->key == NULL ? "" : report->key;
    size_t room = strlen(key) * JSON_BYTES_EACH + 512;
    char *text = malloc(room);
    struct json json;
    int failed = 0;
    int fd;

    if (text == NULL)
        return ENOMEM;
    json_begin(&json, text, room);
    json_string(&json, "verdict", verdict_row(summary->verdict)->name);
    json_number(&json, "status", summary->status);
    json_number(&json, "waited_ms", summary->waited_ms);
    json_number(&json, "held_ms", summary->held_ms);
    json_number(&json, "renewals", summary->renewals);
    json_number(&json, "paused_ms", summary->paused_ms);
    json_unsigned(&json, "fence", summary->fence);
    json_string(&json, "key", key);
    json_end(&json);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0)
        failed = errno;
    else if (!write_all(fd, text, json.used))
        failed = errno;
    if (fd >= 0 && close(fd) != 0 && failed == 0)
        failed = errno;
    free(text);
    return failed;
}

bool report_text(const char *text)
{
    return write_all(STDOUT_FILENO, text, strlen(text));
}

bool report_result(const char *text)
{
    return write_unbroken(STDOUT_FILENO, text, strlen(text));
}
