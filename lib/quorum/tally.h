/* SPDX-License-Identifier: MIT */
/* tally: how the members answered a round. */
#ifndef TALLY_H
#define TALLY_H

#include "quorum/members.h"

#include "lock/replies.h"

struct tally {
    size_t n_granted;
    size_t restored;
    size_t held;
    size_t gone;
    size_t late;
    size_t superseded;
    size_t released;
    size_t done;
    size_t other_mode;
    size_t young;           /* granted, by one that doesn't count yet */
    size_t same_fence;      /* of those who granted: with the greatest */
    size_t same_owner;      /* of those where somebody is in the way: who is in most of them */
    unsigned granted_by;    /* a bit for each member that granted, counted or not */
    unsigned inconsistent;  /* likewise that granted something else than most: it doesn't count */
    unsigned gone_from;     /* likewise where nobody has it */
    int64_t sent_ms;        /* the earliest of those who granted */
    uint64_t fence;         /* the greatest, of those who granted or came too late */
    int64_t left_ms;        /* the least; 0: not told */
    int64_t young_ms;       /* until the last of the young ones counts */
    int64_t ticket;         /* the greatest */
    struct answer granted;  /* of one of those who granted */
    struct answer held_by;  /* of one of those where something is in the way */
    struct answer stranger; /* of one of those where it is somebody who asks other servers */
};

/* tally_count: read all answers; what can't be read is a fault of its member. */
enum rlock_status tally_count(struct tally *tally, struct quorum *quorum, answer_read *read,
                              struct rlock_error *err);

#endif
