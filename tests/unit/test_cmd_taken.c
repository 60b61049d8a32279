/* SPDX-License-Identifier: MIT */
/* test_cmd_taken: a lock that isn't free is described by who holds it and since when. */
#include "output/taken.h"
#include "tap.h"

#define WHO "tar of backup@web1, pid 4711"

static const struct {
    enum rlock_seen seen;
    int64_t since_ms, for_ms, renewed_ms, left_ms, age_ms;
    const char *wanted;
} texts[] = {
    {RLOCK_SEEN_EXCLUSIVE, 1, 221000, 4000, 26000, 0, "held for 3m41s by " WHO "; renewed 4s ago"},
    {RLOCK_SEEN_SHARED, 1, 221000, 4000, 26000, 0, "held for 3m41s by " WHO "; renewed 4s ago"},
    {RLOCK_SEEN_SLOTS, 1, 221000, 4000, 26000, 900, "held for 3m41s by " WHO "; renewed 4s ago"},
    /* the server reported this 1 s ago: the holder may have renewed the lease since then */
    {RLOCK_SEEN_EXCLUSIVE, 1, 221000, 4000, 26000, 1000, "held for 3m42s by " WHO},
    /* the lease was not renewed since the grant */
    {RLOCK_SEEN_EXCLUSIVE, 1, 5000, 5000, 25000, 0, "held for 5s by " WHO},
    {RLOCK_SEEN_EXCLUSIVE, 1, 5000, 4950, 25000, 0, "held for 5s by " WHO},
    /* rlock doesn't know since when the lock is held, or when the lease was renewed */
    {RLOCK_SEEN_EXCLUSIVE, 0, 0, -1, 26000, 0, "held by " WHO},
    {RLOCK_SEEN_EXCLUSIVE, 1, 221000, -1, 26000, 0, "held for 3m41s by " WHO},
    {RLOCK_SEEN_EXCLUSIVE, 1, 221000, -1, -1, 0, "held for 3m41s by " WHO "; never expires"},
    {RLOCK_SEEN_FOREIGN, 0, 0, -1, 26000, 1000, "held by " WHO "; expires in 25s"},
    {RLOCK_SEEN_FOREIGN, 0, 0, -1, -1, 0, "held by " WHO "; never expires"},
    {RLOCK_SEEN_REST, 1, 3000, -1, 42000, 0,
     "still taken by the --min-hold of " WHO ", which ended 3s ago, for another 42s"},
    {RLOCK_SEEN_DONE, 1, 300000, -1, 3240000, 0,
     "marked as done 5m00s ago by " WHO " (--once), for another 54m00s"},
    {RLOCK_SEEN_DONE, 1, 300000, -1, -1, 0,
     "marked as done 5m00s ago by " WHO " (--once); never expires"},
    {RLOCK_SEEN_KEPT, 1, 100, -1, 400, 0, "kept for the next waiter, " WHO},
    /* too few members of a quorum count: the party's text names servers that don't count yet */
    {RLOCK_SEEN_FREE, 0, 0, -1, 9000, 1000,
     "not granted by " WHO ": these may have forgotten a holder, and their grants count again in "
     "8s"},
};

static void test_texts(void)
{
    char text[TAKEN_BYTES];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct rlock_party party = {.text = WHO,
                                          .since_ms = texts[i].since_ms,
                                          .for_ms = texts[i].for_ms,
                                          .renewed_ms = texts[i].renewed_ms,
                                          .slot = -1};
        const struct taken taken = {texts[i].seen, &party, .left_ms = texts[i].left_ms,
                                    .age_ms = texts[i].age_ms};

        taken_text(text, &taken);
        is_str(text, texts[i].wanted, "the lock is described as in the table");
    }
}

static void test_facts(void)
{
    static const struct {
        enum rlock_seen seen;
        const char *mode, *role;
    } rows[] = {
        {RLOCK_SEEN_EXCLUSIVE, "exclusive", "holder"}, {RLOCK_SEEN_SHARED, "shared", "holder"},
        {RLOCK_SEEN_SLOTS, "slots", "holder"},         {RLOCK_SEEN_REST, "rest", "last_holder"},
        {RLOCK_SEEN_DONE, "done", "done_by"},          {RLOCK_SEEN_KEPT, "kept", "next"},
    };
    const struct rlock_party party = {.text = WHO, .slot = -1};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct taken taken = {rows[i].seen, &party, .left_ms = 5};
        struct message message = {.what = EVENT_BUSY};

        taken_add_facts(&message, &taken);
        is_str(message.facts[0].text, rows[i].mode, "the message has the mode of the lock");
        is_str(message.facts[1].name, rows[i].role);
        is_int(message.facts[2].number, 5, "the message has the time left");
    }
}

TESTS(test_texts, test_facts)
