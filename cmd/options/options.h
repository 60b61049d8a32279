/* SPDX-License-Identifier: MIT */
/* options: all options, in one table, and the struct that holds their values. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "options/verb.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The URL of the private server, which is for the locks of one machine. */
#define OPTIONS_LOCAL_URL "local:"
#define OPTIONS_BLANKS " \t\r\n" /* around names and values in a file, between several URLs */

/*
 * The choices of --protocol, --timestamp-unit, --on-lost and --format, in the order of the words in
 * option_table: the parser stores the index of the word that the user gave.
 */
enum key_value { KEY_VALUE_TOKEN, KEY_VALUE_TIMESTAMP };
enum timestamp_unit { TIMESTAMP_S, TIMESTAMP_MS };
enum on_lost { ON_LOST_KILL, ON_LOST_PAUSE, ON_LOST_IGNORE };
enum list_format { LIST_FORMAT_TEXT, LIST_FORMAT_JSON, LIST_FORMAT_PROMETHEUS };

/* What rlock has to do: carry out the verb, or only print the help, the version or a table. */
enum asked { ASKED_RUN, ASKED_HELP, ASKED_VERSION, ASKED_DUMP };

/* Where a value comes from. If several sources set one option, the last of these constants wins. */
enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE };

/* The source of an option's value. */
struct origin {
    enum source from;
    int order; /* how many values the parser had read before this one */
    int line;  /* FROM_FILE: the number of the line in options.file, from 1 */
};

#define OPTION_COUNT 57

/*
 * The values of all options. Every number, duration (in milliseconds), choice and flag is an
 * int64_t, because the parser writes it by the offset in option_table. Strings are borrowed from
 * argv and the environment, or owned by `texts`.
 */
struct options {
    const char **keys; /* heap array: the values of all -k, in their order */
    size_t n_keys;
    int64_t ttl_ms;
    int64_t wait_ms;              /* longest wait for the lock; -1: no limit; 0: don't wait */
    int64_t warn_wait_ms;         /* warn once when rlock has waited this long; 0: never */
    int64_t nonblock;             /* if set, the parser sets wait_ms to 0 */
    int64_t conflict_status;      /* exit status when the lock is not granted; 75 by default */
    const char *command;          /* -c: a command for /bin/sh; NULL: argv is the command */
    int64_t queue;                /* --queue: enum rlock_queue */
    bool needs_queue;             /* --queue fifo or newest is given: no lock without a queue */
    int64_t key_value;            /* --protocol: enum key_value */
    int64_t timestamp_unit;       /* --timestamp-unit: enum timestamp_unit */
    int64_t scripts;              /* --scripts: enum rlock_scripts */
    enum rlock_protocol protocol; /* the parser derives it from key_value and timestamp_unit */
    int64_t shared;
    int64_t exclusive;
    int64_t slots;         /* number of slots; 0: no slots */
    enum rlock_mode mode;  /* the parser derives it from shared, exclusive and slots */
    int64_t min_hold_ms;   /* 0: --min-hold is not given */
    int64_t once_ms;       /* 0: --once is not given */
    int64_t on_lost;       /* --on-lost: enum on_lost */
    int64_t kill_after_ms; /* from TERM to KILL; -1: the default, which depends on the TTL */
    int64_t max_hold_ms;   /* 0: no limit */
    int64_t wait_all;
    int64_t cgroup;
    bool needs_cgroup; /* the parser derives it: --cgroup or --on-lost pause is given */
    int64_t replicas;  /* how many replicas must confirm a grant; 0: none */
    int64_t history;   /* how many entries of the lock's history the server keeps; 0: none */
    const char *label;
    const char **urls; /* heap array of the URLs, which all come from one source: url_from */
    size_t n_urls;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
    const char *password_file; /* the parser sets this field or password_command to NULL */
    const char *password_command;
    const char *sentinel_user;
    const char *sentinel_password_file;
    int64_t pass_credentials;
    int64_t connect_ms; /* --connect-timeout */
    int64_t quiet;
    int64_t verbose;
    int64_t json;
    const char *on_event; /* a command for /bin/sh, run at events; NULL: none */
    const char *report;
    const char *report_append;
    int64_t bind_pid; /* --bind-pid; 0: not given */
    const char *log;  /* --log: where the renew daemon writes messages: a file or "syslog" */
    const char *token_file;
    int64_t hold_ms; /* --for: for how long a person holds the lock; 0: not given */
    int64_t renews;  /* hold --renew: a process renews the lease for hold_ms */
    int64_t quiet_if_gone;
    int64_t watch;
    int64_t format;     /* list: enum list_format */
    const char *output; /* list: the file to write to; NULL: stdout */
    int64_t since_ms;   /* history: leave out holds that ended longer ago; 0: none */
    int64_t yes;
    int64_t nested;
    int64_t explain;
    int64_t all; /* help: show all options */

    enum verb verb;
    enum verb about; /* with ASKED_HELP: the verb to explain; VERB_RUN: rlock as a whole */
    enum asked asked;
    char hint[240];   /* if the options are refused: advice to the user; "": none */
    const char *dump; /* with ASKED_DUMP: the name of the table */
    /* the words that are no options: COMMAND ARG..., or the words of a verb (verb_words()) */
    char *const *argv;
    enum source url_from;
    enum source password_from; /* source of password_file or password_command */
    /* where each option's value comes from, in the order of option_table */
    struct origin origins[OPTION_COUNT];
    const char *file; /* path of the configuration file that was read, in `texts`; NULL: none */

    char **texts; /* heap: values from a file, copies of URLs; overwritten before they are freed */
    size_t n_texts;
};

enum option_kind {
    OPTION_TEXT,
    OPTION_TEXTS,    /* may be repeated: the field is an array, the next field its length */
    OPTION_DURATION, /* in ms, from `least` to `most` */
    OPTION_NUMBER,   /* from `least` to `most` */
    OPTION_CHOICE,   /* one of the words in `argument`; the field is the word's index */
    /* No argument on the command line, where the option sets the field to 1. In the environment and
     * in files the value is yes or no. */
    OPTION_FLAG,
    OPTION_ASK /* no argument: --help or --version */
};

/* The headings of --help, in this order. "rlock help" shows only the first group. */
enum option_group {
    OPTION_GROUP_DAILY,
    OPTION_GROUP_WAITING,
    OPTION_GROUP_SAFETY,
    OPTION_GROUP_SERVER,
    OPTION_GROUP_OUTPUT
};
#define OPTION_GROUPS (OPTION_GROUP_OUTPUT + 1)

/* The bit that stands for a verb in struct option's mask `verbs`. */
#define IN(verb) (1U << (verb))

struct option {
    char letter; /* the letter of the short form, such as 'k' for -k; '\0': none */
    const char *name;
    enum option_group group;
    const char *argument; /* its argument in --help, or the words to choose from; NULL: none */
    enum option_kind kind;
    int64_t least;          /* the least value of an OPTION_DURATION or OPTION_NUMBER */
    int64_t most;           /* the greatest value of an OPTION_DURATION or OPTION_NUMBER */
    size_t offset;          /* offset of the option's field in struct options */
    unsigned verbs;         /* IN() of each verb that accepts the option */
    bool is_everywhere;     /* the environment and files may set the option, too */
    const char *by_default; /* the default as --help shows it; NULL: none */
    const char *help;
};

extern const struct option option_table[OPTION_COUNT];

/*
 * An option of flock(1) that has another name in option_table, so that a command line for flock
 * works with rlock; or an option of flock that rlock refuses.
 */
struct flock_option {
    char letter;      /* '\0': none */
    const char *name; /* NULL: none */
    /* the name in option_table of the same option; NULL: rlock has no such option */
    const char *meaning;
    const char *why_not; /* if `meaning` is NULL: why rlock has no such option */
};

#define FLOCK_COUNT 7

extern const struct flock_option flock_table[FLOCK_COUNT];

/*
 * option_of_letter, option_of_name: the row of option_table for this letter or name, of rlock or of
 * flock(1). A name has n bytes. NULL: no such option.
 */
const struct option *option_of_letter(char letter);
const struct option *option_of_name(const char *name, size_t n);

/*
 * option_why_not: returns why rlock lacks an option of flock(1). `word` is "-o" or "--close". NULL:
 * flock has no such option, or rlock accepts it.
 */
const char *option_why_not(const char *word);

/* The default values of all options. */
extern const struct options options_by_default;

/* option_variable: the name of the option's environment variable, such as RLOCK_CONNECT_TIMEOUT. */
void option_variable(const struct option *option, char variable[64]);

/* options_origin: where the value of the option `name` comes from. */
const struct origin *options_origin(const struct options *options, const char *name);

/*
 * options_name_origin: write where the value of the option `name` comes from, as "--url",
 * "RLOCK_URL", "/etc/rlock.conf:3" or "the default".
 */
void options_name_origin(const struct options *options, const char *name, char *text, size_t room);

/* options_keys: all keys as one text, separated by `between`. Heap; NULL: out of memory. */
char *options_keys(const struct options *options, char between);

/* options_mask_urls: overwrite the passwords in the URLs in `texts`, once nobody needs them. */
void options_mask_urls(const struct options *options);

/* options_fini: overwrite `texts`, where a URL may have a password, and free all memory. */
void options_fini(struct options *options);

#endif
