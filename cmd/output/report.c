/* SPDX-License-Identifier: MIT */
/*
 * report: messages on stderr, as text for people or JSON for programs.
 *
 * A full pipe must not block rlock. But rlock can't set O_NONBLOCK, which is a flag of the open
 * file, as the command has the same open file as its stderr. So outfile_write() asks poll(2) first
 * whether stderr has room for a line.
 */
#include "output/report.h"

#include "output/json.h"
#include "output/printable.h"
#include "output/wall_time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <syslog.h>
#include <unistd.h>

#define LINE_BYTES 4096  /* at most PIPE_BUF: a pipe accepts the whole line or nothing of it */
#define PRIORITY_BYTES 3 /* "<5>", which the journal reads as the priority of a line */
#define KEY_BYTES 256
#define ROOM_WITHIN_MS 200 /* rlock drops a line if stderr has no room for it within this time */

static void write_line(const char *line, size_t n)
{
    outfile_write(STDERR_FILENO, line, n, ROOM_WITHIN_MS);
}

/*
 * For each level: its name in JSON and its priority, as in syslog(3); and the prefix of a line, by
 * which systemd's journal learns the priority (sd-daemon(3)).
 */
static const struct {
    const char *name;
    int priority;
    const char *prefix;
} levels[] = {[REPORT_FAILURE] = {"error", LOG_ERR, "<3>"},
              [REPORT_NOTICE] = {"notice", LOG_NOTICE, "<5>"},
              [REPORT_STEP] = {"info", LOG_INFO, "<6>"}};

/*
 * Is stderr connected to systemd's journal? systemd sets JOURNAL_STREAM to the device and inode of
 * the socket. A process may have inherited the variable and another stderr, so both are compared.
 */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    char wanted[64];
    struct stat file;

    if (stream == NULL || fstat(STDERR_FILENO, &file) != 0)
        return false;
    snprintf(wanted, sizeof wanted, "%ju:%ju", (uintmax_t)file.st_dev, (uintmax_t)file.st_ino);
    return strcmp(stream, wanted) == 0;
}

static void write_syslog(enum report_level level, const char *line, size_t n)
{
    openlog("rlock", LOG_PID, LOG_USER);
    syslog(levels[level].priority, "%.*s", (int)n - 1, line);
    closelog();
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
    char said[256];
    char clock[WALL_TIME_BYTES] = "";
    char time[32] = "";
    int n;

    if (report->key != NULL)
        printable_key(key, sizeof key, report->key);
    printable_text(why, sizeof why, message->why == NULL ? "" : message->why);
    printable_text(hint, sizeof hint, message->hint == NULL ? "" : message->hint);
    printable_text(said, sizeof said, message->said == NULL ? "" : message->said);
    if (report->to == REPORT_TO_LOG)
        wall_time_local(clock, wall_time_now_ms());
    if (report->level == REPORT_STEP)
        snprintf(time, sizeof time, " (%" PRId64 ".%03d s)", elapsed_ms(report) / 1000,
                 (int)(elapsed_ms(report) % 1000));
    n = snprintf(line, LINE_BYTES, "%s%s%s%s%s%s%s%s%s%s%s%s%s\n", clock, *clock ? " " : "",
                 report->to == REPORT_TO_SYSLOG ? "" : "rlock: ", key, *key ? ": " : "",
                 message->word != NULL ? message->word : event_name(message->what),
                 *why ? ": " : "", why, *hint ? "; " : "", hint, *said ? "; " : "", said, time);
    return n < 0 ? 0 : (size_t)n;
}

struct fact fact_text(const char *name, const char *text)
{
    return (struct fact){.kind = text != NULL ? FACT_TEXT : FACT_NONE, .name = name, .text = text};
}

struct fact fact_number(const char *name, int64_t number)
{
    return (struct fact){.kind = FACT_NUMBER, .name = name, .number = number};
}

struct fact fact_time(const char *name, int64_t unix_ms)
{
    return (struct fact){
        .kind = unix_ms != 0 ? FACT_TIME : FACT_NONE, .name = name, .number = unix_ms};
}

struct fact fact_party(const char *name, const struct rlock_party *party, const char *for_name)
{
    return (struct fact){.kind = party != NULL ? FACT_PARTY : FACT_NONE,
                         .name = name,
                         .party = party,
                         .for_name = for_name};
}

void message_add(struct message *message, struct fact fact)
{
    size_t i;

    for (i = 0; i < MESSAGE_FACTS; i++)
        if (message->facts[i].kind == FACT_NONE) {
            message->facts[i] = fact;
            return;
        }
}

static void put_fact(struct json *json, const struct fact *fact)
{
    switch (fact->kind) {
    case FACT_NONE:
        break;
    case FACT_TEXT:
        json_string(json, fact->name, fact->text);
        break;
    case FACT_NUMBER:
        json_number(json, fact->name, fact->number);
        break;
    case FACT_TIME:
        json_time(json, fact->name, fact->number);
        break;
    case FACT_PARTY:
        json_party(json, fact->name, fact->party, fact->for_name);
        break;
    }
}

static size_t as_json(const struct report *report, enum report_level level,
                      const struct message *message, char *line)
{
    struct utsname host;
    char key[KEY_BYTES];
    struct json json;
    size_t i;

    json_begin(&json, line, LINE_BYTES);
    json_string(&json, "event", event_name(message->what));
    json_time(&json, "time", wall_time_now_ms());
    json_string(&json, "level", levels[level].name);
    if (uname(&host) == 0)
        json_string(&json, "host", host.nodename);
    json_number(&json, "pid", report->pid);
    json_number(&json, "elapsed_ms", elapsed_ms(report));
    if (report->key != NULL) {
        snprintf(key, sizeof key, "%s", report->key);
        json_string(&json, "key", key);
    }
    for (i = 0; i < MESSAGE_FACTS; i++)
        put_fact(&json, &message->facts[i]);
    if (message->why != NULL)
        json_string(&json, "why", message->why);
    if (message->hint != NULL)
        json_string(&json, "hint", message->hint);
    if (message->said != NULL)
        json_string(&json, "said", message->said);
    json_end(&json);
    return json.used;
}

struct report report_begin(const struct options *options, enum report_level level)
{
    return (struct report){.level = level,
                           .json = options->json != 0,
                           .key = options->n_keys > 0 ? options->keys[0] : NULL,
                           .start_ms = rlock_clock_ms(),
                           .pid = getpid()};
}

void report_set_key(struct report *report, const char *key)
{
    report->key = key;
}

void report_set_listener(struct report *report, report_listener *listener, void *context)
{
    report->listener = listener;
    report->listener_context = context;
}

void report_redirect(struct report *report, enum report_to to)
{
    report->to = to;
    report->pid = getpid();
}

void report_say(const struct report *report, enum report_level level, struct message message)
{
    char bytes[PRIORITY_BYTES + LINE_BYTES];
    char *line = bytes + PRIORITY_BYTES;
    size_t n;

    if (report->listener != NULL)
        report->listener(report->listener_context, &message);
    if (level > report->level)
        return;
    n = report->json ? as_json(report, level, &message, line) : as_text(report, &message, line);
    if (report->to == REPORT_TO_SYSLOG) {
        write_syslog(level, line, n);
    } else if (is_journal()) {
        memcpy(bytes, levels[level].prefix, PRIORITY_BYTES);
        write_line(bytes, PRIORITY_BYTES + n);
    } else {
        write_line(line, n);
    }
}

void report_event(const struct report *report, enum report_level level, enum event what,
                  const char *why, const char *hint)
{
    report_say(report, level,
               (struct message){
                   .what = what, .why = why, .hint = hint != NULL && *hint != '\0' ? hint : NULL});
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
    char text[512];

    snprintf(text, sizeof text, "%s%s%s", why, sys ? ": " : "", sys ? strerror(sys) : "");
    report_event(report, REPORT_FAILURE, event_of_reason(reason), text,
                 sys == EMFILE ? REPORT_MORE_FILES : NULL);
    return reason;
}

/* `good`: stdout has all of the text; else errno says why not. */
static enum exit_reason written(const struct report *report, bool good)
{
    return good ? REASON_GRANTED
                : report_fault(report, REASON_SYSTEM, "can't write to standard output", errno);
}

enum exit_reason report_output(const struct report *report, const char *path, struct outbuf *out)
{
    int failed = out->has_failed ? ENOMEM : 0;
    char why[300];

    if (failed == 0 && path != NULL)
        failed = outfile_put(path, OUTFILE_REPLACES, outbuf_text(out), out->used);
    else if (failed == 0 && !outfile_print(STDOUT_FILENO, outbuf_text(out), out->used))
        failed = errno;
    outbuf_clear(out);
    errno = failed;
    if (failed == 0 || path == NULL)
        return written(report, failed == 0);
    snprintf(why, sizeof why, "%.200s can't be replaced: %s", path, outfile_error(failed));
    return report_fault(report, REASON_SYSTEM, why, 0);
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

int report_file(const struct report *report, const char *path, enum outfile_how how,
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
    if (how == OUTFILE_APPENDS)
        json_time(&json, "time", wall_time_now_ms());
    put_summary(&json, summary, key);
    json_end(&json);
    failed = outfile_put(path, how, text, json.used);
    free(text);
    return failed;
}

enum exit_reason report_printed(const struct report *report)
{
    return written(report, fflush(stdout) == 0 && ferror(stdout) == 0);
}

enum exit_reason report_result(const struct report *report, const char *text)
{
    return written(report, outfile_write(STDOUT_FILENO, text, strlen(text), -1));
}
