/* SPDX-License-Identifier: MIT */
/* options: all options, in one table, and the struct that holds their values. */
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct options, member)

#define IN_RUN IN(VERB_RUN)
#define IN_ACQUIRE IN(VERB_ACQUIRE)
#define IN_GRANTED (IN_RUN | IN_ACQUIRE)
#define IN_BY_TOKEN (IN(VERB_RENEW) | IN(VERB_RELEASE))
#define IN_DOCTOR IN(VERB_DOCTOR)
#define IN_MEASURED (IN_GRANTED | IN(VERB_RENEW) | IN_DOCTOR)
#define IN_KEYED (IN_GRANTED | IN_BY_TOKEN | IN(VERB_STATUS) | IN(VERB_BREAK) | IN_DOCTOR)
#define IN_ALL (IN(VERB_COUNT) - 1)

/* clang-format off: each option is one or two lines, with its columns under each other */
const struct option option_table[OPTION_COUNT] = {
    {'k', "key", "KEY", OPTION_TEXTS, AT(keys), IN_KEYED, false, NULL,
     "name of the lock; several -k: all of these locks together, or none"},
    {'t', "ttl", "DURATION", OPTION_DURATION, AT(ttl_ms), IN_MEASURED, true, "30s",
     "how long a lease lasts, 1s to 30d; rlock renews it when a third has passed"},
    {'n', "nonblock", NULL, OPTION_FLAG, AT(nonblock), IN_GRANTED, true, NULL,
     "don't wait if the lock is taken"},
    {'w', "wait", "DURATION", OPTION_DURATION_OR_ZERO, AT(wait_ms), IN_GRANTED, true, "for ever",
     "wait at most this long for the lock; 0 is the same as -n"},
    {'E', "conflict-exit-code", "N", OPTION_STATUS, AT(conflict_status), IN_GRANTED, true, "75",
     "exit status when the lock is taken, or not granted in time"},
    {'\0', "queue", "fifo|none|newest", OPTION_CHOICE, AT(queue), IN_GRANTED, true, "fifo",
     "who is next: fifo, the first waiter; none, whoever asks first; newest, the last to come"},
    {'s', "shared", NULL, OPTION_FLAG, AT(shared), IN_GRANTED, true, NULL,
     "shared lock: any number of holders that use -s, and no other"},
    {'x', "exclusive", NULL, OPTION_FLAG, AT(exclusive), IN_GRANTED, true, NULL,
     "exclusive lock: a single holder (default)"},
    {'\0', "slots", "N", OPTION_NUMBER, AT(slots), IN_GRANTED, true, NULL,
     "at most N holders at the same time, each with a slot number of its own"},
    {'c', "command", "STRING", OPTION_TEXT, AT(command), IN_RUN, false, NULL,
     "run STRING with /bin/sh -c"},
    {'\0', "on-lost", "kill|pause|ignore", OPTION_CHOICE, AT(on_lost), IN_GRANTED, true, "kill",
     "what to do with the command when the lock is lost"},
    {'\0', "kill-after", "DURATION", OPTION_DURATION_OR_ZERO, AT(kill_after_ms), IN_GRANTED, true,
     "a sixth of the ttl, at most 5s",
     "grace period from TERM to KILL when the command has to end"},
    {'\0', "max-hold", "DURATION", OPTION_DURATION, AT(max_hold_ms), IN_RUN, true, NULL,
     "end the command after this time, with status 124"},
    {'\0', "protocol", "token|timestamp", OPTION_CHOICE, AT(key_value), IN_RUN, true, "token",
     "what the key holds: the owner's token, or the time of expiry, as older programs write it"},
    {'\0', "timestamp-unit", "s|ms", OPTION_CHOICE, AT(timestamp_unit), IN_RUN, true, "s",
     "unit of the time in the key, with --protocol timestamp"},
    {'\0', "min-hold", "DURATION", OPTION_DURATION, AT(min_hold_ms), IN_RUN, true, NULL,
     "keep the lock at least this long, even if the command ends earlier"},
    {'\0', "once", "DURATION", OPTION_DURATION, AT(once_ms), IN_RUN, false, NULL,
     "after success mark the work as done for this long; other runs then exit with 0"},
    {'\0', "wait-all", NULL, OPTION_FLAG, AT(wait_all), IN_RUN, true, NULL,
     "keep the lock until every descendant of the command has ended"},
    {'\0', "cgroup", NULL, OPTION_FLAG, AT(cgroup), IN_RUN, true, NULL,
     "run the command in a control group of its own, which is killed as a whole"},
    {'\0', "nested", NULL, OPTION_FLAG, AT(nested), IN_RUN, true, NULL,
     "run only under the lock of a parent rlock, else exit with 76"},
    {'\0', "replicas", "N", OPTION_NUMBER_OR_ZERO, AT(replicas), IN_MEASURED, true, "0",
     "a grant or renewal counts only when N replicas have confirmed it"},
    {'\0', "label", "TEXT", OPTION_TEXT, AT(label), IN_GRANTED, false, NULL,
     "text that is shown to those who wait for the lock"},
    {'u', "url", "URL", OPTION_TEXTS, AT(urls), IN_ALL, true, "redis://127.0.0.1:6379",
     "the server: redis://, rediss://, redis+sentinel://, unix:// or local:; several -u: a quorum"},
    {'\0', "tls-ca", "FILE", OPTION_TEXT, AT(tls_ca), IN_ALL, true, "the system's",
     "file or folder of the CAs that may certify a rediss:// server"},
    {'\0', "tls-cert", "FILE", OPTION_TEXT, AT(tls_cert), IN_ALL, true, NULL,
     "client certificate for a rediss:// server"},
    {'\0', "tls-key", "FILE", OPTION_TEXT, AT(tls_key), IN_ALL, true, "the --tls-cert file",
     "private key of the client certificate"},
    {'\0', "tls-name", "NAME", OPTION_TEXT, AT(tls_name), IN_ALL, true, "the host of the URL",
     "name that the certificate of a rediss:// server must be for"},
    {'\0', "password-file", "FILE", OPTION_TEXT, AT(password_file), IN_ALL, true, NULL,
     "file whose first line is the password"},
    {'\0', "password-command", "COMMAND", OPTION_TEXT, AT(password_command), IN_ALL, true, NULL,
     "shell command whose first line of output is the password"},
    {'\0', "sentinel-user", "NAME", OPTION_TEXT, AT(sentinel_user), IN_ALL, true, NULL,
     "user name for the Sentinels"},
    {'\0', "sentinel-password-file", "FILE", OPTION_TEXT, AT(sentinel_password_file), IN_ALL, true,
     NULL, "file whose first line is the password for the Sentinels"},
    {'\0', "pass-credentials", NULL, OPTION_FLAG, AT(pass_credentials), IN_RUN, true, NULL,
     "leave passwords in the command's environment"},
    {'\0', "connect-timeout", "DURATION", OPTION_DURATION, AT(connect_ms), IN_ALL, true, "5s",
     "limit for the first contact with the server, and for each later attempt"},
    {'q', "quiet", NULL, OPTION_FLAG, AT(quiet), IN_ALL, true, NULL, "report failures only"},
    {'v', "verbose", NULL, OPTION_FLAG, AT(verbose), IN_ALL, true, NULL,
     "report every step, with its time"},
    {'\0', "json", NULL, OPTION_FLAG, AT(json), IN_ALL, true, NULL,
     "messages as JSON, one object per line"},
    {'\0', "report", "FILE", OPTION_TEXT, AT(report), IN_RUN, false, NULL,
     "at the end write the outcome to FILE as a JSON object; - is stdout"},
    {'\0', "report-append", "FILE", OPTION_TEXT, AT(report_append), IN_RUN, true, NULL,
     "at the end append the outcome to FILE as a line of JSON, with its time"},
    {'\0', "bind-pid", "PID", OPTION_PID, AT(bind_pid), IN_ACQUIRE, true, NULL,
     "leave a process behind that renews the lock until process PID ends"},
    {'\0', "log", "FILE|syslog", OPTION_TEXT, AT(log), IN_ACQUIRE, true,
     "stderr, if a file or terminal",
     "where the process that --bind-pid starts reports why it ended PID"},
    {'\0', "token-file", "FILE", OPTION_TEXT, AT(token_file), IN_BY_TOKEN, true, NULL,
     "file whose first line is the token, instead of RLOCK_TOKEN"},
    {'\0', "quiet-if-gone", NULL, OPTION_FLAG, AT(quiet_if_gone), IN(VERB_RELEASE), true, NULL,
     "no failure if the lock is gone already"},
    {'\0', "watch", NULL, OPTION_FLAG, AT(watch), IN(VERB_STATUS), false, NULL,
     "show the lock again each second, until interrupted"},
    {'\0', "yes", NULL, OPTION_FLAG, AT(yes), IN(VERB_BREAK), false, NULL,
     "don't ask for confirmation"},
    {'h', "help", NULL, OPTION_ASK, AT(asked), IN_ALL, false, NULL, "print this help and exit"},
    {'V', "version", NULL, OPTION_ASK, AT(asked), IN_ALL, false, NULL,
     "print the version and exit"},
};
/* clang-format on */

const struct options options_by_default = {
    .ttl_ms = 30000,
    .wait_ms = -1,
    .conflict_status = 75,
    .kill_after_ms = -1,
    .connect_ms = 5000,
};

void option_variable(const struct option *option, char variable[64])
{
    size_t i;

    snprintf(variable, 64, "RLOCK_%s", option->name);
    for (i = 0; variable[i] != '\0'; i++) {
        if (variable[i] >= 'a' && variable[i] <= 'z')
            variable[i] = (char)(variable[i] - 'a' + 'A');
        else if (variable[i] == '-')
            variable[i] = '_';
    }
}

char *options_keys(const struct options *options, char between)
{
    size_t bytes = 1;
    char *keys;
    char *at;
    size_t i;

    for (i = 0; i < options->n_keys; i++)
        bytes += strlen(options->keys[i]) + 1;
    keys = malloc(bytes);
    for (i = 0, at = keys; keys != NULL && i < options->n_keys; i++)
        at = stpcpy(stpcpy(at, (char[]){i > 0 ? between : '\0', '\0'}), options->keys[i]);
    return keys;
}

void options_fini(struct options *options)
{
    size_t i;

    for (i = 0; i < options->n_texts; i++) {
        explicit_bzero(options->texts[i], strlen(options->texts[i]));
        free(options->texts[i]);
    }
    free(options->texts);
    free(options->keys);
    free(options->urls);
}
