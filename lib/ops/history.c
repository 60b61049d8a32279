/* SPDX-License-Identifier: MIT */
/*
 * history: reads what the servers have noted about the holds of a lock.
 *
 * The server's list has an entry for each grant, end and break (lib/lua/shared/history.lua). This
 * file joins those with the same token into holds. In a quorum each member has a list of its own:
 * two holds are the same if they have the same token and fence.
 */
#include "ops/history.h"

#include "base/err.h"
#include "lock/holder_info.h"
#include "lock/keys.h"
#include "lock/replies.h"
#include "lock/scripts.h"
#include "ops/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_PER_PAGE \
    "50" /* a reply has up to 64 elements: 6 for the lock, one for each entry */
#define FIRST_ENTRY 6
#define ID_BYTES 13 /* the first 12 digits of a token, and a NUL */

/* What the entries that were read so far tell of a hold. */
struct noted_hold {
    struct rlock_hold hold;
    char id[ID_BYTES];
    bool is_open;     /* no entry has told its end yet */
    bool is_shared;   /* others may hold the lock at the same time */
    unsigned members; /* one bit for each member that knows the hold */
};

/* The holds of one lock, in the order of their grants. */
struct noted_list {
    struct noted_hold *noted;
    size_t n;
    size_t room;
};

/* The state of a lock on one server, from the first page of history.lua. */
struct lock_state {
    int64_t now_ms;
    uint64_t fence;
    int64_t fence_left_ms;
    char *holders; /* on the heap: starts of the holders' tokens, with commas between; "*": the
                      newest grant holds the lock, whatever its token is */
};

/* ---- joining the entries of one member into holds ---- */

/* Returns a new hold at the end of the list; NULL: no memory. */
static struct noted_hold *append(struct noted_list *list, const char *id)
{
    size_t room = list->room > 0 ? list->room * 2 : 16;
    struct noted_hold *noted = list->noted;

    if (list->n == list->room) {
        noted = realloc(noted, room * sizeof *noted);
        if (noted == NULL)
            return NULL;
        list->noted = noted;
        list->room = room;
    }
    noted = &list->noted[list->n++];
    *noted = (struct noted_hold){.hold = {.holder = {.slot = -1, .renewed_ms = -1},
                                          .waited_ms = -1,
                                          .held_ms = -1,
                                          .renewals = -1,
                                          .status = -1}};
    snprintf(noted->id, sizeof noted->id, "%s", id);
    return noted;
}

/*
 * Returns the newest hold of the token `id` ("": of any token); if `is_open`, the newest hold
 * without an end. NULL: the list has no such hold.
 */
static struct noted_hold *find(const struct noted_list *list, const char *id, bool is_open)
{
    size_t i;

    for (i = list->n; i > 0; i--)
        if ((*id == '\0' || strcmp(list->noted[i - 1].id, id) == 0) &&
            (list->noted[i - 1].is_open || !is_open))
            return &list->noted[i - 1];
    return NULL;
}

/*
 * If the token holds the lock already, this grant replaces the earlier one: the owner has asked
 * again, as the reply was lost, or a quorum has chosen a greater fence.
 */
static enum rlock_status add_grant(struct noted_list *list, int64_t at_ms, const char *text,
                                   char *ids)
{
    struct noted_hold *noted = find(list, ids, true);

    (void)at_ms;
    if (noted == NULL)
        noted = append(list, ids);
    if (noted == NULL)
        return RLOCK_E_MEMORY;
    noted->is_open = true;
    noted->is_shared = holder_info_has(text, "shared", "1");
    noted->hold.fence = (uint64_t)holder_info_number(text, "fence", 0);
    noted->hold.waited_ms = holder_info_number(text, "waited", -1);
    holder_info_parse(text, &noted->hold.holder);
    return RLOCK_OK;
}

/* Parses who has released or broken a lock: by.text becomes "root@vm, pid 123: LABEL". */
static void parse_by(const char *text, struct rlock_party *by)
{
    holder_info_parse(text, by);
    holder_info_put_user(by->text, sizeof by->text, by);
}

static bool is_same_fence(uint64_t one, uint64_t other)
{
    return one == other || one == 0 || other == 0;
}

/*
 * Notes the end of a hold. A second entry for the same hold changes nothing: a release that was
 * sent again has noted it after the next owner's grant. If the server has removed the entry of the
 * grant, adds a hold of which only the end is known.
 */
static enum rlock_status add_end(struct noted_list *list, int64_t at_ms, const char *text,
                                 char *ids)
{
    uint64_t fence = (uint64_t)holder_info_number(text, "fence", 0);
    bool has_by = holder_info_has(text, "by", "1");
    struct noted_hold *noted = find(list, ids, false);
    struct rlock_hold *hold;

    if (noted != NULL && !is_same_fence(noted->hold.fence, fence))
        noted = NULL;
    if (noted != NULL && !noted->is_open)
        return RLOCK_OK;
    if (noted == NULL)
        noted = append(list, ids);
    if (noted == NULL)
        return RLOCK_E_MEMORY;
    noted->is_open = false;
    hold = &noted->hold;
    hold->end = holder_info_has(text, "missing", "1") ? RLOCK_HOLD_LOST
                : has_by                              ? RLOCK_HOLD_RELEASED
                                                      : RLOCK_HOLD_ENDED;
    if (hold->fence == 0)
        hold->fence = fence;
    hold->ended_ms = hold->alive_ms = at_ms;
    hold->held_ms = holder_info_number(text, "held", -1);
    hold->renewals = holder_info_number(text, "renewals", -1);
    hold->status = (int)holder_info_number(text, "status", -1);
    holder_info_word(text, "reason", hold->reason, sizeof hold->reason);
    if (has_by)
        parse_by(text, &hold->by);
    return RLOCK_OK;
}

static enum rlock_status add_break(struct noted_list *list, int64_t at_ms, const char *text,
                                   char *ids)
{
    char *id;

    while ((id = strsep(&ids, ",")) != NULL) {
        struct noted_hold *noted = find(list, id, true);

        if (noted == NULL)
            noted = append(list, id);
        if (noted == NULL)
            return RLOCK_E_MEMORY;
        noted->is_open = false;
        noted->hold.end = RLOCK_HOLD_BROKEN;
        noted->hold.ended_ms = noted->hold.alive_ms = at_ms;
        parse_by(text, &noted->hold.by);
    }
    return RLOCK_OK;
}

/*
 * Adds an entry, "MS FIELD WORDS" (see lib/lua/shared/history.lua). Skips one that this version of
 * rlock doesn't know.
 */
static enum rlock_status add_entry(struct noted_list *list, const char *entry,
                                   struct rlock_error *err)
{
    static const struct {
        char field[9];
        enum rlock_status (*add)(struct noted_list *, int64_t, const char *, char *);
    } fields[] = {{" grant ", add_grant}, {" end ", add_end}, {" break ", add_break}};
    enum rlock_status st = RLOCK_OK;
    char ids[1300];
    char *field;
    int64_t at_ms = strtoll(entry, &field, 10);
    const char *text = *field == ' ' ? strchr(field + 1, ' ') : NULL;
    size_t i;

    if (text == NULL)
        return reply_unexpected_script(err);
    text++;
    holder_info_word(text, "token", ids, sizeof ids);
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strncmp(field, fields[i].field, strlen(fields[i].field)) == 0)
            st = fields[i].add(list, at_ms, text, ids);
    return st == RLOCK_OK ? st : err_set(err, st, 0, "no memory");
}

/* ---- finding out how holds without an end ended ---- */

/*
 * Does the token of `noted` hold the lock now? `state->holders` and `noted->id` have the first 12
 * digits of tokens; an `id` of another length isn't rlock's. "*": the newest grant holds the lock.
 */
static bool is_holding(const struct lock_state *state, const struct noted_hold *noted,
                       bool is_newest)
{
    const char *at = strstr(state->holders, noted->id);

    if (strcmp(state->holders, "*") == 0)
        return is_newest;
    return at != NULL && strlen(noted->id) == ID_BYTES - 1;
}

/*
 * Returns when the server executed the last renewal of this hold, or else the grant. Each grant and
 * each renewal sets the expiry of the fence's key, so the time until that expiry tells when it was.
 * Once the server has granted the lock again, or lost the key, returns the time of the grant.
 */
static int64_t last_renewal_ms(const struct lock_state *state, const struct rlock_hold *hold)
{
    int64_t ttl_ms = hold->holder.ttl_ms;
    int64_t at_ms = state->now_ms + state->fence_left_ms - keys_fence_life_ms(ttl_ms);

    return state->fence == hold->fence && state->fence_left_ms > 0 && at_ms <= state->now_ms &&
                   at_ms > hold->holder.since_ms
               ? at_ms
               : hold->holder.since_ms;
}

/*
 * For each hold without an end in the history, finds out whether the hold lasts. A hold that
 * doesn't last ended between alive_ms, its last known renewal, and ended_ms: the present, or, if
 * sooner, the next grant of an exclusive lock, or the end of the last lease if the server still
 * tells that end.
 */
static void close_open(struct noted_list *list, const struct lock_state *state)
{
    int64_t next_ms = state->now_ms;
    bool is_newest = true;
    size_t i;

    for (i = list->n; i > 0; i--) {
        struct noted_hold *noted = &list->noted[i - 1];
        struct rlock_hold *hold = &noted->hold;

        if (noted->is_open && is_holding(state, noted, is_newest)) {
            hold->end = RLOCK_HOLD_NOW;
            hold->held_ms = state->now_ms - hold->holder.since_ms;
        } else if (noted->is_open) {
            bool is_last = state->fence == hold->fence && state->fence_left_ms > 0;

            hold->end = RLOCK_HOLD_VANISHED;
            hold->alive_ms = last_renewal_ms(state, hold);
            hold->ended_ms = noted->is_shared ? state->now_ms : next_ms;
            if (is_last && hold->alive_ms + hold->holder.ttl_ms < hold->ended_ms)
                hold->ended_ms = hold->alive_ms + hold->holder.ttl_ms;
        }
        if (hold->holder.since_ms > 0) {
            next_ms = hold->holder.since_ms;
            is_newest = false;
        }
        if (hold->held_ms < 0 && hold->end != RLOCK_HOLD_VANISHED && hold->holder.since_ms > 0)
            hold->held_ms = hold->ended_ms - hold->holder.since_ms;
    }
}

/* ---- reading the history of one member ---- */

static const char *text_at(const struct resp_value *reply, size_t i)
{
    size_t n;

    return resp_string(resp_array_at(reply, i), &n);
}

static bool is_page(const struct resp_value *reply)
{
    return resp_array_count(reply) >= FIRST_ENTRY && resp_is_int(resp_array_at(reply, 0)) &&
           text_at(reply, 1) != NULL && text_at(reply, 2) != NULL && text_at(reply, 3) != NULL &&
           resp_is_int(resp_array_at(reply, 4)) && text_at(reply, 5) != NULL;
}

static enum rlock_status read_state(const struct resp_value *reply, struct lock_state *state,
                                    struct rlock_error *err)
{
    state->now_ms = resp_int(resp_array_at(reply, 0));
    state->fence = strtoull(text_at(reply, 3), NULL, 10);
    state->fence_left_ms = resp_int(resp_array_at(reply, 4));
    free(state->holders);
    state->holders = strdup(text_at(reply, 5));
    return state->holders != NULL ? RLOCK_OK : err_set(err, RLOCK_E_MEMORY, 0, "no memory");
}

/* Reads all entries of one server. `one` is a quorum of this server alone. */
static enum rlock_status read_member(struct quorum *one, const struct lock_keys *keys,
                                     struct rlock_deadline deadline, struct noted_list *list,
                                     struct lock_state *state, struct rlock_error *err)
{
    const struct resp_value *reply = NULL;
    enum rlock_status st = RLOCK_OK;
    struct request request;
    char start[48] = "0";
    size_t i;

    while (st == RLOCK_OK && *start != '\0') {
        script_request(&request, SCRIPT_HISTORY, KEYS_PER_LOCK);
        keys_add(keys, &request);
        request_add(&request, start);
        request_add(&request, ENTRIES_PER_PAGE);
        st = quorum_ask(one, &request, deadline, &reply, err);
        if (st == RLOCK_OK && (!is_page(reply) || strlen(text_at(reply, 1)) >= sizeof start))
            return reply_unexpected_script(err);
        if (st == RLOCK_OK && *text_at(reply, 2) != '\0')
            return err_set(err, RLOCK_E_REFUSED, 0, "history: %.250s", text_at(reply, 2));
        if (st == RLOCK_OK)
            st = read_state(reply, state, err);
        for (i = FIRST_ENTRY; st == RLOCK_OK && i < resp_array_count(reply); i++)
            st = text_at(reply, i) != NULL ? add_entry(list, text_at(reply, i), err)
                                           : reply_unexpected_script(err);
        if (st == RLOCK_OK)
            snprintf(start, sizeof start, "%s", text_at(reply, 1));
    }
    if (st == RLOCK_OK)
        close_open(list, state);
    return st;
}

/* ---- joining the holds of all members of a quorum ---- */

/* Ranks the ends of a hold: if two members tell different ends, join() takes the higher one. */
static int rank_of(enum rlock_hold_end end)
{
    static const int ranks[] = {
        [RLOCK_HOLD_NOW] = 1,    [RLOCK_HOLD_ENDED] = 3, [RLOCK_HOLD_RELEASED] = 3,
        [RLOCK_HOLD_BROKEN] = 4, [RLOCK_HOLD_LOST] = 2,  [RLOCK_HOLD_VANISHED] = 0,
    };

    return ranks[end];
}

/* Merges `other`, another member's entry for the same hold, into `noted`. */
static void join(struct noted_hold *noted, const struct noted_hold *other)
{
    struct rlock_hold *hold = &noted->hold;
    struct rlock_hold kept = *hold;

    if (rank_of(other->hold.end) > rank_of(hold->end))
        *hold = other->hold;
    if (hold->holder.since_ms == 0)
        hold->holder = kept.holder.since_ms != 0 ? kept.holder : other->hold.holder;
    if (hold->waited_ms < 0)
        hold->waited_ms = kept.waited_ms >= 0 ? kept.waited_ms : other->hold.waited_ms;
    if (hold->end == RLOCK_HOLD_VANISHED && other->hold.alive_ms > hold->alive_ms)
        hold->alive_ms = other->hold.alive_ms;
    if (hold->end == RLOCK_HOLD_VANISHED && other->hold.ended_ms > hold->ended_ms)
        hold->ended_ms = other->hold.ended_ms;
    noted->members |= other->members;
}

static enum rlock_status merge(struct noted_list *all, const struct noted_list *list, size_t member,
                               struct rlock_error *err)
{
    struct noted_hold *into;
    struct noted_hold other;
    size_t i;
    size_t j;

    for (i = 0; i < list->n; i++) {
        other = list->noted[i];
        other.members = 1U << member;
        into = NULL;
        for (j = 0; j < all->n && into == NULL; j++)
            if (strcmp(all->noted[j].id, other.id) == 0 &&
                (all->noted[j].members & other.members) == 0 &&
                is_same_fence(all->noted[j].hold.fence, other.hold.fence))
                into = &all->noted[j];
        if (into != NULL) {
            join(into, &other);
            continue;
        }
        into = append(all, other.id);
        if (into == NULL)
            return err_set(err, RLOCK_E_MEMORY, 0, "no memory");
        *into = other;
    }
    return RLOCK_OK;
}

static int64_t began_ms(const struct rlock_hold *hold)
{
    if (hold->holder.since_ms > 0)
        return hold->holder.since_ms;
    return hold->ended_ms - (hold->held_ms > 0 ? hold->held_ms : 0);
}

static int by_begin(const void *one, const void *other)
{
    int64_t a = began_ms(&((const struct noted_hold *)one)->hold);
    int64_t b = began_ms(&((const struct noted_hold *)other)->hold);

    return (a > b) - (a < b);
}

/* Passes to the visitor, oldest first, each hold that lasts now or ended at `from_ms` or later. */
static void show(struct noted_list *all, const char *key, size_t n_members, int64_t from_ms,
                 const struct rlock_history_visitor *visitor)
{
    size_t i;

    if (all->n > 0)
        qsort(all->noted, all->n, sizeof *all->noted, by_begin);
    for (i = 0; i < all->n; i++) {
        struct rlock_hold *hold = &all->noted[i].hold;

        hold->key = key;
        hold->n_members = n_members;
        hold->n_alike = (size_t)__builtin_popcount(all->noted[i].members);
        if (hold->end == RLOCK_HOLD_NOW || hold->ended_ms >= from_ms)
            visitor->on_hold(visitor->context, hold);
    }
}

enum rlock_status history_read(struct quorum *quorum, const char *key, int64_t window_ms,
                               struct rlock_deadline deadline,
                               const struct rlock_history_visitor *visitor, struct rlock_error *err)
{
    struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX];
    struct lock_state state = {.holders = NULL};
    struct noted_list all = {.noted = NULL};
    struct rlock_error fault = {.status = RLOCK_OK};
    struct lock_keys keys;
    enum rlock_status st = keys_init(&keys, key, NULL, err);
    size_t n_read = 0;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < quorum->members.n; i++) {
        struct quorum one = quorum_alone(quorum, &quorum->members.member[i], pollfds);
        struct noted_list list = {.noted = NULL};

        st = read_member(&one, &keys, deadline, &list, &state, &fault);
        member_set_outcome(&quorum->members.member[i], st, &fault);
        if (st == RLOCK_OK)
            st = merge(&all, &list, i, err);
        else if (st != RLOCK_STOPPED)
            st = RLOCK_OK;
        n_read += quorum->members.member[i].state == RLOCK_OK;
        free(list.noted);
    }
    if (st == RLOCK_OK)
        st = n_read >= quorum->members.need ? members_check(&quorum->members, err)
                                            : members_fault(&quorum->members, err);
    if (st == RLOCK_OK)
        show(&all, key, quorum->members.n, window_ms > 0 ? state.now_ms - window_ms : 0, visitor);
    free(state.holders);
    free(all.noted);
    keys_fini(&keys);
    return st;
}

/* ---- listing the locks that have a history ---- */

/* Passes the key of the lock with this history to the visitor, if the key matches the pattern. */
static void show_key(const struct list_search *search, const char *history)
{
    const struct rlock_history_visitor *visitor = search->visitor;
    char *key = keys_lock_of("history", history);

    if (key != NULL && list_is_match(search, key))
        visitor->on_key(visitor->context, key);
    free(key);
}

/*
 * Shows the locks of these histories; `n` is at most LIST_ASK_MAX. Leaves out a history that isn't
 * a list, or that the user may not read: its LRANGE, which asks for no entry, returns an error.
 */
static enum rlock_status show_readable(const struct list_search *search, char *const *name,
                                       size_t n, struct rlock_error *err)
{
    static const char *const nothing[] = {"1", "0", NULL};
    const struct resp_value *reply = NULL;
    enum rlock_status st = list_ask_each(search, name, n, "LRANGE", nothing, &reply, err);
    size_t i;

    for (i = 0; st == RLOCK_OK && i < n; i++)
        if (resp_array_at(reply, i + 1) != NULL && resp_error(resp_array_at(reply, i + 1)) == NULL)
            show_key(search, name[i]);
    return st;
}

static enum rlock_status show_found(const struct list_search *search,
                                    const struct list_names *found, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;
    size_t i;

    for (i = 0; st == RLOCK_OK && i < found->n; i += LIST_ASK_MAX)
        st = show_readable(search, &found->name[i],
                           found->n - i < LIST_ASK_MAX ? found->n - i : LIST_ASK_MAX, err);
    return st;
}

enum rlock_status history_keys(struct quorum *quorum, const char *pattern,
                               struct rlock_deadline deadline,
                               const struct rlock_history_visitor *visitor, struct rlock_error *err)
{
    const struct list_search search = {.match = "*:rlock:*history",
                                       .pattern = pattern,
                                       .deadline = deadline,
                                       .on_found = show_found,
                                       .visitor = visitor};

    return list_search(quorum, &search, err);
}
