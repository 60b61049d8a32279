/* SPDX-License-Identifier: MIT */
/* probes: sends requests to the server under examination, and reports findings about it. */
#include "doctor/probes.h"

#include "base/err.h"
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_KEY "rlock-doctor"
#define REPLY_MAX_MS 5000 /* longer than any lease's reply_ms, to measure how slow a server is */

void probe_init(struct probe *probe, const struct quorum *quorum, const char *key,
                bool keeps_history, const char *needs_scripts, struct rlock_deadline deadline,
                const struct rlock_examiner *examiner)
{
    *probe = (struct probe){.examiner = examiner,
                            .key = key,
                            .deadline = deadline,
                            .timing = quorum->timing,
                            .keeps_history = keeps_history,
                            .needs_scripts = needs_scripts};
}

void probe_select(struct probe *probe, const struct quorum *quorum, struct member *member)
{
    probe->one = quorum_alone(quorum, member, probe->pollfds);
    quorum_set_patience(&probe->one, quorum->members.connect_ms, REPLY_MAX_MS);
    probe->is_replica = false;
    probe->is_cluster = false;
    probe->wrong_type[0] = '\0';
    probe->scripts = PROBE_SCRIPTS_UNTRIED;
}

const char *probe_key(const struct probe *probe)
{
    return probe->key != NULL ? probe->key : DEFAULT_KEY;
}

void probe_report(struct probe *probe, const char *check, enum rlock_grade grade,
                  const char *change, const char *format, ...)
{
    struct rlock_finding finding = {.server = probe->one.members.member->url.shown,
                                    .check = check,
                                    .grade = grade,
                                    .change = change};
    char found[600];
    va_list args;

    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    err_make_printable(found);
    finding.found = found;
    probe->examiner->on_finding(probe->examiner->context, &finding);
}

bool probe_is_denied(const struct probe *probe, enum rlock_status st)
{
    return st == RLOCK_E_UNSUPPORTED ||
           (st == RLOCK_E_REFUSED && member_is_logged_in(probe->one.members.member) &&
            !reason_is_login(probe->err.reason));
}

const char *probe_last_words(const struct probe *probe)
{
    return probe->err.text + probe->err.said;
}

enum rlock_status probe_ask(struct probe *probe, const struct request *request,
                            const struct resp_value **reply)
{
    return quorum_ask(&probe->one, request, probe->deadline, reply, &probe->err);
}

enum rlock_status probe_fetch_text(struct probe *probe, const struct request *request, char **text)
{
    const struct resp_value *reply = NULL;
    enum rlock_status st = probe_ask(probe, request, &reply);
    const char *string;
    size_t n;

    *text = NULL;
    if (st != RLOCK_OK)
        return probe_is_denied(probe, st) ? RLOCK_OK : st;
    string = resp_string(reply, &n);
    if (string == NULL)
        return reply_unexpected_command(&probe->err);
    *text = strdup(string);
    return *text == NULL ? err_set(&probe->err, RLOCK_E_MEMORY, 0, "no memory") : RLOCK_OK;
}

enum rlock_status probe_setting(struct probe *probe, const char *name, char *out, size_t room)
{
    const struct resp_value *reply = NULL;
    const char *value;
    struct request request;
    enum rlock_status st;
    size_t n;

    out[0] = '\0';
    request_begin(&request, "CONFIG");
    request_add(&request, "GET");
    request_add(&request, name);
    st = probe_ask(probe, &request, &reply);
    if (st != RLOCK_OK)
        return probe_is_denied(probe, st) ? RLOCK_OK : st;
    value = resp_string(resp_array_at(reply, 1), &n);
    snprintf(out, room, "%s", value == NULL ? "" : value);
    return RLOCK_OK;
}
