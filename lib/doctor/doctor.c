/* SPDX-License-Identifier: MIT */
/*
 * doctor: what makes the locks of a server unsafe.
 *
 * It asks as the user whose locks they are, and needs no rights beyond what
 * locks need. Rights are tried, not looked up: ACL DRYRUN is one more right, is
 * missing before Redis 7, and knows nothing of a proxy in between.
 */
#include "doctor/doctor.h"

#include "base/clock.h"
#include "base/err.h"
#include "doctor/server_checks.h"
#include "lock/scripts.h"
#include "ops/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 20
#define SAMPLE_PAUSE_MS 25
#define PATIENCE_MS 5000 /* for a reply: to measure it, not to miss it */
#define BLOCK_MS 1000    /* how late a server may end a wait of a few */
#define LIST_MS 3000
#define TTL_SLACK_MS 1000
#define SECOND_US INT64_C(1000000)
#define DRIFT_PART 100 /* 1 %, as timing.c allows for */
#define OFFSET_WEAK_US SECOND_US
#define OFFSET_UNSAFE_US (60 * SECOND_US)

/* ---- the clock, and the way to it ---- */

/* One look at the server's clock, between two at ours. */
struct sample {
    int64_t sent_us;
    int64_t took_us;
    int64_t ahead_us; /* of our wall clock */
    int64_t server_us;
};

static enum rlock_status take_sample(struct probe *probe, struct sample *sample)
{
    const struct resp_value *reply = NULL;
    const char *seconds;
    const char *rest;
    struct request request;
    int64_t wall_us;
    enum rlock_status st;
    size_t n;

    script_request(&request, SCRIPT_TIME, 0, false);
    wall_us = clock_wall_us();
    sample->sent_us = clock_us();
    st = probe_ask(probe, &request, &reply);
    sample->took_us = clock_us() - sample->sent_us;
    if (st != RLOCK_OK)
        return st;
    seconds = resp_string(resp_array_at(reply, 0), &n);
    rest = resp_string(resp_array_at(reply, 1), &n);
    if (seconds == NULL || rest == NULL || strlen(seconds) > 11 || strlen(rest) > 6)
        return err_set(&probe->err, RLOCK_E_PROTOCOL, 0, "reply: not what TIME returns");
    sample->server_us = strtoll(seconds, NULL, 10) * SECOND_US + strtoll(rest, NULL, 10);
    sample->ahead_us = sample->server_us - wall_us - sample->took_us / 2;
    return RLOCK_OK;
}

static int by_length(const void *one, const void *other)
{
    int64_t a = ((const struct sample *)one)->took_us;
    int64_t b = ((const struct sample *)other)->took_us;

    return (a > b) - (a < b);
}

static void tell_clock(struct probe *probe, const struct sample *sample)
{
    int64_t off_us = sample->ahead_us < 0 ? -sample->ahead_us : sample->ahead_us;
    const char *way = sample->ahead_us < 0 ? "behind" : "ahead of";
    enum rlock_grade grade = RLOCK_GRADE_GOOD;

    if (off_us > OFFSET_WEAK_US)
        grade = off_us > OFFSET_UNSAFE_US ? RLOCK_GRADE_UNSAFE : RLOCK_GRADE_WEAK;
    probe_tell(probe, "clock", grade,
               grade == RLOCK_GRADE_GOOD
                   ? NULL
                   : "keep both right by NTP: when the server's is set forward, leases end early",
               "the server's is %" PRId64 ".%03d s %s this machine's", off_us / SECOND_US,
               (int)(off_us % SECOND_US / 1000), way);
}

/* Both ran between the first sample and the last; how far apart can't be known better than so. */
static void tell_rate(struct probe *probe, const struct sample *first, const struct sample *last)
{
    int64_t ours_us = last->sent_us + last->took_us / 2 - (first->sent_us + first->took_us / 2);
    int64_t apart_us = last->server_us - first->server_us - ours_us;
    int64_t unsure_us = (last->took_us + first->took_us) / 2 + 1000;
    bool is_good = llabs(apart_us) <= unsure_us + ours_us / DRIFT_PART;

    probe_tell(probe, "clock rate", is_good ? RLOCK_GRADE_GOOD : RLOCK_GRADE_UNSAFE,
               is_good ? NULL : "let NTP slew clocks, never step them, and look at the machine",
               "the server's went %" PRId64 " ms in %" PRId64 " ms of this machine's",
               (last->server_us - first->server_us + 500) / 1000, (ours_us + 500) / 1000);
}

/* A single request that takes too long is asked again; half of them are too many. */
static void tell_round_trip(struct probe *probe, struct sample *samples)
{
    int64_t limit_us = probe->timing.reply_ms * 1000;
    enum rlock_grade grade = RLOCK_GRADE_GOOD;
    int64_t middle_us;
    int64_t worst_us;

    qsort(samples, SAMPLES, sizeof samples[0], by_length);
    middle_us = samples[SAMPLES / 2].took_us;
    worst_us = samples[SAMPLES - 1].took_us;
    if (middle_us > limit_us)
        grade = RLOCK_GRADE_UNSAFE;
    else if (middle_us > limit_us / 4 || worst_us > limit_us)
        grade = RLOCK_GRADE_WEAK;
    probe_tell(probe, "round trip", grade,
               grade == RLOCK_GRADE_GOOD ? NULL : "use a longer --ttl, or a server that is nearer",
               "%.1f ms, at worst %.1f ms; with a ttl of %" PRId64 " ms it may take %" PRId64 " ms",
               (double)middle_us / 1000, (double)worst_us / 1000, probe->timing.ttl_ms,
               probe->timing.reply_ms);
}

static enum rlock_status measure(struct probe *probe)
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
    tell_clock(probe, &samples[SAMPLES - 1]);
    tell_rate(probe, &samples[0], &samples[SAMPLES - 1]);
    tell_round_trip(probe, samples);
    return RLOCK_OK;
}

/* ---- rights ---- */

static void add_refusal(char *text, size_t room, const char *which, const char *why)
{
    size_t used = strlen(text);

    snprintf(text + used, room - used, "%s%.250s (%.200s)", used > 0 ? "; " : "", which, why);
}

/* A command that no script can try. RLOCK_OK also where it is denied: the text says so then. */
static enum rlock_status try_alone(struct probe *probe, const struct request *request,
                                   int64_t block_ms, const char *which, char *text, size_t room)
{
    const struct resp_value *reply = NULL;
    enum rlock_status st =
        quorum_ask_slowly(&probe->one, request, block_ms, probe->deadline, &reply, &probe->err);

    if (st == RLOCK_E_SERVER) /* it can't be told now, and a lock would say so */
        return RLOCK_OK;
    if (!probe_is_denied(probe, st))
        return st;
    /* Redis 5 wants whole seconds, and says so: it has nothing against us */
    if (probe->err.reason != RLOCK_REASON_WHOLE_SECONDS)
        add_refusal(text, room, which, probe->err.text);
    return RLOCK_OK;
}

/* What is asked beside scripts, and by which option each is needed. */
static enum rlock_status try_waiting(struct probe *probe, const struct owner *owner, char *text,
                                     size_t room)
{
    struct requests_params when = {.block_ms = 10};
    struct request request;
    enum rlock_status st;

    requests_wait(owner, &request, &when);
    st = try_alone(probe, &request, BLOCK_MS, "BLPOP for waiting", text, room);
    request_begin(&request, "ASKING");
    if (st == RLOCK_OK && probe->is_cluster)
        st = try_alone(probe, &request, 0, "ASKING for slots that move", text, room);
    if (st != RLOCK_OK || probe->one.replicas == 0)
        return st;
    request_begin(&request, "WAIT");
    request_add(&request, "0");
    request_add(&request, "1");
    return try_alone(probe, &request, 0, "WAIT for --replicas", text, room);
}

/* Places in the report of the script: commands or keys, and behind each the first complaint. */
enum { OF_ANY = 0, OF_WAITING = 2, OF_SEVERAL = 4, OF_LOOKING = 6, OF_KEYS = 8, OF_STATE = 10 };

#define REPORT_TEXTS 12

static bool is_report(const struct resp_value *reply)
{
    size_t n;
    size_t i;

    for (i = 0; i < REPORT_TEXTS; i++)
        if (resp_string(resp_array_at(reply, i), &n) == NULL)
            return false;
    return true;
}

static void add_refusals(char *text, size_t room, const struct resp_value *reply, size_t at,
                         const char *needed_for)
{
    size_t n;
    const char *which = resp_string(resp_array_at(reply, at), &n);
    char what[256];

    if (*which == '\0')
        return;
    snprintf(what, sizeof what, "%.180s%s", which, needed_for);
    add_refusal(text, room, what, resp_string(resp_array_at(reply, at + 1), &n));
}

/* The rule that opens all keys of a lock: that of its prefix, where its name has one. */
static void tell_key_rule(struct probe *probe, const char *found)
{
    const char *key = probe_key(probe);
    const char *colon = strrchr(key, ':');
    char change[200];

    if (colon != NULL)
        snprintf(change, sizeof change, "allow the user ~%.*s* ~{%.*s*",
                 (int)(colon - key < 60 ? colon - key + 1 : 60), key,
                 (int)(colon - key < 60 ? colon - key + 1 : 60), key);
    else
        snprintf(change, sizeof change, "allow the user ~%.60s ~{%.60s}:rlock:*", key, key);
    err_make_printable(change);
    if (probe->key == NULL)
        probe_tell(probe, "rights", RLOCK_GRADE_UNKNOWN, "name a lock of this user by -k KEY",
                   "not to the keys of %s", found);
    else
        probe_tell(probe, "rights", RLOCK_GRADE_UNSAFE, change, "not to the keys of %s", found);
}

struct rights {
    char needed[900];  /* commands that are missed */
    char looking[300]; /* the same, of those that only look */
    char keys[400];
    char state[300]; /* why the server writes nothing now */
};

static void read_report(struct rights *rights, const struct resp_value *reply)
{
    size_t n;

    add_refusals(rights->needed, sizeof rights->needed, reply, OF_ANY, "");
    add_refusals(rights->needed, sizeof rights->needed, reply, OF_WAITING,
                 " for waiting, -s, --slots and --protocol timestamp");
    add_refusals(rights->needed, sizeof rights->needed, reply, OF_SEVERAL, " for -s and --slots");
    add_refusals(rights->keys, sizeof rights->keys, reply, OF_KEYS, "");
    add_refusals(rights->looking, sizeof rights->looking, reply, OF_LOOKING, "");
    snprintf(rights->state, sizeof rights->state, "%s",
             resp_string(resp_array_at(reply, OF_STATE), &n));
}

static void tell_what_is_missing(struct probe *probe, const struct rights *rights)
{
    if (*rights->needed != '\0')
        probe_tell(probe, "rights", RLOCK_GRADE_UNSAFE,
                   "let the user do what rlock(1) says under Rights", "not all: %s",
                   rights->needed);
    else if (*rights->state != '\0')
        probe_tell(probe, "rights", RLOCK_GRADE_UNSAFE,
                   "mend that first: until then no lock can be had, nor all rights be tried",
                   "the server writes nothing now: %s", rights->state);
    else if (*rights->keys != '\0')
        tell_key_rule(probe, rights->keys);
    else if (*rights->looking != '\0')
        probe_tell(probe, "rights", RLOCK_GRADE_WEAK,
                   "allow these, too, to whoever shall use status, list or break",
                   "enough for locks, not to look at them: %s", rights->looking);
    else
        probe_tell(probe, "rights", RLOCK_GRADE_GOOD, NULL, "all that rlock uses, for %.60s",
                   probe_key(probe));
}

static enum rlock_status tell_rights(struct probe *probe)
{
    const char *key = probe_key(probe);
    struct rlock_config config = {.keys = &key, .n_keys = 1};
    const struct resp_value *reply = NULL;
    struct rights rights = {.needed = ""};
    struct request request;
    struct owner owner;
    enum rlock_status st;

    st = owner_open(&owner, &config, &probe->err);
    if (st != RLOCK_OK)
        goto out;
    script_request(&request, SCRIPT_RIGHTS, KEYS_PER_LOCK, false);
    keys_add(&owner.lock[0].keys, &request);
    request_add(&request, owner.token);
    st = probe_ask(probe, &request, &reply);
    if (st == RLOCK_OK && is_report(reply)) {
        read_report(&rights, reply);
        if (*rights.keys == '\0' && *rights.state == '\0')
            st = try_waiting(probe, &owner, rights.needed, sizeof rights.needed);
    } else if (st == RLOCK_OK) {
        st = err_set(&probe->err, RLOCK_E_PROTOCOL, 0, "reply: not what the script returns");
    } else if (probe_is_denied(probe,
                               st)) { /* EVAL is allowed, so it is the keys that are refused */
        add_refusal(rights.keys, sizeof rights.keys, key, probe->err.text);
        st = RLOCK_OK;
    } else if (st == RLOCK_E_SERVER) {
        snprintf(rights.state, sizeof rights.state, "%s", probe->err.text);
        st = RLOCK_OK;
    }
    if (st == RLOCK_OK)
        tell_what_is_missing(probe, &rights);
out:
    owner_close(&owner);
    return st;
}

/* ---- locks that will not end in time ---- */

struct odd_locks {
    size_t n;
    size_t n_late;
    size_t n_endless;
    size_t n_wrong; /* whose helper keys hold something else */
    char late[64];  /* the first of them */
    char endless[64];
    char wrong[200];
};

static void look_at_lock(void *context, const struct rlock_view *view)
{
    struct odd_locks *inconsistent = context;
    bool is_late = false;
    size_t i;

    for (i = 0; i < view->n_holders; i++) {
        const struct rlock_party *holder = &view->holders[i];
        int64_t left_ms = view->seen == RLOCK_SEEN_EXCLUSIVE ? view->left_ms : holder->left_ms;

        is_late = is_late || (holder->ttl_ms > 0 && left_ms > holder->ttl_ms + TTL_SLACK_MS);
    }
    inconsistent->n++;
    if (is_late && inconsistent->n_late++ == 0)
        snprintf(inconsistent->late, sizeof inconsistent->late, "%s", view->key);
    if (view->left_ms < 0 && inconsistent->n_endless++ == 0)
        snprintf(inconsistent->endless, sizeof inconsistent->endless, "%s", view->key);
    if (*view->wrong != '\0' && inconsistent->n_wrong++ == 0)
        snprintf(inconsistent->wrong, sizeof inconsistent->wrong, "%s", view->wrong);
}

static enum rlock_status tell_locks(struct probe *probe)
{
    struct rlock_deadline deadline = deadline_in(probe->deadline, LIST_MS);
    struct odd_locks inconsistent = {.n = 0};
    struct rlock_visitor visitor = {.on_lock = look_at_lock, .context = &inconsistent};
    enum rlock_status st = inspect_list(&probe->one, NULL, deadline, &visitor, &probe->err);
    bool is_cut = st != RLOCK_OK && st != RLOCK_STOPPED && deadline_has_passed(deadline);

    if (probe_is_denied(probe, st)) {
        probe_tell(probe, "locks", RLOCK_GRADE_UNKNOWN, "allow the user what list needs",
                   "they can't be looked at: %s", probe->err.text);
        return RLOCK_OK;
    }
    if (st != RLOCK_OK && !is_cut)
        return st;
    if (inconsistent.n_wrong > 0)
        probe_tell(probe, "locks", RLOCK_GRADE_UNSAFE,
                   "look at that key, and DEL it if no other program needs it",
                   "%zu of %zu can't be granted, as helper keys hold something else: %s",
                   inconsistent.n_wrong, inconsistent.n, inconsistent.wrong);
    else if (inconsistent.n_late > 0)
        probe_tell(probe, "locks", RLOCK_GRADE_UNSAFE,
                   "if its holder is gone, take it away by rlock break -k KEY",
                   "%zu of %zu last longer than their ttl, as after the server's clock was set "
                   "back; one is %s",
                   inconsistent.n_late, inconsistent.n, inconsistent.late);
    else if (inconsistent.n_endless > 0)
        probe_tell(probe, "locks", RLOCK_GRADE_WEAK,
                   "if its holder is gone, take it away by rlock break -k KEY",
                   "%zu of %zu never expire; one is %s", inconsistent.n_endless, inconsistent.n,
                   inconsistent.endless);
    else
        probe_tell(probe, "locks", RLOCK_GRADE_GOOD, NULL, "%zu%s, each ends in time",
                   inconsistent.n, is_cut ? " in the first 3 seconds" : "");
    return RLOCK_OK;
}

/* ---- all of it ---- */

static enum rlock_status examine(struct probe *probe)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;

    /* whoever may not do this may do nothing: the rest would only be harder to understand */
    script_request(&request, SCRIPT_TIME, 0, false);
    st = probe_ask(probe, &request, &reply);
    if (probe_is_denied(probe, st)) {
        probe_tell(probe, "rights", RLOCK_GRADE_UNSAFE,
                   "let the user do what rlock(1) says under Rights", "not even scripts: %s",
                   probe->err.text);
        return RLOCK_OK;
    }
    if (st == RLOCK_OK)
        st = condition_tell(probe);
    if (st == RLOCK_OK && !probe->is_replica)
        st = tell_rights(probe);
    else if (st == RLOCK_OK)
        probe_tell(probe, "rights", RLOCK_GRADE_UNKNOWN, "name the primary instead",
                   "they can be tried on a primary only");
    if (st == RLOCK_OK)
        st = measure(probe);
    return st == RLOCK_OK ? tell_locks(probe) : st;
}

/* One that isn't there makes locks no less safe as long as a majority is. */
static void tell_absent(struct probe *probe)
{
    probe_tell(probe, "member", RLOCK_GRADE_WEAK,
               "bring it back: each one that is missing is one less that may fail",
               "it can't be examined: %s", probe->err.text);
}

static void tell_together(const struct probe *probe, const struct quorum *quorum, size_t n_there,
                          size_t young)
{
    struct rlock_finding finding = {.server = "together",
                                    .check = "quorum",
                                    .grade = n_there < quorum->n || young > 0 ? RLOCK_GRADE_WEAK
                                                                              : RLOCK_GRADE_GOOD};
    char found[200];

    snprintf(
        found, sizeof found,
        "%zu of %zu members answer, %zu are needed; %zu count not yet; the list is known as %s",
        n_there, quorum->n, quorum->need, young, quorum->members_hash);
    finding.found = found;
    probe->examiner->on_finding(probe->examiner->context, &finding);
}

/* What the members are together; a server that stands alone is told of already. */
static enum rlock_status tell_quorum(struct probe *probe, struct quorum *quorum, size_t n_there)
{
    int64_t young_ms = 0;
    size_t young = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        probe->one = members_alone(quorum, &quorum->member[i], probe->pollfds);
        young_ms = members_uncounted_ms(quorum, probe->one.member);
        if (probe->one.member->state == RLOCK_OK && young_ms > 0) {
            young++;
            probe_tell(probe, "restart", RLOCK_GRADE_WEAK, "wait, and restart one at a time",
                       "so lately that it counts for no grant for %" PRId64 " ms yet", young_ms);
        }
    }
    if (n_there < quorum->need)
        return members_fault(quorum, &probe->err);
    if (quorum->n > 1)
        tell_together(probe, quorum, n_there, young);
    return members_check(quorum, &probe->err);
}

enum rlock_status doctor_examine(struct quorum *quorum, const char *key,
                                 struct rlock_deadline deadline,
                                 const struct rlock_examiner *examiner, struct rlock_error *err)
{
    struct probe probe = {
        .examiner = examiner, .key = key, .deadline = deadline, .timing = quorum->timing};
    enum rlock_status st = RLOCK_OK;
    size_t n_there = 0;
    size_t i;

    for (i = 0; st != RLOCK_STOPPED && i < quorum->n; i++) {
        probe.one = members_alone(quorum, &quorum->member[i], probe.pollfds);
        members_set_patience(&probe.one, quorum->connect_ms, PATIENCE_MS);
        probe.is_replica = false;
        st = examine(&probe);
        n_there += st == RLOCK_OK;
        member_set_outcome(probe.one.member, st, &probe.err);
        if (st >= RLOCK_E_USAGE && quorum->n > 1)
            tell_absent(&probe);
    }
    if (st != RLOCK_STOPPED)
        st = tell_quorum(&probe, quorum, n_there);
    if (err != NULL && st >= RLOCK_E_USAGE)
        *err = probe.err;
    return st;
}
