/* SPDX-License-Identifier: MIT */
/*
 * broadcast: sends one request to all members at once, and counts their votes.
 *
 * The caller fills in a struct broadcast, calls broadcast_run(), and decides by the struct votes.
 */
#ifndef BROADCAST_H
#define BROADCAST_H

#include "lock/commands.h"
#include "lock/requests.h"
#include "quorum/members.h"

/* The kinds of broadcast. broadcast.c has a row for each: the request, and how to count replies. */
enum broadcast_purpose {
    BROADCAST_ACQUIRE,
    BROADCAST_CONFIRM, /* store the fence on members that granted the lock */
    BROADCAST_UNDO,    /* remove what the last attempt wrote */
    BROADCAST_REQUEUE, /* remove what the last attempt wrote, and join the queue again */
    BROADCAST_WAIT,    /* block in BLPOP until one member wakes the waiter */
    BROADCAST_RENEW,
    BROADCAST_REPAIR, /* write the token again on members that have lost it */
    BROADCAST_RELEASE,
    BROADCAST_LEAVE,        /* remove all that the token wrote, and leave the queue */
    BROADCAST_REQUEST,      /* send `request`; ends when a majority of the members has replied */
    BROADCAST_SLOW_REQUEST, /* as BROADCAST_REQUEST, but ends when all members have replied */
    BROADCAST_TOPOLOGY      /* as BROADCAST_SLOW_REQUEST, with CLUSTER NODES before the request */
};

struct broadcast {
    enum broadcast_purpose purpose;
    const struct owner *owner;     /* borrowed; NULL: `request` is sent */
    const struct request *request; /* borrowed; what to send instead of the purpose's own request */
    struct request *behind;        /* borrowed; sent behind `request` if that is abandoned */
    unsigned skipped;              /* bit i is set: member i isn't asked */
    uint64_t fence;                /* for BROADCAST_CONFIRM */
    /* for BROADCAST_CONFIRM: the fence that each member returned to the acquire; 0: not known */
    uint64_t drawn[RLOCK_MEMBERS_MAX];
    unsigned released; /* for BROADCAST_RELEASE: bit i is set: member i may have executed an earlier
                          attempt, so any answer counts as REPLY_OK */
    unsigned lost;     /* for BROADCAST_RENEW and BROADCAST_RELEASE: bit i is set: member i has said
                          that it lacks the lock, and has not confirmed the lock since */
    int64_t block_ms;  /* how long the command (BLPOP, WAIT) may block on the server; 0: no such
                         command */
    int64_t reply_ms;  /* how long a reply may take, in addition to block_ms */
    int64_t split_ms;  /* for BROADCAST_ACQUIRE: if a majority has answered and the lock is split,
                          the other members get this time, or as long as the majority took if that
                          is longer. RLOCK_NEVER: they get reply_ms */
};

/* The answers of all members, counted. The pointers are valid until a member is asked again. */
struct votes {
    size_t n_granted;  /* members whose grant, renewal or release counts */
    size_t n_restored; /* those of n_granted that had lost the lock, and have put it back */
    /* how many members replied REPLY_HELD, REPLY_GONE and so on, see enum reply_code */
    size_t n_held;
    size_t n_gone;
    size_t n_late;
    size_t n_superseded;
    size_t n_released;
    size_t n_done;
    size_t n_other_mode;
    size_t n_yes;                /* members that said yes: n_granted; or, if the purpose's replies
                                    aren't parsed, all that replied */
    size_t n_no;                 /* members that answered anything but yes, or failed */
    size_t n_recently_restarted; /* members that granted, but don't count yet after a restart */
    int64_t uncounted_ms;        /* how long until all of n_recently_restarted count */
    unsigned granted_by;         /* bit i is set: member i granted, whether that counts or not */
    unsigned inconsistent; /* bit i is set: member i granted, but the owner's parents hold other
                              locks there than on most members, so the grant doesn't count */
    unsigned gone_from;    /* bit i is set: member i replied REPLY_GONE or REPLY_BROKEN */
    unsigned held_from;    /* bit i is set: member i replied REPLY_HELD */
    size_t n_lost_before;  /* members in broadcast.lost that have not answered */
    unsigned sent_twice;   /* bit i is set: member i was sent the release on two connections */
    int64_t sent_ms;       /* when the first of the requests that were granted was sent */
    uint64_t fence;        /* the greatest fence in replies of grants and in REPLY_LATE */
    size_t n_same_fence;   /* members that granted with exactly the fence `fence` */
    int64_t left_ms;       /* of a renewal: the shortest time left on any member; 0: not known */
    int64_t ticket;        /* the greatest ticket in replies REPLY_HELD; 0: none has one */
    size_t n_same_holder;  /* how many members name the holder that most members name */
    const struct reply *granted;   /* the reply of a member that granted; NULL: there is none */
    const struct reply *held_by;   /* a reply with an obstacle: the holder */
    const struct reply *done_by;   /* a reply with the mark of --once; NULL: n_done is 0 */
    const struct reply *newer;     /* a reply that names a newer waiter; NULL: n_superseded is 0 */
    const struct reply *broken_by; /* a reply that says who has broken the lock; NULL: none does */
    const struct reply *other_quorum; /* a reply that names a holder of another quorum */
};

/*
 * broadcast_run: send the request to all members that aren't skipped, and wait until their answers
 * decide. Blocks until `deadline` at the latest. A member may take connect_ms to connect, and then
 * block_ms + reply_ms to reply.
 *
 *   votes  out, always filled in; NULL: the caller reads the members' `state` and `reply`
 *
 * Returns  RLOCK_OK (whether the answers decide or not), RLOCK_STOPPED, or RLOCK_E_CONFIG: two
 *          members are the same server, and no vote counts.
 *
 * A member that answers too slowly to decide stays RLOCK_PENDING, and may still execute its
 * request. The next broadcast waits for its answer before it asks that member, unless the caller
 * calls broadcast_abandon_pending().
 */
enum rlock_status broadcast_run(struct members *members, const struct broadcast *broadcast,
                                struct rlock_deadline deadline, struct votes *votes,
                                struct rlock_error *err);

/*
 * broadcast_commands: do an operation without scripts, one request after the other, on the only
 * member, each as broadcast_run() does. Sets the member's `state`, `answer` and `err`. Returns
 * RLOCK_OK or RLOCK_STOPPED.
 */
enum rlock_status broadcast_commands(struct members *members, const struct broadcast *broadcast,
                                     struct commands *commands, struct rlock_deadline deadline);

/*
 * broadcast_is_split: have some members granted the lock to the owner, and some to another owner,
 * so that neither surely has a majority?
 */
bool broadcast_is_split(const struct members *members, const struct votes *votes);

/*
 * broadcast_abandon_pending: reset the connections on which requests are pending. After an acquire
 * first sends the undo.
 */
void broadcast_abandon_pending(struct members *members, const struct broadcast *broadcast);

/* broadcast_unanswered: bit i is set: member i was sent the last request, and hasn't answered. */
unsigned broadcast_unanswered(const struct members *members);

#endif
