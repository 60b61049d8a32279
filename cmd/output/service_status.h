/* SPDX-License-Identifier: MIT */
/* service_status: tells the service manager (systemd) that rlock waits for the lock. */
#ifndef SERVICE_STATUS_H
#define SERVICE_STATUS_H

#include "output/report.h"

#include <rlock.h>

/* A struct of zeros: rlock does not wait. Only service_status.c writes the field. */
struct service_status {
    bool is_waiting; /* the service manager was told that rlock waits */
};

/*
 * service_status_show: if a service manager runs rlock (NOTIFY_SOCKET is set), tell the manager
 * what rlock waits for, and ask for more time until the service is ready. `obstacle` NULL: the wait
 * is over, so clear the status. Doesn't block; ignores failures.
 */
void service_status_show(struct service_status *status, const struct report *report,
                         const struct rlock_obstacle *obstacle);

#endif
