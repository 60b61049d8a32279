/* SPDX-License-Identifier: MIT */
/* page: text that is gathered, to be written to stdout at once. */
#include "output/page.h"

#include "output/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool make_room(struct page *page, size_t more)
{
    size_t room = page->room;
    char *grown;

    while (room < page->used + more)
        room = room * 2 + 512;
    if (room == page->room)
        return true;
    grown = realloc(page->text, room);
    if (grown == NULL)
        return false;
    page->text = grown;
    page->room = room;
    return true;
}

void page_add(struct page *page, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !make_room(page, (size_t)n + 1)) {
        page->has_failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(page->text + page->used, (size_t)n + 1, format, args);
    va_end(args);
    page->used += (size_t)n;
}

const char *page_text(const struct page *page)
{
    return page->text == NULL ? "" : page->text;
}

void page_empty(struct page *page)
{
    page->used = 0;
    page->has_failed = false;
    if (page->text != NULL)
        page->text[0] = '\0';
}

bool page_write(struct page *page)
{
    bool good = !page->has_failed && report_text(page_text(page));

    page_empty(page);
    return good;
}

void page_fini(struct page *page)
{
    free(page->text);
    *page = (struct page){.text = NULL};
}
