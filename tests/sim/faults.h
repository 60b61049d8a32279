/* SPDX-License-Identifier: MIT */
/*
 * faults: the families of simulated worlds: which faults the worlds of each family have.
 *
 * A world is one simulated run. Its seed decides how many clients, which TTLs, how bad the network
 * is, and when faults come: to a server at a time, to a client before a system call (process.h).
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdint.h>

/* faults_family_of: the family of a seed. faults_family_name: the name of a family, or NULL. */
int faults_family_of(uint64_t seed);
const char *faults_family_name(int family);

/*
 * faults_run_world: draw a world of this family from the seed, and run it to its end. Call it only
 * once in a process: it frees nothing.
 */
void faults_run_world(uint64_t seed, int family);

#endif
