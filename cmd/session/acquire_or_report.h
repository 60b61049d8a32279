/* SPDX-License-Identifier: MIT */
/* acquire_or_report: ask for the lock of a session, and say why it was not had. */
#ifndef ACQUIRE_OR_REPORT_H
#define ACQUIRE_OR_REPORT_H

#include "session/session.h"

/*
 * claim: the lock, waiting for it as the options want. REASON_GRANTED fills
 * the grant and when it came; what else comes has been said.
 */
enum exit_reason acquire_or_report(struct session *session, struct rlock_grant *grant,
                                   int64_t *granted_ms);

#endif
