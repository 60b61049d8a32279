/*
 * checks: the assertions about fence.pml. Each flag switches one on.
 *
 * What must hold:
 *   CHK_GRANT     the fence of a grant is greater than every fence that was granted before the
 *                 grant's confirm requests were sent
 *   CHK_SEQ       the fence of a grant is greater than every fence that was granted before the
 *                 attempt sent its first request
 *   CHK_UNIQ      no two grants have the same fence
 *   CHK_RENEW     no lease is renewed if a greater fence was granted before the renewal was sent.
 *                 So an owner finds out that another owner has held the lock in between, even if
 *                 the lock is free again
 *   CHK_MUTEX     no two commands run at the same time
 *   CHK_START     commands start in the order of their fences
 *
 * What must be found violated. Each of these says that something never happens. If one of them
 * holds, the model can't do that thing, and the checks above prove nothing:
 *   CHK_REACH     at least one attempt is not granted
 *   CHK_RAISED    no attempt that raised its fence is granted
 *   CHK_RENEWED   no lease is renewed
 *   CHK_REPAIRED  each renewal has a majority without the members that have put the lock back
 */

#if defined(CHK_SEQ) || defined(CHK_GRANT)
byte before[A]; /* for each attempt: the greatest fence that was granted before it */
#endif
#if defined(CHK_SEQ) || defined(CHK_GRANT) || defined(CHK_RENEW)
byte greatest; /* the greatest fence that was granted so far */
#endif
#ifdef CHK_RENEW
bool overtaken[A]; /* a greater fence had been granted when the attempt sent its renewal */
#endif
#ifdef CHK_UNIQ
bool used[F_MAX + 1];
#endif
#ifdef CHK_START
byte last_start;
#endif
#ifdef CHK_MUTEX
byte running;
#endif
#ifdef CHK_REACH
byte grants;
#endif
#ifdef CHK_REPAIRED
byte put_back[A];
#endif

#ifdef CHK_SEQ
#define NOTE_ACQUIRES(a) before[a] = greatest
#else
#define NOTE_ACQUIRES(a) skip
#endif
#ifdef CHK_GRANT
#define NOTE_CONFIRMS(a) before[a] = greatest
#else
#define NOTE_CONFIRMS(a) skip
#endif
#ifdef CHK_RENEW
#define NOTE_RENEWS(a) overtaken[a] = greatest > fence[a]
#else
#define NOTE_RENEWS(a) skip
#endif

inline check_grant(a) {
#if defined(CHK_SEQ) || defined(CHK_GRANT)
    assert(fence[a] > before[a]);
    before[a] = 0;
#endif
#if defined(CHK_SEQ) || defined(CHK_GRANT) || defined(CHK_RENEW)
    greatest = MAX(greatest, fence[a]);
#endif
#ifdef CHK_UNIQ
    assert(!used[fence[a]]);
    used[fence[a]] = true;
#endif
#ifdef CHK_REACH
    grants++;
    assert(grants < A);
#endif
#ifdef CHK_RAISED
    assert(was[a] == 0);
#endif
    skip
}

inline check_renewed(a) {
#ifdef CHK_RENEW
    assert(!overtaken[a]);
#endif
#ifdef CHK_RENEWED
    assert(false);
#endif
#ifdef CHK_REPAIRED
    assert(COUNT(renewed[a] & ~put_back[a]) >= QUORUM);
#endif
    skip
}

inline check_start(a) {
#ifdef CHK_START
    assert(fence[a] > last_start);
    last_start = fence[a];
#endif
#ifdef CHK_MUTEX
    running++;
    assert(running <= 1);
#endif
    skip
}

inline stop(a) {
#ifdef CHK_MUTEX
    if :: state[a] == RUNNING -> running-- :: else fi
#endif
    skip
}
