/* SPDX-License-Identifier: MIT */
/* report: what rlock says, as text for people or JSON for programs. */
#ifndef REPORT_H
#define REPORT_H

#include "options/exit_reason.h"

#include <stdbool.h>

enum report_level {
    REPORT_FAILURE, /* always said */
    REPORT_NOTICE,  /* not with --quiet */
    REPORT_STEP     /* only with --verbose */
};

/* Where it is said. */
enum report_to {
    REPORT_TO_STDERR,
    REPORT_TO_LOG,   /* the same, and each line begins with the time of day */
    REPORT_TO_SYSLOG /* as syslog(3) */
};

struct report {
    enum report_level level; /* what is said, up to this */
    bool json;
    enum report_to to;
    const char *key; /* NULL: not known yet */
    int64_t start_ms;
};

/* What is said: "rlock: KEY: what: why; hint". */
struct message {
    const char *what; /* an exit reason's name, or a word for a step */
    const char *why;  /* NULL: nothing to add */
    const char *hint; /* what can be done; NULL: nothing */
    const char *who;  /* for programs: whom it is about; NULL: nobody */
    int64_t at_ms;    /* for programs: when, in ms since 1970 by the server; 0: not known */
};

/*
 * report_say: one line to stderr. Never fails, never blocks for long, and
 * allocates nothing: where nobody reads, the line is dropped. To syslog it may
 * block, as syslog(3) does.
 */
void report_say(const struct report *report, enum report_level level, struct message message);

/*
 * report_fault: say how it ended and why, with the text of an errno or 0; returns the exit reason.
 */
enum exit_reason report_fault(const struct report *report, enum exit_reason reason, const char *why,
                              int sys);

/* report_draw: bytes to a terminal, by a descriptor that never blocks: what isn't taken is lost. */
void report_draw(int terminal, const char *bytes, size_t n);

/*
 * report_keeps_stderr: is stderr something that a process may keep open that stays behind? A file
 * or a terminal is; whoever reads from a pipe would wait for its end.
 */
bool report_keeps_stderr(void);

/* How it ended, for --report. */
struct summary {
    enum exit_reason reason;
    int status;
    int64_t waited_ms;
    int64_t held_ms;
    int64_t renewals;
    int64_t paused_ms; /* of held_ms, the time that the command was frozen */
    uint64_t fence;    /* 0: none */
};

enum report_how {
    REPORT_REPLACES, /* the only object in its file */
    REPORT_APPENDS   /* one line more, with the time of day */
};

/*
 * report_file: write the summary as one JSON object to a file, see outfile.h. 0, or what
 * outfile_error() tells.
 */
int report_file(const struct report *report, const char *path, enum report_how how,
                const struct summary *summary);

/* report_text: text that was asked for (help, version, tables), to stdout. False: it can't be. */
bool report_text(const char *text);

/* report_result: the same, where a reader that is gone must not end us by SIGPIPE. */
bool report_result(const char *text);

#endif
