/* SPDX-License-Identifier: MIT */
/* options: all options, in one table, and the struct that holds their values. */
#include "options/options.h"

#include "base/secret.h"
#include "options/units.h"
#include "wire/url.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct options, member)

#define DAILY OPTION_GROUP_DAILY
#define WAITING OPTION_GROUP_WAITING
#define SAFETY OPTION_GROUP_SAFETY
#define SERVER OPTION_GROUP_SERVER
#define OUTPUT OPTION_GROUP_OUTPUT

/* An option's argument, its kind, and the least and greatest value. */
#define TEXT(argument) argument, OPTION_TEXT, 0, 0
#define TEXTS(argument) argument, OPTION_TEXTS, 0, 0
#define DURATION(least, most) "DURATION", OPTION_DURATION, least, most
#define NUMBER(argument, least, most) argument, OPTION_NUMBER, least, most
#define CHOICE(words) words, OPTION_CHOICE, 0, 0
#define FLAG NULL, OPTION_FLAG, 0, 0
#define ASK NULL, OPTION_ASK, 0, 0
#define LONGEST UNITS_DURATION_MAX_MS

#define IN_RUN IN(VERB_RUN)
#define IN_ACQUIRE IN(VERB_ACQUIRE)
#define IN_HOLD IN(VERB_HOLD)
#define IN_GRANTED (IN_RUN | IN_ACQUIRE | IN_HOLD)
#define IN_BY_TOKEN (IN(VERB_RENEW) | IN(VERB_RELEASE))
#define IN_DOCTOR IN(VERB_DOCTOR)
#define IN_MEASURED (IN_GRANTED | IN(VERB_RENEW) | IN_DOCTOR)
#define IN_KEYED \
    (IN_GRANTED | IN_BY_TOKEN | IN(VERB_STATUS) | IN(VERB_HISTORY) | IN(VERB_BREAK) | IN_DOCTOR)
#define IN_ALL (IN(VERB_COUNT) - 1)
#define IN_ONLINE (IN_ALL & ~(IN(VERB_HELP) | IN(VERB_VERSION)))

/* clang-format off: each option is one or two lines, with its columns under each other */
const struct option option_table[OPTION_COUNT] = {
    {'k', "key", DAILY, TEXTS("KEY"), AT(keys), IN_KEYED, false, NULL,
     "name of the lock; several -k: all together, or none"},
    {'t', "ttl", DAILY, DURATION(RLOCK_TTL_MIN_MS, RLOCK_TTL_MAX_MS), AT(ttl_ms), IN_MEASURED, true,
     "30s", "length of a lease, 1s to 30d; rlock renews it"},
    {'n', "nonblock", DAILY, FLAG, AT(nonblock), IN_GRANTED, true, NULL,
     "don't wait if the lock is taken"},
    {'w', "wait", DAILY, DURATION(0, LONGEST), AT(wait_ms), IN_GRANTED, true, "for ever",
     "wait at most this long; 0 means -n"},
    {'\0', "warn-wait", WAITING, DURATION(1, LONGEST), AT(warn_wait_ms), IN_GRANTED, true, NULL,
     "warn once, when rlock has waited this long"},
    {'E', "conflict-exit-code", WAITING, NUMBER("N", 0, UINT8_MAX), AT(conflict_status), IN_GRANTED,
     true, "75", "exit status when the lock is taken, or not granted in time"},
    {'\0', "queue", WAITING, CHOICE("fifo|none|newest"), AT(queue), IN_GRANTED, true, "fifo",
     "who is next: fifo, the first waiter; none, whoever asks first; newest, the last to come"},
    {'s', "shared", WAITING, FLAG, AT(shared), IN_GRANTED, true, NULL,
     "shared lock: any number of holders that use -s, and no other"},
    {'x', "exclusive", WAITING, FLAG, AT(exclusive), IN_GRANTED, true, NULL,
     "exclusive lock: a single holder (default)"},
    {'\0', "slots", WAITING, NUMBER("N", 1, RLOCK_SLOTS_MAX), AT(slots), IN_GRANTED, true, NULL,
     "at most N holders at the same time, each with a slot number of its own"},
    {'c', "command", DAILY, TEXT("STRING"), AT(command), IN_RUN, false, NULL,
     "run STRING with /bin/sh -c"},
    {'\0', "on-lost", SAFETY, CHOICE("kill|pause|ignore"), AT(on_lost), IN_RUN | IN_ACQUIRE, true,
     "kill", "what to do with the command when the lock is lost"},
    {'\0', "kill-after", SAFETY, DURATION(0, LONGEST), AT(kill_after_ms), IN_RUN | IN_ACQUIRE, true,
     "a sixth of the ttl, at most 5s",
     "grace period from TERM to KILL when the command has to end"},
    {'\0', "max-hold", DAILY, DURATION(1, LONGEST), AT(max_hold_ms), IN_RUN, true, NULL,
     "end the command after this time, with status 124"},
    {'\0', "protocol", SAFETY, CHOICE("token|timestamp"), AT(key_value), IN_RUN, true, "token",
     "what the key holds: the owner's token, or the time of expiry, as older programs write it"},
    {'\0', "timestamp-unit", SAFETY, CHOICE("s|ms"), AT(timestamp_unit), IN_RUN, true, "s",
     "unit of the time of expiry in the key, with --protocol timestamp"},
    {'\0', "scripts", SERVER, CHOICE("auto|yes|no"), AT(scripts), IN_ONLINE, true, "auto",
     "run scripts on the server (EVAL) or not; auto: not where the server refuses them"},
    {'\0', "min-hold", WAITING, DURATION(1, RLOCK_TTL_MAX_MS), AT(min_hold_ms), IN_RUN, true, NULL,
     "keep the lock at least this long, even if the command ends earlier"},
    {'\0', "once", WAITING, DURATION(1, RLOCK_TTL_MAX_MS), AT(once_ms), IN_RUN, false, NULL,
     "after success mark the work as done for this long; other runs then exit with 0"},
    {'\0', "wait-all", SAFETY, FLAG, AT(wait_all), IN_RUN, true, NULL,
     "keep the lock until every descendant of the command has ended"},
    {'\0', "cgroup", SAFETY, FLAG, AT(cgroup), IN_RUN, true, NULL,
     "run the command in a control group of its own, which is killed as a whole"},
    {'\0', "nested", SAFETY, FLAG, AT(nested), IN_RUN, true, NULL,
     "run only under the lock of a parent rlock, else exit with 76"},
    {'\0', "replicas", SAFETY, NUMBER("N", 0, RLOCK_REPLICAS_MAX), AT(replicas), IN_MEASURED, true,
     "0", "a grant or renewal counts only when N replicas have confirmed it"},
    {'\0', "history", SAFETY, NUMBER("N", 0, RLOCK_HISTORY_MAX), AT(history),
     IN_GRANTED | IN(VERB_BREAK) | IN_DOCTOR, true, "0",
     "let the server keep the last N events of the lock: grants, ends, breaks"},
    {'\0', "label", WAITING, TEXT("TEXT"), AT(label), IN_GRANTED | IN(VERB_BREAK), false, NULL,
     "text for those who find the lock taken; with break, for the former holder"},
    {'u', "url", DAILY, TEXTS("URL"), AT(urls), IN_ONLINE, true, "redis://127.0.0.1:6379",
     "redis://, rediss://, redis+sentinel://, unix:// or local:; several -u: a quorum"},
    {'\0', "tls-ca", SERVER, TEXT("FILE"), AT(tls_ca), IN_ONLINE, true, "the system's",
     "file or folder of the CAs that may certify a rediss:// server"},
    {'\0', "tls-cert", SERVER, TEXT("FILE"), AT(tls_cert), IN_ONLINE, true, NULL,
     "client certificate for a rediss:// server"},
    {'\0', "tls-key", SERVER, TEXT("FILE"), AT(tls_key), IN_ONLINE, true, "the --tls-cert file",
     "private key of the client certificate"},
    {'\0', "tls-name", SERVER, TEXT("NAME"), AT(tls_name), IN_ONLINE, true, "the host of the URL",
     "name that the certificate of a rediss:// server must be for"},
    {'\0', "password-file", SERVER, TEXT("FILE"), AT(password_file), IN_ONLINE, true, NULL,
     "file whose first line is the password"},
    {'\0', "password-command", SERVER, TEXT("COMMAND"), AT(password_command), IN_ONLINE, true, NULL,
     "shell command whose first line of output is the password"},
    {'\0', "sentinel-user", SERVER, TEXT("NAME"), AT(sentinel_user), IN_ONLINE, true, NULL,
     "user name for the Sentinels"},
    {'\0', "sentinel-password-file", SERVER, TEXT("FILE"), AT(sentinel_password_file), IN_ONLINE,
     true, NULL, "file whose first line is the password for the Sentinels"},
    {'\0', "pass-credentials", SAFETY, FLAG, AT(pass_credentials), IN_RUN, true, NULL,
     "leave passwords in the command's environment"},
    {'\0', "connect-timeout", SERVER, DURATION(1, LONGEST), AT(connect_ms), IN_ONLINE, true, "5s",
     "limit for the first contact with the server, and for each later attempt"},
    {'q', "quiet", OUTPUT, FLAG, AT(quiet), IN_ONLINE, true, NULL, "report failures only"},
    {'v', "verbose", OUTPUT, FLAG, AT(verbose), IN_ONLINE, true, NULL,
     "report every step, with its time"},
    {'\0', "json", OUTPUT, FLAG, AT(json), IN_ONLINE, true, NULL,
     "messages as JSON, one object per line"},
    {'\0', "report", OUTPUT, TEXT("FILE"), AT(report), IN_RUN, false, NULL,
     "at the end write the outcome to FILE as a JSON object; - is stdout"},
    {'\0', "report-append", OUTPUT, TEXT("FILE"), AT(report_append), IN_RUN, true, NULL,
     "at the end append the outcome to FILE as a line of JSON, with its time"},
    {'\0', "on-event", OUTPUT, TEXT("COMMAND"), AT(on_event), IN_RUN, true, NULL,
     "run COMMAND by /bin/sh at the events granted, waiting-long, lost, busy and released"},
    {'\0', "bind-pid", DAILY, NUMBER("PID", 1, INT_MAX), AT(bind_pid), IN_ACQUIRE, true, NULL,
     "leave a process behind that renews the lock until process PID ends"},
    {'\0', "log", OUTPUT, TEXT("FILE|syslog"), AT(log), IN_ACQUIRE | IN_HOLD, true,
     "stderr if that is a file or a terminal, else none",
     "where the background process of --bind-pid or --renew writes its messages"},
    {'\0', "for", DAILY, DURATION(RLOCK_TTL_MIN_MS, RLOCK_TTL_MAX_MS), AT(hold_ms), IN_HOLD, false,
     NULL, "how long to hold the lock, 1s to 30d"},
    {'\0', "renew", DAILY, FLAG, AT(renews), IN_HOLD, false, NULL,
     "a process renews a lease of -t for all of --for; if the machine dies, the lock is soon free"},
    {'\0', "token-file", DAILY, TEXT("FILE"), AT(token_file), IN_BY_TOKEN, true, NULL,
     "file whose first line is the token, instead of RLOCK_TOKEN"},
    {'\0', "quiet-if-gone", DAILY, FLAG, AT(quiet_if_gone), IN(VERB_RELEASE), true, NULL,
     "exit with 0, without a message, if nobody holds the lock any more"},
    {'\0', "watch", DAILY, FLAG, AT(watch), IN(VERB_STATUS), false, NULL,
     "show the lock again each second, until interrupted"},
    {'\0', "since", DAILY, DURATION(1, LONGEST), AT(since_ms), IN(VERB_HISTORY), false, NULL,
     "show only holds that ended at most this long ago, such as 1d"},
    {'\0', "format", OUTPUT, CHOICE("text|json|prometheus"), AT(format), IN(VERB_LIST), false,
     "text, or json with --json", "list the locks as a table, as JSON, or as metrics"},
    {'\0', "output", OUTPUT, TEXT("FILE"), AT(output), IN(VERB_LIST), false, "stdout",
     "write the list to FILE; if that fails, FILE keeps its former content"},
    {'\0', "yes", DAILY, FLAG, AT(yes), IN(VERB_BREAK), false, NULL, "don't ask for confirmation"},
    {'\0', "all", DAILY, FLAG, AT(all), IN(VERB_HELP), false, NULL,
     "show all options of rlock, not only those of daily use"},
    {'\0', "explain", OUTPUT, FLAG, AT(explain), IN_RUN, false, NULL,
     "say what would happen with these options and this server, and run nothing"},
    {'h', "help", OUTPUT, ASK, AT(asked), IN_ALL, false, NULL, "print this help and exit"},
    {'V', "version", OUTPUT, ASK, AT(asked), IN_ALL, false, NULL, "print the version and exit"},
};
/* clang-format on */

const struct flock_option flock_table[FLOCK_COUNT] = {
    {'e', NULL, "exclusive", NULL},
    {'\0', "nb", "nonblock", NULL},
    {'\0', "nonblocking", "nonblock", NULL},
    {'\0', "timeout", "wait", NULL},
    {'\0', "unlock", NULL, "a lock that was taken by rlock acquire is released by rlock release"},
    {'o', "close", NULL, "leave it out: the command inherits no descriptor from rlock"},
    {'F', "no-fork", NULL, "leave it out: rlock renews the lock while the command runs"},
};

const struct options options_by_default = {
    .ttl_ms = 30000,
    .wait_ms = -1,
    .conflict_status = 75,
    .kill_after_ms = -1,
    .connect_ms = 5000,
};

static bool is_name(const char *whole, const char *name, size_t n)
{
    return whole != NULL && strlen(whole) == n && strncmp(whole, name, n) == 0;
}

const struct option *option_of_name(const char *name, size_t n)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (is_name(option_table[i].name, name, n))
            return &option_table[i];
    for (i = 0; i < FLOCK_COUNT; i++)
        if (is_name(flock_table[i].name, name, n) && flock_table[i].meaning != NULL)
            return option_of_name(flock_table[i].meaning, strlen(flock_table[i].meaning));
    return NULL;
}

const struct option *option_of_letter(char letter)
{
    size_t i;

    for (i = 0; i < OPTION_COUNT; i++)
        if (letter != '\0' && option_table[i].letter == letter)
            return &option_table[i];
    for (i = 0; i < FLOCK_COUNT; i++)
        if (letter != '\0' && flock_table[i].letter == letter && flock_table[i].meaning != NULL)
            return option_of_name(flock_table[i].meaning, strlen(flock_table[i].meaning));
    return NULL;
}

const char *option_why_not(const char *word)
{
    size_t i;

    for (i = 0; i < FLOCK_COUNT; i++)
        if (flock_table[i].why_not != NULL &&
            ((word[1] != '-' && word[1] == flock_table[i].letter) ||
             (word[1] == '-' && strcmp(word + 2, flock_table[i].name) == 0)))
            return flock_table[i].why_not;
    return NULL;
}

/* Without snprintf(3): the parser calls this for each option at each start of rlock. */
void option_variable(const struct option *option, char variable[64])
{
    static const char prefix[] = "RLOCK_";
    const char *from = option->name;
    size_t i = strlen(prefix);

    memcpy(variable, prefix, i);
    for (; *from != '\0' && i < 63; from++) {
        if (*from >= 'a' && *from <= 'z')
            variable[i++] = (char)(*from - 'a' + 'A');
        else
            variable[i++] = *from == '-' ? '_' : *from;
    }
    variable[i] = '\0';
}

static size_t index_of(const char *name)
{
    size_t i = 0;

    while (strcmp(option_table[i].name, name) != 0)
        i++;
    return i;
}

const struct origin *options_origin(const struct options *options, const char *name)
{
    return &options->origins[index_of(name)];
}

void options_name_origin(const struct options *options, const char *name, char *text, size_t room)
{
    const struct origin *origin = options_origin(options, name);
    char variable[64];

    switch (origin->from) {
    case FROM_COMMAND_LINE:
        snprintf(text, room, "--%s", name);
        return;
    case FROM_ENVIRONMENT:
        option_variable(&option_table[index_of(name)], variable);
        snprintf(text, room, "%s", variable);
        return;
    case FROM_FILE:
        snprintf(text, room, "%s:%d", options->file, origin->line);
        return;
    case FROM_DEFAULT:
        break;
    }
    snprintf(text, room, "the default");
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

void options_mask_urls(const struct options *options)
{
    size_t i;

    for (i = 0; i < options->n_texts; i++)
        if (strstr(options->texts[i], "://") != NULL)
            url_mask(options->texts[i]);
}

void options_fini(struct options *options)
{
    size_t i;

    for (i = 0; i < options->n_texts; i++)
        secret_free(options->texts[i]);
    free(options->texts);
    free(options->keys);
    free(options->urls);
}
