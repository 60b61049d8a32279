/* SPDX-License-Identifier: MIT */
/* test_cmd_show: show_lock() writes text and JSON, also with hostile bytes; lines are sorted. */
#include "output/outbuf.h"
#include "output/show.h"
#include "output/wall_time.h"
#include "tap.h"

#include <stdlib.h>

#define YEAR_2100_MS INT64_C(4102444800000)

static void test_lock(void)
{
    struct rlock_party holder = {.host = "h\"\n", .pid = "12x", .text = "somebody", .slot = 3};
    struct rlock_party waiter = {.pid = "42",
                                 .text = "another",
                                 .since_ms = 1000,
                                 .for_ms = 1500,
                                 .slot = -1,
                                 .renewed_ms = -1};
    struct rlock_view view = {.key = "k\x1b",
                              .seen = RLOCK_SEEN_EXCLUSIVE,
                              .left_ms = -1,
                              .fence = UINT64_MAX,
                              .name = "n",
                              .holders = &holder,
                              .n_holders = 1,
                              .n_all = 3};
    struct terminal none = {.is_terminal = false};
    struct outbuf page = {.text = NULL};
    struct shown shown;

    setenv("TZ", "UTC0", 1);
    show_init(&shown, false, &none);
    show_lock(&shown, &view);
    show_waiter(&shown, &waiter);
    show_end(&shown, &page);
    is_str(outbuf_text(&page),
           "k\\x1b: held\n    holder   somebody\n    slot     3\n    holders  2 more\n    left     "
           "for ever\n"
           "    fence    18446744073709551615\n    waiting  1\n"
           "          1  another, for 1s\n");
    outbuf_clear(&page);
    show_fini(&shown);
    show_init(&shown, true, &none);
    show_lock(&shown, &view);
    show_waiter(&shown, &waiter);
    show_end(&shown, &page);
    is_str(
        outbuf_text(&page),
        "{\"key\":\"k\\u001b\",\"mode\":\"exclusive\",\"left_ms\":-1,"
        "\"fence\":18446744073709551615,\"holders\":[{\"host\":\"h\\\"\\u000a\",\"slot\":3}],"
        "\"waiting\":1,"
        "\"waiters\":[{\"pid\":42,\"since\":\"1970-01-01T00:00:01.000Z\",\"waited_ms\":1500}]}\n");
    outbuf_clear(&page);
    view.waiting = -1;
    show_as_row(&page, &view);
    is_str(outbuf_text(&page), "exclusive\tfor ever\t-\t-\tsomebody, and 2 more");
    outbuf_clear(&page);
    view.n_all = 1;
    holder.hold_left_ms = YEAR_2100_MS + 30000 - wall_time_now_ms(); /* the test takes less */
    show_as_row(&page, &view);
    is_str(outbuf_text(&page), "exclusive\tfor ever\t-\t-\tsomebody, until 2100-01-01 00:00",
           "a row has the end of a person's hold, and no number of others if there are none");
    show_fini(&shown);
    outbuf_clear(&page);
    view = (struct rlock_view){.key = "old", .seen = RLOCK_SEEN_FREE, .name = "", .wrong = ""};
    show_init(&shown, false, &none);
    show_lock(&shown, &view);
    show_clear(&shown);
    view.key = "new";
    show_lock(&shown, &view);
    show_end(&shown, &page);
    ok(strstr(outbuf_text(&page), "new") != NULL && strstr(outbuf_text(&page), "old") == NULL);
    outbuf_fail(&shown.waiters);
    show_end(&shown, &page);
    ok(page.has_failed, "for a part without memory the whole page has failed");
    show_fini(&shown);
    outbuf_fini(&page);
}

static void test_key(void)
{
    char long_key[1001];
    struct outbuf shown = {.text = NULL};

    memset(long_key, 'k', 1000);
    long_key[1000] = '\0';
    show_key(&shown, long_key, SIZE_MAX);
    is_str(outbuf_text(&shown), long_key, "a long key is not cut");
    outbuf_fini(&shown);
}

static void test_rows(void)
{
    static const char *const keys[] = {"b", "a", "c", "a", "", "b"};
    struct sorted_lines rows = {.line = NULL};
    char key[24];

    sorted_lines_sort(&rows);
    is_int((long long)rows.n, 0, "an empty set can be sorted");
    for (int i = 0; i < 6; i++)
        sorted_lines_add(&rows, keys[i], keys[i]);
    sorted_lines_sort(&rows);
    is_int((long long)rows.n, 4, "of lines with the same key one stays");
    is_str(rows.line[0].key, "", "the lines are sorted by key");
    is_str(rows.line[3].text, "c", "each key keeps its text");
    sorted_lines_fini(&rows);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%03d", 999 - i);
        sorted_lines_add(&rows, key, "");
    }
    sorted_lines_sort(&rows);
    ok(rows.n == 1000 && strcmp(rows.line[999].key, "999") == 0 && !rows.has_failed);
    sorted_lines_fini(&rows);
}

TESTS(test_lock, test_key, test_rows)
