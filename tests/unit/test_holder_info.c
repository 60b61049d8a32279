/* SPDX-License-Identifier: MIT */
/*
 * test_holder_info: writing and parsing holder info, also when another program wrote the value and
 * when the text contains bytes that would control a terminal.
 */
#include "lock/holder_info.h"
#include "tap.h"

#include <stdlib.h>

#define NOBODY "00000000000000000000000000000000"
#define TOKEN "0123456789abcdef0123456789abcdef"

/*
 * Does the text consist of words NAME=VALUE of printable ASCII, in which each VALUE has at most 160
 * bytes, and no %XX is cut?
 */
static bool is_holder_info(const char *info)
{
    size_t n;

    for (; *info != '\0'; info += n + (info[n] == ' ')) {
        const char *value = strchr(info, '=');

        n = strcspn(info, " ");
        if (value == NULL || value > info + n || n - (size_t)(value - info) > 161)
            return false;
        for (size_t i = 0; i < n; i++) {
            if (info[i] < '!' || info[i] > '~')
                return false;
            if (info[i] == '%' && strspn(info + i + 1, "0123456789ABCDEF") < 2)
                return false;
        }
    }
    return true;
}

static void test_write(void)
{
    struct rlock_holder holder = {
        .host = "web1", .user = "backup", .command = "tar", .label = "nightly", .pid = 42};
    char info[HOLDER_INFO_BYTES];
    char all[256];
    char *long_text;

    holder_info_write(info, &holder, 0);
    is_str(info, "host=web1 pid=42 user=backup command=tar label=nightly");
    holder = (struct rlock_holder){.user = "", .label = "a b=c%d\x1b\xff\n"};
    holder_info_write(info, &holder, 0);
    is_str(info, "label=a%20b=c%25d%1B%FF%0A");
    holder_info_write(info, &(struct rlock_holder){.label = "x kept=1", .has_renewer = true}, 0);
    is_str(info, "label=x%20kept=1 kept=1");
    holder_info_write(info, &(struct rlock_holder){.user = "ann", .hold_ms = 7200000}, 0);
    is_str(info, "user=ann hold=7200000", "the length of a person's hold is written");
    holder_info_write(info, &(struct rlock_holder){.host = NULL}, 0);
    is_str(info, "", "a holder without any field becomes an empty text");

    for (size_t i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    holder = (struct rlock_holder){all, all, all, all, INT64_MIN, true, INT64_MAX};
    holder_info_write(info, &holder, 0);
    ok(is_holder_info(info), "values of all 255 bytes become words of printable ASCII");
    long_text = malloc(100001);
    if (long_text == NULL)
        return;
    memset(long_text, '\n', 100000);
    long_text[100000] = '\0';
    for (size_t i = 0; i < 4; i++) { /* each round moves the place of the cut by one byte */
        holder = (struct rlock_holder){long_text, long_text, long_text, long_text, -1, true, 1};
        memset(info, 0x7f, sizeof info);
        holder_info_write(info, &holder, 0);
        okf(is_holder_info(info) && strlen(info) < HOLDER_INFO_BYTES && strlen(info) > 4 * 150,
            "values of 100,000 bytes are cut, but no %%XX in them is (%zu)", i);
        long_text[i] = 'a';
    }
    memset(long_text, 'x', 100000);
    holder_info_write(info, &(struct rlock_holder){.label = long_text}, 0);
    okf(strlen(info) == strlen("label=") + 160, "a value is cut to 160 bytes: %s", info);
    free(long_text);
}

#define CHARACTERS_5 "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
#define CHARACTERS_10 CHARACTERS_5 CHARACTERS_5

static const struct {
    const char *value, *wanted;
} described[] = {
    {TOKEN " v1 try=3 host=web1 pid=42 user=backup command=tar label=nightly since=1",
     "tar of backup@web1, pid 42 (nightly)"},
    {TOKEN " v1  since=1", "a program of ?@?, pid ?"},
    {TOKEN " v1 try=1 label=\x1b[2J\xff\\", "a program of ?@?, pid ? (\\x1b[2J\\xff\\x5c)"},
    {TOKEN " v1 try=1 host=h\xc3\xb6st label=\xe6\x97\xa5%E2%80%AE",
     "a program of ?@h\xc3\xb6st, pid ? (\xe6\x97\xa5\\xe2\\x80\\xae)"},
    /* a label has room for 63 bytes, which would end within the last character of 3 bytes */
    {TOKEN " v1 try=1 label=x" CHARACTERS_10 CHARACTERS_10 "\xe6\x97\xa5",
     "a program of ?@?, pid ? (x" CHARACTERS_10 CHARACTERS_10 ")"},
    {TOKEN " v1 try=1 host=build1 user=ann label=incident%2042 hold=7200000 since=1",
     "ann on build1 (incident 42)"},
    {TOKEN " v1 try=1 hold=7200000", "? on ?"},
    {TOKEN " v1 try=1 hosts=a xhost=b host=c", "a program of ?@c, pid ?"},
    {"", "another program (\"\", the key's value, not written by rlock)"},
    {"\n\r\x1b]0;x\x07",
     "another program (\"\\x0a\\x0d\\x1b]0;x\\x07\", the key's value, not written by rlock)"},
    {"1700000000", "another program (\"1700000000\", a time, as --protocol timestamp writes)"},
};

static void test_describe(void)
{
    struct rlock_party holder;

    for (size_t i = 0; i < sizeof described / sizeof described[0]; i++) {
        holder_info_parse_lock(described[i].value, &holder);
        is_str(holder.text, described[i].wanted, "a lock's value becomes this text for people");
    }
    holder_info_parse_lock("x v1 host=h pid=7 since=1 ttl=2", &holder);
    ok(holder.host[0] == '\0' && holder.since_ms == 0 && holder.ttl_ms == 0);
}

static void test_read(void)
{
    struct rlock_party party;

    holder_info_parse(
        TOKEN " v1 try=1 host=h%0A pid=42 user=u command=c label=%%41%zz since=1700000000000",
        &party);
    is_str(party.host, "h\n", "the host is parsed, and its %0A decoded");
    ok(strcmp(party.pid, "42") == 0 && strcmp(party.user, "u") == 0 &&
       strcmp(party.command, "c") == 0);
    is_str(party.label, "%A%zz", "the label is parsed; a '%' without two hex digits stays");
    is_str(party.text, "c of u@h\\x0a, pid 42 (%A%zz)", "the text for people has all fields");
    is_int(party.since_ms, 1700000000000, "the time of the grant is parsed");
    holder_info_parse("1700000000000 host=h pid=7", &party);
    is_str(party.host, "h", "the host of a waiter is parsed");
    is_int(party.since_ms, 0, "a text without since= gives the time 0, not known");
    holder_info_parse(TOKEN " v1 ttl=30000 hold=7200000", &party);
    ok(party.hold_ms == 7200000 && party.ttl_ms == 30000 && !party.has_renewer);
    holder_info_parse(TOKEN " v1 ttl=30000 kept=1 hold=7200000", &party);
    ok(party.has_renewer, "kept=1 is parsed: a process renews the lease");
    holder_info_parse(TOKEN " v1 hold=2592000001", &party);
    is_int(party.hold_ms, 0, "a hold of more than 30 d, which no rlock writes, is ignored");
    holder_info_parse(TOKEN " v1 since=-5", &party);
    is_int(party.since_ms, 0, "a negative since= gives the time 0, not known");
    holder_info_parse(TOKEN " v1 since=99999999999999999999", &party);
    is_int(party.since_ms, 0, "a since= above 2^53 gives the time 0, not known");
    is_int(party.slot, -1, "a value without slot= gives the slot -1");
    ok(holder_info_is_rlock(TOKEN " v1 ") && !holder_info_is_rlock(TOKEN " v2 ") &&
       !holder_info_is_rlock(TOKEN));
    ok(holder_info_has(TOKEN " v1 mode=done x=1", "mode", "done") &&
       !holder_info_has("a", "mode", "done"));
    is_str(holder_info_without_token(TOKEN " v2"), "v2");
    is_str(holder_info_without_token(TOKEN), TOKEN);
}

static const struct {
    const char *lock;
    enum rlock_seen seen;
} seen_in[] = {
    {TOKEN " v1 try=1 ttl=30000 host=h since=5", RLOCK_SEEN_EXCLUSIVE},
    {TOKEN " v1 try=0 host=h since=5", RLOCK_SEEN_KEPT},
    {NOBODY " v1 mode=rest host=h since=5", RLOCK_SEEN_REST},
    {NOBODY " v1 try=3 ttl=30000 host=h since=5", RLOCK_SEEN_SHARED},
    {NOBODY " v1 try=3 ttl=30000 slot=0 host=h since=5", RLOCK_SEEN_SLOTS},
    {NOBODY " v1 try=3 ttl=5000 mode=rest slot=0 host=h since=5", RLOCK_SEEN_REST},
    {"other", RLOCK_SEEN_FOREIGN},
    {TOKEN " v2 try=1", RLOCK_SEEN_FOREIGN},
};

static void test_seen(void)
{
    for (size_t i = 0; i < sizeof seen_in / sizeof seen_in[0]; i++)
        is_int(holder_info_seen(seen_in[i].lock), seen_in[i].seen, seen_in[i].lock);
}

/* The lock's times on the server, and the times that holder_info_set_times() must compute. */
static const struct {
    int64_t since_ms, ttl_ms, now_ms, left_ms; /* the grant, TTL, server's clock, time left */
    int64_t for_ms, renewed_ms; /* wanted: time since the grant, time since the renewal */
} times[] = {
    {1000, 30000, 222000, 26000, 221000, 4000},
    {1000, 30000, 2000, 29000, 1000, 1000},
    {1000, 30000, 2000, 28000, 1000, 1000}, /* the clock was set: renewed before the grant */
    {1000, 30000, 500, 30000, 0, 0},        /* the clock was set: now is before the grant */
    {1000, 30000, 2000, -1, 1000, -1},      /* the key never expires */
    {1000, 30000, 2000, 30001, 1000, -1},   /* another program has prolonged the expiry */
    {0, 30000, 2000, 28000, 0, -1},
};

/* A person's hold: its length, how long it has lasted, what is left of the lease; the result. */
static const struct {
    int64_t hold_ms;
    bool has_renewer;
    int64_t for_ms, left_ms, hold_left_ms, renewed_ms;
} holds[] = {
    {7200000, false, 1000, 7199000, 7199000, -1},
    {7200000, true, 9000, 25000, 7191000, 5000},  /* a process renews a shorter lease */
    {7200000, true, 9000, -1, 0, -1},             /* a waiter has no lease */
    {7200000, false, 9000, 0, 7191000, -1},       /* the lease ends in this ms */
    {7200000, false, 1000, 9000000, 9000000, -1}, /* `rlock renew` has extended the lease */
    {0, false, 9000, 25000, 0, 5000},             /* a program's hold has no length */
};

static void test_word_room(void)
{
    char word[5];

    holder_info_word("x host=abcd pid=7", "host", word, sizeof word);
    is_str(word, "abcd", "a word that just fits is copied whole");
    holder_info_word("x host=abcde pid=7", "host", word, sizeof word);
    is_str(word, "abcd", "a longer word is cut");
}

static void test_times(void)
{
    struct rlock_party party;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        party = (struct rlock_party){
            .since_ms = times[i].since_ms, .ttl_ms = times[i].ttl_ms, .renewed_ms = -1};
        holder_info_set_times(&party, times[i].now_ms, times[i].left_ms);
        is_int(party.for_ms, times[i].for_ms);
        is_int(party.renewed_ms, times[i].renewed_ms);
    }
    for (size_t i = 0; i < sizeof holds / sizeof holds[0]; i++) {
        party = (struct rlock_party){.since_ms = 5000,
                                     .ttl_ms = 30000,
                                     .renewed_ms = -1,
                                     .hold_ms = holds[i].hold_ms,
                                     .has_renewer = holds[i].has_renewer};
        holder_info_set_times(&party, 5000 + holds[i].for_ms, holds[i].left_ms);
        is_int(party.hold_left_ms, holds[i].hold_left_ms);
        is_int(party.renewed_ms, holds[i].renewed_ms);
    }
}

TESTS(test_write, test_describe, test_read, test_seen, test_word_room, test_times)
