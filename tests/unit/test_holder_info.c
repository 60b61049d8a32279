/* SPDX-License-Identifier: MIT */
/* test_card: who holds a lock, told by strangers and shown on terminals. */
#include "lock/holder_info.h"
#include "tap.h"

#include <stdlib.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

/* Is it words of printable ASCII, each NAME=VALUE with whole %XX only and up to 160 bytes? */
static bool is_card(const char *card)
{
    size_t n;
    size_t i;

    for (; *card != '\0'; card += n + (card[n] == ' ')) {
        const char *value = strchr(card, '=');

        n = strcspn(card, " ");
        if (value == NULL || value > card + n || n - (size_t)(value - card) > 161)
            return false;
        for (i = 0; i < n; i++) {
            if (card[i] < '!' || card[i] > '~')
                return false;
            if (card[i] == '%' && strspn(card + i + 1, "0123456789ABCDEF") < 2)
                return false;
        }
    }
    return true;
}

static void test_write(void)
{
    struct rlock_holder holder = {
        .host = "web1", .user = "backup", .command = "tar", .label = "nightly", .pid = 42};
    char card[HOLDER_INFO_BYTES];
    char all[256];
    char *long_text;
    size_t i;

    holder_info_write(card, &holder);
    is_str(card, "host=web1 pid=42 user=backup command=tar label=nightly", "all is written");
    holder = (struct rlock_holder){.user = "", .label = "a b=c%d\x1b\xff\n"};
    holder_info_write(card, &holder);
    is_str(card, "label=a%20b=c%25d%1B%FF%0A",
           "what is not known is left out; what could end a word or reach a terminal is escaped");
    holder_info_write(card, &(struct rlock_holder){.label = "x kept=1", .has_renewer = true});
    is_str(card, "label=x%20kept=1 kept=1", "that somebody renews it is a word of its own");
    holder_info_write(card, &(struct rlock_holder){.host = NULL});
    is_str(card, "", "nothing known, nothing written");

    for (i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    holder = (struct rlock_holder){all, all, all, all, INT64_MIN, true};
    holder_info_write(card, &holder);
    ok(is_card(card), "a card of all bytes is words of printable ASCII");
    long_text = malloc(100001);
    if (long_text == NULL)
        return;
    memset(long_text, '\n', 100000);
    long_text[100000] = '\0';
    for (i = 0; i < 4; i++) { /* so that the cut is at each place of an escape */
        holder = (struct rlock_holder){long_text, long_text, long_text, long_text, -1, true};
        memset(card, 0x7f, sizeof card);
        holder_info_write(card, &holder);
        okf(is_card(card) && strlen(card) < HOLDER_INFO_BYTES && strlen(card) > 4 * 150,
            "a card of long values is cut, and no escape in the middle (%zu)", i);
        long_text[i] = 'a';
    }
    free(long_text);
}

static const struct {
    const char *value, *wanted;
} described[] = {
    {TOKEN " v1 try=3 host=web1 pid=42 user=backup command=tar label=nightly since=1",
     "tar of backup@web1, pid 42 (nightly)"},
    {TOKEN " v1 try=0 host=web1 since=1", "a program of ?@web1, pid ?"},
    {TOKEN " v1  since=1", "a program of ?@?, pid ?"},
    {TOKEN " v1 try=1 label=x%1B[2J", "a program of ?@?, pid ? (x\\x1b[2J)"},
    {TOKEN " v1 try=1 label=\x1b[2J\xff\\", "a program of ?@?, pid ? (\\x1b[2J\\xff\\x5c)"},
    {TOKEN " v1 try=1 hosts=a xhost=b host=c", "a program of ?@c, pid ?"},
    {"", "another program (\"\")"},
    {"redsync", "another program (\"redsync\")"},
    {"\n\r\x1b]0;x\x07", "another program (\"\\x0a\\x0d\\x1b]0;x\\x07\")"},
    {"1700000000", "another program (\"1700000000\")"},
};

static void test_describe(void)
{
    struct rlock_party holder;
    size_t i;

    for (i = 0; i < sizeof described / sizeof described[0]; i++) {
        holder_info_parse_lock(described[i].value, &holder);
        is_str(holder.text, described[i].wanted, "described for people");
    }
    holder_info_parse_lock("x v1 host=h pid=7 since=1 ttl=2", &holder);
    ok(holder.host[0] == '\0' && holder.since_ms == 0 && holder.ttl_ms == 0,
       "a foreign value isn't read as one of ours");
}

static void test_read(void)
{
    struct rlock_party party;

    holder_info_parse(
        TOKEN " v1 try=1 host=h%0A pid=42 user=u command=c label=%%41%zz since=1700000000000",
        &party);
    is_str(party.host, "h\n", "the host, as it was meant");
    is_str(party.pid, "42", "the pid");
    is_str(party.user, "u", "the user");
    is_str(party.command, "c", "the command");
    is_str(party.label, "%A%zz", "the label");
    is_str(party.text, "c of u@h\\x0a, pid 42 (%A%zz)", "all of it for people");
    is_int(party.since_ms, 1700000000000, "since when");
    holder_info_parse("1700000000000 host=h pid=7", &party);
    is_str(party.host, "h", "a waiter is read as well");
    is_int(party.since_ms, 0, "which doesn't say since when");
    holder_info_parse(TOKEN " v1 since=-5", &party);
    is_int(party.since_ms, 0, "a time before all times isn't known");
    holder_info_parse(TOKEN " v1 since=99999999999999999999", &party);
    is_int(party.since_ms, 0, "nor one behind them");
    ok(holder_info_is_rlock(TOKEN " v1 ") && !holder_info_is_rlock(TOKEN " v2 ") &&
           !holder_info_is_rlock(TOKEN),
       "what is ours is told apart");
    ok(holder_info_has(TOKEN " v1 mode=done x=1", "mode", "done") &&
           !holder_info_has("a", "mode", "done"),
       "a word is found");
    is_str(holder_info_without_token(TOKEN " v2"), "v2", "what is behind a token");
    is_str(holder_info_without_token(TOKEN), TOKEN, "a value that is no token of ours");
}

/* What may be behind a token of ours: written by us, by a later rlock, by nobody we know. */
static const char *const behind[] = {
    " v1 try=1 host=h user=u", " v1 try=1 label=" TOKEN " v1", " v1 ", " v1", " v2 host=h", " ",
};

static void test_token(void)
{
    char value[256];
    struct rlock_party holder;
    size_t i;

    for (i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        snprintf(value, sizeof value, "%s%s", TOKEN, behind[i]);
        holder_info_parse_lock(value, &holder);
        /* a label may repeat what everybody can read in the key, but not the first word */
        okf(strncmp(behind[i] + 1, "v1 try=1 label", 14) == 0 || strstr(holder.text, TOKEN) == NULL,
            "the token isn't told: %s", holder.text);
    }
}

static void test_hostile(void)
{
    char value[600];
    struct rlock_party holder;
    bool is_good = true;
    unsigned seed = 1;
    int round;
    size_t i;

    for (round = 0; round < 2000; round++) {
        size_t n = (size_t)(rand_r(&seed) % 560);

        for (i = 0; i < n; i++)
            value[i] = (char)(rand_r(&seed) % 255 + 1);
        value[n] = '\0';
        if (round % 2 == 1)
            memcpy(value, TOKEN " v1 label=", sizeof TOKEN " v1 label=" - 1);
        value[599] = '\0';
        memset(&holder, 0x01, sizeof holder);
        holder_info_parse_lock(value, &holder);
        is_good = is_good && memchr(holder.text, '\0', sizeof holder.text) != NULL;
        for (i = 0; is_good && holder.text[i] != '\0'; i++)
            is_good = holder.text[i] >= ' ' && holder.text[i] <= '~';
    }
    ok(is_good, "any bytes are shown as printable ASCII, and within the room there is");
}

int main(void)
{
    test_write();
    test_describe();
    test_read();
    test_token();
    test_hostile();
    return done_testing();
}
