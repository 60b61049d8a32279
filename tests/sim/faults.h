/* SPDX-License-Identifier: MIT */
/*
 * faults: the families of worlds: what can go wrong in each, and how often.
 *
 * A world is drawn by its seed: how many clients, which TTLs, how bad the network is. Faults of
 * servers come at random times; those of clients at random calls, see process.h.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdint.h>

/* faults_family_of: the family of a seed. faults_family_name: NULL: no family has this number. */
int faults_family_of(uint64_t seed);
const char *faults_family_name(int family);

/* faults_run_world: a world from begin to end, once in a process: it frees nothing. */
void faults_run_world(uint64_t seed, int family);

#endif
