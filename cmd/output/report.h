/* SPDX-License-Identifier: MIT */
/* report: messages on stderr, as text for people or JSON for programs. */
#ifndef REPORT_H
#define REPORT_H

#include "options/exit_reason.h"
#include "output/outbuf.h"

#include <stdbool.h>

enum report_level {
    REPORT_FAILURE, /* always written */
    REPORT_NOTICE,  /* not with --quiet */
    REPORT_STEP     /* only with --verbose */
};

/* Where messages go. */
enum report_to {
    REPORT_TO_STDERR,
    REPORT_TO_LOG,   /* to stderr, each line with the time of day: of a process in the background */
    REPORT_TO_SYSLOG /* by syslog(3), with the priority of the level */
};

struct report {
    enum report_level level; /* messages up to this level are written */
    bool json;               /* one JSON object a line, not text */
    enum report_to to;
    const char *key;  /* of the lock, borrowed; NULL: not known yet */
    int64_t start_ms; /* of the program, on rlock_clock_ms(): messages tell the time since then */
};

/* One message. As text: "rlock: KEY: what: why; hint". All strings are borrowed. */
struct message {
    const char *what; /* the event: an exit reason's name, or "renewed", "warning", ... */
    const char *why;  /* the reason or the details; NULL: none */
    const char *hint; /* what the user can do; NULL: nothing */
    const char *who;  /* only in JSON: the holder that the message is about; NULL: none */
    int64_t at_ms;    /* only in JSON: when, in ms since 1970 by the server's clock; 0: unknown */
};

/*
 * report_say: write one line. It allocates nothing. If stderr is a full pipe, it waits for up to
 * 200 ms and then drops the line. By syslog it may block, as syslog(3) does.
 */
void report_say(const struct report *report, enum report_level level, struct message message);

/*
 * report_fault: a message at level REPORT_FAILURE, whose event is the name of the exit reason.
 * `sys` is an errno, whose text is added to `why`, or 0. Returns `reason`.
 */
enum exit_reason report_fault(const struct report *report, enum exit_reason reason, const char *why,
                              int sys);

/*
 * report_output: write the text to stdout and clear it. Returns REASON_GRANTED; or REASON_SYSTEM,
 * which was reported, if stdout can't be written or a part of the text is missing.
 */
enum exit_reason report_output(const struct report *report, struct outbuf *out);

/*
 * report_draw: write to a terminal through a descriptor that is non-blocking; what the terminal
 * doesn't accept at once is lost.
 */
void report_draw(int terminal, const char *bytes, size_t n);

/*
 * report_keeps_stderr: may a process that outlives rlock keep stderr open? It may if stderr is a
 * file or a terminal. Who reads from a pipe would wait for the end of that process.
 */
bool report_keeps_stderr(void);

/* How the run ended, for --report and --report-append. */
struct summary {
    enum exit_reason reason;
    int status;        /* the exit status of rlock */
    int64_t waited_ms; /* from the start of rlock to the grant, or to its end if there was none */
    int64_t held_ms;   /* from the grant to the end; 0: there was none */
    int64_t renewals;  /* how many were confirmed */
    int64_t paused_ms; /* the part of held_ms during which the command was frozen */
    uint64_t fence;    /* of the grant; 0: none */
};

enum report_how {
    REPORT_REPLACES, /* the file has this one object */
    REPORT_APPENDS   /* the object becomes the last line of the file, and has the time of day */
};

/*
 * report_file: write the summary to a file as one JSON object. Returns 0, or what outfile_replace()
 * returns.
 */
int report_file(const struct report *report, const char *path, enum report_how how,
                const struct summary *summary);

/* report_text: write text to stdout that the user asked for (help, tables). False: it failed. */
bool report_text(const char *text);

/* report_result: the same, but if stdout is a closed pipe it returns false: no SIGPIPE. */
bool report_result(const char *text);

#endif
