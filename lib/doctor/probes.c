/* SPDX-License-Identifier: MIT */
/* probes: one server under examination: what it is asked, and what is told of it. */
#include "doctor/probes.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OUR_KEY "rlock-doctor"

const char *checkup_key(const struct checkup *checkup)
{
    return checkup->key != NULL ? checkup->key : OUR_KEY;
}

void checkup_tell(struct checkup *checkup, const char *check, enum rlock_grade grade,
                  const char *change, const char *format, ...)
{
    struct rlock_finding finding = {
        .server = checkup->one.member->url.shown, .check = check, .grade = grade, .change = change};
    char found[600];
    va_list args;

    va_start(args, format);
    vsnprintf(found, sizeof found, format, args);
    va_end(args);
    err_printable(found);
    finding.found = found;
    checkup->examiner->see(checkup->examiner->context, &finding);
}

bool checkup_is_denied(const struct checkup *checkup, enum rlock_status st)
{
    return st == RLOCK_E_UNSUPPORTED ||
           (st == RLOCK_E_REFUSED && node_stands(&checkup->one.member->home->node) &&
            strstr(checkup->err.text, "NOAUTH") == NULL);
}

enum rlock_status checkup_ask(struct checkup *checkup, const struct request *request,
                              const struct reply **reply)
{
    return quorum_ask(&checkup->one, request, checkup->until, reply, &checkup->err);
}

enum rlock_status checkup_setting(struct checkup *checkup, const char *name, char *out, size_t room)
{
    const struct reply *reply = NULL;
    const char *value;
    struct request request;
    enum rlock_status st;
    size_t n;

    out[0] = '\0';
    request_begin(&request, "CONFIG");
    request_add(&request, "GET");
    request_add(&request, name);
    st = checkup_ask(checkup, &request, &reply);
    if (st != RLOCK_OK)
        return checkup_is_denied(checkup, st) ? RLOCK_OK : st;
    value = reply_text(reply_at(reply, 1), &n);
    snprintf(out, room, "%s", value == NULL ? "" : value);
    return RLOCK_OK;
}
