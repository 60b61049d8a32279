/*
 * checks: what must hold of fence.pml.
 *
 * Any of
 *   CHK_GRANT   a fence is greater than all that were granted before its confirmations were sent
 *   CHK_SEQ     the same with: before the first request of its attempt was sent
 *   CHK_UNIQ    no fence is granted twice
 *   CHK_RENEW   no lease is renewed if a greater fence was granted before that renewal was sent: an
 *               owner whose lock was another's in between is told so, also when it is free again
 *   CHK_MUTEX   no two commands run             CHK_START     fences grow in the order of starts
 * and what can be done, so that these are not true of a model in which nothing happens; each fails
 *   CHK_REACH   all attempts are never granted           CHK_RAISED   none after a raise
 *   CHK_RENEWED no lease is renewed        CHK_REPAIRED  none to which a put back lock was needed
 */

#if defined(CHK_SEQ) || defined(CHK_GRANT)
byte before[A]; /* the greatest fence that was granted before */
#endif
#if defined(CHK_SEQ) || defined(CHK_GRANT) || defined(CHK_RENEW)
byte greatest; /* fence that was granted */
#endif
#ifdef CHK_RENEW
bool overtaken[A]; /* when the renewal was sent */
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
