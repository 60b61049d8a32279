/*
 * handover: a model of a lock that a release grants to the first waiter. spin (6.5) searches every
 * order of messages, of ticks of time, and of steps of the server's clock.
 *
 * Usually rlock's release only reserves the lock for the first waiter, and wakes it. The waiter
 * asks for the lock, and the server grants it: two round trips between two commands. The direct
 * grant, which is modelled here, saves one of them: the script of the release also draws the
 * waiter's fence, and the wake-up carries this fence. The waiter starts its command when it reads
 * the wake-up, and sends a renewal then or later. Until the renewal arrives, the server keeps the
 * lock for the waiter for CLAIM ticks only, so that a dead waiter doesn't keep it for long. rlock
 * does this if the holds are brief (lib/lua/shared/direct.lua).
 *
 * The model answers one question. A wake-up may take any time. So how does the waiter know that the
 * CLAIM ticks, which began with the release, are not over when it reads the wake-up?
 *
 * Answer: the wake-up names the last request of this waiter that the server had executed before the
 * grant. The waiter counts CLAIM ticks from before it sent that request, as rlock counts every
 * lease. The server's clock can't tell: whoever counts from the server's time in the wake-up
 * (BY_CLOCK, BY_CLOCK_CHECKED) may run a command beside another one, for example:
 * 1. A waiter looks at tick 0. The server replies with its time, 8.
 * 2. The server's clock is set forward by one tick, to 9.
 * 3. The holder releases. The server reserves the lock until its time 11, which is tick 2.
 * 4. The wake-up arrives at tick 1. The server's time in it, 9, is tick 1 by the reply of step 1.
 *    That time isn't in the future, so the waiter can't see that the clock was set. It starts its
 *    command, and believes in the lease until tick 3.
 * 5. At tick 2 the lock expires, and another waiter starts its command.
 *
 * There are one server, one lock, and A waiters. The server's state:
 *
 *   holder    who has the lock: 0: nobody; 1: the first holder; w + 2: waiter w
 *   is_whole  false: the lock is reserved for the waiter for CLAIM ticks; true: the waiter has it
 *             for LEASE ticks
 *   expires   the server's time at which the lock expires
 *   F         the last fence
 *
 * What the server does:
 *
 *   look      A waiter asks for the lock. If the lock is free or reserved for this waiter, the
 *             server grants it for LEASE ticks. Else the server puts the waiter into the queue, and
 *             notes the number of this look.
 *   grant     The lock is free and a waiter is in the queue: the server reserves the lock for this
 *             waiter, draws a fence, and sends a wake-up with the fence, the server's time and the
 *             number of this waiter's last look. In rlock the script of a release does
 *             this; in the model the script of another waiter's look may do it, too.
 *   renew     If the waiter has the lock, or if the lock is free and the last fence is the
 *             waiter's, the server grants the lock to this waiter for LEASE ticks.
 *   release   If the waiter has the lock, the server frees it.
 *   shorten   If the lock is reserved for more than CLAIM ticks, because the server's clock was set
 *             back, the server reserves it for CLAIM ticks from now.
 *
 * Until when the waiter believes that the lock is reserved, one of:
 *   (default)         CLAIM ticks after it sent the look that the wake-up names
 *   BY_LAST_LOOK      CLAIM ticks after it sent the last look to which it has read a reply
 *   BY_CLOCK          CLAIM ticks after the server's time in the wake-up. The waiter converts that
 *                     time into its own by the reply to the look that the wake-up names.
 *   BY_CLOCK_CHECKED  as BY_CLOCK; but a waiter that finds the converted time in the future doesn't
 *                     start its command
 *   BY_RECEIPT        CLAIM ticks after it read the wake-up
 * When this time has passed, the waiter doesn't start its command. It sends a look, as rlock does
 * today.
 *
 * Faults:
 *   Each message takes any time, or is lost. A waiter may be stopped or killed at any step: then it
 *   takes no further step. Its guard kills the command before the lease ends.
 *   STEPS=k  At most k times the server's clock is set by 1 to SHIFT ticks: back at any time;
 *            forward only while no waiter has the lock, because no lease survives a clock that is
 *            set forward. A clock that is set by one tick also stands for a clock that runs at
 *            another rate.
 *   CUT      If a waiter has not read its wake-up, the server may reserve the lock for only ABSENT
 *            ticks from now. (rlock's acquire.lua does this to turns only: ABSENT_MS.)
 *   TAKE_BACK  A wake-up stays in a list on the server until the waiter's connection reads it.
 *            While the wake-up is in the list, the server may remove it, and free the lock. (The
 *            waiter was killed, or its connection is broken: nobody has to wait for its ticks.)
 * Bounds:
 *   A=2      the number of waiters
 *   LOOKS=2  how often waiter 0 may look; the others look once
 *   T_MAX=6  the number of ticks
 *   Each waiter renews at most once.
 *
 * What must hold:
 *   CHK_MUTEX   no two commands run at the same time
 *   CHK_START   commands start in the order of their fences
 * What must be found violated. Each of these says that something never happens:
 *   CHK_DIRECT  no command is started by a wake-up
 *   CHK_WHOLE   no lease of such a command is renewed
 *   CHK_CHAIN   no two commands are started by wake-ups
 *   CHK_ASKED   no waiter whose wake-up came too late is granted the lock by a look
 *
 * Variants with a part left out or changed:
 *   LATEST_LOOK    a waiter starts its command only by a wake-up that names the latest of its looks
 *   TAKE_BACK_SENT the server frees the lock although the wake-up has left the list
 *   COUNTED=n      the waiter counts n ticks instead of CLAIM
 *   NO_CHECK       the command starts even if its lease has ended
 *   NO_KILL        the command isn't killed when its lease ends
 *   RENEWED_LATE   the waiter counts a renewed lease from the reply to the renewal
 *   STEP_IN_LEASE  the clock is set forward also while a waiter has the lock
 *
 * Not modelled: two wake-ups for one waiter (the later replaces the earlier; an earlier one names
 * an earlier look, so it starts no command), several locks, shared locks, quorums.
 */

#ifndef A
#define A 2
#endif
#ifndef LOOKS
#define LOOKS 2
#endif
#ifndef STEPS
#define STEPS 0
#endif
#ifndef SHIFT
#define SHIFT 3
#endif
#ifndef T_MAX
#define T_MAX 6
#endif
#ifndef CLAIM
#define CLAIM 2
#endif
#ifndef LEASE
#define LEASE 3
#endif
#define ABSENT (CLAIM - 1)
#ifndef COUNTED
#define COUNTED CLAIM
#endif

/* ---- time and the server --------------------------------------------------------------------- */

byte now;         /* ticks since the start, as every waiter counts them */
byte ahead = 8;   /* the server's time minus `now` */
byte steps;
#define CLOCK (now + ahead)

byte holder = 1;
bool is_whole = true;
byte expires;
byte F = 1;

/* ---- waiters --------------------------------------------------------------------------------- */

#define WAITING 0
#define RUNNING 1
#define OVER 2

byte state[A];
byte fence[A];
byte ends[A]; /* when the lease of the running command ends */

/* Looks count from 1; element w * LOOKS + number - 1 is about one look of waiter w. */
#define LOOK(w, number) (w * LOOKS + number - 1)
byte n_looks[A];         /* how many looks the waiter has sent */
byte sent[A * LOOKS];    /* when the waiter sent the look */
bool on_way[A * LOOKS];  /* the look has not reached the server yet */
byte heard[A];           /* the last look to which the waiter has read the reply "held"; 0: none */
byte noted[A];           /* the last look that the server has noted; 0: none */
bool is_queued[A];
byte granting[A];        /* the look to which the reply "granted" is on its way; 0: none */
byte granted_fence[A];
#if defined(BY_CLOCK) || defined(BY_CLOCK_CHECKED)
byte clock_at[A * LOOKS]; /* the server's time in the reply to the look */
#define NOTE_CLOCK(look) clock_at[look] = CLOCK
#else
#define NOTE_CLOCK(look) skip
#endif

/* The wake-up that the waiter has not read yet. */
byte wake_look[A]; /* 0: there is none */
byte wake_fence[A];
#ifdef TAKE_BACK
bool is_listed[A]; /* the wake-up is still in the list on the server */
#define LIST(w) is_listed[w] = true
#define UNLIST(w) is_listed[w] = false
#define IS_READABLE(w) (wake_look[w] > 0 && !is_listed[w])
#else
#define LIST(w) skip
#define UNLIST(w) skip
#define IS_READABLE(w) (wake_look[w] > 0)
#endif
#if defined(BY_CLOCK) || defined(BY_CLOCK_CHECKED)
byte wake_clock[A];
#define TELL_CLOCK(w) wake_clock[w] = CLOCK
#define FORGET_CLOCKS(w) \
    wake_clock[w] = 0; \
    clock_at[LOOK(w, 1)] = 0; \
    clock_at[LOOK(w, LOOKS)] = 0
#else
#define TELL_CLOCK(w) skip
#define FORGET_CLOCKS(w) skip
#endif

byte renewal[A]; /* NONE, SENT: on its way to the server, DONE: its reply is on its way, READ */
#define NONE 0
#define SENT 1
#define DONE 2
#define READ 3
byte renewal_sent[A];

/* ---- what is asserted ------------------------------------------------------------------------ */

byte running = 1;
#ifdef CHK_START
byte last_start = 1;
#endif
#if defined(CHK_WHOLE) || defined(CHK_CHAIN)
bool is_direct[A];
#endif
#ifdef CHK_ASKED
bool was_late[A];
#endif

inline check_start(w) {
#ifdef CHK_MUTEX
    assert(running == 0);
#endif
#ifdef CHK_START
    assert(fence[w] > last_start);
    last_start = fence[w];
#endif
    running++
}

inline check_direct(w) {
#ifdef CHK_DIRECT
    assert(false);
#endif
#ifdef CHK_CHAIN
    is_direct[w] = true;
    assert(!is_direct[0] || !is_direct[1]);
#endif
#ifdef CHK_WHOLE
    is_direct[w] = true;
#endif
    skip
}

inline check_whole(w) {
#ifdef CHK_WHOLE
    assert(!is_direct[w]);
#endif
    skip
}

inline note_late(w) {
#ifdef CHK_ASKED
    was_late[w] = true;
#endif
    skip
}

inline check_asked(w) {
#ifdef CHK_ASKED
    assert(!was_late[w]);
#endif
    skip
}

inline clear_wake_up(w) {
    wake_look[w] = 0;
    wake_fence[w] = 0;
    UNLIST(w)
}

/* Clears what the waiter needs no more. Else spin would search states separately that differ only
 * in values that nobody reads. */
inline tidy(w) {
    if
    :: state[w] != WAITING ->
        sent[LOOK(w, 1)] = 0;
        sent[LOOK(w, LOOKS)] = 0;
        heard[w] = 0;
        granting[w] = 0;
        granted_fence[w] = 0;
        FORGET_CLOCKS(w);
        clear_wake_up(w)
    :: else
    fi;
    if
    :: state[w] == OVER ->
        ends[w] = 0;
        renewal_sent[w] = 0;
        if :: renewal[w] != SENT -> renewal[w] = READ; fence[w] = 0 :: else fi
    :: else
    fi
}

/* ---- the server ------------------------------------------------------------------------------ */

inline free() {
    holder = 0;
    is_whole = true;
    expires = 0
}

inline give_lease(w) {
    holder = w + 2;
    is_whole = true;
    expires = CLOCK + LEASE
}

inline grant_directly(w) {
    holder = w + 2;
    is_whole = false;
    expires = CLOCK + CLAIM;
    F++;
    is_queued[w] = false;
    if
    :: state[w] == WAITING ->
        wake_look[w] = noted[w];
        wake_fence[w] = F;
        LIST(w);
        TELL_CLOCK(w)
    :: else
    fi
}

inline execute_look(w, number) {
    on_way[LOOK(w, number)] = false;
    if
    :: holder == 0 || holder == w + 2 ->
        if :: holder == 0 -> F++ :: else fi;
        give_lease(w);
        is_queued[w] = false;
        if
        :: state[w] == WAITING ->
            granting[w] = number;
            granted_fence[w] = F
        :: else
        fi
    :: else ->
        is_queued[w] = true;
        if :: number > noted[w] -> noted[w] = number :: else fi;
        if :: state[w] == WAITING -> NOTE_CLOCK(LOOK(w, number)) :: else fi
    fi
}

/* First case: the reply is read at once; second case: a reply "held" is lost, and a reply "granted"
 * is read later, or never. */
#define ASK_LOOK(w, number) \
    :: d_step { number <= LOOKS && on_way[LOOK(w, number)] -> execute_look(w, number); \
                if :: holder != w + 2 && state[w] == WAITING && number > heard[w] -> \
                      heard[w] = number \
                   :: else fi } \
    :: d_step { number <= LOOKS && on_way[LOOK(w, number)] -> execute_look(w, number) }

#ifdef CUT
#define SHORTEN_UNREAD(w) \
    :: d_step { holder == w + 2 && !is_whole && wake_look[w] > 0 && expires > CLOCK + ABSENT -> \
                expires = CLOCK + ABSENT }
#else
#define SHORTEN_UNREAD(w)
#endif

#ifdef TAKE_BACK
#ifdef TAKE_BACK_SENT
#define MAY_TAKE_BACK(w) true
#else
#define MAY_TAKE_BACK(w) is_listed[w]
#endif
#define TAKE_UNREAD_BACK(w) \
    :: d_step { is_listed[w] -> is_listed[w] = false } \
    :: d_step { holder == w + 2 && !is_whole && wake_look[w] > 0 && MAY_TAKE_BACK(w) -> \
                free(); if :: is_listed[w] -> clear_wake_up(w) :: else fi }
#else
#define TAKE_UNREAD_BACK(w)
#endif

#define SERVE(w) \
    ASK_LOOK(w, 1) \
    ASK_LOOK(w, 2) \
    :: d_step { holder == 0 && is_queued[w] -> grant_directly(w) } \
    :: d_step { renewal[w] == SENT && (holder == w + 2 || holder == 0 && F == fence[w]) -> \
                give_lease(w); renewal[w] = DONE; tidy(w) } \
    :: d_step { state[w] == OVER && holder == w + 2 -> free() } \
    SHORTEN_UNREAD(w) \
    TAKE_UNREAD_BACK(w)

#define EXPIRE :: d_step { holder >= 2 && CLOCK >= expires -> free() }
#define SHORTEN :: d_step { holder >= 2 && !is_whole && expires > CLOCK + CLAIM -> \
                            expires = CLOCK + CLAIM }

#ifdef STEP_IN_LEASE
#define MAY_STEP_FORWARD true
#else
#define MAY_STEP_FORWARD (holder < 2)
#endif
#if STEPS
#define STEP(ticks) \
    :: d_step { steps < STEPS && ticks <= SHIFT && MAY_STEP_FORWARD -> \
                steps++; ahead = ahead + ticks } \
    :: d_step { steps < STEPS && ticks <= SHIFT -> steps++; ahead = ahead - ticks }
#define STEP_CLOCK STEP(1) STEP(2) STEP(3) STEP(4)
#else
#define STEP_CLOCK
#endif

/* ---- a waiter -------------------------------------------------------------------------------- */

/* Sets `lease_end`: until when the waiter believes that the lease lasts which its wake-up grants.
 * 0: the waiter can't tell. */
int lease_end;
#define NAMED(w) LOOK(w, wake_look[w])
inline find_end(w) {
#if defined(BY_RECEIPT)
    lease_end = now + COUNTED
#elif defined(BY_LAST_LOOK)
    lease_end = (heard[w] > 0 -> sent[LOOK(w, heard[w])] + COUNTED : 0)
#elif defined(BY_CLOCK) || defined(BY_CLOCK_CHECKED)
    if
    :: heard[w] >= wake_look[w] ->
        lease_end = sent[NAMED(w)] + wake_clock[w] - clock_at[NAMED(w)] + COUNTED
    :: else
    fi;
#ifdef BY_CLOCK_CHECKED
    if :: lease_end > now + COUNTED -> lease_end = 0 :: else fi
#endif
#else
    lease_end = sent[NAMED(w)] + COUNTED
#endif
}

#ifdef NO_CHECK
#define IN_TIME true
#else
#define IN_TIME (lease_end > now)
#endif

#ifdef LATEST_LOOK
#define IS_TRUSTED(w) (wake_look[w] == n_looks[w])
#else
#define IS_TRUSTED(w) true
#endif

inline start(w) {
    state[w] = RUNNING;
    ends[w] = lease_end;
    check_start(w);
    tidy(w)
}

inline read_wake_up(w) {
    find_end(w);
    if
    :: IN_TIME && IS_TRUSTED(w) ->
        fence[w] = wake_fence[w];
        start(w);
        check_direct(w)
    :: else ->
        note_late(w)
    fi;
    clear_wake_up(w);
    lease_end = 0
}

inline read_granted(w) {
    lease_end = sent[LOOK(w, granting[w])] + LEASE;
    if
    :: IN_TIME ->
        fence[w] = granted_fence[w];
        check_asked(w);
        start(w)
    :: else
    fi;
    granting[w] = 0;
    granted_fence[w] = 0;
    lease_end = 0
}

inline be_over(w) {
    if :: state[w] == RUNNING -> running-- :: else fi;
    state[w] = OVER;
    tidy(w)
}

#ifdef RENEWED_LATE
#define RENEWED_END(w) now + LEASE
#else
#define RENEWED_END(w) renewal_sent[w] + LEASE
#endif

#define WAIT(w, looks) \
    :: d_step { state[w] == WAITING && n_looks[w] < looks -> n_looks[w]++; \
                sent[LOOK(w, n_looks[w])] = now; on_way[LOOK(w, n_looks[w])] = true } \
    :: d_step { state[w] == WAITING && granting[w] > 0 -> read_granted(w) } \
    :: d_step { state[w] == WAITING && IS_READABLE(w) -> read_wake_up(w) } \
    :: d_step { state[w] == RUNNING && renewal[w] == NONE -> \
                renewal[w] = SENT; renewal_sent[w] = now } \
    :: d_step { state[w] == RUNNING && renewal[w] == DONE -> \
                ends[w] = RENEWED_END(w); renewal[w] = READ; \
                renewal_sent[w] = 0; check_whole(w) } \
    :: d_step { state[w] != OVER -> be_over(w) }

#ifdef NO_KILL
#define MAY_TICK(w) true
#else
#define MAY_TICK(w) (state[w] != RUNNING || ends[w] > now + 1)
#endif

/* ---- the start, and all steps ---------------------------------------------------------------- */

init {
end:
    do
    :: d_step { holder == 1 -> holder = 0; running-- }
    WAIT(0, LOOKS)
    SERVE(0)
#if A > 1
    WAIT(1, 1)
    SERVE(1)
#endif
#if A > 2
    WAIT(2, 1)
    SERVE(2)
#endif
    EXPIRE
    SHORTEN
    STEP_CLOCK
    :: d_step { now < T_MAX && MAY_TICK(0) && MAY_TICK(A - 1) && MAY_TICK(A / 2) -> now++ }
    od
}
