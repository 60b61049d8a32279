/*
 * fence: a model of rlock's quorum. spin (6.5) searches every order in which its messages can
 * arrive.
 *
 * An attempt is one try of one owner, with a new token. An owner that tries again is modelled as
 * several attempts, which may overlap in any way. There are N members and A attempts. Each member n
 * has
 *
 *   K[n]  the lock: 0: it is free; else the number of the attempt that holds it, plus 1
 *   F[n]  the last fence
 *
 * The requests, what a member does with them, and what the client does then:
 *
 *   acquire   If K is free, the member sets K to the attempt's token and F to a greater number, and
 *             replies F. If a majority has replied, the client takes the greatest of their numbers
 *             as the fence, and sends confirm.
 *   confirm   If K is the token and F <= fence, the member sets F to the fence, and replies ok. If
 *             K is the token and F > fence, it replies F: then the client raises its fence to
 *             F + 1, forgets all confirmations, and asks all members again. If a majority has
 *             confirmed, the lock is granted, and the command may start.
 *   renew     If F <= fence, and either K is the token, or K is free and the member has a last
 *             fence, the member sets K to the token: it renews the lock or puts it back. If a
 *             majority has done so, the client's lease goes on.
 *   release   If K is the token, the member frees K.
 *
 * The network: each request arrives at any later time, in any order, or never, even if its owner
 * has given up meanwhile. The reply to a request arrives at once or never. An owner may pause or
 * give up at any step.
 *
 * Time, one of:
 *   ASYNC    No clock is trusted: a lock may vanish from a member at any moment (it expired, was
 *            evicted or deleted), and an owner never finds that its lease has ended. A release is
 *            modelled as a lock that vanishes.
 *   TIMED    A lock vanishes only when its lease has ended, or when its owner has released it. Each
 *            attempt has a first lease and, once it has sent a renewal, a second one. A command
 *            starts only within a lease, and is killed before the lease ends. With its last lease
 *            an attempt is over.
 * Further faults:
 *   LOSS=k   At most k times a member forgets K and F, because it restarts without its data.
 *   HLC      A member without a last fence draws a number from its clock. The members' clocks
 *            agree, so the number is greater than all that any member has drawn. Without HLC a
 *            member without a last fence draws 1.
 *   DELAY    A member that has forgotten its data executes acquire and confirm, but its replies
 *            don't count until every lease that it may have forgotten has ended.
 * Bounds:
 *   A=2      the number of attempts
 *   N=3      the number of members, 3 or 5
 *   F0=1     by how much the last fences of two members may differ at the start
 *   RAISES=1 how often an attempt may raise its fence: 0 or 1
 *   RENEWS=1 how often an attempt may renew: 0 or 1
 *
 * checks.pml has the checks.
 *
 * NOT_AFTER, a variant that is as strong: no member executes an acquire after its owner has stopped
 * asking. Then renew needn't compare fences on a member that still has the token (RENEW_BLINDLY).
 * rlock is built so: an acquire carries a not-after time once rlock knows a member's clock, and an
 * abandoned connection's last request undoes the acquire. CHK_RENEW fails only if both fail and,
 * besides, a lock vanishes before its lease ends. A lock that a member forgot while a majority
 * renewed is put back by an acquire, which draws a new number: see the variant lease-no-fence.
 *
 * Variants with a part left out or changed. expected.tsv tells which check each of them violates:
 *   ONE_PHASE        the client sends no confirm: a majority of acquires is a grant
 *   NO_REFUSAL       confirm doesn't compare F with the fence
 *   OFF_BY_ONE       confirm compares by F <= fence + 1
 *   NO_WRITE         confirm doesn't change F
 *   KEEP_REPLIES     confirmations from before a raise still count after it
 *   NO_GROWTH        acquire doesn't change F
 *   QUORUM=n         n members are enough, instead of a majority
 *   RENEW_BLINDLY    renew doesn't compare F if the member has the token
 *   REPAIR_BLINDLY   renew doesn't compare F if the lock is free
 *   REPAIR_EMPTY     renew puts the lock back also on a member that has no last fence
 *   CONFIRM_EARLY    DELAY applies to acquire, but not to confirm
 *   NO_KILL          the command isn't killed when its lease ends
 *   NO_CHECK         the command starts even if its lease has ended
 *
 * Left out: shared locks, for which rlock's confirm also refuses F = fence, unless the member drew
 * this number for the owner. And, as it can't change the result of a check: a request that would
 * change nothing stays in flight; no reply to confirm or renew is lost; of members, and of
 * attempts, only one order is searched, as they are alike.
 *
 * Not modelled: a second raise or renewal; a request that a member executes twice; a refusal that
 * arrives late, and so with an old number; shared locks, slots, several keys, the queue, --once;
 * one token in several attempts; members that are added or removed, and owners with different
 * members; lengths of time; numbers that reach their limit. The bounds are small: that the checks
 * hold for all A and N needs a proof, which spin can't give.
 */

#ifndef A
#define A 2
#endif
#ifndef N
#define N 3
#endif
#ifndef F0
#define F0 1
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef RAISES
#define RAISES 1
#endif
#ifndef RENEWS
#define RENEWS 1
#endif
#ifndef QUORUM
#define QUORUM (N / 2 + 1)
#endif

#ifdef NO_GROWTH
#define F_FIRST 1
#else
#define F_FIRST 0
#endif

#define ALL ((1 << N) - 1)
#define BIT(n) (1 << (n))
#define COUNT(m) \
    (((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1) + (((m) >> 3) & 1) + (((m) >> 4) & 1))
#define MAX(x, y) ((x) > (y) -> (x) : (y))

/* No fence can be greater than this: the greatest one at the start, plus 1 for each acquire. */
#define F_MAX (3 * F0 + 2 * N * A + A + 2)

#if defined(TIMED) || defined(CHK_MUTEX) || defined(CHK_START)
#define RUNS 1 /* 1: commands start and end; 0: an attempt ends with its grant, or its renewal */
#else
#define RUNS 0
#endif

/* ---- members --------------------------------------------------------------------------------- */

byte K[N];
byte F[N];
#ifdef TIMED
byte lease[N]; /* K expires at the end of this lease of its holder: 0: the first, 1: the second */
#define SET_LEASE(n, which) lease[n] = which
#else
#define SET_LEASE(n, which) skip
#endif
#if LOSS
byte losses;
#endif
#ifdef HLC
byte issued; /* the greatest number that a member has drawn so far */
#endif

/* ---- attempts -------------------------------------------------------------------------------- */

#define NEW 0
#define ACQUIRING 1
#define CONFIRMING 2
#define GRANTED 3
#define RUNNING 4
#define OVER 5

byte state[A];
byte fence[A];
/* Requests in flight (acquires, confirms, renews), and replies that count (acquired, confirmed,
 * renewed): bit n of element a is about member n and attempt a. */
byte acquires[A], acquired[A];
byte confirms[A], confirmed[A];
#if RAISES
byte stale[A]; /* bit n: a confirm from before the raise is still on its way to member n */
byte was[A];   /* the fence before the raise, which the confirms in `stale` carry; 0: not raised */
#endif
#if RENEWS
byte renews[A], renewed[A];
byte phase[A]; /* of the renewal: 0: not sent yet, SENT, or KEPT: the lease is renewed */
#define SENT 1
#define KEPT 2
#define IS_SENT(a) (phase[a] >= SENT)
#define IS_KEPT(a) (phase[a] == KEPT)
#define IN_FLIGHT(a) (confirms[a] || renews[a])
#else
#define IS_SENT(a) false
#define IS_KEPT(a) false
#define IN_FLIGHT(a) (confirms[a])
#endif
#ifdef TIMED
byte ended[A]; /* how many leases of the attempt have ended */
#define IS_LIVE(a) (ended[a] == 0 || (ended[a] == 1 && IS_KEPT(a)))
#endif

/* Clears the fence of an attempt that is over, when no request carries the fence any more. Else
 * spin would search states separately that differ only in a fence that nobody uses. */
inline tidy(a) {
    if :: state[a] == OVER && !IN_FLIGHT(a) -> fence[a] = 0 :: else fi
}

inline be_over(a) {
    state[a] = OVER;
    acquired[a] = 0;
    confirmed[a] = 0;
#if RENEWS
    renewed[a] = 0;
    phase[a] = 0;
#endif
#ifdef TIMED
    ended[a] = 0;
#endif
    tidy(a)
}

#include "checks.pml"

/* ---- a member executes a request ------------------------------------------------------------- */

#ifdef DELAY
/* The leases that member n may have forgotten: bit a: the first lease of attempt a; bit A + a: its
 * second lease. */
byte forgotten[N];
#define MAY_HOLD(a) (state[a] != NEW && state[a] != OVER)
#define IN_FIRST(a) (MAY_HOLD(a) && ended[a] == 0)
#define IN_SECOND(a) (MAY_HOLD(a) && ended[a] < 2 && IS_SENT(a))
#if A != 2
#error "DELAY is written for A=2"
#endif
#define LEASES (IN_FIRST(0) + 2 * IN_FIRST(1) + 4 * IN_SECOND(0) + 8 * IN_SECOND(1))
#define COUNTS(n) ((forgotten[n] & LEASES) == 0)
#else
#define COUNTS(n) true
#endif

#ifdef NOT_AFTER
#define CAN_BE_LATE(a) (state[a] == ACQUIRING)
#else
#define CAN_BE_LATE(a) true
#endif

#ifdef CONFIRM_EARLY
#define CONFIRMS(n) true
#else
#define CONFIRMS(n) COUNTS(n)
#endif

inline acquire(a, n) {
    acquires[a] = acquires[a] & ~BIT(n);
    K[n] = a + 1;
    SET_LEASE(n, 0);
#ifdef HLC
    F[n] = (F[n] == 0 -> issued + 1 : F[n] + 1);
    issued = MAX(issued, F[n])
#else
#ifndef NO_GROWTH
    F[n]++
#endif
#endif
}

#if defined(NO_REFUSAL)
#define IS_REFUSED(a, n) false
#elif defined(OFF_BY_ONE)
#define IS_REFUSED(a, n) (F[n] > fence[a] + 1)
#else
#define IS_REFUSED(a, n) (F[n] > fence[a])
#endif

inline write_fence(n, number) {
#ifndef NO_WRITE
    F[n] = MAX(F[n], number)
#else
    skip
#endif
}

#if RAISES
#ifdef KEEP_REPLIES
#define COUNT_NO_MORE(a) skip
#else
#define COUNT_NO_MORE(a) confirmed[a] = 0
#endif
inline raise(a, n) {
    was[a] = fence[a];
    stale[a] = confirms[a] & ~BIT(n);
    fence[a] = F[n] + 1;
    confirms[a] = ALL;
    COUNT_NO_MORE(a)
}
#endif

#ifdef RENEW_BLINDLY
#define IS_THERE(a, n) (K[n] == a + 1)
#else
#define IS_THERE(a, n) (K[n] == a + 1 && F[n] <= fence[a])
#endif
#if defined(REPAIR_BLINDLY)
#define CAN_BE_PUT_BACK(a, n) (K[n] == 0)
#elif defined(REPAIR_EMPTY)
#define CAN_BE_PUT_BACK(a, n) (K[n] == 0 && F[n] <= fence[a])
#else
#define CAN_BE_PUT_BACK(a, n) (K[n] == 0 && F[n] <= fence[a] && F[n] > 0)
#endif

inline renew(a, n) {
    renews[a] = renews[a] & ~BIT(n);
#ifdef CHK_REPAIRED
    if :: K[n] == 0 -> put_back[a] = put_back[a] | BIT(n) :: else fi;
#endif
    K[n] = a + 1;
    SET_LEASE(n, 1);
    if :: phase[a] == SENT -> renewed[a] = renewed[a] | BIT(n) :: else fi;
    tidy(a)
}

/* An acquire arrives at a member whose lock is free: first case: its reply arrives and counts;
 * second case: its reply is lost, or doesn't count. */
#define ASK_TO_ACQUIRE(a, n) \
    :: d_step { (acquires[a] & BIT(n)) && K[n] == 0 && state[a] == ACQUIRING && COUNTS(n) -> \
                acquire(a, n); acquired[a] = acquired[a] | BIT(n); \
                fence[a] = MAX(fence[a], F[n]) } \
    :: d_step { (acquires[a] & BIT(n)) && K[n] == 0 && CAN_BE_LATE(a) -> acquire(a, n) }

/* A confirm arrives, and the member stores the fence. The reply counts only if the attempt still
 * confirms. */
#define ASK_TO_CONFIRM(a, n) \
    :: d_step { (confirms[a] & BIT(n)) && K[n] == a + 1 && !IS_REFUSED(a, n) -> \
                confirms[a] = confirms[a] & ~BIT(n); write_fence(n, fence[a]); \
                if :: state[a] == CONFIRMING && CONFIRMS(n) -> \
                   confirmed[a] = confirmed[a] | BIT(n) \
                :: else fi; \
                tidy(a) }

/* First case: a confirm is refused, and the client raises its fence. Second case: a confirm from
 * before the raise arrives, and the member stores the old fence. */
#if RAISES
#define ASK_AGAIN(a, n) \
    :: d_step { (confirms[a] & BIT(n)) && K[n] == a + 1 && IS_REFUSED(a, n) && \
                state[a] == CONFIRMING && was[a] == 0 -> raise(a, n) } \
    :: d_step { (stale[a] & BIT(n)) && K[n] == a + 1 && F[n] <= was[a] -> \
                stale[a] = stale[a] & ~BIT(n); write_fence(n, was[a]) }
#else
#define ASK_AGAIN(a, n)
#endif

#if RENEWS
#define ASK_TO_RENEW(a, n) \
    :: d_step { (renews[a] & BIT(n)) && (IS_THERE(a, n) || CAN_BE_PUT_BACK(a, n)) -> renew(a, n) }
#else
#define ASK_TO_RENEW(a, n)
#endif

#ifdef TIMED
#define HAS_ENDED(n) (state[K[n] - 1] == OVER || ended[K[n] - 1] > lease[n])
#else
#define HAS_ENDED(n) true
#endif
#define VANISH(n) :: d_step { K[n] != 0 && HAS_ENDED(n) -> K[n] = 0; SET_LEASE(n, 0) }

#if LOSS
inline forget(n) {
    losses++;
    K[n] = 0;
    F[n] = 0;
    SET_LEASE(n, 0);
#ifdef DELAY
    forgotten[n] = LEASES
#endif
}
#define FORGET(n) :: d_step { losses < LOSS -> forget(n) }
#else
#define FORGET(n)
#endif

#define ASK(a, n) \
    ASK_TO_ACQUIRE(a, n) \
    ASK_TO_CONFIRM(a, n) \
    ASK_AGAIN(a, n) \
    ASK_TO_RENEW(a, n)

/* ---- a client takes a step ------------------------------------------------------------------- */

/* If neither commands nor renewals are modelled, an attempt is over with its grant. */
inline grant(a) {
    check_grant(a);
    confirmed[a] = 0;
#if RUNS || RENEWS
    state[a] = GRANTED
#else
    be_over(a)
#endif
}

inline send_confirms(a) {
    NOTE_CONFIRMS(a);
    state[a] = CONFIRMING;
#ifdef ONE_PHASE
    confirmed[a] = acquired[a];
#else
    confirms[a] = ALL;
#endif
    acquired[a] = 0
}

#if defined(TIMED) && !defined(NO_CHECK)
#define MAY_START(a) IS_LIVE(a)
#else
#define MAY_START(a) true
#endif
#if RUNS
#define RUN(a) \
    :: d_step { state[a] == GRANTED && MAY_START(a) -> check_start(a); state[a] = RUNNING } \
    :: d_step { state[a] != NEW && state[a] != OVER -> stop(a); be_over(a) }
#else
#define RUN(a)
#endif

#if RENEWS
inline keep(a) {
    check_renewed(a);
    phase[a] = KEPT;
    renewed[a] = 0;
#if !RUNS
    be_over(a)
#endif
}
#ifdef TIMED
#define IN_TIME(a) (ended[a] == 0)
#else
#define IN_TIME(a) true
#endif
#define RENEW(a) \
    :: d_step { (state[a] == GRANTED || state[a] == RUNNING) && phase[a] == 0 && IN_TIME(a) -> \
                NOTE_RENEWS(a); phase[a] = SENT; renews[a] = ALL } \
    :: d_step { phase[a] == SENT && COUNT(renewed[a]) >= QUORUM && \
                IN_TIME(a) -> keep(a) }
#else
#define RENEW(a)
#endif

#ifdef TIMED
#if defined(NO_KILL)
#define ENDS_WITH_LEASE(a) (state[a] != RUNNING)
#elif defined(NO_CHECK)
#define ENDS_WITH_LEASE(a) (state[a] == RUNNING)
#else
#define ENDS_WITH_LEASE(a) true
#endif
inline end_lease(a) {
    ended[a]++;
    if :: !IS_LIVE(a) && ENDS_WITH_LEASE(a) -> stop(a); be_over(a) :: else fi
}
#define END_LEASE(a) \
    :: d_step { state[a] != NEW && state[a] != OVER && \
                (ended[a] == 0 || (ended[a] == 1 && IS_SENT(a))) -> end_lease(a) }
#else
#define END_LEASE(a)
#endif

#define CLIENT(a, may_begin) \
    :: d_step { state[a] == NEW && may_begin -> \
                NOTE_ACQUIRES(a); state[a] = ACQUIRING; acquires[a] = ALL } \
    :: d_step { state[a] == ACQUIRING && COUNT(acquired[a]) >= QUORUM -> send_confirms(a) } \
    :: d_step { state[a] == CONFIRMING && COUNT(confirmed[a]) >= QUORUM -> grant(a) } \
    RUN(a) \
    RENEW(a) \
    END_LEASE(a)

/* ---- the start, and all steps of all clients and members ------------------------------------- */

#if N == 5
#define ASK_ALL(a) ASK(a, 0) ASK(a, 1) ASK(a, 2) ASK(a, 3) ASK(a, 4)
#define VANISH_ANY VANISH(0) VANISH(1) VANISH(2) VANISH(3) VANISH(4)
#define FORGET_ANY FORGET(0) FORGET(1) FORGET(2) FORGET(3) FORGET(4)
#else
#define ASK_ALL(a) ASK(a, 0) ASK(a, 1) ASK(a, 2)
#define VANISH_ANY VANISH(0) VANISH(1) VANISH(2)
#define FORGET_ANY FORGET(0) FORGET(1) FORGET(2)
#endif

init {
    byte x;
    atomic {
        select(x : 0 .. F0);
        F[0] = F_FIRST + x;
        select(x : 0 .. F0);
        F[1] = F[0] + x;
        select(x : 0 .. F0);
        F[2] = F[1] + x;
#if N == 5
        F[3] = F[2];
        F[4] = F[2];
#endif
#ifdef HLC
        issued = F[2];
#endif
        x = 0
    };
end:
    do
    CLIENT(0, true)
    CLIENT(1, state[0] != NEW)
    ASK_ALL(0)
    ASK_ALL(1)
#if A > 2
    CLIENT(2, state[1] != NEW)
    ASK_ALL(2)
#endif
    VANISH_ANY
    FORGET_ANY
    od
}
