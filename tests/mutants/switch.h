/* SPDX-License-Identifier: MIT */
/*
 * mutant_switch: decides at run time which of the mutants in the program is active.
 *
 * places.py writes a call of mutant_is() into each place that it can change. This file is then part
 * of the program, as lib/base/mutant_switch.h.
 */
#ifndef MUTANT_SWITCH_H
#define MUTANT_SWITCH_H

extern unsigned mutant_chosen;
extern unsigned char *mutant_reached;

/*
 * Tells whether the program is to behave as mutant n here. If `matters`, the mutant would compute
 * another value here than the program does, and mutant_is() notes that a test could see it.
 */
static inline _Bool mutant_is(unsigned n, _Bool matters)
{
    if (matters)
        mutant_reached[n] = 1;
    return n == mutant_chosen;
}

#endif
