/* SPDX-License-Identifier: MIT */
/*
 * report: messages on stderr, as text for people or JSON for programs.
 *
 * How a full pipe is kept from blocking rlock: O_NONBLOCK is a flag of the open file, not of the
 * descriptor, and the command has the same open file as its stderr; so rlock doesn't set the flag.
 * It asks poll(2) first whether stderr has room for a line. outfile.c blocks SIGPIPE during the
 * write.
 */
#include "output/report.h"

#include "base/err.h"
#include "output/json.h"
#include "output/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048 /* at most PIPE_BUF: a pipe accepts the whole line or nothing of it */
#define KEY_BYTES 256
#define CLOCK_BYTES 40
#define ROOM_WITHIN_MS 200 /* a line for which stderr has no room for so long is dropped */

static void write_line(const char *line, size_t n)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    if (poll(&room, 1, ROOM_WITHIN_MS) > 0)
        outfile_write(STDERR_FILENO, line, n);
}

static void write_syslog(enum report_level level, const char *line, size_t n)
{
    static const int priorities[] = {
        [REPORT_FAILURE] = LOG_ERR, [REPORT_NOTICE] = LOG_NOTICE, [REPORT_STEP] = LOG_INFO};

    openlog("rlock", LOG_PID, LOG_USER);
    syslog(priorities[level], "%.*s", (int)n - 1, line);
    closelog();
}

void report_draw(int terminal, const char *bytes, size_t n)
{
    (void)!write(terminal, bytes, n);
}

static int64_t elapsed_ms(const struct report *report)
{
    return rlock_clock_ms() - report->start_ms;
}

/* Add the time of day for programs, as RFC 3339 in UTC. */
static void put_time(struct json *json)
{
    struct timespec now;
    char text[40] = "";
    struct tm utc;
    size_t n;

    timespec_get(&now, TIME_UTC);
    if (gmtime_r(&now.tv_sec, &utc) == NULL)
        return;
    n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + n, sizeof text - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    json_string(json, "time", text);
}

/* Write the time of day for people, as RFC 3339 in local time. */
static void put_clock(char text[CLOCK_BYTES])
{
    char zone[8] = "";
    time_t now = time(NULL);
    struct tm here;
    size_t n;

    if (localtime_r(&now, &here) == NULL)
        return;
    n = strftime(text, CLOCK_BYTES, "%Y-%m-%dT%H:%M:%S", &here);
    strftime(zone, sizeof zone, "%z", &here); /* strftime writes +hhmm, RFC 3339 wants +hh:mm */
    snprintf(text + n, CLOCK_BYTES - n, "%.3s:%.2s ", zone, strlen(zone) > 3 ? zone + 3 : "00");
}

static size_t as_text(const struct report *report, const struct message *message, char *line)
{
    char key[KEY_BYTES] = "";
    char why[768];
    char hint[512];
    char clock[CLOCK_BYTES] = "";
    char time[32] = "";
    int n;

    if (report->key != NULL)
        err_escape(key, sizeof key, report->key);
    err_escape_text(why, sizeof why, message->why == NULL ? "" : message->why);
    err_escape_text(hint, sizeof hint, message->hint == NULL ? "" : message->hint);
    if (report->to == REPORT_TO_LOG)
        put_clock(clock);
    if (report->level == REPORT_STEP)
        snprintf(time, sizeof time, " (%" PRId64 ".%03d s)", elapsed_ms(report) / 1000,
                 (int)(elapsed_ms(report) % 1000));
    n = snprintf(line, LINE_BYTES, "%s%s%s%s%s%s%s%s%s%s\n", clock,
                 report->to == REPORT_TO_SYSLOG ? "" : "rlock: ", key, *key ? ": " : "",
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
    if (report->to == REPORT_TO_LOG)
        put_time(&json);
    json_end(&json);
    return json.used;
}

void report_set_key(struct report *report, const char *key)
{
    report->key = key;
}

void report_redirect(struct report *report, enum report_to to)
{
    report->to = to;
}

void report_say(const struct report *report, enum report_level level, struct message message)
{
    char line[LINE_BYTES];
    size_t n;

    if (level > report->level)
        return;
    n = (report->json ? as_json : as_text)(report, &message, line);
    if (report->to == REPORT_TO_SYSLOG)
        write_syslog(level, line, n);
    else
        write_line(line, n);
}

bool report_keeps_stderr(void)
{
    struct stat file;

    return fstat(STDERR_FILENO, &file) == 0 &&
           (S_ISREG(file.st_mode) || isatty(STDERR_FILENO) != 0);
}

enum exit_reason report_fault(const struct report *report, enum exit_reason reason, const char *why,
                              int sys)
{
    char text[400];

    snprintf(text, sizeof text, "%.200s%s%s", why, sys ? ": " : "", sys ? strerror(sys) : "");
    report_say(report, REPORT_FAILURE,
               (struct message){.what = exit_reason_row(reason)->name, .why = text});
    return reason;
}

enum exit_reason report_output(const struct report *report, struct outbuf *out)
{
    if (outbuf_write(out))
        return REASON_GRANTED;
    return report_fault(report, REASON_SYSTEM, "standard output: it can't be written", 0);
}

static void put_summary(struct json *json, const struct summary *summary, const char *key)
{
    json_string(json, "verdict", exit_reason_row(summary->reason)->name);
    json_number(json, "status", summary->status);
    json_number(json, "waited_ms", summary->waited_ms);
    json_number(json, "held_ms", summary->held_ms);
    json_number(json, "renewals", summary->renewals);
    json_number(json, "paused_ms", summary->paused_ms);
    json_unsigned(json, "fence", summary->fence);
    json_string(json, "key", key);
}

int report_file(const struct report *report, const char *path, enum report_how how,
                const struct summary *summary)
{
    const char *key = report->key == NULL ? "" : report->key;
    size_t room = strlen(key) * JSON_BYTES_EACH + 512;
    char *text = malloc(room);
    struct json json;
    int failed;

    if (text == NULL)
        return ENOMEM;
    json_begin(&json, text, room);
    if (how == REPORT_APPENDS)
        put_time(&json);
    put_summary(&json, summary, key);
    json_end(&json);
    failed = (how == REPORT_APPENDS ? outfile_append : outfile_replace)(path, text, json.used);
    free(text);
    return failed;
}

bool report_text(const char *text)
{
    return outfile_print(STDOUT_FILENO, text, strlen(text));
}

bool report_result(const char *text)
{
    return outfile_write(STDOUT_FILENO, text, strlen(text));
}
