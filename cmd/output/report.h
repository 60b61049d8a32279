/* SPDX-License-Identifier: MIT */
/* report: messages on stderr, as text for people or JSON for programs. */
#ifndef REPORT_H
#define REPORT_H

#include "options/exit_reason.h"
#include "options/options.h"
#include "output/outbuf.h"
#include "output/outfile.h"

#include <rlock_admin.h>
#include <stdbool.h>
#include <sys/types.h>

enum report_level {
    REPORT_FAILURE, /* written always */
    REPORT_NOTICE,  /* written unless --quiet is given */
    REPORT_STEP     /* written only with --verbose */
};

/* Where messages go. */
enum report_to {
    REPORT_TO_STDERR,
    REPORT_TO_LOG,   /* stderr, each line with the time of day: for a process in the background */
    REPORT_TO_SYSLOG /* syslog(3), with a priority that follows from the level */
};

struct message;

/* Called with each message, also with those that are not written. Must not block. */
typedef void report_listener(void *context, const struct message *message);

struct report {
    enum report_level level; /* messages of this level and of more important levels are written */
    bool json;               /* each message is a JSON object; false: text for people */
    enum report_to to;
    const char *key; /* the lock's key, for messages; borrowed; NULL: not known yet */
    /* when rlock started, on rlock_clock_ms(); messages tell the time since then */
    int64_t start_ms;
    pid_t pid;                 /* named in messages; the guard names the main process */
    report_listener *listener; /* called with each message; NULL: none */
    void *listener_context;
};

/*
 * A member of a message's JSON object, for programs; people read the same in `why`. Made by one of
 * the functions fact_...(); a struct of zeros is skipped. The name of a duration ends in "_ms", the
 * name of a time doesn't. docs/messages.schema.json describes all members.
 */
struct fact {
    enum { FACT_NONE, FACT_TEXT, FACT_NUMBER, FACT_TIME, FACT_PARTY } kind;
    const char *name; /* borrowed, as are `text` and `party` */
    const char *text;
    int64_t number; /* of FACT_TIME: ms since 1970 */
    const struct rlock_party *party;
    const char *for_name; /* of FACT_PARTY: as for json_party() */
};

/* For NULL, or a time of 0, these functions return a struct of zeros. */
struct fact fact_text(const char *name, const char *text);
struct fact fact_number(const char *name, int64_t number);
struct fact fact_time(const char *name, int64_t unix_ms);
struct fact fact_party(const char *name, const struct rlock_party *party, const char *for_name);

#define MESSAGE_FACTS 8

/* A message, as text "rlock: KEY: what: why; hint; said". All strings are borrowed. */
struct message {
    enum event what;
    const char *word; /* in the text, instead of the event's name; NULL: that name */
    const char *why;  /* the reason or the details; NULL: none */
    const char *hint; /* what the user can do; NULL: nothing */
    const char *said; /* what a server replied: "the server says: ..."; NULL: nothing */
    struct fact facts[MESSAGE_FACTS];
};

/* message_add: add a fact to a message that has fewer than MESSAGE_FACTS. */
void message_add(struct message *message, struct fact fact);

/* report_begin: make a report whose messages count time from now. The options are borrowed. */
struct report report_begin(const struct options *options, enum report_level level);

/* report_set_key: set the key, which is borrowed, that later messages name; NULL: none. */
void report_set_key(struct report *report, const char *key);

/* report_set_listener: pass each message from now on to `listener`, too. */
void report_set_listener(struct report *report, report_listener *listener, void *context);

/* report_redirect: in a process that rlock has forked, write its messages from now on to `to`. */
void report_redirect(struct report *report, enum report_to to);

/*
 * report_say: write one message as one line. If stderr is a full pipe, the call waits for up to 200
 * ms, and then drops the line. With REPORT_TO_SYSLOG it may block, as syslog(3) does. report_say()
 * itself allocates no memory.
 */
void report_say(const struct report *report, enum report_level level, struct message message);

/* report_event: write a message of these parts; why and hint may be NULL, and hint "". */
void report_event(const struct report *report, enum report_level level, enum event what,
                  const char *why, const char *hint);

/* What to do about EMFILE. */
#define REPORT_MORE_FILES "raise the limit: ulimit -n 1024"

/*
 * report_fault: write a message of level REPORT_FAILURE whose event is the name of `reason`. `sys`
 * is an errno whose text is added to `why`, or 0. Returns `reason`.
 */
enum exit_reason report_fault(const struct report *report, enum exit_reason reason, const char *why,
                              int sys);

/*
 * report_output: make the text the content of the file `path`, or write it to stdout if that is
 * NULL; then clear it. Returns REASON_GRANTED. If the file or stdout can't be written, or a part of
 * the text is missing, report_output() reports that, and returns REASON_SYSTEM. If stdout is a pipe
 * without a reader, SIGPIPE ends rlock.
 */
enum exit_reason report_output(const struct report *report, const char *path, struct outbuf *out);

/*
 * report_keeps_stderr: may a process that outlives rlock keep stderr open? Yes, if stderr is a file
 * or a terminal. No, if it is a pipe: the reader of the pipe would wait until that process ends.
 */
bool report_keeps_stderr(void);

/* The outcome of a run, which --report and --report-append write. */
struct summary {
    enum exit_reason reason;
    int status; /* the exit status of rlock */
    /* from the start of rlock to the grant; without a grant to the end of rlock */
    int64_t waited_ms;
    int64_t held_ms;   /* from the grant to the end of the run; 0: no grant */
    int64_t renewals;  /* number of renewals that the server confirmed */
    int64_t paused_ms; /* the part of held_ms for which the command was frozen */
    uint64_t fence;    /* the fencing token of the grant; 0: no grant */
};

/*
 * report_file: write the summary to a file as one JSON object, which has the time of day if it is
 * appended. Returns 0, or an error of outfile_put().
 */
int report_file(const struct report *report, const char *path, enum outfile_how how,
                const struct summary *summary);

/* report_printed: as report_output(), for text that was printed to the stream `stdout`. */
enum exit_reason report_printed(const struct report *report);

/*
 * report_result: write text to stdout as report_output() does, but report it, too, if stdout is a
 * pipe without a reader: SIGPIPE doesn't end rlock, which must release the lock first.
 */
enum exit_reason report_result(const struct report *report, const char *text);

#endif
