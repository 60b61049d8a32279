/* SPDX-License-Identifier: MIT */
/* member: one vote: a server, what it was asked last, and what its clock says. */
#include "member.h"

#include "err.h"
#include "refusal.h"

#include <stdio.h>
#include <string.h>

#define CLOCK_MAX_MS (INT64_C(1) << 53)
#define CLOCK_SLACK_MS 100 /* for a server clock that runs ahead a little between two answers */

enum rlock_status member_open(struct member *member, const char *url, const char *password,
                              struct rlock_error *err)
{
    enum rlock_status st;

    *member = (struct member){.state = RLOCK_OK};
    st = url_parse(&member->url, url, err);
    if (st == RLOCK_OK && member->url.user != NULL && member->url.password == NULL &&
        password == NULL) /* it would be the default user who locks */
        st = err_set(err, RLOCK_E_CONFIG, 0, "%s: a user, but no password", member->url.shown);
    node_init(&member->node, &member->url, password);
    return st;
}

void member_close(struct member *member)
{
    node_fini(&member->node);
    url_fini(&member->url);
}

/* A server may repeat what it was told: "unknown command AUTH, with args beginning with ...". */
static void hide(char *said, const char *password)
{
    if (password == NULL || *password == '\0')
        return;
    while ((said = strstr(said, password)) != NULL)
        memset(said, '*', strlen(password));
}

static enum rlock_status refused(struct member *member)
{
    const char *reply = reply_error(member->reply);
    char said[1024]; /* so much more than is shown that no password is shown in part */

    snprintf(said, sizeof said, "%s", reply);
    hide(said, member->node.password);
    member->node.asked_ms = 0; /* it was answered: nothing of it was executed */
    return refusal_meaning(reply, said, &member->err);
}

static void settle(struct member *member, enum rlock_status st)
{
    if (st == RLOCK_OK && reply_error(member->reply) != NULL) {
        st = refused(member);
        if (member->node.phase != NODE_READY)
            node_abandon(&member->node, NULL);
    }
    if (st != RLOCK_OK && st != RLOCK_PENDING) {
        err_prefix(&member->err, member->url.shown);
        /* our estimate of its clock may be what made the server refuse, or it is another by now */
        member->knows_clock = false;
    }
    member->state = st;
}

void member_ask(struct member *member, const struct request *request, int64_t connect_until_ms,
                int64_t reply_ms)
{
    member->reply = NULL;
    member->connect_until_ms = connect_until_ms;
    member->reply_ms = reply_ms;
    settle(member, node_ask(&member->node, request, connect_until_ms, &member->err));
}

void member_step(struct member *member)
{
    settle(member, node_step(&member->node, &member->reply, &member->err));
}

/* Where it hangs: a server that waits for something else than TLS says nothing either. */
static const char *what_is_late(const struct member *member)
{
    switch (member->node.phase) {
    case NODE_DIALING:
        return "connect: timed out";
    case NODE_SECURING:
        return "TLS: timed out; does the server speak TLS on this port?";
    case NODE_CLOSED:
    case NODE_GREETING:
    case NODE_READY:
        break;
    }
    return "no answer in time";
}

void member_abandon(struct member *member, const struct request *undo)
{
    err_set(&member->err, RLOCK_E_UNREACHABLE, 0, "%s", what_is_late(member));
    node_abandon(&member->node, undo);
    settle(member, RLOCK_E_UNREACHABLE);
}

int64_t member_wake_ms(const struct member *member)
{
    int64_t wake = node_wake_ms(&member->node);
    int64_t deadline = member_deadline_ms(member);

    return wake < deadline ? wake : deadline;
}

int64_t member_deadline_ms(const struct member *member)
{
    if (member->node.asked_ms == 0)
        return member->connect_until_ms;
    return member->node.asked_ms + member->reply_ms;
}

int64_t member_asked_ms(const struct member *member)
{
    return member->node.asked_ms;
}

void member_saw_clock(struct member *member, int64_t server_ms)
{
    /* what is no time of this age is no time to reckon with */
    member->knows_clock = server_ms > 0 && server_ms < CLOCK_MAX_MS;
    if (member->knows_clock)
        member->ahead_ms = server_ms - member->node.asked_ms;
}

int64_t member_server_ms(const struct member *member, int64_t local_ms)
{
    return member->knows_clock ? local_ms + member->ahead_ms + CLOCK_SLACK_MS : 0;
}
