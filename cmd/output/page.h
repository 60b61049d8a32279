/* SPDX-License-Identifier: MIT */
/* page: text that is gathered, to be written to stdout at once. */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Zero is an empty page. */
struct page {
    char *text; /* NULL: nothing yet */
    size_t used;
    size_t room;
    bool has_failed; /* no memory: something is missing */
};

void page_add(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* page_text: what was gathered; "" at first. */
const char *page_text(const struct page *page);

/* page_empty: begin again. */
void page_empty(struct page *page);

/* page_write: write all of it, and begin again. False: it can't be, or something is missing. */
bool page_write(struct page *page);

void page_fini(struct page *page);

#endif
