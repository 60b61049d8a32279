/* SPDX-License-Identifier: MIT */
/*
 * tally: how the members answered a round.
 *
 * Everything is read before anything is counted: an answer may tell of a lease
 * that is longer than ours, and so how long a member must have been up to count.
 * Only those count that granted the same: where an parent rlock holds the lock,
 * a member that has lost it grants it anew.
 */
#include "quorum/tally.h"

#include "base/err.h"

#include <string.h>

/* Are the same of the locks ours, and the others the same parent one's? */
static bool is_alike(const struct answer *one, const struct answer *other)
{
    size_t i;

    for (i = 0; i < RLOCK_KEYS_MAX; i++)
        if (one->holding[i].parent != other->holding[i].parent)
            return false;
    return true;
}

static bool is_granted(const struct answer *answer)
{
    return answer->kind == ANSWER_GRANTED || answer->kind == ANSWER_RESTORED;
}

/* How many granted the same, and as far as these are equal, with the same fence. */
static size_t count_alike(const struct quorum *quorum, const struct answer *answers, size_t nth)
{
    size_t alike = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != RLOCK_OK || !is_granted(&answers[i]) ||
            !is_alike(&answers[i], &answers[nth]))
            continue;
        alike += RLOCK_MEMBERS_MAX + 1U + (answers[i].fence == answers[nth].fence ? 1U : 0U);
    }
    return alike;
}

static void add_grant(struct tally *tally, const struct member *member, const struct answer *answer)
{
    if (tally->n_granted++ == 0 || member_sent_ms(member) < tally->sent_ms)
        tally->sent_ms = member_sent_ms(member);
    if (answer->fence > tally->fence)
        tally->fence = answer->fence;
    if (tally->left_ms == 0 || answer->left_ms < tally->left_ms)
        tally->left_ms = answer->left_ms;
}

static void add(struct tally *tally, const struct member *member, const struct answer *answer)
{
    switch (answer->kind) {
    case ANSWER_RESTORED:
        tally->restored++;
        add_grant(tally, member, answer);
        break;
    case ANSWER_GRANTED:
        add_grant(tally, member, answer);
        break;
    case ANSWER_HELD:
        tally->held++;
        if (answer->ticket > tally->ticket)
            tally->ticket = answer->ticket;
        break;
    case ANSWER_GONE:
        tally->gone++;
        break;
    case ANSWER_LATE:
        tally->late++;
        if (answer->fence > tally->fence)
            tally->fence = answer->fence;
        break;
    case ANSWER_SUPERSEDED:
        tally->superseded++;
        break;
    case ANSWER_RELEASED:
        tally->released++;
        break;
    case ANSWER_DONE:
        tally->done++;
        tally->held_by = *answer;
        break;
    case ANSWER_OTHER_MODE:
        tally->other_mode++;
        tally->held_by = *answer;
        break;
    }
}

/* Who is in the way of us on most of the members? */
static void find_owner(struct tally *tally, const struct quorum *quorum,
                       const struct answer *answers)
{
    size_t same;
    size_t i;
    size_t j;

    for (i = 0; i < quorum->n; i++) {
        if (quorum->member[i].state != RLOCK_OK || answers[i].kind != ANSWER_HELD)
            continue;
        for (same = 0, j = 0; j < quorum->n; j++)
            same += quorum->member[j].state == RLOCK_OK && answers[j].kind == ANSWER_HELD &&
                    strcmp(answers[j].owner, answers[i].owner) == 0;
        if (same > tally->same_owner)
            tally->held_by = answers[i];
        if (same > tally->same_owner)
            tally->same_owner = same;
    }
}

/* Who asks other servers than we do isn't kept out by us, nor we by it. */
static void find_stranger(struct tally *tally, const struct quorum *quorum,
                          const struct answer *answers)
{
    size_t i;

    for (i = 0; i < quorum->n; i++)
        if (quorum->member[i].state == RLOCK_OK &&
            (answers[i].kind == ANSWER_HELD || answers[i].kind == ANSWER_DONE) &&
            answers[i].is_written && strcmp(answers[i].list, quorum->list) != 0)
            tally->stranger = answers[i];
}

static void find_grant(struct tally *tally, const struct quorum *quorum,
                       const struct answer *answers)
{
    size_t most = 0;
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        size_t alike = count_alike(quorum, answers, i);

        if (quorum->member[i].state != RLOCK_OK || !is_granted(&answers[i]) || alike <= most)
            continue;
        most = alike;
        tally->granted = answers[i];
    }
}

static void read_all(struct quorum *quorum, answer_read *read, struct answer *answers)
{
    size_t i;

    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];

        member->granted_by = 0;
        if (member->state != RLOCK_OK || member->reply == NULL)
            continue;
        member->state = read(member->reply, &answers[i], &member->err);
        if (member->state != RLOCK_OK) {
            err_prefix(&member->err, member->url.shown);
            continue;
        }
        if (read != answer_read_release)
            member_saw_clock(member, answers[i].server_ms);
        else if (member->is_repeated)
            answers[i].kind = ANSWER_GRANTED; /* by the first of the two, as far as can be known */
        if (answers[i].holder_ttl_ms > quorum->longest_ms)
            quorum->longest_ms = answers[i].holder_ttl_ms;
    }
}

enum rlock_status tally_count(struct tally *tally, struct quorum *quorum, answer_read *read,
                              struct rlock_error *err)
{
    struct answer answers[RLOCK_MEMBERS_MAX];
    enum rlock_status st = members_check(quorum, err);
    size_t i;

    *tally = (struct tally){.n_granted = 0};
    for (i = 0; i < quorum->n; i++)
        answers[i] = (struct answer){.kind = ANSWER_GONE};
    read_all(quorum, read, answers);
    find_grant(tally, quorum, answers);
    find_owner(tally, quorum, answers);
    find_stranger(tally, quorum, answers);
    for (i = 0; i < quorum->n; i++) {
        struct member *member = &quorum->member[i];
        int64_t young_ms = members_young_ms(quorum, member);

        if (member->state != RLOCK_OK)
            continue;
        if (is_granted(&answers[i])) {
            tally->granted_by |= 1U << i;
            member->granted_by = member_connection(member);
        }
        tally->gone_from |= (answers[i].kind == ANSWER_GONE ? 1U : 0) << i;
        if (is_granted(&answers[i]) && !is_alike(&answers[i], &tally->granted)) {
            tally->inconsistent |= 1U << i;
            continue;
        }
        if ((read == answer_read_grant || read == answer_read_confirmation) &&
            answers[i].kind == ANSWER_GRANTED && young_ms > 0) {
            tally->young++;
            tally->young_ms = young_ms > tally->young_ms ? young_ms : tally->young_ms;
            continue;
        }
        add(tally, member, &answers[i]);
    }
    for (i = 0; i < quorum->n; i++)
        tally->same_fence += (tally->granted_by >> i & 1) != 0 && answers[i].fence == tally->fence;
    return st;
}
