/*
 * fence: the quorum of rlock, in every order in which its messages can arrive (for spin 6.5).
 *
 * An attempt is one owner that tries once with a fresh token; an owner that tries again is several
 * attempts, which may overlap in any way. N members, A attempts; on each member
 *
 *   K[n]  the lock: 0 is free, else attempt + 1        F[n]  the last fence there
 *
 *   acquire   if K is free: K = token, F = a greater number than before; replies F
 *   (client)  a majority replied: the fence is the greatest of their numbers
 *   confirm   if K == token and F <= fence: F = fence; replies ok
 *             if K == token and F > fence: replies F; the fence is raised to it, all confirmations
 *             count no more, and all members are asked again
 *   (client)  a majority confirmed: granted, the command may start
 *   renew     if K == token, or K is free (it is put back), and in both cases F <= fence: K = token
 *   (client)  a majority renewed: the lease goes on
 *   release   if K == token: K is free
 *
 * The network: each request arrives at any later time, in any order, or never, also when its owner
 * has given up; the reply to it arrives at once or never. Owners pause or give up anywhere.
 *
 * Time, one of
 *   ASYNC    no trust in any clock: a lock may vanish from a member at any moment (expired,
 *            evicted, deleted). Owners hold on as long as they like; a release is a vanishing.
 *   TIMED    a lock vanishes only when its lease has ended, or when its owner has released it. Each
 *            attempt has a first lease and, once a renewal was sent, a second one. A command starts
 *            within the lease, and is dead when it ends; then an attempt is over in any case.
 * More faults
 *   LOSS=k   at most k times a member forgets K and F (it restarts without data)
 *   HLC      a member that has no last fence takes one greater than all that were issued before, as
 *            its clock is as far as theirs were. Without it: 1.
 *   DELAY    what a member that forgot replies to acquire and confirm does not count until every
 *            lease that it may have forgotten has ended; what was asked of it is done all the same
 * Bounds
 *   A=2  N=3 or 5  F0=1    attempts, members, and how far the last fences may differ at first
 *   RAISES=1  RENEWS=1     how often an attempt may raise its fence, and renew, each 0 or 1
 *
 * What must hold is in checks.pml.
 *
 * The protocol, where it may be weaker than this
 *   NOT_AFTER        nothing is acquired for who has stopped asking; then RENEW_BLINDLY is right
 * So rlock is built: RENEW_BLINDLY, as an acquire carries a not-after once the member's clock is
 * known, and the last request on a connection that is given up undoes it. Where neither reaches the
 * member, and a lock has vanished early besides, renew-blindly is what can happen. And what a
 * member forgot is put back by an acquire with a number of its own, while a majority confirms the
 * lease: lease-no-fence.
 * The protocol with a part left out or changed; what then goes wrong is in expected.tsv
 *   ONE_PHASE        no confirmations           NO_REFUSAL    confirm does not compare
 *   KEEP_REPLIES     those from before a raise count           NO_WRITE      confirm leaves F alone
 *   NO_GROWTH        acquire leaves F alone     OFF_BY_ONE    confirm compares by F <= fence + 1
 *   QUORUM=n         so many are enough         RENEW_BLINDLY a lock that is there is not compared
 *   REPAIR_BLINDLY   nor is a free one          REPAIR_EMPTY  put back also where F is lost
 *   CONFIRM_EARLY    DELAY is for acquire alone
 *   NO_KILL          the command outlives its lease            NO_CHECK   it starts without a look
 *
 * Without effect on what is checked, so left out: a request that would change nothing stays in
 * flight (a refusal lets no client do anything but give up); a lost reply to confirm or renew (a
 * client with more replies can do all that it could with fewer); which of the members, or of the
 * attempts, is which.
 *
 * Not modelled: a second raise or renewal; the same request done twice; a refusal that arrives
 * late, so with an old number; shared locks, slots, several keys, the waiting line, --once; one
 * token in several attempts; members added or removed, clients with different lists; how long
 * anything takes; numbers that run out. Bounds are small: that it holds for all A and N is the
 * proof's matter, not spin's.
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

/* What every acquire adds up to: no number can be greater. */
#define F_MAX (3 * F0 + 2 * N * A + 2)

#if defined(TIMED) || defined(CHK_MUTEX) || defined(CHK_START)
#define RUNS 1 /* commands start and end; else a grant is the end, but for its renewal */
#else
#define RUNS 0
#endif

/* ---- members --------------------------------------------------------------------------------- */

byte K[N];
byte F[N];
#ifdef TIMED
byte lease[N]; /* of those of its owner, the one that K's expiry is of: 0 first, 1 second */
#define SET_LEASE(n, which) lease[n] = which
#else
#define SET_LEASE(n, which) skip
#endif
#if LOSS
byte losses;
#endif
#ifdef HLC
byte issued; /* the greatest number so far */
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
byte acquires[A], acquired[A]; /* requests in flight, replies that count: a bit for each member */
byte confirms[A], confirmed[A];
#if RAISES
byte stale[A]; /* requests to confirm in flight from before the raise, */
byte was[A];   /* and the fence that they bring; 0: not raised */
#endif
#if RENEWS
byte renews[A], renewed[A];
byte phase[A]; /* 0, SENT, KEPT (it is renewed) */
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
byte ended[A]; /* how many of its leases */
#define IS_LIVE(a) (ended[a] == 0 || (ended[a] == 1 && IS_KEPT(a)))
#endif

/* What can't matter any more is forgotten, so that it doesn't make states differ. */
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

/* ---- a member does what it is asked ---------------------------------------------------------- */

#ifdef DELAY
/* Leases that may have been forgotten: bit a is the first of attempt a, bit A + a its second. */
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
    fence[a] = F[n];
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

/* In turn: acquired, and the reply arrives or does not; confirmed, or confirmed for an attempt that
 * has no use for it; refused, so raised; a confirmation from before the raise; renewed. */
#define ASK_TO_ACQUIRE(a, n) \
    :: d_step { (acquires[a] & BIT(n)) && K[n] == 0 && state[a] == ACQUIRING && COUNTS(n) -> \
                acquire(a, n); acquired[a] = acquired[a] | BIT(n); \
                fence[a] = MAX(fence[a], F[n]) } \
    :: d_step { (acquires[a] & BIT(n)) && K[n] == 0 && CAN_BE_LATE(a) -> acquire(a, n) }

#define ASK_TO_CONFIRM(a, n) \
    :: d_step { (confirms[a] & BIT(n)) && K[n] == a + 1 && !IS_REFUSED(a, n) -> \
                confirms[a] = confirms[a] & ~BIT(n); write_fence(n, fence[a]); \
                if :: state[a] == CONFIRMING && CONFIRMS(n) -> \
                   confirmed[a] = confirmed[a] | BIT(n) \
                :: else fi; \
                tidy(a) }

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

/* Where commands don't run, nothing but a renewal comes after a grant. */
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

/* ---- all of it ------------------------------------------------------------------------------- */

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
