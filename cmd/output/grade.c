/* SPDX-License-Identifier: MIT */
/* grade: the words and colours of the grades that doctor gives. */
#include "output/grade.h"

const struct grade grade_table[RLOCK_GRADE_UNSAFE + 1] = {
    [RLOCK_GRADE_GOOD] = {"good", COLOUR_GREEN},
    [RLOCK_GRADE_UNKNOWN] = {"unknown", COLOUR_YELLOW},
    [RLOCK_GRADE_WEAK] = {"weak", COLOUR_YELLOW},
    [RLOCK_GRADE_UNSAFE] = {"unsafe", COLOUR_RED},
};
