/* SPDX-License-Identifier: MIT */
/* options: all options, in one table, and the struct that holds their values. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "options/verb.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of --protocol and of --timestamp-unit, in the order of the table. */
enum key_value { KEY_VALUE_TOKEN, KEY_VALUE_TIMESTAMP };
enum timestamp_unit { TIMESTAMP_S, TIMESTAMP_MS };

enum on_lost { ON_LOST_KILL, ON_LOST_PAUSE, ON_LOST_IGNORE };

/* What the command line asks for: to carry out the verb, or only to print something. */
enum asked { ASKED_RUN, ASKED_HELP, ASKED_VERSION, ASKED_DUMP };

/* Where a value comes from; the greatest wins. */
enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

/*
 * The values of all options. Numbers, durations in milliseconds, choices and flags are int64_t, as
 * the parser writes them by their offset. Strings are borrowed from argv and the environment, or
 * owned by `texts`.
 */
struct options {
    const char **keys; /* heap array, in the order of the -k */
    size_t n_keys;
    int64_t ttl_ms;
    int64_t wait_ms;              /* -1: for ever; 0: don't wait */
    int64_t nonblock;             /* the parser makes it wait_ms 0 */
    int64_t conflict_status;      /* exit status instead of 75 */
    const char *command;          /* -c: for /bin/sh; NULL: argv is the command */
    int64_t queue;                /* enum rlock_queue */
    int64_t key_value;            /* enum key_value: --protocol */
    int64_t timestamp_unit;       /* enum timestamp_unit */
    enum rlock_protocol protocol; /* the parser makes it of key_value and timestamp_unit */
    int64_t shared;
    int64_t exclusive;
    int64_t slots;         /* 0: none */
    enum rlock_mode mode;  /* what the parser makes of shared, exclusive and slots */
    int64_t min_hold_ms;   /* 0: none */
    int64_t once_ms;       /* 0: not given */
    int64_t on_lost;       /* enum on_lost */
    int64_t kill_after_ms; /* -1: the default, which depends on the TTL */
    int64_t max_hold_ms;   /* 0: none */
    int64_t wait_all;
    int64_t cgroup;
    int64_t replicas; /* 0: none are waited for */
    const char *label;
    const char **urls; /* heap array: those of the nearest source */
    size_t n_urls;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
    const char *password_file; /* the parser leaves this or the command, not both */
    const char *password_command;
    const char *sentinel_user;
    const char *sentinel_password_file;
    int64_t pass_credentials;
    int64_t connect_ms; /* --connect-timeout */
    int64_t quiet;
    int64_t verbose;
    int64_t json;
    const char *report;
    const char *report_append;
    int64_t bind_pid; /* 0: none */
    const char *log;  /* of the process that --bind-pid leaves behind: a file or "syslog" */
    const char *token_file;
    int64_t quiet_if_gone;
    int64_t watch;
    int64_t yes;
    int64_t nested;

    enum verb verb;
    enum asked asked;
    const char *dump;  /* ASKED_DUMP: the name of the table */
    char *const *argv; /* the words behind the options: the command and its arguments */
    enum source url_from;
    enum source password_from; /* the file or the command */
    enum source sentinel_password_file_from;
    enum source ttl_from;
    enum source token_file_from;

    char **texts; /* heap: values from a file, copies of URLs; cleared before they are freed */
    size_t n_texts;
};

enum option_kind {
    OPTION_TEXT,
    OPTION_TEXTS,    /* may be given several times: an array, and its length in the next field */
    OPTION_DURATION, /* more than zero */
    OPTION_DURATION_OR_ZERO,
    OPTION_STATUS, /* 0 to 255 */
    OPTION_NUMBER, /* 1 to RLOCK_SLOTS_MAX */
    OPTION_PID,
    OPTION_NUMBER_OR_ZERO,
    OPTION_CHOICE, /* one of the words in `argument`; the value is its index */
    OPTION_FLAG,   /* no argument: sets 1; in the environment and in files: yes or no */
    OPTION_ASK     /* no argument: help or version */
};

/* The bit of a verb in the mask of an option's verbs. */
#define IN(verb) (1U << (verb))

struct option {
    char letter; /* '\0': none */
    const char *name;
    const char *argument; /* its name for people, or the words to choose from; NULL: takes none */
    enum option_kind kind;
    size_t offset;          /* of its field in struct options */
    unsigned verbs;         /* that have this option: IN() of each */
    bool is_everywhere;     /* it can also be set in the environment and in files */
    const char *by_default; /* for people; NULL: none */
    const char *help;
};

#define OPTION_COUNT 46

extern const struct option option_table[OPTION_COUNT];

/* The values before any source was read. */
extern const struct options options_by_default;

/* option_variable: the name of its variable in the environment: RLOCK_CONNECT_TIMEOUT. */
void option_variable(const struct option *option, char variable[64]);

/* options_keys: all keys as one text, separated by `between`. Heap; NULL: no memory. */
char *options_keys(const struct options *options, char between);

/* options_fini: clear and free what the parser has allocated. */
void options_fini(struct options *options);

#endif
