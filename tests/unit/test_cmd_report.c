/* SPDX-License-Identifier: MIT */
/* test_cmd_report: a message is one line, whatever bytes it has; a report file is written whole. */
#include "base/err.h"
#include "files.h"
#include "output/report.h"
#include "stderr.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>

static const struct {
    const char *bytes, *wanted;
} escaped[] = {
    {"", ""},
    {"job:nightly ~!", "job:nightly ~!"},
    {"\n\r\t\x1b[2J\x7f", "\\x0a\\x0d\\x09\\x1b[2J\\x7f"},
    {"\\x1b", "\\x5cx1b"},
    {"\xc3\xa9\xff\x80", "\xc3\xa9\\xff\\x80"},
    {"\xe2\x80\xae\xc2\x9b", "\\xe2\\x80\\xae\\xc2\\x9b"},
    {"%s%n", "%s%n"},
};

static void test_escape(void)
{
    char all[256];
    char out[1100];
    bool is_good = true;
    size_t room;

    for (size_t i = 0; i < sizeof escaped / sizeof escaped[0]; i++) {
        err_escape(out, sizeof out, escaped[i].bytes);
        is_str(out, escaped[i].wanted, "hidden characters and invalid bytes are escaped");
    }
    for (size_t i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    for (room = 1; is_good && room < sizeof out; room++) {
        memset(out, 0x01, sizeof out);
        err_escape(out, room, all);
        is_good = memchr(out, '\0', room) != NULL;
        for (size_t i = 0; is_good && out[i] != '\0'; i++)
            is_good = out[i] >= ' ' && out[i] <= '~';
        for (size_t i = room; i < sizeof out; i++)
            is_good = is_good && out[i] == 0x01;
        if (room > 8 && room < 600)
            is_good = is_good && strcmp(out + strlen(out) - 3, "...") == 0;
        /* An escape sequence that is cut would be read as another byte. */
        is_good = is_good && (strrchr(out, '\\') == NULL || strlen(strrchr(out, '\\')) >= 4);
    }
    okf(is_good, "any bytes fit into %zu bytes: a cut text ends in ..., and no escape is cut: %.*s",
        room - 1, (int)room - 1, out);
}

static const char *said(const struct report *report, struct message message)
{
    stderr_catch();
    report_say(report, REPORT_NOTICE, message);
    return stderr_caught();
}

/* Returns whether the text is one line of at most 4096 bytes. */
static bool is_line(const char *text)
{
    return strlen(text) <= 4096 && strchr(text, '\n') == text + strlen(text) - 1;
}

static void test_say(void)
{
    const struct message lost = {.what = EVENT_LOST, .why = "it is \x1b[2Jgone\n", .hint = "look"};
    struct report report = {.level = REPORT_NOTICE, .key = "a\nb"};
    const struct rlock_party party = {
        .host = "h", .pid = "42", .since_ms = 2000, .for_ms = 5, .slot = 0, .renewed_ms = -1};
    static char big[70000];
    const char *line;

    is_str(said(&report, lost), "rlock: a\\x0ab: lost: it is \\x1b[2Jgone\\x0a; look\n");
    is_str(said(&report, (struct message){.what = EVENT_BUSY, .why = "by caf\\xc3"}),
           "rlock: a\\x0ab: busy: by caf\\xc3\n", "an escaped reason is not escaped again");
    is_str(said(&report, (struct message){.what = EVENT_GRANTED}), "rlock: a\\x0ab: granted\n");
    report.json = true;
    line = said(&report, lost);
    ok(strstr(line, "{\"event\":\"lost\",\"time\":\"20") == line && is_line(line) &&
       strstr(line, "\"key\":\"a\\u000ab\",\"why\":\"it is \\u001b[2Jgone"
                    "\\u000a\",\"hint\":\"look\"}\n") != NULL);
    line = said(&report,
                (struct message){.what = EVENT_DONE,
                                 .facts = {fact_text("text", NULL), fact_number("left_ms", -1),
                                           fact_time("since", 1000), fact_time("until", 0),
                                           fact_party("holder", &party, "held_ms")}});
    ok(strstr(line, "\"key\":\"a\\u000ab\",\"left_ms\":-1,\"since\":\"1970-01-01T00:00:01.000Z\","
                    "\"holder\":{\"host\":\"h\",\"pid\":42,\"since\":\"1970-01-01T00:00:02.000Z\","
                    "\"held_ms\":5,\"slot\":0}}\n") != NULL);
    report.level = REPORT_FAILURE;
    is_str(said(&report, lost), "", "a message above the level is not written");

    memset(big, '\n', sizeof big - 1);
    report = (struct report){.level = REPORT_STEP, .key = big};
    ok(is_line(said(&report, (struct message){.what = EVENT_LOST, .why = big, .hint = big})));
    report.json = true;
    line = said(&report, (struct message){.what = EVENT_LOST, .why = big, .hint = big});
    ok(is_line(line) && line[strlen(line) - 2] == '}');
}

/* syslog(3) is this function here, by whichever of its two names the compiler calls it. */
static char logged[256];

void syslog(int priority, const char *format, ...)
{
    va_list args;

    (void)priority;
    va_start(args, format);
    vsnprintf(logged, sizeof logged, format, args);
    va_end(args);
}

void __syslog_chk(int priority, int flag, const char *format, ...);

void __syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list args;

    (void)priority;
    (void)flag;
    va_start(args, format);
    vsnprintf(logged, sizeof logged, format, args);
    va_end(args);
}

static void test_syslog(void)
{
    struct report report = {.level = REPORT_NOTICE, .key = "job", .to = REPORT_TO_SYSLOG};

    report_say(&report, REPORT_NOTICE, (struct message){.what = EVENT_LOST, .why = "it is gone"});
    is_str(logged, "job: lost: it is gone", "a message for syslog has no newline");
}

static void test_nobody_reads(void)
{
    const struct report report = {.level = REPORT_NOTICE, .key = "k"};
    int before = dup(STDERR_FILENO);
    static char noise[4096];
    int ends[2];

    signal(SIGPIPE, SIG_DFL);
    if (pipe(ends) != 0)
        return;
    dup2(ends[1], STDERR_FILENO);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], noise, sizeof noise) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    report_say(&report, REPORT_FAILURE, (struct message){.what = EVENT_LOST});
    ok(true, "a full pipe doesn't block report_say");
    close(ends[0]);
    report_say(&report, REPORT_FAILURE, (struct message){.what = EVENT_LOST});
    ok(true, "a pipe without a reader doesn't end the process");
    close(STDERR_FILENO);
    report_say(&report, REPORT_FAILURE, (struct message){.what = EVENT_LOST});
    ok(true, "a closed stderr doesn't end the process");
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
}

static void test_file(void)
{
    char path[] = "/tmp/rlock-report.XXXXXX";
    const struct report report = {.key = "a\"b"};
    const struct summary summary = {REASON_LOST, 76, 1, 2, 3, 4, UINT64_MAX};
    char old[4];
    int before = mkstemp(path);
    const char *text;

    need(before >= 0, "the test can make a file");
    ok(write(before, "old\n", 4) == 4, "the file has an old line");
    is_int(report_file(&report, path, OUTFILE_OVERWRITES, &summary), 0, "the report is written");
    is_str(read_file(path),
           "{\"verdict\":\"lost\",\"status\":76,\"waited_ms\":1,\"held_ms\":2,\"renewals\":3,"
           "\"paused_ms\":4,\"fence\":18446744073709551615,\"key\":\"a\\\"b\"}\n");
    ok(pread(before, old, sizeof old, 0) == 4);
    close(before);
    is_int(report_file(&report, path, OUTFILE_APPENDS, &summary), 0, "a report is appended");
    text = read_file(path);
    ok(strncmp(text, "{\"verdict\"", 10) == 0 && strstr(text, "}\n{\"time\":\"20") != NULL);
    unlink(path);
    is_int(report_file(&report, "/nowhere/at/all", OUTFILE_OVERWRITES, &summary), ENOENT);
    is_int(report_file(&report, "/dev/full", OUTFILE_OVERWRITES, &summary), ENOSPC);
    is_int(report_file(&report, "/dev/full", OUTFILE_APPENDS, &summary), ENOSPC);
    is_int(report_file(&report, "/tmp", OUTFILE_APPENDS, &summary), EISDIR);
    is_int(report_file(&report, "/tmp/", OUTFILE_APPENDS, &summary), EISDIR);
}

TESTS(test_escape, test_say, test_syslog, test_nobody_reads, test_file)
