/* SPDX-License-Identifier: MIT */
/* options: everything that can be asked for, in one table. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "options/verb.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum on_lost { ON_LOST_KILL, ON_LOST_PAUSE, ON_LOST_IGNORE };

/* What the command line asks for instead of running a command. */
enum asked { ASKED_RUN, ASKED_HELP, ASKED_VERSION, ASKED_DUMP };

/* Where a value came from; a greater one is nearer, and wins. */
enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

/* Strings are borrowed from argv and the environment, or owned by `texts`. */
struct options {
    const char **keys; /* as often as it was given */
    size_t n_keys;
    int64_t ttl_ms;
    int64_t wait_ms;  /* -1: for ever; 0: don't wait */
    int64_t nonblock; /* is part of wait_ms once all sources were read */
    int64_t conflict_status;
    const char *command;
    int64_t queue;   /* enum rlock_queue */
    int64_t is_time; /* --protocol timestamp */
    int64_t is_ms;   /* --timestamp-unit ms */
    int64_t shared;
    int64_t exclusive;
    int64_t slots;        /* 0: none */
    enum rlock_mode mode; /* of these three, once all sources were read */
    int64_t min_hold_ms;  /* 0: none */
    int64_t once_ms;      /* 0: as often as it is asked for */
    int64_t on_lost;
    int64_t kill_after_ms; /* -1: by the TTL */
    int64_t max_hold_ms;   /* 0: none */
    int64_t wait_all;
    int64_t cgroup;
    int64_t replicas; /* 0: none are waited for */
    const char *label;
    const char **urls; /* as often as it was given, by the nearest source */
    size_t n_urls;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
    const char *password_file; /* or a command, not both, once all sources were read */
    const char *password_command;
    const char *sentinel_user;
    const char *sentinel_password_file;
    int64_t pass_credentials;
    int64_t connect_ms;
    int64_t quiet;
    int64_t verbose;
    int64_t json;
    const char *report;
    const char *report_append;
    int64_t bind_pid; /* 0: none */
    const char *log;  /* of who stays behind for that: a file, or "syslog"; NULL: stderr */
    const char *token_file;
    int64_t quiet_if_gone;
    int64_t watch;
    int64_t yes;
    int64_t nested;

    enum verb verb;
    enum asked asked;
    const char *dump;  /* which table */
    char *const *argv; /* the words behind the options: the command's, for the most part */
    enum source url_from;
    enum source password_from; /* the file or the command */
    enum source sentinel_password_file_from;
    enum source ttl_from;
    enum source token_file_from;

    char **texts; /* values read from a file */
    size_t n_texts;
};

enum option_kind {
    OPTION_TEXT,
    OPTION_TEXTS,    /* may be given again: an array, and its length behind it */
    OPTION_DURATION, /* more than zero */
    OPTION_DURATION_OR_ZERO,
    OPTION_STATUS, /* 0 to 255 */
    OPTION_NUMBER, /* 1 to RLOCK_SLOTS_MAX */
    OPTION_PID,
    OPTION_NUMBER_OR_ZERO,
    OPTION_CHOICE, /* one of the words in `argument`, by number */
    OPTION_FLAG,   /* no argument: sets 1; yes or no in other sources */
    OPTION_ASK     /* no argument: help or version */
};

/* One verb among those of an option. */
#define IN(verb) (1U << (verb))

struct option {
    char letter; /* '\0': none */
    const char *name;
    const char *argument; /* NULL: takes none */
    enum option_kind kind;
    size_t offset;          /* into struct options; rows of one offset set the same thing */
    unsigned verbs;         /* of which it is an option: IN() of each */
    bool is_everywhere;     /* also in the environment and in files */
    const char *by_default; /* for people; NULL: none */
    const char *help;
};

#define OPTION_COUNT 46

extern const struct option option_table[OPTION_COUNT];

/* The options before anything was asked for. */
extern const struct options options_by_default;

/* option_variable: its name in the environment, "RLOCK_" and the name in capitals. */
void option_variable(const struct option *option, char variable[64]);

/* options_keys: all keys in one text, with a byte between them. Heap; NULL: no memory. */
char *options_keys(const struct options *options, char between);

/* options_fini: free what was gathered. */
void options_fini(struct options *options);

#endif
