/* SPDX-License-Identifier: MIT */
/*
 * doctor: examines servers, and reports what makes their locks unsafe.
 *
 * doctor connects as the user who acquires locks, and needs no other rights: what the server denies
 * is graded UNKNOWN. To try a right, doctor sends the command itself, in a form that changes no
 * lock: ACL DRYRUN needs a right of its own and Redis 7, and doesn't know the rules of a proxy.
 */
#include "doctor/doctor.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/reason.h"
#include "doctor/server_checks.h"
#include "lock/scripts.h"
#include "ops/list.h"
#include "server/error_reply.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* all that rlock-locks(7) lists: without scripts doctor can't tell what else is missing */
#define GIVE_RIGHTS                                                                                \
    "allow the user +eval +evalsha +get +set +pexpire +pttl +time +incr +del +exists +zadd +zrem " \
    "+zrange +zrangebyscore +zrank +zcard +zscore +hset +hget +hvals +hdel +rpush +blpop +asking " \
    "+cluster|nodes +client|setname"
#define RULES_BYTES 1000 /* more than put_rules() makes of struct refusals.which */
#define PREFIX_MAX 60    /* a rule for keys shows so many bytes of a longer key or prefix */
#define SAMPLES 20
#define SAMPLE_PAUSE_MS 25
#define BLOCK_MS 1000     /* longest wait for the reply to a BLPOP with a timeout of 10 ms */
#define LIST_MS 3000      /* check_locks() stops listing locks after this time */
#define TTL_SLACK_MS 1000 /* a lock that has more time left than its TTL plus this is reported */
#define SECOND_US INT64_C(1000000)
#define DRIFT_DIVISOR 100                 /* clocks may drift by 1 %, as in lib/lock/timing.c */
#define OFFSET_WEAK_US SECOND_US          /* clocks that differ by more are graded WEAK */
#define OFFSET_UNSAFE_US (60 * SECOND_US) /* clocks that differ by more are graded UNSAFE */

/* ---- checking the clocks and the round trip ---- */

/* The result of one TIME request. */
struct sample {
    int64_t sent_us;   /* just before the request was sent, on clock_us() */
    int64_t took_us;   /* from sent_us until the reply was read */
    int64_t ahead_us;  /* the server's clock minus our wall clock, in the middle of took_us */
    int64_t server_us; /* the server's clock, Unix time */
};

static enum rlock_status take_sample(struct probe *probe, struct sample *sample)
{
    const struct resp_value *reply = NULL;
    struct request request;
    int64_t wall_us;
    enum rlock_status st;

    request_begin(&request, "TIME");
    wall_us = clock_wall_us();
    sample->sent_us = clock_us();
    st = probe_ask(probe, &request, &reply);
    sample->took_us = clock_us() - sample->sent_us;
    if (st != RLOCK_OK)
        return st;
    sample->server_us = reply_time_us(reply);
    if (sample->server_us == 0)
        return reply_unexpected_command(&probe->err);
    sample->ahead_us = sample->server_us - wall_us - sample->took_us / 2;
    return RLOCK_OK;
}

/* For qsort(): the fastest sample comes first. */
static int by_took_us(const void *one, const void *other)
{
    int64_t a = ((const struct sample *)one)->took_us;
    int64_t b = ((const struct sample *)other)->took_us;

    return (a > b) - (a < b);
}

static void report_clock(struct probe *probe, const struct sample *sample)
{
    int64_t off_us = sample->ahead_us < 0 ? -sample->ahead_us : sample->ahead_us;
    const char *way = sample->ahead_us < 0 ? "behind" : "ahead of";
    enum rlock_grade grade = RLOCK_GRADE_GOOD;

    if (off_us > OFFSET_WEAK_US)
        grade = off_us > OFFSET_UNSAFE_US ? RLOCK_GRADE_UNSAFE : RLOCK_GRADE_WEAK;
    probe_report(probe, "clock", grade,
                 grade == RLOCK_GRADE_GOOD
                     ? NULL
                     : "set both clocks by NTP: if the server's is set forward, leases end early",
                 "the server's clock is %" PRId64 ".%03d s %s this machine's", off_us / SECOND_US,
                 (int)(off_us % SECOND_US / 1000), way);
}

/*
 * Compares how far each of the two clocks advanced between the first and the last sample. The
 * difference may be 1 %, by which clocks may drift, plus half of both round trips, because the
 * server read its clock at an unknown moment of each.
 */
static void report_rate(struct probe *probe, const struct sample *first, const struct sample *last)
{
    int64_t ours_us = last->sent_us + last->took_us / 2 - (first->sent_us + first->took_us / 2);
    int64_t apart_us = last->server_us - first->server_us - ours_us;
    int64_t unsure_us = (last->took_us + first->took_us) / 2 + 1000;
    bool is_good = llabs(apart_us) <= unsure_us + ours_us / DRIFT_DIVISOR;

    probe_report(
        probe, "clock rate", is_good ? RLOCK_GRADE_GOOD : RLOCK_GRADE_UNSAFE,
        is_good ? NULL : "let NTP slew the clocks, never step them, and check both machines",
        "the server's clock advanced %" PRId64 " ms while this machine's advanced %" PRId64 " ms",
        (last->server_us - first->server_us + 500) / 1000, (ours_us + 500) / 1000);
}

/*
 * Compares the round trips with timing.reply_ms, the longest time that rlock waits for a reply.
 * UNSAFE: most requests would fail. WEAK: some requests will have to be sent again.
 */
static void report_round_trip(struct probe *probe, struct sample *samples)
{
    int64_t limit_us = probe->timing.reply_ms * 1000;
    enum rlock_grade grade = RLOCK_GRADE_GOOD;
    int64_t middle_us;
    int64_t worst_us;

    qsort(samples, SAMPLES, sizeof samples[0], by_took_us);
    middle_us = samples[SAMPLES / 2].took_us;
    worst_us = samples[SAMPLES - 1].took_us;
    if (middle_us > limit_us)
        grade = RLOCK_GRADE_UNSAFE;
    else if (middle_us > limit_us / 4 || worst_us > limit_us)
        grade = RLOCK_GRADE_WEAK;
    probe_report(probe, "round trip", grade,
                 grade == RLOCK_GRADE_GOOD ? NULL : "use a longer --ttl, or a nearer server",
                 "%.1f ms, at worst %.1f ms, and with a ttl of %" PRId64
                 " ms a reply may take %" PRId64 " ms",
                 (double)middle_us / 1000, (double)worst_us / 1000, probe->timing.ttl_ms,
                 probe->timing.reply_ms);
}

static enum rlock_status check_clocks(struct probe *probe)
{
    struct sample samples[SAMPLES];
    enum rlock_status st = RLOCK_OK;
    int i;

    for (i = 0; st == RLOCK_OK && i < SAMPLES; i++) {
        st = take_sample(probe, &samples[i]);
        if (st == RLOCK_OK && i < SAMPLES - 1 &&
            clock_sleep(deadline_in(probe->deadline, SAMPLE_PAUSE_MS)) == RLOCK_STOPPED)
            st = RLOCK_STOPPED;
    }
    if (st != RLOCK_OK)
        return st;
    report_clock(probe, &samples[SAMPLES - 1]);
    report_rate(probe, &samples[0], &samples[SAMPLES - 1]);
    report_round_trip(probe, samples);
    return RLOCK_OK;
}

/* ---- checking the rights of the user ---- */

/* Commands or keys that the server denies; which[0] '\0': none. */
struct refusals {
    char which[400]; /* their names */
    char said[280];  /* the server's words about the first of them: " (the server says: ...)" */
    bool is_unknown; /* the server doesn't know the command, whatever the user may do */
};

/* Appends names to the list. `between` goes before them, unless they are the first ones. */
static void add_refusal(struct refusals *refusals, const char *between, const char *which,
                        const char *words)
{
    size_t used = strlen(refusals->which);

    snprintf(refusals->which + used, sizeof refusals->which - used, "%s%.250s",
             used > 0 ? between : "", which);
    if (refusals->said[0] == '\0')
        snprintf(refusals->said, sizeof refusals->said, " (%.240s)", words);
}

/*
 * Does the last denial say that the user may not use the key? Then the user may run the command:
 * Redis checks that right first.
 */
static bool is_about_key(const struct probe *probe)
{
    return strstr(probe_last_words(probe), " to access ") != NULL;
}

/*
 * Runs a command that rlock itself sends, not one of its scripts. If the server denies the command,
 * adds `which` to the refusals and returns RLOCK_OK.
 */
static enum rlock_status try_command(struct probe *probe, const struct request *request,
                                     int64_t block_ms, const char *which, struct refusals *refusals)
{
    const struct resp_value *reply = NULL;
    enum rlock_status st =
        quorum_ask_slowly(&probe->one, request, block_ms, probe->deadline, &reply, &probe->err);

    if (st == RLOCK_E_SERVER) /* an error such as LOADING says nothing about rights */
        return RLOCK_OK;
    if (!probe_is_denied(probe, st))
        return st;
    if (is_about_key(probe))
        return RLOCK_OK;
    add_refusal(refusals, " ", which, probe_last_words(probe));
    refusals->is_unknown = st == RLOCK_E_UNSUPPORTED;
    return RLOCK_OK;
}

/* Tries BLPOP, in which a waiter blocks. */
static enum rlock_status try_to_wait(struct probe *probe, const struct owner *owner,
                                     struct refusals *refusals)
{
    struct requests_params when = {.block_ms = 10};
    struct request request;

    requests_wait(owner, &request, &when);
    return try_command(probe, &request, BLOCK_MS, "BLPOP", refusals);
}

/* Runs the other commands that rlock doesn't run inside a script: ASKING in a Cluster, WAIT. */
static enum rlock_status try_commands(struct probe *probe, struct refusals *refusals)
{
    enum rlock_status st = RLOCK_OK;
    struct request request;

    request_begin(&request, "ASKING");
    if (probe->is_cluster)
        st = try_command(probe, &request, 0, "ASKING for slots that migrate", refusals);
    if (st != RLOCK_OK || probe->one.replicas == 0)
        return st;
    request_begin(&request, "WAIT");
    request_add(&request, "0");
    request_add(&request, "1");
    return try_command(probe, &request, 0, "WAIT for --replicas", refusals);
}

/* Tries, with the key `scratch`, the commands without which try_queued() can't try the others. */
static enum rlock_status try_alone(struct probe *probe, const char *scratch,
                                   struct refusals *refusals)
{
    static const struct {
        char name[6];
        bool has_key;
    } commands[] = {{"PTTL", true}, {"WATCH", true}, {"MULTI", false}, {"EXEC", false}};
    enum rlock_status st = RLOCK_OK;
    struct request request;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < sizeof commands / sizeof commands[0]; i++) {
        request_begin(&request, commands[i].name);
        if (commands[i].has_key)
            request_add(&request, scratch);
        /* EXEC fails without MULTI, whatever the user may do */
        if (strcmp(commands[i].name, "EXEC") != 0 || strstr(refusals->which, "MULTI") == NULL)
            st = try_command(probe, &request, 0, commands[i].name, refusals);
    }
    return st;
}

/* Is the name of the request's nth command also that of an earlier one? */
static bool is_repeated(const struct request *request, int nth)
{
    int i = 0;

    while (strcmp(request->word[request->first[i]], request->word[request->first[nth]]) != 0)
        i++;
    return i < nth;
}

/*
 * Tries, within MULTI, the other commands that locks need without scripts. The server executes none
 * of them.
 *
 *   key  NULL: on `wake`, and notes the names of the commands that are denied
 *        else: on the lock's keys, and notes `key` if a command is denied
 */
static enum rlock_status try_queued(struct probe *probe, const struct lock_keys *keys,
                                    const char *key, struct refusals *refusals)
{
    const struct resp_value *replies = NULL;
    struct commands commands;
    struct request request;
    enum error_reply kind;
    enum rlock_status st;
    const char *error;
    int i;

    commands_begin_try(&commands, keys, key == NULL);
    commands_build(&commands, &request);
    st = probe_ask(probe, &request, &replies);
    for (i = 1; st == RLOCK_OK && i < request.n_commands - 2; i++) { /* not DISCARD and EXEC */
        error = resp_error(resp_array_at(replies, (size_t)i));
        if (error == NULL || (key != NULL ? *refusals->which != '\0' : is_repeated(&request, i)) ||
            !probe_is_denied(probe, error_reply_read(error, NULL, &kind, &probe->err)) ||
            (key == NULL && is_about_key(probe)))
            continue;
        add_refusal(refusals, " ", key != NULL ? key : request.word[request.first[i]],
                    probe_last_words(probe));
    }
    return st;
}

/*
 * Indexes into the reply of rights.lua: five pairs of strings, then three strings. The first string
 * of a pair names the commands that the server denied, the second is the server's error for the
 * first of them. Both are "" if the server denied nothing.
 */
enum {
    RIGHTS_LOCKS = 0,        /* commands that every lock needs */
    RIGHTS_WAITING = 2,      /* commands for waiters, and for a release that wakes a waiter */
    RIGHTS_SEVERAL = 4,      /* commands for several holders: shared locks and slots */
    RIGHTS_ADMIN = 6,        /* commands that only the calls of rlock_admin.h send */
    RIGHTS_HISTORY = 8,      /* commands for the history */
    RIGHTS_NO_WRITE = 10,    /* a string: why the server executes no writes now */
    RIGHTS_HISTORY_KEY = 11, /* a string: what is wrong with the history's key */
    RIGHTS_WRONG_TYPE = 12,  /* a string: the error about the lock's key, of another type */
    RIGHTS_STRINGS
};

static bool is_rights_reply(const struct resp_value *reply)
{
    size_t n;
    size_t i;

    for (i = 0; i < RIGHTS_STRINGS; i++)
        if (resp_string(resp_array_at(reply, i), &n) == NULL)
            return false;
    return true;
}

/* Adds the pair at index `at` of rights.lua's reply to the refusals, unless the pair is empty. */
static void add_pair(struct refusals *refusals, const struct resp_value *reply, size_t at,
                     const char *needed_for)
{
    size_t n;
    const char *which = resp_string(resp_array_at(reply, at), &n);
    char what[256];
    char words[256];

    if (*which == '\0')
        return;
    snprintf(what, sizeof what, "%.180s%s", which, needed_for);
    snprintf(words, sizeof words, "the server says: %.200s",
             resp_string(resp_array_at(reply, at + 1), &n));
    add_refusal(refusals, "; ", what, words);
}

/*
 * Appends to an ACL rule a pattern for keys: `before`, then the first `n` bytes of `key`, then
 * `behind`. In the pattern '?' stands for a blank, as Redis takes no rule with blanks.
 */
static void add_pattern(char rule[RULES_BYTES], const char *before, const char *key, size_t n,
                        const char *behind)
{
    char *at = rule + strlen(rule);

    at += sprintf(at, " ~%s", before);
    for (; n > 0; n--, key++) {
        if (strchr("*?[\\", *key) != NULL)
            *at++ = '\\';
        *at++ = *key == ' ' ? '?' : *key;
    }
    sprintf(at, "%s", behind);
}

/*
 * Reports that the user may not use the keys of the lock, and suggests an ACL rule for them: for
 * all locks with the same prefix if the key has one ("job:*") or is long, otherwise for this lock.
 */
static void report_key_rule(struct probe *probe, const struct lock_keys *lock,
                            const struct refusals *keys)
{
    const char *key = lock->name[KEY_LOCK];
    const char *fence = lock->name[KEY_FENCE];
    const char *colon = strrchr(key, ':');
    size_t n = colon != NULL ? (size_t)(colon - key) + 1 : strlen(key);
    char change[RULES_BYTES] = "allow the user";

    if (colon != NULL || n > PREFIX_MAX) {
        n = n > PREFIX_MAX ? PREFIX_MAX : n;
        add_pattern(change, "", key, n, "*");
        add_pattern(change, "{", key, n, "*");
    } else {
        add_pattern(change, "", key, n, "");
        /* the names of the lock's other keys differ in their last word */
        add_pattern(change, "", fence, strlen(fence) - strlen("fence"), "*");
    }
    err_make_printable(change);
    if (probe->key == NULL)
        probe_report(probe, "rights", RLOCK_GRADE_UNKNOWN,
                     "name a lock that this user takes, by -k KEY", "denied: the keys of %s%s",
                     keys->which, keys->said);
    else
        probe_report(probe, "rights", RLOCK_GRADE_UNSAFE, change, "denied: the keys of %s%s",
                     keys->which, keys->said);
}

/* What the server denies this user. */
struct rights {
    struct refusals needed;  /* commands without which some lock can't be acquired */
    struct refusals waiting; /* BLPOP: a waiter who may not block asks more often */
    struct refusals admin;   /* commands that only the calls of rlock_admin.h need */
    struct refusals history; /* commands that the history needs */
    struct refusals keys;    /* keys of the lock */
    char no_write[512];      /* why the server executes no writes now, so that little was tried */
    char history_key[256];   /* what is wrong with the history's key */
};

static void parse_rights(struct rights *rights, const struct resp_value *reply)
{
    size_t n;

    add_pair(&rights->needed, reply, RIGHTS_LOCKS, "");
    add_pair(&rights->needed, reply, RIGHTS_WAITING,
             " for waiting, -s, --slots and --protocol timestamp");
    add_pair(&rights->needed, reply, RIGHTS_SEVERAL, " for -s and --slots");
    add_pair(&rights->admin, reply, RIGHTS_ADMIN, "");
    add_pair(&rights->history, reply, RIGHTS_HISTORY, "");
    snprintf(rights->no_write, sizeof rights->no_write, "%s",
             resp_string(resp_array_at(reply, RIGHTS_NO_WRITE), &n));
    snprintf(rights->history_key, sizeof rights->history_key, "%s",
             resp_string(resp_array_at(reply, RIGHTS_HISTORY_KEY), &n));
}

/* Writes ACL rules, such as "+set +del", for the commands (words in capitals) in denied->which. */
static void put_rules(char rules[RULES_BYTES], const struct refusals *denied)
{
    const char *at = denied->which;
    size_t used = (size_t)sprintf(rules, "allow the user");
    size_t n;

    for (; *at != '\0'; at += n + strspn(at + n, " ;")) {
        n = strcspn(at, " ;");
        if (n == 1 || strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != n)
            continue;
        used += (size_t)snprintf(rules + used, RULES_BYTES - used, " +%.*s%s", (int)n, at,
                                 n == 5 && memcmp(at, "MULTI", n) == 0 ? " +exec" : "");
    }
    for (; *rules != '\0'; rules++)
        *rules = (char)tolower((unsigned char)*rules);
}

/* `what`: what needs these rights. */
static void report_rights(struct probe *probe, const struct lock_keys *lock,
                          const struct rights *rights, const char *what)
{
    char rules[RULES_BYTES];

    put_rules(rules, &rights->needed);
    if (*rights->needed.which != '\0')
        probe_report(probe, "rights", RLOCK_GRADE_UNSAFE,
                     strncmp(rights->needed.which, "EVAL", 4) == 0 ? GIVE_RIGHTS : rules,
                     "denied: %s%s", rights->needed.which, rights->needed.said);
    else if (*rights->no_write != '\0')
        probe_report(
            probe, "rights", RLOCK_GRADE_UNSAFE,
            "let the server accept writes: until then it grants no lock, and doctor can't try all "
            "rights",
            "the server executes no writes now: %s", rights->no_write);
    else if (*rights->keys.which != '\0')
        report_key_rule(probe, lock, &rights->keys);
    else if (*rights->waiting.which != '\0')
        probe_report(probe, "rights", RLOCK_GRADE_WEAK,
                     rights->waiting.is_unknown ? "there is nothing to allow"
                                                : "allow the user +blpop",
                     "%s: %s, so waiters ask several times a second%s",
                     rights->waiting.is_unknown ? "unknown to the server" : "denied",
                     rights->waiting.which, rights->waiting.said);
    else if (*rights->admin.which != '\0')
        probe_report(probe, "rights", RLOCK_GRADE_WEAK,
                     "give the user the rights for status, list, history and break: see Rights in "
                     "rlock-locks(7)",
                     "enough to hold locks, but not to inspect or break them: denied: %s%s",
                     rights->admin.which, rights->admin.said);
    else
        probe_report(probe, "rights", RLOCK_GRADE_GOOD, NULL, "all that %s for %.60s", what,
                     probe_key(probe));
}

/* Reports what keeps the server from writing the history. The server grants locks all the same. */
static void report_history(struct probe *probe, const struct rights *rights)
{
    if (*rights->history.which != '\0')
        probe_report(probe, "history", RLOCK_GRADE_WEAK,
                     "allow the user +ltrim +lrange, or leave out --history",
                     "locks are granted without a history, as the server denies %s%s",
                     rights->history.which, rights->history.said);
    else if (*rights->history_key != '\0')
        probe_report(probe, "history", RLOCK_GRADE_WEAK,
                     "look at that key, and DEL it if no other program needs it",
                     "locks are granted without a history, as another program uses its key: %s",
                     rights->history_key);
    else
        probe_report(probe, "history", RLOCK_GRADE_GOOD, NULL,
                     "the server can write the history of %.60s", probe_key(probe));
}

/* Tries the rights of a user who acquires locks by commands. */
static enum rlock_status try_plain_rights(struct probe *probe, const struct owner *owner,
                                          struct rights *rights)
{
    const struct lock_keys *keys = &owner->lock[0].keys;
    enum rlock_status st = try_alone(probe, keys->wake, &rights->needed);
    const struct resp_value *reply = NULL;
    struct request request;

    if (st == RLOCK_OK && *rights->needed.which == '\0')
        st = try_queued(probe, keys, NULL, &rights->needed);
    if (st == RLOCK_OK && *rights->needed.which == '\0')
        st = try_queued(probe, keys, keys->name[KEY_LOCK], &rights->keys);
    if (st != RLOCK_OK || *rights->needed.which != '\0' || *rights->keys.which != '\0')
        return st;
    request_begin(&request, "GETRANGE");
    request_add(&request, keys->name[KEY_LOCK]);
    request_add(&request, "0");
    request_add(&request, "0");
    st = probe_ask(probe, &request, &reply);
    if (st != RLOCK_E_REFUSED || probe->err.reason != RLOCK_REASON_KEY_TYPE)
        return st;
    snprintf(probe->wrong_type, sizeof probe->wrong_type, "%.90s", probe_last_words(probe));
    return RLOCK_OK;
}

/*
 * Reports that the server has refused rlock's script. If rlock may acquire the lock by commands
 * (--scripts auto), tries the rights for them.
 */
static enum rlock_status report_no_scripts(struct probe *probe, const struct owner *owner)
{
    bool is_denied = probe->err.reason == RLOCK_REASON_SCRIPTS_DENIED;
    bool may_use_commands = probe->one.may_use_commands;
    const char *in_need = probe->needs_scripts;
    struct refusals scripts = {.which = ""};
    struct rights rights = {.no_write = ""};
    enum rlock_status st;

    if (in_need == NULL && probe->one.members.member->is_one_of_several)
        in_need = "a lock on several servers";
    add_refusal(&scripts, "", "EVAL", probe_last_words(probe));
    probe->scripts = PROBE_SCRIPTS_REFUSED;
    quorum_use_commands(&probe->one); /* check_locks() uses commands, too */
    if (in_need != NULL || !may_use_commands) {
        probe_report(probe, "scripts", RLOCK_GRADE_UNSAFE,
                     in_need == NULL ? "use --scripts auto (RLOCK_SCRIPTS=auto), or " GIVE_RIGHTS
                     : is_denied     ? GIVE_RIGHTS
                                     : "name a server that runs scripts",
                     "refused, so %s have %s here%s", is_denied ? "this user can't" : "nobody can",
                     in_need != NULL ? in_need : "a lock with --scripts yes", scripts.said);
        return RLOCK_OK;
    }
    st = try_plain_rights(probe, owner, &rights);
    if (st != RLOCK_OK)
        return st;
    if (*rights.needed.which != '\0' && is_denied) { /* neither scripts nor commands do */
        add_refusal(&scripts, " ", rights.needed.which, "");
        rights.needed = scripts;
    } else if (*rights.needed.which == '\0') {
        probe_report(
            probe, "scripts", RLOCK_GRADE_WEAK,
            is_denied ? "for a queue, -s, --slots, --once, --history and several keys, " GIVE_RIGHTS
                      : "a queue, -s, --slots, --once, --history and several keys need a "
                        "server that runs scripts",
            "refused, so rlock takes locks with plain commands (SET): exclusive ones of one key, "
            "without a queue%s",
            scripts.said);
    }
    report_rights(probe, &owner->lock[0].keys, &rights, "a lock with plain commands needs");
    return RLOCK_OK;
}

static enum rlock_status check_rights(struct probe *probe)
{
    const char *key = probe_key(probe);
    struct rlock_config config = {.keys = &key, .n_keys = 1};
    const struct resp_value *reply = NULL;
    struct rights rights = {.no_write = ""};
    struct request request;
    struct owner owner;
    enum rlock_status st;

    st = owner_open(&owner, &config, &probe->err);
    if (st != RLOCK_OK)
        goto out;
    if (probe->one.without_scripts) {
        st = try_plain_rights(probe, &owner, &rights);
        if (st == RLOCK_OK)
            report_rights(probe, &owner.lock[0].keys, &rights, "a lock with plain commands needs");
        goto out;
    }
    script_request(&request, SCRIPT_RIGHTS, KEYS_PER_LOCK + 1);
    keys_add(&owner.lock[0].keys, &request);
    st = probe_ask(probe, &request, &reply);
    if (st == RLOCK_OK && is_rights_reply(reply)) {
        probe->scripts = PROBE_SCRIPTS_RUN;
        parse_rights(&rights, reply);
        snprintf(probe->wrong_type, sizeof probe->wrong_type, "%s",
                 resp_string(resp_array_at(reply, RIGHTS_WRONG_TYPE), &(size_t){0}));
        if (*rights.no_write == '\0')
            st = try_commands(probe, &rights.needed);
        if (st == RLOCK_OK && *rights.no_write == '\0')
            st = try_to_wait(probe, &owner, &rights.waiting);
    } else if (st == RLOCK_OK) {
        st = reply_unexpected_script(&probe->err);
    } else if (probe_is_denied(probe, st) && reason_is_about_scripts(probe->err.reason)) {
        st = report_no_scripts(probe, &owner);
        goto out;
    } else if (probe_is_denied(probe, st)) {
        add_refusal(&rights.keys, "", key, probe_last_words(probe));
        st = RLOCK_OK;
    } else if (st == RLOCK_E_SERVER) {
        snprintf(rights.no_write, sizeof rights.no_write, "%s", probe->err.text);
        st = RLOCK_OK;
    }
    if (st == RLOCK_OK)
        report_rights(probe, &owner.lock[0].keys, &rights, "rlock needs");
    if (st == RLOCK_OK && probe->keeps_history && *rights.keys.which == '\0' &&
        *rights.no_write == '\0')
        report_history(probe, &rights);
out:
    owner_close(&owner);
    return st;
}

/* ---- checking which user the server takes rlock for ---- */

/*
 * Without a password rlock sends no AUTH. Then the server chooses the user, who need not be the
 * user that the URL names.
 */
static enum rlock_status check_user(struct probe *probe)
{
    const char *wanted = member_primary_url(probe->one.members.member)->user;
    struct request request;
    char *name = NULL;
    enum rlock_status st;

    request_begin(&request, "ACL");
    request_add(&request, "WHOAMI");
    st = probe_fetch_text(probe, &request, &name);
    if (st != RLOCK_OK)
        return st;
    if (name == NULL && wanted == NULL)
        probe_report(probe, "user", RLOCK_GRADE_GOOD, NULL,
                     "none is named, so the server's default user");
    else if (name == NULL)
        probe_report(probe, "user", RLOCK_GRADE_UNKNOWN, "allow the user ACL WHOAMI (+acl|whoami)",
                     "not known if it is %.60s, as the server doesn't tell this user", wanted);
    else if (wanted != NULL && strcmp(name, wanted) != 0)
        probe_report(probe, "user", RLOCK_GRADE_WEAK,
                     "give a password, or a client certificate that the server takes for this user "
                     "(tls-auth-clients-user)",
                     "%.60s, though the URL names %.60s", name, wanted);
    else
        probe_report(probe, "user", RLOCK_GRADE_GOOD, NULL, "%.60s", name);
    free(name);
    return RLOCK_OK;
}

/* ---- finding locks that can't be granted, or expire later than their TTL allows, or never ---- */

struct lock_counts {
    size_t n;         /* locks that were listed */
    size_t n_late;    /* locks with more time left than their TTL */
    size_t n_endless; /* locks that never expire */
    size_t n_wrong;   /* locks with a helper key that holds another program's data */
    char late[64];    /* the key of the first lock counted in n_late */
    char endless[64]; /* the key of the first lock counted in n_endless */
    char wrong[200];  /* the helper keys of the first lock counted in n_wrong */
};

static void count_lock(void *context, const struct rlock_view *view)
{
    struct lock_counts *counts = context;
    bool is_late = false;
    size_t i;

    for (i = 0; i < view->n_holders; i++) {
        const struct rlock_party *holder = &view->holders[i];
        int64_t left_ms = view->seen == RLOCK_SEEN_EXCLUSIVE ? view->left_ms : holder->left_ms;

        is_late = is_late || (holder->ttl_ms > 0 && left_ms > holder->ttl_ms + TTL_SLACK_MS);
    }
    counts->n++;
    if (is_late && counts->n_late++ == 0)
        snprintf(counts->late, sizeof counts->late, "%s", view->key);
    if (view->left_ms < 0 && counts->n_endless++ == 0)
        snprintf(counts->endless, sizeof counts->endless, "%s", view->key);
    if (*view->wrong != '\0' && counts->n_wrong++ == 0)
        snprintf(counts->wrong, sizeof counts->wrong, "%s", view->wrong);
}

static enum rlock_status check_locks(struct probe *probe)
{
    struct rlock_deadline deadline = deadline_in(probe->deadline, LIST_MS);
    struct lock_counts counts = {.n = 0};
    struct rlock_visitor visitor = {.on_lock = count_lock, .context = &counts};
    enum rlock_status st = list_locks(&probe->one, NULL, deadline, &visitor, &probe->err);
    bool is_cut = st != RLOCK_OK && st != RLOCK_STOPPED && deadline_has_passed(deadline);

    if (*probe->wrong_type != '\0')
        probe_report(probe, "locks", RLOCK_GRADE_UNSAFE,
                     "look at that key, and DEL it if no other program needs it",
                     "%.60s can't be granted, as another program uses this key: %s",
                     probe_key(probe), probe->wrong_type);
    if (probe_is_denied(probe, st)) {
        probe_report(probe, "locks", RLOCK_GRADE_UNKNOWN,
                     "allow the user the commands that list needs",
                     "the server denies this user the commands that list locks (%.240s)",
                     probe_last_words(probe));
        return RLOCK_OK;
    }
    if (st != RLOCK_OK && !is_cut)
        return st;
    if (counts.n_wrong > 0)
        probe_report(probe, "locks", RLOCK_GRADE_UNSAFE,
                     "look at that key, and DEL it if no other program needs it",
                     "%zu of %zu locks can't be granted, as a helper key has another program's "
                     "data: %s",
                     counts.n_wrong, counts.n, counts.wrong);
    else if (counts.n_late > 0)
        probe_report(probe, "locks", RLOCK_GRADE_UNSAFE,
                     "if the holder is gone, free the lock: rlock break -k KEY",
                     "%zu of %zu locks last longer than their ttl, as happens when the server's "
                     "clock is set back, for example %s",
                     counts.n_late, counts.n, counts.late);
    else if (counts.n_endless > 0)
        probe_report(probe, "locks", RLOCK_GRADE_WEAK,
                     "if the holder is gone, free the lock: rlock break -k KEY",
                     "%zu of %zu locks never expire, for example %s", counts.n_endless, counts.n,
                     counts.endless);
    else
        probe_report(probe, "locks", RLOCK_GRADE_GOOD, NULL,
                     is_cut ? "the first %zu expire by themselves (doctor stopped the list after 3 "
                              "seconds)"
                            : "%zu, and each lock expires by itself",
                     counts.n);
    return RLOCK_OK;
}

/* ---- examining each member, and the quorum ---- */

static enum rlock_status examine_member(struct probe *probe)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;

    request_begin(&request, "TIME");
    st = probe_ask(probe, &request, &reply);
    if (probe_is_denied(probe, st)) { /* then no lock can be had, so that no other check matters */
        probe_report(probe, "rights", RLOCK_GRADE_UNSAFE, GIVE_RIGHTS, "denied: TIME (%.240s)",
                     probe_last_words(probe));
        return RLOCK_OK;
    }
    if (st == RLOCK_OK)
        st = server_checks_run(probe);
    if (st == RLOCK_OK)
        st = check_user(probe);
    if (st == RLOCK_OK && !probe->is_replica)
        st = check_rights(probe);
    else if (st == RLOCK_OK)
        probe_report(probe, "rights", RLOCK_GRADE_UNKNOWN, "name the primary with -u",
                     "not known, as rights can be tried on a primary only");
    if (st == RLOCK_OK && probe->scripts != PROBE_SCRIPTS_REFUSED)
        st = server_checks_scripts(probe);
    if (st == RLOCK_OK)
        st = check_clocks(probe);
    if (st == RLOCK_OK)
        st = check_locks(probe);
    return st;
}

/* Reports a member that could not be examined. WEAK, not UNSAFE: the others can still decide. */
static void report_absent(struct probe *probe)
{
    probe_report(
        probe, "member", RLOCK_GRADE_WEAK,
        "let this server answer again: with each missing member, fewer of the others may fail",
        "this server can't be examined: %s", probe->err.text);
}

static void report_quorum(const struct probe *probe, const struct quorum *quorum,
                          size_t n_answering, size_t n_recent)
{
    struct rlock_finding finding = {.server = "together",
                                    .check = "quorum",
                                    .grade = n_answering < quorum->members.n || n_recent > 0
                                                 ? RLOCK_GRADE_WEAK
                                                 : RLOCK_GRADE_GOOD};
    char found[200];

    snprintf(found, sizeof found,
             "%zu of %zu members answer, %zu are needed; %zu were restarted too recently to count; "
             "the list of members has the hash %s",
             n_answering, quorum->members.n, quorum->members.need, n_recent, quorum->members.hash);
    finding.found = found;
    probe->examiner->on_finding(probe->examiner->context, &finding);
}

/* Reports members whose votes don't count yet after a restart, and how many members answer. */
static enum rlock_status check_quorum(struct probe *probe, struct quorum *quorum,
                                      size_t n_answering)
{
    int64_t left_ms = 0;
    size_t n_recent = 0;
    size_t i;

    for (i = 0; i < quorum->members.n; i++) {
        probe_select(probe, quorum, &quorum->members.member[i]);
        left_ms = members_uncounted_ms(&quorum->members, probe->one.members.member);
        if (probe->one.members.member->state == RLOCK_OK && left_ms > 0) {
            n_recent++;
            probe_report(probe, "restart", RLOCK_GRADE_WEAK,
                         "wait, and restart members one at a time",
                         "too recent: this server may have forgotten a holder, so its grants "
                         "don't count for another %" PRId64 " ms",
                         left_ms);
        }
    }
    if (n_answering < quorum->members.need)
        return members_fault(&quorum->members, &probe->err);
    if (quorum->members.n > 1)
        report_quorum(probe, quorum, n_answering, n_recent);
    return members_check(&quorum->members, &probe->err);
}

enum rlock_status doctor_examine(struct quorum *quorum, const char *key, bool keeps_history,
                                 const char *needs_scripts, struct rlock_deadline deadline,
                                 const struct rlock_examiner *examiner, struct rlock_error *err)
{
    struct probe probe;
    enum rlock_status st = RLOCK_OK;
    size_t n_answering = 0;
    size_t i;

    probe_init(&probe, quorum, key, keeps_history, needs_scripts, deadline, examiner);
    for (i = 0; st != RLOCK_STOPPED && i < quorum->members.n; i++) {
        probe_select(&probe, quorum, &quorum->members.member[i]);
        st = examine_member(&probe);
        n_answering += st == RLOCK_OK;
        member_set_outcome(probe.one.members.member, st, &probe.err);
        if (st >= RLOCK_E_USAGE && quorum->members.n > 1)
            report_absent(&probe);
    }
    if (st != RLOCK_STOPPED)
        st = check_quorum(&probe, quorum, n_answering);
    if (err != NULL && st >= RLOCK_E_USAGE)
        *err = probe.err;
    return st;
}
