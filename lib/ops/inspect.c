/* SPDX-License-Identifier: MIT */
/*
 * inspect: reads one lock with its waiters, breaks a lock, and visits the servers of a handle.
 *
 * inspect.lua returns the queue in pages, as a reply has at most 64 elements, which bounds its
 * memory. A page begins after a ticket, not at a place: if a waiter left the queue between two
 * pages, all places after it would move, and the next page would skip a waiter.
 */
#include "ops/inspect.h"

#include "base/clock.h"
#include "base/err.h"
#include "lock/keys.h"
#include "lock/replies.h"
#include "lock/scripts.h"
#include "lock/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS_PER_PAGE "28" /* a reply has up to 64 elements: 4 for the lock, 2 for each waiter */

/* ---- reading one lock ---- */

static void begin_request(struct request *request, enum script script, const struct lock_keys *keys)
{
    script_request(request, script, KEYS_PER_LOCK);
    keys_add(keys, request);
}

/* Begins a request for the lock with `count` waiters, whose tickets are greater than `after`. */
static void begin_inspect(struct request *request, const struct lock_keys *keys, const char *after,
                          const char *count)
{
    begin_request(request, SCRIPT_INSPECT, keys);
    request_add(request, after);
    request_add(request, count);
    request_add_format(request, "%d", VIEW_HOLDERS_MAX);
}

/*
 * Shows the waiters in a reply of inspect.lua. The reply has four elements for the lock {now, view,
 * name of the value, the last ticket of this page; "": it is the last page}, followed by the ticket
 * and the holder info of each waiter.
 */
static void show_waiters(const struct resp_value *reply, const struct rlock_visitor *visitor)
{
    int64_t now_ms = resp_int(resp_array_at(reply, 0));
    struct rlock_party waiter;
    const char *ticket;
    const char *info;
    size_t i;
    size_t n;

    for (i = 4; i + 1 < resp_array_count(reply); i += 2) {
        ticket = resp_string(resp_array_at(reply, i), &n);
        info = resp_string(resp_array_at(reply, i + 1), &n);
        if (ticket == NULL || info == NULL || visitor->on_waiter == NULL)
            continue;
        holder_info_parse(info, &waiter);
        waiter.since_ms = strtoll(ticket, NULL, 10) / 1000;
        if (waiter.since_ms < 0 || waiter.since_ms > VIEW_LEFT_MAX_MS)
            waiter.since_ms = 0;
        holder_info_set_times(&waiter, now_ms, -1);
        visitor->on_waiter(visitor->context, &waiter);
    }
}

/* Do two members report the same value of the key, and so the same holder? */
static bool is_same_value(const struct resp_value *one, const struct resp_value *other)
{
    size_t n;
    const char *name = resp_string(resp_array_at(one, 2), &n);
    const char *its_name = resp_string(resp_array_at(other, 2), &n);

    return name != NULL && its_name != NULL && strcmp(name, its_name) == 0;
}

static bool is_free(const struct resp_value *reply)
{
    const struct resp_value *view = resp_array_at(reply, 1);
    const struct resp_value *value = view == NULL ? NULL : resp_array_at(view, 0);

    return value != NULL && resp_is_nil(value);
}

/*
 * Ranks a member's view of the lock, which `n_alike` members share: a view of a majority ranks
 * highest, then a view with a holder, then a view of a free lock.
 */
static size_t weight_of(const struct quorum *quorum, const struct member *member, size_t n_alike)
{
    if (n_alike >= quorum->members.need)
        return n_alike + 2 * quorum->members.n;
    return is_free(member->reply) ? n_alike : n_alike + quorum->members.n;
}

/* Chooses the member whose view is shown. `*n_alike` becomes how many members share that view. */
static size_t choose_member(const struct quorum *quorum, size_t *n_alike)
{
    size_t chosen = quorum->members.n;
    size_t most = 0;
    size_t alike;
    size_t i;
    size_t j;

    for (i = 0; i < quorum->members.n; i++) {
        const struct member *member = &quorum->members.member[i];

        if (member->state != RLOCK_OK)
            continue;
        for (alike = 0, j = 0; j < quorum->members.n; j++)
            alike += quorum->members.member[j].state == RLOCK_OK &&
                     is_same_value(member->reply, quorum->members.member[j].reply);
        if (chosen < quorum->members.n && weight_of(quorum, member, alike) <= most)
            continue;
        most = weight_of(quorum, member, alike);
        *n_alike = alike;
        chosen = i;
    }
    return chosen;
}

/* Fills in a view from a reply of inspect.lua, from which it borrows. */
static enum rlock_status read_view(const struct resp_value *reply, struct rlock_view *view,
                                   struct rlock_party *holders, struct rlock_error *err)
{
    size_t n;

    view->name = resp_string(resp_array_at(reply, 2), &n);
    if (view->name == NULL)
        return reply_unexpected_script(err);
    return view_parse(resp_array_at(reply, 1), resp_int(resp_array_at(reply, 0)), view, holders,
                      err);
}

enum rlock_status inspect_read(struct quorum *one, const struct lock_keys *keys, bool stays,
                               struct inspected *lock, struct rlock_deadline deadline,
                               struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;

    lock->view = (struct rlock_view){.key = keys->name[KEY_LOCK], .n_members = 1, .n_alike = 1};
    if (one->without_scripts) {
        commands_begin_read(&lock->commands, keys, stays);
        st = quorum_do(one, &lock->commands, deadline, err);
        if (st == RLOCK_OK)
            view_of_commands(&lock->commands, &lock->view, lock->holders);
        return st;
    }
    begin_inspect(&request, keys, "", "1");
    request_stay(&request);
    st = quorum_ask(one, &request, deadline, &reply, err);
    return st == RLOCK_OK ? read_view(reply, &lock->view, lock->holders, err) : st;
}

static void show(const struct rlock_visitor *visitor, const struct rlock_view *view)
{
    if (visitor->on_lock != NULL)
        visitor->on_lock(visitor->context, view);
}

/*
 * Shows the lock and its waiters, page by page: the view that most members share, and the waiters
 * of one of these members.
 */
static enum rlock_status show_by_scripts(struct quorum *quorum, const struct lock_keys *keys,
                                         struct rlock_deadline deadline,
                                         const struct rlock_visitor *visitor,
                                         struct rlock_error *err)
{
    struct rlock_view view = {.key = keys->name[KEY_LOCK], .n_members = quorum->members.n};
    struct rlock_party holders[VIEW_HOLDERS_MAX];
    const struct resp_value *reply = NULL;
    enum rlock_status st = RLOCK_OK;
    const char *next = "";
    size_t chosen = 0;
    struct request request;
    char after[64] = "";
    size_t n;

    for (bool first = true; st == RLOCK_OK && (first || after[0] != '\0'); first = false) {
        begin_inspect(&request, keys, after, WAITERS_PER_PAGE);
        st = quorum_ask(quorum, &request, deadline, &reply, err);
        if (st != RLOCK_OK)
            break;
        if (first)
            chosen = choose_member(quorum, &view.n_alike);
        if (quorum->members.member[chosen].state != RLOCK_OK)
            break; /* the chosen member failed, and only this member knows the rest of its queue */
        reply = quorum->members.member[chosen].reply;
        next = resp_string(resp_array_at(reply, 3), &n);
        if (next == NULL || n >= sizeof after)
            st = reply_unexpected_script(err);
        if (st == RLOCK_OK && first)
            st = read_view(reply, &view, holders, err);
        if (st != RLOCK_OK)
            break;
        if (first)
            show(visitor, &view);
        show_waiters(reply, visitor);
        memcpy(after, next, n + 1);
    }
    return st;
}

enum rlock_status inspect_lock(struct quorum *quorum, const char *key,
                               struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                               struct rlock_error *err)
{
    struct inspected lock;
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, err);

    if (st == RLOCK_OK && !quorum->without_scripts) {
        st = show_by_scripts(quorum, &keys, deadline, visitor, err);
    } else if (st == RLOCK_OK) {
        st = inspect_read(quorum, &keys, false, &lock, deadline, err);
        if (st == RLOCK_OK)
            show(visitor, &lock.view);
    }
    keys_fini(&keys);
    return st;
}

/* ---- breaking a lock ---- */

/*
 * Counts what the break returned on each member. Returns RLOCK_BUSY if a majority has another value
 * by now, as the holders that we saw have lost the lock then; else RLOCK_OK if any member has
 * removed the value, and RLOCK_GONE if none had it; or RLOCK_E_PROTOCOL.
 */
static enum rlock_status read_break(const struct quorum *quorum, struct rlock_error *err)
{
    size_t broken = 0;
    size_t others = 0;
    size_t i;

    for (i = 0; i < quorum->members.n; i++) {
        const struct member *member = &quorum->members.member[i];
        enum reply_code code = member->answer.code;

        if (member->state != RLOCK_OK)
            continue;
        if (!quorum->without_scripts && reply_parse_break(member->reply, &code, err) != RLOCK_OK)
            return RLOCK_E_PROTOCOL;
        broken += code == REPLY_OK;
        others += code == REPLY_HELD;
    }
    if (others >= quorum->members.need)
        return RLOCK_BUSY;
    return broken > 0 ? RLOCK_OK : RLOCK_GONE;
}

static enum rlock_status break_by_commands(struct quorum *quorum, const struct lock_keys *keys,
                                           const char *name, const char *info,
                                           struct rlock_deadline deadline, struct rlock_error *err)
{
    struct commands commands;
    enum rlock_status st;

    commands_begin_break(&commands, keys, name, info);
    st = quorum_do(quorum, &commands, deadline, err);
    commands_end(&commands);
    return st;
}

static enum rlock_status break_by_script(struct quorum *quorum, const struct lock_keys *keys,
                                         const char *name, const char *info,
                                         struct rlock_deadline deadline, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct request request;

    begin_request(&request, SCRIPT_BREAK, keys);
    request_add(&request, name);
    request_add(&request, info);
    return quorum_ask(quorum, &request, deadline, &reply, err);
}

enum rlock_status inspect_break(struct quorum *quorum, const char *key, const char *name,
                                const char *info, struct rlock_deadline deadline,
                                struct rlock_error *err)
{
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, err);

    if (st == RLOCK_OK) {
        st = quorum->without_scripts ? break_by_commands(quorum, &keys, name, info, deadline, err)
                                     : break_by_script(quorum, &keys, name, info, deadline, err);
        if (st >= RLOCK_E_USAGE && quorum_is_unanswered(quorum))
            err_suffix(err, "the lock may have been broken");
    }
    keys_fini(&keys);
    return st == RLOCK_OK ? read_break(quorum, err) : st;
}

/* ---- visiting the primaries of a Cluster ---- */

/*
 * Sends a request. Sets `*reply` to NULL, and returns RLOCK_OK, if the server denies this user the
 * command, or doesn't know it.
 */
static enum rlock_status ask_optional(struct quorum *quorum, const struct request *request,
                                      struct rlock_deadline deadline,
                                      const struct resp_value **reply, struct rlock_error *err)
{
    struct rlock_error fault;
    enum rlock_status st = quorum_ask(quorum, request, deadline, reply, &fault);

    if (st == RLOCK_E_UNSUPPORTED ||
        (st == RLOCK_E_REFUSED && member_is_logged_in(&quorum->members.member[0]))) {
        *reply = NULL;
        return RLOCK_OK;
    }
    if (st >= RLOCK_E_USAGE && err != NULL)
        *err = fault;
    return st;
}

enum rlock_status inspect_mode(struct quorum *quorum, struct rlock_deadline deadline, char *mode,
                               size_t room, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    const char *name;
    const char *value;
    struct request request;
    enum rlock_status st;
    size_t i;
    size_t n;

    mode[0] = '\0';
    request_begin(&request, "HELLO");
    st = ask_optional(quorum, &request, deadline, &reply, err);
    for (i = 0; st == RLOCK_OK && reply != NULL && i + 1 < resp_array_count(reply); i += 2) {
        name = resp_string(resp_array_at(reply, i), &n);
        value = resp_string(resp_array_at(reply, i + 1), &n);
        if (name != NULL && value != NULL && strcmp(name, "mode") == 0)
            snprintf(mode, room, "%s", value);
    }
    return st;
}

/*
 * Asks CLUSTER SLOTS which kind of address the Cluster announces for its nodes: an IP address, a
 * host name, or none. If the server denies the command, or if the reply is too long because of many
 * slot ranges, `*endpoint` stays as it is, and the caller tries all addresses of CLUSTER NODES.
 */
static enum rlock_status ask_for_endpoint(struct quorum *quorum, struct rlock_deadline deadline,
                                          enum cluster_endpoint *endpoint, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    struct request request;
    enum rlock_status st;

    request_begin(&request, "CLUSTER");
    request_add(&request, "SLOTS");
    st = ask_optional(quorum, &request, deadline, &reply, err);
    if (st == RLOCK_OK && reply != NULL)
        *endpoint = cluster_endpoint(reply);
    return st == RLOCK_E_PROTOCOL ? RLOCK_OK : st;
}

/*
 * Fetches the reply to CLUSTER NODES into `*nodes`, which the caller frees. `*nodes` stays NULL if
 * the server is in no Cluster, or denies the command.
 */
static enum rlock_status ask_for_nodes(struct quorum *quorum, struct rlock_deadline deadline,
                                       char **nodes, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    const char *text;
    struct request request;
    char mode[20];
    enum rlock_status st;
    size_t n;

    if (quorum->members.n != 1 || quorum->members.member[0].url.kind == URL_SENTINEL)
        return RLOCK_OK;
    st = inspect_mode(quorum, deadline, mode, sizeof mode, err);
    if (st != RLOCK_OK || (*mode != '\0' && strcmp(mode, "cluster") != 0))
        return st;
    request_begin(&request, "CLUSTER");
    request_add(&request, "NODES");
    st = ask_optional(quorum, &request, deadline, &reply, err);
    text = st == RLOCK_OK && reply != NULL ? resp_string(reply, &n) : NULL;
    *nodes = text != NULL ? strdup(text) : NULL;
    return text != NULL && *nodes == NULL ? err_set(err, RLOCK_E_MEMORY, 0, "no memory") : st;
}

/* Visits the server of one member; if the member is a Cluster, all its primaries. */
static enum rlock_status visit_member(struct quorum *quorum, inspect_visit *visit,
                                      const void *context, struct rlock_deadline deadline,
                                      struct rlock_error *err)
{
    enum cluster_endpoint endpoint = CLUSTER_BY_ANY;
    struct url by = {.host = NULL};
    struct url primary;
    char *nodes = NULL;
    const char *rest;
    size_t n = 0;
    enum rlock_status st = ask_for_nodes(quorum, deadline, &nodes, err);

    if (st == RLOCK_OK && nodes != NULL)
        st = ask_for_endpoint(quorum, deadline, &endpoint, err);
    if (st == RLOCK_OK && nodes != NULL)
        st = url_copy(&by, member_primary_url(&quorum->members.member[0]), err);
    rest = nodes != NULL ? nodes : "";
    for (; st == RLOCK_OK && cluster_next_primary(&rest, &by, endpoint, &primary); n++) {
        member_visit(&quorum->members.member[0], &primary);
        st = visit(quorum, context, deadline, err);
    }
    if (st == RLOCK_OK && n == 0)
        st = visit(quorum, context, deadline, err);
    url_fini(&by);
    free(nodes);
    return st;
}

enum rlock_status inspect_each_server(struct quorum *quorum, inspect_visit *visit,
                                      const void *context, struct rlock_deadline deadline,
                                      struct rlock_error *err)
{
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX];
    struct rlock_error fault = {.status = RLOCK_OK};
    enum rlock_status st;
    size_t visited = 0;
    size_t i;

    for (i = 0; i < quorum->members.n; i++) {
        struct quorum one = quorum_alone(quorum, &quorum->members.member[i], pollfds);

        st = visit_member(&one, visit, context, deadline, &fault);
        if (st == RLOCK_STOPPED)
            return RLOCK_STOPPED;
        member_set_outcome(&quorum->members.member[i], st, &fault);
        visited += st == RLOCK_OK;
    }
    return visited >= quorum->members.need ? members_check(&quorum->members, err)
                                           : members_fault(&quorum->members, err);
}
