/* SPDX-License-Identifier: MIT */
/*
 * broadcast: one request to each member at the same time, until it is decided.
 *
 * A call fills a struct broadcast, runs it, and decides by the struct votes that it gets back.
 */
#ifndef BROADCAST_H
#define BROADCAST_H

#include "lock/requests.h"
#include "quorum/members.h"

/* What members are asked, and with it what is a yes, how many decide, and what is undone. */
enum broadcast_purpose {
    BROADCAST_ACQUIRE,
    BROADCAST_CONFIRM, /* note a fence, where the token that was placed still is */
    BROADCAST_UNDO,    /* remove what the last attempt placed */
    BROADCAST_REQUEUE, /* the same, and stand in line again */
    BROADCAST_WAIT,    /* block until woken: one member is enough */
    BROADCAST_RENEW,
    BROADCAST_REPAIR, /* place the token again where it is gone */
    BROADCAST_RELEASE,
    BROADCAST_LEAVE,        /* remove all that the token ever placed */
    BROADCAST_REQUEST,      /* `request`, whatever it is */
    BROADCAST_SLOW_REQUEST, /* the same, which each member may hold back: all are waited for */
    BROADCAST_TOPOLOGY      /* the nodes of each member's Cluster: all are waited for */
};

struct broadcast {
    enum broadcast_purpose purpose;
    const struct owner *owner;     /* borrowed; whose locks the request is about, if it is */
    const struct request *request; /* borrowed; of BROADCAST_REQUEST and BROADCAST_SLOW_REQUEST */
    unsigned skipped;              /* a bit for each member that isn't asked */
    uint64_t fence;                /* of BROADCAST_CONFIRM */
    int64_t block_ms;              /* how long a server may hold back its reply; 0: it doesn't */
    int64_t reply_ms;              /* how long a reply may take beside that */
};

/*
 * What the members answered, taken together. Pointers are into members: until they are asked again.
 */
struct votes {
    size_t n_granted;  /* members that granted, renewed or released, and count */
    size_t n_restored; /* of these: the lock had vanished, and is there again */
    size_t n_held;     /* members that gave each of the other replies, see */
    size_t n_gone;     /* enum reply_code */
    size_t n_late;
    size_t n_superseded;
    size_t n_released;
    size_t n_done;
    size_t n_other_mode;
    size_t n_yes;                /* n_granted, or members that replied, of a request without */
    size_t n_no;                 /* members with another answer, or a fault */
    size_t n_recently_restarted; /* granted, but may have forgotten a lease: don't count */
    int64_t uncounted_ms;        /* for how long yet the last of these doesn't count */
    unsigned granted_by;         /* a bit for each member that granted, counted or not */
    unsigned inconsistent;       /* likewise: granted other locks than most, so don't count */
    unsigned gone_from;          /* likewise: nobody holds the lock there */
    int64_t sent_ms;             /* when the first of the requests that were granted was sent */
    uint64_t fence;              /* the greatest, of members that granted or came too late */
    size_t n_same_fence;         /* members that granted with that fence */
    int64_t left_ms;             /* of a renewal: the shortest; 0: not told */
    int64_t ticket;              /* of the waiting line: the greatest; 0: none */
    size_t n_same_holder;        /* members where the lock is held by whom most name */
    const struct reply *granted; /* of one that granted; NULL: there is none */
    const struct reply *held_by; /* of one that names what is in the way; NULL */
    const struct reply *other_quorum; /* of one whose holder asks other members; NULL */
};

/*
 * broadcast_run: ask all members but those skipped, and wait until it is decided. Blocks until
 * then, until `deadline`, or for reply_ms + block_ms after connections were made, and connect_ms
 * for these.
 *
 *   votes  out, always filled; NULL: what was answered is seen by the members' states
 *
 * Returns  RLOCK_OK (decided or not), RLOCK_STOPPED, or RLOCK_E_CONFIG: two members are the same
 *          server, and nobody has voted. Members that weren't waited for are still RLOCK_PENDING:
 *          what they were asked may be executed yet. The next broadcast asks them when they have
 *          answered, unless broadcast_abandon_pending() is called.
 */
enum rlock_status broadcast_run(struct members *members, const struct broadcast *broadcast,
                                struct rlock_deadline deadline, struct votes *votes,
                                struct rlock_error *err);

/* broadcast_abandon_pending: wait for no member any more. What an attempt left there is undone. */
void broadcast_abandon_pending(struct members *members, const struct broadcast *broadcast);

/* broadcast_is_unanswered: was a request of the last broadcast sent to which no answer came? */
bool broadcast_is_unanswered(const struct members *members);

#endif
