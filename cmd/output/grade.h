/* SPDX-License-Identifier: MIT */
/* grade: the words and colours of the grades that doctor gives. */
#ifndef GRADE_H
#define GRADE_H

#include "output/terminal.h"

#include <rlock_admin.h>

struct grade {
    const char *word;
    enum colour colour;
};

/* The row of each enum rlock_grade. */
extern const struct grade grade_table[RLOCK_GRADE_UNSAFE + 1];

#endif
