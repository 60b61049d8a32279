/* SPDX-License-Identifier: MIT */
/* host: looks whether this machine has what rlock needs beside the server. */
#ifndef HOST_H
#define HOST_H

#include "options/options.h"
#include "rlock_admin.h"

/* What host_look() has found. */
struct host {
    bool is_root;          /* the user is root, from whom no process is hidden */
    bool has_proc;         /* /proc is mounted and can be read */
    char hidepid[24];      /* the option of /proc that hides the processes of others; "": none */
    int cgroup_error;      /* errno of cgroup_make(); 0: a control group can be made */
    size_t n_descriptors;  /* how many descriptors a process may open */
    char clock_source[32]; /* the kernel's clock source; "": not known */
    size_t clock_step_us;  /* the resolution of CLOCK_BOOTTIME; 0: there is no such clock */
    char tls_error[200];   /* why rediss:// can't be used; "": it can */
};

/*
 * host_look: look at the machine. `root` comes before the paths of /proc and /sys; "" outside of
 * tests. Makes a control group, and removes it again.
 */
void host_look(struct host *host, const char *root);

/*
 * host_report: pass to the examiner a finding for each thing that a run with these options needs
 * changed, or one finding that all is good.
 */
void host_report(const struct host *host, const struct options *options,
                 const struct rlock_examiner *examiner);

#endif
