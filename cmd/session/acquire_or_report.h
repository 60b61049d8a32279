/* SPDX-License-Identifier: MIT */
/* acquire_or_report: ask for the lock of a session, and say why it was not had. */
#ifndef CLAIM_H
#define CLAIM_H

#include "session/session.h"

/*
 * claim: the lock, waiting for it as the options want. VERDICT_GRANTED fills
 * the grant and when it came; what else comes has been said.
 */
enum verdict claim(struct session *session, struct rlock_grant *grant, int64_t *granted_ms);

#endif
